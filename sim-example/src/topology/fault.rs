//! Links and switches that have failed, or are slower than others.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use super::fabric::Fabric;
use super::limits::GraphProblem;
use super::wiring::{LinkId, Vertex};
use crate::random::Random;

/// Links that have failed or are slower, as given by the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    what: What,
    /// The bandwidth that is left, in percent; 0 of failed links.
    left: f64,
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
        "write FROM->TO (a link), A<->B (a cable), the name of a switch, or PERCENT%:SEED (of all cables between switches); behind it =PERCENT% where so much of the bandwidth is left"
    )]
    Form(String),
    /// A share is none.
    #[error("a share must be a number from 0% to 100%")]
    Percent,
    /// What fails is named twice.
    #[error("--fail {0}: given a second time")]
    Twice(String),
    /// There is no such link or switch.
    #[error("--fail {fault}: {topology} has no {what}")]
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
        "failed links leave no route from {from} to {to}; {count} of {all} nodes in use are cut off from {from}"
    )]
    CutOff {
        /// A node.
        from: String,
        /// A node that it cannot reach, or that cannot reach it.
        to: String,
        /// How many such nodes there are.
        count: usize,
        /// Nodes that are used.
        all: usize,
    },
    /// The network is too large for a table of distances, which failures need.
    #[error("--fail: {0}")]
    Graph(#[from] GraphProblem),
}

/// A number from 0 to 100 in front of `%`.
fn percent(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (what, left) = match text.rsplit_once('=') {
            Some((what, left)) if left.ends_with('%') => (what, percent(left).ok_or(FaultError::Percent)?),
            _ => (text, 0.0),
        };
        let ends = |separator: &str| {
            let (a, b) = what.split_once(separator)?;
            let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
            Some((named(a.trim())?, named(b.trim())?))
        };
        let share = || -> Result<Option<What>, FaultError> {
            let (share, seed) = what.split_once(':').unwrap_or((what, "1"));
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
        Ok(Self { what: what.ok_or_else(|| FaultError::Form(text.to_owned()))?, left })
    }
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
        if self.left > 0.0 { write!(f, "={}%", self.left) } else { Ok(()) }
    }
}

impl Fault {
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
                let mut random = Random::new(*seed, 0);
                for last in (1..cables.len()).rev() {
                    cables.swap(last, random.below(last as u32 + 1) as usize);
                }
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
    /// This network with failures; `used` are the nodes that must reach each other. Also the links that are slower, with the percentage of
    /// bandwidth left.
    pub(crate) fn with_faults(
        self,
        faults: &[Fault],
        used: impl Iterator<Item = u32>,
    ) -> Result<(Self, Vec<(LinkId, f64)>), FaultError> {
        let (mut failed, mut slower) = (HashSet::new(), HashMap::new());
        let mut named = HashSet::new();
        for (at, fault) in faults.iter().enumerate() {
            let links = fault.links(&self)?;
            // Shares may draw the same cables, and a switch may have links that are named.
            let is_named = matches!(fault.what, What::Link(..) | What::Cable(..));
            if faults[..at].iter().any(|before| before.what == fault.what)
                || is_named && !links.iter().all(|link| named.insert(*link))
            {
                return Err(FaultError::Twice(fault.to_string()));
            }
            match fault.left > 0.0 {
                true => slower.extend(links.into_iter().map(|link| (link, fault.left))),
                false => failed.extend(links),
            }
        }
        slower.retain(|link, _| !failed.contains(link));
        let mut slower: Vec<(LinkId, f64)> = slower.into_iter().collect();
        slower.sort_by_key(|(link, _)| *link);
        if failed.is_empty() {
            return Ok((self, slower));
        }
        let fabric = self.without(&failed)?;
        let used: HashSet<u32> = used.collect();
        let mut used: Vec<u32> = used.into_iter().collect();
        used.sort_unstable();
        let cable_works = |node: u32| {
            [LinkId::injection(node), LinkId::ejection(node)].iter().all(|link| !failed.contains(link))
        };
        let first = used.iter().copied().find(|&node| cable_works(node)).or(used.first().copied());
        if let Some(first) = first {
            let is_cut_off = |node: &u32| {
                let node = *node;
                !cable_works(node) || !fabric.is_connected(first, node) || !fabric.is_connected(node, first)
            };
            let cut_off: Vec<u32> = used.iter().copied().filter(is_cut_off).collect();
            if let Some(&node) = cut_off.first() {
                let name = |node: u32| fabric.vertex_name(Vertex::Node(node));
                let (from, to) = (name(first), name(node));
                return Err(FaultError::CutOff { from, to, count: cut_off.len(), all: used.len() });
            }
        }
        Ok((fabric, slower))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
                assert!(router.assign_channels(None).is_ok(), "{topology} {routing}");
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
        let error = router(&square, "minimal", 1).unwrap().assign_channels(Some(1)).unwrap_err().to_string();
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
        assert_eq!(error("switch:4", &["leaf0"]), "--fail leaf0: switch:4 has no switch leaf0");
        assert_eq!(error("torus:4", &["(0)->(2)"]), "--fail (0)->(2): torus:4 has no link (0)->(2)");
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
            (["leaf0->spine0", "leaf0->spine0"], "leaf0->spine0"),
            (["leaf0->spine0", "spine0<->leaf0"], "spine0<->leaf0"),
            (["leaf0->spine0", "leaf0->spine0=10%"], "leaf0->spine0=10%"),
            (["spine0", "spine0"], "spine0"),
            (["10%:1", "10%"], "10%:1"),
        ] {
            assert_eq!(says(&faults), Err(format!("--fail {twice}: given a second time")));
        }
        assert_eq!(says(&["leaf0->spine0", "spine0", "10%:1", "10%:2=50%"]), Ok(()));
        for text in ["a->b=200%", "200%:1", "spine0=-1%", "x%:1"] {
            assert_eq!(text.parse::<Fault>(), Err(FaultError::Percent), "{text}");
        }
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
