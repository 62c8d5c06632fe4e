//! What a container says of single records as they were captured: function, phase, time.

use crate::labels::{Label, Labels};
use std::collections::BTreeMap;
use std::sync::Arc;
use vef_format::container::{ContainerError, Note, Notes, Reader, Section};
use vef_format::ids::Rank;
use vef_format::units::Ticks;

/// A record as it was captured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedRecord {
    /// Its function and phase.
    pub label: Label,
    /// When it began, from the return of its task's `MPI_Init` on (from its entry, if the records include start-up).
    pub at: Option<Ticks>,
}

/// What is said of the records `wanted`, tasks and numbers (from 0), in their order.
pub(crate) fn records(
    reader: Arc<Reader>,
    wanted: &[(Rank, u64)],
) -> Result<Vec<CapturedRecord>, ContainerError> {
    let mut found = vec![CapturedRecord::default(); wanted.len()];
    let mut labels = Labels::new(reader.clone())?;
    let mut by_task: BTreeMap<u32, Vec<(u64, usize)>> = BTreeMap::new();
    for (&(task, number), at) in wanted.iter().zip(0..) {
        by_task.entry(task.0).or_default().push((number, at));
    }
    for (task, mut numbers) in by_task {
        numbers.sort_unstable();
        for &(number, at) in &numbers {
            found[at].label = labels.of(Rank(task), number)?;
        }
        find_moments(&reader, Rank(task), &numbers, &mut found)?;
    }
    Ok(found)
}

/// When the records with these numbers began, ascending; each with its place in `found`.
fn find_moments(
    reader: &Reader,
    task: Rank,
    numbers: &[(u64, usize)],
    found: &mut [CapturedRecord],
) -> Result<(), ContainerError> {
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
