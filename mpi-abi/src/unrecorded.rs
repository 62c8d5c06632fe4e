//! The time in which a task's calls were not recorded, of a capture of one phase (`vef run --only-phase`).

use vef_format::capture::event::{Action, Event};
use vef_format::units::Nanos;

/// Follows the phases of a task.
#[derive(Debug)]
pub(crate) struct Unrecorded {
    /// The phase in which calls are recorded.
    phase: String,
    /// How many of its entries are open.
    open: u32,
    /// Outside the phase: since when.
    since: Option<Nanos>,
    /// Time outside the phase before that.
    before: u64,
    /// By thread: what of this time was before the end of its latest event.
    seen: Vec<u64>,
}

impl Unrecorded {
    /// Of a task whose calls are recorded in `phase` only.
    pub(crate) fn outside(phase: &str) -> Self {
        Self { phase: phase.to_owned(), open: 0, since: None, before: 0, seen: Vec::new() }
    }

    /// `MPI_Init` returned.
    pub(crate) fn begin(&mut self, at: Nanos) {
        if self.open == 0 {
            self.since = Some(at);
        }
    }

    /// Whether calls are recorded.
    pub(crate) fn is_inside(&self) -> bool {
        self.since.is_none()
    }

    /// How much of the thread's time between its previous event and this one, in nanoseconds, was outside the phase. Communicators are made there, too.
    pub(crate) fn before(&mut self, event: &Event<'_>) -> u64 {
        let passed = self.until(event.start);
        match event.action {
            Action::Phase { begin, name } if name == self.phase => {
                self.open = if begin { self.open.saturating_add(1) } else { self.open.saturating_sub(1) };
                (self.before, self.since) = (passed, (self.open == 0).then_some(event.start));
            }
            // It looks back.
            Action::Preempted => return 0,
            _ => {}
        }
        let thread = usize::from(event.thread);
        if thread >= self.seen.len() {
            self.seen.resize(thread + 1, 0);
        }
        // Definitions lie within calls.
        let seen = self.seen[thread];
        self.seen[thread] = self.until(event.end).max(seen);
        passed.saturating_sub(seen)
    }

    /// The time outside the phase until then.
    fn until(&self, at: Nanos) -> u64 {
        self.before.saturating_add(self.since.and_then(|since| at.since(since)).unwrap_or(0))
    }
}
