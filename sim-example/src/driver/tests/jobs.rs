//! Several jobs in one network: their nodes, how much they slow each other down, jobs that run again, background traffic.

use std::io::Write;

use placement::{Location, Node, Placement, PlacementFormat};
use replay::{Job, Picos};
use tempfile::NamedTempFile;

use super::super::*;
use crate::model::{Members, Model};
use crate::places::Places;
use crate::settings::Workload;

fn trace(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Task 0 sends 1000 bytes to task 1, which waits for them: 800 ns on each link at 10 Gbit/s.
const MESSAGE: &str = "VEF3 2 2 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n1 1 1 0 2 0 0\n";
/// 800 ns.
const SENDING: u64 = 800_000;

fn jobs<'a>(traces: impl IntoIterator<Item = &'a NamedTempFile>, topology: &str) -> Settings {
    let jobs = traces.into_iter().map(|trace| Workload::new(trace.path())).collect();
    let mut settings = Settings { jobs, ..Settings::default() };
    settings.network.topology = topology.parse().unwrap();
    settings
}

fn quiet(settings: &Settings) -> Simulation {
    simulate(settings, &mut |_| {}).unwrap()
}

fn nodes(settings: &Settings) -> Result<Vec<Vec<u32>>, SimError> {
    let jobs: Vec<Job> = settings.jobs.iter().map(|job| Job::open(&job.trace).unwrap()).collect();
    allocate(settings, &jobs)
}

#[test]
fn each_job_gets_nodes_of_its_own() {
    let four = trace("VEF3 4 1 0 0 0 0 1000\n0 0 1 10 0 0 -1\n");
    let mut settings = jobs([&four, &four, &four], "switch:12");
    assert_eq!(nodes(&settings).unwrap(), [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]);
    settings.jobs[0].places = Places::Block { per_node: 2 };
    settings.jobs[1].places = Places::RoundRobin { nodes: 3 };
    // Nodes of a placement are taken first, also where jobs share them.
    settings.jobs[2].places = Places::Given(Placement::round_robin(4, 2).unwrap());
    assert_eq!(nodes(&settings).unwrap(), [[2, 2, 3, 3], [4, 5, 6, 4], [0, 1, 0, 1]]);
    settings.jobs[1].places = Places::Given(Placement::round_robin(4, 1).unwrap());
    assert_eq!(nodes(&settings).unwrap()[1..], [[0, 0, 0, 0], [0, 1, 0, 1]]);

    // Names of the topology's nodes are these; other names are nodes in their order.
    let named = |text: &str| Places::Given(Placement::parse(text, PlacementFormat::Text, "names").unwrap());
    settings.jobs[0].places = named("node7\nnode9\nnode7\nnode0\n");
    settings.jobs[1].places = named("a7\na9\na7\na0\n");
    assert_eq!(nodes(&settings).unwrap()[..2], [[7, 9, 7, 0], [0, 1, 0, 2]]);
    settings.jobs[1].places = named("node7\nnode9\nnode7\na0\n");
    assert!(nodes(&settings).unwrap_err().to_string().contains("no node \"a0\""));

    let random = Places::Random { per_node: 2 };
    settings.jobs.iter_mut().for_each(|job| job.places = random.clone());
    settings.network.topology = "switch:6".parse().unwrap();
    let mut drawn = std::collections::HashSet::new();
    for seed in 1..20 {
        settings.network.seed = seed;
        let found = nodes(&settings).unwrap();
        assert!(found.iter().all(|nodes| nodes[0] == nodes[1] && nodes[2] == nodes[3]));
        let mut all: Vec<u32> = found.iter().flatten().copied().step_by(2).collect();
        drawn.insert(all.clone());
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5], "each node has one job");
        assert_eq!(nodes(&settings).unwrap(), found, "the seed decides");
    }
    assert!(drawn.len() > 10);
    settings.network.topology = "switch:5".parse().unwrap();
    let error = nodes(&settings).unwrap_err().to_string();
    assert_eq!(error, "job 2 needs 2 nodes that no other job has; the topology has 1");
    // One job, too, on nodes of the whole topology.
    settings.jobs.truncate(1);
    settings.network.topology = "switch:1000".parse().unwrap();
    assert!(nodes(&settings).unwrap()[0].iter().any(|&node| node > 10));
}

/// Two jobs send over the only cable between two switches at once: the second one's message waits for the whole first one.
#[test]
fn jobs_slow_each_other_down_by_what_they_wait_for() {
    let message = trace(MESSAGE);
    let mut settings = jobs([&message, &message], "fattree:2x2x1");
    let across = |node| {
        let nodes = (0..4).map(|node| Node::named(format!("node{node}"))).collect();
        Places::Given(Placement { nodes, ranks: vec![Location::on(node), Location::on(node + 2)] })
    };
    (settings.jobs[0].places, settings.jobs[1].places) = (across(0), across(1));
    settings.observe.links = true;
    let mut report = quiet(&settings);
    for job in 0..2 {
        report.set_alone(job, &quiet(&settings.alone(job as u32)));
    }
    // Four links of 500 ns.
    let alone = SENDING + 4 * 500_000;
    let of = |job: usize| (report.jobs[job].runtime_ps, report.jobs[job].alone.unwrap());
    assert_eq!((of(0).1.runtime_ps, of(1).1.runtime_ps), (alone, alone));
    let mut times = [of(0).0, of(1).0];
    times.sort_unstable();
    assert_eq!(times, [alone, alone + SENDING]);
    assert_eq!(of(1).1.slowdown, of(1).0 as f64 / alone as f64);
    // The cable has the bytes of both, the links of nodes those of one.
    let shared = |link: &results::simulation::LinkReport| {
        link.over_time.as_ref().unwrap().jobs.iter().map(|of| (of.job, of.bytes)).collect::<Vec<_>>()
    };
    let all = report.links.all.as_ref().unwrap();
    let link = |name: &str| all.iter().find(|link| link.link == name).unwrap();
    assert_eq!(shared(link("leaf0->spine0")), [(Some(0), 1000), (Some(1), 1000)]);
    assert_eq!(shared(link("node1->leaf0")), [(Some(1), 1000)]);
    assert_eq!(report.job_links_table().rows().count(), 2 * 2 + 4);
    assert!(report.to_text().contains("slowdown 1."), "{}", report.to_text());
}

/// Of two jobs that send 300 packets each over one cable at once, the one with three times the weight has three of four while both do.
#[test]
fn jobs_share_a_cable_by_their_classes() {
    let message = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 300000 0 0 -1\n1 1 1 0 2 0 0\n");
    let mut settings = jobs([&message, &message], "fattree:2x2x1");
    let across = |node| {
        let nodes = (0..4).map(|node| Node::named(format!("node{node}"))).collect();
        Places::Given(Placement { nodes, ranks: vec![Location::on(node), Location::on(node + 2)] })
    };
    (settings.jobs[0].places, settings.jobs[1].places) = (across(0), across(1));
    (settings.network.model, settings.network.packet.size) = (Model::Packet, vef_format::units::Bytes(1000));
    settings.network.packet.classes.add(Members::Job(1), 3).unwrap();
    let report = quiet(&settings);
    // Packets of 800 ns, without the latencies.
    let packets = |job: usize| (report.jobs[job].runtime_ps - 4 * 500_000) as f64 / SENDING as f64;
    assert!(
        (packets(1) - 400.0).abs() < 6.0 && (packets(0) - 600.0).abs() < 6.0,
        "{} {}",
        packets(0),
        packets(1)
    );
}

/// A job runs again from the end of its last task on; the first run is reported.
#[test]
fn jobs_repeat() {
    let message = trace(MESSAGE);
    // Computes for 20 µs, then sends.
    let long = trace("VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 20000 -1\n");
    let mut settings = jobs([&long, &message], "switch:4");
    let alone = SENDING + 2 * 500_000;
    settings.jobs[1].repeat = Repeat::Times(3);
    settings.jobs[1].start = Picos(7);
    let report = quiet(&settings);
    let runs = report.jobs[1].runs.unwrap();
    assert_eq!((runs.runs, runs.mean_ps, report.messages), (3, alone, 4));
    assert_eq!(report.jobs[0].runs.unwrap().runs, 1);
    assert_eq!(report.jobs[1].start_ps, 7);
    settings.jobs[1].repeat = Repeat::Until(0);
    let report = quiet(&settings);
    let runs = report.jobs[1].runs.unwrap();
    assert_eq!((runs.min_ps, runs.max_ps, runs.mean_ps), (alone, alone, alone));
    // The first job is over when its message has arrived, for which no task waits.
    assert_eq!(report.jobs[0].runtime_ps, 20_000_000);
    assert_eq!(runs.runs, (20_000_000 + alone - 7).div_ceil(alone));
    assert_eq!((report.jobs[1].runtime_ps, report.jobs[1].finish.max_ps), (alone, alone + 7));
    let times: u64 = report.jobs[1].times.0.iter().sum();
    assert_eq!(times, report.jobs[1].finish.tasks_ps.iter().sum::<u64>() - 2 * 7);

    // It does not wait for one that is stuck, which is named.
    let stuck = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 10 6 0 1\n1 1 0 10 6 0 0\n");
    settings.jobs[0].trace = stuck.path().to_path_buf();
    let error = simulate(&settings, &mut |_| {}).unwrap_err();
    assert!(matches!(error, SimError::Stuck(_)), "{error}");
    settings.jobs[0].repeat = Repeat::Until(1);
    let error = simulate(&settings, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("job 0 repeats until job 1 is over: that must be another job"), "{error}");
}

/// A job that begins when another is over, and one after that, which repeats.
#[test]
fn jobs_begin_after_others() {
    let message = trace(MESSAGE);
    // Computes for 20 µs, then sends.
    let long = trace("VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 20000 -1\n");
    let mut settings = jobs([&long, &message, &message], "switch:6");
    let alone = SENDING + 2 * 500_000;
    (settings.jobs[1].after, settings.jobs[1].start) = (Some(0), Picos(7));
    (settings.jobs[2].after, settings.jobs[2].repeat) = (Some(1), Repeat::Times(2));
    let report = quiet(&settings);
    // The first is over when its message has arrived, for which no task waits.
    let second = 20_000_000 + alone + 7;
    let times = |job: usize| (report.jobs[job].start_ps, report.jobs[job].runtime_ps);
    assert_eq!([times(0), times(1), times(2)], [(0, 20_000_000), (second, alone), (second + alone, alone)]);
    assert_eq!(report.jobs[2].runs.unwrap().runs, 2);
    assert_eq!((report.runtime_ps, report.messages), (second + 3 * alone, 4));
    for job in 0..3 {
        let of_job = &report.jobs[job];
        let times: u64 = of_job.times.0.iter().sum();
        assert_eq!(times, of_job.finish.tasks_ps.iter().map(|end| end - of_job.start_ps).sum::<u64>());
        assert_eq!(quiet(&settings.alone(job as u32)).jobs[0].runtime_ps, of_job.runtime_ps);
    }
    // One that runs until a job is over that has not begun yet.
    settings.jobs[2] = Workload { repeat: Repeat::Until(1), ..Workload::new(message.path()) };
    let report = quiet(&settings);
    assert_eq!(report.jobs[2].runs.unwrap().runs, (second + alone).div_ceil(alone));

    // One that is stuck, after which another waits for ever.
    let stuck = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 10 6 0 1\n1 1 0 10 6 0 0\n");
    settings.jobs[0].trace = stuck.path().to_owned();
    let error = simulate(&settings, &mut |_| {}).unwrap_err();
    assert!(matches!(error, SimError::Stuck(_)), "{error}");
    for (first, second) in [(Some(1), Some(0)), (Some(0), None), (Some(9), None)] {
        (settings.jobs[0].after, settings.jobs[1].after) = (first, second);
        let error = simulate(&settings, &mut |_| {}).unwrap_err().to_string();
        assert!(error.starts_with("job 0 begins after job"), "{error}");
    }
    // A job that repeats until one is over that begins after it.
    (settings.jobs[0].after, settings.jobs[1].after) = (None, Some(0));
    settings.jobs[0].repeat = Repeat::Until(1);
    let error = simulate(&settings, &mut |_| {}).unwrap_err().to_string();
    assert!(
        error.starts_with("jobs wait for each other in a circle")
            && error.ends_with(": job 0, job 1 and again 0"),
        "{error}"
    );
    settings.jobs[0].repeat = Repeat::default();
    settings.network.model = Model::LogGp;
    settings.jobs.truncate(2);
    let error = simulate(&settings, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(error, "jobs that repeat or begin after others: not with model loggp");
}

/// Background traffic of each node to the next makes the node's link an M/D/1 queue. A message that comes at any time waits ρ/2(1−ρ) times as
/// long as it takes to send one, in the mean; behind that link all are in a row.
#[test]
fn background_traffic_delays_like_a_queue() {
    let rounds = 4000u64;
    let (size, slot) = (2048, 8 * 2048 * 100);
    // A message every 30 to 60 transmission times, so that one does not see what the last one did.
    let mut text = format!("VEF3 2 {rounds} 0 0 0 0 1\n");
    for round in 0..rounds {
        let (pause, after) =
            (slot * 30 + round * 7919 % (slot * 30), if round == 0 { -1 } else { round as i64 - 1 });
        let dependency = if round == 0 { 0 } else { 1 };
        text += &format!("{round} 0 1 {size} {dependency} {pause} {after}\n");
    }
    let file = trace(&text);
    for (load, model) in [(0.5, Model::CutThrough), (0.8, Model::CutThrough), (0.5, Model::Packet)] {
        let mut settings = jobs([&file], "switch:8");
        settings.network.model = model;
        let quiet_latency = quiet(&settings).latency.mean_ps;
        settings.background = Some(format!("neighbor@{load}").parse().unwrap());
        let report = quiet(&settings);
        let waited = (report.latency.mean_ps - quiet_latency) as f64 / slot as f64;
        let expected = load / (2.0 * (1.0 - load));
        assert!((waited / expected - 1.0).abs() < 0.1, "{model} {load}: {waited}, expected {expected}");
        let background = report.background.unwrap();
        let offered = load * 8.0 * report.runtime_ps as f64 / slot as f64;
        assert!(
            (background.messages as f64 / offered - 1.0).abs() < 0.01,
            "{} of {offered}",
            background.messages
        );
        assert!(background.messages - background.delivered < 200);
        assert_eq!(report.messages, rounds);
    }
}

/// More than the network can carry waits in bounded memory, and the jobs still end.
#[test]
fn background_traffic_beyond_saturation_is_bounded() {
    let message = trace("VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 50000000 -1\n");
    let mut settings = jobs([&message], "mesh:4x4");
    settings.background = Some("incast@1".parse().unwrap());
    let background = quiet(&settings).background.unwrap();
    assert!(background.messages - background.delivered <= 16 * 1000, "{background:?}");
    for text in ["uniform", "uniform@0", "uniform@1.1", "none@0.5", "uniform@x", "@0.5"] {
        assert!(text.parse::<Background>().is_err(), "{text}");
    }
    assert_eq!("tornado@0.25".parse::<Background>().unwrap().to_string(), "tornado@0.25");
    settings.network.model = Model::LogGp;
    let error = simulate(&settings, &mut |_| {}).unwrap_err().to_string();
    assert_eq!(error, "background traffic: not with model loggp");
}
