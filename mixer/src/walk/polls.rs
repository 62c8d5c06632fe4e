//! How long failed polls take that do not wait: what a run of them takes beyond that is waiting, whatever call follows.

use vef_format::capture::event::{Action, Event, Partitioned};

/// Polls of a run from which on its mean says what a poll takes.
const LEAST_POLLS: u64 = 8;

/// Nanoseconds that a poll takes at most unless it waits.
const MOST: u64 = 10_000;

/// What a failed poll of a task usually takes: the least mean of its runs so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsualPoll {
    /// Duration and number of polls of the run with the least mean.
    least: (u64, u64),
}

impl Default for UsualPoll {
    fn default() -> Self {
        Self { least: (MOST, 1) }
    }
}

/// Durations of failed polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Polled {
    /// From the start of each run to its end.
    pub(super) all: u64,
    /// The part beyond what so many polls usually take.
    pub(super) beyond: u64,
    /// Whether some looked for messages, as `MPI_Iprobe` does.
    pub(super) for_messages: bool,
}

/// Whether the failed polls in front of a record of this call waited for what it completes, or finds.
#[inline(always)]
pub(super) fn waits_by_polls(action: &Action<'_>) -> bool {
    matches!(
        action,
        Action::Complete(_)
            | Action::Receive(_)
            | Action::Probe { .. }
            | Action::PostReceive(_)
            | Action::Partitioned(Partitioned::Arrived { .. })
    )
}

impl UsualPoll {
    /// The durations of the run `event`.
    pub(super) fn take(&mut self, event: &Event<'_>) -> Polled {
        let all = event.end.since(event.start).unwrap_or(0);
        let count = if let Action::Polls { count } = event.action { count.max(1) } else { 1 };
        let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
        if count >= LEAST_POLLS && product(all, self.least.1) < product(self.least.0, count) {
            self.least = (all, count);
        }
        let (took, polls) = self.least;
        let usual = product(took, count).div_ceil(polls.into());
        Polled {
            all,
            beyond: all.saturating_sub(u64::try_from(usual).unwrap_or(u64::MAX)),
            for_messages: false,
        }
    }
}

impl Polled {
    /// What of them is no computing: all if they `waited` for what follows, else what they took beyond the usual.
    pub(super) fn waiting(&self, waited: bool) -> u64 {
        if waited { self.all } else { self.beyond }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.beyond = self.beyond.saturating_add(other.beyond);
        self.for_messages |= other.for_messages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::capture::event::CallSlot;
    use vef_format::units::Nanos;

    #[test]
    fn no_poll_takes_more_than_ten_microseconds() {
        let mut usual = UsualPoll::default();
        let mut beyond = |took: u64, count: u64| {
            let action = Action::Polls { count };
            let event =
                Event { start: Nanos(50), end: Nanos(50 + took), thread: 0, call: CallSlot::NONE, action };
            usual.take(&event).beyond
        };
        assert_eq!([beyond(9_000, 1), beyond(8_012_000, 1), beyond(50_000, 4)], [0, 8_002_000, 10_000]);
        // From then on a poll takes 1 µs; few say nothing.
        assert_eq!(
            [beyond(10, 7), beyond(8_000, 8), beyond(12_000, 2), beyond(u64::MAX - 50, u64::MAX)],
            [0, 0, 10_000, 0]
        );
    }
}
