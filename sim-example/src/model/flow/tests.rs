//! SimGrid's results, and cases by hand.

use super::fluid::Fluid;
use super::settings::{Connections, FlowSettings};
use super::*;
use crate::model::{Links, Model, Origin};
use crate::settings::NetworkSettings;
use crate::topology::tests::build;
use crate::traffic::tests::reference;
use std::collections::BTreeMap;

const SECOND: f64 = 1e12;

/// A message of a job from a rank to rank 1.
fn from(rank: u32) -> Origin {
    Origin::Job { job: 0, kind: replay::Kind::PointToPoint, ranks: [rank, 1] }
}

/// Flows over a list of links: when each ends, in seconds.
fn over_links(text: &str, weights: Weights) -> Vec<(f64, f64)> {
    let mut links = BTreeMap::new();
    let mut flows = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].trim_start_matches("finish=").parse::<f64>().unwrap();
        match words[..] {
            ["link", name, ..] => {
                links.insert(name, (links.len() as u32, number(2), number(3)));
            }
            ["flow", _, _, _, _, ..] => flows.push((number(2), number(3), words[5..].to_vec(), number(4))),
            _ => panic!("{line}"),
        }
    }
    let mut capacities = vec![0.0; links.len()];
    links.values().for_each(|&(link, bandwidth, _)| capacities[link as usize] = bandwidth / SECOND);
    let mut fluid = Fluid::new(capacities, Bytes(0));
    let mut weight = Vec::new();
    for (start, bytes, route, _) in &flows {
        let flow = fluid.prepare(Bytes(*bytes as u64));
        let mut latency = 0.0;
        for name in route {
            let (link, _, of_link) = links[name];
            fluid.shares.add_link(flow, link);
            latency += of_link;
        }
        weight.push(if weights == Weights::Equal || latency == 0.0 { 1.0 } else { 1.0 / latency });
        fluid.schedule(Picos(((start + latency) * SECOND).round() as u64), flow);
    }
    let mut ends = vec![(f64::NAN, 0.0); flows.len()];
    while let Some((now, flowed)) = fluid.next(Picos::MAX).unwrap() {
        match flowed {
            Flowed::Due(flow) => fluid.begin(flow, weight[flow as usize]),
            Flowed::Ended(flow) => {
                ends[flow as usize] = (now.0 as f64 / SECOND, flows[flow as usize].3);
                fluid.remove(flow);
            }
            Flowed::Changed => unreachable!("no links fail"),
        }
    }
    ends
}

fn assert_close(ends: &[(f64, f64)], about: &str) {
    for (nth, (ours, theirs)) in ends.iter().enumerate() {
        assert!((ours / theirs - 1.0).abs() < 1e-5, "{about}, flow {nth}: {ours}, SimGrid {theirs}");
    }
}

#[test]
fn lists_of_links_as_simgrid() {
    for name in [
        "incast16",
        "incast2",
        "parking_lot",
        "parking_lot_no_latency",
        "random1",
        "random3",
        "random4",
        "two_flows",
        "two_flows_sizes",
    ] {
        assert_close(&over_links(&reference(&format!("flow/links_{name}.txt")), Weights::Latency), name);
    }
    // There the weights matter: SimGrid's long flow gets a quarter less.
    let parking = over_links(&reference("flow/links_parking_lot.txt"), Weights::Equal);
    assert!(parking.iter().any(|(ours, theirs)| (ours / theirs - 1.0).abs() > 0.01), "{parking:?}");
}

/// Flows of a topology: the file's first line says which.
fn over_topology(text: &str, weights: Weights) -> Vec<(f64, f64)> {
    let first = text.lines().next().unwrap();
    let spec = first.strip_prefix("# topology ").unwrap().split(", every link").next().unwrap();
    let latency: f64 = first.split("latency ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let mut links = Links {
        bandwidth: "1.25GB/s".parse().unwrap(),
        latency: Picos((latency * SECOND).round() as u64),
        ..Links::default()
    };
    if spec.starts_with("torus") {
        // SimGrid's torus has no links of nodes.
        links.node_bandwidth = Some("1000TB/s".parse().unwrap());
        links.node_latency = Some(Picos::ZERO);
    }
    let topology = build(spec);
    let flow = FlowSettings { weights, ..FlowSettings::default() };
    let settings = NetworkSettings { links, flow, ..NetworkSettings::default() };
    let mut network = Flows::new(&settings.setup(&topology, false).unwrap());
    let mut flows = Vec::new();
    for line in text.lines().skip(2) {
        let numbers: Vec<f64> = line.split(',').map(|number| number.parse().unwrap()).collect();
        let [src, dst, start, bytes, finish] = numbers[..] else { panic!("{line}") };
        flows.push(((start * SECOND).round() as u64, src as u32, dst as u32, bytes as u64, finish));
    }
    for (tag, &(at, src, dst, bytes, _)) in (0..).zip(&flows) {
        network
            .submit(Picos(at), Carried { src, dst, bytes: Bytes(bytes), tag, origin: Origin::default() })
            .unwrap();
    }
    let mut ends = vec![(f64::NAN, 0.0); flows.len()];
    while let Some((now, happened)) = network.run_until(Picos::MAX).unwrap() {
        let Happened::Delivered { tag, .. } = happened else { panic!("{happened:?}") };
        ends[tag as usize] = (now.0 as f64 / SECOND, flows[tag as usize].4);
    }
    ends
}

#[test]
fn trees_and_tori_as_simgrid() {
    for name in [
        "ft16_alltoall",
        "ft16_perm1",
        "ft16_random",
        "ft16_shift1",
        "ft16_shift4",
        "ft16_shift5_lat",
        "ft16slim_perm1",
        "ft16slim_shift4",
        "ft64_perm1",
        "ft64_perm3_lat",
        "ft64_random",
        "torus5x3_alltoall",
        "torus5x3_perm1",
        "torus5x3_random",
    ] {
        let text = reference(&format!("flow/{name}.csv"));
        assert_close(&over_topology(&text, Weights::Latency), name);
        if name != "ft64_perm3_lat" {
            assert_close(&over_topology(&text, Weights::Equal), name);
        }
    }
}

/// Two flows over one link, the second half as long: it begins when half of the first is through.
#[test]
fn two_flows_by_hand() {
    let mut fluid = Fluid::new([1.0], Bytes(0));
    let long = fluid.prepare(Bytes(1000));
    let short = fluid.prepare(Bytes(250));
    for flow in [long, short] {
        fluid.shares.add_link(flow, 0);
    }
    fluid.schedule(Picos(0), long);
    fluid.schedule(Picos(500), short);
    let mut happened = Vec::new();
    while let Some((now, flowed)) = fluid.next(Picos::MAX).unwrap() {
        happened.push((now.0, flowed));
        match flowed {
            Flowed::Due(flow) => fluid.begin(flow, 1.0),
            Flowed::Ended(flow) => fluid.remove(flow),
            Flowed::Changed => unreachable!("no links fail"),
        }
    }
    let ended = |at: usize| happened[at];
    assert_eq!(ended(2), (1000, Flowed::Ended(short)));
    assert_eq!(ended(3), (1250, Flowed::Ended(long)));
}

#[test]
fn a_message_without_bytes_and_one_that_is_reported_as_sent() {
    let topology = build("switch:2");
    let settings = NetworkSettings { model: Model::Flow, ..NetworkSettings::default() };
    let mut network = Flows::new(&settings.setup(&topology, true).unwrap());
    for (tag, bytes) in [(1, 0), (2, 1000)] {
        network
            .submit(Picos(7), Carried { src: 0, dst: 1, bytes: Bytes(bytes), tag, origin: Origin::default() })
            .unwrap();
    }
    let happened: Vec<_> = std::iter::from_fn(|| network.run_until(Picos::MAX).unwrap()).collect();
    let at = Picos(1_000_007);
    assert_eq!(happened[0], (at, Happened::Sent { tag: 1 }));
    let latency = Picos(1_000_000);
    assert_eq!(happened[1], (at, Happened::Delivered { tag: 1, latency, queued: Picos::ZERO }));
    let at = Picos(1_800_007);
    assert_eq!(happened[2], (at, Happened::Sent { tag: 2 }));
    let latency = Picos(1_800_000);
    assert_eq!(happened[3], (at, Happened::Delivered { tag: 2, latency, queued: Picos::ZERO }));
    assert_eq!(happened.len(), 4);
}

/// Messages of one moment see each other: all nodes of a dragonfly's group send to the next group, over the one link between the two if all
/// routes were minimal.
#[test]
fn messages_of_one_moment_are_load() {
    let topology = build("dragonfly:2x4x2");
    let ends = |routing: &str| -> Vec<u64> {
        let settings = NetworkSettings {
            model: Model::Flow,
            routing: routing.parse().unwrap(),
            ..NetworkSettings::default()
        };
        let mut network = Flows::new(&settings.setup(&topology, false).unwrap());
        for src in 0..8 {
            let message = Carried {
                src,
                dst: src + 8,
                bytes: Bytes(1_000_000),
                tag: src.into(),
                origin: Origin::default(),
            };
            network.submit(Picos(0), message).unwrap();
        }
        let ends =
            std::iter::from_fn(|| network.run_until(Picos::MAX).unwrap()).map(|(now, _)| now.0).collect();
        assert!(network.chosen.iter().all(|&count| count == 0), "{:?}", network.chosen);
        ends
    };
    // Eight share a link of 10 Gbit/s.
    let all_minimal = 8 * 800_000_000;
    let last = |routing: &str| *ends(routing).iter().max().unwrap();
    assert!(last("minimal") > all_minimal);
    for routing in ["ugal", "ugal:global"] {
        assert!(last(routing) < all_minimal / 2, "{routing}: {}", last(routing));
    }
    // The two spines of a tree, half each.
    let topology = build("fattree:2x4x2");
    let settings = |routing: &str| NetworkSettings {
        model: Model::Flow,
        routing: routing.parse().unwrap(),
        ..NetworkSettings::default()
    };
    let settings = settings("adaptive");
    let mut network = Flows::new(&settings.setup(&topology, false).unwrap());
    for src in 0..4 {
        let message = Carried {
            src,
            dst: src + 4,
            bytes: Bytes(1_000_000),
            tag: src.into(),
            origin: Origin::default(),
        };
        network.submit(Picos(0), message).unwrap();
    }
    while let Some((now, _)) = network.run_until(Picos::MAX).unwrap() {
        assert!(now.0 < 2 * 800_000_000 + 10_000_000, "{now}");
    }
}

/// Where load is a number of messages, a threshold in bytes would have no effect.
#[test]
fn a_threshold_in_bytes_is_refused() {
    let says = |routing: &str| {
        let network = NetworkSettings {
            topology: "dragonfly:2x4x2".parse().unwrap(),
            model: Model::Flow,
            routing: routing.parse().unwrap(),
            ..NetworkSettings::default()
        };
        let traffic = crate::traffic::Traffic { window: 10, longest: 10, ..Default::default() };
        crate::traffic::run_traffic(&network, &traffic, 0.1).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(says("ugal"), Ok(()));
    let error = says("ugal:global:4KiB").unwrap_err();
    assert_eq!(error, "routing ugal:global:4096: model flow counts messages, not bytes; leave the bytes out");
}

/// Two messages from node 0 to node 1 and one from node 2, of a time T each: the three share node 1's link; over connections the second one of node 0
/// follows the first.
#[test]
fn messages_of_a_pair_follow_each_other() {
    let topology = build("switch:3");
    for (connections, ends) in [(Connections::Message, [3, 3, 3]), (Connections::Pair, [2, 3, 2])] {
        let flow = FlowSettings { connections, ..FlowSettings::default() };
        let settings = NetworkSettings { flow, ..NetworkSettings::default() };
        let mut network = Flows::new(&settings.setup(&topology, true).unwrap());
        for (tag, src) in (0..).zip([0, 0, 2]) {
            let message = Carried { src, dst: 1, bytes: Bytes(1000), tag, origin: from(src) };
            network.submit(Picos::ZERO, message).unwrap();
        }
        // One of no bytes follows, too.
        let empty = Carried { src: 0, dst: 1, bytes: Bytes(0), tag: 3, origin: from(0) };
        network.submit(Picos::ZERO, empty).unwrap();
        let mut times = [0; 4];
        while let Some((now, happened)) = network.run_until(Picos::MAX).unwrap() {
            if let Happened::Delivered { tag, .. } = happened {
                times[tag as usize] = now.0;
            }
        }
        // 1 µs, and 800 ns a message.
        let last = if connections == Connections::Pair { ends[1] } else { 0 };
        let expected = [ends[0], ends[1], ends[2], last].map(|times| 1_000_000 + times * 800_000);
        assert_eq!(times, expected, "{connections:?}");
    }
}

/// A link of 10 Gbit/s with a bucket of 600 bytes: of the first message 400 bytes wait for the rate. The next one begins 160 ns after its end, in which
/// 200 bytes of tokens came; one of 100 bytes much later takes no time.
#[test]
fn a_bucket_passes_its_tokens_at_once() {
    let topology = build("switch:2");
    let links = Links { burst: Bytes(600), ..Links::default() };
    let settings = NetworkSettings { links, ..NetworkSettings::default() };
    let mut network = Flows::new(&settings.setup(&topology, false).unwrap());
    for (tag, (at, bytes)) in (0..).zip([(0, 1000), (320_000 + 160_000, 1000), (10_000_000, 100)]) {
        let message = Carried { src: 0, dst: 1, bytes: Bytes(bytes), tag, origin: from(0) };
        network.submit(Picos(at), message).unwrap();
    }
    for expected in [1_320_000, 1_480_000 + 640_000, 11_000_000] {
        let (now, happened) = network.run_until(Picos::MAX).unwrap().unwrap();
        assert!(matches!(happened, Happened::Delivered { .. }));
        assert_eq!(now.0, expected);
    }
}

/// A slow flow does not keep the bucket of a fast link from filling: a message that shares nothing else with it passes at once.
#[test]
fn a_bucket_fills_by_what_flows_leave() {
    let mut fluid = Fluid::new([1.0, 1000.0, 1.0], Bytes(100));
    for (at, links, bytes) in [(0, [0, 1], 1_000_000), (10_000, [2, 1], 100)] {
        let flow = fluid.prepare(Bytes(bytes));
        links.iter().for_each(|&link| fluid.shares.add_link(flow, link));
        fluid.schedule(Picos(at), flow);
    }
    let mut over = Vec::new();
    while let Some((now, flowed)) = fluid.next(Picos(20_000)).unwrap() {
        if let Flowed::Due(flow) = flowed {
            fluid.begin(flow, 1.0);
            over.push((now.0, fluid.is_over(flow)));
        }
    }
    assert_eq!(over, [(0, false), (10_000, true)]);
}

/// Whatever ways they take, the messages of a connection arrive in their order.
#[test]
fn messages_of_a_pair_do_not_overtake() {
    let topology = build("torus:16");
    for seed in 1..9 {
        let flow = FlowSettings { connections: Connections::Pair, ..FlowSettings::default() };
        let routing = "valiant".parse().unwrap();
        let settings = NetworkSettings { flow, routing, seed, ..NetworkSettings::default() };
        let mut network = Flows::new(&settings.setup(&topology, false).unwrap());
        for (tag, bytes) in (0..).zip([1_000_000, 1000, 0, 500]) {
            let message = Carried { src: 0, dst: 1, bytes: Bytes(bytes), tag, origin: from(0) };
            network.submit(Picos::ZERO, message).unwrap();
        }
        let mut order = Vec::new();
        while let Some((_, happened)) = network.run_until(Picos::MAX).unwrap() {
            let Happened::Delivered { tag, .. } = happened else { panic!("{happened:?}") };
            order.push(tag);
        }
        assert_eq!(order, [0, 1, 2, 3], "seed {seed}");
    }
}
