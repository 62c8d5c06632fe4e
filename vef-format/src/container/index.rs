//! The two blocks that tell of the others: what the trace is, and where everything stands.
//!
//! The index of a long trace is long itself, so nobody holds it: a reader goes over it once, notes for each list of
//! blocks where it begins, and reads the places of single blocks when it needs them.

use super::About;
use super::block::{FRAME, START};
use super::code::{Garbled, Packed};
use super::input::{Input, Scan, Trouble};
use crate::capture::varint::{MAX_LEN, Source};
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

/// The places of blocks of one sort, as they will stand in the index.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    content: Packed,
    blocks: u64,
    end: u64,
}

impl Listing {
    pub(super) fn push(&mut self, spot: Spot) {
        self.content.put(&[spot.offset - self.end, spot.length, spot.items.into()]);
        self.end = spot.offset + spot.length;
        self.blocks += 1;
    }

    fn put(&self, out: &mut Packed) {
        out.put(&[self.blocks]);
        out.append(self.content.bytes());
    }
}

/// An index in the making: where all blocks stand, except the index itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Listings {
    pub(super) about: Listing,
    pub(super) communicators: Listing,
    pub(super) order: Listing,
    /// By name, then task (0: none; otherwise the rank plus one).
    pub(super) sections: BTreeMap<String, BTreeMap<u64, Listing>>,
    pub(super) tasks: BTreeMap<u32, Listing>,
}

impl Listings {
    pub(super) fn to_bytes(&self) -> Packed {
        let mut out = Packed::default();
        for listing in [&self.about, &self.communicators, &self.order] {
            listing.put(&mut out);
        }
        out.put(&[self.sections.len() as u64]);
        for (name, tasks) in &self.sections {
            out.text(name);
            put_tasks(&mut out, tasks.iter().map(|(&task, listing)| (task, listing)), tasks.len());
        }
        let tasks = self.tasks.iter().map(|(&task, listing)| (u64::from(task), listing));
        put_tasks(&mut out, tasks, self.tasks.len());
        out
    }
}

fn put_tasks<'a>(out: &mut Packed, tasks: impl Iterator<Item = (u64, &'a Listing)>, count: usize) {
    out.put(&[count as u64]);
    let mut before = 0;
    for (task, listing) in tasks {
        out.put(&[task - before]);
        before = task;
        listing.put(out);
    }
}

/// The index of a file: where the lists of blocks begin.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    pub(super) about: List,
    pub(super) communicators: List,
    pub(super) order: List,
    pub(super) sections: Vec<Section>,
    /// The tasks with records, in order.
    pub(super) tasks: Vec<TaskList>,
}

/// A list of blocks in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    /// Where in the file the place of the first block is told.
    at: u64,
    pub(super) blocks: u64,
    /// In all blocks.
    pub(super) items: u64,
}

/// A task's list of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskList {
    pub(super) task: u32,
    pub(super) list: List,
}

/// A section: the lists of its tasks stand one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    at: u64,
    tasks: u64,
}

impl Index {
    /// Goes over the index in `from`, of a file whose other blocks end before `end`.
    pub(super) fn read(from: &mut Scan<'_>, end: u64) -> Result<Self, Trouble> {
        let about = list(from, end)?;
        let communicators = list(from, end)?;
        let order = list(from, end)?;
        let mut sections: Vec<Section> = Vec::new();
        for _ in 0..from.get()? {
            let name = from.text()?;
            if sections.last().is_some_and(|before| before.name >= name) {
                return Err(Garbled::Value("a section").into());
            }
            let tasks = from.get()?;
            let at = from.position();
            each_task(from, tasks, end, |_, _| Ok(()))?;
            sections.push(Section { name, at, tasks });
        }
        let mut tasks = Vec::new();
        let count = from.get()?;
        each_task(from, count, end, |task, list| {
            let task = u32::try_from(task).map_err(|_| Garbled::Value("a task"))?;
            tasks.push(TaskList { task, list });
            Ok(())
        })?;
        match from.is_at_end() {
            true => Ok(Self { about, communicators, order, sections, tasks }),
            false => Err(Garbled::Length.into()),
        }
    }

    /// The place of a task in [`Index::tasks`].
    #[inline]
    pub(super) fn number_of(&self, task: u32) -> Option<usize> {
        // In most traces every task has records.
        if self.tasks.get(task as usize).is_some_and(|list| list.task == task) {
            return Some(task as usize);
        }
        self.tasks.binary_search_by_key(&task, |list| list.task).ok()
    }

    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }
}

impl Section {
    /// The section's lists: of which task (0: none; otherwise the rank plus one).
    pub(super) fn lists(&self, input: &Input, end: u64) -> Result<Vec<(u64, List)>, Trouble> {
        let mut lists = Vec::new();
        let mut from = Scan::new(input, self.at, end);
        each_task(&mut from, self.tasks, end, |task, list| {
            lists.push((task, list));
            Ok(())
        })?;
        Ok(lists)
    }
}

/// Reads lists of blocks, each with its task, whose differences are given; none comes twice.
fn each_task(
    from: &mut Scan<'_>,
    count: u64,
    end: u64,
    mut take: impl FnMut(u64, List) -> Result<(), Garbled>,
) -> Result<(), Trouble> {
    let mut task = 0u64;
    for number in 0..count {
        let step = from.get()?;
        task = task
            .checked_add(step)
            .filter(|&task| (step > 0 || number == 0) && task <= 1 << 32)
            .ok_or(Garbled::Value("a task"))?;
        let list = list(from, end)?;
        take(task, list)?;
    }
    Ok(())
}

/// Goes over the places of the blocks of one list.
fn list(from: &mut Scan<'_>, most: u64) -> Result<List, Trouble> {
    let blocks = from.get()?;
    let at = from.position();
    let (mut items, mut end) = (0u64, 0);
    for _ in 0..blocks {
        let spot = spot(end, most, || from.get())?;
        end = spot.offset + spot.length;
        // Blocks do not overlap, so the sum is of no more terms than the file has bytes.
        items = items.saturating_add(spot.items.into());
    }
    Ok(List { at, blocks, items })
}

/// A block behind `before` and in front of `most`.
fn spot<E: From<Garbled>>(
    before: u64,
    most: u64,
    mut get: impl FnMut() -> Result<u64, E>,
) -> Result<Spot, E> {
    let outside = || Garbled::Value("an offset");
    let offset = before.checked_add(get()?).ok_or_else(outside)?;
    let length = get()?;
    let end = offset.checked_add(length).filter(|&end| end <= most);
    if end.is_none() || offset < START as u64 || length < FRAME as u64 {
        return Err(outside().into());
    }
    let items = u32::try_from(get()?).map_err(|_| Garbled::Value("a number of items"))?;
    Ok(Spot { offset, length, items })
}

/// The places of a list's blocks, read from the file one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    at: u64,
    left: u64,
    end: u64,
}

impl Places {
    pub(super) fn new(list: List) -> Self {
        Self { at: list.at, left: list.blocks, end: 0 }
    }

    /// The place of the next block, which ends before `most`: the offset of the index in the file.
    pub(super) fn next(&mut self, input: &Input, most: u64) -> Result<Option<Spot>, Trouble> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 3 * MAX_LEN];
        let bytes = input.some_at(&mut bytes, self.at)?;
        let mut from = Source::new(bytes, 0);
        let spot = spot::<Garbled>(self.end, most, || Ok(from.get()?))?;
        self.left -= 1;
        self.at += from.position() as u64;
        self.end = spot.offset + spot.length;
        Ok(Some(spot))
    }
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
