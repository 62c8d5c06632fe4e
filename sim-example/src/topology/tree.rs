//! Trees of switches: a single switch, and fat trees of any height.
//!
//! The general form is the extended generalised fat tree XGFT(h; m₁…m_h; w₁…w_h) with p₁…p_h parallel cables: a switch
//! of level `l` has `m_l` children, an element of level `l − 1` has `w_l` parents and `p_l` cables to each; nodes (level
//! 0) have one cable (w₁ = p₁ = 1). With `M_l = m₁⋯m_l` and `W_l = w₁⋯w_l`, level `l` consists of `nodes / M_l` groups of
//! `W_l` parallel switches; element `(t, q)` has the parents `(t / m, q·w + u)`, `u = 0…w−1`.
//!
//! Routes lead up to a switch above the destination, then down the only way.
//! The choice is among parents. Deterministic routing is D-mod-k: from level l to l + 1 over port ⌊dst /
//! (W₁⋯W_l)⌋ mod (w_{l+1}·p_{l+1}) of the upward ports, of which the first w are the first cables to all
//! parents. So all messages to one node come down through the same switches, neighbouring destinations use
//! different ones, and every shift of a full tree runs without contention. Valiant routes lead through a
//! random switch of the highest level.
//!
//! Up-down routes need one class of virtual channels: no downward link is followed by an upward one.
//!
//! Sources: S. R. Öhring et al., "On generalized fat trees", IPPS 1995; E. Zahavi, "D-Mod-K routing providing non-blocking
//! traffic for shift permutations on real life fat trees", 2010.

use super::drawing::Drawing;
use super::error::TopologyProblem;
use super::form::{Form, Parsed, exactly, joined, numbers};
use super::interface::{Level, Topology};
use super::route::{Choice, Field, Hop, Policy, Route};
use super::wiring::{LinkClass, LinkId, Vertex, Wiring, checked_links, product};
use crate::division::Divisor;

pub(super) const FORMS: &[Form] = &[
    Form {
        kind: "switch",
        form: "switch:NODES",
        example: "switch:16",
        help: "one switch",
        parse: |text| {
            let [nodes] = exactly(text)?;
            Some(Tree::switch(nodes).map(Into::into))
        },
    },
    Form {
        kind: "fattree",
        form: "fattree:LEAVESxNODESxSPINES, fattree:k=PORTS",
        example: "fattree:4x16x8 or fattree:k=8",
        help: "leaf switches with NODES each, all connected to each spine switch; or three levels of switches with PORTS each, an even number: PORTS³/4 nodes",
        parse: fat_tree,
    },
    Form {
        kind: "clos",
        form: "clos:PORTSxLEVELS[:RATIO]",
        example: "clos:64x2:3",
        help: "full Clos network of 2 or 3 LEVELS of switches with PORTS each, whose leaves have RATIO times as many ports down to nodes as up (1)",
        parse: clos,
    },
    Form {
        kind: "karytree",
        form: "karytree:KxLEVELS",
        example: "karytree:4x3",
        help: "k-ary n-tree: LEVELS of switches with K children and K parents each: K^LEVELS nodes",
        parse: k_ary_tree,
    },
    Form {
        kind: "xgft",
        form: "xgft:CHILDREN;PARENTS[;CABLES]",
        example: "xgft:16,4;1,8, or with cables, xgft:16,4;1,2;1,4",
        help: "general fat tree, from the nodes up: children of a switch of each level, parents of an element below it, cables to each parent",
        parse: xgft,
    },
];

fn fat_tree(text: &str) -> Option<Parsed> {
    if let Some([leaves, nodes, spines]) = exactly(text) {
        let name = format!("fattree:{leaves}x{nodes}x{spines}");
        return Some(Tree::new(name, &[nodes, leaves], &[1, spines], &[1, 1]).map(Into::into));
    }
    let [k] = exactly(text.strip_prefix("k=")?)?;
    if k % 2 == 1 {
        return Some(Err(TopologyProblem::Odd));
    }
    let half = k / 2;
    let tree = Tree::new(format!("fattree:k={k}"), &[half, half, k], &[1, half, half], &[1; 3]);
    Some(tree.map(Into::into))
}

/// Switches of the highest level have all their ports down, those between half, and leaves by the ratio.
fn clos(text: &str) -> Option<Parsed> {
    let (sizes, ratio) = text.split_once(':').unwrap_or((text, "1"));
    let ([ports, levels], [ratio]) = (exactly(sizes)?, exactly(ratio)?);
    if ports == 0 || ratio == 0 {
        return Some(Err(TopologyProblem::Zero));
    }
    let up = ports / ratio.saturating_add(1);
    if ratio.checked_mul(up).and_then(|down| down.checked_add(up)) != Some(ports) {
        return Some(Err(TopologyProblem::Ratio { ports, ratio }));
    }
    let behind = if ratio == 1 { String::new() } else { format!(":{ratio}") };
    let (name, down, half) = (format!("clos:{ports}x{levels}{behind}"), ports - up, ports / 2);
    let tree = match levels {
        2 => Tree::new(name, &[down, ports], &[1, up], &[1; 2]),
        3 if ports % 2 == 1 => Err(TopologyProblem::Odd),
        3 => Tree::new(name, &[down, half, ports], &[1, up, half], &[1; 3]),
        _ => return None,
    };
    Some(tree.map(Into::into))
}

fn k_ary_tree(text: &str) -> Option<Parsed> {
    let [k, levels] = exactly(text)?;
    match levels {
        0 => return Some(Err(TopologyProblem::Zero)),
        33.. => return Some(Err(TopologyProblem::TooLarge)),
        1..33 => {}
    }
    let mut parents = vec![k; levels as usize];
    parents[0] = 1;
    let ones = vec![1; parents.len()];
    Some(
        Tree::new(format!("karytree:{k}x{levels}"), &vec![k; parents.len()], &parents, &ones).map(Into::into),
    )
}

fn xgft(text: &str) -> Option<Parsed> {
    let lists: Vec<Vec<u32>> = text.split(';').map(|list| numbers(list, ',')).collect::<Option<_>>()?;
    let (children, parents, cables) = match &lists[..] {
        [children, parents] => (children, parents, vec![1; children.len()]),
        [children, parents, cables] => (children, parents, cables.clone()),
        _ => return None,
    };
    let lists: Vec<String> = lists.iter().map(|list| joined(list, ",")).collect();
    Some(Tree::new(format!("xgft:{}", lists.join(";")), children, parents, &cables).map(Into::into))
}

/// Level of the current switch, from 0.
const LEVEL: Field<0, 8> = Field;

/// [`Route::via`] for the highest level.
const TOP: u32 = 0;

/// A tree of switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    name: String,
    nodes: u32,
    switches: u32,
    levels: Vec<Tier>,
}

/// Level `l` of the tree, and the cables between it and level `l − 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tier {
    /// Parents of an element of the level below: `w_l`.
    parents: Divisor,
    /// Cables between a switch and each of its children: `p_l`.
    cables: u32,
    /// Children of a switch: `m_l`.
    children: Divisor,
    /// Nodes below an element of the level below: `M_{l−1}`.
    below: Divisor,
    /// Parallel elements of the level below: `W_{l−1}`.
    parallel_below: Divisor,
    /// Parallel switches here: `W_l`.
    parallel: Divisor,
    /// Nodes below a switch: `M_l`.
    span: Divisor,
    /// The first switch of the level.
    first_switch: u32,
    /// First link between the two levels; see [`Tier::link`].
    first_link: u32,
}

impl Tier {
    /// The upward link over cable `cable` from the element of `group` in the level below to its parent number
    /// `parallel`; the downward link follows.
    #[inline(always)]
    fn link(&self, group: u32, parallel: u32, cable: u32) -> LinkId {
        LinkId(self.first_link + 2 * ((group * self.parallel.get() + parallel) * self.cables + cable))
    }
}

impl Tree {
    /// One switch.
    pub(super) fn switch(nodes: u32) -> Result<Self, TopologyProblem> {
        Self::new(format!("switch:{nodes}"), &[nodes], &[1], &[1])
    }

    /// A tree in which elements of level `l` have `parents[l]` parents with `cables[l]` cables to each, and
    /// switches of level `l + 1` have `children[l]` children.
    pub(super) fn new(
        name: String,
        children: &[u32],
        parents: &[u32],
        cables: &[u32],
    ) -> Result<Self, TopologyProblem> {
        if children.len() != parents.len() || children.is_empty() {
            return Err(TopologyProblem::Levels { children: children.len(), others: parents.len() });
        }
        if children.len() != cables.len() {
            return Err(TopologyProblem::Levels { children: children.len(), others: cables.len() });
        }
        if children.len() > 32 {
            return Err(TopologyProblem::TooLarge);
        }
        if [children, parents, cables].iter().any(|numbers| numbers.contains(&0)) {
            return Err(TopologyProblem::Zero);
        }
        if parents[0] != 1 || cables[0] != 1 {
            return Err(TopologyProblem::Rails(parents[0].max(cables[0])));
        }
        let nodes = product(children.iter().copied())?;
        let up_to = |numbers: &[u32], level: usize| product(numbers[..level].iter().copied());
        let (mut levels, mut first_link, mut first_switch) = (Vec::with_capacity(children.len()), 0, 0);
        for l in 0..children.len() {
            let (below, span) = (up_to(children, l)?, up_to(children, l + 1)?);
            let (parallel_below, parallel) = (up_to(parents, l)?, up_to(parents, l + 1)?);
            levels.push(Tier {
                parents: Divisor::new(parents[l]),
                cables: cables[l],
                children: Divisor::new(children[l]),
                below: Divisor::new(below),
                parallel_below: Divisor::new(parallel_below),
                parallel: Divisor::new(parallel),
                span: Divisor::new(span),
                first_switch,
                first_link,
            });
            let joined = product([nodes / below, parallel, cables[l]])?;
            first_link = checked_links(u64::from(first_link) + 2 * u64::from(joined))?;
            first_switch =
                checked_links(u64::from(first_switch) + u64::from(product([nodes / span, parallel])?))?;
        }
        Ok(Self { name, nodes, switches: first_switch, levels })
    }

    /// The switch of `node`.
    #[inline(always)]
    fn switch_of(&self, node: u32) -> u32 {
        self.levels[0].span.quotient(node)
    }

    /// Index of the level of `switch`.
    fn level_of(&self, switch: u32) -> usize {
        self.levels.partition_point(|level| level.first_switch <= switch) - 1
    }

    /// What the switches of a level, from 1, are called.
    fn level_name(&self, level: usize) -> String {
        match (self.levels.len(), level) {
            (1, _) => "switch".to_owned(),
            (2, 1) => "leaf".to_owned(),
            (2, _) => "spine".to_owned(),
            (3, 1) => "edge".to_owned(),
            (3, 2) => "aggregation".to_owned(),
            (3, _) => "core".to_owned(),
            (_, level) => format!("level{level}."),
        }
    }
}

impl Topology for Tree {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn wiring(&self) -> Wiring {
        let mut wiring = Wiring::new(self.nodes, self.switches, |node| self.switch_of(node));
        for (below, level) in self.levels.iter().zip(&self.levels[1..]) {
            for group in 0..self.nodes / level.below.get() {
                for parallel in 0..level.parallel.get() {
                    let child = group * level.parallel_below.get() + level.parents.quotient(parallel);
                    let parent = level.children.quotient(group) * level.parallel.get() + parallel;
                    for _ in 0..level.cables {
                        wiring.cable(
                            below.first_switch + child,
                            level.first_switch + parent,
                            LinkClass::LOCAL,
                        );
                    }
                }
            }
        }
        wiring
    }

    fn switch_name(&self, switch: u32) -> String {
        let level = self.level_of(switch);
        let index = switch - self.levels[level].first_switch;
        match self.levels.len() {
            1 => self.level_name(1),
            _ => format!("{}{index}", self.level_name(level + 1)),
        }
    }

    /// Up to the lowest common ancestor, and down.
    fn hops(&self, from: u32, to: u32) -> u32 {
        let (src, dst) = (from * self.levels[0].span.get(), to * self.levels[0].span.get());
        let common = |level: &Tier| level.span.quotient(src) == level.span.quotient(dst);
        2 * self.levels.iter().position(common).unwrap_or(0) as u32
    }

    fn next(&self, route: &mut Route, _: Policy, choice: &mut dyn Choice) -> Hop {
        let levels = &self.levels[..];
        let l = LEVEL.get(route.state) as usize;
        let level = &levels[l];
        if route.via != Route::NO_DETOUR && l + 1 == levels.len() {
            route.via = Route::NO_DETOUR;
        }
        let (group, parallel) = level.parallel.divide(route.at - level.first_switch);
        if route.via == Route::NO_DETOUR && level.span.quotient(route.dst) == group {
            if l == 0 {
                return Hop::to_node(route.dst);
            }
            let lower = &levels[l - 1];
            let child = level.below.quotient(route.dst);
            let down = |cable: u32| LinkId(level.link(child, parallel, cable).0 + 1);
            let cable = match level.cables {
                1 => 0,
                cables => {
                    let port = level.parallel_below.quotient(route.dst) % (level.parents.get() * cables);
                    choice.among(route, cables, level.parents.quotient(port), &down)
                }
            };
            route.at = lower.first_switch + child * lower.parallel.get() + level.parents.quotient(parallel);
            LEVEL.set(&mut route.state, l as u32 - 1);
            return Hop::to_switch(down(cable), 0);
        }
        let upper = &levels[l + 1];
        let parents = upper.parents;
        let parent = |port: u32| parallel * parents.get() + parents.remainder(port);
        let up = |port: u32| upper.link(group, parent(port), parents.quotient(port));
        let port = match parents.get() * upper.cables {
            1 => 0,
            ports if route.via != Route::NO_DETOUR => choice.draw(route, ports, route.at),
            ports => choice.among(route, ports, upper.parallel_below.quotient(route.dst) % ports, &up),
        };
        route.at = upper.first_switch + upper.children.quotient(group) * upper.parallel.get() + parent(port);
        LEVEL.set(&mut route.state, l as u32 + 1);
        Hop::to_switch(up(port), 0)
    }

    fn channel_classes(&self, _: Policy, _: LinkClass) -> u32 {
        1
    }

    fn minimal_routing(&self) -> &'static str {
        "dmodk"
    }

    fn intermediate(&self, _: u32, _: u32, _: Policy, _: &mut dyn FnMut(u32) -> u32) -> Option<u32> {
        (self.levels.len() > 1).then_some(TOP)
    }

    fn lengths(&self, route: &Route, to: u32, _: u32, _: Policy) -> (u32, u32) {
        (self.hops(route.at, to), 2 * (self.levels.len() as u32 - 1))
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        let ends = self.levels.iter().skip(1).map(|level| level.first_link).chain([wiring.links()]);
        let name = |level: usize| match level {
            0 => "nodes".to_owned(),
            _ => [level, level + 1]
                .map(|level| self.level_name(level).trim_end_matches('.').to_owned())
                .join("-"),
        };
        let levels = self.levels.iter().zip(ends).enumerate();
        levels.map(|(number, (level, end))| Level::new(name(number), level.first_link..end)).collect()
    }

    /// Half of the subtrees of the highest level are cut off where they have the fewest links.
    fn bisection(&self) -> Option<u32> {
        let (top, lower) = self.levels.split_last()?;
        let cut = lower.iter().zip(&self.levels[1..]).fold(1, |cut, (level, above)| {
            (level.children.get() * cut).min(above.parallel.get() * above.cables)
        });
        top.children.get().is_multiple_of(2).then(|| top.children.get() / 2 * cut)
    }

    fn drawing(&self, _: &Wiring) -> Drawing {
        let widest = f64::from(self.nodes.max(self.switches)).min(4000.0);
        let width = (widest * Drawing::STEP / 2.0).max(300.0);
        let rows = self.levels.len() as f64;
        let row = (width / 6.0).clamp(90.0, 220.0);
        let even = |n: u32, of: u32| (f64::from(n) + 0.5) * width / f64::from(of);
        let nodes = (0..self.nodes).map(|node| (Vertex::Node(node), (even(node, self.nodes), rows * row)));
        let switches = (0..self.switches).map(|switch| {
            let level = self.level_of(switch);
            let first = self.levels[level].first_switch;
            let behind = self.levels.get(level + 1).map_or(self.switches, |level| level.first_switch);
            let y = (rows - 1.0 - level as f64) * row;
            (Vertex::Switch(switch), (even(switch - first, behind - first), y))
        });
        Drawing { places: nodes.chain(switches).collect(), straight: true }
    }
}
