//! A graph becomes the file of a trace.

use super::matching::{self, Pairs};
use super::model::{Act, Graph, NONE};
use super::records::{Ordered, Sink};
use super::{streams, yardstick};
use crate::error::{ImportError, Problem, Result};
use crate::findings::EXAMPLES;
use crate::options::Options;
use crate::summary::Summary;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use vef_format::container::{self, About, Note, Settings};
use vef_format::error::Located;
use vef_format::format::named_container;
use vef_format::ids::{CommId, Rank};
use vef_format::new_file::NewFile;
use vef_format::record::{Header, LocalCollective, Message, WriteError};
use vef_format::text;
use vef_format::units::Picos;

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
    let mut pairs = matching::pair(&graph, &order);
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
    let mut order = yardstick::order(&graph, &mut pairs, tasks, options.partial).map_err(invalid)?;
    drop_wildcards(&graph, &pairs, &mut order, options, summary).map_err(invalid)?;
    if order.overlapping > 0 {
        let streams = if options.streams.is_none() { "; --streams makes a task of each stream" } else { "" };
        summary.remarks.push(format!(
            "{} operations start while their task computes: in the trace they follow{streams}",
            order.overlapping
        ));
    }
    let mut dropped = vec![false; graph.nodes.len()];
    for &node in pairs.sends.iter().chain(&pairs.receives).chain(&order.left_out) {
        dropped[node as usize] = pairs.partner[node as usize] == NONE;
    }
    let ordered = Ordered::new(&graph, &order.nodes, &pairs.partner, &dropped);
    let written = write(&ordered, tasks, ranks.as_deref(), to);
    written.map_err(|error| ImportError::from(Located::file(to, error)))
}

fn count(graph: &Graph, summary: &mut Summary) {
    summary.ranks = graph.ranks;
    // Formats with other names have counted their operations.
    let unnamed = summary.calls.is_empty();
    for node in &graph.nodes {
        let name = match node.act {
            Act::Send { bytes, .. } => {
                summary.messages += 1;
                summary.bytes += bytes;
                "send"
            }
            Act::Receive { .. } => "recv",
            Act::Compute { .. } => "calc",
            Act::Collective { operation, .. } => operation.name(),
        };
        if unnamed {
            summary.call(name, 1);
        }
    }
    for (name, edges) in [("requires", &graph.requires), ("irequires", &graph.starts)] {
        if unnamed && !edges.is_empty() {
            summary.call(name, edges.len() as u64);
        }
    }
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
            "{} messages are larger than the room of their receives: {} to {}",
            pairs.too_large.len(),
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
            "{} receives from any source or with any tag: each takes the first message left on a network of 1us and 10Gbit/s",
            pairs.wildcards
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
        summary.bytes -= matching::bytes(graph, send);
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
        "{} sends and {} receives have no partner (--partial leaves them out): {}",
        sends.len(),
        receives.len(),
        first.join("; ")
    ))
}

/// Reports the messages that no wildcard has taken.
fn drop_wildcards(
    graph: &Graph,
    pairs: &Pairs,
    order: &mut yardstick::Order,
    options: &Options,
    summary: &mut Summary,
) -> std::result::Result<(), String> {
    let wild = std::mem::take(&mut order.left_out);
    let named: HashSet<u32> = pairs.receives.iter().copied().collect();
    let receives: Vec<u32> = wild.iter().copied().filter(|node| !named.contains(node)).collect();
    order.left_out = wild;
    if pairs.wildcards == 0 {
        return Ok(());
    }
    let left = |&&send: &&u32| pairs.partner[send as usize] == NONE;
    let sends: Vec<u32> = pairs.sends.iter().filter(left).copied().collect();
    unmatched(graph, &sends, &receives, options, summary)?;
    order.left_out.extend(sends);
    Ok(())
}

/// Counts records.
#[derive(Default)]
struct Counter {
    messages: u64,
    parts: u64,
}

impl Sink for Counter {
    fn message(&mut self, _: &Message, _: Option<u32>) -> std::result::Result<(), WriteError> {
        self.messages += 1;
        Ok(())
    }

    fn collective(&mut self, _: &LocalCollective) -> std::result::Result<(), WriteError> {
        self.parts += 1;
        Ok(())
    }
}

fn write(
    ordered: &Ordered<'_>,
    tasks: u32,
    ranks: Option<&[u32]>,
    to: &Path,
) -> std::result::Result<(), WriteError> {
    let about = About::default();
    let codes = &about.op_codes;
    let mut counter = Counter::default();
    ordered.emit(tasks, codes, &mut counter)?;
    let header = Header {
        tasks,
        messages: counter.messages,
        communicators: ordered.graph.groups.len() as u64,
        collectives: ordered.collectives().iter().sum(),
        local_collectives: counter.parts,
        clock: CLOCK,
        ..Header::default()
    };
    let new = NewFile::create(to)?;
    let out = BufWriter::with_capacity(1 << 20, new.file());
    if named_container(to) {
        let writer = container::Writer::new(out, &header, &about, Settings::default())?;
        let mut sink =
            IntoContainer { writer, records: vec![0; tasks as usize], tags: vec![0; tasks as usize] };
        for (number, group) in ordered.graph.groups.iter().enumerate() {
            sink.writer.communicator(CommId(number as u32), &members(group))?;
        }
        // Tasks of one rank are on one node.
        for (task, rank) in ranks.into_iter().flatten().enumerate() {
            sink.writer.note(None, task as u64, &Note::Host(&format!("rank{rank}")))?;
        }
        ordered.emit(tasks, codes, &mut sink)?;
        sink.writer.finish()?.flush()?;
    } else {
        let mut sink = IntoText(text::Writer::new(out, &header)?);
        for (number, group) in ordered.graph.groups.iter().enumerate() {
            sink.0.communicator(CommId(number as u32), &members(group))?;
        }
        ordered.emit(tasks, codes, &mut sink)?;
        sink.0.finish()?.flush()?;
    }
    Ok(new.finish()?)
}

fn members(group: &super::Group) -> Vec<Rank> {
    group.members.iter().map(|&rank| Rank(rank)).collect()
}

type Out<'f> = BufWriter<&'f File>;

struct IntoText<'f>(text::Writer<Out<'f>>);

impl Sink for IntoText<'_> {
    fn message(&mut self, message: &Message, _: Option<u32>) -> std::result::Result<(), WriteError> {
        self.0.message(message)
    }

    fn collective(&mut self, part: &LocalCollective) -> std::result::Result<(), WriteError> {
        self.0.collective(part)
    }
}

struct IntoContainer<'f> {
    writer: container::Writer<Out<'f>>,
    /// Number of records, by task.
    records: Vec<u64>,
    /// Tag of the last message, by task.
    tags: Vec<u32>,
}

impl Sink for IntoContainer<'_> {
    fn message(&mut self, message: &Message, tag: Option<u32>) -> std::result::Result<(), WriteError> {
        let task = message.src.index();
        if let Some(tag) = tag.filter(|&tag| tag != self.tags[task]) {
            self.tags[task] = tag;
            let note = Note::Tag(tag.cast_signed());
            self.writer.note(Some(message.src), self.records[task], &note)?;
        }
        self.records[task] += 1;
        self.writer.message(message)
    }

    fn collective(&mut self, part: &LocalCollective) -> std::result::Result<(), WriteError> {
        self.records[part.task.index()] += 1;
        self.writer.collective(part)
    }
}
