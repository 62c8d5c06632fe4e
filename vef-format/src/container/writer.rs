//! Writes a container: begun blocks a task, then the index.

use super::block::{Block, FRAME, Kind, MAGIC, MAGIC_END, MOST_RAW, START, VERSION, footer};
use super::code::{Before, Packed, Runs};
use super::index::{Index, Spot, about_to_bytes};
use super::{About, BUFFERED, ContainerWriteError};
use crate::id_set::IdSet;
use crate::ids::{CommId, Rank};
use crate::record::{Header, LocalCollective, Message};
use crate::text::WriteError;
use std::collections::HashMap;
use std::io::Write;

/// Bytes of a block of records: so many if the begun blocks of all tasks stay within [`BUFFERED`], else fewer.
const FULL: usize = 64 << 10;
/// And at least so many.
const SMALL: usize = 1 << 10;

/// How to write a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Compress blocks with zstd.
    pub compress: bool,
    /// Keep the order in which records of different tasks are given (about two bytes a record, less where it is regular).
    pub keep_order: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { compress: cfg!(feature = "zstd"), keep_order: true }
    }
}

/// Writes a container; records of a task come in its program order.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    offset: u64,
    settings: Settings,
    header: Header,
    index: Index,
    tasks: HashMap<u32, Begun>,
    communicators: Begun,
    order: Begun,
    runs: Runs,
    messages: u64,
    communicators_given: u64,
    local_collectives: u64,
    collectives: IdSet,
    collectives_given: u64,
}

/// A block in the making.
#[derive(Debug, Default)]
struct Begun {
    content: Packed,
    items: u32,
    before: Before,
}

impl<W: Write> Writer<W> {
    /// Begins a container of the trace with `header`, whose counts [`Writer::finish`] compares with what was written.
    pub fn new(
        out: W,
        header: &Header,
        about: &About,
        settings: Settings,
    ) -> Result<Self, ContainerWriteError> {
        let mut writer = Self {
            out,
            offset: START as u64,
            settings,
            header: *header,
            index: Index::default(),
            tasks: HashMap::new(),
            communicators: Begun::default(),
            order: Begun::default(),
            runs: Runs::default(),
            messages: 0,
            communicators_given: 0,
            local_collectives: 0,
            collectives: IdSet::default(),
            collectives_given: 0,
        };
        writer.out.write_all(&MAGIC)?;
        writer.out.write_all(&[VERSION])?;
        writer.out.write_all(&MAGIC_END)?;
        let content = about_to_bytes(header, about);
        fits("what is said about the trace", content.bytes().len())?;
        let spot = writer.block(Kind::About, 0, 1, content.bytes())?;
        writer.index.about.push(spot);
        Ok(writer)
    }

    /// Writes the communicator `id` of `members`, world ranks in communicator-rank order.
    pub fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), ContainerWriteError> {
        if members.is_empty() {
            return Err(WriteError::NoMembers(id.0).into());
        }
        for &member in members {
            self.known(member)?;
        }
        self.communicators_given += 1;
        let begun = &mut self.communicators;
        begun.items += 1;
        begun.content.put(&[id.0.into(), members.len() as u64]);
        let mut runs = Runs::default();
        for &member in members {
            runs.put(&mut begun.content, member.0);
        }
        runs.end(&mut begun.content);
        if begun.content.bytes().len() >= FULL { self.end_communicators() } else { Ok(()) }
    }

    /// Writes a message or a local mark.
    #[inline]
    pub fn message(&mut self, message: &Message) -> Result<(), ContainerWriteError> {
        self.known(message.src)?;
        self.known(message.dst)?;
        self.messages += 1;
        self.record(message.src, |begun| begun.before.message(&mut begun.content, message))
    }

    /// Writes one task's part of a collective operation.
    #[inline]
    pub fn collective(&mut self, part: &LocalCollective) -> Result<(), ContainerWriteError> {
        self.known(part.task)?;
        self.local_collectives += 1;
        self.collectives_given += u64::from(self.collectives.insert(part.id.0));
        self.record(part.task, |begun| begun.before.collective(&mut begun.content, part))
    }

    /// Writes a piece of the extension section `name`, of one task or of the trace; readers that do not know it pass it
    /// by. Pieces come back in the order in which they are given.
    pub fn section(
        &mut self,
        name: &str,
        task: Option<Rank>,
        piece: &[u8],
    ) -> Result<(), ContainerWriteError> {
        fits("a piece of a section", piece.len())?;
        fits("the name of a section", name.len())?;
        let spot = self.block(Kind::Section, task.map_or(0, |task| task.0), 1, piece)?;
        let key = (name.to_owned(), task.map_or(0, |task| u64::from(task.0) + 1));
        self.index.sections.entry(key).or_default().push(spot);
        Ok(())
    }

    /// Writes what is begun, the index and the footer, compares the counts with the header's, and gives the output back.
    pub fn finish(mut self) -> Result<W, ContainerWriteError> {
        self.end_communicators()?;
        let mut begun: Vec<(u32, Begun)> = self.tasks.drain().filter(|(_, begun)| begun.items > 0).collect();
        begun.sort_unstable_by_key(|&(task, _)| task);
        for (task, begun) in begun {
            let spot = self.block(Kind::Records, task, begun.items, begun.content.bytes())?;
            self.index.tasks.entry(task).or_default().push(spot);
        }
        self.end_order()?;
        let content = self.index.to_bytes();
        let spot = self.block(Kind::Index, 0, 1, content.bytes())?;
        self.out.write_all(&footer(spot.offset, spot.length))?;
        self.out.flush()?;
        for (kind, promised, written) in [
            ("point-to-point lines", self.header.messages, self.messages),
            ("communicators", self.header.communicators, self.communicators_given),
            ("collectives", self.header.collectives, self.collectives_given),
            ("lines of collectives", self.header.local_collectives, self.local_collectives),
        ] {
            if promised != written {
                return Err(WriteError::Count { kind, promised, written }.into());
            }
        }
        Ok(self.out)
    }

    /// Adds a record to the begun block of `task`.
    #[inline]
    fn record(&mut self, task: Rank, add: impl FnOnce(&mut Begun)) -> Result<(), ContainerWriteError> {
        let full = (BUFFERED / self.tasks.len().max(1)).clamp(SMALL, FULL);
        let begun = self.tasks.entry(task.0).or_default();
        add(begun);
        begun.items += 1;
        if begun.content.bytes().len() >= full {
            let mut begun = std::mem::take(begun);
            let spot = self.block(Kind::Records, task.0, begun.items, begun.content.bytes())?;
            self.index.tasks.entry(task.0).or_default().push(spot);
            begun.content.clear();
            self.tasks.insert(task.0, Begun { content: begun.content, ..Begun::default() });
        }
        if self.settings.keep_order {
            self.runs.put(&mut self.order.content, task.0);
            self.order.items += 1;
            if self.order.content.bytes().len() >= FULL || self.order.items == u32::MAX {
                self.end_order()?;
            }
        }
        Ok(())
    }

    fn end_communicators(&mut self) -> Result<(), ContainerWriteError> {
        let begun = std::mem::take(&mut self.communicators);
        if begun.items > 0 {
            let spot = self.block(Kind::Communicators, 0, begun.items, begun.content.bytes())?;
            self.index.communicators.push(spot);
        }
        Ok(())
    }

    fn end_order(&mut self) -> Result<(), ContainerWriteError> {
        let mut begun = std::mem::take(&mut self.order);
        std::mem::take(&mut self.runs).end(&mut begun.content);
        if begun.items > 0 {
            let spot = self.block(Kind::Order, 0, begun.items, begun.content.bytes())?;
            self.index.order.push(spot);
        }
        Ok(())
    }

    fn block(&mut self, kind: Kind, task: u32, items: u32, raw: &[u8]) -> Result<Spot, ContainerWriteError> {
        // A longer block (one communicator of very many runs) cannot be compressed.
        let compress = self.settings.compress && raw.len() <= MOST_RAW;
        let bytes = Block { kind, task, items, raw }.to_bytes(compress)?;
        debug_assert!(bytes.len() >= FRAME);
        self.out.write_all(&bytes)?;
        let spot = Spot { offset: self.offset, length: bytes.len() as u64, items };
        self.offset += spot.length;
        Ok(spot)
    }

    #[inline]
    fn known(&self, task: Rank) -> Result<(), WriteError> {
        if task.0 >= self.header.tasks {
            return Err(WriteError::Rank { task: task.0, tasks: self.header.tasks });
        }
        Ok(())
    }
}

fn fits(what: &'static str, bytes: usize) -> Result<(), ContainerWriteError> {
    if bytes > MOST_RAW {
        return Err(ContainerWriteError::TooLarge { what, bytes, most: MOST_RAW });
    }
    Ok(())
}
