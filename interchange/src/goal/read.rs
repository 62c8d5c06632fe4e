//! Converts a schedule to a trace.

use super::operation::What;
use super::schedule::Schedule;
use crate::error::{Problem, Result};
use crate::files::Files;
use crate::findings::{ENDS_EARLY, Finding, Findings};
use crate::graph::{self, Act, Graph, Node, convert};
use crate::options::{Options, Streams};
use crate::progress::Progress;
use crate::summary::Summary;
use std::path::Path;

const _: () = assert!(size_of::<Node>() == size_of::<super::Operation>());

/// Reads the one file of a schedule.
pub(super) fn read(files: &Files, to: &Path, options: &Options, progress: &dyn Progress) -> Result<Summary> {
    let [path] = &files.paths[..] else {
        let what = format!("a schedule is one file, not {}", files.paths.len());
        return Err(Problem::Invalid(what).of_file(files.first()));
    };
    let mut summary = Summary::default();
    let schedule = Schedule::read(path, options.partial, progress)?;
    summary.missing_ranks.clone_from(&schedule.missing);
    summary.remarks.extend(schedule.cut.clone());
    let graph = graph(schedule, options.streams);
    convert(graph, path, to, options, &mut summary)?;
    Ok(summary)
}

/// Finds what is wrong in a schedule.
pub(super) fn check(files: &Files, options: &Options, progress: &dyn Progress) -> Result<Vec<Finding>> {
    let mut findings = Findings::default();
    for path in &files.paths {
        let schedule = Schedule::read(path, options.partial, progress)?;
        if let Some(cut) = &schedule.cut {
            findings.warning(ENDS_EARLY, || cut.clone());
        }
        graph::check(graph(schedule, options.streams), options.partial, &mut findings);
    }
    Ok(findings.all)
}

fn graph(schedule: Schedule, streams: Option<Streams>) -> Graph {
    let node = |operation: super::Operation| {
        let act = match operation.what {
            What::Send { bytes, to, tag } => Act::Send { bytes: bytes.0, to, tag },
            What::Receive { bytes, from, tag } => Act::Receive { bytes: bytes.0, from, tag },
            What::Compute { time } => Act::Compute { time: time.0 / 1000 },
        };
        let stream = match streams {
            None | Some(Streams::Cpu) => operation.cpu,
            Some(Streams::Nic) => operation.nic,
        };
        Node { act, task: operation.rank, stream, place: operation.place.into() }
    };
    Graph {
        ranks: schedule.ranks,
        // Operations and nodes have one size, so this needs no further memory.
        nodes: schedule.operations.into_iter().map(node).collect(),
        ends: schedule.ends,
        requires: schedule.requires,
        starts: schedule.starts,
        calls: Vec::new(),
        groups: Vec::new(),
        place: if schedule.is_binary { "operation" } else { "line" },
    }
}
