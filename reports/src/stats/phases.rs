//! Sums over the program's phases.

use super::bounded::Volume;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use vef_format::container::{ContainerError, Note, Notes, Reader};
use vef_format::raw::{Raw, RawKind};

/// Sums of a phase over all tasks; a record counts for the innermost phase that it is in.
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
    /// Messages by the power of two of their size: class 0 is no bytes, class k up to 2^k − 1.
    pub by_size: BTreeMap<u32, Volume>,
}

/// The power of two of a size: class 0 is no bytes, class k up to 2^k − 1.
pub fn size_class(bytes: u64) -> u32 {
    u64::BITS - bytes.leading_zeros()
}

impl PhaseTally {
    /// Adds a record.
    fn add(&mut self, raw: &Raw) {
        self.ticks = self.ticks.saturating_add(raw.time);
        match raw.kind() {
            RawKind::Mark => {}
            RawKind::Message => {
                let volume = Volume { messages: 1, bytes: raw.bytes };
                self.sent.add(volume);
                self.by_size.entry(size_class(raw.bytes)).or_default().add(volume);
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

/// Follows a task through its phases, record by record.
pub(super) struct PhasesOfTask<'a> {
    reader: &'a Reader,
    notes: Notes,
    /// In front of which record the next phase begins or ends.
    next: Option<u64>,
    /// The phase that begins there; none: the innermost ends.
    begins: Option<usize>,
    names: HashMap<String, usize>,
    tallies: Vec<PhaseTally>,
    open: Vec<usize>,
    records: u64,
}

impl<'a> PhasesOfTask<'a> {
    pub(super) fn new(reader: &'a Reader, notes: Notes) -> Result<Self, ContainerError> {
        let mut phases = Self {
            reader,
            notes,
            next: None,
            begins: None,
            names: HashMap::new(),
            tallies: Vec::new(),
            open: Vec::new(),
            records: 0,
        };
        phases.advance()?;
        Ok(phases)
    }

    /// Reads the next beginning or end of a phase.
    fn advance(&mut self) -> Result<(), ContainerError> {
        self.next = None;
        while let Some((place, note)) = self.notes.next(self.reader)? {
            let Note::Phase { begin, name } = note else { continue };
            self.begins = begin.then(|| {
                let tallies = &mut self.tallies;
                *self.names.entry_ref(name).or_insert_with(|| {
                    tallies.push(PhaseTally::default());
                    tallies.len() - 1
                })
            });
            self.next = Some(place);
            break;
        }
        Ok(())
    }

    /// Passes all beginnings and ends in front of the next record.
    fn pass(&mut self) -> Result<(), ContainerError> {
        while self.next.is_some_and(|place| place <= self.records) {
            match self.begins {
                None => drop(self.open.pop()),
                Some(phase) => {
                    self.tallies[phase].entries += 1;
                    self.open.push(phase);
                }
            }
            self.advance()?;
        }
        Ok(())
    }

    /// Adds the next record, or passes it.
    #[inline]
    pub(super) fn add(&mut self, raw: Option<&Raw>) -> Result<(), ContainerError> {
        self.pass()?;
        self.records += 1;
        if let (Some(&phase), Some(raw)) = (self.open.last(), raw) {
            self.tallies[phase].add(raw);
        }
        Ok(())
    }

    /// What was added up behind the last record.
    pub(super) fn finish(mut self) -> Result<impl Iterator<Item = (String, PhaseTally)>, ContainerError> {
        self.pass()?;
        let mut tallies = self.tallies;
        Ok(self.names.into_iter().map(move |(name, phase)| (name, std::mem::take(&mut tallies[phase]))))
    }
}
