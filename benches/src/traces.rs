//! Traces to replay, made up reproducibly and record by record, so that they may be larger than memory; or a real one
//! over and over.

use replay::{Engine, Job, Loaded, yardstick};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::Arc;
use vef_format::container::{self, About};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::operation::{Amounts, Operation};
use vef_format::record::{Dependency, Header, LocalCollective, Message, Record, Version};
use vef_format::text::{Reader, WriteError, Writer};
use vef_format::units::{Bytes, Picos, Ticks};

/// A trace to be made.
#[derive(Clone, Debug)]
pub enum Trace {
    /// Every task computes, sends 8 KiB to the next and receives from the one before, over and over: a message and a
    /// mark each time, the tasks in turn.
    Ring {
        /// Tasks, at least 2.
        tasks: u32,
        /// Messages a task.
        messages: u32,
    },
    /// Barriers of all tasks, with computing between.
    Barriers {
        /// Tasks.
        tasks: u32,
        /// Barriers.
        rounds: u32,
    },
    /// Every task computes, sends 8 KiB to each of its four neighbours in a torus of rows of 32, and waits for those of all four.
    Halo {
        /// Tasks, at least 64.
        tasks: u32,
        /// Exchanges.
        rounds: u32,
    },
    /// A trace so many times, one after the other in every task.
    Repeated {
        /// The header of the trace.
        header: Header,
        /// Its records.
        records: Vec<Record>,
        /// Messages that a replay of it hands out.
        messages: u64,
        /// How many times.
        times: u32,
    },
}

impl Trace {
    /// The trace of the text file `path` so many times.
    pub fn repeated(path: &Path, times: u32) -> Result<Self, Box<dyn Error>> {
        let mut reader = Reader::open(path)?;
        let header = *reader.header();
        let mut records = Vec::new();
        while let Some(line) = reader.next()? {
            records.push(line.to_record());
        }
        let loaded = Loaded::from_records(header, OpCodes::default(), records.iter().cloned())?;
        let mut once = Engine::builder().job(Job::loaded(&Arc::new(loaded))).engine()?;
        if let Some(stuck) = yardstick::run(&mut once, &yardstick::default_link())?.stuck {
            return Err(stuck.to_string().into());
        }
        let messages = once.stats().total().messages;
        Ok(Self::Repeated { header, records, messages, times })
    }

    /// Its first line.
    pub fn header(&self) -> Header {
        let none = Header {
            version: Version::V3,
            tasks: 0,
            messages: 0,
            communicators: 0,
            collectives: 0,
            local_collectives: 0,
            received: 0,
            clock: Picos(1000),
        };
        match *self {
            Self::Ring { tasks, messages } => {
                Header { tasks, messages: 2 * u64::from(tasks) * u64::from(messages), ..none }
            }
            Self::Barriers { tasks, rounds } => Header {
                tasks,
                communicators: 1,
                collectives: rounds.into(),
                local_collectives: u64::from(tasks) * u64::from(rounds),
                ..none
            },
            Self::Halo { tasks, rounds } => {
                Header { tasks, messages: 8 * u64::from(tasks) * u64::from(rounds), ..none }
            }
            Self::Repeated { header, times, .. } => Header {
                messages: header.messages * u64::from(times),
                collectives: header.collectives * u64::from(times),
                local_collectives: header.local_collectives * u64::from(times),
                ..header
            },
        }
    }

    /// Messages that a replay hands out; a barrier by dissemination has `tasks × ⌈log₂ tasks⌉`.
    pub fn messages(&self) -> u64 {
        match *self {
            Self::Repeated { messages, times, .. } => messages * u64::from(times),
            Self::Ring { tasks, messages } => u64::from(tasks) * u64::from(messages),
            Self::Halo { tasks, rounds } => 4 * u64::from(tasks) * u64::from(rounds),
            Self::Barriers { tasks, rounds } => {
                u64::from(tasks) * u64::from(rounds) * u64::from(tasks.next_power_of_two().ilog2())
            }
        }
    }

    /// All other lines, in the order in which they happen.
    pub fn records<E>(&self, mut take: impl FnMut(Record) -> Result<(), E>) -> Result<(), E> {
        let computing = |rank: u32| Ticks(1000 + u64::from(rank * 37 % 101));
        match *self {
            Self::Repeated { ref records, times, .. } => {
                // The ids of one time follow those of the time before.
                let ids = |id: fn(&Record) -> Option<u64>| {
                    records.iter().filter_map(id).max().map_or(0, |id| id + 1)
                };
                let lines =
                    ids(|record| if let Record::Message(line) = record { Some(line.id.0) } else { None });
                let operations =
                    ids(|record| if let Record::Collective(part) = record { Some(part.id.0) } else { None });
                for time in 0..u64::from(times) {
                    let line = |id: MessageId| MessageId(id.0 + time * lines);
                    let operation = |id: CollectiveId| CollectiveId(id.0 + time * operations);
                    let after = |after: Dependency| match after {
                        // The first record of a task now comes behind its last, without waiting for anything.
                        Dependency::Start => Dependency::Start,
                        Dependency::Sent(id) => Dependency::Sent(line(id)),
                        Dependency::Received(id) => Dependency::Received(line(id)),
                        Dependency::Collective(id) => Dependency::Collective(operation(id)),
                    };
                    for record in records {
                        match *record {
                            Record::Communicator { .. } if time > 0 => {}
                            Record::Communicator { .. } => take(record.clone())?,
                            Record::Message(message) => take(Record::Message(Message {
                                id: line(message.id),
                                after: after(message.after),
                                ..message
                            }))?,
                            Record::Collective(part) => take(Record::Collective(LocalCollective {
                                id: operation(part.id),
                                after: after(part.after),
                                ..part
                            }))?,
                        }
                    }
                }
                Ok(())
            }
            Self::Ring { tasks, messages } => {
                for round in 0..u64::from(messages) {
                    // In each round the messages have the first ids, the marks the others.
                    let first = round * 2 * u64::from(tasks);
                    for rank in 0..tasks {
                        let before = (rank + tasks - 1) % tasks;
                        let received = first.wrapping_sub(2 * u64::from(tasks)).wrapping_add(before.into());
                        take(Record::Message(Message {
                            id: MessageId(first + u64::from(rank)),
                            src: Rank(rank),
                            dst: Rank((rank + 1) % tasks),
                            bytes: Bytes(8192),
                            awaited: round + 1 < u64::from(messages),
                            after: match round {
                                0 => Dependency::Start,
                                _ => Dependency::Received(MessageId(received)),
                            },
                            time: computing(rank),
                        }))?;
                    }
                    for rank in 0..tasks {
                        take(Record::Message(Message {
                            id: MessageId(first + u64::from(tasks) + u64::from(rank)),
                            src: Rank(rank),
                            dst: Rank(rank),
                            bytes: Bytes(0),
                            awaited: false,
                            after: Dependency::Sent(MessageId(first + u64::from(rank))),
                            time: Ticks(20),
                        }))?;
                    }
                }
                Ok(())
            }
            Self::Halo { tasks, rounds } => {
                // A task's neighbours, each beside the one by which it is that neighbour's.
                let steps = [1, tasks - 1, 32, tasks - 32];
                let back = [1, 0, 3, 2];
                let id = |round: u32, rank: u32, nth: u64| {
                    MessageId((u64::from(round) * u64::from(tasks) + u64::from(rank)) * 8 + nth)
                };
                for round in 0..rounds {
                    for rank in 0..tasks {
                        for (nth, step) in (0u64..).zip(steps) {
                            take(Record::Message(Message {
                                id: id(round, rank, nth),
                                src: Rank(rank),
                                dst: Rank((rank + step) % tasks),
                                bytes: Bytes(8192),
                                awaited: true,
                                after: match (nth, round) {
                                    (0, 0) => Dependency::Start,
                                    (0, _) => Dependency::Sent(id(round - 1, rank, 7)),
                                    _ => Dependency::Sent(id(round, rank, nth - 1)),
                                },
                                time: if nth == 0 { computing(rank) } else { Ticks(20) },
                            }))?;
                        }
                    }
                    for rank in 0..tasks {
                        for (nth, (step, back)) in (0u64..).zip(steps.into_iter().zip(back)) {
                            take(Record::Message(Message {
                                id: id(round, rank, 4 + nth),
                                src: Rank(rank),
                                dst: Rank(rank),
                                bytes: Bytes(0),
                                awaited: false,
                                after: Dependency::Received(id(round, (rank + step) % tasks, back)),
                                time: Ticks(0),
                            }))?;
                        }
                    }
                }
                Ok(())
            }
            Self::Barriers { tasks, rounds } => {
                let members = (0..tasks).map(Rank).collect();
                take(Record::Communicator { id: CommId(0), members })?;
                for round in 0..rounds {
                    for rank in 0..tasks {
                        let before = round.checked_sub(1).map(|before| CollectiveId(before.into()));
                        take(Record::Collective(LocalCollective {
                            id: CollectiveId(round.into()),
                            comm: CommId(0),
                            op: Operation::Barrier.default_code(),
                            task: Rank(rank),
                            amounts: Amounts::default(),
                            after: before.map_or(Dependency::Start, Dependency::Collective),
                            time: computing(rank),
                        }))?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Writes it as text.
    pub fn write_text(&self, path: &Path) -> Result<(), WriteError> {
        let mut writer = Writer::new(create(path)?, &self.header())?;
        self.records(|record| writer.line(&record.borrowed()))?;
        writer.finish().map(drop)
    }

    /// Writes it as a container.
    pub fn write_container(&self, path: &Path, settings: container::Settings) -> Result<(), WriteError> {
        let mut writer = container::Writer::new(create(path)?, &self.header(), &About::default(), settings)?;
        self.records(|record| writer.line(&record.borrowed()))?;
        writer.finish().map(drop)
    }
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    File::create(path).map(BufWriter::new)
}
