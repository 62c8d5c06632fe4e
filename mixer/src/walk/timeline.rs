//! The records of one task as they are made: what each waits for, and the time in front of it.

use crate::packed::{After, Body, Record};
use crate::task::{Task, Wait};
use vef_format::capture::event::Event;
use vef_format::units::Nanos;

/// The event that the next record's time counts from.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    previous: Option<Previous>,
    /// The highest number of a thread so far.
    highest_thread: u16,
}

/// The latest event that matters to what follows.
#[derive(Clone, Copy, Debug)]
struct Previous {
    end: Nanos,
    after: After,
    thread: u16,
}

impl Previous {
    /// The front of the task's time.
    fn zero(event: &Event<'_>) -> Self {
        Self { end: event.start, after: After::Start, thread: event.thread }
    }
}

impl Timeline {
    /// Hears of an event before anything else is said of it.
    #[inline(always)]
    pub(super) fn meet(&mut self, event: &Event<'_>) {
        if event.thread > self.highest_thread {
            self.highest_thread = event.thread;
        }
    }

    /// Rule 1: the task's time begins with `event`, unless it has begun; says whether it did.
    #[inline]
    pub(super) fn begin(&mut self, event: &Event<'_>) -> bool {
        let begins = self.previous.is_none();
        if begins {
            self.previous = Some(Previous::zero(event));
        }
        begins
    }

    /// A record at the start of `event`, timed from the previous event.
    #[inline(always)]
    pub(super) fn place(&mut self, task: &mut Task, event: &Event<'_>, body: Body) {
        let (time, after) = self.since_previous(task, event);
        add(task, event.start, time, after, body);
    }

    /// One of several records of `event`, each behind the one before (`chained`): the first has the time, the turn of
    /// the others comes `later`.
    #[inline(always)]
    pub(super) fn chain(
        &mut self,
        task: &mut Task,
        event: &Event<'_>,
        later: Nanos,
        chained: &mut Option<After>,
        (body, after): (Body, After),
    ) {
        let (start, time, previous) = match *chained {
            None => {
                let (time, previous) = self.since_previous(task, event);
                (event.start, time, previous)
            }
            Some(previous) => (later, 0, previous),
        };
        add(task, start, time, previous, body);
        *chained = Some(after);
    }

    /// The time from the previous event to the start of `event`, and what a record there waits for.
    #[inline(always)]
    fn since_previous(&mut self, task: &mut Task, event: &Event<'_>) -> (u64, After) {
        let zero = Previous::zero(event);
        let previous = self.previous.get_or_insert(zero);
        if let Some(time) = event.start.since(previous.end) {
            return (time, previous.after);
        }
        task.counts.negative_times += 1;
        // A call of another thread that is not over yet cannot have been waited for; what this record
        // surely follows is the record in front of it.
        (0, if previous.thread == event.thread { previous.after } else { After::Sent })
    }

    /// `event` is over, and what follows it waits for `after`; of several threads the latest end counts.
    #[inline(always)]
    pub(super) fn done(&mut self, event: &Event<'_>, after: After) {
        let latest = match self.previous {
            Some(previous) => previous.thread == event.thread || event.end >= previous.end,
            None => true,
        };
        if latest {
            self.previous = Some(Previous { end: event.end, after, thread: event.thread });
        }
    }

    /// When the turn of the further marks of `event` comes: when it ends, because before that, by the clocks, the messages that they
    /// wait for may not even be sent. Not so if calls of other threads came in between.
    #[inline(always)]
    pub(super) fn later(&self, event: &Event<'_>) -> Nanos {
        if self.highest_thread > 0 { event.start } else { event.end }
    }
}

/// Adds a record to `task`.
#[inline(always)]
pub(super) fn add(task: &mut Task, start: Nanos, time: u64, after: After, body: Body) {
    match after {
        After::Start | After::Sent => {}
        After::Received(number) => task.waits[number as usize] = Wait::Followed,
        After::Collective(number) => {
            task.reach = task.reach.max(task.counts.collectives as u32 - number);
        }
    }
    task.records.push(start.0, &Record { body, after, time });
}
