//! The two blocks that tell of the others: what the trace is, and where everything stands.

use super::About;
use super::block::{FRAME, START};
use super::code::{Garbled, Packed};
use crate::capture::varint::Source;
use crate::operation::{OpCodes, Operation};
use crate::record::{Header, Version};
use crate::units::Picos;
use std::collections::BTreeMap;

/// Where a block stands, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) offset: u64,
    /// With its frame.
    pub(super) length: u64,
    pub(super) items: u32,
}

/// Where all blocks stand, except the index itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) about: Vec<Spot>,
    pub(super) communicators: Vec<Spot>,
    pub(super) order: Vec<Spot>,
    /// By name and task (0: none; otherwise the rank plus one).
    pub(super) sections: BTreeMap<(String, u64), Vec<Spot>>,
    pub(super) tasks: BTreeMap<u32, Vec<Spot>>,
}

impl Index {
    pub(super) fn to_bytes(&self) -> Packed {
        let mut out = Packed::default();
        for spots in [&self.about, &self.communicators, &self.order] {
            put_spots(&mut out, spots);
        }
        out.put(&[self.sections.len() as u64]);
        for ((name, task), spots) in &self.sections {
            out.text(name);
            out.put(&[*task]);
            put_spots(&mut out, spots);
        }
        out.put(&[self.tasks.len() as u64]);
        let mut before = 0;
        for (&task, spots) in &self.tasks {
            out.put(&[u64::from(task - before)]);
            before = task;
            put_spots(&mut out, spots);
        }
        out
    }

    /// Reads the index of a file whose other blocks end before `end`.
    pub(super) fn read(bytes: &[u8], end: u64) -> Result<Self, Garbled> {
        let mut from = Source::new(bytes, 0);
        let about = spots(&mut from, end)?;
        let communicators = spots(&mut from, end)?;
        let order = spots(&mut from, end)?;
        let mut sections = BTreeMap::new();
        for _ in 0..from.get()? {
            let name = text(&mut from)?;
            let task = from.get()?;
            if sections.insert((name, task), spots(&mut from, end)?).is_some() {
                return Err(Garbled::Value("a section"));
            }
        }
        let mut tasks = BTreeMap::new();
        let mut task = 0u32;
        for number in 0..from.get()? {
            let step = from.get()?;
            let next = u64::from(task) + step.min(u64::from(u32::MAX));
            task = u32::try_from(next)
                .ok()
                .filter(|_| step > 0 || number == 0)
                .ok_or(Garbled::Value("a task"))?;
            tasks.insert(task, spots(&mut from, end)?);
        }
        match from.remaining() {
            0 => Ok(Self { about, communicators, order, sections, tasks }),
            _ => Err(Garbled::Length),
        }
    }
}

fn put_spots(out: &mut Packed, spots: &[Spot]) {
    out.put(&[spots.len() as u64]);
    let mut end = 0;
    for spot in spots {
        out.put(&[spot.offset - end, spot.length, spot.items.into()]);
        end = spot.offset + spot.length;
    }
}

/// Blocks of one sort: within the file, one behind the other.
fn spots(from: &mut Source<'_>, most: u64) -> Result<Vec<Spot>, Garbled> {
    let mut spots = Vec::new();
    let mut end = 0u64;
    for _ in 0..from.get()? {
        let offset = end.checked_add(from.get()?).ok_or(Garbled::Value("an offset"))?;
        let length = from.get()?;
        end = offset.checked_add(length).filter(|&end| end <= most).ok_or(Garbled::Value("an offset"))?;
        if offset < START as u64 || length < FRAME as u64 {
            return Err(Garbled::Value("an offset"));
        }
        let items = u32::try_from(from.get()?).map_err(|_| Garbled::Value("a number of items"))?;
        spots.push(Spot { offset, length, items });
    }
    Ok(spots)
}

fn text(from: &mut Source<'_>) -> Result<String, Garbled> {
    let bytes = from.text()?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Garbled::Value("a text"))
}

/// The content of the block that says what the trace is.
pub(super) fn about_to_bytes(header: &Header, about: &About) -> Packed {
    let mut out = Packed::default();
    out.put(&[
        header.tasks.into(),
        header.messages,
        header.communicators,
        header.collectives,
        header.local_collectives,
        header.clock.0,
    ]);
    out.put(&[about.op_codes.rows().len() as u64]);
    for (code, operation) in about.op_codes.rows() {
        out.put(&[code.0.into()]);
        out.text(operation.name());
    }
    out.put(&[about.origin.len() as u64]);
    for (name, value) in &about.origin {
        out.text(name);
        out.text(value);
    }
    out
}

/// The way back from [`about_to_bytes`].
pub(super) fn read_about(bytes: &[u8]) -> Result<(Header, About), Garbled> {
    let mut from = Source::new(bytes, 0);
    let tasks = u32::try_from(from.get()?).ok().filter(|tasks| (1..=i32::MAX as u32).contains(tasks));
    let header = Header {
        version: Version::V3,
        tasks: tasks.ok_or(Garbled::Value("nTasks"))?,
        messages: from.get()?,
        communicators: from.get()?,
        collectives: from.get()?,
        local_collectives: from.get()?,
        received: 0,
        clock: Picos(from.get()?),
    };
    if header.clock == Picos::ZERO {
        return Err(Garbled::Value("clock"));
    }
    let mut rows = Vec::new();
    for _ in 0..from.get()? {
        let code = u16::try_from(from.get()?).map_err(|_| Garbled::Value("an operation code"))?;
        let name = text(&mut from)?;
        let operation = Operation::ALL.iter().find(|operation| operation.name() == name);
        rows.push((crate::operation::OpCode(code), *operation.ok_or(Garbled::Value("an operation"))?));
    }
    let mut origin = Vec::new();
    for _ in 0..from.get()? {
        origin.push((text(&mut from)?, text(&mut from)?));
    }
    match from.remaining() {
        0 => Ok((header, About { op_codes: OpCodes::from_rows(rows), origin })),
        _ => Err(Garbled::Length),
    }
}
