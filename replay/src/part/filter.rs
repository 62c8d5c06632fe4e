//! Reads the records of a part: leaves out the others, and what depends on them.

use super::selection::Selection;
use crate::sequence::{PAUSE, STARTED};
use std::sync::Arc;
use vef_format::ids::{CollectiveId, MessageId, Rank};
use vef_format::raw::{DEPENDENCY, MARK, Raw};
use vef_format::record::Dependency;

/// How far the records of a task were read from the trace, for [`Selection::take`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PlaceInPart {
    /// Number of the next record of the trace.
    next: u64,
    /// Its stretch, or the one behind it.
    stretch: usize,
    /// Whether the stretch has begun.
    begun: bool,
    /// Computing that is yet to be left out in front of the first record of the stretch.
    before: u64,
    left_out: LeftOut,
}

/// What a replay of a part leaves out in its records, because it depends on others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LeftOut {
    /// Receptions that records do not wait for: the messages were sent outside of the part.
    pub receptions: u64,
    /// Members' parts of collectives: other members enter these outside of the part.
    pub collective_parts: u64,
}

impl LeftOut {
    /// Adds that of another task, or partition of the same replay.
    pub fn add(&mut self, other: Self) {
        self.receptions += other.receptions;
        self.collective_parts += other.collective_parts;
    }
}

impl Selection {
    /// Takes the task's next record of the trace and makes of it what is replayed; its number, or `None` if it is left out. A collective
    /// that some members do not enter in the part becomes a mark of no id.
    pub fn take(&self, task: Rank, place: &mut PlaceInPart, raw: &mut Raw) -> Option<u64> {
        let number = place.next;
        let is_record = raw.tag & PAUSE == 0;
        place.next += u64::from(is_record);
        let stretches = self.stretches(task);
        while stretches.get(place.stretch).is_some_and(|stretch| stretch.records.end <= number) {
            (place.stretch, place.begun) = (place.stretch + 1, false);
        }
        let stretch = stretches.get(place.stretch).filter(|stretch| stretch.records.start <= number)?;
        if !std::mem::replace(&mut place.begun, true) {
            place.before = stretch.before.0;
            if self.has_awaited(task, number) {
                raw.tag &= !(DEPENDENCY | STARTED);
                raw.after = 0;
            }
        }
        let left_out = place.before.min(raw.time);
        raw.time -= left_out;
        place.before = if is_record { 0 } else { place.before - left_out };
        if self.depends_outside(raw) {
            place.left_out.receptions += u64::from(raw.tag & DEPENDENCY == 2);
            raw.tag &= !(DEPENDENCY | STARTED);
            raw.after = 0;
        }
        if self.is_cut(raw) {
            place.left_out.collective_parts += 1;
            let tag = raw.tag & DEPENDENCY | MARK | PAUSE;
            *raw = Raw { time: raw.time, after: raw.after, tag, ..Raw::NOTHING };
        }
        Some(number)
    }
}

/// A reading of the records of a part.
#[derive(Debug)]
pub(crate) struct Filter {
    selection: Arc<Selection>,
    /// By rank.
    places: Vec<PlaceInPart>,
}

/// What comes next of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead {
    /// Records of the trace.
    Records,
    /// This pause, in front of the record of this number.
    Pause(Raw, u64),
    /// Nothing.
    End,
}

impl Filter {
    /// Another reading, from the start.
    pub(crate) fn again(&self) -> Self {
        Self::new(&self.selection, self.places.len() as u32)
    }

    pub(crate) fn new(selection: &Arc<Selection>, tasks: u32) -> Self {
        Self { selection: selection.clone(), places: vec![PlaceInPart::default(); tasks as usize] }
    }

    /// The records that it takes.
    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// What has been left out so far.
    pub(crate) fn left_out(&self) -> LeftOut {
        let mut all = LeftOut::default();
        self.places.iter().for_each(|place| all.add(place.left_out));
        all
    }

    /// What comes next of a task, before its next record is read from the trace.
    pub(crate) fn ahead(&mut self, task: Rank) -> Ahead {
        let Some(place) = self.places.get_mut(task.index()) else { return Ahead::End };
        loop {
            let Some(stretch) = self.selection.stretches(task).get(place.stretch) else { return Ahead::End };
            if place.next < stretch.records.end {
                return Ahead::Records;
            }
            (place.stretch, place.begun) = (place.stretch + 1, false);
            if stretch.behind.0 > 0 || stretch.awaits.is_some() {
                let after = match stretch.awaits {
                    Some(Dependency::Received(MessageId(id)) | Dependency::Collective(CollectiveId(id))) => {
                        id
                    }
                    Some(Dependency::Start | Dependency::Sent(_)) | None => 0,
                };
                let tag = MARK | PAUSE | stretch.awaits.map_or(0, Dependency::code);
                return Ahead::Pause(Raw { time: stretch.behind.0, after, tag, ..Raw::NOTHING }, place.next);
            }
        }
    }

    /// As [`Selection::take`].
    pub(crate) fn take(&mut self, task: Rank, raw: &mut Raw) -> Option<u64> {
        self.selection.take(task, self.places.get_mut(task.index())?, raw)
    }
}
