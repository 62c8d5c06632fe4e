//! What a container says of single records as they were captured: function, phases, time.

use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::container::{ContainerError, Note, Notes, Reader, Section};
use vef_format::ids::Rank;
use vef_format::units::Ticks;

/// A record as it was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedRecord {
    /// The MPI function that made it.
    pub function: Option<String>,
    /// The phases in which it is, outermost first.
    pub phases: Vec<String>,
    /// When it began, from the return of its task's `MPI_Init` on (from its entry, if the records include start-up).
    pub at: Option<Ticks>,
}

/// What is said of the records `wanted`, tasks and numbers (from 0), in their order.
pub(crate) fn records(
    reader: &Reader,
    wanted: &[(Rank, u64)],
) -> Result<Vec<CapturedRecord>, ContainerError> {
    let mut found = vec![CapturedRecord::default(); wanted.len()];
    let mut by_task: BTreeMap<u32, Vec<(u64, usize)>> = BTreeMap::new();
    for (&(task, number), at) in wanted.iter().zip(0..) {
        by_task.entry(task.0).or_default().push((number, at));
    }
    for (task, mut numbers) in by_task {
        numbers.sort_unstable();
        of_task(reader, Rank(task), &numbers, &mut found)?;
    }
    Ok(found)
}

/// Of the records with these numbers, ascending; each with its place in `found`.
fn of_task(
    reader: &Reader,
    task: Rank,
    numbers: &[(u64, usize)],
    found: &mut [CapturedRecord],
) -> Result<(), ContainerError> {
    // A note holds for the records from its place on; that of a phase for those behind the mark.
    let mut calls = reader.notes(Section::Calls, task)?;
    let (mut function, mut left) = (None, numbers);
    while let Some((place, note)) = calls.next(reader)? {
        let Note::Call(name) = note else { continue };
        let before = left.partition_point(|&(number, _)| number < place);
        left[..before].iter().for_each(|&(_, at)| found[at].function.clone_from(&function));
        (function, left) = (Some(name.to_owned()), &left[before..]);
    }
    left.iter().for_each(|&(_, at)| found[at].function.clone_from(&function));

    let mut marks = reader.notes(Section::Phases, task)?;
    let (mut open, mut left): (Vec<String>, _) = (Vec::new(), numbers);
    while let Some((place, note)) = marks.next(reader)? {
        let Note::Phase { begin, name } = note else { continue };
        let before = left.partition_point(|&(number, _)| number < place);
        left[..before].iter().for_each(|&(_, at)| found[at].phases.clone_from(&open));
        left = &left[before..];
        match begin {
            true => open.push(name.to_owned()),
            false => drop(open.pop()),
        }
    }
    left.iter().for_each(|&(_, at)| found[at].phases.clone_from(&open));

    let Some(mut moments) = Moments::new(reader, task)? else { return Ok(()) };
    let (mut number, mut left, mut failed) = (0u64, numbers.iter().peekable(), Ok(()));
    let mut see = |time| -> Result<(), ContainerError> {
        let began = moments.of(number, time)?;
        while let Some(&(_, at)) = left.next_if(|&&(wanted, _)| wanted == number) {
            found[at].at = Some(Ticks(began));
        }
        number += 1;
        Ok(())
    };
    reader.task(task).each_raw(|raw| {
        if failed.is_ok() {
            failed = see(raw.time);
        }
    })?;
    failed
}

/// The functions and phases of records, looked up in the order of each task's records.
#[derive(Debug)]
pub struct Labels {
    reader: Arc<Reader>,
    /// By rank.
    tasks: Vec<TaskLabels>,
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

#[derive(Debug, Default)]
struct TaskLabels {
    calls: Option<Notes>,
    phases: Option<Notes>,
    function: Option<u32>,
    open: Vec<u32>,
    /// The next function, and the first record of which it is that.
    next_function: Option<(u64, u32)>,
    /// The next phase mark: the record that it is in front of, and the phase if that begins.
    next_phase: Option<(u64, Option<u32>)>,
}

impl Labels {
    pub(crate) fn new(reader: Arc<Reader>) -> Result<Self, ContainerError> {
        let tasks = (0..reader.header().tasks).map(|_| TaskLabels::default()).collect();
        let mut labels = Self { reader, tasks, names: Vec::new(), numbers: HashMap::new() };
        for (section, is_call) in [(Section::Calls, true), (Section::Phases, false)] {
            for (task, notes) in labels.reader.notes_of_all(section)? {
                let Some(own) = labels.tasks.get_mut(task.index()) else { continue };
                match is_call {
                    true => own.calls = Some(notes),
                    false => own.phases = Some(notes),
                }
                labels.step(task.index(), is_call);
            }
        }
        Ok(labels)
    }

    /// Reads the next note of a task. A damaged one ends the notes: they name things, and nothing depends on them.
    fn step(&mut self, task: usize, is_call: bool) {
        let Self { reader, tasks, names, numbers } = self;
        let own = &mut tasks[task];
        let mut number = |name: &str| {
            *numbers.entry_ref(name).or_insert_with(|| {
                names.push(name.to_owned());
                names.len() as u32 - 1
            })
        };
        let notes = if is_call { &mut own.calls } else { &mut own.phases };
        let note = notes.as_mut().and_then(|notes| notes.next(reader).ok().flatten());
        match (note, is_call) {
            (Some((place, Note::Call(name))), true) => own.next_function = Some((place, number(name))),
            (Some((place, Note::Phase { begin, name })), false) => {
                own.next_phase = Some((place, begin.then(|| number(name))));
            }
            (_, true) => own.next_function = None,
            (_, false) => own.next_phase = None,
        }
    }

    /// The numbers of the function that made a record, and of the innermost phase in which it is. Of each task, records come in their order.
    pub fn of(&mut self, task: Rank, record: u64) -> (Option<u32>, Option<u32>) {
        let at = task.index();
        if at >= self.tasks.len() {
            return (None, None);
        }
        while let Some((_, function)) = self.tasks[at].next_function.filter(|&(place, _)| place <= record) {
            self.tasks[at].function = Some(function);
            self.step(at, true);
        }
        while let Some((_, phase)) = self.tasks[at].next_phase.filter(|&(place, _)| place <= record) {
            match phase {
                Some(phase) => self.tasks[at].open.push(phase),
                None => drop(self.tasks[at].open.pop()),
            }
            self.step(at, false);
        }
        (self.tasks[at].function, self.tasks[at].open.last().copied())
    }

    /// The name of such a number.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }
}

/// When the records of a task began in the captured run, from the return of its `MPI_Init` on.
pub(crate) struct Moments<'a> {
    reader: &'a Reader,
    notes: Notes,
    /// The next note, and the record that it is about.
    next: Option<(u64, u64)>,
    /// The beginning of the last record.
    at: u64,
}

impl<'a> Moments<'a> {
    /// Those of a task; `None` if the container does not tell.
    pub(crate) fn new(reader: &'a Reader, task: Rank) -> Result<Option<Self>, ContainerError> {
        let notes = reader.notes(Section::Moments, task)?;
        let mut moments = Self { reader, notes, next: None, at: 0 };
        moments.step()?;
        Ok(moments.next.is_some().then_some(moments))
    }

    fn step(&mut self) -> Result<(), ContainerError> {
        self.next = loop {
            match self.notes.next(self.reader)? {
                Some((record, Note::Moment(at))) => break Some((record, at.0)),
                Some(_) => {}
                None => break None,
            }
        };
        Ok(())
    }

    /// The beginning of record `number`, the one behind the last that was asked for, with computing of `time` in front.
    pub(crate) fn of(&mut self, number: u64, time: u64) -> Result<u64, ContainerError> {
        self.at = self.at.saturating_add(time);
        while let Some((_, at)) = self.next.filter(|&(record, _)| record <= number) {
            self.at = self.at.max(at);
            self.step()?;
        }
        Ok(self.at)
    }
}
