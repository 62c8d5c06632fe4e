//! Whole simulations of all models: they agree where nothing waits, and carry the same messages everywhere.

use sim_example::model::{Model, Weights};
use sim_example::{Settings, SimError, Workload, simulate};
use std::io::Write;
use std::path::{Path, PathBuf};
use vef_format::units::{Bytes, Picos, Ticks};

fn settings(trace: &Path) -> Settings {
    Settings { jobs: vec![Workload::new(trace)], ..Settings::default() }
}

/// Task 0 sends 1000 bytes, task 1 answers with 500, task 2 sends to itself.
const LONE: &str =
    "VEF3 3 4 0 0 0 0 1000\n0 0 1 1000 4 5 -1\n1 1 0 500 6 2 0\n2 0 0 0 2 1 1\n3 2 2 800 0 1 -1\n";

#[test]
fn models_agree_where_nothing_waits() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(LONE.as_bytes()).unwrap();
    let mut settings = settings(file.path());
    for topology in ["switch:4", "karytree:2x2", "torus:5", "mesh:2x2", "hyperx:2x2:1", "dragonfly:1x2x1"] {
        settings.network.topology = topology.parse().unwrap();
        settings.network.links.switch_delay = Picos(100_000);
        let mut times = Vec::new();
        for model in [Model::Latency, Model::CutThrough, Model::Packet, Model::Flow] {
            settings.network.model = model;
            for weights in [Weights::Equal, Weights::Latency] {
                settings.network.flow.weights = weights;
                times.push(simulate(&settings, &mut |_| {}).unwrap().jobs[0].finish.tasks_ps.clone());
            }
        }
        assert!(times.iter().all(|time| *time == times[0]), "{topology}: {times:?}");
        if topology == "switch:4" {
            // Two links and a switch are a latency, all bytes but the first the rest.
            settings.network.model = Model::LogGp;
            settings.network.loggp.parameters = "L=1100.8,o=0,g=0,G=0.8,O=0".parse().unwrap();
            let loggp = simulate(&settings, &mut |_| {}).unwrap();
            // The processor of task 2 is busy with what it receives; of that nobody waits in the others.
            assert_eq!(loggp.jobs[0].finish.tasks_ps[..2], times[0][..2]);
        }
    }
}

/// Traces of all patterns, and the real ones at hand.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let mut traces: Vec<PathBuf> = workloads::PATTERNS
        .iter()
        .map(|pattern| {
            let workload = workloads::Workload {
                bytes: Bytes(5000),
                iterations: 2,
                compute: Ticks(500),
                noise: 0.5,
                gradient: Bytes(30_000),
                model: workloads::Model::tiny(),
                ..workloads::Workload::new(pattern, 12)
            };
            let path = folder.join(format!("{}.vef", pattern.name));
            workload.write_text(std::fs::File::create(&path).unwrap()).unwrap();
            path
        })
        .collect();
    if let Some(folder) = skipping::shared("data/vef-prospector") {
        traces.extend(["p2p-a.vef", "p2p-b.vef"].map(|name| folder.join(name)));
    }
    traces
}

/// Messages and bytes of a trace, by its lines and by what the algorithms are known to send: a linear Alltoall among m members, m (m - 1)
/// blocks; an Allreduce by halving and doubling, whose number of members is brought to a power of two first and back at the end,
/// 2 (m - 1) times the vector.
fn messages_and_bytes(trace: &Path) -> (u64, u64) {
    let text = std::fs::read_to_string(trace).unwrap();
    let (mut messages, mut bytes) = (0, 0);
    let mut members = std::collections::HashMap::new();
    let mut begun = std::collections::HashSet::new();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().unwrap();
        match (&words[0][..1], words.get(2)) {
            ("C", _) => drop(members.insert(words[0], words.len() as u64 - 1)),
            ("G", _) if !begun.insert(words[0]) => {}
            ("G", Some(&"7")) => {
                let members = members[words[1]];
                messages += members * (members - 1);
                bytes += (members - 1) * number(4);
            }
            ("G", Some(&"2")) => {
                let members = members[words[1]];
                let doublings = u64::from(members.ilog2());
                let folded = members - (1 << doublings);
                messages += 2 * folded + 2 * (doublings << doublings);
                bytes += 2 * (members - 1) * number(4);
            }
            ("G", _) => panic!("{line}"),
            // A mark is no message.
            _ if words[1] == words[2] && number(3) == 0 && number(4) & 4 == 0 => {}
            _ => {
                messages += 1;
                bytes += number(3);
            }
        }
    }
    (messages, bytes)
}

#[test]
fn every_topology_routing_and_model_carries_all_messages() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.txt");
    // Three switches in a ring with four nodes each.
    let mut network = "switch s0\nswitch s1\nswitch s2\nlink s0 s1 bandwidth=20Gbit/s\nlink s1 s2\nlink s2 s0 latency=2us\n".to_owned();
    for node in 0..12 {
        network += &format!("node n{node}\nlink n{node} s{}\n", node / 4);
    }
    std::fs::write(&file, network).unwrap();
    let topologies = [
        "switch:20",
        "fattree:k=4",
        "karytree:3x3",
        "xgft:4,5;1,2",
        "torus:3x3x2",
        "mesh:4x5",
        "hyperx:3x3:2",
        "dragonfly:2x4x2",
        "FILE",
    ];
    let routings = [
        "minimal",
        "dor",
        "dmodk",
        "ecmp:pair",
        "ecmp:message",
        "ecmp:packet",
        "adaptive",
        "valiant",
        "ugal",
    ];
    for trace in traces(folder.path()) {
        let mut settings = settings(&trace);
        let expected = messages_and_bytes(&trace);
        let (mut run, mut refused) = (0, 0);
        for topology in topologies {
            let topology = topology.replace("FILE", &format!("file:{}", file.display()));
            settings.network.topology = topology.parse().unwrap();
            for routing in routings {
                settings.network.routing = routing.parse().unwrap();
                for model in Model::ALL {
                    settings.network.model = model;
                    let about = format!("{}, {topology}, {routing}, {model}", trace.display());
                    match simulate(&settings, &mut |_| {}) {
                        Ok(report) => {
                            run += 1;
                            assert_eq!((report.messages, report.bytes), expected, "{about}");
                            assert_eq!(report.latency.messages, report.messages, "{about}");
                        }
                        // A routing of other topologies.
                        Err(SimError::Model(error)) if matches!(routing, "dor" | "dmodk") => {
                            assert!(error.to_string().contains("is for"), "{about}: {error}");
                            refused += 1;
                        }
                        Err(error) => panic!("{about}: {error}"),
                    }
                }
            }
        }
        // `dor` has three of the topologies, `dmodk` four; loggp asks for no routing.
        assert_eq!((run, refused), (9 * 7 * 7 + 2 * 9 + 7 * 6, (6 + 5) * 6), "{}", trace.display());
    }
}
