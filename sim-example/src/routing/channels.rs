//! Deadlock freedom of routes: the channel dependency graph.
//!
//! A channel is a class of virtual channels on a link. It depends on another channel if a route uses the two
//! in sequence: a packet that holds the first may wait for the second. Without a cycle of dependencies, no
//! deadlock is possible (W. J. Dally, C. L. Seitz, 1987). The routes are those of the router, with all
//! choices that it can make.

use hashbrown::{HashMap, HashSet};

use super::router::{Decisions, MAX_CLASSES, Router, RoutingError};
use crate::topology::{Choice, Hop, LinkClass, LinkId, Route, Vertex};

/// A class of virtual channels on a link.
pub(crate) type Channel = (LinkId, u8);

/// Most steps of routes that are followed. Larger networks are checked from all sources to some destinations,
/// over some intermediate switches. In regular networks, smaller instances show all cycles; a deadlock that
/// the check misses is detected when it happens.
const BUDGET: usize = 3_000_000;
/// Most intermediate switches that are tried.
const TRIED: u32 = 16;

/// What a packet's class of virtual channels follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ChannelClasses {
    /// What the routing needs: on tori whether the route wraps around, on graphs nothing, or else the links taken
    #[default]
    Routing,
    /// The links left or taken, on tori, meshes and graphs: all switches are alike, but there are more classes
    Hops,
}

impl Router<'_> {
    /// Assigns classes of virtual channels such that no deadlock is possible with `vcs` channels per link, by
    /// default as many as the routing needs. Returns the number of channels.
    pub(crate) fn assign_channels(
        &mut self,
        vcs: Option<u32>,
        classes: ChannelClasses,
    ) -> Result<u32, RoutingError> {
        let routing = self.routing().name();
        let can_be_hops = self.fabric().topology().can_number_classes_by_hops();
        let by_hops = match classes {
            ChannelClasses::Hops if !can_be_hops => return Err(RoutingError::NoHops { routing }),
            ChannelClasses::Hops => true,
            ChannelClasses::Routing => can_be_hops && self.one_class_can_deadlock(),
        };
        *self = self.with_policy(|policy| policy.classes_by_hops = by_hops);
        let needed = self.classes(LinkClass::LOCAL).max(self.classes(LinkClass::GLOBAL));
        if needed > MAX_CLASSES {
            return Err(RoutingError::TooManyClasses { routing, classes: needed });
        }
        let vcs = vcs.unwrap_or(needed);
        if let Some(cycle) = find_cycle(self, vcs) {
            let cycle = describe(self, &cycle);
            return Err(RoutingError::Cycle { routing, vcs, needed, cycle });
        }
        Ok(vcs)
    }

    /// Whether routes can deadlock in a class of their own; never if they have several.
    fn one_class_can_deadlock(&self) -> bool {
        // The two phases of a route over an intermediate switch have separate classes.
        let of_a_phase = self.with_policy(|policy| (policy.detours, policy.classes_by_hops) = (false, false));
        // Routes that change on their way meet those of other epochs.
        of_a_phase.classes(LinkClass::LOCAL) == 1
            && (self.fabric().outages().is_some() || find_cycle(&of_a_phase, 1).is_some())
    }
}

/// A cycle in the dependency graph, if there is one. Classes from `classes` on count as the last class.
pub(crate) fn find_cycle(router: &Router<'_>, classes: u32) -> Option<Vec<Channel>> {
    let dependencies = Dependencies::of(router, classes);
    dependencies.cycle()
}

/// The dependency graph.
#[derive(Default)]
struct Dependencies {
    places: HashMap<Channel, u32>,
    channels: Vec<Channel>,
    on: Vec<Vec<u32>>,
}

impl Dependencies {
    fn of(router: &Router<'_>, classes: u32) -> Self {
        let fabric = router.fabric();
        let mut dependencies = Self::default();
        // Nodes of one switch have the same routes, but for the injection link.
        let mut sources: Vec<u32> = (0..fabric.nodes()).collect();
        if fabric.topology().routes_are_those_of_the_switch() {
            sources.dedup_by_key(|node| fabric.switch_of(*node));
        }
        let mut left = BUDGET;
        for dst in spread(fabric.nodes()) {
            let mut seen = HashSet::new();
            for &src in &sources {
                if seen.len() >= left {
                    return dependencies;
                }
                let route = router.start(src, dst, 0);
                let Some(outages) = fabric.outages() else {
                    dependencies.follow(router, classes, route, &mut seen);
                    continue;
                };
                for &begin in outages.begins() {
                    let mut route = route;
                    outages.enter(&mut route, begin);
                    dependencies.follow(router, classes, route, &mut seen);
                }
            }
            left -= seen.len().min(left);
        }
        dependencies
    }

    /// Adds the dependencies of all routes from `route` on.
    fn follow(
        &mut self,
        router: &Router<'_>,
        classes: u32,
        route: Route,
        seen: &mut HashSet<(Option<u32>, Route)>,
    ) {
        let mut open = vec![(None, route)];
        while let Some((from, route)) = open.pop() {
            if !seen.insert((from, route)) {
                continue;
            }
            let mut script = Script::new(router.is_deterministic());
            loop {
                let mut next = route;
                let Hop { link, class, last } = router.next_by(&mut next, script.rewound());
                if !last {
                    let class = u32::from(class).min(classes - 1) as u8;
                    let channel = self.place((link, class));
                    if let Some(from) = from
                        && !self.on[from as usize].contains(&channel)
                    {
                        self.on[from as usize].push(channel);
                    }
                    open.push((Some(channel), next));
                }
                if !script.advance() {
                    break;
                }
            }
        }
    }

    fn place(&mut self, channel: Channel) -> u32 {
        *self.places.entry(channel).or_insert_with(|| {
            self.channels.push(channel);
            self.on.push(Vec::new());
            self.channels.len() as u32 - 1
        })
    }

    /// Depth-first search: a dependency on a channel of the current path closes a cycle.
    fn cycle(&self) -> Option<Vec<Channel>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.channels.len()];
        for first in 0..self.channels.len() {
            if states[first] != State::New {
                continue;
            }
            // The current path: channels, and dependencies already visited.
            let mut path = vec![(first, 0)];
            states[first] = State::Open;
            while let Some((at, looked)) = path.last_mut() {
                let Some(&next) = self.on[*at].get(*looked) else {
                    states[*at] = State::Done;
                    path.pop();
                    continue;
                };
                *looked += 1;
                let next = next as usize;
                match states[next] {
                    State::Done => {}
                    State::New => {
                        states[next] = State::Open;
                        path.push((next, 0));
                    }
                    State::Open => {
                        let begin = path.iter().position(|&(at, _)| at == next).unwrap_or(0);
                        return Some(path[begin..].iter().map(|&(at, _)| self.channels[at]).collect());
                    }
                }
            }
        }
        None
    }
}

/// All numbers below `n`, in an order in which any prefix is spread evenly.
fn spread(n: u32) -> impl Iterator<Item = u32> {
    let bits = n.next_power_of_two().trailing_zeros();
    (0..n.next_power_of_two())
        .map(move |number| if bits == 0 { 0 } else { number.reverse_bits() >> (32 - bits) })
        .filter(move |&number| number < n)
}

/// Enumerates all combinations of choices.
struct Script {
    is_deterministic: bool,
    /// The choices made, and the number of options of each.
    made: Vec<(u32, u32)>,
    at: usize,
}

impl Script {
    fn new(is_deterministic: bool) -> Self {
        Self { is_deterministic, made: Vec::new(), at: 0 }
    }

    fn rewound(&mut self) -> &mut Self {
        self.at = 0;
        self
    }

    /// Moves to the next combination; false if there is none.
    fn advance(&mut self) -> bool {
        self.made.truncate(self.at);
        while let Some((choice, ways)) = self.made.last_mut() {
            *choice += 1;
            if choice < ways {
                return true;
            }
            self.made.pop();
        }
        false
    }

    fn choose(&mut self, ways: u32) -> u32 {
        if self.at == self.made.len() {
            self.made.push((0, ways));
        }
        self.at += 1;
        self.made[self.at - 1].0
    }
}

impl Choice for Script {
    fn among(&mut self, _: &Route, n: u32, fixed: u32, _: &dyn Fn(u32) -> LinkId) -> u32 {
        if self.is_deterministic { fixed } else { self.choose(n) }
    }

    fn draw(&mut self, _: &Route, n: u32, _: u32) -> u32 {
        let tried = n.min(TRIED);
        (u64::from(self.choose(tried)) * u64::from(n) / u64::from(tried)) as u32
    }
}

impl Decisions for Script {
    fn load(&self, _: LinkId) -> Option<u64> {
        None
    }

    fn takes_detour(&mut self, _: u64, _: u64) -> bool {
        self.choose(2) == 1
    }
}

/// A cycle in text.
pub(crate) fn describe(router: &Router<'_>, cycle: &[Channel]) -> String {
    let fabric = router.fabric();
    let name = |&(link, class): &Channel| {
        let to = fabric.ends(link).map_or(Vertex::Switch(0), |(from, _)| from);
        format!("{} (channel {class})", fabric.vertex_name(to))
    };
    const SHOWN: usize = 8;
    let mut names: Vec<String> = cycle.iter().take(SHOWN).map(name).collect();
    if cycle.len() > SHOWN {
        names.push(format!("… {} more …", cycle.len() - SHOWN));
    }
    names.extend(cycle.first().map(name));
    names.join(" -> ")
}
