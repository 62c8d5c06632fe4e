//! Times by hand, and the running network against a slow one that keeps its queues and counts every picosecond.

mod failures;

use super::*;
use crate::quantity::Bandwidth;
use crate::routing::tests::router;
use crate::settings::NetworkSettings;
use crate::topology::tests::build;
use crate::topology::{Fabric, LinkId};
use proptest::prelude::*;
use std::collections::VecDeque;
use vef_format::units::{Bytes, Picos};

/// The network of a model without settings of its own.
fn whole<'a>(topology: &'a Fabric, model: Model, links: &'a Links) -> Box<dyn Network + 'a> {
    let router = router(topology, "minimal", 0).unwrap();
    let (flow, packet) = (FlowSettings::default(), PacketSettings::default());
    let Carrier::Links(build) = model.info().carrier else { panic!("{model} has no links") };
    build(Setup { router, links, flow, packet, report_sent: true }).unwrap()
}

/// A message to be carried: when, from, to, bytes.
type Load = (u64, u32, u32, u64);

/// When each message was sent and delivered, and what each link carried.
#[derive(Debug, PartialEq)]
struct Outcome {
    times: Vec<(u64, u64)>,
    usage: Vec<Usage>,
}

fn carry_over(topology: &Fabric, model: Model, links: Links, load: &[Load]) -> Outcome {
    let mut network = whole(topology, model, &links);
    let mut times = vec![(0, 0); load.len()];
    for (&(at, src, dst, bytes), tag) in load.iter().zip(0u64..) {
        network
            .submit(Picos(at), Carried { src, dst, bytes: Bytes(bytes), tag, origin: Origin::default() })
            .unwrap();
    }
    while let Some((now, happened)) = network.run_until(Picos::MAX).unwrap() {
        match happened {
            Happened::Sent { tag } => times[tag as usize].0 = now.0,
            Happened::Delivered { tag, latency, .. } => {
                times[tag as usize].1 = now.0;
                assert_eq!(latency.0, now.0 - load[tag as usize].0);
            }
        }
    }
    Outcome { times, usage: network.usage() }
}

fn carry(spec: &str, model: Model, links: Links, load: &[Load]) -> Outcome {
    carry_over(&build(spec), model, links, load)
}

fn delivered(spec: &str, model: Model, load: &[Load]) -> Vec<u64> {
    carry(spec, model, Links::default(), load).times.into_iter().map(|(_, delivered)| delivered).collect()
}

/// 1000 bytes take this on the default links: 800 ps a byte.
const KILO: u64 = 800_000;
/// The latency of a default link.
const LATENCY: u64 = 500_000;

#[test]
fn a_lone_message() {
    use Model::*;
    let load = [(7, 0, 1, 1000)];
    for model in [CutThrough, Latency] {
        assert_eq!(delivered("switch:2", model, &load), [7 + KILO + 2 * LATENCY]);
        assert_eq!(delivered("fattree:2x1x1", model, &load), [7 + KILO + 4 * LATENCY]);
        assert_eq!(delivered("torus:4x4", model, &load), [7 + KILO + 3 * LATENCY]);
    }
    assert_eq!(delivered("switch:2", StoreAndForward, &load), [7 + 2 * KILO + 2 * LATENCY]);
    assert_eq!(delivered("fattree:2x1x1", StoreAndForward, &load), [7 + 4 * KILO + 4 * LATENCY]);
    assert_eq!(delivered("torus:4x4", StoreAndForward, &load), [7 + 3 * KILO + 3 * LATENCY]);
    // To itself: to the switch and back.
    assert_eq!(delivered("torus:4x4", CutThrough, &[(0, 3, 3, 0)]), [2 * LATENCY]);
}

#[test]
fn two_of_one_node_share_its_injection_link() {
    let load = [(0, 0, 1, 1000), (0, 0, 2, 1000), (10 * KILO, 0, 1, 1000)];
    for spec in ["switch:3", "fattree:1x3x1"] {
        let times = delivered(spec, Model::CutThrough, &load);
        assert_eq!(times[0], KILO + 2 * LATENCY);
        assert_eq!(times[1], 2 * KILO + 2 * LATENCY);
        assert_eq!(times[2], 11 * KILO + 2 * LATENCY);
        let times = delivered(spec, Model::StoreAndForward, &load);
        assert_eq!(times[..2], [2 * KILO + 2 * LATENCY, 3 * KILO + 2 * LATENCY]);
        let times = delivered(spec, Model::Latency, &load);
        assert_eq!(times[..2], [KILO + 2 * LATENCY; 2]);
        let times = delivered(spec, Model::Injection, &load);
        assert_eq!(times, [KILO + 2 * LATENCY, 2 * KILO + 2 * LATENCY, 11 * KILO + 2 * LATENCY]);
    }
}

#[test]
fn two_to_one_node_share_its_ejection_link() {
    // The second comes 100 ns behind the first and waits for it at the switch.
    let load = [(0, 0, 2, 1000), (100_000, 1, 2, 500)];
    let times = delivered("switch:3", Model::CutThrough, &load);
    assert_eq!(times, [KILO + 2 * LATENCY, KILO + KILO / 2 + 2 * LATENCY]);
    // With contention at their own interfaces alone they do not meet.
    let times = delivered("switch:3", Model::Injection, &load);
    assert_eq!(times, [KILO + 2 * LATENCY, 100_000 + KILO / 2 + 2 * LATENCY]);
    // Whole at the switch: the short one is there first, at 100 + 400 + 500 ns, the long one at 800 + 500 ns.
    let times = delivered("switch:3", Model::StoreAndForward, &load);
    let short = 100_000 + KILO / 2 + LATENCY + KILO / 2;
    assert_eq!(times, [short + KILO + LATENCY, short + LATENCY]);
}

#[test]
fn a_fat_tree_spreads_destinations_over_spines() {
    // Nodes 0 and 1 of leaf 0 to 2 and 4 of leaves 1 and 2: one spine, or two.
    let load = [(0, 0, 2, 1000), (0, 1, 4, 1000), (0, 1, 3, 0)];
    let shared = delivered("fattree:3x2x1", Model::CutThrough, &load);
    assert_eq!(shared[..2], [KILO + 4 * LATENCY, 2 * KILO + 4 * LATENCY]);
    let modulo = delivered("fattree:3x2x2", Model::CutThrough, &load);
    assert_eq!(modulo[..2], [KILO + 4 * LATENCY, 2 * KILO + 4 * LATENCY], "2 and 4 are both even");
    let spread = delivered("fattree:3x2x3", Model::CutThrough, &load);
    assert_eq!(spread[..2], [KILO + 4 * LATENCY; 2]);
    // The empty message left node 1 behind the second and met nobody afterwards.
    assert_eq!(spread[2], KILO + 4 * LATENCY);
}

#[test]
fn a_torus_shares_the_links_of_a_row() {
    // 0 → 2 by (0)→(1)→(2); 1 → 2 meets it at (1)→(2), where it comes one link's latency earlier.
    let load = [(0, 0, 2, 1000), (0, 1, 2, 1000), (0, 7, 0, 1000), (0, 1, 0, 1000)];
    let times = delivered("torus:8", Model::CutThrough, &load);
    assert_eq!(times[1], KILO + 3 * LATENCY);
    // The first byte of the first waits at (1) from 2 to 1 latencies + KILO, then goes on.
    assert_eq!(times[0], LATENCY + 2 * KILO + 2 * LATENCY);
    // The other way round the ring nobody is, but node 1 injects behind its first message and node 0 receives both.
    assert_eq!(times[2], KILO + 3 * LATENCY);
    assert_eq!(times[3], 2 * KILO + 3 * LATENCY);
}

#[test]
fn delays_of_switches_and_interfaces() {
    let links = Links { switch_delay: Picos(100), overhead: Picos(7_000), ..Links::default() };
    let load = [(0, 0, 1, 1000), (0, 0, 1, 0)];
    let Outcome { times, usage } = carry("switch:2", Model::CutThrough, links, &load);
    assert_eq!(times[0], (7_000 + KILO, 7_000 + KILO + 2 * LATENCY + 100));
    assert_eq!(times[1], (14_000 + KILO, 14_000 + KILO + 2 * LATENCY + 100));
    // The interface is busy with the overhead, the link is not.
    let Usage { busy, count, bytes, .. } = usage[0];
    assert_eq!((busy, count, bytes), (Picos(KILO), 2, Bytes(1000)));
    let Outcome { times, .. } = carry("torus:3x3", Model::StoreAndForward, links, &load[..1]);
    assert_eq!(times[0].1, 7_000 + 3 * KILO + 3 * LATENCY + 2 * 100);
}

#[test]
fn a_slow_link_behind_a_fast_one_and_before_it() {
    let fast = "20Gbit/s".parse().unwrap();
    let slow = "10Gbit/s".parse().unwrap();
    // Slow node links: the fast links between the switches are held for the message's own time on them.
    let links = Links { bandwidth: fast, node_bandwidth: Some(slow), ..Links::default() };
    let outcome = carry("fattree:2x1x1", Model::CutThrough, links, &[(0, 0, 1, 1000)]);
    assert_eq!(outcome.times[0], (KILO, KILO + 4 * LATENCY));
    let busy: Vec<u64> = outcome.usage.iter().map(|used| used.busy.0).filter(|&busy| busy > 0).collect();
    assert_eq!(busy, [KILO, KILO, KILO / 2, KILO / 2]);
    let links = Links { node_latency: Some(Picos(1)), bandwidth: slow, node_bandwidth: Some(fast), ..links };
    let outcome = carry("fattree:2x1x1", Model::CutThrough, links, &[(0, 0, 1, 1000)]);
    assert_eq!(outcome.times[0], (KILO / 2, KILO + 2 * LATENCY + 2));
}

#[test]
fn a_fast_trunk_carries_two_slow_messages_side_by_side() {
    // 1 MB each from two slow nodes over one trunk: a trunk of the same speed is shared, ten times the speed gives nearly
    // each its own, and the second waits for the first one's own time on the trunk, no longer.
    const MEGA: u64 = 1000 * KILO;
    let slow = "10Gbit/s".parse().unwrap();
    for (trunk, second) in
        [("10Gbit/s", 2 * MEGA), ("100Gbit/s", MEGA + MEGA / 10), ("1000Gbit/s", MEGA + MEGA / 100)]
    {
        let links =
            Links { bandwidth: trunk.parse().unwrap(), node_bandwidth: Some(slow), ..Links::default() };
        let load = [(0, 0, 2, 1_000_000), (0, 1, 3, 1_000_000)];
        let outcome = carry("fattree:2x2x1", Model::CutThrough, links, &load);
        assert_eq!(outcome.times[0].1, MEGA + 4 * LATENCY, "{trunk}");
        assert_eq!(outcome.times[1].1, second + 4 * LATENCY, "{trunk}");
    }
}

#[test]
fn the_end_of_time_is_an_error() {
    let topology = build("switch:2");
    let end = |at: u64, bytes: u64| {
        let links = Links::default();
        let mut network = whole(&topology, Model::CutThrough, &links);
        network
            .submit(
                Picos(at),
                Carried { src: 0, dst: 1, bytes: Bytes(bytes), tag: 0, origin: Origin::default() },
            )
            .unwrap();
        std::iter::repeat_with(|| network.run_until(Picos::MAX)).take(9).find(Result::is_err)
    };
    assert_eq!(end(0, u64::MAX), Some(Err(OutOfTime { bytes: Bytes(u64::MAX) })));
    assert_eq!(end(u64::MAX - KILO - LATENCY, 1000), Some(Err(OutOfTime { bytes: Bytes(1000) })));
    assert_eq!(end(u64::MAX - KILO - 2 * LATENCY, 1000), None);
}

/// The models once more, from their description: links as rows of picoseconds that are taken or not, one picosecond after
/// the other. `None` when two messages come to a link in the same picosecond, because then the order is not part of the
/// description.
fn by_the_clock(topology: &Fabric, model: Model, links: Links, load: &[Load]) -> Option<Outcome> {
    struct Traveller {
        route: VecDeque<LinkId>,
        first_byte: u64,
        last_byte: u64,
    }
    let router = router(topology, "minimal", 0).unwrap();
    let mut travellers: Vec<Traveller> = load
        .iter()
        .map(|&(at, src, dst, _)| Traveller {
            route: router.route(src, dst).collect(),
            first_byte: at,
            last_byte: at,
        })
        .collect();
    let mut taken: Vec<Vec<bool>> = vec![Vec::new(); topology.links() as usize];
    let mut usage = vec![Usage::default(); taken.len()];
    let mut times = vec![(0, 0); load.len()];
    let mut now = 0;
    while travellers.iter().any(|traveller| !traveller.route.is_empty()) {
        let here: Vec<usize> = (0..load.len())
            .filter(|&at| travellers[at].first_byte == now && !travellers[at].route.is_empty())
            .collect();
        let mut met: Vec<LinkId> = here.iter().map(|&at| travellers[at].route[0]).collect();
        met.sort_unstable();
        if met.windows(2).any(|two| two[0] == two[1]) {
            return None;
        }
        for at in here {
            let traveller = &mut travellers[at];
            let link = traveller.route.pop_front().unwrap().index();
            let of_node = link < 2 * topology.nodes() as usize;
            let (latency, bandwidth) = match of_node {
                true => (links.node_latency.unwrap(), links.node_bandwidth.unwrap()),
                false => (links.latency, links.bandwidth),
            };
            let time = bandwidth.time(Bytes(load[at].3)).unwrap().0 as usize;
            let behind_all = |from: u64| (from as usize).max(taken[link].len());
            let first = link == LinkId::injection(load[at].1).index();
            if first {
                // The interface prepares it when it has sent what it had before.
                traveller.first_byte = behind_all(now) as u64 + links.overhead.0;
                traveller.last_byte = traveller.first_byte;
            }
            // The last of so many picoseconds is not before the last byte is there.
            let mut alone = traveller.first_byte;
            while alone + (time as u64) < traveller.last_byte {
                alone += 1;
            }
            let start = behind_all(alone);
            taken[link].resize(start, false);
            taken[link].resize(start + time, true);
            let (end, delay) = ((start + time) as u64, start as u64 - alone);
            usage[link].count += 1;
            usage[link].bytes += Bytes(load[at].3);
            if first {
                times[at].0 = end;
            }
            let next = latency.0 + links.switch_delay.0;
            traveller.last_byte = end + next;
            traveller.first_byte = match model {
                Model::StoreAndForward => traveller.last_byte,
                _ => traveller.first_byte + delay + next,
            };
            if traveller.route.is_empty() {
                times[at].1 = end + latency.0;
            }
        }
        // Latencies are positive, so that whatever comes of this picosecond comes in a later one.
        now += 1;
    }
    for (usage, taken) in usage.iter_mut().zip(&taken) {
        usage.busy = Picos(taken.iter().filter(|&&taken| taken).count() as u64);
    }
    Some(Outcome { times, usage })
}

impl Outcome {
    /// Without what the slow one does not know.
    fn plain(mut self) -> Self {
        for usage in &mut self.usage {
            *usage = Usage { busy: usage.busy, count: usage.count, bytes: usage.bytes, ..Usage::default() };
        }
        self
    }
}

fn cases() -> impl Strategy<Value = (String, Links, Vec<Load>)> {
    let spec = prop_oneof![
        (2u32..6).prop_map(|nodes| format!("switch:{nodes}")),
        (2u32..4, 1u32..4, 1u32..4)
            .prop_map(|(leaves, nodes, spines)| format!("fattree:{leaves}x{nodes}x{spines}")),
        Just("fattree:k=4".to_owned()),
        (1u32..5).prop_map(|size| format!("torus:{size}")),
        (1u32..5, 1u32..5).prop_map(|(a, b)| format!("torus:{a}x{b}")),
    ];
    // 1…8 ps a byte, and some that do not divide.
    let bandwidth = || {
        prop_oneof![Just(1u64), Just(2), Just(3), Just(8)]
            .prop_map(|tera| Bandwidth::from_bits_per_second(tera * 1_000_000_000_000).unwrap())
    };
    let links = (bandwidth(), 1u64..40, bandwidth(), 1u64..40, 0u64..10, 0u64..10).prop_map(
        |(bandwidth, latency, node_bandwidth, node_latency, switch_delay, overhead)| Links {
            bandwidth,
            latency: Picos(latency),
            node_bandwidth: Some(node_bandwidth),
            node_latency: Some(Picos(node_latency)),
            switch_delay: Picos(switch_delay),
            overhead: Picos(overhead),
            burst: Bytes(0),
            ..Links::default()
        },
    );
    let load = prop::collection::vec((0u64..400, any::<u32>(), any::<u32>(), 0u64..60), 1..12);
    (spec, links, load).prop_map(|(spec, links, mut load)| {
        let nodes = build(&spec).nodes();
        load.iter_mut().for_each(|(_, src, dst, _)| (*src, *dst) = (*src % nodes, *dst % nodes));
        load.sort_unstable();
        (spec, links, load)
    })
}

proptest! {
    #[test]
    fn as_by_the_clock((spec, links, load) in cases(), whole: bool) {
        let model = if whole { Model::StoreAndForward } else { Model::CutThrough };
        let topology = build(&spec);
        let (fast, slow) = (carry_over(&topology, model, links, &load), by_the_clock(&topology, model, links, &load));
        prop_assume!(slow.is_some());
        prop_assert_eq!(Some(fast.plain()), slow);
    }

    /// In every model each message crosses every link of its route once, whole; and none is faster than alone.
    #[test]
    fn nothing_is_lost_and_nothing_gained((spec, links, load) in cases()) {
        let spec = spec.to_string();
        let sum = |wanted: &dyn Fn(&Load) -> bool| {
            load.iter().filter(|load| wanted(load)).map(|load| load.3).sum::<u64>()
        };
        let alone = carry(&spec, Model::Latency, links, &load);
        for model in [Model::CutThrough, Model::StoreAndForward, Model::Latency, Model::Injection] {
            let outcome = carry(&spec, model, links, &load);
            for node in 0..build(&spec).nodes() {
                let [out, in_] = [LinkId::injection(node), LinkId::ejection(node)].map(LinkId::index);
                prop_assert_eq!(outcome.usage[out].bytes.0, sum(&|load| load.1 == node));
                prop_assert_eq!(outcome.usage[in_].bytes.0, sum(&|load| load.2 == node));
            }
            for (busy, lone) in outcome.times.iter().zip(&alone.times) {
                prop_assert!(busy.0 >= lone.0 && busy.1 >= lone.1);
            }
        }
    }
}

/// When each message is delivered, in any model.
fn arrivals(topology: &Fabric, settings: &NetworkSettings, load: &[Load]) -> Vec<u64> {
    let Carrier::Links(build) = settings.model.info().carrier else {
        panic!("{} has no links", settings.model)
    };
    let mut network = build(settings.setup(topology, false).unwrap()).unwrap();
    let mut times = vec![0; load.len()];
    for (&(at, src, dst, bytes), tag) in load.iter().zip(0u64..) {
        network
            .submit(Picos(at), Carried { src, dst, bytes: Bytes(bytes), tag, origin: Origin::default() })
            .unwrap();
    }
    while let Some((now, happened)) = network.run_until(Picos::MAX).unwrap() {
        if let Happened::Delivered { tag, .. } = happened {
            assert_eq!(std::mem::replace(&mut times[tag as usize], now.0), 0, "delivered twice");
        }
    }
    times
}

const ROUTINGS: [&str; 6] = ["minimal", "ecmp:packet", "adaptive", "valiant", "ugal:100", "par"];

proptest! {
    /// Without contention all models but store-and-forward agree, to the rounding of each packet. Packets are whole: a short last one may
    /// overtake another in a second virtual channel, and the buffer behind the link then lacks room for that.
    #[test]
    fn a_lone_message_takes_as_long_in_every_model(
        spec in crate::topology::tests::specs(), (_, links, _) in cases(), src: prop::sample::Index, dst: prop::sample::Index,
        packets in 0u64..8, size in 1u64..50)
    {
        let bytes = packets * size;
        let topology = build(&spec);
        let node = |index: prop::sample::Index| index.index(topology.nodes() as usize) as u32;
        let load = [(5, node(src), node(dst), bytes)];
        let mut settings = NetworkSettings { links, seed: 1, ..NetworkSettings::default() };
        settings.packet.size = Bytes(size);
        let mut times = Vec::new();
        for model in [Model::Latency, Model::CutThrough, Model::Packet] {
            settings.model = model;
            times.push(arrivals(&topology, &settings, &load)[0]);
        }
        prop_assert_eq!(times[0], times[1]);
        // Its time on the slowest link is rounded once.
        settings.model = Model::Flow;
        let flow = arrivals(&topology, &settings, &load)[0];
        prop_assert!(flow.abs_diff(times[1]) <= 1, "{flow}, {times:?}");
        prop_assert!((times[1]..=times[1] + packets * 8).contains(&times[2]), "{times:?}, {packets} packets");
    }

    /// Under every routing every packet of every message arrives, in any order of handing over.
    #[test]
    fn all_packets_arrive(
        spec in crate::topology::tests::specs(), (_, links, load) in cases(), routing in 0..ROUTINGS.len(), size in 1u64..40, vcs in 0u32..3,
        output: bool, age: bool, speedup in prop_oneof![Just(None), Just(Some(1.0)), Just(Some(2.0))])
    {
        let topology = build(&spec);
        // A routing of other topologies.
        let Ok(router) = router(&topology, ROUTINGS[routing], 1) else { return Ok(()) };
        let mut load = load;
        load.iter_mut().for_each(|load| (load.1, load.2) = (load.1 % topology.nodes(), load.2 % topology.nodes()));
        let mut settings = NetworkSettings { links, model: Model::Packet, routing: ROUTINGS[routing].parse().unwrap(), seed: 1, ..NetworkSettings::default() };
        settings.packet = PacketSettings {
            size: Bytes(size), header: Bytes(3), buffer: Some(Bytes(size + 3)), speedup: speedup.filter(|_| !output),
            buffers: if output { Buffers::Output } else { Buffers::Input },
            arbiter: if age { Arbiter::Age } else { Arbiter::RoundRobin }, ..PacketSettings::default()
        };
        let needed = router.classes(crate::topology::LinkClass::LOCAL).max(router.classes(crate::topology::LinkClass::GLOBAL));
        settings.packet.vcs = Some(needed + vcs);
        let times = arrivals(&topology, &settings, &load);
        prop_assert!(times.iter().all(|&time| time > 0));
        // Messages of different sources that are handed over at one moment may be handed over in any order.
        let mut order: Vec<usize> = (0..load.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(load[at].1));
        let reordered: Vec<Load> = order.iter().map(|&at| load[at]).collect();
        let again = arrivals(&topology, &settings, &reordered);
        prop_assert!(order.iter().zip(&again).all(|(&at, time)| times[at] == *time));
    }
}

/// One flow, b packets of buffer: rate = min(B, b·p / (2λ + σ + p/B)); closed.csv has b = 2, p/B = 100 ns, λ = 150 ns, σ = 0.
#[test]
fn credits_bound_the_rate() {
    for (packets, latency, delay, credit_delay) in [
        (2, 150, 0, 0),
        (3, 150, 0, 0),
        (4, 150, 0, 0),
        (5, 150, 0, 0),
        (2, 10, 0, 0),
        (3, 100, 60, 40),
        (1, 30, 10, 0),
    ] {
        let links = Links {
            bandwidth: "8Gbit/s".parse().unwrap(),
            latency: Picos(latency * 1000),
            switch_delay: Picos(delay * 1000),
            ..Links::default()
        };
        let mut settings = NetworkSettings { links, model: Model::Packet, ..NetworkSettings::default() };
        settings.packet = PacketSettings {
            size: Bytes(100),
            buffer: Some(Bytes(packets * 100)),
            vcs: Some(1),
            credit_delay: Picos(credit_delay * 1000),
            ..settings.packet
        };
        let topology = build("switch:2");
        let took = |count: u64| arrivals(&topology, &settings, &[(0, 0, 1, count * 100)])[0];
        // Many packets more: the time that they take.
        let each = (took(1200) - took(600)) as f64 / 600.0 / 1000.0;
        let expected = 100f64.max((2 * latency + delay + credit_delay + 100) as f64 / packets as f64);
        assert!((each / expected - 1.0).abs() < 1e-9, "{packets} packets: {each} ns each, not {expected}");
    }
}

#[test]
fn packet_settings_that_cannot_be() {
    let error = |change: &dyn Fn(&mut PacketSettings)| {
        let mut settings = NetworkSettings { model: Model::Packet, ..NetworkSettings::default() };
        change(&mut settings.packet);
        let topology = build("torus:5");
        Packets::new(&settings.setup(&topology, false).unwrap())
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(error(&|_| {}), "");
    assert!(error(&|packet| packet.size = Bytes::ZERO).contains("write a size of at least 1"));
    assert!(error(&|packet| packet.header = Bytes(1 << 28)).contains("less than 256 MiB"));
    assert_eq!(
        error(&|packet| (packet.header, packet.buffer) = (Bytes(64), Some(Bytes(2100)))),
        "a buffer of 2100 bytes has no room for a packet of 2112, header included"
    );
    assert!(error(&|packet| packet.buffer = Some(Bytes(1 << 40))).contains("at most 4294967295"));
    assert!(error(&|packet| packet.vcs = Some(0)).contains("write a number from 1 to 255"));
    assert!(error(&|packet| packet.vcs = Some(300)).contains("write a number from 1 to 255"));
    assert!(error(&|packet| packet.speedup = Some(0.5)).contains("the speedup must be at least 1"));
    assert!(
        error(&|packet| (packet.speedup, packet.buffers) = (Some(2.0), Buffers::Output))
            .contains("input buffers")
    );
    let cycle = error(&|packet| packet.vcs = Some(1));
    assert!(cycle.starts_with("routing minimal needs 2 virtual channels here; 1 can deadlock: ("), "{cycle}");
}

#[test]
fn models_read_back() {
    for model in Model::ALL {
        assert_eq!(model.to_string().parse(), Ok(model));
    }
    let error = "wormhole".parse::<Model>().unwrap_err().to_string();
    assert!(error.contains("wormhole") && error.contains("store-and-forward"));
}
