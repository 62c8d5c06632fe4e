//! Placement files: TOML, JSON, or text with one node per line; see `docs/placement.md`.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Problem};
use crate::place::{Node, Place, Placement};

/// The format of a placement file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `*.toml`.
    Toml,
    /// `*.json`.
    Json,
    /// Any other name: line `r` names the node of rank `r`.
    Text,
}

impl Format {
    /// The format for the name of a file.
    pub fn of_path(path: &Path) -> Self {
        match path.extension().and_then(|e| e.to_str()) {
            Some("toml") => Format::Toml,
            Some("json") => Format::Json,
            _ => Format::Text,
        }
    }
}

impl Placement {
    /// Reads a placement file in the format of its name ([`Format::of_path`]).
    ///
    /// # Errors
    /// The file cannot be read, or a line is invalid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&read_text(path)?, Format::of_path(path), &path.display().to_string())
    }

    /// Parses a placement; `name` is the file in errors.
    ///
    /// # Errors
    /// The text is malformed, lists a node twice, or uses a node that it does not list; with the line.
    pub fn parse(text: &str, format: Format, name: &str) -> Result<Self, Error> {
        match format {
            Format::Toml => {
                let file: Structured = toml::from_str(text).map_err(|e| {
                    let line = e.span().map_or(1, |span| line_of(text, span.start));
                    Problem::Syntax(e.message().to_owned()).at(name, line)
                })?;
                file.resolve(text, name)
            }
            Format::Json => {
                let file: Structured = serde_json::from_str(text)
                    .map_err(|e| Problem::Syntax(without_position(&e)).at(name, e.line().max(1)))?;
                file.resolve(text, name)
            }
            Format::Text => parse_text(text, name),
        }
    }

    /// Formats the placement as a file.
    pub fn to_text(&self, format: Format) -> String {
        match format {
            Format::Toml => self.to_toml(),
            Format::Json => {
                let mut text = serde_json::to_string_pretty(&self.structured()).unwrap_or_default();
                text.push('\n');
                text
            }
            Format::Text => self
                .ranks
                .iter()
                .filter_map(|place| self.nodes.get(place.node as usize))
                .map(|node| format!("{}\n", node.name))
                .collect(),
        }
    }

    fn structured(&self) -> Structured {
        let ranks = self.ranks.iter().map(|place| Entry::Place {
            node: place.node.into(),
            slot: place.slot,
            core: place.core,
            oversubscribed: place.oversubscribed,
        });
        Structured {
            nodes: self.nodes.iter().cloned().map(NodeEntry::Full).collect(),
            ranks: ranks.collect(),
        }
    }

    /// One line per node and rank, where a serialiser would write a paragraph for each.
    fn to_toml(&self) -> String {
        let mut text = String::from("nodes = [\n");
        for node in &self.nodes {
            text += &format!("  {{ name = {}", toml::Value::String(node.name.clone()));
            for (key, value) in [("slots", node.slots), ("max_slots", node.max_slots), ("cores", node.cores)]
            {
                if let Some(value) = value {
                    text += &format!(", {key} = {value}");
                }
            }
            text += " },\n";
        }
        text += "]\nranks = [\n";
        for place in &self.ranks {
            text += &format!("  {{ node = {}", place.node);
            for (key, value) in [("slot", place.slot), ("core", place.core)] {
                if let Some(value) = value {
                    text += &format!(", {key} = {value}");
                }
            }
            if place.oversubscribed {
                text += ", oversubscribed = true";
            }
            text += " },\n";
        }
        text + "]\n"
    }
}

/// The structure of TOML and JSON files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Structured {
    nodes: Vec<NodeEntry>,
    ranks: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a node is a name or { name, slots, max_slots, cores }")]
enum NodeEntry {
    Name(String),
    Full(Node),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a rank is a node's index or { node, slot, core, oversubscribed }")]
enum Entry {
    Node(u64),
    Place {
        node: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        slot: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        core: Option<u32>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        oversubscribed: bool,
    },
}

impl Structured {
    fn resolve(self, text: &str, name: &str) -> Result<Placement, Error> {
        // Elements have no positions in the source; report that of the enclosing key.
        let under = |key: &str| text.lines().position(|line| line.contains(key)).map_or(1, |at| at + 1);
        let nodes: Vec<Node> = self
            .nodes
            .into_iter()
            .map(|entry| match entry {
                NodeEntry::Name(name) => Node::named(name),
                NodeEntry::Full(node) => node,
            })
            .collect();
        let mut seen = HashMap::new();
        for (at, node) in nodes.iter().enumerate() {
            if let Some(first) = seen.insert(node.name.as_str(), at) {
                let problem = format!("nodes {first} and {at} have the same name {:?}", node.name);
                return Err(Problem::Syntax(problem).at(name, under("nodes")));
            }
        }
        if self.ranks.is_empty() {
            return Err(Problem::NoRanks.at(name, under("ranks")));
        }
        let mut ranks = Vec::with_capacity(self.ranks.len());
        for (rank, entry) in self.ranks.into_iter().enumerate() {
            let (node, slot, core, oversubscribed) = match entry {
                Entry::Node(node) => (node, None, None, false),
                Entry::Place { node, slot, core, oversubscribed } => (node, slot, core, oversubscribed),
            };
            if node >= nodes.len() as u64 {
                return Err(
                    Problem::NodeOutOfRange { rank, node, nodes: nodes.len() }.at(name, under("ranks"))
                );
            }
            ranks.push(Place { node: node as u32, slot, core, oversubscribed });
        }
        Ok(Placement { nodes, ranks })
    }
}

/// Text with one node per line. If all lines are numbers, they are node numbers, and the highest gives the
/// number of nodes; else they are names, and nodes are in the order of their first rank.
fn parse_text(text: &str, name: &str) -> Result<Placement, Error> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if line.split_whitespace().count() > 1 {
            let problem = format!("expected one node number or name, found {line:?}");
            return Err(Problem::Syntax(problem).at(name, at + 1));
        }
        lines.push((at + 1, line));
    }
    if lines.is_empty() {
        return Err(Problem::NoRanks.at(name, 1));
    }
    if lines.iter().all(|(_, line)| line.bytes().all(|b| b.is_ascii_digit())) {
        return parse_numbers(&lines, name);
    }
    let mut index = HashMap::new();
    let mut nodes = Vec::new();
    let ranks = lines.iter().map(|&(_, host)| {
        let node = *index.entry(host).or_insert_with(|| {
            nodes.push(Node::named(host));
            (nodes.len() - 1) as u32
        });
        Place::on(node)
    });
    let ranks = ranks.collect();
    Ok(Placement { nodes, ranks })
}

/// Highest node number in a text file. All nodes up to it are named, so do not allocate memory on a mistyped
/// number's word.
const HIGHEST_NODE: u32 = (1 << 18) - 1;

fn parse_numbers(lines: &[(usize, &str)], name: &str) -> Result<Placement, Error> {
    let mut ranks = Vec::with_capacity(lines.len());
    let mut highest = 0;
    for &(line, number) in lines {
        let node = number.parse::<u32>().ok().filter(|&node| node <= HIGHEST_NODE).ok_or_else(|| {
            Problem::Syntax(format!("node number {number} is above {HIGHEST_NODE}")).at(name, line)
        })?;
        highest = highest.max(node);
        ranks.push(Place::on(node));
    }
    Ok(Placement { nodes: (0..=highest).map(|n| Node::named(format!("node{n}"))).collect(), ranks })
}

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|e| Error::Io { path: path.to_owned(), reason: e.to_string() })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&b| b == b'\n').count() + 1
}

/// Removes "at line L column C" from an error of serde_json; the error already has its position.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_and_full_forms() {
        let text = "nodes = [\"a\", { name = \"b\", slots = 2 }]\nranks = [0, 1, { node = 1, slot = 1 }]\n";
        let placement = Placement::parse(text, Format::Toml, "p.toml").unwrap();
        assert_eq!(placement.nodes_of_ranks(), [0, 1, 1]);
        assert_eq!(placement.nodes[1].slots, Some(2));
        let json = r#"{ "nodes": ["a"], "ranks": [0, {"node": 0, "oversubscribed": true}] }"#;
        assert!(Placement::parse(json, Format::Json, "p.json").unwrap().ranks[1].oversubscribed);
    }

    #[test]
    fn text_of_numbers_and_of_names() {
        let numbers = Placement::parse("# two a node\n3\n3\n\n0\n", Format::Text, "p").unwrap();
        assert_eq!(numbers.nodes_of_ranks(), [3, 3, 0]);
        assert_eq!(numbers.nodes.len(), 4);
        let names = Placement::parse("b\na # comment\nb", Format::Text, "p").unwrap();
        assert_eq!(names.nodes_of_ranks(), [0, 1, 0]);
        assert_eq!(names.host_of(1), Some("a"));
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = |text, format| Placement::parse(text, format, "p").unwrap_err().to_string();
        assert_eq!(error("a b\n", Format::Text), "p:1: expected one node number or name, found \"a b\"");
        assert_eq!(error("0\n99999999999\n", Format::Text), "p:2: node number 99999999999 is above 262143");
        assert_eq!(error("", Format::Text), "p:1: a placement needs at least one rank");
        let beyond = error("nodes = [\"a\"]\n\nranks = [0, 1]", Format::Toml);
        assert_eq!(beyond, "p:3: rank 1 is on node 1, but there are only 1 nodes");
        assert!(error("nodes = [\"a\"]\nranks = [0, \"x\"]", Format::Toml).starts_with("p:2: "));
        assert!(error("{\n \"nodes\": [", Format::Json).starts_with("p:2: "));
        assert!(error("nodes = [\"a\", \"a\"]\nranks = [0]", Format::Toml).contains("same name"));
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
                let place = (0..count as u32, number(), number(), any::<bool>()).prop_map(
                    |(node, slot, core, oversubscribed)| Place { node, slot, core, oversubscribed },
                );
                proptest::collection::vec(place, 1..20)
                    .prop_map(move |ranks| Placement { nodes: nodes.clone(), ranks })
            })
        }

        proptest! {
            #[test]
            fn what_is_written_is_read(placement in placements()) {
                for format in [Format::Toml, Format::Json] {
                    let text = placement.to_text(format);
                    prop_assert_eq!(&Placement::parse(&text, format, "p").unwrap(), &placement);
                }
                let text = placement.to_text(Format::Text);
                let hosts: Vec<_> = placement.ranks.iter().map(|p| placement.nodes[p.node as usize].name.as_str()).collect();
                let again = Placement::parse(&text, Format::Text, "p").unwrap();
                let again: Vec<_> = (0..again.ranks.len() as u32).map(|r| again.host_of(r).unwrap().to_owned()).collect();
                prop_assert_eq!(again, hosts);
            }

            #[test]
            fn garbage_never_panics(text in "\\PC{0,80}") {
                for format in [Format::Toml, Format::Json, Format::Text] {
                    let _ = Placement::parse(&text, format, "p");
                }
            }
        }
    }
}
