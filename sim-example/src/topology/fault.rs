//! Links and switches that have failed, or are slower than others.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::fabric::Fabric;
use super::limits::GraphProblem;
use super::outages::{CutOff, MOST_CHANGES, Outages};
use super::slowdowns::Slowdowns;
use super::wiring::{LinkId, Vertex};
use crate::quantity::{QuantityError, exact_time, parse_time};
use crate::random::Random;
use vef_format::units::Picos;

/// Links that have failed or are slower, as given by the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    what: What,
    /// The bandwidth that is left, in percent; 0 of failed links.
    left: f64,
    /// From when until when, if not always; the end may be [`Picos::MAX`].
    times: Option<(Picos, Picos)>,
}

#[derive(Clone, Debug, PartialEq)]
enum What {
    /// The links from one vertex to another.
    Link(String, String),
    /// The same in both directions.
    Cable(String, String),
    /// All links of a switch, those of its nodes included.
    Switch(String),
    /// So many percent of the cables between switches, drawn by a seed.
    Share(f64, u64),
}

/// Failures that a network cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The text has no known form.
    #[error(
        "write FROM->TO (a link), A<->B (a cable), the name of a switch, or PERCENT%:SEED (of all cables between switches); behind it =PERCENT% where so much of the bandwidth is left, and ` down TIME up TIME` (or ` down TIME` alone) where that is for a time"
    )]
    Form(String),
    /// A share is none.
    #[error("a share must be a number from 0% to 100%")]
    Percent,
    /// A time is none.
    #[error("{text:?}: {problem}")]
    Time {
        /// The text.
        text: String,
        /// The error in it.
        problem: QuantityError,
    },
    /// Links work again before they fail.
    #[error("{0}: up must be later than down")]
    Order(String),
    /// More changes than can be numbered.
    #[error("--fail: links change at more than {MOST_CHANGES} times")]
    TooManyChanges,
    /// The tables of distances of all epochs are too large.
    #[error(
        "--fail: {sets} different sets of failed links, each with a table for {switches} switches: together they are at most {MOST_DISTANCES} distances"
    )]
    TooManyTables {
        /// Sets of failed links.
        sets: usize,
        /// Switches.
        switches: u32,
    },
    /// What fails is named twice.
    #[error("--fail {0}: given a second time")]
    Twice(String),
    /// The times of what fails twice overlap.
    #[error("--fail {0}: overlaps in time with --fail {1}")]
    Overlap(String, String),
    /// There is no such link or switch.
    #[error(
        "--fail {fault}: {topology} has no {what}{}",
        if has_words(what) { "; times stand behind the name as ` down TIME` or ` down TIME up TIME`" } else { "" }
    )]
    Missing {
        /// The text.
        fault: String,
        /// The network.
        topology: String,
        /// What it lacks.
        what: String,
    },
    /// Nodes that are used cannot reach each other.
    #[error(
        "failed links leave no route from {} to {}{}; {} of {} nodes in use are cut off from {}",
        .0.from, .0.to, .0.since(), .0.count, .0.all, .0.base
    )]
    CutOff(CutOff),
    /// The network is too large for a table of distances, which failures need.
    #[error("--fail: {0}")]
    Graph(#[from] GraphProblem),
}

/// Whether `link NAME` or `switch NAME` has several words as its name, which may be a time in another form.
fn has_words(what: &str) -> bool {
    what.split_whitespace().nth(2).is_some()
}

/// The most distances of all tables together, two bytes each.
const MOST_DISTANCES: u64 = 1 << 28;

/// A number from 0 to 100 in front of `%`.
fn percent(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (timeless, times) = match text.split_once(" down ") {
            Some((what, times)) => (what.trim_end(), Some(parse_times(times, text)?)),
            None => (text, None),
        };
        let (what, left) = match timeless.rsplit_once('=') {
            Some((what, left)) if left.ends_with('%') => (what, percent(left).ok_or(FaultError::Percent)?),
            _ => (timeless, 0.0),
        };
        let ends = |separator: &str| {
            let (a, b) = what.split_once(separator)?;
            let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
            Some((named(a.trim())?, named(b.trim())?))
        };
        let share = || -> Result<Option<What>, FaultError> {
            let (share, seed) = what.split_once(':').unwrap_or((what, "1"));
            // Words behind it are no share.
            if !share.ends_with('%') {
                return Ok(None);
            }
            let percent = percent(share).ok_or(FaultError::Percent)?;
            Ok(seed.parse().ok().map(|seed| What::Share(percent, seed)))
        };
        let what = if what.contains("<->") {
            ends("<->").map(|(a, b)| What::Cable(a, b))
        } else if what.contains("->") {
            ends("->").map(|(from, to)| What::Link(from, to))
        } else if what.contains('%') {
            share()?
        } else {
            (!what.is_empty()).then(|| What::Switch(what.to_owned()))
        };
        Ok(Self { what: what.ok_or_else(|| FaultError::Form(text.to_owned()))?, left, times })
    }
}

/// `TIME up TIME`, or `TIME` alone.
fn parse_times(times: &str, text: &str) -> Result<(Picos, Picos), FaultError> {
    let (down, up) = match times.split_once(" up ") {
        Some((down, up)) => (down, Some(up)),
        None => (times, None),
    };
    let time = |text: &str| {
        parse_time(text.trim()).map_err(|problem| FaultError::Time { text: text.trim().to_owned(), problem })
    };
    let (down, up) = (time(down)?, up.map(time).transpose()?.unwrap_or(Picos::MAX));
    if down < up { Ok((down, up)) } else { Err(FaultError::Order(text.to_owned())) }
}

impl fmt::Display for Fault {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Link(from, to) => write!(f, "{from}->{to}")?,
            What::Cable(a, b) => write!(f, "{a}<->{b}")?,
            What::Switch(name) => f.write_str(name)?,
            What::Share(percent, seed) => write!(f, "{percent}%:{seed}")?,
        }
        if self.left > 0.0 {
            write!(f, "={}%", self.left)?;
        }
        let Some((down, up)) = self.times else { return Ok(()) };
        write!(f, " down {}", exact_time(down))?;
        if up < Picos::MAX { write!(f, " up {}", exact_time(up)) } else { Ok(()) }
    }
}

impl Fault {
    /// Whether it is only for a time, or begins during the run.
    pub fn has_times(&self) -> bool {
        self.times.is_some()
    }

    /// When it begins.
    pub fn begin(&self) -> Picos {
        self.times.map_or(Picos::ZERO, |(down, _)| down)
    }

    /// Whether it has a time in common with another one.
    fn overlaps(&self, other: &Self) -> bool {
        let lasts = |fault: &Self| fault.times.unwrap_or((Picos::ZERO, Picos::MAX));
        let ((from, to), (begin, end)) = (lasts(self), lasts(other));
        from < end && begin < to
    }

    /// The links concerned.
    fn links(&self, fabric: &Fabric) -> Result<Vec<LinkId>, FaultError> {
        let missing = |what: String| FaultError::Missing {
            fault: self.to_string(),
            topology: fabric.topology().name(),
            what,
        };
        let all = || (0..fabric.links()).map(LinkId);
        let between = |from: &str, to: &str| {
            let name = format!("{from}->{to}");
            let links: Vec<LinkId> = all().filter(|link| fabric.link_name(*link) == name).collect();
            if links.is_empty() { Err(missing(format!("link {name}"))) } else { Ok(links) }
        };
        match &self.what {
            What::Link(from, to) => between(from, to),
            What::Cable(a, b) => Ok([between(a, b)?, between(b, a)?].concat()),
            What::Switch(name) => {
                let is_named = |switch: &u32| fabric.topology().switch_name(*switch) == *name;
                let switch = (0..fabric.switches()).find(is_named).map(Vertex::Switch);
                let switch = switch.ok_or_else(|| missing(format!("switch {name}")))?;
                let has = |link: &LinkId| {
                    fabric.ends(*link).is_some_and(|ends| ends.0 == switch || ends.1 == switch)
                };
                Ok(all().filter(has).collect())
            }
            What::Share(percent, seed) => {
                let mut cables = cables(fabric);
                Random::new(*seed, 0).shuffle(&mut cables);
                cables.truncate((cables.len() as f64 * percent / 100.0).round() as usize);
                Ok(cables.concat())
            }
        }
    }
}

/// The cables between switches: the links of both directions, or the one of a one-way link.
fn cables(fabric: &Fabric) -> Vec<Vec<LinkId>> {
    // Of each pair of switches the cables of which one direction is known.
    let mut open: HashMap<(Vertex, Vertex), Vec<usize>> = HashMap::new();
    let mut cables: Vec<Vec<LinkId>> = Vec::new();
    for link in (2 * fabric.nodes()..fabric.links()).map(LinkId) {
        let Some((from, to)) = fabric.ends(link) else { continue };
        match open.get_mut(&(to, from)).filter(|open| !open.is_empty()).map(|open| open.remove(0)) {
            Some(cable) => cables[cable].push(link),
            None => {
                open.entry((from, to)).or_default().push(cables.len());
                cables.push(vec![link]);
            }
        }
    }
    cables
}

impl Fabric {
    /// This network with failures; `used` are the nodes that must reach each other. Also the links that are slower for the whole run, with the
    /// percentage of bandwidth left: of several the least.
    pub(crate) fn with_faults(
        mut self,
        faults: &[Fault],
        used: impl Iterator<Item = u32>,
    ) -> Result<(Self, Vec<(LinkId, f64)>), FaultError> {
        let (mut failed, mut slower) = (HashSet::new(), HashMap::new());
        let (mut timed, mut slowdowns) = (Vec::new(), Vec::new());
        let mut named: HashMap<LinkId, Vec<&Fault>> = HashMap::new();
        for (at, fault) in faults.iter().enumerate() {
            let links = fault.links(&self)?;
            // Shares may draw the same cables, and a switch may have links that are named.
            let is_named = matches!(fault.what, What::Link(..) | What::Cable(..));
            let same = faults[..at].iter().filter(|before| before.what == fault.what);
            let of_links =
                links.iter().filter(|_| is_named).filter_map(|link| named.get(link)).flatten().copied();
            if let Some(before) = same.chain(of_links).find(|before| fault.overlaps(before)) {
                return Err(match fault.times == before.times {
                    true => FaultError::Twice(fault.to_string()),
                    false => FaultError::Overlap(fault.to_string(), before.to_string()),
                });
            }
            if is_named {
                links.iter().for_each(|link| named.entry(*link).or_default().push(fault));
            }
            match fault.times {
                Some((from, to)) if fault.left > 0.0 => slowdowns.push((from, to, links, fault.left)),
                Some((from, to)) => timed.push((from, to, links)),
                None if fault.left > 0.0 => links.into_iter().for_each(|link| {
                    let left = slower.entry(link).or_insert(fault.left);
                    *left = fault.left.min(*left);
                }),
                None => failed.extend(links),
            }
        }
        slower.retain(|link, _| !failed.contains(link));
        if !slowdowns.is_empty() {
            let slowdowns = Slowdowns::new(&slower, &slowdowns).ok_or(FaultError::TooManyChanges)?;
            self.slowdowns = Some(Arc::new(slowdowns));
        }
        let mut slower: Vec<(LinkId, f64)> = slower.into_iter().collect();
        slower.sort_by_key(|(link, _)| *link);
        let mut used: Vec<u32> = used.collect::<HashSet<u32>>().into_iter().collect();
        used.sort_unstable();
        if timed.is_empty() {
            if failed.is_empty() {
                return Ok((self, slower));
            }
            let fabric = self.without(&failed)?;
            return match fabric.cut_off(&failed, &used, 0) {
                Some(pair) => Err(FaultError::CutOff(pair)),
                None => Ok((fabric, slower)),
            };
        }
        let outages = Outages::new(&failed, &timed).ok_or(FaultError::TooManyChanges)?;
        let (sets, switches) = (outages.sets().len(), self.switches());
        if sets as u64 * u64::from(switches).pow(2) > MOST_DISTANCES {
            return Err(FaultError::TooManyTables { sets, switches });
        }
        let mut fabric = self.with_outages(outages.clone())?;
        let mut cut_off = Vec::new();
        for (epoch, &begin) in (0u32..).zip(outages.begins()) {
            let Some(pair) = fabric.cut_off(&outages.sets()[outages.place(epoch)], &used, epoch) else {
                continue;
            };
            match outages.next(begin) {
                Some(end) => cut_off.push(CutOff { begin, end, ..pair }),
                None => return Err(FaultError::CutOff(CutOff { begin, ..pair })),
            }
        }
        fabric.outages = Some(Arc::new(outages.with_cut_off(cut_off)));
        Ok((fabric, slower))
    }

    /// Nodes in use that cannot reach each other, in an epoch.
    fn cut_off(&self, failed: &HashSet<LinkId>, used: &[u32], epoch: u32) -> Option<CutOff> {
        let has_route = |from: u32, to: u32| {
            let of_nodes = [LinkId::injection(from), LinkId::ejection(to)];
            of_nodes.iter().all(|link| !failed.contains(link)) && self.is_connected(from, to, epoch)
        };
        // A node whose own cable works, if there is one.
        let base = used.iter().copied().find(|&node| has_route(node, node)).or(used.first().copied())?;
        let others = used.iter().copied().filter(|&node| node != base || used.len() == 1);
        let mut missing = others.filter_map(|node| {
            [(base, node), (node, base)].into_iter().find(|&(from, to)| !has_route(from, to))
        });
        let (from, to) = missing.next()?;
        let (count, all) = (1 + missing.count(), used.len());
        let [from, to, base] = [from, to, base].map(|node| self.vertex_name(Vertex::Node(node)));
        Some(CutOff { from, to, base, count, all, begin: Picos::ZERO, end: Picos::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::ChannelClasses;
    use crate::routing::tests::router;
    use crate::topology::tests::build;

    fn failed(topology: &str, faults: &[&str]) -> Result<Fabric, FaultError> {
        let faults: Vec<Fault> = faults.iter().map(|fault| fault.parse()).collect::<Result<_, _>>()?;
        let fabric = build(topology);
        let nodes = fabric.nodes();
        Ok(fabric.with_faults(&faults, 0..nodes)?.0)
    }

    fn names(fabric: &Fabric, src: u32, dst: u32) -> Vec<String> {
        let router = router(fabric, "minimal", 0).unwrap();
        router.route(src, dst).map(|link| fabric.link_name(link)).collect()
    }

    /// Routes that no failure concerns are those of the whole network.
    #[test]
    fn routes_are_as_before_elsewhere() {
        for topology in
            ["fattree:4x4x4", "fattree:k=4", "karytree:3x3", "torus:5x5", "mesh:4x3:2", "hyperx:4x3:2"]
        {
            let (before, after) = (build(topology), build(topology).without(&HashSet::new()).unwrap());
            for (src, dst) in
                (0..before.nodes()).flat_map(|src| (0..before.nodes()).map(move |dst| (src, dst)))
            {
                assert_eq!(names(&after, src, dst), names(&before, src, dst), "{topology}");
            }
        }
    }

    /// No route uses a failed link; all are shortest in what is left, and cannot deadlock.
    #[test]
    fn routes_lead_around_failures() {
        for (topology, faults) in [
            ("fattree:4x4x4", &["leaf0<->spine1", "spine3"][..]),
            ("fattree:k=4", &["edge0->aggregation1", "core2"]),
            ("torus:4x4", &["(0,0)<->(1,0)", "20%:7"]),
            ("mesh:3x3", &["(1,1)<->(1,0)"]),
            ("hyperx:4x4:2", &["30%:3"]),
            ("dragonfly:2x4x2", &["10%:1", "g0.r0->g0.r1"]),
            ("dragonflyplus:2x3x3x2", &["g0.spine1", "5%:2"]),
            ("slimfly:5:1", &["20%:5"]),
        ] {
            let fabric = failed(topology, faults).unwrap_or_else(|error| panic!("{topology}: {error}"));
            let whole = build(topology);
            let faults: Vec<Fault> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
            let gone: HashSet<LinkId> =
                faults.iter().flat_map(|fault| fault.links(&whole).unwrap()).collect();
            assert!(!gone.is_empty());
            for routing in ["minimal", "ecmp:packet", "adaptive", "valiant", "ugal"] {
                let mut router = router(&fabric, routing, 1).unwrap();
                assert!(
                    router.assign_channels(None, ChannelClasses::default()).is_ok(),
                    "{topology} {routing}"
                );
                for (src, dst) in
                    (0..fabric.nodes()).flat_map(|src| (0..fabric.nodes()).map(move |dst| (src, dst)))
                {
                    let links: Vec<LinkId> = router.route(src, dst).collect();
                    assert!(links.iter().all(|link| !gone.contains(link)), "{topology} {routing}");
                    assert_eq!(links.last(), Some(&LinkId::ejection(dst)));
                    if matches!(routing, "minimal" | "ecmp:packet" | "adaptive") {
                        assert_eq!(links.len() as u32, fabric.distance(src, dst).max(2));
                    }
                }
            }
        }
        // A detour by hand: the cable between two neighbours of a ring of six is gone.
        let ring = failed("torus:6", &["(0)<->(1)"]).unwrap();
        assert_eq!(
            names(&ring, 0, 1),
            ["node0->(0)", "(0)->(5)", "(5)->(4)", "(4)->(3)", "(3)->(2)", "(2)->(1)", "(1)->node1"]
        );
        // With too few channels a deadlock is possible, which names them.
        let square = failed("torus:4x4", &["(0,0)<->(1,0)"]).unwrap();
        let error = router(&square, "minimal", 1)
            .unwrap()
            .assign_channels(Some(1), ChannelClasses::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("virtual channels here; 1 can deadlock") && error.contains(" -> ("),
            "{error}"
        );
    }

    #[test]
    fn what_is_cut_off_is_named() {
        let error = |topology, faults: &[&str]| failed(topology, faults).unwrap_err().to_string();
        assert_eq!(
            error("fattree:4x2x2", &["leaf3<->spine0", "leaf3<->spine1"]),
            "failed links leave no route from node0 to node6; 2 of 8 nodes in use are cut off from node0"
        );
        assert!(error("fattree:4x2x2", &["leaf0"]).contains("from node2 to node0; 2 of 8"));
        assert!(error("switch:4", &["switch->node1"]).contains("no route from node0 to node1; 1 of 4"));
        assert!(error("mesh:4", &["100%"]).contains("3 of 4 nodes"));
        // In the direction that has no route, between two nodes where there are two.
        assert_eq!(
            error("switch:3", &["node0->switch"]),
            "failed links leave no route from node0 to node1; 1 of 3 nodes in use are cut off from node1"
        );
        assert!(error("switch:3", &["switch->node0"]).contains("from node1 to node0; 1 of 3"));
        assert!(
            error("switch:4", &["switch"])
                .contains("from node0 to node1; 3 of 4 nodes in use are cut off from node0")
        );
        assert!(
            error("switch:2", &["switch->node0", "node1->switch"]).contains("from node1 to node0; 1 of 2")
        );
        assert!(error("switch:1", &["switch"]).contains("from node0 to node0; 1 of 1"));
        let timed = failed("switch:4", &["node1->switch down 1us up 2us", "switch down 3us up 4us"]).unwrap();
        let timed: Vec<String> = timed.outages().unwrap().cut_off().iter().map(ToString::to_string).collect();
        assert!(
            timed[0].contains("from node1 to node0; 1 of 4 nodes in use are cut off from node0"),
            "{timed:?}"
        );
        assert!(
            timed[1].contains("from node0 to node1; 3 of 4 nodes in use are cut off from node0"),
            "{timed:?}"
        );
        assert_eq!(error("switch:4", &["leaf0"]), "--fail leaf0: switch:4 has no switch leaf0");
        assert_eq!(error("torus:4", &["(0)->(2)"]), "--fail (0)->(2): torus:4 has no link (0)->(2)");
        for text in ["spine1 dwon 1ms up 2ms", "spine1 down", "spine1 up 1ms", "spine1<->leaf0 dwon 1ms"] {
            let form = "; times stand behind the name as ` down TIME` or ` down TIME up TIME`";
            assert!(error("fattree:4x2x2", &[text]).ends_with(form), "{text}");
        }
        // Nodes that are not used may be cut off.
        let faults = ["leaf3".parse().unwrap()];
        assert!(build("fattree:4x2x2").with_faults(&faults, 0..6).is_ok());
        for text in ["", "->", "a->", "<->b", "101%", "5%:x", "%"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
        for text in ["(0,1)->(1,1)", "a<->b=10%", "5%:3", "5%:3=50%", "leaf0"] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
    }

    /// What fails twice is a mistake; shares may draw the same cables, and a switch may have a link that is named.
    #[test]
    fn what_is_given_twice_or_is_no_share_is_refused() {
        let says =
            |faults: &[&str]| failed("fattree:2x2x2", faults).map(|_| ()).map_err(|error| error.to_string());
        for (faults, twice) in [
            (["leaf0 down 1us", "leaf0 down 1us"], "leaf0 down 1us"),
            (["leaf0->spine0", "leaf0->spine0"], "leaf0->spine0"),
            (["leaf0->spine0", "spine0<->leaf0"], "spine0<->leaf0"),
            (["leaf0->spine0", "leaf0->spine0=10%"], "leaf0->spine0=10%"),
            (["spine0", "spine0"], "spine0"),
            (["10%:1", "10%"], "10%:1"),
        ] {
            assert_eq!(says(&faults), Err(format!("--fail {twice}: given a second time")));
        }
        assert_eq!(says(&["leaf0->spine0", "spine0", "10%:1", "10%:2=50%"]), Ok(()));
        for text in ["10% dwon 1ms", "10%:1 dwon 1ms", "10%:1=50% dwon 1ms", "spine0=10% dwon 1ms up 2ms"] {
            assert_eq!(text.parse::<Fault>(), Err(FaultError::Form(text.to_owned())));
        }
        for text in ["a->b=200%", "200%:1", "spine0=-1%", "x%:1"] {
            assert_eq!(text.parse::<Fault>(), Err(FaultError::Percent), "{text}");
        }
    }

    /// Times are shown as they can be given again; the same links may fail twice, one after the other.
    #[test]
    fn links_fail_for_a_time() {
        for text in [
            "a->b down 2ms up 5ms",
            "a<->b=10% down 0s",
            "spine0 down 1500ns up 10s",
            "5%:3 down 7ms",
            "5%:3=50% down 7ms up 8ms",
        ] {
            let fault: Fault = text.parse().unwrap();
            assert_eq!((fault.to_string(), fault.has_times()), (text.to_owned(), true));
        }
        for (text, error) in [
            ("a->b down 5ms up 2ms", "a->b down 5ms up 2ms: up must be later than down"),
            ("a->b down 5ms up 5ms", "a->b down 5ms up 5ms: up must be later than down"),
            ("a->b down 5", "\"5\": unknown or missing unit; write ps, ns, us, ms or s, like 500ns or 1.5us"),
            ("a->b down up 2ms", "\"up 2ms\": expected a decimal number and a unit, like 500ns or 1.5us"),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap_err().to_string(), error);
        }
        let says =
            |faults: &[&str]| failed("torus:4x4", faults).map(|_| ()).map_err(|error| error.to_string());
        let link = "(0,0)->(1,0)";
        let overlap =
            |fault: &str, before: &str| Err(format!("--fail {fault}: overlaps in time with --fail {before}"));
        let [early, late, over, ever] = ["down 1us up 2us", "down 2us up 3us", "down 1us up 3us", "down 2us"]
            .map(|at| format!("{link} {at}"));
        assert_eq!(says(&[&early, &late]), Ok(()));
        assert_eq!(says(&[&late, &over]), overlap(&over, &late));
        assert_eq!(says(&[&late, &ever]), overlap(&ever, &late));
        assert_eq!(says(&[link, &late]), overlap(&late, link));
        // For a time nodes may be cut off, not for ever.
        assert_eq!(says(&["(0,0) down 1us up 2us"]), Ok(()));
        assert_eq!(
            says(&["(0,0) down 1us"]),
            Err("failed links leave no route from node1 to node0 from 1.000 µs on; 1 of 16 nodes in use are cut off from node1".into())
        );
    }

    #[test]
    fn so_many_percent_fail() {
        let torus = build("torus:8x8");
        let of = |text: &str| text.parse::<Fault>().unwrap().links(&torus).unwrap();
        assert_eq!(of("25%:1").len(), 2 * 32);
        assert_ne!(of("25%:1"), of("25%:2"));
        assert_eq!(of("25%:1"), of("25%:1"));
        // Both directions of a cable.
        let ends: HashSet<_> = of("25%:1").iter().map(|link| torus.ends(*link).unwrap()).collect();
        assert!(ends.iter().all(|&(from, to)| ends.contains(&(to, from))));
    }
}
