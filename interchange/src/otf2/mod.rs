//! OTF2: the archives of Score-P, EZTrace and others: an anchor `X.otf2`, definitions `X.def`, and in the directory `X` the events of
//! each location (a thread), `<location>.evt`, with its own definitions, `<location>.def`.
//!
//! The reader is our own: of what the format has it needs little, and so no build needs a C library. `docs/interchange.md` says what is
//! kept.

mod chunks;

mod definitions;
mod events;

mod amounts;

mod stated;

mod meaning;

mod define;
mod encode;
mod write;

use crate::calls::recorder::Recorder;
use crate::calls::summing::{Sum, missing, write_missing};
use crate::error::{Problem, Result};
use crate::files::Files;
use crate::format::Info;
use crate::options::{Options, Setting};
use crate::progress::Progress;
use crate::summary::Summary;
use chunks::{Anchor, Chunks};
use definitions::{Definitions, Local, Thread};
use events::Events;
use meaning::{Location, Posted, RankCalls};
use stated::Stated;
use std::path::{Path, PathBuf};
use vef_format::capture::RankInfo;
use vef_format::ids::Rank;
use vef_format::units::Count;

/// The format.
pub(crate) const INFO: Info = Info::calls(
    "otf2",
    "OTF2 (Score-P, EZTrace), an archive X.otf2 with X.def and the directory X",
    // Other files of an archive are recognised, too: the error then names the anchor that is missing.
    |start| Anchor::is_at(start.bytes) || chunks::is_chunk(start.bytes) && is_part(start.path),
    import,
)
.with(&[Setting::GlobalClock])
.written_by(write::write, &["otf2"]);

/// Whether a file has the name of definitions or events.
fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|suffix| suffix == "def" || suffix == "evt")
}

/// An archive.
struct Archive {
    anchor: Anchor,
    /// The name of all its files, without their endings.
    stem: PathBuf,
    definitions: Definitions,
    ranks: Vec<Vec<Thread>>,
}

impl Archive {
    fn open(files: &Files) -> Result<(Self, PathBuf)> {
        let mut anchors = Vec::new();
        for path in &files.paths {
            if Anchor::is_at(&Files::start(path)?) {
                anchors.push(path);
            }
        }
        let path = match anchors[..] {
            [path] => path,
            [] => {
                let found = "none".to_owned();
                return Err(Problem::Expected { expected: "an anchor X.otf2", found }.of_file(files.first()));
            }
            [first, second, ..] => {
                let what = format!("is of another archive than {}", first.display());
                return Err(Problem::Invalid(what).of_file(second));
            }
        };
        let anchor = Anchor::open(path)?;
        let stem = path.with_extension("");
        let definitions = path.with_extension("def");
        if !definitions.exists() {
            let what = "an anchor without its X.def: an OTF2 archive is several files, to be named by the path of its anchor or directory";
            return Err(Problem::Invalid(what.to_owned()).of_file(path));
        }
        let definitions = Definitions::open(&definitions, anchor.definition_chunk)?;
        let none =
            || Problem::Invalid("no group of locations of MPI is defined: there are no ranks".to_owned());
        let ranks =
            definitions.ranks().filter(|ranks| !ranks.is_empty()).ok_or_else(|| none().of_file(path))?;
        Ok((Self { anchor, stem, definitions, ranks }, path.clone()))
    }

    fn file(&self, location: u64, suffix: &str) -> PathBuf {
        self.stem.join(format!("{location}.{suffix}"))
    }

    /// The first file that a rank lacks. No location needs definitions of its own; but if any has some, all have.
    fn lacks(&self, threads: &[Thread], have_definitions: bool) -> Option<PathBuf> {
        let suffixes = if have_definitions { &["evt", "def"][..] } else { &["evt"] };
        let mut files = threads
            .iter()
            .flat_map(|thread| suffixes.iter().map(|suffix| self.file(thread.location, suffix)));
        files.find(|file| !file.exists())
    }

    fn events(&self, location: u64) -> Result<Events> {
        Ok(Events::new(Chunks::open(&self.file(location, "evt"), self.anchor.event_chunk)?))
    }

    fn scorep(&self) -> bool {
        self.anchor.creator.contains("Score-P")
    }
}

/// Imports an archive into the directory of a capture.
fn import(files: &Files, directory: &Path, options: &Options, progress: &dyn Progress) -> Result<Summary> {
    let (archive, path) = Archive::open(files)?;
    let of_file = |problem: Problem| problem.of_file(&path);
    let have_definitions =
        archive.ranks.iter().flatten().any(|thread| archive.file(thread.location, "def").exists());
    let lacking: Vec<Option<PathBuf>> =
        archive.ranks.iter().map(|threads| archive.lacks(threads, have_definitions)).collect();
    let is_there = |rank: usize| lacking[rank].is_none();
    let present = (0..lacking.len()).filter(|&rank| is_there(rank)).count();
    let tasks = archive.ranks.len() as u32;
    let missing = missing(tasks.into(), present, |rank| is_there(rank as usize), options.partial);
    let first = lacking.iter().flatten().next();
    let missing = missing.map_err(|problem| problem.of_file(first.unwrap_or(&path)))?;
    let communicators = archive.definitions.communicators(tasks);
    let mut sum = Sum::default();
    (sum.summary.ranks, sum.summary.missing_ranks) = (tasks, missing.clone());
    let (mut as_they_are, mut stated) = (0, Stated::default());
    for (rank, threads) in archive.ranks.iter().enumerate().filter(|&(rank, _)| is_there(rank)) {
        let host = archive.definitions.host(threads[0].location).to_owned();
        let info = RankInfo { rank: Rank(rank as u32), tasks, host, ..RankInfo::default() };
        let recorder = Recorder::create(directory, &info).map_err(of_file)?.started(0);
        let mut calls =
            RankCalls::new(recorder, &archive.definitions, &communicators, tasks, archive.scorep());
        let is_whole = read_rank(&archive, rank, threads, &mut calls, &mut sum, options)?;
        as_they_are += calls.as_they_are.values().sum::<u64>();
        let end = is_whole.then_some(calls.end);
        stated.compare(calls.ends, &mut sum.findings);
        sum.add(rank as u32, calls.recorder.finish(end).map_err(of_file)?);
        progress.set(rank as u64 + 1, tasks.into());
    }
    for &rank in &missing {
        write_missing(directory, rank, tasks).map_err(of_file)?;
    }
    if !have_definitions {
        let own = "no location has definitions of its own (X/<location>.def)";
        sum.remark(format!("{own}: the numbers in its events are taken for those of the archive"));
    }
    if as_they_are > 0 {
        sum.remark(format!(
            "as in the archive, because how its program counts is not known: {} of collectives",
            Count(as_they_are, "amount")
        ));
    }
    sum.finish(directory, &path, options)
}

/// Reads all threads of a rank; whether none of its files is cut.
fn read_rank(
    archive: &Archive,
    rank: usize,
    threads: &[Thread],
    calls: &mut RankCalls<'_>,
    sum: &mut Sum,
    options: &Options,
) -> Result<bool> {
    let mut is_whole = true;
    let mut known = Vec::with_capacity(threads.len());
    for thread in threads {
        let mut posted = Posted::read(archive.events(thread.location)?);
        let path = archive.file(thread.location, "evt");
        let promised = thread.events.filter(|&events| events != posted.events);
        match (&posted.cut, promised) {
            (Some((byte, _)), _) if options.partial => {
                is_whole = false;
                let (path, events) = (path.display(), posted.events);
                sum.ends_early(rank as u32, || {
                    format!("rank {rank} ends at byte {byte} of {path}, after {events} events")
                });
            }
            (None, Some(promised)) if options.partial => {
                is_whole = false;
                let (path, events) = (path.display(), posted.events);
                sum.ends_early(rank as u32, || {
                    format!("rank {rank} has {events} of {promised} events in {path}")
                });
            }
            (None, Some(promised)) => {
                let what = format!("{} events, but its definition says {promised}", posted.events);
                return Err(Problem::Invalid(what).of_file(&path));
            }
            _ => {}
        }
        let local = Local::open(&archive.file(thread.location, "def"), archive.anchor.definition_chunk)?;
        if let (Some((_, error)), false) = (posted.cut.take(), options.partial) {
            return Err(error);
        }
        known.push((thread.location, posted, local));
    }
    let global = |local: &Local, time| if options.global_clock { local.global(time) } else { time };
    let firsts = known.iter().filter_map(|(_, posted, local)| posted.first.map(|time| global(local, time)));
    let zero = firsts.min().unwrap_or(0);
    for (thread, (location, posted, local)) in known.iter().enumerate() {
        let thread = u16::try_from(thread).map_err(|_| {
            Problem::TooLarge(format!("the number of threads of rank {rank}")).of_file(&archive.stem)
        })?;
        let events = archive.events(*location)?;
        let global = options.global_clock;
        calls.read(&mut Location { events, local, posted, thread, zero, global })?;
    }
    Ok(is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use events::Event;
    use std::collections::BTreeMap;
    use std::process::Command;

    /// Names and times of the events of each location.
    type Named = BTreeMap<u64, Vec<(&'static str, u64)>>;

    /// The name that `otf2-print` has for an event.
    fn name(event: &Event) -> &'static str {
        match event {
            Event::Enter(_) => "ENTER",
            Event::Leave(_) => "LEAVE",
            Event::Send(_) => "MPI_SEND",
            Event::Recv(_) => "MPI_RECV",
            Event::Isend(..) => "MPI_ISEND",
            Event::IsendComplete(_) => "MPI_ISEND_COMPLETE",
            Event::IrecvRequest(_) => "MPI_IRECV_REQUEST",
            Event::Irecv(..) => "MPI_IRECV",
            Event::CollectiveEnd(_) => "MPI_COLLECTIVE_END",
            _ => "",
        }
    }

    /// The archive in a directory, and the names and times of the events of each location.
    fn events_of(path: &Path) -> (Archive, Named) {
        let (archive, _) = Archive::open(&Files::of(&[path.to_path_buf()]).unwrap()).unwrap();
        let mut all = Named::new();
        for thread in archive.ranks.iter().flatten() {
            let local =
                Local::open(&archive.file(thread.location, "def"), archive.anchor.definition_chunk).unwrap();
            let mut events = archive.events(thread.location).unwrap();
            let list: &mut Vec<_> = all.entry(thread.location).or_default();
            while let Some(event) = events.next().unwrap() {
                list.push((name(&event), local.global(events.time)));
            }
            assert_eq!(Some(events.number), thread.events);
        }
        (archive, all)
    }

    fn counts(all: &Named) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        all.values().flatten().for_each(|(name, _)| *counts.entry(*name).or_default() += 1);
        counts
    }

    /// `otf2-print` of the OTF2 library has the same events, at the same times but for its rounding.
    fn agrees_with_the_library(path: &Path) {
        if !skipping::installed("otf2-print") {
            return;
        }
        let (_, mut ours) = events_of(path);
        ours.values_mut().for_each(|list| list.retain(|(name, _)| !name.is_empty()));
        let output = Command::new("otf2-print").arg(path.join("traces.otf2")).output().unwrap();
        let mut theirs: BTreeMap<u64, Vec<(String, u64)>> = BTreeMap::new();
        for line in String::from_utf8(output.stdout).unwrap().lines() {
            let mut words = line.split_ascii_whitespace();
            if let (Some(name), Some(Ok(location)), Some(Ok(time))) =
                (words.next(), words.next().map(str::parse), words.next().map(str::parse))
                && ours.values().flatten().any(|(known, _)| *known == name)
            {
                theirs.entry(location).or_default().push((name.to_owned(), time));
            }
        }
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (location, list) in &ours {
            assert_eq!(list.len(), theirs[location].len(), "location {location}");
            for ((name, time), (their_name, their_time)) in list.iter().zip(&theirs[location]) {
                assert!(
                    name == their_name && time.abs_diff(*their_time) <= 1,
                    "{location}: {name} at {time}"
                );
            }
        }
    }

    #[test]
    fn every_event_of_a_sample_is_read() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/otf2/pingpong2");
        let (archive, events) = events_of(&path);
        let expected = [("ENTER", 42), ("LEAVE", 42), ("", 4), ("MPI_RECV", 16), ("MPI_SEND", 16)];
        assert_eq!(counts(&events), expected.into());
        assert_eq!(archive.definitions.resolution, 2_095_197_216);
        assert!(archive.scorep());
        agrees_with_the_library(&path);
    }

    #[test]
    fn every_event_of_ten_ranks_is_read() {
        let Some(path) = skipping::shared("data/interchange/otf2/mpi10") else { return };
        let expected = [
            ("ENTER", 7010),
            ("LEAVE", 7010),
            ("MPI_ISEND", 1440),
            ("MPI_IRECV_REQUEST", 1440),
            ("MPI_ISEND_COMPLETE", 1440),
            ("MPI_IRECV", 1440),
            ("MPI_COLLECTIVE_END", 1200),
            // The beginnings of collectives.
            ("", 1200),
        ];
        assert_eq!(counts(&events_of(&path).1), expected.into());
        agrees_with_the_library(&path);
    }
}
