//! Traces to replay, made up reproducibly and record by record, so that they may be larger than memory.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use vef_format::container::{self, About, ContainerWriteError};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::record::{Communicator, Dependency, Header, LocalCollective, Message, Record, Version};
use vef_format::text::{WriteError, Writer};
use vef_format::units::{Bytes, Picos, Ticks};

/// A trace to be made.
#[derive(Clone, Copy, Debug)]
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
}

impl Trace {
    /// Its first line.
    pub fn header(self) -> Header {
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
        match self {
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
        }
    }

    /// Messages that a replay hands out; a barrier by dissemination has `tasks × ⌈log₂ tasks⌉`.
    pub fn messages(self) -> u64 {
        match self {
            Self::Ring { tasks, messages } => u64::from(tasks) * u64::from(messages),
            Self::Barriers { tasks, rounds } => {
                u64::from(tasks) * u64::from(rounds) * u64::from(tasks.next_power_of_two().ilog2())
            }
        }
    }

    /// All other lines, in the order in which they happen.
    pub fn records<E>(self, mut take: impl FnMut(Record) -> Result<(), E>) -> Result<(), E> {
        let computing = |rank: u32| Ticks(1000 + u64::from(rank * 37 % 101));
        match self {
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
                            awaited: true,
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
            Self::Barriers { tasks, rounds } => {
                let members = (0..tasks).map(Rank).collect();
                take(Record::Communicator(Communicator { id: CommId(0), members }))?;
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
    pub fn write_text(self, path: &Path) -> Result<(), WriteError> {
        let mut writer = Writer::new(create(path)?, &self.header())?;
        self.records(|record| match &record {
            Record::Communicator(communicator) => writer.communicator(communicator.id, &communicator.members),
            Record::Message(message) => writer.message(message),
            Record::Collective(part) => writer.collective(part),
        })?;
        writer.finish().map(drop)
    }

    /// Writes it as a container.
    pub fn write_container(
        self,
        path: &Path,
        settings: container::Settings,
    ) -> Result<(), ContainerWriteError> {
        let mut writer = container::Writer::new(create(path)?, &self.header(), &About::default(), settings)?;
        self.records(|record| match &record {
            Record::Communicator(communicator) => writer.communicator(communicator.id, &communicator.members),
            Record::Message(message) => writer.message(message),
            Record::Collective(part) => writer.collective(part),
        })?;
        writer.finish().map(drop)
    }
}

fn create(path: &Path) -> io::Result<BufWriter<File>> {
    File::create(path).map(BufWriter::new)
}
