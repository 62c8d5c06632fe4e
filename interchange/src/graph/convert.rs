//! A graph becomes the file of a trace.

use super::matching::{self, Pairs};
use super::model::{Act, Graph, NONE};
use super::records::{Ordered, Records, collectives};
use super::streams;
use super::yardstick::{self, Order};
use crate::error::{ImportError, Problem, Result};
use crate::findings::EXAMPLES;
use crate::options::Options;
use crate::summary::Summary;
use std::path::Path;
use vef_format::container::{self, About, Note, Settings};
use vef_format::error::Located;
use vef_format::format::named_container;
use vef_format::ids::{CommId, Rank};
use vef_format::new_file::NewFile;
use vef_format::record::{Header, WriteError};
use vef_format::text;
use vef_format::units::{Count, Picos};

/// One unit of time of the trace: a nanosecond.
const CLOCK: Picos = Picos(1000);

/// Converts a graph, read from `from`, to the trace `to`.
pub(crate) fn convert(
    mut graph: Graph,
    from: &Path,
    to: &Path,
    options: &Options,
    summary: &mut Summary,
) -> Result<()> {
    let invalid = |text: String| Problem::Invalid(text).of_file(from);
    count(&graph, summary);
    let order = matching::topological(&graph).map_err(|circle| {
        let shown: Vec<String> = circle.iter().take(5).map(|&node| graph.shown(node)).collect();
        let more = if circle.len() > 5 { ", …" } else { "" };
        invalid(format!(
            "operations depend on each other in a circle ({}): {}{more}",
            circle.len(),
            shown.join("; ")
        ))
    })?;
    let mut pairs = matching::pair(&graph, order.as_deref());
    drop(order);
    report(&graph, &pairs, options, summary).map_err(invalid)?;
    let ranks = match options.streams {
        Some(_) if pairs.wildcards > 0 => {
            return Err(invalid("--streams: receives from any source are of no stream".to_owned()));
        }
        Some(_) => Some(streams::divide(&mut graph, &mut pairs)),
        None => None,
    };
    let tasks = ranks.as_ref().map_or(graph.ranks, |ranks| ranks.len() as u32);
    check_times(&graph, tasks, ranks.as_deref()).map_err(|problem| problem.of_file(from))?;
    let dependencies = graph.take_dependencies();
    let mut order =
        yardstick::order(&graph, &dependencies, &mut pairs, tasks, options.partial).map_err(invalid)?;
    drop_wildcards(&graph, &pairs, &mut order, options, summary).map_err(invalid)?;
    if order.overlapping > 0 {
        let overlapping = Count(order.overlapping, "operation");
        let streams =
            if options.streams.is_none() { "; vef import --streams makes a task of each stream" } else { "" };
        summary.remarks.push(format!(
            "started while the task computes: {}, which {} in the trace{streams}",
            overlapping,
            overlapping.agree("follows", "follow")
        ));
    }
    let mut dropped = vec![false; graph.nodes.len()];
    for &node in pairs.sends.iter().chain(&pairs.receives).chain(&order.left_out) {
        dropped[node as usize] = pairs.partner[node as usize] == NONE;
    }
    let ordered = Ordered {
        graph: &graph,
        order: &order.nodes,
        partner: &pairs.partner,
        dropped: &dropped,
        before: &dependencies.before,
        after: &dependencies.after_end,
    };
    let records = ordered.records(tasks);
    let written = write(&graph, &records, tasks, ranks.as_deref(), to);
    written.map_err(|error| ImportError::from(Located::file(to, error)))
}

fn count(graph: &Graph, summary: &mut Summary) {
    summary.ranks = graph.ranks;
    let (mut sends, mut receives, mut computing) = (0, 0, 0);
    for node in &graph.nodes {
        match node.act {
            Act::Send { bytes, .. } => {
                sends += 1;
                summary.bytes = summary.bytes.saturating_add(bytes);
            }
            Act::Receive { .. } => receives += 1,
            Act::Compute { .. } => computing += 1,
            Act::Collective { .. } => {}
        }
    }
    summary.messages += sends;
    // Formats with other names, and those with collectives, have counted their operations.
    if summary.calls.is_empty() {
        let edges = [("requires", graph.requires.len()), ("irequires", graph.starts.len())];
        let edges = edges.map(|(name, count)| (name, count as u64));
        for (name, count) in
            [("send", sends), ("recv", receives), ("calc", computing)].into_iter().chain(edges)
        {
            if count > 0 {
                summary.call(name, count);
            }
        }
    }
}

/// The computing time of each task fits into 64 bits of picoseconds, in which times are given; `ranks`: of each, if they are streams.
fn check_times(graph: &Graph, tasks: u32, ranks: Option<&[u32]>) -> std::result::Result<(), Problem> {
    let mut times = vec![0u64; tasks as usize];
    for node in &graph.nodes {
        if let Act::Compute { time } = node.act {
            let sum = &mut times[node.task as usize];
            *sum = sum.saturating_add(time);
        }
    }
    if let Some(task) = times.iter().position(|&time| time > u64::MAX / CLOCK.0) {
        let rank = ranks.map_or(task as u32, |ranks| ranks[task]);
        return Err(Problem::TooLarge(format!("the computing time of rank {rank}")));
    }
    Ok(())
}

/// Reports what does not match.
fn report(
    graph: &Graph,
    pairs: &Pairs,
    options: &Options,
    summary: &mut Summary,
) -> std::result::Result<(), String> {
    if let Some(&(send, receive)) = pairs.too_large.first() {
        let text = format!(
            "{} larger than the room of the receive: {} to {}",
            Count(pairs.too_large.len(), "message"),
            graph.shown(send),
            graph.shown(receive)
        );
        if options.strict {
            return Err(text);
        }
        summary.remarks.push(text);
    }
    if pairs.wildcards > 0 {
        summary.remarks.push(format!(
            "{} from any source or with any tag: each takes the first message left on a network of 1us and 10Gbit/s",
            Count(pairs.wildcards, "receive")
        ));
    }
    // Messages without a receive may be for wildcards.
    let sends = if pairs.wildcards > 0 { &[][..] } else { &pairs.sends };
    unmatched(graph, sends, &pairs.receives, options, summary)
}

fn unmatched(
    graph: &Graph,
    sends: &[u32],
    receives: &[u32],
    options: &Options,
    summary: &mut Summary,
) -> std::result::Result<(), String> {
    for &send in sends {
        summary.unmatched.send(|| graph.shown(send));
        summary.messages -= 1;
        summary.bytes = summary.bytes.saturating_sub(matching::bytes(graph, send));
    }
    for &receive in receives {
        summary.unmatched.receive(|| graph.shown(receive));
    }
    if options.partial || sends.is_empty() && receives.is_empty() {
        return Ok(());
    }
    let first: Vec<String> =
        sends.iter().chain(receives).take(EXAMPLES).map(|&node| graph.shown(node)).collect();
    Err(format!(
        "without a partner: {}, {} (vef import --partial leaves them out): {}",
        Count(sends.len(), "send"),
        Count(receives.len(), "receive"),
        first.join("; ")
    ))
}

/// Reports the messages that no wildcard has taken.
fn drop_wildcards(
    graph: &Graph,
    pairs: &Pairs,
    order: &mut Order,
    options: &Options,
    summary: &mut Summary,
) -> std::result::Result<(), String> {
    if pairs.wildcards == 0 {
        return Ok(());
    }
    let left = |&&send: &&u32| pairs.partner[send as usize] == NONE;
    let sends: Vec<u32> = pairs.sends.iter().filter(left).copied().collect();
    unmatched(graph, &sends, &order.left_out, options, summary)?;
    order.left_out.extend(sends);
    Ok(())
}

fn write(
    graph: &Graph,
    records: &Records<'_>,
    tasks: u32,
    ranks: Option<&[u32]>,
    to: &Path,
) -> std::result::Result<(), WriteError> {
    let about = About::default();
    let codes = &about.op_codes;
    let header = Header {
        tasks,
        messages: records.messages,
        communicators: graph.groups.len() as u64,
        collectives: collectives(graph).iter().sum(),
        local_collectives: records.parts,
        clock: CLOCK,
        ..Header::default()
    };
    let groups = || (0..).zip(&graph.groups).map(|(number, group)| (CommId(number), members(group)));
    let new = NewFile::create(to)?;
    if named_container(to) {
        let mut writer = container::Writer::new(new.file(), &header, &about, Settings::default())?;
        for (id, members) in groups() {
            writer.communicator(id, &members)?;
        }
        // Tasks of one rank are on one node.
        for (task, rank) in ranks.into_iter().flatten().enumerate() {
            writer.note(None, task as u64, &Note::Host(&format!("rank{rank}")))?;
        }
        // By task: the number of its records, and the tag of its last message.
        let mut written = vec![(0u64, 0u32); tasks as usize];
        records.each(codes, |line, tag| {
            let Some(task) = line.task() else { return Ok(()) };
            let (number, last) = &mut written[task.index()];
            if let Some(tag) = tag.filter(|tag| tag != last) {
                *last = tag;
                writer.note(Some(task), *number, &Note::Tag(tag.cast_signed()))?;
            }
            *number += 1;
            writer.line(line)
        })?;
        writer.finish()?;
    } else {
        let mut writer = text::Writer::new(new.file(), &header)?;
        for (id, members) in groups() {
            writer.communicator(id, &members)?;
        }
        records.each(codes, |line, _| writer.line(line))?;
        writer.finish()?;
    }
    Ok(new.finish()?)
}

fn members(group: &super::Group) -> Vec<Rank> {
    group.members.iter().map(|&rank| Rank(rank)).collect()
}
