//! Where events come from: a capture of any layout, with what only mixing asks of it.

use crate::Options;
use crate::error::MixError;
use std::path::Path;
use vef_format::capture::event::Event;
use vef_format::capture::legacy;
use vef_format::ids::Rank;

/// A capture that is open.
#[derive(Debug)]
pub(crate) struct Source {
    main: legacy::Main,
    options: legacy::Options,
}

/// The events of one task.
#[derive(Debug)]
pub(crate) struct Events(legacy::Events);

impl Source {
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, MixError> {
        let unknown = match options.skip_unknown {
            true => legacy::UnknownEvents::Skip,
            false => legacy::UnknownEvents::Refuse,
        };
        let main = legacy::Main::open(path)?;
        Ok(Self { main, options: legacy::Options { unknown, op_codes: None } })
    }

    pub(crate) fn tasks(&self) -> u32 {
        self.main.tasks.len() as u32
    }

    /// Whether messages are told apart by their length, because their communicator is not known.
    pub(crate) fn by_length(&self) -> bool {
        true
    }

    /// The host of a task, and its wall clock in nanoseconds at the start of `MPI_Init`; 0: not known.
    pub(crate) fn clock(&self, rank: Rank) -> (&str, u64) {
        self.main.tasks.get(rank.index()).map_or(("", 0), |task| (&task.host, task.realtime_init))
    }

    pub(crate) fn events(&self, rank: Rank) -> Result<Events, MixError> {
        Ok(Events(legacy::Events::open(&self.main, rank, &self.options)?))
    }
}

impl Events {
    pub(crate) fn next(&mut self) -> Result<Option<Event<'_>>, MixError> {
        Ok(self.0.next()?)
    }

    /// How many events of unknown type were left out.
    pub(crate) fn skipped(&self) -> u64 {
        self.0.skipped().values().sum()
    }
}
