//! The blocks *about* (what the trace is) and *index* (where the other blocks are).
//!
//! The index of a long trace is long, so it is not kept in memory: a reader scans it once, notes where the list of each
//! stream begins, and reads the places of single blocks when it needs them.

use super::Problem;
use super::block::{FRAME, START};
use super::code::{Garbled, Packed};
use super::input::{Input, Scan};
use crate::operation::{OpCode, OpCodes};
use crate::raw::Raw;
use crate::record::{Header, Version};
use crate::units::Picos;
use crate::varint::{MAX_LEN, Source};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

/// Facts on the trace beside its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The codes of collective operations.
    pub op_codes: OpCodes,
    /// The origin of the trace: `program`, `command`, `host`, `mpi`, `version` …, each with its value.
    pub origin: Vec<(String, String)>,
}

impl About {
    /// Name of the fact that a host had more tasks than cores.
    pub const OVERSUBSCRIBED: &str = "oversubscribed";
    /// Name of the fact that the program spawned tasks.
    pub const SPAWNED: &str = "spawned";
    /// Name of the fact how long the tasks waited for their own sends, within computing times.
    pub const SEND_WAITS: &str = "waits for sends";
    /// Name of the fact for how long tasks had no core, which computing times do not contain.
    pub const PREEMPTED: &str = "without a core";
    /// Name of the fact for how long tasks had no core, within computing times.
    pub const PREEMPTED_KEPT: &str = "computing without a core";
    /// Name of the fact how long failed polls took that computing times contain.
    pub const POLLS: &str = "failed polls";
    /// Name of the fact how long calls took that wait for no other task, within computing times.
    pub const OWN_WORK: &str = "own work of MPI";
    /// Name of the fact how many one-sided requests had their answers while the target computed, whose computing times lack what came before them.
    pub const ANSWERED_OUTSIDE: &str = "answered outside MPI";
    /// Name of the fact which tasks stand for the network interfaces of the program's tasks, in their order, the last ones: `tasks FIRST–LAST`.
    pub const INTERFACES: &str = "network interfaces";
    /// Name of the fact which tasks stand for storage servers, behind those of the program: `tasks FIRST–LAST`.
    pub const STORAGE: &str = "storage servers";
    /// Name of the fact that the program did something that the trace lacks.
    pub const NOT_IN_TRACE: &str = "not in the trace";

    /// The values of all facts with a name, in order.
    pub fn facts(&self, name: &str) -> impl Iterator<Item = &String> {
        self.origin.iter().filter(move |(fact, _)| fact == name).map(|(_, value)| value)
    }

    /// How many of the `tasks` of the trace, the first ones, ran the program: all but storage servers and network interfaces.
    pub fn program_tasks(&self, tasks: u32) -> u32 {
        let others = [Self::STORAGE, Self::INTERFACES].into_iter().filter_map(|name| self.range(name));
        others.map(|range| *range.start()).fold(tasks, u32::min)
    }

    /// The tasks that stand for network interfaces, in the order of the program's tasks, if the `tasks` of the trace end with these.
    pub fn interfaces(&self, tasks: u32) -> Option<Range<u32>> {
        let range = self.range(Self::INTERFACES)?;
        let (first, end) = (*range.start(), range.end().checked_add(1)?);
        let is_one_each = end == tasks && end.checked_sub(first) == Some(self.program_tasks(tasks));
        is_one_each.then_some(first..end)
    }

    /// The tasks of the fact `tasks FIRST–LAST` with a name.
    fn range(&self, name: &str) -> Option<RangeInclusive<u32>> {
        let (first, last) = self.facts(name).next()?.strip_prefix("tasks ")?.split_once('–')?;
        Some(first.parse().ok()?..=last.parse().ok()?)
    }
}

/// The place of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) offset: u64,
    /// With its frame.
    pub(super) length: u64,
    pub(super) items: u32,
}

/// Summary of a block of records, so that a reader can skip it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// Sum of the records' times.
    pub(super) computing: u64,
    /// Number of messages and marks.
    pub(super) messages: u32,
    /// Least and greatest id of these.
    pub(super) message_ids: (u64, u64),
    /// Least and greatest id of the other records, which are parts of collectives.
    pub(super) collective_ids: (u64, u64),
}

impl Content {
    /// Of no records.
    pub(super) const NONE: Self =
        Self { computing: 0, messages: 0, message_ids: (u64::MAX, 0), collective_ids: (u64::MAX, 0) };

    /// Adds a record.
    #[inline]
    pub(super) fn add(&mut self, raw: &Raw) {
        let ids = if raw.is_collective() { &mut self.collective_ids } else { &mut self.message_ids };
        *ids = (ids.0.min(raw.id), ids.1.max(raw.id));
        self.messages += u32::from(!raw.is_collective());
        self.computing = self.computing.saturating_add(raw.time);
    }
}

/// Numbers of a place in the index: distance from the end of the previous block, length, items.
const PLACE: usize = 3;
/// Further numbers of a block of records: computing time, number of messages, and for messages and for collectives the least
/// id and the distance to the greatest.
const RECORDS_PLACE: usize = PLACE + 6;
/// More numbers a place than any later minor version will have.
const MOST_NUMBERS: u64 = 32;

/// The places of the blocks of one stream, encoded.
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

    /// Adds a block of records.
    pub(super) fn push_records(&mut self, spot: Spot, content: &Content) {
        self.push(spot);
        let range =
            |(least, greatest): (u64, u64)| if least > greatest { [0, 0] } else { [least, greatest - least] };
        self.content.put(&[content.computing, content.messages.into()]);
        self.content.put(&range(content.message_ids));
        self.content.put(&range(content.collective_ids));
    }

    fn put(&self, out: &mut Packed) {
        out.put(&[self.blocks]);
        out.append(self.content.bytes());
    }
}

/// The index under construction: the places of all blocks but the index.
#[derive(Clone, Debug, Default)]
pub(super) struct Listings {
    pub(super) about: Listing,
    pub(super) communicators: Listing,
    pub(super) order: Listing,
    /// By name, and by task (0: the trace; otherwise the rank plus one).
    pub(super) sections: BTreeMap<String, BTreeMap<u64, Listing>>,
    pub(super) tasks: BTreeMap<u32, Listing>,
}

impl Listings {
    pub(super) fn to_bytes(&self) -> Packed {
        let mut out = Packed::default();
        out.put(&[PLACE as u64, RECORDS_PLACE as u64]);
        for listing in [&self.about, &self.communicators, &self.order] {
            listing.put(&mut out);
        }
        out.put(&[self.sections.len() as u64]);
        for (name, tasks) in &self.sections {
            out.text(name);
            // No section is one that a reader must know.
            out.put(&[0]);
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
    /// The tasks with records, ascending.
    pub(super) tasks: Vec<TaskList>,
}

/// A list of blocks in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    /// Offset in the file of the first place.
    at: u64,
    pub(super) blocks: u32,
    /// Numbers of a place.
    numbers: u8,
    /// Number of items in all blocks.
    pub(super) items: u64,
}

/// A task's list of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TaskList {
    pub(super) task: u32,
    pub(super) list: List,
}

/// A section; the lists of its tasks are contiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    /// Whether a reader that does not know it must refuse the file.
    pub(super) required: bool,
    at: u64,
    tasks: u64,
    /// Numbers of a place.
    numbers: u8,
}

impl Index {
    /// Scans the index in `from`; the other blocks end before `end`.
    pub(super) fn read(from: &mut Scan<'_>, end: u64) -> Result<Self, Problem> {
        let numbers = numbers(from, PLACE)?;
        let records_numbers = self::numbers(from, RECORDS_PLACE)?;
        let about = list(from, end, numbers)?;
        let communicators = list(from, end, numbers)?;
        let order = list(from, end, numbers)?;
        let mut sections: Vec<Section> = Vec::new();
        for _ in 0..from.get()? {
            let name = from.text()?;
            if sections.last().is_some_and(|before| before.name >= name) {
                return Err(Garbled::Value("a section").into());
            }
            // Later minor versions may have further flags.
            let required = from.get()? & 1 == 1;
            let tasks = from.get()?;
            let at = from.position();
            each_task(from, tasks, (end, numbers), |_, _| Ok(()))?;
            sections.push(Section { name, required, at, tasks, numbers });
        }
        let mut tasks = Vec::new();
        let count = from.get()?;
        each_task(from, count, (end, records_numbers), |task, list| {
            let task = u32::try_from(task).map_err(|_| Garbled::Value("a task"))?;
            tasks.push(TaskList { task, list });
            Ok(())
        })?;
        // Later minor versions may have further bytes.
        Ok(Self { about, communicators, order, sections, tasks })
    }

    /// Index of a task in [`Index::tasks`].
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
    /// The name of a required section that this program does not know.
    pub(super) fn unknown_but_required(&self) -> Option<&str> {
        let known = super::section::Section::ALL.iter().any(|known| known.name() == self.name);
        (self.required && !known).then_some(&self.name)
    }

    /// The section's lists, each with its task (0: the trace; otherwise the rank plus one).
    pub(super) fn lists(&self, input: &Input, end: u64) -> Result<Vec<(u64, List)>, Problem> {
        let mut lists = Vec::new();
        let mut from = Scan::new(input, self.at, end);
        each_task(&mut from, self.tasks, (end, self.numbers), |task, list| {
            lists.push((task, list));
            Ok(())
        })?;
        Ok(lists)
    }
}

/// Reads lists of blocks with delta-coded, ascending tasks.
fn each_task(
    from: &mut Scan<'_>,
    count: u64,
    (end, numbers): (u64, u8),
    mut take: impl FnMut(u64, List) -> Result<(), Garbled>,
) -> Result<(), Problem> {
    let mut task = 0u64;
    for number in 0..count {
        let step = from.get()?;
        task = task
            .checked_add(step)
            .filter(|&task| (step > 0 || number == 0) && task <= 1 << 32)
            .ok_or(Garbled::Value("a task"))?;
        let list = list(from, end, numbers)?;
        take(task, list)?;
    }
    Ok(())
}

/// Numbers of a place: at least the `known` ones; further ones belong to later minor versions.
fn numbers(from: &mut Scan<'_>, known: usize) -> Result<u8, Problem> {
    let numbers = from.get()?;
    match (known as u64..=MOST_NUMBERS).contains(&numbers) {
        true => Ok(numbers as u8),
        false => Err(Garbled::Value("a number of fields").into()),
    }
}

/// Scans the places of one list.
fn list(from: &mut Scan<'_>, most: u64, numbers: u8) -> Result<List, Problem> {
    let blocks = u32::try_from(from.get()?).map_err(|_| Garbled::Value("a number of blocks"))?;
    let at = from.position();
    let (mut items, mut end) = (0u64, 0);
    for _ in 0..blocks {
        let spot = spot(end, most, || from.get())?;
        for _ in PLACE..numbers.into() {
            from.get()?;
        }
        end = spot.offset + spot.length;
        // Blocks do not overlap, so there are fewer terms than bytes in the file.
        items = items.saturating_add(spot.items.into());
    }
    Ok(List { at, blocks, numbers, items })
}

/// A block behind `before` that ends before `most`.
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

/// Reads the places of a list's blocks from the file, one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Places {
    at: u64,
    end: u64,
    left: u32,
    numbers: u8,
}

impl Places {
    pub(super) fn new(list: List) -> Self {
        Self { at: list.at, end: 0, left: list.blocks, numbers: list.numbers }
    }

    /// The next place; the block ends before `most`, the offset of the index.
    pub(super) fn next(&mut self, input: &Input, most: u64) -> Result<Option<Spot>, Problem> {
        Ok(self.next_summed(input, most)?.map(|(spot, _)| spot))
    }

    /// The same with the sum of the records' times; 0, if it is no block of records.
    pub(super) fn next_summed(&mut self, input: &Input, most: u64) -> Result<Option<(Spot, u64)>, Problem> {
        if self.left == 0 {
            return Ok(None);
        }
        let mut bytes = [0; MOST_NUMBERS as usize * MAX_LEN];
        let room = usize::from(self.numbers) * MAX_LEN;
        let bytes = input.some_at(&mut bytes[..room], self.at)?;
        let mut from = Source::new(bytes, 0);
        let garbled = |error: Garbled| match error {
            Garbled::Length if bytes.len() < room => Problem::Cut,
            error => error.into(),
        };
        let spot = spot::<Garbled>(self.end, most, || Ok(from.get()?)).map_err(garbled)?;
        let mut computing = 0;
        for further in PLACE..self.numbers.into() {
            let number = from.get().map_err(|error| garbled(error.into()))?;
            if further == PLACE {
                computing = number;
            }
        }
        self.left -= 1;
        self.at += from.position() as u64;
        self.end = spot.offset + spot.length;
        Ok(Some((spot, computing)))
    }
}

fn text(from: &mut Source<'_>) -> Result<String, Garbled> {
    let bytes = from.text()?;
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Garbled::Value("a text"))
}

/// Encodes the block *about*.
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
    out.put(&[about.op_codes.names().count() as u64]);
    for (code, name) in about.op_codes.names() {
        out.put(&[code.0.into()]);
        out.text(name);
    }
    out.put(&[about.origin.len() as u64]);
    for (name, value) in &about.origin {
        out.text(name);
        out.text(value);
    }
    out
}

/// Decodes the block *about*.
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
    let mut op_codes = OpCodes::none();
    for _ in 0..from.get()? {
        let code = u16::try_from(from.get()?).map_err(|_| Garbled::Value("an operation code"))?;
        op_codes.push(OpCode(code), text(&mut from)?);
    }
    let mut origin = Vec::new();
    for _ in 0..from.get()? {
        origin.push((text(&mut from)?, text(&mut from)?));
    }
    // Later minor versions may have further bytes.
    Ok((header, About { op_codes, origin }))
}
