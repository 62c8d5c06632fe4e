//! A whole mix at a size of one's choice, with its limit and its memory:
//!
//! ```text
//! cargo run --release -p vef-benches --example mix -- [tasks [records [ahead [jobs [directory]]]]]
//! ```
//!
//! The directory keeps the capture, for further runs with other numbers of threads.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::PathBuf;
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
    // The first reading warms the page cache for both.
    let read = limit::read_and_write(&capture, &trace, 0)?;
    let before = memory::peak();
    let begun = Instant::now();
    let options = mixer::Options { jobs, ..mixer::Options::default() };
    let summary = mixer::mix(&capture, &trace, &options, &mixer::Quiet)?;
    let took = begun.elapsed().as_secs_f64();
    let peak = memory::peak();
    let written = std::fs::metadata(&trace)?.len();
    let begun = Instant::now();
    limit::read_and_write(&capture, &trace, written)?;
    let least = begun.elapsed().as_secs_f64();
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
