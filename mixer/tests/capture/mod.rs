//! Captures for tests: events that own their lists, written through the capture writer.

use std::path::Path;
use vef_format::capture::event::*;
use vef_format::capture::{RankInfo, RankWriter};
use vef_format::ids::{CommId, Rank};
use vef_format::units::Nanos;

/// An event that owns its lists.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) thread: u16,
    pub(crate) what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Plain(Action<'static>),
    Complete(Vec<Completion>),
    Communicator { id: CommId, origin: Origin, members: Vec<Rank> },
}

impl Happened {
    fn with_event<R>(&self, use_it: impl FnOnce(&Event<'_>) -> R) -> R {
        let action = match &self.what {
            What::Plain(action) => action.clone(),
            What::Complete(list) => Action::Complete(list),
            What::Communicator { id, origin, members } => Action::Communicator(Communicator {
                id: *id,
                origin: *origin,
                members: Members::List(members),
                foreign: false,
            }),
        };
        let Self { start, end, thread, .. } = *self;
        use_it(&Event { start: Nanos(start), end: Nanos(end), thread, action })
    }
}

/// Writes the events of all tasks as a capture in `dir`.
pub(crate) fn write(dir: &Path, tasks: &[Vec<Happened>]) {
    for (rank, events) in tasks.iter().enumerate() {
        let info = RankInfo {
            rank: Rank(rank as u32),
            tasks: tasks.len() as u32,
            host: "one".into(),
            ..RankInfo::default()
        };
        let mut writer = RankWriter::create(dir, &info).unwrap();
        for event in events {
            event.with_event(|event| writer.event(event)).unwrap();
        }
        writer.finish().unwrap();
    }
}
