//! A whole mix at a size of one's choice, with its limit and its memory:
//!
//! ```text
//! cargo run --release -p vef-benches --example mix -- [tasks [records [ahead [jobs [directory [way]]]]]]
//! ```
//!
//! The directory keeps the capture, for further runs with other numbers of threads. The mix and its limit, which reads the
//! same files and writes as many bytes with no work between, are both timed in the same way:
//!
//! - `new` (default): what is read lies in the page cache, what is written is a new file and stays there;
//! - `replaced`: as `new`, but over a trace of the same length, which file systems replace safely or free at leisure;
//! - `disk`: nothing lies in the page cache before (needs root), and everything is on the disk at the end.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use vef_benches::{limit, memory, workload::Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |arg| arg.parse());
    let (tasks, records, ahead) = (number(0, 240)? as u32, number(1, 5_000_000)?, number(2, 0)?);
    let jobs = number(3, 1)? as usize;
    let kept = args.get(4).map(PathBuf::from);
    let temporary = tempfile::tempdir()?;
    let dir = kept.unwrap_or_else(|| temporary.path().to_path_buf());
    let (capture, trace) = (dir.join(format!("capture-{tasks}-{records}-{ahead}")), dir.join("mixed.vef"));
    if !capture.is_dir() {
        let bytes = Workload { tasks, records, ahead }.write(&capture)?;
        println!("capture: {tasks} tasks, {:.1} MB", bytes as f64 / 1e6);
    }
    let way = Way::of(args.get(5).map_or("new", String::as_str))?;
    let options = mixer::Options { jobs, ..mixer::Options::default() };
    let mix = || mixer::mix(&capture, &trace, &options, &mixer::Quiet);
    if way == Way::Replaced && !trace.is_file() {
        mix()?;
    }
    let read = limit::read(&capture)?;
    let before = memory::peak();
    let (summary, took) = way.time(&trace, mix)?;
    let peak = memory::peak();
    let written = std::fs::metadata(&trace)?.len();
    let (_, least) = way.time(&trace, || limit::read_and_write(&capture, &trace, written))?;
    let all = summary.records as f64;
    println!(
        "mixed: {} records in {took:.3} s with {jobs} threads: {:.2} M/s",
        summary.records,
        all / took / 1e6
    );
    println!("stages: {:?}", summary.times);
    println!(
        "limit: {least:.3} s to read {:.1} MB and write {:.1} MB: mixing takes {:.2} times that",
        read as f64 / 1e6,
        written as f64 / 1e6,
        took / least
    );
    match (before, peak) {
        (Some(before), Some(peak)) => println!(
            "peak memory: {:.1} MB, {:.1} MB before: {:.1} bytes a record",
            peak as f64 / 1e6,
            before as f64 / 1e6,
            (peak - before) as f64 / all
        ),
        _ => println!("peak memory: not known here"),
    }
    Ok(())
}

/// What is where when the clock starts, and where it must be when the clock stops.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    New,
    Replaced,
    Disk,
}

impl Way {
    fn of(name: &str) -> Result<Self, Box<dyn Error>> {
        match name {
            "new" => Ok(Self::New),
            "replaced" => Ok(Self::Replaced),
            "disk" => Ok(Self::Disk),
            other => Err(format!("no way {other}: new, replaced or disk").into()),
        }
    }

    /// Does `work`, which writes `trace`, and says how many seconds it took.
    fn time<R, E: Error + 'static>(
        self,
        trace: &Path,
        work: impl FnOnce() -> Result<R, E>,
    ) -> Result<(R, f64), Box<dyn Error>> {
        if self != Self::Replaced && trace.is_file() {
            std::fs::remove_file(trace)?;
        }
        if self == Self::Disk {
            // Only what is on the disk can be dropped.
            let synced = std::process::Command::new("sync").status()?;
            std::fs::write("/proc/sys/vm/drop_caches", if synced.success() { "3" } else { "0" })?;
        }
        let begun = Instant::now();
        let done = work()?;
        if self == Self::Disk {
            File::open(trace)?.sync_all()?;
        }
        Ok((done, begun.elapsed().as_secs_f64()))
    }
}
