//! The records of a window of time, unpacked task by task: each with all that can be said of it before the lines
//! have ids. A task's own tables are so read in one go, and [`crate::resolve`], which goes by time, finds what it
//! needs of a record in one place.

use crate::channels::NONE;
use crate::matching::{Fate, Partners};
use crate::order::Sweep;
use crate::packed::{After, Body, Unpacker};
use crate::task::Task;
use vef_format::ids::Rank;
use vef_format::operation::{Amounts, OpCode, OpCodes, Operation};
use vef_format::units::Bytes;

/// A record before it has an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    /// When it began, on the clock of all.
    pub(crate) start: u64,
    /// Computing time in front of it.
    pub(crate) time: u64,
    /// What it waits for.
    pub(crate) awaits: Awaits,
    /// What it is.
    pub(crate) what: What,
}

/// What a record waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaits {
    /// Nothing.
    Start,
    /// The message or mark in front of it.
    Sent,
    /// The how manyth message of which task.
    Received { source: Rank, message: u32 },
    /// A message that is not in the trace.
    Lost,
    /// The how manyth collective of its task.
    Collective(u32),
}

/// What a record is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A local mark.
    Mark,
    /// The how manyth message of its task.
    Message { number: u32, dst: Rank, bytes: Bytes, fate: Fate },
    /// The operation at a position of a communicator (by identity).
    Collective { comm: u32, position: u64, code: OpCode, amounts: Amounts },
}

/// The records of a window.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Whose turn it is, by time.
    pub(crate) turns: Vec<u32>,
    /// The records, task by task.
    pub(crate) records: Vec<Prepared>,
    /// Where each task's records begin; one more at the end.
    pub(crate) begins: Vec<u32>,
}

/// Prepares window after window.
pub(crate) struct Preparer<'a> {
    tasks: &'a [Task],
    partners: &'a [Partners],
    sweep: Sweep<'a>,
    codes: [OpCode; Operation::ALL.len()],
    places: Vec<Place>,
}

/// Where in its records a task is.
struct Place {
    records: Unpacker,
    messages: u32,
    /// The task's communicators, and how many calls on each there were.
    calls: Vec<(u32, u64)>,
}

impl<'a> Preparer<'a> {
    /// Before the first window of `sweep`.
    pub(crate) fn new(
        tasks: &'a [Task],
        partners: &'a [Partners],
        sweep: Sweep<'a>,
        codes: &OpCodes,
    ) -> Self {
        let place = |task: &Task| Place {
            records: Unpacker::default(),
            messages: 0,
            calls: task.calls.iter().map(|calls| (calls.comm.0, 0)).collect(),
        };
        let mut table = [OpCode(0); Operation::ALL.len()];
        for (code, &operation) in table.iter_mut().zip(Operation::ALL) {
            *code = codes.code(operation).unwrap_or(operation.default_code());
        }
        Self { tasks, partners, sweep, codes: table, places: tasks.iter().map(place).collect() }
    }

    /// Prepares the next window; `false`: there is none.
    pub(crate) fn next(&mut self, window: &mut Window) -> bool {
        let Window { turns, records, begins } = window;
        let Self { tasks, partners, sweep, codes, places } = self;
        records.clear();
        begins.clear();
        let more = sweep.next(turns, |rank, start| {
            let at = rank as usize;
            if begins.len() <= at {
                begins.resize(at + 1, records.len() as u32);
            }
            if let Some(record) = places[at].next(&tasks[at], &partners[at], codes, start) {
                records.push(record);
            }
        });
        begins.resize(tasks.len() + 1, records.len() as u32);
        more
    }
}

impl Place {
    #[inline]
    fn next(
        &mut self,
        task: &Task,
        partners: &Partners,
        codes: &[OpCode; Operation::ALL.len()],
        start: u64,
    ) -> Option<Prepared> {
        let packed = self.records.next(&task.records)?;
        let awaits = match packed.after {
            After::Start => Awaits::Start,
            After::Sent => Awaits::Sent,
            After::Collective(number) => Awaits::Collective(number),
            After::Received(receive) => {
                match (partners.messages[receive as usize], task.receives.of(receive)) {
                    (NONE, _) | (_, None) => Awaits::Lost,
                    (message, Some(channel)) => Awaits::Received { source: channel.peer, message },
                }
            }
        };
        let what = match packed.body {
            Body::Mark => What::Mark,
            Body::Message { dst, bytes } => {
                let number = self.messages;
                self.messages += 1;
                What::Message { number, dst, bytes, fate: partners.fates[number as usize] }
            }
            Body::Collective { slot, operation, amounts } => {
                let (comm, calls) = &mut self.calls[slot as usize];
                *calls += 1;
                What::Collective {
                    comm: *comm,
                    position: *calls - 1,
                    code: codes[operation as usize],
                    amounts,
                }
            }
        };
        Some(Prepared { start, time: packed.time, awaits, what })
    }
}
