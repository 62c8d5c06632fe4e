//! Synthetic traffic against textbooks; in the modules below, against BookSim2 and the bounds of networks.

mod booksim;
mod sharing;

use super::*;
use crate::model::{Buffers, Carrier, Links, Model, PacketSettings};
use std::path::Path;

/// A file of the reference results of other simulators.
pub(crate) fn reference(path: &str) -> String {
    let full = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simref").join(path);
    std::fs::read_to_string(&full).unwrap_or_else(|error| panic!("{}: {error}", full.display()))
}

/// A cycle of BookSim in picoseconds: a flit of a byte at 8 Gbit/s.
const CYCLE: f64 = 1000.0;

fn cycles(cycles: u64) -> Picos {
    Picos(cycles * CYCLE as u64)
}

/// BookSim's flattened butterfly numbers nodes over a plane of 8×8: node (x, y) is at router (x / 2, y / 2).
fn over_the_plane(destinations: Destinations) -> Destinations {
    let Destinations::One(to) = destinations else { return destinations };
    let ours = |node: u32| {
        let (x, y) = (node % 8, node / 8);
        (y / 2 * 4 + x / 2) * 4 + y % 2 * 2 + x % 2
    };
    let mut table = vec![0; to.len()];
    for (node, to) in (0..).zip(to) {
        table[ours(node) as usize] = ours(to);
    }
    Destinations::One(table)
}

/// Settings for a network of 1-byte packets, one a nanosecond.
fn network(topology: &str, model: Model) -> NetworkSettings {
    NetworkSettings {
        topology: topology.parse().unwrap(),
        model,
        links: Links { bandwidth: "8Gbit/s".parse().unwrap(), latency: Picos::ZERO, ..Links::default() },
        packet: PacketSettings { size: Bytes(1), buffer: Some(Bytes(64)), ..PacketSettings::default() },
        seed: 1,
        ..NetworkSettings::default()
    }
}

/// A textbook value of `tests/simref/closed.csv`.
fn closed(quantity: &str) -> f64 {
    let text = reference("closed.csv");
    let line = text.lines().find(|line| line.starts_with(&format!("{quantity},")));
    line.unwrap_or_else(|| panic!("no {quantity}")).split(',').nth(1).unwrap().parse().unwrap()
}

/// A source with random arrivals and equal messages is an M/D/1 queue.
#[test]
fn sources_wait_as_queues_of_constant_service_do() {
    let mean = closed("md1_wait_mean_0.5");
    let (p90, p99) = (closed("md1_wait_p90_0.8"), closed("md1_wait_p99_0.8"));
    for model in [Model::CutThrough, Model::Packet] {
        let point = |load: f64, measured| {
            // To oneself nothing else is met.
            let topology = network("switch:50", model).topology.build(1).unwrap();
            let to_oneself = Destinations::One((0..50).collect());
            let sizes = Some(Sizes::One(Bytes(1)));
            let traffic =
                Traffic { arrivals: Arrivals::Poisson, window: measured, sizes, ..Traffic::default() };
            run_between(&topology, &network("switch:50", model), &traffic, &to_oneself, load).unwrap()
        };
        let half = point(0.5, 20_000);
        // Half a million messages: the latency without waiting is a message's own time.
        let waited = half.latency.mean_ps as f64 / CYCLE - 1.0;
        assert!((waited / mean - 1.0).abs() < 0.02, "{model}: {waited}");
        assert!(half.mean_half_width_ps.unwrap() as f64 / CYCLE < 0.02, "{half:?}");
        let busy = point(0.8, 25_000);
        for (found, expected) in [(busy.latency.p90_ps, p90), (busy.latency.p99_ps, p99)] {
            let waited = found as f64 / CYCLE - 1.0;
            assert!((waited / expected - 1.0).abs() < 0.05, "{model}: {waited}, not {expected}");
        }
        assert_eq!(busy.latency.min_ps, cycles(1).0);
        assert!((busy.accepted - 0.8).abs() < 0.01 && !busy.saturated);
        // Behind the source nothing waits.
        assert_eq!((busy.network_latency.min_ps, busy.network_latency.max_ps), (cycles(1).0, cycles(1).0));
    }
}

/// Karol, Hluchyj, Morgan: output queues wait, input queues saturate.
#[test]
fn a_switch_with_output_and_with_input_queues() {
    let wait = closed("switch4_output_queue_wait_0.8");
    let (four, many) = (closed("switch_fifo_input_saturation_4"), closed("switch_fifo_input_saturation_inf"));
    let mut output = network("switch:4", Model::Packet);
    output.packet.buffers = Buffers::Output;
    // A message leaves whole: its time is counted once.
    let traffic = Traffic { window: 100_000, sizes: Some(Sizes::One(Bytes(1))), ..Traffic::default() };
    for settings in [output, network("switch:4", Model::CutThrough)] {
        let point = run_traffic(&settings, &traffic, 0.8).unwrap();
        let waited = point.latency.mean_ps as f64 / CYCLE - 1.0;
        assert!((waited / wait - 1.0).abs() < 0.02, "{}: {waited}", settings.model);
    }
    let saturation = |nodes: u32| {
        let mut input = network(&format!("switch:{nodes}"), Model::Packet);
        input.packet.vcs = Some(1);
        let traffic = Traffic { window: 20_000 / nodes * 4, ..Traffic::default() };
        run_traffic(&input, &traffic, 1.0).unwrap().accepted
    };
    assert!((saturation(4) / four - 1.0).abs() < 0.02, "{}", saturation(4));
    // That of 64 is within 1 % of that of any number.
    assert!((saturation(64) / many - 1.0).abs() < 0.02, "{}", saturation(64));
}

#[test]
fn loads_that_are_none() {
    for load in [0.0, -0.5, 1.5, f64::NAN] {
        let error = run_traffic(&network("switch:4", Model::Packet), &Traffic::default(), load).unwrap_err();
        assert!(error.to_string().contains("a share of the bandwidth above 0 and up to 1"), "{error}");
    }
    let nothing = Traffic { sizes: Some(Sizes::One(Bytes::ZERO)), ..Traffic::default() };
    assert!(run_traffic(&network("switch:4", Model::CutThrough), &nothing, 0.5).is_err());
}

/// The same traffic gives the same numbers, another seed others.
#[test]
fn traffic_is_reproducible() {
    let settings = network("torus:4x4", Model::Packet);
    let traffic = Traffic { window: 200, ..Traffic::default() };
    let point = |seed| run_traffic(&settings, &Traffic { seed, ..traffic.clone() }, 0.5).unwrap();
    assert_eq!(point(1), point(1));
    assert_ne!(point(1).latency, point(2).latency);
}

/// A file that lives as long as the test.
fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

/// A node with the share s of all messages beside an even part of the rest is full at the load 1 / (N·s + 1 − s).
#[test]
fn a_hotspot_saturates_its_link() {
    let bound = 1.0 / (16.0 * 0.1 + 0.9);
    for model in [Model::CutThrough, Model::Packet] {
        let traffic = Traffic { pattern: "hotspot:3=0.1".parse().unwrap(), ..Traffic::default() };
        let saturated = |load| run_traffic(&network("switch:16", model), &traffic, load).unwrap().saturated;
        assert!(!saturated(bound - 0.03), "{model}");
        assert!(saturated(bound + 0.03), "{model}");
    }
}

/// Of a matrix the node with the largest row sends at the load, the others at less in proportion.
#[test]
fn nodes_send_as_much_as_their_rows() {
    let matrix = file("0 1 2\n2 3 0.5\n2 0 0.5\n");
    let pattern: Sends = format!("file:{}", matrix.path().display()).parse().unwrap();
    let traffic = Traffic { pattern, window: 20_000, ..Traffic::default() };
    let point = run_traffic(&network("switch:4", Model::CutThrough), &traffic, 0.8).unwrap();
    assert!(!point.saturated);
    assert!((point.offered / ((0.8 + 0.4) / 4.0) - 1.0).abs() < 0.01, "{point:?}");
    assert!((point.accepted_worst / 0.4 - 1.0).abs() < 0.02, "{point:?}");
    // Node 1 never sends.
    let small = network("switch:3", Model::CutThrough);
    assert!(run_traffic(&small, &traffic, 0.8).unwrap_err().to_string().contains(":2: there is no node 3"));
}

/// Messages of two sizes wait as Pollaczek and Khinchine say: ρ·E[S²] / 2(1 − ρ)·E[S].
#[test]
fn messages_of_two_sizes_wait_as_in_an_mg1_queue() {
    let two = file("1 50\n9 50\n9 100\n");
    let sizes: Sizes = format!("file:{}", two.path().display()).parse().unwrap();
    let matrix = file(&(0..50).map(|node| format!("{node} {node}\n")).collect::<String>());
    let pattern = format!("file:{}", matrix.path().display()).parse().unwrap();
    let traffic = Traffic {
        pattern,
        sizes: Some(sizes),
        arrivals: Arrivals::Poisson,
        window: 20_000,
        ..Traffic::default()
    };
    for load in [0.3, 0.6] {
        let point = run_traffic(&network("switch:50", Model::CutThrough), &traffic, load).unwrap();
        let (mean, square) = (5.0, 41.0);
        let expected = mean + load * square / (2.0 * (1.0 - load) * mean);
        let latency = point.latency.mean_ps as f64 / CYCLE;
        assert!((latency / expected - 1.0).abs() < 0.02, "{load}: {latency}, expected {expected}");
        assert!((point.accepted / load - 1.0).abs() < 0.02, "{point:?}");
        let counted: Vec<(u64, u64)> = point.sizes.iter().map(|of| (of.from_bytes, of.to_bytes)).collect();
        assert_eq!(counted, [(1, 1), (8, 15)]);
        assert_eq!(point.sizes.iter().map(|of| of.latency.messages).sum::<u64>(), point.latency.messages);
    }
}

/// Bursts leave at the rate of the link, so they do not wait at their source, and have the load in the mean; where two nodes send to one,
/// bursts meet bursts.
#[test]
fn bursts_keep_the_load() {
    let run = |nodes: u32, arrivals: &str, pattern: &str, load| {
        let traffic = Traffic {
            pattern: pattern.parse().unwrap(),
            arrivals: arrivals.parse().unwrap(),
            sizes: Some(Sizes::One(Bytes(1))),
            window: 20_000,
            ..Traffic::default()
        };
        run_traffic(&network(&format!("switch:{nodes}"), Model::CutThrough), &traffic, load).unwrap()
    };
    for load in [0.2, 0.7, 1.0] {
        let point = run(64, "on-off:10", "neighbor", load);
        assert!((point.offered / load - 1.0).abs() < 0.03, "{point:?}");
        assert_eq!((point.latency.min_ps, point.latency.max_ps), (1000, 1000), "{load}");
    }
    let [even, bursts] = ["bernoulli", "on-off:20"].map(|arrivals| run(2, arrivals, "incast", 0.4));
    assert!(bursts.latency.mean_ps > 3 * even.latency.mean_ps, "{even:?} {bursts:?}");
    for text in ["on-off", "on-off:", "on-off:0.5", "on-off:x", "often"] {
        assert!(text.parse::<Arrivals>().is_err(), "{text}");
    }
    assert_eq!("on-off:2.5".parse::<Arrivals>().unwrap().to_string(), "on-off:2.5");
}

/// K messages a node take K transmission times where each node has its own, N·K where all send to one.
#[test]
fn a_batch_takes_the_time_of_the_fullest_link() {
    for model in [Model::CutThrough, Model::Packet] {
        let batch = |pattern: &str| {
            let sizes = Some(Sizes::One(Bytes(1)));
            let traffic = Traffic { pattern: pattern.parse().unwrap(), sizes, ..Traffic::default() };
            run_batch(&network("switch:8", model), &traffic, 100).unwrap()
        };
        let own = batch("neighbor");
        assert_eq!((own.runtime_ps, own.first_node_ps, own.throughput), (100_000, 100_000, 1.0), "{model}");
        let one = batch("incast");
        assert_eq!((one.runtime_ps, one.throughput), (800_000, 0.125), "{model}");
        assert_eq!(one.latency.messages, 800);
    }
}

/// Messages of several packets have the hops of messages of one.
#[test]
fn hops_do_not_grow_with_packets() {
    let network = |text: &str| NetworkSettings {
        topology: "torus:4x4".parse().unwrap(),
        model: text.parse().unwrap(),
        ..NetworkSettings::default()
    };
    let hops = |model: &str, sizes: &str| {
        let traffic = Traffic { sizes: Some(sizes.parse().unwrap()), ..Traffic::default() };
        run_traffic(&network(model), &traffic, 0.2).unwrap().hops.unwrap()
    };
    // To any other node 32/15 links of the torus, and two of nodes; a node sends to itself, too.
    for (model, sizes) in [("packet", "2KiB"), ("packet", "16KiB"), ("cut-through", "16KiB")] {
        let hops = hops(model, sizes);
        assert!((hops - 4.0).abs() < 0.2, "{model}, {sizes}: {hops}");
    }
}

/// They are those of what has arrived, of real routes, in every model; not of what is under way.
#[test]
fn hops_are_those_of_routes() {
    let models = Model::ALL.iter().filter(|model| matches!(model.info().carrier, Carrier::Links(_)));
    for &model in models {
        let hops = |topology: &str, pattern: &str, load| {
            let network =
                NetworkSettings { topology: topology.parse().unwrap(), model, ..NetworkSettings::default() };
            let traffic = Traffic {
                pattern: pattern.parse().unwrap(),
                window: 200,
                longest: 1000,
                ..Traffic::default()
            };
            run_traffic(&network, &traffic, load).unwrap().hops
        };
        for load in [0.2, 1.0] {
            assert_eq!(hops("switch:8", "uniform", load), Some(2.0), "{model}");
        }
        // Each to the next of a ring, in the only shortest way.
        assert_eq!(hops("torus:5", "neighbor", 0.5), Some(3.0), "{model}");
    }
}
