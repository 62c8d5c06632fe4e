//! Jobs that arrive: by hand, against a queue that steps through time, and many of them.

use std::io::Write;

use placement::{ArrivalList, Backfill};
use proptest::prelude::*;
use replay::Picos;
use results::simulation::ArrivedJob;
use tempfile::NamedTempFile;

use super::super::*;
use crate::places::Places;
use crate::settings::Workload;

fn trace(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// `ranks` ranks of which each computes for `nanoseconds` and sends nothing that another waits for.
fn computing(ranks: u32, nanoseconds: u64) -> NamedTempFile {
    let marks: String =
        (0..ranks).map(|rank| format!("{rank} {rank} {rank} 0 0 {nanoseconds} -1\n")).collect();
    trace(&format!("VEF3 {ranks} {ranks} 0 0 0 0 1000\n{marks}"))
}

/// Jobs by submit time and processors, as a list whose second is a nanosecond of the simulation.
fn list(jobs: &[(u64, u32)], nodes: u32) -> ArrivalList {
    let jobs: Vec<(u64, u32, u64)> =
        jobs.iter().map(|&(submit, processors)| (submit, processors, 9)).collect();
    requesting(&jobs, nodes)
}

/// The same with requested times.
fn requesting(jobs: &[(u64, u32, u64)], nodes: u32) -> ArrivalList {
    let line = |(number, (submit, processors, time)): (u32, &(u64, u32, u64))| {
        format!("{number} {submit} -1 9 {processors} -1 -1 -1 {time} -1 1 1 1 -1 1 -1 -1 -1\n")
    };
    let lines: String = (1..).zip(jobs).map(line).collect();
    ArrivalList::parse(&format!("; MaxNodes: {nodes}\n{lines}"), "list.swf").unwrap()
}

fn arriving(traces: &[&NamedTempFile], list: &ArrivalList) -> Settings {
    let jobs = traces.iter().map(|trace| Workload::new(trace.path())).collect();
    let mut settings = Settings { jobs, ..Settings::default() };
    settings.arrive(list, &[], Picos(1_000), Backfill::None).unwrap();
    settings
}

fn run(settings: &Settings) -> Simulation {
    simulate(settings, &mut |_| {}).unwrap()
}

fn times(report: &Simulation) -> Vec<(u64, u64, u64)> {
    let of = |job: &ArrivedJob| (job.job, job.wait_ps / 1_000, job.runtime_ps / 1_000);
    report.arrivals.as_ref().unwrap().jobs.iter().map(of).collect()
}

/// Three jobs on four nodes: the second needs nodes of the first and keeps the third waiting, which would fit.
#[test]
fn three_jobs_on_four_nodes_by_hand() {
    let (three, two, one) = (computing(3, 100), computing(2, 50), computing(1, 10));
    let report = run(&arriving(&[&three, &two, &one], &list(&[(0, 3), (20, 2), (30, 1)], 4)));
    assert_eq!(times(&report), [(1, 0, 100), (2, 80, 50), (3, 70, 10)]);
    assert_eq!((report.runtime_ps, report.tasks, report.jobs.len()), (150_000, 6, 0));
    let arrivals = report.arrivals.as_ref().unwrap();
    assert_eq!((arrivals.wait_mean_ps, arrivals.wait_max_ps), (50_000, 80_000));
    let slowdowns: Vec<f64> = arrivals.jobs.iter().map(|job| job.slowdown().unwrap()).collect();
    assert_eq!(slowdowns, [1.0, 130.0 / 50.0, 80.0 / 10.0]);
    assert_eq!(arrivals.slowdown_max, 8.0);
    // 300 + 100 + 10 of 4 × 150 node nanoseconds.
    assert_eq!(arrivals.utilisation, 410.0 / 600.0);
    assert_eq!(report.network.topology, "switch:4");
    assert!(
        report.to_text().contains("arrivals      3 jobs, which had 68.3 % of the node time"),
        "{}",
        report.to_text()
    );
    assert_eq!(report.arrivals_table().rows().count(), 3);
}

/// The same with backfilling: of the four nodes that are free at 100 the second job needs two, then all.
#[test]
fn a_short_job_overtakes_by_hand() {
    let (three, two, one) = (computing(3, 100), computing(2, 50), computing(1, 10));
    let jobs = [(0, 3, 100), (20, 2, 60), (30, 1, 60), (35, 1, 60), (40, 1, 71)];
    let mut settings = arriving(&[&three, &two, &one], &list(&[(0, 1)], 4));
    settings.arrive(&requesting(&jobs, 4), &[], Picos(1_000), Backfill::Easy).unwrap();
    // The third, fourth and fifth have one node in turn: two are left beside those of the second.
    assert_eq!(times(&run(&settings)), [(1, 0, 100), (2, 80, 50), (3, 0, 10), (4, 5, 10), (5, 10, 10)]);
    let jobs = [(0, 3, 100), (20, 4, 60), (30, 1, 60), (40, 1, 61)];
    let all = computing(4, 50);
    let mut four = arriving(&[&three, &all, &one], &list(&[(0, 1)], 4));
    four.arrive(&requesting(&jobs, 4), &[], Picos(1_000), Backfill::Easy).unwrap();
    // The third would be over at 90, the fourth at 101.
    assert_eq!(times(&run(&four)), [(1, 0, 100), (2, 80, 50), (3, 0, 10), (4, 110, 10)]);
}

/// Messages of jobs at the same time meet in the network: both send over the only cable between two switches.
#[test]
fn jobs_that_run_at_once_share_the_network() {
    // 10 000 bytes, 8 µs on each link.
    let message = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 10000 0 0 -1\n1 1 1 0 2 0 0\n");
    let mut settings = arriving(&[&message], &list(&[(0, 2), (0, 2), (1_000_000, 2)], 4));
    settings.network.topology = "fattree:2x2x1".parse().unwrap();
    let first_fit = run(&settings);
    // Nodes 0 and 1, 2 and 3: each job has a switch of its own; the third one has the first nodes again.
    let alone = 8_000 + 2 * 500;
    assert_eq!(times(&first_fit), [(1, 0, alone), (2, 0, alone), (3, 0, alone)]);
    settings.jobs[0].places = Places::Random { per_node: 1 };
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..40 {
        settings.network.seed = seed;
        let report = run(&settings);
        assert_eq!(run(&settings).arrivals, report.arrivals, "the seed decides");
        seen.insert(times(&report).iter().map(|(_, _, time)| *time).max().unwrap());
    }
    // In one switch; over the cable alone or in opposite directions; or behind the message of the other job.
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [alone, alone + 1_000, alone + 9_000]);
}

/// The wait and length of each job, a nanosecond at a time: nothing here is code of the simulator. With requested times jobs are backfilled, when others
/// arrive or end.
fn stepped(jobs: &[(u64, u32)], lengths: &[u64], nodes: u32, requested: Option<&[u64]>) -> Vec<(u64, u64)> {
    let mut started: Vec<Option<u64>> = vec![None; jobs.len()];
    let length = |job: usize| lengths[jobs[job].1 as usize - 1];
    let mut now = 0;
    while started.contains(&None) {
        let runs = |job: &usize| started[*job].is_some_and(|start| now < start + length(*job));
        let running: Vec<usize> = (0..jobs.len()).filter(runs).collect();
        let free = nodes - running.iter().map(|&job| jobs[job].1).sum::<u32>();
        let waiting: Vec<usize> =
            (0..jobs.len()).filter(|&job| started[job].is_none() && jobs[job].0 <= now).collect();
        let ended = |job: usize| started[job].is_some_and(|start| now == start + length(job));
        let is_event = (0..jobs.len()).any(|job| jobs[job].0 == now || ended(job));
        let may_start = |job: usize| {
            let (first, wanted) = (waiting[0], jobs[job].1);
            let Some(requested) = requested.filter(|_| job != first) else {
                return job == first && wanted <= free;
            };
            // Free nodes at a later moment, if all end as they said, or at once if they should have.
            let free_at = |at: u64| {
                let still = running.iter().filter(|&&job| started[job].unwrap() + requested[job] > at);
                nodes - still.map(|&job| jobs[job].1).sum::<u32>()
            };
            let shadow = (now..).find(|&at| free_at(at) >= jobs[first].1).unwrap();
            let left = free_at(shadow) - jobs[first].1;
            wanted <= free && (now + requested[job] <= shadow || wanted <= left)
        };
        match waiting.iter().copied().find(|&job| is_event && may_start(job)) {
            Some(job) => started[job] = Some(now),
            None => now += 1,
        }
    }
    let times = started.iter().enumerate();
    times.map(|(job, start)| (start.unwrap() - jobs[job].0, length(job))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn jobs_wait_as_in_a_queue_that_steps_through_time(
        gaps in prop::collection::vec((0u64..40, 1u32..=4), 1..40),
        lengths in prop::collection::vec(1u64..60, 4),
        nodes in 4u32..9,
    ) {
        let mut submit = 0;
        let jobs: Vec<(u64, u32)> = gaps.into_iter().map(|(gap, ranks)| { submit += gap; (submit, ranks) }).collect();
        let traces: Vec<NamedTempFile> = (1..).zip(&lengths).map(|(ranks, length)| computing(ranks, *length)).collect();
        let report = run(&arriving(&traces.iter().collect::<Vec<_>>(), &list(&jobs, nodes)));
        let found: Vec<(u64, u64)> = times(&report).into_iter().map(|(_, wait, time)| (wait, time)).collect();
        prop_assert_eq!(found, stepped(&jobs, &lengths, nodes, None));
    }

    #[test]
    fn backfilled_jobs_wait_as_in_a_queue_that_steps_through_time(
        gaps in prop::collection::vec((0u64..20, 1u32..=4, 1u64..80), 1..40),
        lengths in prop::collection::vec(1u64..60, 4),
        nodes in 4u32..9,
    ) {
        let mut submit = 0;
        let jobs: Vec<(u64, u32, u64)> =
            gaps.into_iter().map(|(gap, ranks, time)| { submit += gap; (submit, ranks, time) }).collect();
        let traces: Vec<NamedTempFile> = (1..).zip(&lengths).map(|(ranks, length)| computing(ranks, *length)).collect();
        let mut settings = arriving(&traces.iter().collect::<Vec<_>>(), &list(&[(0, 1)], nodes));
        settings.arrive(&requesting(&jobs, nodes), &[], Picos(1_000), Backfill::Easy).unwrap();
        let found: Vec<(u64, u64)> = times(&run(&settings)).into_iter().map(|(_, wait, time)| (wait, time)).collect();
        let (times, jobs): (Vec<u64>, Vec<(u64, u32)>) =
            jobs.iter().map(|&(submit, ranks, time)| (time, (submit, ranks))).unzip();
        prop_assert_eq!(found, stepped(&jobs, &lengths, nodes, Some(&times)));
    }
}

/// What links carried is told by trace, and by rank of the trace: instances of one are together.
#[test]
fn links_are_those_of_traces() {
    let pair = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 1000 4 10 -1\n1 1 1 0 2 0 0\n");
    let back = trace("VEF3 3 2 0 0 0 0 1000\n0 2 1 500 4 10 -1\n1 1 1 0 2 0 0\n");
    let jobs = [(0, 2), (0, 3), (0, 2), (10_000, 3), (10_000, 2), (20_000, 2)];
    let mut settings = arriving(&[&pair, &back], &list(&jobs, 8));
    settings.observe.links = true;
    let report = run(&settings);
    let links = report.links.all.as_ref().unwrap();
    let mut of_sources = std::collections::BTreeMap::new();
    for source in links.iter().flat_map(|link| &link.over_time.as_ref().unwrap().sources) {
        *of_sources.entry((source.job, source.task)).or_insert(0) += source.bytes;
    }
    // Over two links each.
    assert_eq!(of_sources.into_iter().collect::<Vec<_>>(), [((0, 0), 2 * 4 * 1000), ((1, 2), 2 * 2 * 500)]);
    let mut of_traces = [0; 2];
    for job in links.iter().flat_map(|link| &link.over_time.as_ref().unwrap().jobs) {
        of_traces[job.job.unwrap() as usize] += job.bytes;
    }
    assert_eq!(of_traces, [8_000, 2_000]);
}

/// A job also holds its nodes until a message has arrived for which no task waits.
#[test]
fn nodes_are_free_when_the_last_message_has_arrived() {
    let message = trace("VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 5 -1\n");
    let report = run(&arriving(&[&message], &list(&[(0, 2), (0, 2)], 2)));
    // 800 ns and two links of 500 ns behind the 5 ns after which both tasks have ended.
    assert_eq!(times(&report), [(1, 0, 5), (2, 1_805, 5)]);
}

#[test]
fn arrivals_that_cannot_be() {
    let two = computing(2, 10);
    let mut settings = Settings { jobs: vec![Workload::new(two.path())], ..Settings::default() };
    let mut arrive = |list: &ArrivalList, second: u64| {
        settings.arrive(list, &[], Picos(second), Backfill::Easy).map_err(|e| e.to_string())
    };
    assert_eq!(arrive(&list(&[(0, 3)], 4), 1).unwrap_err(), "list.swf:2: job 1: no trace has 3 ranks");
    assert_eq!(arrive(&list(&[], 4), 1).unwrap_err(), "the list of arrivals has no job that ran");
    assert_eq!(
        arrive(&list(&[(0, 2), (18_446_745, 2)], 4), 1_000_000_000_000).unwrap_err(),
        "list.swf:3: submit time 18446745: past the end of time (2^64 ps, 213 days)"
    );
    let unknown = ArrivalList::parse("1 0 -1 9 2 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n", "list.swf").unwrap();
    assert!(arrive(&unknown, 1).unwrap_err().contains("give a topology"));
    let unread =
        ArrivalList::parse("; MaxNodes: few\n1 0 -1 9 2 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n", "list.swf");
    assert_eq!(
        arrive(&unread.unwrap(), 1).unwrap_err(),
        "list.swf:1: MaxNodes: \"few\": not a number from 1"
    );
    let endless = ArrivalList::parse("1 0 -1 -1 2 -1 -1 -1 -1 -1 1 1 1 -1 1 -1 -1 -1\n", "list.swf").unwrap();
    assert_eq!(
        arrive(&endless, 1).unwrap_err(),
        "list.swf:1: backfilling needs the requested time or the run time: both are unknown"
    );
    let error = |settings: &Settings| simulate(settings, &mut |_| {}).unwrap_err().to_string();
    let mut small = arriving(&[&two], &list(&[(0, 2)], 1));
    assert_eq!(error(&small), format!("{}: its jobs need 2 nodes; the topology has 1", two.path().display()));
    small.network.topology = "switch:2".parse().unwrap();
    small.observe.waits = true;
    assert_eq!(error(&small), "waits: not with jobs that arrive");
    // A job that never ends is named, and those behind it do not hang.
    let stuck = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 10 6 0 1\n1 1 0 10 6 0 0\n");
    assert!(error(&arriving(&[&stuck], &list(&[(0, 2), (0, 2)], 2))).contains("the trace is stuck"));
}
