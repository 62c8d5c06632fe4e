//! SimGrid's time-independent traces: text, a line for each call, `rank action arguments`. Either one file for all ranks, or one for
//! each; or the list of them.
//!
//! There are no times but amounts of computing in flops, which a speed converts. Peers are ranks of the world.
//! `docs/interchange.md` says what is kept.

mod action;

mod lines;
mod run;
mod write;

use crate::calls::arguments::{Collecting, Receiving, Sending, Span, Status, WORLD};
use crate::calls::lines::{CUT, Lines};
use crate::calls::recorder::Recorder;
use crate::calls::summing::{Sum, missing, write_missing};
use crate::error::{Problem, Result};
use crate::files::{Files, Start};
use crate::format::Info;
use crate::options::{Options, Setting};
use crate::progress::Progress;
use crate::summary::Summary;
use action::{Action, Context, Envelope, Part};
use hashbrown::{HashMap, HashSet};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use vef_format::capture::RankInfo;
use vef_format::capture::event::SendMode;
use vef_format::error::{Located, Place};
use vef_format::ids::Rank;
use vef_format::operation::Amounts;
use vef_format::units::{Bytes, Count};

/// The format.
pub(crate) const INFO: Info = Info::calls(
    "ti",
    "SimGrid's time-independent trace, text files of all ranks or their list",
    recognises,
    import,
)
.without_clocks()
.with(&[Setting::FlopsPerSecond, Setting::OldTi])
.written_by(write::write, &["txt", "ti"]);

/// Ranks whose files are open at once, if one file has the lines of all.
const AT_ONCE: usize = 128;
/// Bytes of a count without a type, and of a double.
const BYTE: u64 = 1;
const DOUBLE: u64 = 8;

/// The first line that says something.
fn first_line(bytes: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A character may be cut at the end.
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).ok()?,
    };
    text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'))
}

fn recognises(start: &Start<'_>) -> bool {
    let Some(line) = first_line(start.bytes) else { return false };
    if action::is_line(line) {
        return true;
    }
    let listed = beside(start.path, line);
    listed.is_file()
        && Files::start(&listed).is_ok_and(|bytes| first_line(&bytes).is_some_and(action::is_line))
}

/// A file that a list names.
fn beside(list: &Path, name: &str) -> PathBuf {
    list.parent().unwrap_or(Path::new("")).join(name)
}

/// The files with lines, and those that are left out: where there are lists, what they name, and the others.
fn traces(files: &Files) -> Result<[Vec<PathBuf>; 2]> {
    let (mut all, mut named): (Vec<PathBuf>, Vec<PathBuf>) = Default::default();
    for path in &files.paths {
        let start = Files::start(path)?;
        let listed = match first_line(&start) {
            Some(line) if !action::is_line(line) => beside(path, line).is_file(),
            _ => false,
        };
        if !listed {
            all.push(path.clone());
            continue;
        }
        let mut lines = Lines::open(path)?;
        while lines.advance()? {
            let line = lines.text();
            let name = beside(path, line);
            if !name.is_file() {
                let found = format!("{line:?}, which is no file");
                return Err(lines.wrong(Problem::Expected { expected: "the name of a file", found }));
            }
            named.push(name);
        }
    }
    let mut seen = HashSet::new();
    named.retain(|path| seen.insert(path.clone()));
    // A list may be beside its files, and all be given.
    all.retain(|path| seen.insert(path.clone()));
    Ok(if named.is_empty() { [all, named] } else { [named, all] })
}

/// What a first reading finds.
#[derive(Debug, Default)]
struct Found {
    /// The lines of each rank.
    ranks: BTreeMap<u32, OfRank>,
    /// Whether counts are of doubles, by rank.
    doubles: HashMap<u32, bool>,
    /// The highest rank that sends and receives name as their peer, and where it is named first.
    peer: Option<(u32, Place)>,
    /// Whether there are waits with tags that only versions of SimGrid from 3.24 on write, and with tags that only those before do.
    tags: [bool; 2],
    /// Files without lines, by index.
    empty: Vec<usize>,
    unterminated: u64,
    bytes: u64,
}

/// What a first reading finds of a rank.
#[derive(Debug, Default)]
struct OfRank {
    /// Files with its lines, by index.
    files: Vec<usize>,
    /// The number of its last line in the last of them.
    last: u64,
    finalizes: bool,
}

fn survey(paths: &[PathBuf], partial: bool, mut progress: impl FnMut(u64)) -> Result<Found> {
    let mut found = Found::default();
    for (file, path) in paths.iter().enumerate() {
        let mut lines = Lines::open(path)?;
        let mut is_empty = true;
        while lines.advance()? {
            let line = lines.text();
            if partial && is_cut(&lines) {
                break;
            }
            let Some((rank, rest)) = action::rank(line) else {
                let found: String = line.chars().take(40).collect();
                return Err(lines.wrong(match found.starts_with('p') && action::is_line(line) {
                    true => Problem::Unsupported {
                        what: format!("the line {found:?}"),
                        advice: "ranks are numbers without p, which SimGrid passes over, too",
                    },
                    false => Problem::Expected { expected: "a rank and an action", found },
                }));
            };
            if let Some(peer) = action::peer(rest)
                && found.peer.as_ref().is_none_or(|(highest, _)| peer > *highest)
            {
                found.peer = Some((peer, lines.place()));
            }
            if let Some(old) = action::has_old_tag(rest) {
                found.tags[usize::from(old)] = true;
            }
            let doubles = rest.strip_prefix("init").map(|rest| !rest.trim().is_empty());
            is_empty = false;
            let of_rank = found.ranks.entry(rank).or_default();
            if of_rank.files.last() != Some(&file) {
                of_rank.files.push(file);
            }
            of_rank.last = lines.number;
            of_rank.finalizes |= is_finalize(rest);
            if let Some(doubles) = doubles {
                found.doubles.insert(rank, doubles);
            }
        }
        if is_empty {
            found.empty.push(file);
        }
        found.unterminated += u64::from(!lines.ended);
        found.bytes += lines.bytes;
        progress(found.bytes);
    }
    Ok(found)
}

fn is_finalize(action: &str) -> bool {
    action.split_ascii_whitespace().next().is_some_and(|name| name.eq_ignore_ascii_case("finalize"))
}

/// Whether the current line may lack its end: it is the last one of a file, without a line end, and is no `finalize`.
fn is_cut(lines: &Lines) -> bool {
    !lines.ended && !action::rank(lines.text()).is_some_and(|(_, rest)| is_finalize(rest))
}

impl Found {
    fn any_finalizes(&self) -> bool {
        self.ranks.values().any(|of_rank| of_rank.finalizes)
    }

    /// The ranks that end early, with the file and the line: those without a `finalize`, if any rank has one.
    fn end_early<'a>(&'a self, paths: &'a [PathBuf]) -> impl Iterator<Item = (u32, &'a Path, u64)> {
        let any = self.any_finalizes();
        let early = self.ranks.iter().filter(move |(_, of_rank)| any && !of_rank.finalizes);
        early.filter_map(|(&rank, of_rank)| Some((rank, &*paths[*of_rank.files.last()?], of_rank.last)))
    }
}

/// Imports a trace into the directory of a capture.
fn import(files: &Files, directory: &Path, options: &Options, progress: &dyn Progress) -> Result<Summary> {
    let of_file = |problem: Problem| problem.of_file(files.first());
    let [paths, left_out] = traces(files)?;
    let size: u64 = paths.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
    let found = survey(&paths, options.partial, |done| progress.set(done, 2 * size))?;
    let Some((&highest, _)) = found.ranks.last_key_value() else {
        return Err(of_file(Problem::Expected { expected: "lines of ranks", found: "none".to_owned() }));
    };
    let named = found.peer.as_ref().filter(|(peer, _)| *peer > highest);
    let tasks = u64::from(named.map_or(highest, |(peer, _)| *peer)) + 1;
    let there = |rank| found.ranks.contains_key(&rank);
    let missing = missing(tasks, found.ranks.len(), there, options.partial).map_err(|problem| match named {
        Some((_, place)) => Located { place: place.clone(), problem },
        None => of_file(problem),
    });
    let missing = missing.map_err(|error| match (&error.problem, found.empty.first()) {
        // The missing rank may have had that file.
        (Problem::MissingRank { .. }, Some(&file)) => {
            Problem::Invalid(format!("has no line of any rank, and {}", error.problem)).of_file(&paths[file])
        }
        _ => error,
    })?;
    if let Some((rank, path, line)) = found.end_early(&paths).next()
        && !options.partial
    {
        let what = format!(
            "rank {rank} ends here without finalize, which other ranks have; vef import --partial imports what is there"
        );
        return Err(Located::line(path, line, Problem::Invalid(what)));
    }
    let tasks = tasks as u32;
    let mut sum = Sum::default();
    for path in left_out {
        sum.findings
            .warning("texts left out: no list among the files names them", || path.display().to_string());
    }
    for (rank, path, line) in found.end_early(&paths) {
        sum.ends_early(rank, || {
            format!("rank {rank} ends at line {line} of {}, without finalize", path.display())
        });
    }
    let any_finalizes = found.any_finalizes();
    if !any_finalizes {
        let what = "no rank has a finalize: each ends with its last line; whether lines are missing behind it is not known";
        sum.remark(what.to_owned());
    }
    (sum.summary.ranks, sum.summary.missing_ranks) = (tasks, missing.clone());
    // Ranks with files of their own are read one by one; the others together, so many at once.
    let ranks: Vec<u32> = found.ranks.keys().copied().collect();
    let uses = found.ranks.values().flat_map(|of_rank| &of_rank.files).count();
    let distinct = found.ranks.values().flat_map(|of_rank| &of_rank.files).collect::<HashSet<_>>().len();
    let at_once = if uses > distinct { AT_ONCE } else { 1 };
    let (mut done, mut has_collectives) = (0, false);
    for group in ranks.chunks(at_once) {
        let mut processes = BTreeMap::new();
        let mut concerned: Vec<usize> = Vec::new();
        for &rank in group {
            let info = RankInfo { rank: Rank(rank), tasks, ..RankInfo::default() };
            let recorder = Recorder::create(directory, &info).map_err(of_file)?.started(0);
            let default = if found.doubles.get(&rank) == Some(&true) { DOUBLE } else { BYTE };
            let old_tags = found.tags == [false, true];
            let context = Context { ranks: tasks, default, old: options.old_ti, old_tags };
            processes.insert(rank, Process::new(recorder, context, options.flops_per_second));
            concerned.extend(&found.ranks[&rank].files);
        }
        concerned.sort_unstable();
        concerned.dedup();
        for &file in &concerned {
            read(&paths[file], options.partial, &mut processes)?;
            done += paths[file].metadata().map_or(0, |file| file.len());
            progress.set(size + done.min(size), 2 * size);
        }
        for (rank, process) in processes {
            // SimGrid replays texts without finalize to their last line.
            let end = (!any_finalizes).then(|| process.nanos());
            has_collectives |= process.has_collectives;
            sum.add(rank, process.recorder.finish(end).map_err(of_file)?);
        }
    }
    for &rank in &missing {
        write_missing(directory, rank, tasks).map_err(of_file)?;
    }
    if found.unterminated > 0 {
        let files = Count(found.unterminated, "file");
        sum.remark(format!("the last line of {files} has no line end: SimGrid would not replay it"));
    }
    if has_collectives {
        sum.remark(
            "collectives are taken for those of all ranks: the texts name no communicators".to_owned(),
        );
    }
    if options.old_ti {
        sum.remark("tags are 0, and a wait without a request is for the last one of its rank".to_owned());
    }
    sum.finish(directory, files.first(), options)
}

/// Reads the lines of these ranks in a file; of one that is cut, if it is `partial`, those that are whole.
fn read(path: &Path, partial: bool, processes: &mut BTreeMap<u32, Process>) -> Result<()> {
    let mut lines = Lines::open(path)?;
    while lines.advance()? {
        if partial && is_cut(&lines) {
            break;
        }
        let line = lines.text();
        let Some((rank, rest)) = action::rank(line) else { continue };
        let Some(process) = processes.get_mut(&rank) else { continue };
        let result = process.line(rank, rest, is_cut(&lines));
        result.map_err(|problem| lines.wrong(problem))?;
    }
    Ok(())
}

/// A pending request, as a `wait` names it.
type Triple = [i64; 3];

/// A rank.
#[derive(Debug)]
struct Process {
    recorder: Recorder,
    context: Context,
    speed: Option<f64>,
    /// Time so far, s.
    now: f64,
    /// Requests made.
    requests: u64,
    has_collectives: bool,
    pending: BTreeMap<u64, Triple>,
    by_triple: HashMap<Triple, VecDeque<u64>>,
}

/// The source or tag of a request that can be any.
const ANY: i64 = i64::MIN;

impl Process {
    fn new(recorder: Recorder, context: Context, speed: Option<f64>) -> Self {
        Self {
            recorder,
            context,
            speed,
            now: 0.0,
            requests: 0,
            has_collectives: false,
            pending: BTreeMap::new(),
            by_triple: HashMap::new(),
        }
    }

    fn nanos(&self) -> u64 {
        (self.now * 1e9).round() as u64
    }

    /// Lets time pass.
    fn pass(&mut self, seconds: f64) -> std::result::Result<(), Problem> {
        self.now += seconds;
        if self.now * 1e9 < 2f64.powi(63) {
            Ok(())
        } else {
            Err(Problem::TooLarge(format!("the time {} s", self.now)))
        }
    }

    fn compute(&mut self, flops: f64) -> std::result::Result<(), Problem> {
        match self.speed {
            _ if flops == 0.0 => Ok(()),
            Some(speed) => self.pass(flops / speed),
            None => Err(Problem::Invalid(
                "an amount of computing becomes a time by vef import --flops-per-second N".to_owned(),
            )),
        }
    }

    /// Carries out a line, which may be `cut`.
    fn line(&mut self, me: u32, line: &str, cut: bool) -> std::result::Result<(), Problem> {
        let is_old = || {
            let context = Context { old: true, ..self.context };
            !self.context.old && action::parse(line, me, &context).is_ok()
        };
        let (name, action) = action::parse(line, me, &self.context).map_err(|problem| match problem {
            Problem::Expected { .. } if cut => Problem::Invalid(CUT.to_owned()),
            Problem::Expected { expected, found } if is_old() => Problem::Invalid(format!(
                "expected {expected}, found {found} (vef import --old-ti reads versions before 3.20)"
            )),
            problem => problem,
        })?;
        let now = self.nanos();
        let span = Span { start: now, end: now, thread: 0 };
        let function;
        let called = match &action {
            Action::Compute(flops) => return self.compute(*flops),
            Action::Sleep(seconds) => return self.pass(*seconds),
            Action::Nothing => return Ok(()),
            Action::Init(_) => "MPI_Init",
            Action::Finalize => "MPI_Finalize",
            Action::Send(_, SendMode::Synchronous) => "MPI_Ssend",
            Action::Send(..) => "MPI_Send",
            Action::Isend(_) => "MPI_Isend",
            Action::Recv(_) => "MPI_Recv",
            Action::Irecv(_) => "MPI_Irecv",
            Action::Wait(_) => "MPI_Wait",
            Action::WaitAll => "MPI_Waitall",
            Action::WaitAny => "MPI_Waitany",
            Action::Test => "MPI_Test",
            Action::Exchange(..) => "MPI_Sendrecv",
            Action::Collective(operation, part) => {
                function = match part.request.is_some() {
                    true => format!("MPI_I{}", operation.key().replace('-', "_")),
                    false => format!("MPI_{}", operation.name()),
                };
                &function
            }
            Action::Other => name,
        };
        let called = self.recorder.function(called)?;
        self.recorder.count(span, called);
        match action {
            Action::Init(_) => self.recorder.init(span, called),
            Action::Finalize => self.recorder.finalize(span, called),
            Action::Send(to, mode) => match self.sending(to, mode)? {
                Some(sending) => self.recorder.send(span, called, sending, None),
                None => Ok(()),
            },
            Action::Isend(to) => {
                let request =
                    self.request([me.into(), to.peer.unwrap_or(ANY), to.tag.map_or(ANY, i64::from)]);
                match self.sending(to, SendMode::Standard)? {
                    Some(sending) => self.recorder.send(span, called, sending, Some(request)),
                    None => self.nothing(request),
                }
            }
            Action::Recv(from) => match self.receiving(from)? {
                Some(receiving) => self.recorder.receive(span, called, receiving, None),
                None => Ok(()),
            },
            Action::Irecv(from) => {
                let request =
                    self.request([from.peer.unwrap_or(ANY), me.into(), from.tag.map_or(ANY, i64::from)]);
                match self.receiving(from)? {
                    Some(receiving) => self.recorder.post(span, called, receiving, request),
                    None => self.nothing(request),
                }
            }
            Action::Exchange(to, from) => {
                match (self.sending(to, SendMode::Standard)?, self.receiving(from)?) {
                    (Some(to), Some(from)) => self.recorder.exchange(span, called, to, from, None),
                    (Some(to), None) => self.recorder.send(span, called, to, None),
                    (None, Some(from)) => self.recorder.receive(span, called, from, None),
                    (None, None) => Ok(()),
                }
            }
            Action::Wait(Some(triple)) => match self.take(triple) {
                Some((request, status)) => self.recorder.complete(span, called, [(request, status)]),
                None => {
                    self.recorder.found("waits for requests that were not made, or whose call was left out");
                    Ok(())
                }
            },
            Action::Wait(None) => {
                let last = self.pending.pop_last();
                last.and_then(|(_, triple)| self.by_triple.get_mut(&triple)?.pop_back());
                self.recorder.complete(span, called, last.map(|(request, _)| (request, None)))
            }
            Action::WaitAny => {
                self.recorder.found("waitAny, taken for the completion of the oldest pending request");
                let first = self.pending.pop_first();
                first.and_then(|(_, triple)| self.by_triple.get_mut(&triple)?.pop_front());
                self.recorder.complete(span, called, first.map(|(request, _)| (request, None)))
            }
            Action::WaitAll => {
                self.by_triple.clear();
                let all = std::mem::take(&mut self.pending);
                self.recorder.complete(span, called, all.into_keys().map(|request| (request, None)))
            }
            Action::Test => Ok(()),
            Action::Collective(operation, part) => {
                let Part { root, own, sum, amounts, send, recv, flops, request } = part;
                if root.is_some_and(|root| root >= self.context.ranks) {
                    return Err(Problem::NoRank {
                        rank: root.unwrap_or(0).into(),
                        ranks: self.context.ranks,
                    });
                }
                let amounts = match amounts {
                    Some((send, recv)) => Amounts { send: Bytes(send), recv: Bytes(recv) },
                    None => operation.amounts(root == Some(me), Bytes(own), Bytes(sum)),
                };
                let (send_counts, recv_counts) = (&send[..], &recv[..]);
                let collecting =
                    Collecting { operation, comm: WORLD, root, amounts, send_counts, recv_counts };
                self.has_collectives = true;
                let request = request.map(|tag| self.request([ANY, ANY, tag]));
                self.recorder.collective(span, called, &collecting, request)?;
                self.compute(flops)
            }
            Action::Other => self.recorder.other(span, called, 0),
            Action::Compute(_) | Action::Sleep(_) | Action::Nothing => Ok(()),
        }
    }

    /// A new request.
    fn request(&mut self, triple: Triple) -> u64 {
        self.requests += 1;
        self.pending.insert(self.requests, triple);
        self.by_triple.entry(triple).or_default().push_back(self.requests);
        self.requests
    }

    fn nothing(&mut self, request: u64) -> std::result::Result<(), Problem> {
        self.recorder.open_nothing(request);
        Ok(())
    }

    /// The request that a `wait` names, and the message that it tells.
    fn take(&mut self, triple: Triple) -> Option<(u64, Option<Status>)> {
        let [source, to, tag] = triple;
        let names = match action::tags_of_collectives(tag, &self.context) {
            Some(tags) => tags.map(|tag| [ANY, ANY, tag]).to_vec(),
            // A receive with a wildcard, once complete, is named by what it received.
            None => vec![triple, [ANY, to, tag], [source, to, ANY], [ANY, to, ANY]],
        };
        for named in names {
            let request = self.by_triple.get_mut(&named).and_then(VecDeque::pop_front);
            if self.by_triple.get(&named).is_some_and(VecDeque::is_empty) {
                self.by_triple.remove(&named);
            }
            if let Some(request) = request {
                self.pending.remove(&request);
                let told = source >= 0 && tag >= 0 && named != triple;
                let status = Status { bytes: None, source, tag: tag as i32, cancelled: false };
                return Some((request, told.then_some(status)));
            }
        }
        None
    }

    /// A send; `None`: it goes nowhere.
    fn sending(&self, to: Envelope, mode: SendMode) -> std::result::Result<Option<Sending>, Problem> {
        let Envelope { peer: Some(peer @ 0..), tag, bytes } = to else { return Ok(None) };
        Ok(Some(Sending { comm: WORLD, dest: self.rank(peer)?, tag: tag.unwrap_or(0), bytes, mode }))
    }

    fn receiving(&self, from: Envelope) -> std::result::Result<Option<Receiving>, Problem> {
        let source = match from.peer {
            None => None,
            Some(peer @ 0..) => Some(self.rank(peer)?),
            Some(_) => return Ok(None),
        };
        Ok(Some(Receiving { comm: WORLD, source, tag: from.tag, bytes: from.bytes }))
    }

    fn rank(&self, peer: i64) -> std::result::Result<u32, Problem> {
        let ranks = self.context.ranks;
        let inside = u32::try_from(peer).ok().filter(|&peer| peer < ranks);
        inside.ok_or(Problem::NoRank { rank: peer as u64, ranks })
    }
}
