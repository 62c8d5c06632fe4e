//! Runs sequences: the engine's steps between the calls of the simulator.

use crate::engine::Engine;
use crate::error::{ReplayError, Run};
use crate::message::Sink;
use crate::walk::{Stop, Walk, Walked};
use vef_format::ids::MessageId;
use vef_format::text::Line;
use vef_format::units::Picos;

impl Engine {
    /// A sequence that the simulator has called starts its message at `at`, or when it is ready if that is later, and runs on.
    #[inline(always)]
    pub(crate) fn resume(&mut self, number: u32, at: Picos, out: &mut impl Sink) -> Run<()> {
        let mut walk = self.walk(number);
        let ready = walk.start().unwrap_or(at);
        let walked = walk.start_message(ready, at.max(ready), out).and_then(|complete| {
            walk.sequence.ahead = 1;
            walk.read_next(complete, out)
        });
        match walked {
            Ok(true) => Ok(()),
            Ok(false) => self.run(number, out),
            Err(stop) => Err(self.stopped(number, stop)),
        }
    }

    /// Runs a sequence from its first record.
    pub(crate) fn run_from_first(&mut self, number: u32, out: &mut impl Sink) -> Run<()> {
        let mut walk = self.walk(number);
        let read = walk.read_next(None, out);
        let rank = walk.sequence.rank.0 as usize;
        let skipped = walk.job.skipped.get(rank).copied().unwrap_or_default();
        walk.sequence.next.time = walk.sequence.next.time.saturating_sub(skipped.0);
        match read {
            Ok(true) => Ok(()),
            Ok(false) => self.run(number, out),
            Err(stop) => Err(self.stopped(number, stop)),
        }
    }

    /// What a sequence waited for has come.
    pub(crate) fn release(&mut self, number: u32, at: Picos, out: &mut impl Sink) -> Run<()> {
        let walked = self.walk(number).release(at, out);
        self.go_on(number, walked, out)
    }

    /// Runs a sequence from its next record, which waits for nothing any more.
    fn run(&mut self, number: u32, out: &mut impl Sink) -> Run<()> {
        let walked = self.walk(number).run(out);
        self.go_on(number, walked, out)
    }

    /// What follows from the end of a walk.
    #[inline(always)]
    pub(crate) fn go_on(
        &mut self,
        number: u32,
        walked: Result<Walked, Stop>,
        out: &mut impl Sink,
    ) -> Run<()> {
        match walked {
            Ok(Walked::Waiting) => Ok(()),
            Ok(Walked::Collective) => self.enter_and_run(number, out),
            Ok(Walked::Finished) => {
                self.unfinished -= 1;
                Ok(())
            }
            Err(stop) => Err(self.stopped(number, stop)),
        }
    }

    /// A sequence's next record, its part of a collective, starts; then it runs on.
    #[inline(never)]
    fn enter_and_run(&mut self, number: u32, out: &mut impl Sink) -> Run<()> {
        while !self.enter_next(number, out)? {
            match self.walk(number).run(out) {
                Ok(Walked::Collective) => {}
                walked => return self.go_on(number, walked, out),
            }
        }
        Ok(())
    }

    /// A sequence's next record, its part of a collective, starts; whether it then waits.
    fn enter_next(&mut self, number: u32, out: &mut impl Sink) -> Run<bool> {
        let sequence = &self.sequences[number as usize];
        let start = sequence.at;
        if let Line::Collective(part) = sequence.next.line(sequence.rank) {
            self.enter(number, part, out)?;
        }
        let sequence = &mut self.sequences[number as usize];
        sequence.at = start;
        sequence.records += 1;
        self.walk(number).read_next(None, out).map_err(|stop| self.stopped(number, stop))
    }

    /// A sequence, with the parts of the engine that its records use.
    #[inline(always)]
    pub(crate) fn walk(&mut self, number: u32) -> Walk<'_> {
        let Self { sequences, jobs, departures, collectives, .. } = self;
        Walk::new(number, &mut sequences[number as usize], jobs, departures, collectives)
    }

    #[cold]
    fn stopped(&self, number: u32, stop: Stop) -> Box<ReplayError> {
        let place = self.place(number);
        Box::new(match stop {
            Stop::Overflow => ReplayError::Overflow { place },
            Stop::Duplicate(id) => ReplayError::DuplicateId { place, id: MessageId(id) },
            Stop::Source(error) => ReplayError::Source(error),
        })
    }

    #[cold]
    pub(crate) fn overflow(&self, number: u32) -> Box<ReplayError> {
        self.stopped(number, Stop::Overflow)
    }
}
