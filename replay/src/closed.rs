//! Which jobs were opened beside those of the builder, and which of them are closed.

use std::collections::BTreeSet;
use vef_format::units::Picos;

/// The jobs of an engine that were opened beside those of its builder.
#[derive(Debug)]
pub(crate) struct Instances {
    /// Jobs of the builder, the first ones.
    pub(crate) built: u32,
    /// Those that are closed, by number.
    closed: BTreeSet<u32>,
    /// The same, with the tasks that their places have, by these.
    by_room: BTreeSet<(u32, u32)>,
    /// When the last task of any closed one finished.
    pub(crate) finish: Picos,
}

impl Instances {
    pub(crate) fn beside(built: u32) -> Self {
        Self { built, closed: BTreeSet::new(), by_room: BTreeSet::new(), finish: Picos::ZERO }
    }

    /// Notes that an instance is closed; `room` is the number of tasks of its place. False if it was closed before.
    pub(crate) fn close(&mut self, job: u32, room: u32) -> bool {
        self.by_room.insert((room, job));
        self.closed.insert(job)
    }

    /// The last of the closed ones.
    pub(crate) fn last(&self) -> Option<u32> {
        self.closed.last().copied()
    }

    /// Forgets a closed instance, because its place is gone or taken; `room` is the number of tasks of that.
    pub(crate) fn remove(&mut self, job: u32, room: u32) {
        self.closed.remove(&job);
        self.by_room.remove(&(room, job));
    }

    /// The first of the closed ones in the smallest of the places for that many tasks. A much larger place is left to larger instances.
    pub(crate) fn smallest_for(&self, tasks: u32) -> Option<(u32, u32)> {
        let fits = (tasks, 0)..=(tasks.saturating_mul(2), u32::MAX);
        self.by_room.range(fits).next().map(|&(room, job)| (job, room))
    }

    pub(crate) fn is_closed(&self, job: u32) -> bool {
        self.closed.contains(&job)
    }
}
