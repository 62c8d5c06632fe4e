//! How long failed polls take that do not wait: what a run of them takes beyond that is waiting, whatever call follows.

use vef_format::capture::event::{Action, Event};

/// Polls of a run from which on its mean says what a poll takes.
const LEAST_POLLS: u64 = 8;

/// What a failed poll of a task usually takes: the least mean of its runs so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UsualPoll {
    /// Duration and number of polls of the run with the least mean.
    least: Option<(u64, u64)>,
}

/// Durations of failed polls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Polled {
    /// From the start of each run to its end.
    pub(super) all: u64,
    /// The part beyond what so many polls usually take.
    pub(super) beyond: u64,
}

impl UsualPoll {
    /// The durations of the run `event`.
    pub(super) fn take(&mut self, event: &Event<'_>) -> Polled {
        let all = event.end.since(event.start).unwrap_or(0);
        let count = if let Action::Polls { count } = event.action { count.max(1) } else { 1 };
        let product = |one: u64, other: u64| u128::from(one) * u128::from(other);
        if count >= LEAST_POLLS
            && self.least.is_none_or(|(took, polls)| product(all, polls) < product(took, count))
        {
            self.least = Some((all, count));
        }
        let Some((took, polls)) = self.least else { return Polled { all, beyond: 0 } };
        let usual = product(took, count).div_ceil(polls.into());
        Polled { all, beyond: all.saturating_sub(u64::try_from(usual).unwrap_or(u64::MAX)) }
    }
}

impl Polled {
    pub(super) fn add(&mut self, other: Self) {
        self.all = self.all.saturating_add(other.all);
        self.beyond = self.beyond.saturating_add(other.beyond);
    }
}
