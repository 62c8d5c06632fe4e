//! What `ibnetdiscover` prints of an InfiniBand fabric:
//!
//! ```text
//! Switch  36 "S-0002c902004048b8"        # "leaf0" enhanced port 0 lid 1 lmc 0
//! [1]     "H-0002c90300a0b2b4"[1](2c90300a0b2b5)         # "node01 HCA-1" lid 5 4xEDR
//! [19]    "S-0002c902004048c0"[1]         # "spine0" lid 2 4xHDR
//!
//! Ca      1 "H-0002c90300a0b2b4"          # "node01 HCA-1"
//! [1](2c90300a0b2b5)      "S-0002c902004048b8"[1]         # lid 5 lmc 0 "leaf0" lid 1 4xEDR
//! ```
//!
//! Each cable is in the blocks of both ends, and is taken where the first of them has it. A vertex is called by the first word of its description, or by its
//! identifier if another has that name. `4xEDR` is four lanes of 25 Gbit/s of data.

use std::collections::HashSet;

use super::description::{Description, Edge, Kind, Names, Speed};
use super::error::{FileError, FileProblem};
use crate::quantity::Bandwidth;

/// Data rates of a lane, in megabits per second, behind the coding of the line.
const LANES: [(&str, u64); 9] = [
    ("SDR", 2_000),
    ("DDR", 4_000),
    ("QDR", 8_000),
    ("FDR10", 10_000),
    ("FDR", 13_636),
    ("EDR", 25_000),
    ("HDR", 50_000),
    ("NDR", 100_000),
    ("XDR", 200_000),
];

/// The quoted parts of a line.
fn quoted(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

/// The bandwidth of `4xEDR`, the last word of a line.
fn bandwidth(line: &str) -> Option<Bandwidth> {
    let (lanes, rate) = line.split_whitespace().last()?.split_once('x')?;
    let (_, megabits) = LANES.iter().find(|(name, _)| *name == rate)?;
    Bandwidth::from_bits_per_second(lanes.parse::<u64>().ok()?.checked_mul(megabits * 1_000_000)?)
}

/// The port of `[19]…` at the beginning of a text.
fn port(text: &str) -> Option<u32> {
    text.trim_start().strip_prefix('[')?.split(']').next()?.parse().ok()
}

pub(super) fn parse(text: &str) -> Result<Description, FileError> {
    let mut names = Names::default();
    let mut identifiers = std::collections::HashMap::new();
    let blocks = || (1..).zip(text.lines()).filter(|(_, line)| line.contains('"'));
    let kind = |line: &str| match line.split_whitespace().next() {
        Some("Switch") => Some(Kind::Switch),
        Some("Ca" | "Rt") => Some(Kind::Node),
        _ => None,
    };
    for (number, line) in blocks() {
        let Some(kind) = kind(line) else { continue };
        let quoted = quoted(line);
        let identifier = *quoted.first().ok_or_else(|| syntax("a block without an identifier").at(number))?;
        let name = quoted.get(1).and_then(|description| description.split_whitespace().next());
        let name = name.filter(|name| names.find(name).is_err()).unwrap_or(identifier);
        let place = names.declare(name, Some(kind)).map_err(|problem| problem.at(number))?;
        if identifiers.insert(identifier, place).is_some() {
            return Err(FileProblem::Twice(identifier.to_owned()).at(number));
        }
    }
    let (mut block, mut seen) = (None, HashSet::new());
    for (number, line) in blocks() {
        let quoted = quoted(line);
        let find = |identifier: &str| {
            let found = identifiers.get(identifier).copied();
            found.ok_or_else(|| FileProblem::Unknown(identifier.to_owned()).at(number))
        };
        if kind(line).is_some() {
            block = Some(find(quoted[0])?);
            continue;
        }
        let Some(from_port) = port(line) else { continue };
        let from = block.ok_or_else(|| syntax("a port before the first block").at(number))?;
        let to = find(quoted[0])?;
        let behind = line.split('"').nth(2).unwrap_or_default();
        let to_port =
            port(behind).ok_or_else(|| syntax("a port leads to \"IDENTIFIER\"[PORT]").at(number))?;
        if seen.contains(&((to, to_port), (from, from_port))) {
            continue;
        }
        seen.insert(((from, from_port), (to, to_port)));
        let speed = Speed { bandwidth: bandwidth(line), latency: None };
        let edge = Edge { ends: (from, to), speed, cables: 1, one_way: false, line: number };
        names.description.edges.push(edge);
    }
    Ok(names.description)
}

fn syntax(problem: &str) -> FileProblem {
    FileProblem::Syntax(format!("not of ibnetdiscover: {problem}"))
}
