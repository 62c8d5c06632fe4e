//! The ranks of a simulation, with its times and the causes of waits.

use super::drawing::Drawing;
use super::ranks::{Known, Ranks};
use super::replayed::open;
use super::settings::{Settings, TimelineError};
use replay::{Engine, Follow, Left, Met, OpCodes, Sink, Started};
use std::path::Path;

/// Runs a simulation from its beginning to its end under the eyes of a follower, each time in the same way. `false`: it failed.
pub type Run<'a> = &'a dyn Fn(&mut dyn Follow) -> bool;

/// A trace of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedJob<'a> {
    /// Its name, if there are several.
    pub name: Option<&'a str>,
    /// Text or container.
    pub path: &'a Path,
    /// The operations of a text's codes, if not the default ones.
    pub op_codes: Option<&'a OpCodes>,
}

/// Draws the ranks of the simulation of `jobs` that `run` runs.
pub(super) fn draw(
    jobs: &[SimulatedJob<'_>],
    run: Run<'_>,
    settings: &Settings,
    drawing: &mut Drawing<'_>,
) -> Result<(), TimelineError> {
    let known = |job: &SimulatedJob<'_>| {
        let name = job.name.map_or(String::new(), |name| format!("{name}: "));
        Ok((name, open(job.path, job.op_codes)?.1))
    };
    let known = jobs.iter().map(known).collect::<Result<Vec<_>, TimelineError>>()?;
    drawing.begin(None)?;
    let mut follower = Follower { ranks: Ranks::new(drawing), known, settings };
    let done = run(&mut follower);
    let drawn = follower.ranks.finish();
    if done { drawn } else { Err(TimelineError::Simulate) }
}

struct Follower<'a, 'd> {
    ranks: Ranks<'a, 'd>,
    known: Vec<(String, Known)>,
    settings: &'a Settings,
}

impl Follow for Follower<'_, '_> {
    fn begins(&mut self, engine: &Engine) {
        for (job, (name, known)) in (0..engine.jobs()).zip(self.known.drain(..)) {
            self.ranks.add(&name, engine.tasks(job), self.settings, known);
        }
        self.ranks.by_cause(engine);
    }

    fn started(&mut self, started: &Started) {
        Sink::started(&mut self.ranks, started);
    }

    fn left(&mut self, left: &Left) {
        Sink::left(&mut self.ranks, left);
    }

    fn met(&mut self, met: &Met) {
        Sink::met(&mut self.ranks, met);
    }
}
