//! What a run has captured: said in one line, and compressed on request.

use super::arguments::Arguments;
use super::directory::Claimed;
use crate::output::{self, Failure};
use crate::progress::Bar;
use rayon::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use vef_format::capture::{Capture, CaptureError, Digest, Tally, rank_file, spawned_worlds, world_size};
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Count, Grouped};

/// How the recorder's reason ends when an option stopped it.
const ASKED: &str = "as asked";

/// Compresses the files of all ranks, also of spawned worlds; prints the result in one line.
pub(super) fn compress(directory: &Path) -> Result<(), Failure> {
    let bar = Bar::new("compressing the capture");
    let mut files = Vec::new();
    for directory in
        std::iter::once(directory.to_owned()).chain(spawned_worlds(directory).into_iter().map(|(_, dir)| dir))
    {
        let tasks = world_size(&directory).unwrap_or(0);
        let ranks = (0..tasks).map(Rank).filter(|&rank| rank_file(&directory, rank).exists());
        files.extend(ranks.map(|rank| (directory.clone(), rank)));
    }
    let done = AtomicU64::new(0);
    let sizes = files.par_iter().map(|(directory, rank)| {
        let sizes = vef_format::capture::compress(directory, *rank)?;
        bar.set(done.fetch_add(1, Ordering::Relaxed) + 1, files.len() as u64);
        Ok((sizes.plain, sizes.compressed))
    });
    let sizes: Result<Vec<_>, CaptureError> = sizes.collect();
    let (plain, compressed) =
        sizes?.into_iter().fold((0, 0), |(plain, packed), (one, two)| (plain + one, packed + two));
    drop(bar);
    output::remark(format_args!("compressed from {} to {}", Bytes(plain), Bytes(compressed)));
    Ok(())
}

/// Waits, for three seconds at most, for the ranks of a program that failed: after `MPI_Abort` a launcher may end before them.
pub(super) fn await_ranks(directory: &Path) {
    let Ok(capture) = Capture::open(directory) else { return };
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(3)
        && (0..capture.tasks()).any(|rank| capture.is_being_written(Rank(rank)))
    {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Prints one line about the capture on stderr; returns whether there is one.
pub(super) fn report(run: &Arguments, claimed: &Claimed) -> bool {
    let directory = &claimed.directory;
    let capture = match Capture::open(directory) {
        Ok(capture) => capture,
        Err(CaptureError::NoCapture(_)) => {
            claimed.give_up();
            output::remark(format_args!(
                "{}: nothing was captured: no rank came through MPI_Init with the library loaded and recording",
                directory.display()
            ));
            return false;
        }
        Err(_) if !directory.is_dir() => {
            output::remark(format_args!(
                "{}: was removed during the run; nothing is left of the capture",
                directory.display()
            ));
            return false;
        }
        Err(error) => return unreadable(error),
    };
    let bar = Bar::new("reading the capture");
    let digest = Digest::of(&capture, |rank| bar.set(u64::from(rank.0) + 1, u64::from(capture.tasks())));
    drop(bar);
    let digest = match digest {
        Ok(digest) => digest,
        Err(error) => return unreadable(error),
    };
    output::remark(format_args!("captured in {}: {}", directory.display(), summary(run, &digest)));
    if run.mix.is_none() {
        output::oversubscribed(directory, capture.hosts().iter().filter(|host| host.is_oversubscribed()));
        output::spawned(&capture.spawned(), &capture.left_out());
    }
    let launched = capture.launched();
    if let Some(asked) = run.ranks.filter(|&asked| asked > launched) {
        output::remark(format_args!(
            "warning: {asked} ranks were started, but MPI_COMM_WORLD has {launched}: the launcher and the program are probably of \
             different MPIs (--mpirun)"
        ));
    }
    match nothing_recorded(run, &digest) {
        Some(why) => output::remark(format_args!("warning: nothing was recorded: {why}")),
        None => return true,
    }
    false
}

/// Why the capture has no call of the program, if an option leaves all out.
fn nothing_recorded(run: &Arguments, digest: &Digest) -> Option<String> {
    if digest.unrecorded.len() == digest.tasks as usize {
        let ranks = run.only_ranks.as_ref().map_or("(VEF_RANKS)", |ranks| &ranks.text);
        return Some(format!("--only-ranks {ranks} has none of MPI_COMM_WORLD's {}", digest.tasks));
    }
    let phase = run.only_phase.as_ref().filter(|_| digest.phases == 0)?;
    Some(format!("no recorded rank entered a phase {phase:?}"))
}

fn unreadable(error: CaptureError) -> bool {
    output::error(&error.into());
    false
}

fn summary(run: &Arguments, digest: &Digest) -> String {
    let shared = digest.calls.iter().filter(|(name, _)| name.starts_with("MPI_Win_allocate_shared"));
    let shared: u64 = shared.map(|(_, calls)| calls).sum();
    let mut text = format!(
        "{}, {}, {} with {}, {}",
        Count(digest.tasks, "rank"),
        Count(digest.total_calls(), "call"),
        Count(digest.messages, "message"),
        digest.bytes,
        Count(digest.collectives, "collective call")
    );
    if digest.transfers.calls > 0 {
        let Tally { calls, bytes } = digest.transfers;
        text.push_str(&format!(", {} with {bytes}", Count(calls, "one-sided transfer")));
    }
    if !digest.unrecorded.is_empty() {
        let (left_out, ranks) = (Grouped(digest.unrecorded.len()), Count(digest.tasks, "rank"));
        text.push_str(&format!("; {left_out} of {ranks} not recorded, as asked"));
    }
    // The reason may not have fitted.
    let as_asked =
        !digest.stop_reasons.is_empty() && digest.stop_reasons.keys().all(|reason| reason.ends_with(ASKED));
    if as_asked && !digest.stopped.is_empty() {
        text.push_str(&format!("; recording stopped on {}, as asked", Count(digest.stopped.len(), "rank")));
    } else if !digest.stopped.is_empty() {
        let reasons: Vec<String> =
            digest.stop_reasons.iter().map(|(reason, ranks)| format!("{reason} × {ranks}")).collect();
        let reasons = match reasons.is_empty() {
            // The reason did not fit.
            true => String::new(),
            false => format!(" ({})", reasons.join(", ")),
        };
        text.push_str(&format!(
            "; INCOMPLETE: recording stopped on {}{reasons}",
            Count(digest.stopped.len(), "rank")
        ));
    } else if shared == 0
        && digest.unrecorded.is_empty()
        && run.only_phase.is_none()
        && digest.not_representable.is_empty()
    {
        text.push_str("; all can be represented in a trace");
    }
    // The summary of --mix has the rest.
    if run.mix.is_some() {
        return text;
    }
    let (accesses, others): (Vec<_>, Vec<_>) =
        digest.not_representable.iter().partition(|(name, _)| name.starts_with("MPI_File_"));
    let of_files = match run.only_phase {
        None => "not in a trace without vef mix --io-servers",
        Some(_) => {
            "not in a trace without vef mix --io-servers, nor then of files that were opened outside the phase"
        }
    };
    for (calls, what) in [(others, "not representable in a trace"), (accesses, of_files)] {
        if !calls.is_empty() {
            let calls = calls.iter();
            let calls =
                calls.map(|(name, tally)| format!("{} × {name} ({})", Grouped(tally.calls), tally.bytes));
            text.push_str(&format!("; {what}: {}", calls.collect::<Vec<_>>().join(", ")));
        }
    }
    if shared > 0 {
        let calls = Count(shared, "call");
        text.push_str(&format!("; not seen: loads and stores behind {calls} of MPI_Win_allocate_shared"));
    }
    if digest.never_completed > 0 {
        text.push_str(&format!("; {} never completed", Count(digest.never_completed, "request")));
    }
    if !digest.unfinished.is_empty() {
        text.push_str(&format!("; {} ended without MPI_Finalize", Count(digest.unfinished.len(), "rank")));
    }
    text
}
