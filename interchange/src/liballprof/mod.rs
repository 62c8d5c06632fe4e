//! liballprof: the text files of the tracer that belongs to LogGOPSim, one for each rank, `…-N.txt` or `…-N.dat`.
//!
//! A line is a call: `Function:start:arguments in MPI's order:end`, times in µs. A datatype stands with its size, a communicator with
//! own rank and size; requests are addresses. Statuses are not recorded. `docs/interchange.md` says what is kept.

mod handles;
mod line;

use crate::calls::arguments::Span;
use crate::calls::creations::{Op, Predefined, resolve};
use crate::calls::lines::{CUT, Lines};
use crate::calls::process::{At, Parts, Process};
use crate::calls::recorder::Recorder;
use crate::calls::summing::{Sum, missing, write_missing};
use crate::error::{ImportError, Problem, Result};
use crate::files::{Files, Start};
use crate::format::Info;
use crate::options::Options;
use crate::progress::Progress;
use crate::summary::Summary;
use handles::{GUESSED, Handles, NONE, Steps};
use hashbrown::{HashMap, HashSet};
use line::{BYTES, Fallible, Line};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vef_format::capture::RankInfo;
use vef_format::capture::event::SendMode;
use vef_format::error::Located;
use vef_format::ids::Rank;
use vef_format::operation::Operation;

/// The format.
pub(crate) const INFO: Info =
    Info::calls("liballprof", "liballprof (LogGOPSim), a text file for each rank", recognises, import);

/// Bytes from an element of an array of requests to the next.
const STEPS: [u64; 2] = [4, 8];
/// How many communicators are made one from the other, at most.
const DEPTH: usize = 64;

fn recognises(start: &Start<'_>) -> bool {
    let text = String::from_utf8_lossy(start.bytes);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.starts_with("MPI_") && line.split(':').count() > 2)
}

/// The rank in a file's name.
fn rank_of(path: &Path) -> Option<u32> {
    let stem = path.file_stem()?.to_str()?;
    stem.rsplit_once('-')?.1.parse().ok()
}

/// What a first reading of a rank finds.
#[derive(Debug, Default)]
struct Survey {
    /// The first communicator of each size.
    comms: HashMap<u64, u64>,
    steps: Steps,
    step: u64,
    /// The number of its last line.
    last: u64,
    finalizes: bool,
    /// Whether the file ends within a line.
    is_cut: bool,
}

/// Whether the current line may lack its end: it is the last one of a file, without a line end, and is no `MPI_Finalize`.
fn is_cut(lines: &Lines) -> bool {
    !lines.ended && !Line::of(lines.text()).is_ok_and(|line| line.is_finalize())
}

/// A problem of the current line.
fn wrong(lines: &Lines, problem: Problem) -> ImportError {
    lines.wrong(if is_cut(lines) { Problem::Invalid(CUT.to_owned()) } else { problem })
}

/// Finds the world, the communicators, and how far requests are apart in arrays.
fn survey(path: &Path, partial: bool) -> Result<Survey> {
    let mut lines = Lines::open(path)?;
    let (mut last, mut finalizes, mut ends_within) = (0, false, false);
    let (mut comms, mut steps) = (HashMap::new(), Steps::default());
    let (mut pending, mut resolved) = (HashSet::new(), [0u64; 2]);
    while lines.advance()? {
        if partial && is_cut(&lines) {
            ends_within = true;
            break;
        }
        let line = Line::of(lines.text()).map_err(|problem| wrong(&lines, problem))?;
        (last, finalizes) = (lines.number, finalizes || line.is_finalize());
        if let Some([handle, _, size]) = line.position_of_comm().and_then(|at| line.triple(at).ok()) {
            comms.entry(size.max(0) as u64).or_insert(handle as u64);
        }
        steps.line(&line);
        match line.function {
            "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" | "MPI_Irsend" | "MPI_Irecv" => {
                pending.extend(line.number(6).ok().map(|request| request as u64));
            }
            "MPI_Waitall" => {
                if let (Ok(count), Ok(array)) = (line.number(0), line.number(1)) {
                    for (at, step) in STEPS.into_iter().enumerate() {
                        resolved[at] += within(pending.iter().copied(), count, array, step).len() as u64;
                    }
                    for done in within(pending.iter().copied(), count.saturating_mul(2), array, STEPS[0]) {
                        pending.remove(&done);
                    }
                }
            }
            _ => {}
        }
    }
    let step = if resolved[1] > resolved[0] { STEPS[1] } else { STEPS[0] };
    Ok(Survey { comms, steps, step, last, finalizes, is_cut: ends_within })
}

/// Those of some requests that are elements of an array of `count`, in its order.
fn within(requests: impl Iterator<Item = u64>, count: i64, array: i64, step: u64) -> Vec<u64> {
    let index = |&request: &u64| {
        let distance = request.wrapping_sub(array as u64);
        (distance % step == 0 && distance / step < count.max(0) as u64).then_some(distance / step)
    };
    let mut found: Vec<u64> = requests.filter(|request| index(request).is_some()).collect();
    found.sort_unstable_by_key(index);
    found
}

/// Imports the files of a run into the directory of a capture.
fn import(files: &Files, directory: &Path, options: &Options, progress: &dyn Progress) -> Result<Summary> {
    let of_files = |problem: Problem| problem.of_file(files.first());
    let mut ranks: BTreeMap<u32, PathBuf> = BTreeMap::new();
    for path in &files.paths {
        let Some(rank) = rank_of(path) else { continue };
        if let Some(other) = ranks.insert(rank, path.clone()) {
            let what = format!("is of rank {rank}, as is {}", other.display());
            return Err(Problem::Invalid(what).of_file(path));
        }
    }
    let Some((&highest, _)) = ranks.last_key_value() else {
        let found = "none".to_owned();
        return Err(of_files(Problem::Expected { expected: "files …-N.txt or …-N.dat", found }));
    };
    let mut surveys = BTreeMap::new();
    for (&rank, path) in &ranks {
        surveys.insert(rank, survey(path, options.partial)?);
    }
    // No communicator has more members than there are ranks.
    let largest = surveys.values().flat_map(|survey| survey.comms.keys()).max();
    let tasks = largest.copied().unwrap_or(0).max(u64::from(highest) + 1);
    let missing =
        missing(tasks, ranks.len(), |rank| ranks.contains_key(&rank), options.partial).map_err(of_files)?;
    let tasks = tasks as u32;
    let mut sum = Sum::default();
    let any_finalizes = surveys.values().any(|survey| survey.finalizes);
    for (rank, survey) in &surveys {
        if survey.finalizes || !any_finalizes && !survey.is_cut {
            continue;
        }
        let (path, line) = (&ranks[rank], survey.last);
        if !options.partial {
            let what = format!(
                "rank {rank} ends here without MPI_Finalize, which other ranks have; vef import --partial imports what is there"
            );
            return Err(Located::line(path, line, Problem::Invalid(what)));
        }
        sum.ends_early(*rank, || {
            format!("rank {rank} ends at line {line} of {}, without MPI_Finalize", path.display())
        });
    }
    if !any_finalizes {
        sum.remark(
            "no rank has a MPI_Finalize: whether lines are missing at the end is not known".to_owned(),
        );
    }
    let world_of = |survey: &Survey| survey.comms.get(&u64::from(tasks)).copied().unwrap_or(NONE);
    let predefined = Predefined { world: NONE, itself: NONE - 1, empty_group: NONE };
    let mut created = vec![Vec::new(); tasks as usize];
    // Handles of what is created from the world are known once that is, and so on.
    for _ in 0..DEPTH {
        let mut ops = vec![Vec::new(); tasks as usize];
        for (&rank, survey) in &surveys {
            let mut handles = Handles::new(rank, world_of(survey), &created[rank as usize]);
            ops[rank as usize] = survey.steps.ops(&mut handles);
        }
        let before = std::mem::replace(&mut created, resolve(predefined, ops));
        if created == before {
            break;
        }
    }
    (sum.summary.ranks, sum.summary.missing_ranks) = (tasks, missing.clone());
    for (&rank, path) in &ranks {
        let of_file = |problem: Problem| problem.of_file(path);
        let info = RankInfo { rank: Rank(rank), tasks, ..RankInfo::default() };
        let recorder = Recorder::create(directory, &info).map_err(of_file)?;
        let survey = &surveys[&rank];
        let made = std::mem::take(&mut created[rank as usize]);
        let mut handles = Handles::new(rank, world_of(survey), &made);
        let mut process = Process::new(recorder, tasks, (NONE, NONE - 1), made.clone(), options.partial)
            .map_err(of_file)?;
        process.set_size(BYTES, Some(1));
        let mut lines = Lines::open(path)?;
        let mut before = 0;
        while lines.advance()? {
            if options.partial && is_cut(&lines) {
                break;
            }
            let result = Line::of(lines.text()).and_then(|mut line| {
                let end = line.end.or(line.start).unwrap_or(before);
                let span = Span { start: line.start.unwrap_or(end), end, thread: 0 };
                before = end;
                let called = process.recorder().function(line.function)?;
                process.recorder().count(span, called);
                let guessed = handles.guessed;
                let creation = handles.line(&mut line)?;
                if handles.guessed > guessed {
                    process.recorder().found(GUESSED);
                }
                apply(&mut process, &line, creation, (span, called), survey.step)
            });
            result.map_err(|problem| wrong(&lines, problem))?;
        }
        sum.add(rank, process.finish().map_err(of_file)?);
        progress.set(u64::from(rank) + 1, tasks.into());
    }
    for &rank in &missing {
        write_missing(directory, rank, tasks).map_err(of_files)?;
    }
    sum.finish(directory, files.first(), options)
}

/// Carries out a call.
fn apply(process: &mut Process, line: &Line<'_>, creation: Option<Op>, at: At, step: u64) -> Fallible<()> {
    if let Some(Op::Create { parent, new, .. }) = creation {
        return process.create(at, parent, new);
    }
    let (span, called) = at;
    let request = |at: usize| line.number(at).map(|request| request as u64);
    let mode = |name: &str| match name {
        "bsend" => SendMode::Buffered,
        "ssend" => SendMode::Synchronous,
        "rsend" => SendMode::Ready,
        _ => SendMode::Standard,
    };
    let Some(name) = line.function.strip_prefix("MPI_") else {
        process.recorder().skip(called);
        return Ok(());
    };
    match name {
        "Init" | "Init_thread" => process.recorder().init(span, called),
        "Finalize" => process.recorder().finalize(span, called),
        "Send" | "Bsend" | "Ssend" | "Rsend" => {
            process.send(at, line.envelope(1, 5)?, mode(&name.to_ascii_lowercase()), None)
        }
        "Isend" | "Ibsend" | "Issend" | "Irsend" => {
            process.send(at, line.envelope(1, 5)?, mode(&name[1..]), Some(request(6)?))
        }
        "Recv" => process.receive(at, line.envelope(1, 5)?, None),
        "Irecv" => process.post(at, line.envelope(1, 5)?, request(6)?),
        "Sendrecv" => process.exchange(at, line.envelope(1, 10)?, line.envelope(6, 10)?, None),
        "Wait" => process.complete(at, [(request(0)?, None)]),
        "Waitall" => {
            let done = within(process.recorder().pending(), line.number(0)?, line.number(1)?, step);
            process.complete(at, done.into_iter().map(|request| (request, None)))
        }
        "Request_free" => process.free_request(at, request(0)?),
        "Comm_free" | "Comm_rank" | "Comm_size" | "Wtime" | "Initialized" => Ok(()),
        _ => collective(process, line, at, name),
    }
}

fn collective(process: &mut Process, line: &Line<'_>, at: At, name: &str) -> Fallible<()> {
    use Operation::{Allgather, Allgatherv, Alltoall, Alltoallv, Barrier, Bcast, Gather, Gatherv};
    use Operation::{ReduceScatter, Scatterv};
    let Some(operation) = Operation::named(name) else {
        process.recorder().skip(at.1);
        return Ok(());
    };
    let vector = |bytes: u64| Parts { own: bytes, ..Parts::default() };
    let comm = |at: usize| line.comm(at);
    let summed = |own: u64, size: u32| {
        let sum =
            own.checked_mul(size.into()).ok_or_else(|| Problem::TooLarge(format!("{size} × {own} bytes")))?;
        Ok(Parts { own, sum, ..Parts::default() })
    };
    let total = |list: &[u64]| list.iter().copied().fold(0, u64::saturating_add);
    match operation {
        Barrier => process.collective(at, operation, comm(0)?, None, |_, _, _| Ok(Parts::default())),
        Bcast => {
            let (bytes, root) = (line.bytes(1, 2)?, line.number(3)?);
            process.collective(at, operation, comm(4)?, Some(root), |_, _, _| Ok(vector(bytes)))
        }
        Operation::Reduce => {
            let (bytes, root) = (line.bytes(2, 3)?, line.number(5)?);
            process.collective(at, operation, comm(6)?, Some(root), |_, _, _| Ok(vector(bytes)))
        }
        Operation::Allreduce | Operation::Scan | Operation::Exscan => {
            let bytes = line.bytes(2, 3)?;
            process.collective(at, operation, comm(5)?, None, |_, _, _| Ok(vector(bytes)))
        }
        Allgather | Alltoall => {
            let own = line.bytes(4, 5)?;
            process.collective(at, operation, comm(6)?, None, |_, _, size| summed(own, size))
        }
        Gather | Operation::Scatter => {
            let root = line.number(6)?;
            let (sent, received) = (line.bytes(1, 2), line.bytes(4, 5));
            process.collective(at, operation, comm(7)?, Some(root), |_, me, size| {
                // The arguments of one side are valid at the root only.
                let sends = (operation == Gather) != (i64::from(me) == root);
                summed(if sends { sent? } else { received? }, size)
            })
        }
        Allgatherv => match line.counts(4, 6)? {
            Some(recv) => process.collective(at, operation, comm(7)?, None, |_, me, _| {
                let own = recv.get(me as usize).copied().unwrap_or(0);
                Ok(Parts { own, sum: total(&recv), recv, ..Parts::default() })
            }),
            None => left_out(process, at),
        },
        Alltoallv => match (line.counts(1, 3)?, line.counts(5, 7)?) {
            (Some(send), Some(recv)) => process.collective(at, operation, comm(8)?, None, |_, _, _| {
                Ok(Parts { amounts: Some((total(&send), total(&recv))), send, recv, ..Parts::default() })
            }),
            _ => left_out(process, at),
        },
        ReduceScatter => match line.counts(2, 3)? {
            Some(recv) => process.collective(at, operation, comm(5)?, None, |_, me, _| {
                let own = recv.get(me as usize).copied().unwrap_or(0);
                Ok(Parts { own, sum: total(&recv), recv, ..Parts::default() })
            }),
            None => left_out(process, at),
        },
        Gatherv | Scatterv if line.lists => {
            let root = line.number(7)?;
            let (list, own) = if operation == Gatherv { ((4, 6), (1, 2)) } else { ((1, 3), (5, 6)) };
            process.collective(at, operation, comm(8)?, Some(root), |_, me, _| {
                // The list is valid at the root only, which may have its own block in place.
                if i64::from(me) != root {
                    let own = line.bytes(own.0, own.1)?;
                    return Ok(Parts { own, sum: own, ..Parts::default() });
                }
                let list = line.counts(list.0, list.1)?.unwrap_or_default();
                let (own, sum) = (list.get(me as usize).copied().unwrap_or(0), total(&list));
                let (send, recv) = if operation == Gatherv { (Vec::new(), list) } else { (list, Vec::new()) };
                Ok(Parts { own, sum, send, recv, ..Parts::default() })
            })
        }
        Gatherv | Scatterv | Operation::Alltoallw | Operation::ReduceScatterBlock => left_out(process, at),
    }
}

/// A collective whose counts are not in the trace.
fn left_out(process: &mut Process, (span, called): At) -> Fallible<()> {
    process.recorder().other(span, called, 0)
}
