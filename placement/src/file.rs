//! Placement files: TOML, JSON, or text with one node per line; see `docs/placement.md`.

use std::collections::HashMap;
use std::path::Path;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::input::lines::{plain_lines, read_text};
use crate::input::rankfile;
use crate::placement::{Location, Node, Placement};

/// The format of a placement file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementFormat {
    /// `*.toml`.
    Toml,
    /// `*.json`.
    Json,
    /// `*.rankfile`: Open MPI's, each rank in a slot of its own on its node.
    Rankfile,
    /// Any other name: line `r` names the node of rank `r`.
    Text,
}

impl PlacementFormat {
    /// The format for the name of a file.
    pub fn of_path(path: &Path) -> Self {
        match path.extension().and_then(|e| e.to_str()) {
            Some("toml") => PlacementFormat::Toml,
            Some("json") => PlacementFormat::Json,
            Some("rankfile") => PlacementFormat::Rankfile,
            _ => PlacementFormat::Text,
        }
    }
}

impl Placement {
    /// Reads a placement file in the format of its name ([`PlacementFormat::of_path`]).
    ///
    /// # Errors
    /// The file cannot be read, or a line is invalid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&read_text(path)?, PlacementFormat::of_path(path), &path.display().to_string())
    }

    /// The nodes of the ranks in a placement file, without their names: node numbers of a text may be any.
    ///
    /// # Errors
    /// As [`Placement::read`].
    pub fn read_nodes(path: &Path) -> Result<Vec<u32>, Error> {
        let (format, name) = (PlacementFormat::of_path(path), path.display().to_string());
        let text = read_text(path)?;
        if format == PlacementFormat::Text
            && let Entries::Numbers(numbers) = entries(&text, &name)?
        {
            return numbers
                .into_iter()
                .map(|(line, number)| node(line, number, u32::MAX - 1, &name))
                .collect();
        }
        Ok(Self::parse(&text, format, &name)?.nodes_of_ranks())
    }

    /// Parses a placement; `name` is the file in errors.
    ///
    /// # Errors
    /// The text is malformed, lists a node twice, or uses a node that it does not list; with the line.
    pub fn parse(text: &str, format: PlacementFormat, name: &str) -> Result<Self, Error> {
        let lists: FileLists = match format {
            PlacementFormat::Toml => toml::from_str(text).map_err(|e| {
                let start = e.span().map_or(0, |span| span.start);
                let line = text.bytes().take(start).filter(|&b| b == b'\n').count() + 1;
                Error::new(e.message()).at(name, line)
            })?,
            PlacementFormat::Json => serde_json::from_str(text).map_err(|e| {
                // The error has its position already.
                let message = e.to_string();
                let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
                Error::new(message).at(name, e.line().max(1))
            })?,
            PlacementFormat::Rankfile => return parse_rankfile(text, name),
            PlacementFormat::Text => return parse_text(text, name),
        };
        lists.resolve(text, name)
    }

    /// Formats the placement as a file.
    pub fn to_text(&self, format: PlacementFormat) -> String {
        match format {
            PlacementFormat::Toml => {
                format!("nodes = [\n{}]\nranks = [\n{}]\n", toml_lines(&self.nodes), toml_lines(&self.ranks))
            }
            PlacementFormat::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
            PlacementFormat::Rankfile => self.to_rankfile(),
            // Names that are numbers would be read as the nodes with these numbers.
            PlacementFormat::Text if self.nodes.iter().any(|node| is_number(&node.name)) => {
                self.ranks.iter().map(|place| format!("{}\n", place.node)).collect()
            }
            PlacementFormat::Text => self.hosts_of_ranks().map(|host| format!("{host}\n")).collect(),
        }
    }
}

impl Placement {
    /// The ranks of a node in slots from 0, in their order.
    fn to_rankfile(&self) -> String {
        let mut taken = vec![0u32; self.nodes.len()];
        let line = |(rank, location): (usize, &Location)| {
            let slot = &mut taken[location.node as usize];
            *slot += 1;
            format!("rank {rank}={} slot={}\n", self.nodes[location.node as usize].name, *slot - 1)
        };
        self.ranks.iter().enumerate().map(line).collect()
    }
}

/// One line per entry, where a TOML writer makes a paragraph of each.
fn toml_lines(entries: &[impl Serialize]) -> String {
    let mut text = String::new();
    for entry in entries {
        text.push_str("  ");
        // Names and numbers can be written.
        let _ = entry.serialize(toml::ser::ValueSerializer::new(&mut text));
        text.push_str(",\n");
    }
    text
}

/// The lists of TOML and JSON files.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileLists {
    nodes: Vec<NodeEntry>,
    ranks: Vec<RankEntry>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a node is a name or { name, slots, max_slots, cores }")]
enum NodeEntry {
    Name(String),
    Full(Node),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a rank is a node's index or { node, slot, core, oversubscribed }")]
enum RankEntry {
    Node(u32),
    Full(Location),
}

impl FileLists {
    fn resolve(self, text: &str, name: &str) -> Result<Placement, Error> {
        // Entries have no positions in the source; report that of the enclosing key.
        let error_under = |key: &str, error: Error| {
            error.at(name, text.lines().position(|line| line.contains(key)).map_or(1, |at| at + 1))
        };
        let node = |entry| match entry {
            NodeEntry::Name(name) => Node::named(name),
            NodeEntry::Full(node) => node,
        };
        let nodes: Vec<Node> = self.nodes.into_iter().map(node).collect();
        let mut seen = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            if let Some(first) = seen.insert(node.name.as_str(), at) {
                let message = format!("nodes {first} and {at} have the same name {:?}", node.name);
                return Err(error_under("nodes", Error::new(message)));
            }
        }
        if self.ranks.is_empty() {
            return Err(error_under("ranks", Error::no_ranks()));
        }
        let location = |entry| match entry {
            RankEntry::Node(node) => Location::on(node),
            RankEntry::Full(location) => location,
        };
        let ranks: Vec<Location> = self.ranks.into_iter().map(location).collect();
        let count = nodes.len();
        match ranks.iter().position(|location| location.node as usize >= count) {
            None => Ok(Placement { nodes, ranks }),
            Some(rank) => {
                let node = ranks[rank].node;
                let message = format!("rank {rank} is on node {node}, but the number of nodes is {count}");
                Err(error_under("ranks", Error::new(message)))
            }
        }
    }
}

/// Highest node number in a text file. All nodes up to it are named, so do not allocate memory on a mistyped
/// number's word.
const HIGHEST_NODE: u32 = (1 << 18) - 1;

/// A rankfile that has all ranks up to the last; nodes are in the order of the lines.
fn parse_rankfile(text: &str, name: &str) -> Result<Placement, Error> {
    let mut lines = rankfile::parse(text, name)?;
    let hosts: IndexSet<String> = lines.iter().map(|line| line.host.clone()).collect();
    lines.sort_by_key(|line| line.rank);
    for (rank, line) in (0..).zip(&lines) {
        if line.rank != rank {
            return Err(Error::new(format!("rank {rank} is missing")).at(name, line.line));
        }
    }
    let node = |host: &str| hosts.get_index_of(host).map_or(0, |node| node as u32);
    let ranks = lines.iter().map(|line| line.location(node(&line.host))).collect();
    Ok(Placement { nodes: hosts.into_iter().map(Node::named).collect(), ranks })
}

/// The lines of a text placement, by line number.
enum Entries<'a> {
    Numbers(Vec<(usize, &'a str)>),
    Names(Vec<&'a str>),
}

/// Whether a line of a text is the number of a node, not its name.
fn is_number(line: &str) -> bool {
    line.bytes().all(|byte| byte.is_ascii_digit())
}

/// The lines of a text: numbers or names. Both in one file are a mistake in one of them.
fn entries<'a>(text: &'a str, name: &str) -> Result<Entries<'a>, Error> {
    let mut lines = Vec::new();
    for (number, line) in plain_lines(text) {
        if line.split_whitespace().count() > 1 {
            let message = format!("expected one node number or name, found {line:?}");
            return Err(Error::new(message).at(name, number));
        }
        lines.push((number, line));
    }
    if lines.is_empty() {
        return Err(Error::no_ranks().at(name, 1));
    }
    let numbers = lines.iter().filter(|(_, line)| is_number(line)).count();
    if numbers == lines.len() {
        return Ok(Entries::Numbers(lines));
    }
    // One of the two is mistyped: the rarer one.
    if numbers > 0 {
        let names_are_rare = 2 * numbers >= lines.len();
        let odd = lines.iter().find(|(_, line)| is_number(line) != names_are_rare);
        let &(number, line) = odd.unwrap_or(&lines[0]);
        let (others, its) = if names_are_rare { ("numbers", "no number") } else { ("names", "a number") };
        let message = format!("{line:?} is {its}, but the nodes of other lines are {others}");
        return Err(Error::new(message).at(name, number));
    }
    Ok(Entries::Names(lines.into_iter().map(|(_, line)| line).collect()))
}

/// The node number on a line, at most `highest`.
fn node(line: usize, number: &str, highest: u32, name: &str) -> Result<u32, Error> {
    let node = number.parse().ok().filter(|&node| node <= highest);
    node.ok_or_else(|| Error::new(format!("node number {number} is above {highest}")).at(name, line))
}

/// Text with one node per line: numbers, of which the highest gives the number of nodes, or names, and nodes are in the order of their first
/// rank.
fn parse_text(text: &str, name: &str) -> Result<Placement, Error> {
    let lines = match entries(text, name)? {
        Entries::Names(names) => {
            let mut hosts = IndexSet::new();
            let ranks =
                names.into_iter().map(|host| Location::on(hosts.insert_full(host).0 as u32)).collect();
            return Ok(Placement { nodes: hosts.into_iter().map(Node::named).collect(), ranks });
        }
        Entries::Numbers(lines) => lines,
    };
    let mut ranks = Vec::with_capacity(lines.len());
    for (line, number) in lines {
        ranks.push(Location::on(node(line, number, HIGHEST_NODE, name)?));
    }
    let highest = ranks.iter().map(|location| location.node).max().unwrap_or(0);
    Ok(Placement { nodes: Node::numbered(highest + 1)?, ranks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_and_full_forms() {
        let text = "nodes = [\"a\", { name = \"b\", slots = 2 }]\nranks = [0, 1, { node = 1, slot = 1 }]\n";
        let placement = Placement::parse(text, PlacementFormat::Toml, "p.toml").unwrap();
        assert_eq!(placement.nodes_of_ranks(), [0, 1, 1]);
        assert_eq!(placement.nodes[1].slots, Some(2));
        let json = r#"{ "nodes": ["a"], "ranks": [0, {"node": 0, "oversubscribed": true}] }"#;
        assert!(Placement::parse(json, PlacementFormat::Json, "p.json").unwrap().ranks[1].oversubscribed);
    }

    /// A text with names that are numbers would be read as those numbers.
    #[test]
    fn nodes_with_numbers_as_names_are_written_by_their_own() {
        let nodes = ["3", "2"].map(Node::named).to_vec();
        let placement = Placement { nodes, ranks: vec![Location::on(1), Location::on(0), Location::on(1)] };
        let text = placement.to_text(PlacementFormat::Text);
        assert_eq!(text, "1\n0\n1\n");
        let read = Placement::parse(&text, PlacementFormat::Text, "p.txt").unwrap();
        assert_eq!(read.nodes_of_ranks(), [1, 0, 1]);
    }

    /// A placement written as a rankfile is one that Open MPI reads, and reads back to the same nodes.
    #[test]
    fn rankfiles_read_back() {
        let placement = Placement::round_robin(5, 2).unwrap();
        let text = placement.to_text(PlacementFormat::Rankfile);
        assert_eq!(
            text,
            "rank 0=node0 slot=0\nrank 1=node1 slot=0\nrank 2=node0 slot=1\nrank 3=node1 slot=1\nrank 4=node0 slot=2\n"
        );
        let read = Placement::parse(&text, PlacementFormat::Rankfile, "r").unwrap();
        assert_eq!((read.nodes_of_ranks(), read.nodes), (placement.nodes_of_ranks(), placement.nodes));
        let gap = Placement::parse("rank 0=a slot=0\nrank 2=a slot=1\n", PlacementFormat::Rankfile, "r");
        assert_eq!(gap.unwrap_err().to_string(), "r:2: rank 1 is missing");
    }

    #[test]
    fn text_of_numbers_and_of_names() {
        let numbers = Placement::parse("# two a node\n3\n3\n\n0\n", PlacementFormat::Text, "p").unwrap();
        assert_eq!(numbers.nodes_of_ranks(), [3, 3, 0]);
        assert_eq!(numbers.nodes.len(), 4);
        let names = Placement::parse("b\na # comment\nb", PlacementFormat::Text, "p").unwrap();
        assert_eq!(names.nodes_of_ranks(), [0, 1, 0]);
        assert_eq!(names.hosts_of_ranks().nth(1), Some("a"));
    }

    #[test]
    fn nodes_without_names_have_any_number() {
        let file = |text: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
            Placement::read_nodes(file.path()).map_err(|error| error.to_string())
        };
        assert_eq!(file("4294967294\n3\n").unwrap(), [u32::MAX - 1, 3]);
        assert!(
            file("4294967295\n").unwrap_err().ends_with(":1: node number 4294967295 is above 4294967294")
        );
        assert_eq!(file("b\na\nb\n").unwrap(), [0, 1, 0]);
        let endless = Placement::read_nodes(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(endless.contains("longer than"), "{endless}");
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |text, format| Placement::parse(text, format, "p").unwrap_err().to_string();
        assert_eq!(
            error("a b\n", PlacementFormat::Text),
            "p:1: expected one node number or name, found \"a b\""
        );
        assert_eq!(
            error("0\n99999999999\n", PlacementFormat::Text),
            "p:2: node number 99999999999 is above 262143"
        );
        assert_eq!(
            error("0\n1\n0.1\n2\n", PlacementFormat::Text),
            "p:3: \"0.1\" is no number, but the nodes of other lines are numbers"
        );
        assert_eq!(
            error("a\nb\n7\n", PlacementFormat::Text),
            "p:3: \"7\" is a number, but the nodes of other lines are names"
        );
        assert_eq!(error("", PlacementFormat::Text), "p:1: a placement needs at least one rank");
        let beyond = error("nodes = [\"a\"]\n\nranks = [0, 1]", PlacementFormat::Toml);
        assert_eq!(beyond, "p:3: rank 1 is on node 1, but the number of nodes is 1");
        assert!(error("nodes = [\"a\"]\nranks = [0, \"x\"]", PlacementFormat::Toml).starts_with("p:2: "));
        assert!(error("{\n \"nodes\": [", PlacementFormat::Json).starts_with("p:2: "));
        assert!(error("nodes = [\"a\", \"a\"]\nranks = [0]", PlacementFormat::Toml).contains("same name"));
    }

    mod properties {
        use super::*;
        use proptest::prelude::*;

        fn placements() -> impl Strategy<Value = Placement> {
            let number = || proptest::option::of(0u32..9);
            let node = (number(), number(), number());
            (1usize..6, proptest::collection::vec(node, 6)).prop_flat_map(move |(count, extra)| {
                let nodes: Vec<Node> = extra[..count]
                    .iter()
                    .enumerate()
                    .map(|(n, &(slots, max_slots, cores))| Node {
                        name: format!("n-{n}.x"),
                        slots,
                        max_slots,
                        cores,
                    })
                    .collect();
                let location = (0..count as u32, number(), number(), any::<bool>()).prop_map(
                    |(node, slot, core, oversubscribed)| Location { node, slot, core, oversubscribed },
                );
                proptest::collection::vec(location, 1..20)
                    .prop_map(move |ranks| Placement { nodes: nodes.clone(), ranks })
            })
        }

        proptest! {
            #[test]
            fn what_is_written_is_read(placement in placements()) {
                for format in [PlacementFormat::Toml, PlacementFormat::Json] {
                    let text = placement.to_text(format);
                    prop_assert_eq!(&Placement::parse(&text, format, "p").unwrap(), &placement);
                }
                let text = placement.to_text(PlacementFormat::Text);
                let hosts: Vec<_> = placement.hosts_of_ranks().collect();
                let again = Placement::parse(&text, PlacementFormat::Text, "p").unwrap();
                let again: Vec<_> = again.hosts_of_ranks().collect();
                prop_assert_eq!(again, hosts);
            }

            #[test]
            fn garbage_never_panics(text in "\\PC{0,80}") {
                for format in [PlacementFormat::Toml, PlacementFormat::Json, PlacementFormat::Text] {
                    let _ = Placement::parse(&text, format, "p");
                }
            }
        }
    }
}
