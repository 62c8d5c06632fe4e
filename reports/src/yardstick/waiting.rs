//! Who waits for whom in the replay.

use replay::{Cause, Engine, Labels, Left, Started, WaitPair, WaitPlace, WaitSum, WaitSums, Waits};
use results::simulation::{self, WaitingFor, WaitingIn, WaitsReport};

/// The waits of the replay of one trace.
#[derive(Debug)]
pub(super) struct Waiting {
    waits: Waits,
    sums: WaitSums,
}

impl Waiting {
    /// For an engine that has not begun.
    pub(super) fn new(engine: &Engine, labels: Option<Labels>) -> Self {
        Self { waits: Waits::new(engine), sums: WaitSums::new(vec![labels]) }
    }

    pub(super) fn started(&mut self, started: &Started) {
        let Self { waits, sums } = self;
        waits.started(started, |wait| sums.add(wait));
    }

    pub(super) fn left(&mut self, left: &Left) {
        self.waits.left(left);
    }

    pub(super) fn report(&self) -> WaitsReport {
        let place = |(place, sum): (WaitPlace, WaitSum)| WaitingIn {
            cause: cause(place.cause),
            function: place.function.as_deref().map(str::to_owned),
            phase: place.phase.as_deref().map(str::to_owned),
            waits: sum.waits,
            time_ps: sum.time,
        };
        let pair = |(pair, sum): (WaitPair, WaitSum)| WaitingFor {
            job: pair.job,
            task: pair.task.0,
            on_task: pair.on.0,
            cause: cause(pair.cause),
            waits: sum.waits,
            time_ps: sum.time,
        };
        let (pairs, others) = self.sums.pairs();
        let places = self.sums.places().into_iter().map(place).collect();
        WaitsReport::new(places, pairs.into_iter().map(pair).collect(), others.waits > 0)
    }
}

fn cause(cause: Cause) -> simulation::Cause {
    match cause {
        Cause::LateSender => simulation::Cause::LateSender,
        Cause::Message => simulation::Cause::Message,
        Cause::LateMember => simulation::Cause::LateMember,
        Cause::Collective => simulation::Cause::Collective,
        Cause::Send => simulation::Cause::Send,
    }
}
