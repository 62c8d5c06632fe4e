//! What follows from a call that may fail, kept until it has succeeded.

use crate::events::Collective;
use crate::message::{Left, Met, Next, Sink, Started};
use std::ops::Range;
use vef_format::units::Picos;

/// A sink that keeps what it is told.
pub(crate) struct Kept {
    told: Vec<Told>,
    watches: bool,
}

/// What a [`Sink`] is told, a variant for each of its methods.
enum Told {
    Take(Next),
    Collective(Collective),
    Started(Started),
    Left(Left),
    Met(Met),
    Opened([u32; 2], Range<u32>, Picos),
    Over(u32),
}

impl Kept {
    /// In place of `out` for a while.
    pub(crate) fn in_place_of(out: &impl Sink) -> Self {
        Self { told: Vec::new(), watches: out.watches() }
    }

    /// Tells it all to `out`, in its order.
    pub(crate) fn tell(self, out: &mut impl Sink) {
        for told in self.told {
            match told {
                Told::Take(next) => out.take(next),
                Told::Collective(collective) => out.collective(&collective),
                Told::Started(started) => out.started(&started),
                Told::Left(left) => out.left(&left),
                Told::Met(met) => out.met(&met),
                Told::Opened([job, of], tasks, start) => out.opened(job, of, tasks, start),
                Told::Over(job) => out.over(job),
            }
        }
    }
}

impl Sink for Kept {
    fn take(&mut self, next: Next) {
        self.told.push(Told::Take(next));
    }

    fn collective(&mut self, collective: &Collective) {
        self.told.push(Told::Collective(*collective));
    }

    fn watches(&self) -> bool {
        self.watches
    }

    fn started(&mut self, started: &Started) {
        self.told.push(Told::Started(*started));
    }

    fn left(&mut self, left: &Left) {
        self.told.push(Told::Left(*left));
    }

    fn met(&mut self, met: &Met) {
        self.told.push(Told::Met(*met));
    }

    fn opened(&mut self, job: u32, of: u32, tasks: Range<u32>, start: Picos) {
        self.told.push(Told::Opened([job, of], tasks, start));
    }

    fn over(&mut self, job: u32) {
        self.told.push(Told::Over(job));
    }
}
