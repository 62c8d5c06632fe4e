//! Captures: the output of tracing, one stream of calls for each rank.
//!
//! [`event`] has the events, which are the same in all layouts. [`Capture`] opens a directory of any layout. [`layout`]
//! describes our own; [`RankWriter`] writes it from events, and the interposer writes it during calls, with the same
//! [`encode`].

pub mod event;
pub mod layout;
pub mod legacy;

pub mod encode;
pub mod word;

mod clocks;
mod compressed;
mod digest;
mod error;
mod events;
mod fields;
mod file;
mod follow;
mod forms;
mod group;
mod hosts;
mod input;
mod worlds;
mod writer;

pub use compressed::{Sizes, compress, rank_file};
pub use digest::{Digest, Tally};
pub use error::CaptureError;
pub use events::{Consumer, Ending};
pub use file::Function;
pub use follow::{Followed, Follower};
pub use group::Group;
pub use hosts::Host;
pub use layout::{RankInfo, rank_path, spawned_path};
pub use writer::RankWriter;

use crate::error::Place;
use crate::ids::Rank;
use crate::units::{Count, Nanos};
use event::Event;
use layout::{State, spawned_number};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worlds::{Translation, WorldMeetings, Worlds};

/// The layout of a capture's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Our own: `<rank>.vefc` or `<rank>.vefc.zst` for each rank.
    Vefc,
    /// VEF-Prospector's ([`legacy`]): `VEFT.main`, and `<rank>.veft` and `<rank>.comm` for each rank. Its point-to-point calls
    /// have no communicator.
    Prospector,
}

/// A capture: a directory with the events of all ranks. Worlds that the program spawned, in subdirectories `spawned-1` and so on, are
/// further tasks behind those of its `MPI_COMM_WORLD`.
#[derive(Debug)]
pub struct Capture {
    dir: PathBuf,
    ranks: Vec<RankInfo>,
    /// Those that recorded nothing, ascending.
    unbegun: Vec<Rank>,
    identity: u64,
    /// If there are several worlds, these, and their directories.
    worlds: Option<(Arc<Worlds>, Vec<PathBuf>)>,
    /// For the older layout: its main file, and options.
    legacy: Option<(legacy::Main, legacy::Options)>,
}

impl Capture {
    /// Opens the capture in the directory `path` (for the older layout also its `VEFT.main`), checks that all ranks are there
    /// and reads their facts.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        Self::open_with(path, &legacy::Options::default())
    }

    /// Like [`Capture::open`], with options for the older layout.
    pub fn open_with(path: &Path, options: &legacy::Options) -> Result<Self, CaptureError> {
        if legacy::Main::is_at(path) {
            let main = legacy::Main::open(path)?;
            let (ranks, identity) = (legacy_ranks(&main), hash(&main.tasks));
            let legacy = Some((main, options.clone()));
            let (dir, unbegun) = (path.to_path_buf(), Vec::new());
            return Ok(Self { dir, ranks, unbegun, identity, worlds: None, legacy });
        }
        if path.is_file() {
            return Err(CaptureError::File { path: path.to_path_buf(), what: in_place_of_a_capture(path) });
        }
        let launched = read_ranks(path)?;
        let spawned = spawned_worlds(path);
        if spawned.is_empty() {
            let World { ranks, lengths, unbegun } = launched;
            let identity = hash(&(&ranks, lengths));
            return Ok(Self {
                dir: path.to_path_buf(),
                ranks,
                unbegun,
                identity,
                worlds: None,
                legacy: None,
            });
        }
        let mut meetings = vec![meetings(path, &launched, 0)?];
        let (mut dirs, mut worlds) = (vec![path.to_path_buf()], vec![launched]);
        for (number, dir) in spawned {
            // One that cannot be read is left out: the others are whole without it.
            if let Ok((world, met)) = read_ranks(&dir)
                .and_then(|world| self::meetings(&dir, &world, number).map(|met| (world, met)))
            {
                meetings.push(met);
                worlds.push(world);
                dirs.push(dir);
            }
        }
        let (joined, parts) = Worlds::joined(meetings);
        let (mut ranks, mut lengths, mut unbegun) = (Vec::new(), Vec::new(), Vec::new());
        for &part in &parts {
            let world: &World = &worlds[part];
            unbegun.extend(world.unbegun.iter().map(|rank| Rank(rank.0 + ranks.len() as u32)));
            ranks.extend_from_slice(&world.ranks);
            lengths.extend_from_slice(&world.lengths);
        }
        let identity = hash(&(&ranks, lengths));
        let dirs = parts.into_iter().map(|part| dirs[part].clone()).collect();
        let worlds = Some((Arc::new(joined), dirs));
        Ok(Self { dir: path.to_path_buf(), ranks, unbegun, identity, worlds, legacy: None })
    }

    /// Number of tasks.
    pub fn tasks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Number of tasks that were launched together; those behind them were spawned.
    pub fn launched(&self) -> u32 {
        self.worlds.as_ref().map_or(self.tasks(), |(worlds, _)| worlds.launched())
    }

    /// The worlds that the program spawned: the name of each one's directory, and its tasks.
    pub fn spawned(&self) -> Vec<(String, Range<u32>)> {
        let worlds = self.worlds.iter().flat_map(|(worlds, dirs)| dirs.iter().zip(worlds.tasks()));
        let name = |dir: &Path| dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        worlds.skip(1).map(|(dir, tasks)| (name(dir), tasks)).collect()
    }

    /// The directories of spawned worlds that are not part of the capture, with the reason.
    pub fn left_out(&self) -> Vec<(PathBuf, String)> {
        let dirs = self.worlds.as_ref().map_or(&[][..], |(_, dirs)| dirs);
        let others =
            spawned_worlds(&self.dir).into_iter().map(|(_, dir)| dir).filter(|dir| !dirs.contains(dir));
        let why = |dir: &Path| match Self::open(dir) {
            Ok(_) => "no call that spawned it was recorded in this run".to_owned(),
            Err(error) => error.to_string(),
        };
        others.map(|dir| (dir.clone(), why(&dir))).collect()
    }

    /// A number that differs between captures, from the facts on all ranks and the lengths of their files. Processes that open
    /// one capture at the same time get the same number.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The layout of the files.
    pub fn layout(&self) -> Layout {
        if self.legacy.is_some() { Layout::Prospector } else { Layout::Vefc }
    }

    /// The file of `rank`; of the older layout, where one of our own would be.
    pub fn file(&self, rank: Rank) -> PathBuf {
        let of_world = self.worlds.as_ref().and_then(|(worlds, dirs)| {
            let (world, rank) = worlds.place(rank)?;
            Some(rank_file(dirs.get(world)?, rank))
        });
        of_world.unwrap_or_else(|| rank_file(&self.dir, rank))
    }

    /// The facts on `rank`, which names itself by its rank in its own world; `None` beyond the last.
    pub fn rank(&self, rank: Rank) -> Option<&RankInfo> {
        self.ranks.get(rank.index())
    }

    /// A reader of the events of `rank`.
    pub fn events(&self, rank: Rank) -> Result<Events, CaptureError> {
        let source = match &self.legacy {
            Some((main, options)) => {
                EventSource::Legacy(Box::new(legacy::Events::open(main, rank, options)?))
            }
            None if self.is_unbegun(rank) => EventSource::Unbegun,
            None => {
                let events = Box::new(events::FileEvents::new(file::RankFile::open(&self.file(rank))?)?);
                match self.worlds.as_ref().and_then(|(worlds, _)| Translation::new(worlds, rank)) {
                    Some(translation) => EventSource::OfWorlds(events, translation),
                    None => EventSource::Vefc(events),
                }
            }
        };
        Ok(Events { source })
    }

    /// Whether `path`, or the target of a link there, is one of the capture's files.
    pub fn has_file(&self, path: &Path) -> bool {
        let dirs: Vec<&Path> = match (&self.legacy, &self.worlds) {
            (Some((main, _)), _) => vec![main.path.parent().unwrap_or(Path::new(""))],
            (_, Some((_, dirs))) => dirs.iter().map(PathBuf::as_path).collect(),
            _ => vec![&self.dir],
        };
        let here = |dir: &Path| if dir.as_os_str().is_empty() { PathBuf::from(".") } else { dir.to_owned() };
        let Ok(there) = fs::metadata(path) else { return false };
        let entries = dirs.into_iter().filter_map(|dir| fs::read_dir(here(dir)).ok());
        let is_ours = |name: &Path| {
            let suffix = name.extension().and_then(|suffix| suffix.to_str());
            compressed::rank_of(name).is_some()
                || self.legacy.is_some() && matches!(suffix, Some("veft" | "comm" | "main"))
        };
        // Compares only files that can be the same, because there may be many ranks.
        let may_be = |entry: &fs::DirEntry| {
            entry.ino() == there.ino() || entry.file_type().is_ok_and(|kind| kind.is_symlink())
        };
        let same = |entry: fs::DirEntry| {
            may_be(&entry)
                && is_ours(&entry.path())
                && fs::metadata(entry.path())
                    .is_ok_and(|file| (file.dev(), file.ino()) == (there.dev(), there.ino()))
        };
        there.is_file() && entries.flatten().flatten().any(same)
    }

    /// Whether the process of `rank` is still writing: it holds a lock on its file. `false` where locks do not work.
    pub fn is_being_written(&self, rank: Rank) -> bool {
        let path = self.file(rank);
        let lock = |file: File| flock(&file, FlockOperation::NonBlockingLockShared);
        self.legacy.is_none() && File::open(path).is_ok_and(|file| lock(file) == Err(Errno::WOULDBLOCK))
    }

    /// The MPI functions that `rank` called, in the order of first calls, including those without events; empty for the older
    /// layout.
    pub fn functions(&self, rank: Rank) -> Result<Vec<Function>, CaptureError> {
        match self.legacy {
            Some(_) => Ok(Vec::new()),
            None if self.is_unbegun(rank) => Ok(Vec::new()),
            None => Ok(file::RankFile::open(&self.file(rank))?.calls),
        }
    }

    /// Whether `rank` recorded nothing, not even facts: it was killed in `MPI_Init`.
    pub fn is_unbegun(&self, rank: Rank) -> bool {
        self.unbegun.binary_search(&rank).is_ok()
    }
}

/// The ranks of one world.
struct World {
    ranks: Vec<RankInfo>,
    /// Lengths of their files.
    lengths: Vec<u64>,
    /// Those that recorded nothing, ascending.
    unbegun: Vec<Rank>,
}

/// What the file `path` is, which is no directory with a capture.
fn in_place_of_a_capture(path: &Path) -> &'static str {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut begin));
    match &begin[..] {
        _ if compressed::rank_of(path).is_some() => "the file of one rank; name the directory of the capture",
        b"VEFX" | b"VEF2" | b"VEF3" if read.is_ok() => "a trace, not a capture",
        _ => "a file, not a capture, which is a directory",
    }
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Ranks for each file of an aborted run, at most.
const MOST_RANKS_PER_FILE: usize = 1000;

/// Reads the facts of all ranks in `dir`, and the lengths of their files; all must be there and belong to one run. If none of them has ended its
/// recording with `MPI_Finalize`, ranks without a file, or with one in which nothing was written, were killed in `MPI_Init`.
fn read_ranks(dir: &Path) -> Result<World, CaptureError> {
    let found = rank_files(dir)?;
    let mut headers: BTreeMap<Rank, Result<file::Header, CaptureError>> =
        found.iter().map(|(&rank, path)| (rank, file::Header::read(path))).collect();
    let written = headers.values().flatten().map(|header| header.info.tasks).next();
    let tasks = match written {
        Some(tasks) => tasks,
        None => match headers.pop_first() {
            Some((_, first)) => first?.info.tasks,
            None => return Err(CaptureError::NoCapture(dir.to_path_buf())),
        },
    };
    if let Some((&beyond, file)) = found.range(Rank(tasks)..).next() {
        let what = format!("rank {beyond} in a capture of {}", Count(tasks, "task"));
        return Err(CaptureError::Mixed { place: Place::file(file), what });
    }
    // Do not allocate memory for ranks without files on a header's word alone.
    let is_likely = tasks as usize / MOST_RANKS_PER_FILE <= headers.len();
    let is_aborted = is_likely && headers.values().flatten().all(|header| header.state != State::Finished);
    let mut world = World { ranks: Vec::new(), lengths: Vec::new(), unbegun: Vec::new() };
    // The first known run.
    let mut known: Option<(u64, &PathBuf)> = None;
    for rank in (0..tasks).map(Rank) {
        let header = match headers.remove(&rank) {
            None | Some(Err(CaptureError::Empty(_) | CaptureError::Killed(_))) if is_aborted => {
                world.unbegun.push(rank);
                world.ranks.push(RankInfo { rank, tasks, ..RankInfo::default() });
                world.lengths.push(0);
                continue;
            }
            None => return Err(CaptureError::MissingRank { path: rank_path(dir, rank), rank, tasks }),
            Some(header) => header?,
        };
        let file::Header { info, length, .. } = header;
        let file = &found[&rank];
        if info.rank != rank || info.tasks != tasks {
            let what = format!("holds rank {} of {} tasks, not {rank} of {tasks}", info.rank, info.tasks);
            return Err(CaptureError::Mixed { place: Place::file(file), what });
        }
        if info.run != 0 {
            let (run, whose) = *known.get_or_insert((info.run, file));
            if info.run != run {
                let what = format!("is of another run than {}", whose.display());
                return Err(CaptureError::Mixed { place: Place::file(file), what });
            }
        }
        world.ranks.push(info);
        world.lengths.push(length);
    }
    Ok(world)
}

/// The facts of the tasks in the older layout.
fn legacy_ranks(main: &legacy::Main) -> Vec<RankInfo> {
    let tasks = main.tasks.len() as u32;
    let info = |(rank, task): (usize, &legacy::Task)| RankInfo {
        rank: Rank(rank as u32),
        tasks,
        host: task.host.clone(),
        realtime: task.realtime_init,
        ..RankInfo::default()
    };
    main.tasks.iter().enumerate().map(info).collect()
}

/// The number of tasks of the capture in `dir`, of which some ranks need not be there yet; `None`: no rank is.
pub fn world_size(dir: &Path) -> Option<u32> {
    let files = rank_files(dir).ok()?;
    files.values().find_map(|path| Some(file::Header::read(path).ok()?.info.tasks))
}

/// The worlds that were spawned by the program with the capture `dir`: their numbers and directories.
pub fn spawned_worlds(dir: &Path) -> Vec<(u32, PathBuf)> {
    let number = |entry: fs::DirEntry| spawned_number(entry.file_name().to_str()?);
    let mut numbers: Vec<u32> =
        fs::read_dir(dir).into_iter().flatten().flatten().filter_map(number).collect();
    numbers.sort_unstable();
    let named = numbers.into_iter().map(|number| (number, spawned_path(dir, number)));
    named.filter(|(_, dir)| dir.is_dir()).collect()
}

/// The meetings of a world's ranks.
fn meetings(dir: &Path, world: &World, number: u32) -> Result<WorldMeetings, CaptureError> {
    let mut of_world = WorldMeetings::of(number);
    for info in &world.ranks {
        if world.unbegun.binary_search(&info.rank).is_ok() {
            of_world.add(info, |_| Ok(()))?;
            continue;
        }
        let file = file::RankFile::open(&rank_file(dir, info.rank))?;
        of_world.add(info, |take| events::FileEvents::new(file)?.each(take))?;
    }
    Ok(of_world)
}

/// The rank files of `dir`.
fn rank_files(dir: &Path) -> Result<BTreeMap<Rank, PathBuf>, CaptureError> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(|e| CaptureError::io(dir, e))? {
        let path = entry.map_err(|e| CaptureError::io(dir, e))?.path();
        if let Some(rank) = compressed::rank_of(&path) {
            found.entry(rank).or_insert_with(|| rank_file(dir, rank));
        }
    }
    Ok(found)
}

/// The events of one rank by start; each thread's are in its program order.
#[derive(Debug)]
pub struct Events {
    source: EventSource,
}

#[derive(Debug)]
enum EventSource {
    Vefc(Box<events::FileEvents>),
    /// Of a capture of several worlds.
    OfWorlds(Box<events::FileEvents>, Translation),
    Legacy(Box<legacy::Events>),
    /// Of a rank that recorded nothing.
    Unbegun,
}

impl Events {
    /// Passes all events to `take`, until it returns an error. Communicators and datatypes precede their uses.
    ///
    /// # Errors
    /// Those of `take`, and of the file after the valid events before the error.
    #[inline]
    pub fn each<E: From<CaptureError>>(
        &mut self,
        take: impl FnMut(&Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each_to(take)
    }

    /// Like [`Events::each`], with a consumer that the compiler can inline.
    ///
    /// # Errors
    /// Those of [`Events::each`].
    #[inline]
    pub fn each_to<E: From<CaptureError>>(&mut self, mut consumer: impl Consumer<E>) -> Result<(), E> {
        match &mut self.source {
            EventSource::Vefc(events) => events.each(consumer),
            EventSource::OfWorlds(events, translation) => {
                events.each(|event: &Event<'_>| translation.pass(event, |event| consumer.take(event)))
            }
            EventSource::Legacy(events) => {
                while let Some(event) = events.next().map_err(CaptureError::from)? {
                    consumer.take(&event)?;
                }
                Ok(())
            }
            EventSource::Unbegun => Ok(()),
        }
    }

    /// Whether several threads of the rank made calls.
    pub fn has_many_threads(&self) -> bool {
        match &self.source {
            EventSource::Vefc(events) | EventSource::OfWorlds(events, _) => events.has_many_threads(),
            EventSource::Legacy(_) | EventSource::Unbegun => false,
        }
    }

    /// The phase in which alone calls were recorded, if there is one.
    pub fn only_phase(&self) -> Option<&str> {
        match &self.source {
            EventSource::Vefc(events) | EventSource::OfWorlds(events, _) => events.only_phase(),
            EventSource::Legacy(_) | EventSource::Unbegun => None,
        }
    }

    /// How the events end; valid after [`Events::each`] has reached the last.
    pub fn ending(&self) -> Ending {
        match &self.source {
            EventSource::Vefc(events) | EventSource::OfWorlds(events, _) => events.ending(),
            EventSource::Legacy(events) if events.is_finished() => Ending::Finished,
            EventSource::Legacy(events) => Ending::Cut { torn: u32::from(events.lost_bytes() > 0) },
            EventSource::Unbegun => Ending::Unbegun,
        }
    }

    /// The functions of the rank's call table, to which [`call`](Event::call) refers; none in the older layout.
    pub fn functions(&self) -> &[Function] {
        match &self.source {
            EventSource::Vefc(events) | EventSource::OfWorlds(events, _) => events.functions(),
            EventSource::Legacy(_) | EventSource::Unbegun => &[],
        }
    }

    /// When `MPI_Init` was entered and when recording ended, on `CLOCK_MONOTONIC`; zeros in the older layout. Of a file that was not
    /// closed (a killed process), the end is that of the last record read so far.
    pub fn span(&self) -> (Nanos, Nanos) {
        match &self.source {
            EventSource::Vefc(events) | EventSource::OfWorlds(events, _) => events.span(),
            EventSource::Legacy(_) | EventSource::Unbegun => Default::default(),
        }
    }

    /// The unknown event types that were skipped, and how often; only for the older layout, if its options allow it.
    pub fn skipped(&self) -> BTreeMap<u16, u64> {
        match &self.source {
            EventSource::Vefc(_) | EventSource::OfWorlds(..) | EventSource::Unbegun => BTreeMap::new(),
            EventSource::Legacy(events) => events.skipped().clone(),
        }
    }
}

#[cfg(test)]
mod tests;
