//! Routing tables from a file, for any topology:
//!
//! ```text
//! # comment
//! route node0 node5 leaf0 spine1 leaf2
//! next leaf3 node0 spine0
//! ```
//!
//! `route FROM TO SWITCHES…` gives the route between two nodes; `next SWITCH NODE SWITCH` is an entry of a switch's forwarding table: the switch
//! to which it sends what is for a node. A pair with a route takes that; all others take the entries, and where a switch has none, shortest routes.

use std::collections::HashMap;
use std::path::Path;

use super::fabric::Fabric;
use super::file::{FileError, FileProblem, text};
use super::graph::Graph;
use super::routes::Routes;
use super::wiring::{LinkId, Vertex};

/// The lines of a file.
const LINES: &str = "route FROM TO SWITCHES, or next SWITCH NODE SWITCH";

/// The tables of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) routes: Routes,
    /// The link for a destination at a switch, the switch it leads to, and the line of the file.
    next: HashMap<(u32, u32), (LinkId, u32, usize)>,
    /// Links of the longest route by these entries.
    pub(super) longest: u32,
}

impl Table {
    /// The entry of a switch for a destination.
    #[inline]
    pub(super) fn next(&self, at: u32, dst: u32) -> Option<(LinkId, u32)> {
        self.next.get(&(at, dst)).map(|&(link, to, _)| (link, to))
    }

    /// The line of that entry, if there is one.
    pub(super) fn line(&self, at: u32, dst: u32) -> Option<usize> {
        self.next.get(&(at, dst)).map(|&(.., line)| line)
    }

    /// The destinations with entries, in order.
    pub(super) fn destinations(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.next.keys().map(|&(_, dst)| dst).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Reads the tables of a network, whose links between switches are those of `graph`.
    pub(super) fn read(path: &Path, fabric: &Fabric, graph: &Graph) -> Result<Self, FileError> {
        let text = text(path)?;
        let all = (0..fabric.nodes()).map(Vertex::Node).chain((0..fabric.switches()).map(Vertex::Switch));
        let places: HashMap<String, Vertex> =
            all.map(|vertex| (fabric.vertex_name(vertex), vertex)).collect();
        let mut table = Self::default();
        for (line, text) in (1..).zip(text.lines()) {
            table.add(text, line, &places, fabric, graph).map_err(|problem| problem.at(line))?;
        }
        if table.routes.is_empty() && table.next.is_empty() {
            return Err(FileProblem::Syntax(format!("no route and no entry: write lines like {LINES}")).at(0));
        }
        Ok(table)
    }

    fn add(
        &mut self,
        text: &str,
        line: usize,
        places: &HashMap<String, Vertex>,
        fabric: &Fabric,
        graph: &Graph,
    ) -> Result<(), FileProblem> {
        let find =
            |name: &str| places.get(name).copied().ok_or_else(|| FileProblem::Unknown(name.to_owned()));
        let node = |name: &str| match find(name)? {
            Vertex::Node(node) => Ok(node),
            Vertex::Switch(_) => Err(FileProblem::Syntax(format!("{name:?} is not a node"))),
        };
        let switch = |name: &str| match find(name)? {
            Vertex::Switch(switch) => Ok(switch),
            Vertex::Node(_) => Err(FileProblem::Syntax(format!("{name:?} is not a switch"))),
        };
        let words: Vec<&str> = text.split('#').next().unwrap_or_default().split_whitespace().collect();
        match words[..] {
            [] => Ok(()),
            ["route", src, dst, ref switches @ ..] if !switches.is_empty() => {
                let pair = (node(src)?, node(dst)?);
                let switches = switches.iter().map(|name| switch(name)).collect::<Result<Vec<_>, _>>()?;
                let name = |vertex| fabric.vertex_name(vertex);
                let wrong =
                    |problem| FileProblem::Route { src: src.to_owned(), dst: dst.to_owned(), problem };
                let end = fabric.switch_of(pair.1);
                if switches.iter().filter(|switch| **switch == end).count() > 1 {
                    return Err(wrong("it passes its last switch before its end".into()));
                }
                self.routes.add(pair, &switches, fabric.wiring(), graph, name).map_err(wrong)
            }
            ["next", at, dst, to] => {
                let (from, target, onward) = (switch(at)?, node(dst)?, switch(to)?);
                if fabric.switch_of(target) == from {
                    return Err(FileProblem::Syntax(format!("{dst:?} is connected to {at:?} itself")));
                }
                let link = graph.neighbours(from).iter().find(|&&(_, end)| end == onward);
                let missing = || FileProblem::Syntax(format!("no such link: {at}->{to}"));
                let &(link, _) = link.ok_or_else(missing)?;
                match self.next.insert((from, target), (link, onward, line)) {
                    None => Ok(()),
                    Some((.., before)) => Err(FileProblem::Syntax(format!(
                        "{at:?} has an entry for {dst:?} in line {before} already"
                    ))),
                }
            }
            _ => Err(FileProblem::Syntax(format!("expected {LINES}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::ChannelClasses;
    use crate::routing::tests::router;
    use crate::topology::tests::build;
    use std::io::Write;

    fn with_table(topology: &str, text: &str) -> Result<Fabric, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        build(topology).with_table(file.path()).map_err(|error| error.to_string())
    }

    /// The switches between two nodes.
    fn switches(fabric: &Fabric, src: u32, dst: u32) -> Vec<String> {
        let router = router(fabric, "minimal", 0).unwrap();
        let links = router.route(src, dst).map(|link| fabric.ends(link).unwrap().0);
        links.skip(1).map(|vertex| fabric.vertex_name(vertex)).collect()
    }

    #[test]
    fn routes_are_those_of_the_tables() {
        let text = "# a comment\nroute node0 node1 (0) (5) (4) (3) (2) (1)\n\nnext (2) node4 (1) # back\nnext (1) node4 (0)";
        let ring = with_table("torus:6", text).unwrap();
        assert_eq!(switches(&ring, 0, 1), ["(0)", "(5)", "(4)", "(3)", "(2)", "(1)"]);
        assert_eq!(switches(&ring, 2, 4), ["(2)", "(1)", "(0)", "(5)", "(4)"]);
        // All else is shortest: also a route that meets an entry, behind it.
        assert_eq!(switches(&ring, 1, 4), ["(1)", "(0)", "(5)", "(4)"]);
        assert_eq!(switches(&ring, 3, 4), ["(3)", "(4)"]);
        assert_eq!(switches(&ring, 2, 1), ["(2)", "(1)"]);
        assert_eq!(switches(&ring, 2, 2), ["(2)"]);
    }

    /// Tables of a topology's own routes change none; neither do those by destination, in trees.
    #[test]
    fn tables_of_the_own_routes_change_nothing() {
        for topology in
            ["fattree:4x4x4", "torus:4x4", "hyperx:3x3:2", "dragonfly:2x4x2", "slimfly:3:1", "rail:2x4x2x2"]
        {
            let own = build(topology);
            let pairs = || (0..own.nodes()).flat_map(|src| (0..own.nodes()).map(move |dst| (src, dst)));
            let line = |(src, dst)| {
                let [from, to] = [src, dst].map(|node| own.vertex_name(Vertex::Node(node)));
                format!("route {from} {to} {}\n", switches(&own, src, dst).join(" "))
            };
            let tabled = with_table(topology, &pairs().map(line).collect::<String>()).unwrap();
            for (src, dst) in pairs() {
                assert_eq!(switches(&tabled, src, dst), switches(&own, src, dst), "{topology}");
            }
            assert!(
                router(&tabled, "minimal", 0)
                    .unwrap()
                    .assign_channels(None, ChannelClasses::default())
                    .is_ok(),
                "{topology}"
            );
        }
        // Down the only way, up by D-mod-k.
        let own = build("fattree:k=4");
        let mut entries = std::collections::BTreeSet::new();
        for (src, dst) in (0..16).flat_map(|src| (0..16).map(move |dst| (src, dst))) {
            for pair in switches(&own, src, dst).windows(2) {
                entries.insert(format!("next {} node{dst} {}", pair[0], pair[1]));
            }
        }
        let tabled = with_table("fattree:k=4", &entries.into_iter().collect::<Vec<_>>().join("\n")).unwrap();
        for (src, dst) in (0..16).flat_map(|src| (0..16).map(move |dst| (src, dst))) {
            assert_eq!(switches(&tabled, src, dst), switches(&own, src, dst));
        }
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_line() {
        for (text, error) in [
            ("\nroute node0 node9 (0)", "line 2: unknown node or switch \"node9\""),
            ("route node0 (1) (0)", "line 1: \"(1)\" is not a node"),
            ("route node0 node1 node0", "line 1: \"node0\" is not a switch"),
            (
                "route node0 node2 (0) (2)",
                "line 1: the route from \"node0\" to \"node2\": no such link: (0)->(2)",
            ),
            (
                "route node0 node1 (0) (5)",
                "line 1: the route from \"node0\" to \"node1\": \"node1\" is not connected to \"(5)\"",
            ),
            (
                "route node0 node1 (0) (1) (0) (1)",
                "line 1: the route from \"node0\" to \"node1\": it passes its last switch before its end",
            ),
            (
                "route node0 node1 (0) (1)\nroute node0 node1 (0) (1)",
                "line 2: the route from \"node0\" to \"node1\": the route is given twice",
            ),
            ("next (0) node1 (2)", "line 1: no such link: (0)->(2)"),
            ("next (0) node0 (1)", "line 1: \"node0\" is connected to \"(0)\" itself"),
            (
                "next (0) node1 (5)\n\nnext (0) node1 (1)",
                "line 3: \"(0)\" has an entry for \"node1\" in line 1 already",
            ),
            (
                "next (2) node4 (1)\nnext (1) node4 (2)",
                "line 2: the route from \"(1)\" to \"node4\": by these entries it does not end",
            ),
            (
                "",
                "no route and no entry: write lines like route FROM TO SWITCHES, or next SWITCH NODE SWITCH",
            ),
            (
                "# route node0 node1 (0) (1)\n\n",
                "no route and no entry: write lines like route FROM TO SWITCHES, or next SWITCH NODE SWITCH",
            ),
            ("via (0) node1 (2)", "line 1: expected route FROM TO SWITCHES, or next SWITCH NODE SWITCH"),
        ] {
            assert_eq!(with_table("torus:6", text).map(|_| ()), Err(error.to_owned()), "{text}");
        }
        assert!(
            build("torus:6").with_table(Path::new("/none")).unwrap_err().to_string().contains("No such file")
        );
    }

    proptest::proptest! {
        /// Tables of any entries are refused, or all their routes end.
        #[test]
        fn routes_of_any_tables_end(entries in proptest::collection::vec((0u32..6, 0u32..6, 0u32..2), 0..20)) {
            let line = |&(at, dst, way): &(u32, u32, u32)| format!("next ({at}) node{dst} ({})\n", (at + 1 + 4 * way) % 6);
            if let Ok(ring) = with_table("torus:6", &(String::from("route node0 node0 (0)\n") + &entries.iter().map(line).collect::<String>())) {
                for (src, dst) in (0..6).flat_map(|src| (0..6).map(move |dst| (src, dst))) {
                    let passed = switches(&ring, src, dst);
                    proptest::prop_assert!(passed.len() <= 6 && passed.last() == Some(&format!("({dst})")), "{passed:?}");
                    // Where a switch has an entry, a route takes it.
                    for &(at, _, way) in entries.iter().filter(|entry| entry.1 == dst) {
                        let place = passed.iter().position(|switch| *switch == format!("({at})"));
                        let next = place.and_then(|place| passed.get(place + 1));
                        let entry = format!("({})", (at + 1 + 4 * way) % 6);
                        proptest::prop_assert!(next.is_none_or(|next| *next == entry), "{passed:?}");
                    }
                }
            }
        }
    }

    /// All around a ring in one direction: with one channel a packet on each link waits for the next.
    #[test]
    fn deadlocks_of_tables_are_named() {
        let mut text = String::new();
        for (at, dst) in (0..4).flat_map(|at| (0..4).map(move |dst| (at, dst))).filter(|(at, dst)| at != dst)
        {
            text += &format!("next ({at}) node{dst} ({})\n", (at + 1) % 4);
        }
        let ring = with_table("torus:4", &text).unwrap();
        assert_eq!(switches(&ring, 0, 3), ["(0)", "(1)", "(2)", "(3)"]);
        let mut router = router(&ring, "minimal", 0).unwrap();
        // Routes of three links.
        assert_eq!(router.assign_channels(None, ChannelClasses::default()), Ok(3));
        let error = router.assign_channels(Some(1), ChannelClasses::default()).unwrap_err().to_string();
        assert!(
            error.contains(
                "needs 3 virtual channels here; 1 can deadlock: (1) (channel 0) -> (2) (channel 0)"
            ),
            "{error}"
        );
    }
}
