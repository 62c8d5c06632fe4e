//! Who follows a simulation from outside of the simulator: timelines are made of this.

use crate::engine::Engine;
use crate::message::{Left, Met, Started};

/// Follows the tasks of a simulation, record by record.
pub trait Follow {
    /// The engine of the simulation, before anything happens.
    fn begins(&mut self, engine: &Engine);

    /// As [`Sink::started`](crate::Sink::started).
    fn started(&mut self, started: &Started);

    /// As [`Sink::left`](crate::Sink::left).
    fn left(&mut self, left: &Left);

    /// As [`Sink::met`](crate::Sink::met).
    fn met(&mut self, met: &Met);
}

/// Nobody.
impl Follow for () {
    fn begins(&mut self, _: &Engine) {}
    fn started(&mut self, _: &Started) {}
    fn left(&mut self, _: &Left) {}
    fn met(&mut self, _: &Met) {}
}

/// Somebody, perhaps.
impl<'a> Follow for Option<&'a mut (dyn Follow + 'a)> {
    fn begins(&mut self, engine: &Engine) {
        if let Some(follow) = self {
            follow.begins(engine);
        }
    }

    #[inline(always)]
    fn started(&mut self, started: &Started) {
        if let Some(follow) = self {
            follow.started(started);
        }
    }

    #[inline(always)]
    fn left(&mut self, left: &Left) {
        if let Some(follow) = self {
            follow.left(left);
        }
    }

    fn met(&mut self, met: &Met) {
        if let Some(follow) = self {
            follow.met(met);
        }
    }
}
