//! Whole simulations: small traces by hand, real ones against another way to replay them.

mod arrivals;
mod jobs;
mod offload;
mod threads;

use super::*;
use crate::computing::ComputeScale;
use crate::model::{Buffers, Model, OutOfTime, PacketSettings, Packets, Setup};
use crate::places::Places;
use crate::settings::Workload;
use placement::Placement;
use replay::{Job, Link, Replay, SameNode};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use vef_format::units::{Bytes, Picos};

fn trace(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn settings(trace: &Path) -> Settings {
    Settings { jobs: vec![Workload::new(trace)], ..Settings::default() }
}

fn quiet(settings: &Settings) -> Result<Simulation, SimError> {
    simulate(settings, &mut |_| {})
}

/// Task 0 sends 1000 bytes, task 1 answers with 500.
const PING_PONG: &str = "VEF3 2 3 0 0 0 0 1000\n0 0 1 1000 4 5 -1\n1 1 0 500 6 2 0\n2 0 0 0 2 1 1\n";

#[test]
fn a_ping_pong_by_hand() {
    let file = trace(PING_PONG);
    let report = quiet(&settings(file.path())).unwrap();
    // 5 ns, 800 + 1000 ns, 2 ns, 400 + 1000 ns, 1 ns.
    assert_eq!(report.runtime_ps, 3_208_000);
    assert!(report.complete);
    assert_eq!((report.tasks, report.messages, report.bytes, report.marks), (2, 2, 1500, 1));
    let finish = &report.jobs[0].finish;
    assert_eq!(finish.tasks_ps, [3_208_000, 1_807_000]);
    assert_eq!((finish.min_ps, finish.mean_ps, finish.max_ps), (1_807_000, 2_507_500, 3_208_000));
    assert_eq!((report.latency.messages, report.latency.min_ps), (2, 1_400_000));
    assert_eq!((report.latency.max_ps, report.latency.mean_ps), (1_800_000, 1_600_000));
    assert_eq!((report.network.topology.as_str(), report.links.used), ("switch:2", 4));
    let busiest = &report.links.busiest[0];
    assert_eq!((busiest.link.as_str(), busiest.busy_ps), ("node0->switch", 800_000));
    assert_eq!(report.links.utilisation_max, 800_000.0 / 3_208_000.0);
    assert_eq!(report.links.utilisation_mean, 2_400_000.0 / 4.0 / 3_208_000.0);
    assert_eq!(report.performance.events, 4);

    let text = report.to_text();
    for part in ["switch:2: 2 nodes, 4 links", "3.208 µs", "point-to-point", "node0->switch", "2 (1 500 B)"]
    {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

/// Ranks that were not recorded are in no minimum and no mean.
#[test]
fn tasks_without_records_finish_never() {
    let file = trace(&PING_PONG.replace("VEF3 2", "VEF3 3"));
    let mut settings = settings(file.path());
    settings.jobs[0].start = Picos(1_000_000);
    let finish = &quiet(&settings).unwrap().jobs[0].finish;
    assert_eq!(finish.tasks_ps, [4_208_000, 2_807_000, 1_000_000]);
    assert_eq!((finish.min_ps, finish.mean_ps, finish.max_ps), (2_807_000, 3_507_500, 4_208_000));
}

/// The model has neither links nor times of tasks by state.
#[test]
fn loggp_says_nothing_of_links_and_states() {
    let file = trace(PING_PONG);
    let mut settings = settings(file.path());
    settings.network.model = Model::LogGp;
    let text = quiet(&settings).unwrap().to_text();
    assert!(text.contains("messages      2 (1 500 B)") && text.contains("latency       min"), "{text}");
    assert!(!text.contains("links ") && !text.contains("computing"), "{text}");
}

/// Two messages of 1000 bytes after each other over one switch whose links are buckets of 600 bytes.
#[test]
fn a_token_bucket_by_hand() {
    let file = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n1 0 1 1000 0 0 -1\n");
    let mut settings = settings(file.path());
    settings.network.links.bandwidth = "8Gbit/s".parse().unwrap();
    settings.network.links.burst = Bytes(600);
    // 600 bytes pass at once, 400 take 400 ns, the other 1000 one microsecond; two links of 500 ns.
    assert_eq!(quiet(&settings).unwrap().runtime_ps, 400_000 + 1_000_000 + 1_000_000);
    // After a pause of 300 ns, 300 bytes pass at once: 1400 + 300 - 0 ns for all of it, no less than without a pause.
    let file = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n1 0 1 1000 0 700 -1\n");
    settings.jobs = vec![Workload::new(file.path())];
    // At 700 ns 300 bytes of the bucket are full again: 700 ns more for the rest.
    assert_eq!(quiet(&settings).unwrap().runtime_ps, 700_000 + 700_000 + 1_000_000);
    settings.network.links.burst = Bytes(100_000);
    assert_eq!(quiet(&settings).unwrap().runtime_ps, 700_000 + 1_000_000);
}

/// A full bucket behind one that is empty lets pass no byte before it is there.
#[test]
fn a_bucket_passes_on_what_has_arrived() {
    let file = trace("VEF3 3 2 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n1 0 2 1000 0 0 -1\n");
    let mut settings = settings(file.path());
    settings.network.links.bandwidth = "8Gbit/s".parse().unwrap();
    settings.network.links.burst = Bytes(600);
    assert_eq!(quiet(&settings).unwrap().runtime_ps, 400_000 + 1_000_000 + 1_000_000);
}

#[test]
fn the_values_of_the_report() {
    let file = trace(PING_PONG);
    let json = serde_json::to_value(quiet(&settings(file.path())).unwrap()).unwrap();
    assert_eq!(json["runtime_ps"], 3_208_000);
    let kind = json["kinds"][0].clone();
    assert_eq!(
        (&kind["kind"], &kind["messages"], &kind["bytes"]),
        (&"point_to_point".into(), &2.into(), &1500.into())
    );
    assert_eq!(kind["latency"], json["latency"]);
    // Task 0 computes 5 ns and, behind the answer, 1 ns; else it waits for that.
    assert_eq!(json["jobs"][0]["ranks"][0]["computing_ps"], 6_000);
    assert_eq!(json["jobs"][0]["ranks"][0]["reception_ps"], 3_202_000);
    assert_eq!(json["jobs"][0]["trace"], file.path().to_str().unwrap());
    assert_eq!(json["network"]["model"], "cut-through");
    assert_eq!(json["network"]["bandwidth_bits_per_s"], 10_000_000_000u64);
    assert!(json["links"].get("all").is_none() && json.get("critical_path").is_none());

    let mut settings = settings(file.path());
    assert!(json["network"].get("range_bits_per_s").is_none(), "all links are equal");
    settings.network.fail = vec!["node0->switch=25%".parse().unwrap()];
    let slower = quiet(&settings).unwrap();
    assert_eq!(slower.network.range_bits_per_s, Some([2_500_000_000, 10_000_000_000]));
    assert!(slower.to_text().contains("4 links of 2500Mbit/s to 10Gbit/s and "), "{}", slower.to_text());
    settings.network.fail.clear();
    settings.observe = Observe { links: true, critical_path: true, waits: true };
    let json = serde_json::to_value(quiet(&settings).unwrap()).unwrap();
    let links = &json["links"]["all"];
    assert_eq!(links.as_array().unwrap().len(), 4);
    assert_eq!(links[0]["sources"], serde_json::json!([{ "job": 0, "task": 0, "bytes": 1000 }]));
    assert_eq!(links[0]["kinds"], serde_json::json!([{ "kind": "point_to_point", "bytes": 1000 }]));
    // All of it: 5 + 2 + 1 ns of computing, two messages over two links each.
    let path = &json["critical_path"];
    let times = ["computing_ps", "latency_ps", "transmission_ps", "queueing_ps"].map(|key| &path[key]);
    assert_eq!(times, [8_000, 2_000_000, 1_200_000, 0]);
    assert_eq!(
        path["steps"][1],
        serde_json::json!({
            "what": "message", "from_ps": 5_000, "to_ps": 1_805_000, "job": 0, "task": 0, "record": 0, "to_task": 1,
            "bytes": 1000, "kind": "point_to_point", "queueing_ps": 0
        })
    );
}

/// What a task waits for until its message has left is its interface's overhead, transmission, and waiting behind others of its node.
#[test]
fn a_message_that_has_left_is_divided_by_cause() {
    let divided = |text: &str, model: Model, per_node| {
        let file = trace(text);
        let mut settings = settings(file.path());
        settings.jobs = vec![Workload { places: Places::Block { per_node }, ..Workload::new(file.path()) }];
        settings.network.model = model;
        settings.network.links.overhead = Picos(100_000);
        settings.send_completion = SendCompletion::WhenSent;
        settings.observe = Observe { links: true, critical_path: true, waits: true };
        let json = serde_json::to_value(quiet(&settings).unwrap()).unwrap();
        ["computing_ps", "overhead_ps", "latency_ps", "transmission_ps", "queueing_ps"]
            .map(|key| json["critical_path"][key].as_u64().unwrap())
    };
    // Two messages behind each other, of 800 and 400 ns.
    let two = "VEF3 2 3 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n1 0 1 500 1 5 0\n2 1 1 0 2 0 1\n";
    for model in [Model::CutThrough, Model::Packet] {
        assert_eq!(divided(two, model, 1), [5_000, 200_000, 1_000_000, 1_200_000, 0], "{model}");
    }
    // Here a message has left when it has arrived.
    assert_eq!(divided(two, Model::Flow, 1), [5_000, 200_000, 2_000_000, 1_200_000, 0]);
    // 1 ns behind one of another task of the node.
    let behind = "VEF3 4 3 0 0 0 0 1000\n0 1 3 1000 0 0 -1\n1 0 2 1000 0 1 -1\n2 0 0 0 1 5000 1\n";
    assert_eq!(divided(behind, Model::CutThrough, 2), [5_001_000, 100_000, 0, 800_000, 899_000]);
}

#[test]
fn options_change_what_they_should() {
    let file = trace(PING_PONG);
    let mut settings = settings(file.path());
    let runtime = |settings: &Settings| quiet(settings).unwrap().runtime_ps;

    settings.network.model = Model::StoreAndForward;
    assert_eq!(runtime(&settings), 3_208_000 + 800_000 + 400_000);
    settings.network.model = Model::CutThrough;
    settings.network.topology = "torus:2".parse().unwrap();
    assert_eq!(runtime(&settings), 3_208_000 + 2 * 500_000);
    settings.jobs[0].compute_scale = ComputeScale::all(2.0);
    settings.jobs[0].start = Picos(100);
    assert_eq!(runtime(&settings), 100 + 3_208_000 + 2 * 500_000 + 8_000);

    // Both tasks on one node: over its switch, or through memory with 300 ns and 10 GB/s, or 100 ns + 10 ps a byte.
    settings.jobs = vec![Workload { places: Places::Block { per_node: 2 }, ..Workload::new(file.path()) }];
    assert_eq!(runtime(&settings), 8_000 + 2 * 300_000 + 150_000);
    settings.same_node = SameNode::ViaNetwork;
    assert_eq!(runtime(&settings), 3_208_000);
    settings.same_node = SameNode::Inside(Link::new(Picos(100_000), 800_000_000_000).unwrap().into());
    let report = quiet(&settings).unwrap();
    assert_eq!(report.runtime_ps, 8_000 + 2 * 100_000 + 15_000);
    assert_eq!((report.same_node.messages, report.messages, report.links.used), (2, 2, 0));
    let text = report.to_text();
    assert!(text.contains("of which in a node    2 (1 500 B)"), "{text}");
    assert!(text.contains("latency       no messages on the network\n"), "{text}");
    assert_eq!((report.jobs[0].tasks, report.jobs[0].nodes), (2, 1));
}

#[test]
fn a_send_is_complete_when_its_last_byte_has_left() {
    // The second message depends on the completion of the first; both go to nobody who waits.
    let file = trace("VEF3 3 2 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n1 0 2 1000 1 100 0\n");
    let mut settings = settings(file.path());
    assert_eq!(quiet(&settings).unwrap().runtime_ps, 1_600_000 + 1_000_000);
    settings.send_completion = SendCompletion::WhenSent;
    assert_eq!(quiet(&settings).unwrap().runtime_ps, 800_000 + 100_000 + 800_000 + 1_000_000);
    settings.send_completion = SendCompletion::Rendezvous { above: Bytes(999) };
    assert_eq!(quiet(&settings).unwrap().runtime_ps, 1_800_000 + 100_000 + 1_800_000);
}

#[test]
fn two_jobs_meet_on_the_links() {
    let file = trace("VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n");
    let mut settings = settings(file.path());
    settings.jobs.push(Workload { start: Picos(300_000), ..Workload::new(file.path()) });
    // Rules would give them nodes of their own.
    settings
        .jobs
        .iter_mut()
        .for_each(|job| job.places = Places::Given(Placement::round_robin(2, 2).unwrap()));
    let report = quiet(&settings).unwrap();
    assert_eq!((report.tasks, report.messages, report.jobs.len()), (4, 2, 2));
    assert_eq!(report.runtime_ps, 2 * 800_000 + 1_000_000);
    assert!(report.to_text().contains("job 1 "));
}

#[test]
fn a_stuck_trace_is_an_error_that_explains() {
    let file = trace("VEF3 2 2 0 0 0 0 1000\n0 0 1 10 6 0 1\n1 1 0 10 6 0 0\n");
    let error = quiet(&settings(file.path())).unwrap_err();
    assert!(matches!(&error, SimError::Stuck(stuck) if stuck.circle.is_some()), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("in a circle: task 0 waits for task 1"), "{text}");
}

/// A ring of switches with one channel a link, which the check at the start refuses.
#[test]
fn a_deadlocked_network_names_its_channels() {
    let messages: String =
        (0..8).map(|from| format!("{from} {from} {} 100000 0 0 -1\n", (from + 3) % 8)).collect();
    let file = trace(&format!("VEF3 8 8 0 0 0 0 1000\n{messages}"));
    for buffers in [Buffers::Input, Buffers::Output] {
        let mut settings = settings(file.path()).network;
        settings.packet = PacketSettings { buffer: Some(Bytes(4096)), buffers, ..settings.packet };
        settings.topology = "torus:8".parse().unwrap();
        let engine = Engine::builder().job(Job::open(file.path()).unwrap()).engine().unwrap();
        let build: Build = |Setup { router, links, packet, report_sent, .. }| {
            Ok(Box::new(Packets::with_channels(router, 1, packet, links, report_sent, None)?))
        };
        let error = run_on(engine, &settings, build, Observe::default(), &mut |_| {}).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, SimError::Deadlock { .. }), "{text}");
        let circle: Vec<String> = (0..9).map(|switch| format!("({}) (channel 0)", switch % 8)).collect();
        assert!(text.contains(&circle.join(" -> ")), "{text}");
    }
}

#[test]
fn settings_that_cannot_be() {
    let file = trace(PING_PONG);
    let error = |change: &dyn Fn(&mut Settings)| {
        let mut settings = settings(file.path());
        change(&mut settings);
        quiet(&settings).unwrap_err().to_string()
    };
    assert_eq!(
        error(&|s| s.network.topology = "switch:1".parse().unwrap()),
        "task 1 is placed on node 1, but the nodes of switch:1 are 0 to 0: take a larger topology, or place several tasks on each (block:N)"
    );
    let far = placement::Placement::round_robin(2, 2).unwrap();
    assert!(
        error(&|s| {
            s.network.topology = "torus:2x2".parse().unwrap();
            s.jobs.push(s.jobs[0].clone());
            let mut far = far.clone();
            far.ranks[1].node = 4;
            s.jobs[1].places = Places::Given(far);
        })
        .starts_with("job 1, task 1 is placed on node 4, but the nodes of torus:2x2 are 0 to 3")
    );
    let short = placement::Placement::block(1, 1, 1).unwrap();
    assert!(error(&|s| s.jobs[0].places = Places::Given(short.clone())).contains("2 tasks"));
    assert!(error(&|s| s.jobs[0].places = Places::Block { per_node: 0 }).contains("at least 1"));
    assert!(
        error(&|s| s.jobs[0].places = Places::Captured).contains("does not record the hosts of its tasks")
    );
    assert!(error(&|s| s.jobs[0].compute_scale = ComputeScale::all(-1.0)).contains("time factor"));
    assert!(error(&|s| s.jobs.clear()).contains("no trace"));
    let promised = trace("VEF3 2147483647 0 0 0 0 0 1000\n");
    assert!(error(&|s| s.jobs[0].trace = promised.path().into()).contains("promises 2 147 483 647 tasks"));
    assert!(error(&|s| s.jobs[0].trace = "/nowhere.vef".into()).contains("/nowhere.vef"));
}

#[test]
fn the_end_of_time_is_reported() {
    let file = trace("VEF3 2 1 0 0 0 0 1000\n0 0 1 18446744073709551615 0 0 -1\n");
    let error = quiet(&settings(file.path())).unwrap_err();
    assert!(matches!(error, SimError::EndOfTime(OutOfTime { bytes: Bytes(u64::MAX) })), "{error:?}");
}

/// The real traces at hand.
fn real_traces() -> Vec<PathBuf> {
    let Some(folder) = skipping::shared("data/vef-prospector") else { return Vec::new() };
    let mut traces: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "vef"))
        .collect();
    traces.sort();
    assert!(!traces.is_empty(), "no traces in {}", folder.display());
    traces
}

#[test]
fn without_contention_one_switch_is_latency_and_bandwidth() {
    for path in real_traces() {
        let mut settings = settings(&path);
        settings.network.model = Model::Latency;
        let report = quiet(&settings).unwrap();

        let mut replay = Replay::builder().job(Job::open(&path).unwrap()).build().unwrap();
        let wire = Link::new(Picos(1_000_000), 10_000_000_000).unwrap();
        let mut arrivals = BinaryHeap::new();
        loop {
            let arrival = arrivals.peek().map(|&Reverse((at, _))| at);
            let Some(now) = replay.next_ready().into_iter().chain(arrival).min() else { break };
            if arrival == Some(now) {
                let Reverse((at, id)) = arrivals.pop().unwrap();
                replay.delivered(id, at).unwrap();
            } else if let Some(message) = replay.pop_ready(now).unwrap() {
                arrivals.push(Reverse((Picos(now.0 + wire.time(message.bytes).unwrap().0), message.id)));
            }
        }
        assert!(replay.is_complete());
        assert_eq!(report.runtime_ps, replay.finish().0);
        assert_eq!(report.messages, replay.stats().delivered);
    }
}

#[test]
fn real_traces_run_the_same_every_time() {
    for path in real_traces() {
        let mut settings = settings(&path);
        for topology in ["switch:8", "fattree:2x4x2", "fattree:k=4", "torus:3x3x2"] {
            settings.network.topology = topology.parse().unwrap();
            for model in Model::ALL {
                settings.network.model = model;
                let without_speed = |report: Simulation| {
                    let mut json = serde_json::to_value(report).unwrap();
                    json["performance"].take();
                    json
                };
                let mut told = 0;
                let once = simulate(&settings, &mut |progress| told = progress.delivered).unwrap();
                assert!(once.complete && once.messages > 0 && told <= once.messages);
                let kinds: u64 = once.kinds.iter().map(|of| of.amount.messages).sum();
                assert_eq!((kinds, once.latency.messages), (once.messages, once.messages));
                assert_eq!(without_speed(once), without_speed(quiet(&settings).unwrap()));
            }
        }
    }
}

#[test]
fn tasks_run_where_they_ran() {
    use vef_format::container::{About, Note, Settings as Written, Writer};
    let text = trace(PING_PONG);
    let mut reader = vef_format::text::Reader::open(text.path()).unwrap();
    let file = tempfile::Builder::new().suffix(".vefx").tempfile().unwrap();
    let mut writer =
        Writer::new(file.as_file(), reader.header(), &About::default(), Written::default()).unwrap();
    for (task, host) in [(0, "b"), (1, "a")] {
        writer.note(None, task, &Note::Host(host)).unwrap();
    }
    while let Some(line) = reader.next().unwrap() {
        match line {
            vef_format::text::Line::Message(message) => writer.message(&message).unwrap(),
            other => panic!("{other:?}"),
        }
    }
    writer.finish().unwrap();
    let mut settings = settings(file.path());
    settings.jobs[0].places = Places::Captured;
    settings.network.topology = "switch:1".parse().unwrap();
    let error = quiet(&settings).unwrap_err().to_string();
    assert_eq!(
        error,
        "task 1 is placed on node 1, but the nodes of switch:1 are 0 to 0: take a larger topology, or place several tasks on each (block:N)"
    );
    settings.network.topology = "switch:2".parse().unwrap();
    quiet(&settings).unwrap();
}
