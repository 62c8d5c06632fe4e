//! Sums over the program's phases.

use super::bounded::Volume;
use hashbrown::HashMap;
use results::classes::power;
use std::collections::BTreeMap;
use std::ops::Range;
use vef_format::container::{ContainerError, PhaseMarks, Reader};
use vef_format::raw::{Raw, RawKind};

/// Sums of a phase over all tasks; a record, and each stretch of computing, counts for the innermost phase that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTally {
    /// How often a task entered it.
    pub entries: u64,
    /// Messages that were sent in it.
    pub sent: Volume,
    /// Parts of collectives.
    pub collectives: u64,
    /// Computing time without `MPI_Init`, in ticks.
    pub ticks: u64,
    /// Messages by the [`power`] of two of their size.
    pub by_size: BTreeMap<u32, Volume>,
}

impl PhaseTally {
    /// Adds a record, not the computing in front of it.
    fn add(&mut self, raw: &Raw) {
        match raw.kind() {
            RawKind::Mark => {}
            RawKind::Message => {
                let volume = Volume { messages: 1, bytes: raw.bytes };
                self.sent.add(volume);
                self.by_size.entry(power(raw.bytes)).or_default().add(volume);
            }
            RawKind::Collective => self.collectives += 1,
        }
    }

    /// Adds what another part of the trace gave.
    pub(super) fn merge(&mut self, other: Self) {
        self.entries += other.entries;
        self.sent.add(other.sent);
        self.collectives += other.collectives;
        self.ticks = self.ticks.saturating_add(other.ticks);
        for (class, volume) in other.by_size {
            self.by_size.entry(class).or_default().add(volume);
        }
    }
}

/// What of a record belongs to the part of the run that is added up.
#[derive(Debug, Default)]
pub(super) struct Within {
    /// Stretches of the computing in front of the record, in ticks of it; of another thread than the record's, they may be longer than its time.
    pub(super) computing: Vec<Range<u64>>,
    /// The record itself as it is counted, if it does.
    pub(super) record: Option<Raw>,
}

/// Follows a task through its phases, record by record.
pub(super) struct PhasesOfTask<'a> {
    reader: &'a Reader,
    marks: PhaseMarks,
    /// The next beginning or end of a phase: the record behind it, and the computing between the record before and it.
    next: Option<(u64, u64)>,
    /// The phase that begins there; none: the innermost ends.
    begins: Option<usize>,
    names: HashMap<String, usize>,
    tallies: Vec<PhaseTally>,
    open: Vec<usize>,
    records: u64,
    /// The part is the whole run.
    all: bool,
}

impl<'a> PhasesOfTask<'a> {
    /// `all`: the part is the whole run.
    pub(super) fn new(reader: &'a Reader, marks: PhaseMarks, all: bool) -> Result<Self, ContainerError> {
        let mut phases = Self {
            reader,
            marks,
            next: None,
            begins: None,
            names: HashMap::new(),
            tallies: Vec::new(),
            open: Vec::new(),
            records: 0,
            all,
        };
        phases.advance()?;
        Ok(phases)
    }

    /// Reads the next beginning or end of a phase.
    fn advance(&mut self) -> Result<(), ContainerError> {
        let mark = self.marks.next(self.reader)?;
        self.next = mark.map(|mark| (mark.record, mark.computed.0));
        self.begins = mark.filter(|mark| mark.begin).map(|mark| {
            let tallies = &mut self.tallies;
            *self.names.entry_ref(mark.name).or_insert_with(|| {
                tallies.push(PhaseTally::default());
                tallies.len() - 1
            })
        });
        Ok(())
    }

    /// Adds the computing from `from` to `to` in front of a record to the innermost phase.
    fn compute(&mut self, from: u64, to: u64, within: &Within) {
        let Some(&phase) = self.open.last() else { return };
        let common = |part: &Range<u64>| part.end.min(to).saturating_sub(part.start.max(from));
        let ticks = within.computing.iter().map(common).fold(0, u64::saturating_add);
        self.tallies[phase].ticks = self.tallies[phase].ticks.saturating_add(ticks);
    }

    /// Adds the next record with the computing in front of it, as far as they belong to the part.
    #[inline]
    pub(super) fn add(&mut self, raw: &Raw, within: &Within) -> Result<(), ContainerError> {
        self.add_computing(raw.time, within)?;
        self.records += 1;
        if let (Some(&phase), Some(counted)) = (self.open.last(), &within.record) {
            self.tallies[phase].add(counted);
        }
        Ok(())
    }

    /// Adds the computing in front of a record with this `time`.
    fn add_computing(&mut self, time: u64, within: &Within) -> Result<(), ContainerError> {
        let end = within.computing.iter().fold(time, |end, part| end.max(part.end));
        let mut computed = 0;
        while let Some((_, at)) = self.next.filter(|&(record, _)| record <= self.records) {
            let at = at.clamp(computed, end.max(computed));
            self.compute(computed, at, within);
            computed = at;
            match self.begins {
                None => drop(self.open.pop()),
                Some(phase) => {
                    let is_inside = self.all
                        || within.computing.iter().any(|part| part.contains(&at))
                        || (within.record.is_some() && at >= time);
                    self.tallies[phase].entries += u64::from(is_inside);
                    self.open.push(phase);
                }
            }
            self.advance()?;
        }
        self.compute(computed, end, within);
        Ok(())
    }

    /// The sums, with what is computed behind the last record: those of phases of which the part has anything.
    pub(super) fn finish(
        mut self,
        within: &Within,
    ) -> Result<impl Iterator<Item = (String, PhaseTally)>, ContainerError> {
        self.records = u64::MAX;
        self.add_computing(0, within)?;
        let mut tallies = self.tallies;
        let named =
            self.names.into_iter().map(move |(name, phase)| (name, std::mem::take(&mut tallies[phase])));
        Ok(named.filter(|(_, tally)| *tally != PhaseTally::default()))
    }
}
