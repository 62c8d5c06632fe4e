//! Two independent counts of one run: what the trace says, and what the counter in C saw.
//!
//! The trace is read here with a few lines of our own, not with the reader under test.

use crate::Traffic;
use std::collections::BTreeMap;
use std::path::Path;

/// What a run moved.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Point-to-point messages and bytes by (source, destination).
    pub traffic: Traffic,
    /// Calls of each collective operation by all ranks together.
    pub collectives: BTreeMap<String, u64>,
}

/// The names of the operation codes a trace holds, as `docs/formats.md` lists them.
const OPERATIONS: [&str; 17] = [
    "Bcast",
    "Reduce",
    "Allreduce",
    "Gather",
    "Scatter",
    "Allgather",
    "Barrier",
    "Alltoall",
    "Gatherv",
    "Scatterv",
    "Allgatherv",
    "Alltoallv",
    "Alltoallw",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Exscan",
];

/// Counts what a trace holds.
pub fn of_trace(path: &Path) -> Counts {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut counts = Counts::default();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields[index].parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        match line.as_bytes().first() {
            Some(b'C') | None => {}
            Some(b'G') => {
                *counts.collectives.entry(OPERATIONS[number(2) as usize].into()).or_default() += 1;
            }
            Some(_) => {
                let (source, destination, bytes, dep) = (number(1), number(2), number(3), number(4));
                let mark = source == destination && bytes == 0 && dep < 4;
                if !mark {
                    let pair = counts.traffic.entry((source as u32, destination as u32)).or_default();
                    pair.0 += 1;
                    pair.1 += bytes;
                }
            }
        }
    }
    counts
}

/// Sums what the counter (`tests/c/counter.c`) wrote for each of `ranks` ranks.
pub fn of_counter(directory: &Path, ranks: u32) -> Counts {
    let mut counts = Counts::default();
    for rank in 0..ranks {
        let path = directory.join(format!("{rank}.txt"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in text.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            match fields[..] {
                ["p2p", destination, messages, bytes] => {
                    let pair = (rank, destination.parse().expect("a rank"));
                    let amounts = (messages.parse().expect("a count"), bytes.parse().expect("bytes"));
                    counts.traffic.insert(pair, amounts);
                }
                ["coll", operation, calls] => {
                    *counts.collectives.entry(operation.into()).or_default() +=
                        calls.parse::<u64>().expect("calls");
                }
                _ => panic!("{}: {line}", path.display()),
            }
        }
    }
    counts
}
