//! Thousands of jobs arrive one after the other: their memory is that of the jobs that run at once. It is alone in its process, whose peak
//! it measures.

use placement::{ArrivalList, Backfill};
use replay::Picos;
use sim_example::{Settings, Workload, simulate};
use std::fs;
use std::path::Path;
use vef_format::container::{self, About};
use vef_format::convert::convert;

/// The most kilobytes that this process had; `None` where the system does not tell.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// A ring in which each of `ranks` ranks computes, sends to the next one, and waits for the one before.
fn ring(path: &Path, ranks: u32) {
    let mut text = format!("VEF3 {ranks} {} 0 0 0 0 1000\n", 2 * ranks);
    for rank in 0..ranks {
        let next = (rank + 1) % ranks;
        text += &format!("{rank} {rank} {next} 4096 4 1000 -1\n");
    }
    for rank in 0..ranks {
        let before = (rank + ranks - 1) % ranks;
        text += &format!("{} {rank} {rank} 0 2 500 {before}\n", ranks + rank);
    }
    fs::write(path, text).unwrap();
}

fn settings(traces: &[&Path], count: u32) -> Settings {
    let line = |job: u32| {
        let ranks = [8, 32][job as usize % 2];
        format!("{job} {} -1 1 {ranks} -1 -1 {ranks} -1 -1 1 1 1 -1 1 -1 -1 -1\n", job / 4)
    };
    let lines: String = (1..=count).map(line).collect();
    let list = ArrivalList::parse(&format!("; MaxNodes: 128\n{lines}"), "list.swf").unwrap();
    let jobs = traces.iter().map(Workload::new).collect();
    let mut settings = Settings { jobs, ..Settings::default() };
    settings.arrive(&list, &[], Picos(4_000_000), Backfill::None).unwrap();
    settings
}

/// So many jobs of 8 ranks, all at once.
fn at_once(trace: &Path, count: u32) -> Settings {
    let line = |job: u32| format!("{job} 0 -1 1 8 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1\n");
    let lines: String = (1..=count).map(line).collect();
    let list = ArrivalList::parse(&format!("; MaxNodes: {}\n{lines}", 8 * count), "list.swf").unwrap();
    let mut settings = Settings { jobs: vec![Workload::new(trace)], ..Settings::default() };
    settings.arrive(&list, &[], Picos(1), Backfill::None).unwrap();
    settings
}

#[test]
fn five_thousand_jobs_take_the_memory_of_those_that_run() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [8, 32].map(|ranks| directory.path().join(format!("{ranks}.vef")));
    ring(&paths[0], 8);
    ring(&paths[1], 32);
    let traces = [paths[0].as_path(), paths[1].as_path()];
    let run = |count| simulate(&settings(&traces, count), &mut |_| {}).unwrap();
    let few = run(100);
    let before = peak();
    let many = run(5_000);
    let (few, many) = (few.arrivals.unwrap(), many.arrivals.unwrap());
    assert_eq!((few.jobs.len(), many.jobs.len()), (100, 5_000));
    assert_eq!(many.jobs[..50], few.jobs[..50], "later jobs change nothing");
    assert!(many.utilisation > 0.1 && many.wait_max_ps > 0, "{} {}", many.utilisation, many.wait_max_ps);
    if let (Some(before), Some(after)) = (before, peak()) {
        // 5000 jobs with 20 ranks each in the mean, of which a rank has at least 100 B in a replay alone: 10 MB.
        assert!(after - before < 6_000, "{before} kB, then {after} kB");
    }
    // Containers are read by each job: some kB for the job, and 1 kB for each of its nodes in the network.
    let packed = directory.path().join("8.vefx");
    convert(&paths[0], &packed, &About::default(), container::Settings::default()).unwrap();
    let before = peak();
    let all = simulate(&at_once(&packed, 2_000), &mut |_| {}).unwrap().arrivals.unwrap();
    let alone = simulate(&at_once(&packed, 1), &mut |_| {}).unwrap().arrivals.unwrap();
    assert!(all.wait_max_ps == 0 && all.jobs.iter().all(|job| job.runtime_ps == alone.jobs[0].runtime_ps));
    if let (Some(before), Some(after)) = (before, peak()) {
        assert!(after - before < 2_000 * 20, "{before} kB, then {after} kB");
    }
}
