//! What was captured of a job's time: the run between `MPI_Init` and `MPI_Finalize`, and where it went.

use results::ByState;
use results::simulation::{Finish, JobSpan};
use vef_format::account::{ByPart, TimePart};
use vef_format::container::Span;
use vef_format::state::State;
use vef_format::units::Picos;

use crate::settings::Workload;

/// The captured span of a job.
pub(crate) struct Spans {
    /// The latest end of `MPI_Init`, as captured.
    initialisation: Picos,
    /// Simulated time of the latest end of `MPI_Init`.
    simulated: Picos,
    from_init: bool,
    /// The longest span of a task, as captured.
    captured: Option<Picos>,
    /// Where the time of all tasks went, in picoseconds.
    times: Option<ByPart>,
}

impl Spans {
    /// The job began so much later.
    pub(crate) fn delay(&mut self, by: Picos) {
        self.simulated = self.simulated.saturating_add(by);
    }

    /// From a trace with ticks of length `clock`.
    /// `factors` are those of computing times, as for [`replay::Job::time_factors`].
    pub(crate) fn new(
        spans: &[Span],
        times: Option<ByPart>,
        clock: Picos,
        workload: &Workload,
        factors: &[f64],
    ) -> Self {
        let picos = |ticks: u64| Picos(ticks.saturating_mul(clock.0));
        let latest = spans.iter().map(|span| span.initialised.0).max().unwrap_or_default();
        let initialisation = picos(latest);
        // Tasks start to count at different times if they were launched one after the other: each has its own span.
        let span = |span: &Span| Some(span.finalised?.0.saturating_sub(span.initialised.0));
        let captured: Option<Vec<u64>> = spans.iter().map(span).collect();
        let scaled = |(rank, span): (usize, &Span)| {
            let initialised = picos(span.initialised.0);
            match factors.get(rank).or(factors.last()) {
                None | Some(1.0) => initialised,
                Some(factor) => Picos((initialised.0 as f64 * factor).round() as u64),
            }
        };
        let before = match workload.from_launch {
            true => spans.iter().enumerate().map(scaled).max().unwrap_or_default(),
            false => Picos::ZERO,
        };
        Self {
            initialisation,
            simulated: workload.start.saturating_add(before),
            from_init: !workload.from_launch,
            captured: captured.and_then(|spans| spans.into_iter().max()).map(picos),
            times: times.map(|times| {
                let mut scaled = ByPart::default();
                TimePart::ALL.iter().for_each(|&part| scaled.add(part, picos(times.of(part)).0));
                scaled
            }),
        }
    }

    /// Where the time of all tasks went, by the state in which a replay has it.
    pub(crate) fn times(&self) -> Option<ByState<u64>> {
        let times = self.times?;
        let mut states = ByState::default();
        for &part in TimePart::ALL {
            let state = match part {
                TimePart::StartUp if self.from_init => continue,
                // A replay has a core for each task.
                TimePart::Preempted => continue,
                TimePart::StartUp | TimePart::Outside | TimePart::Own => State::Computing,
                TimePart::Window | TimePart::File | TimePart::Unknown => State::Computing,
                // Of polls, nearly all time is that of failed ones before a reception.
                TimePart::Message | TimePart::Polling => State::Reception,
                TimePart::Send => State::Send,
                TimePart::Collective | TimePart::Communicator => State::Collective,
            };
            let sum: &mut u64 = &mut states[state];
            *sum = sum.saturating_add(times.of(part));
        }
        Some(states)
    }

    /// The captured and the simulated span.
    pub(crate) fn report(&self, finish: &Finish) -> JobSpan {
        JobSpan {
            initialisation_ps: self.initialisation.0,
            from_init: self.from_init,
            captured_ps: self.captured.map(|captured| captured.0),
            simulated_ps: finish.max_ps.saturating_sub(self.simulated.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::units::Ticks;

    #[test]
    fn a_job_ends_with_its_last_task() {
        let span =
            |initialised, finalised| Span { initialised: Ticks(initialised), in_records: true, finalised };
        let spans = [span(100, Some(Ticks(900))), span(150, Some(Ticks(800)))];
        let mut workload = Workload { from_launch: true, ..Workload::new("t.vefx") };
        let report = |workload: &Workload, spans: &[Span], finish| {
            Spans::new(spans, None, Picos(1000), workload, &[]).report(&Finish::of(finish))
        };
        let finish = || vec![900_000, 750_000];
        let whole = report(&workload, &spans, finish());
        assert_eq!((whole.initialisation_ps, whole.captured_ps), (150_000, Some(800_000)));
        assert_eq!(whole.simulated_ps, 750_000);
        let killed = report(&workload, &[spans[0], span(150, None)], finish());
        assert_eq!(killed.captured_ps, None);
        workload.from_launch = false;
        let from_init = report(&workload, &spans, finish());
        assert_eq!((from_init.captured_ps, from_init.simulated_ps), (Some(800_000), 900_000));
        workload.from_launch = true;
        // The first rank then initialises for 200 µs, the second one for 75 µs.
        let scaled =
            Spans::new(&spans, None, Picos(1000), &workload, &[2.0, 0.5]).report(&Finish::of(finish()));
        assert_eq!(scaled.simulated_ps, 700_000);
    }
}
