//! Messages around links that fail at times, and over links that are slower for a time: times by hand, in each model with links.

use super::super::*;
use crate::settings::NetworkSettings;
use crate::topology::tests::build;
use crate::topology::{Fabric, LinkId};
use vef_format::units::{Bytes, Picos};

const MICRO: u64 = 1_000_000;
const NANO: u64 = 1000;

fn fabric(topology: &str, faults: &[&str], used: &[u32]) -> Fabric {
    let faults: Vec<_> = faults.iter().map(|fault| fault.parse().unwrap()).collect();
    build(topology).with_faults(&faults, used.iter().copied()).unwrap().0
}

struct Run {
    /// When each message arrived; 0 if it did not.
    times: Vec<u64>,
    usage: Vec<Usage>,
    stranded: Option<String>,
    congested: Option<Congested>,
}

/// Messages of (time, from, to, bytes).
fn run(fabric: &Fabric, settings: &NetworkSettings, load: &[(u64, u32, u32, u64)]) -> Run {
    let Carrier::Links(build) = settings.model.info().carrier else { panic!("{}", settings.model) };
    let mut network = build(settings.setup(fabric, false).unwrap()).unwrap();
    for (&(at, src, dst, bytes), tag) in load.iter().zip(0u64..) {
        let message = Carried { src, dst, bytes: Bytes(bytes), tag, origin: Origin::default() };
        network.submit(Picos(at), message).unwrap();
    }
    let mut times = vec![0; load.len()];
    while let Some((now, happened)) = network.run_until(Picos::MAX).unwrap() {
        if let Happened::Delivered { tag, .. } = happened {
            assert_eq!(std::mem::replace(&mut times[tag as usize], now.0), 0, "delivered twice");
        }
    }
    let (stranded, congested) = (network.stranded(), network.congested());
    Run { times, usage: network.usage(), stranded, congested }
}

fn of_model(model: Model) -> NetworkSettings {
    NetworkSettings { model, seed: 1, ..NetworkSettings::default() }
}

fn with_links() -> impl Iterator<Item = Model> {
    Model::ALL.into_iter().filter(|model| matches!(model.info().carrier, Carrier::Links(_)))
}

fn link(fabric: &Fabric, name: &str) -> usize {
    (0..fabric.links()).find(|link| fabric.link_name(LinkId(*link)) == name).unwrap() as usize
}

/// A message of 1000 B every 10 µs to the next node of a ring of six, whose short way fails from 25 to 65 µs: 0.8 µs of transmission and
/// 0.5 µs for each of three links, or of seven the other way.
#[test]
fn a_stream_takes_the_long_way_while_the_short_one_is_down() {
    let ring = fabric("torus:6", &["(0)->(1) down 25us up 65us"], &[0, 1]);
    let load: Vec<_> = (0..10).map(|n| (n * 10 * MICRO, 0, 1, 1000)).collect();
    for model in with_links() {
        let Run { times, usage, .. } = run(&ring, &of_model(model), &load);
        let links = |n: u64| if (3..=6).contains(&n) { 7 } else { 3 };
        let alone = |n: u64| match model {
            Model::StoreAndForward => links(n) * 1300,
            _ => 800 + links(n) * 500,
        };
        let expected: Vec<u64> = (0..10).map(|n| n * 10 * MICRO + alone(n) * NANO).collect();
        assert_eq!(times, expected, "{model}");
        let count = |name| usage[link(&ring, name)].count;
        assert_eq!((count("(0)->(1)"), count("(0)->(5)")), (6, 4), "{model}");
    }
}

/// A message that the failure cuts takes the other way from where it is; a packet does not begin what it cannot end.
#[test]
fn what_a_failure_cuts_goes_another_way() {
    let ring = fabric("torus:6", &["(0)->(1) down 25us"], &[0, 1]);
    for model in [Model::Latency, Model::Injection, Model::CutThrough, Model::Packet] {
        // At the switch at 24.5 µs, on the other way from 25 µs on: 0.8 µs, and six links.
        let settings = of_model(model);
        assert_eq!(run(&ring, &settings, &[(24 * MICRO, 0, 1, 1000)]).times, [28_800 * NANO], "{model}");
    }
    // 100 packets: 30 pass by 24.5 µs, the others follow each other from 25 µs on.
    let mut settings = of_model(Model::Packet);
    settings.packet.size = Bytes(1000);
    let Run { times, usage, .. } = run(&ring, &settings, &[(0, 0, 1, 100_000)]);
    assert_eq!(times, [(25_000 + 70 * 800 + 6 * 500) * NANO]);
    let count = |name| usage[link(&ring, name)].count;
    assert_eq!((count("(0)->(1)"), count("(0)->(5)")), (30, 70));
    // As a flow, half of its bytes have passed at 41.5 µs, and the other half goes on at the same rate.
    let ring = fabric("torus:6", &["(0)->(1) down 41500ns up 1ms"], &[0, 1]);
    let Run { times, usage, .. } = run(&ring, &of_model(Model::Flow), &[(0, 0, 1, 100_000)]);
    assert_eq!(times, [81_500 * NANO]);
    let bytes = |name| usage[link(&ring, name)].bytes.0;
    assert_eq!((bytes("(0)->(1)"), bytes("(0)->(5)"), bytes("node0->(0)")), (50_000, 50_000, 100_000));
}

/// Without another way messages wait, at the switch or, of flows, at their node; a node whose own link fails waits with all.
#[test]
fn messages_wait_without_a_way() {
    let pair = fabric("mesh:2", &["(0)->(1) down 25us up 65us"], &[0, 1]);
    assert_eq!(
        pair.outages().unwrap().cut_off()[0].to_string(),
        "from 25.000 µs to 65.000 µs no route leads from node0 to node1; 1 of 2 nodes in use are cut off from node0, and messages wait"
    );
    let node = fabric("mesh:2", &["node0->(0) down 25us up 65us"], &[0, 1]);
    let load = [(30 * MICRO, 0, 1, 1000), (40 * MICRO, 0, 1, 1000)];
    for model in with_links() {
        // Of two packets in different channels either may be the first.
        let settings = NetworkSettings {
            packet: PacketSettings { vcs: Some(1), ..PacketSettings::default() },
            ..of_model(model)
        };
        let of_links = |links: u64| match model {
            Model::StoreAndForward => links * 1300,
            _ => 800 + links * 500,
        };
        // The second one behind the first, but where they share no link.
        let behind = if matches!(model, Model::Latency) { 0 } else { 800 };
        let two = |begin: u64, behind: u64| [begin, begin + behind].map(|at| at * NANO).to_vec();
        let waits_at_switch = match model {
            Model::Flow => two(65_000 + 1500 + 1600, 0),
            // Both have left their node before.
            Model::Injection => two(65_000 + of_links(2), 0),
            _ => two(65_000 + of_links(2), behind),
        };
        assert_eq!(run(&pair, &settings, &load).times, waits_at_switch, "{model}");
        let waits_at_node = match model {
            Model::Flow => two(65_000 + 1500 + 1600, 0),
            _ => two(65_000 + of_links(3), behind),
        };
        assert_eq!(run(&node, &settings, &load).times, waits_at_node, "{model}");
    }
    // A flow stops for as long as its link does not work.
    let Run { times, .. } = run(&pair, &of_model(Model::Flow), &[(0, 0, 1, 100_000)]);
    assert_eq!(times, [(81_500 + 40_000) * NANO]);
}

/// On a link with a tenth of its 10 Gbit/s from 25 to 45 µs, 1000 B take 8 µs in place of 0.8 µs, and a message that it meets on the way is
/// slower for as long; routes are as before.
#[test]
fn links_are_slower_for_a_time() {
    let pair = fabric("mesh:2", &["(0)->(1)=10% down 25us up 45us"], &[0, 1]);
    assert!(pair.outages().is_none());
    let arrive = |model, load: &[(u64, u32, u32, u64)]| {
        let mut settings = of_model(model);
        (settings.packet.vcs, settings.packet.size) = (Some(1), Bytes(1000));
        run(&pair, &settings, load).times
    };
    for model in with_links() {
        let is_whole = matches!(model, Model::StoreAndForward);
        let alone = |time: u64| if is_whole { 2 * 1300 + time + 500 } else { time + 1500 };
        let far =
            [(0, 0, 1, 1000), (28 * MICRO, 0, 1, 1000), (28 * MICRO, 1, 0, 1000), (46 * MICRO, 0, 1, 1000)];
        let expected = [alone(800), 28_000 + alone(8000), 28_000 + alone(800), 46_000 + alone(800)];
        assert_eq!(arrive(model, &far), expected.map(|at| at * NANO), "{model}");
        // Two at once take turns, or share the link.
        let two = arrive(model, &[(26 * MICRO, 0, 1, 1000), (26 * MICRO, 0, 1, 1000)]);
        let expected = match model {
            Model::Latency | Model::Injection => {
                let behind = if matches!(model, Model::Injection) { 800 } else { 0 };
                [26_000 + alone(8000), 26_000 + behind + alone(8000)]
            }
            Model::Flow => [26_000 + 1500 + 16_000; 2],
            _ => [26_000 + alone(8000), 26_000 + alone(16_000)],
        };
        assert_eq!(two, expected.map(|at| at * NANO), "{model}");
        // 10 000 B that reach the link at 21 µs: 5000 B by 25 µs, 2500 B by 45 µs, the rest in 2 µs.
        let (begin, end) = match model {
            Model::StoreAndForward => (12_500, 47_500 + 8500),
            Model::Flow => (19_500, 47_000),
            _ => (20_500, 48_000),
        };
        assert_eq!(arrive(model, &[(begin * NANO, 0, 1, 10_000)]), [end * NANO], "{model}");
    }
    let Run { usage, .. } = run(&pair, &of_model(Model::CutThrough), &[(20_500 * NANO, 0, 1, 10_000)]);
    assert_eq!(usage[link(&pair, "(0)->(1)")].busy, Picos(26_000 * NANO));
    // The bucket of the link, of 1000 B, is filled by the bandwidth of the moment.
    let mut settings = of_model(Model::CutThrough);
    settings.links.burst = Bytes(1000);
    assert_eq!(run(&pair, &settings, &[(26 * MICRO, 0, 1, 3000)]).times, [43_500 * NANO]);
}

/// Almost nothing of the bandwidth for a time is a pause, even where the rest would take longer than times can be; the least that is left
/// counts, also of slowdowns of the whole run.
#[test]
fn the_slowest_of_several_counts() {
    let pause = fabric("mesh:2", &["(0)->(1)=0.0000001% down 25us up 65us"], &[0, 1]);
    for model in with_links() {
        let is_whole = matches!(model, Model::StoreAndForward);
        let behind = if is_whole { 800 + 500 + 800 + 500 } else { 800 + 500 + 500 };
        let expected = if matches!(model, Model::Flow) { 65_800 } else { 65_000 + behind };
        let times = run(&pause, &of_model(model), &[(28 * MICRO, 0, 1, 1000)]).times;
        assert_eq!(times, [expected * NANO], "{model}");
        let fail = ["100%:1=50%", "(0)<->(1)=10% down 25us up 65us"].map(|fault| fault.parse().unwrap());
        let topology = "mesh:2".parse().unwrap();
        let settings = NetworkSettings { topology, fail: fail.into(), ..of_model(model) };
        let network = settings.whole_fabric().unwrap();
        let times = run(&network, &settings, &[(0, 0, 1, 1000), (28 * MICRO, 0, 1, 1000)]).times;
        let alone = |time: u64| if is_whole { 2 * 1300 + time + 500 } else { time + 1500 };
        assert_eq!(times, [alone(1600), 28_000 + alone(8000)].map(|at| at * NANO), "{model}");
    }
}

/// With `--lossy` what waits for a failed link, or has no route, is dropped, and sent again.
#[test]
fn what_is_dropped_is_sent_again() {
    let mut settings = of_model(Model::Packet);
    settings.packet.size = Bytes(1000);
    settings.packet.buffers = Buffers::Output;
    settings.packet.lossy = Some(Bytes(1 << 20));
    settings.packet.retransmit = Picos(100 * MICRO);
    let ring = fabric("torus:6", &["(0)->(1) down 25us"], &[0, 1]);
    let Run { times, congested, .. } = run(&ring, &settings, &[(0, 0, 1, 100_000)]);
    let Congested { dropped, sent_again, timeouts, .. } = congested.unwrap();
    assert_eq!((dropped, timeouts), (1, 0));
    assert!(sent_again >= 1 && times[0] > 84_000 * NANO, "{sent_again} {times:?}");
    // Without another way nothing comes until the link works again: timeouts send again.
    let pair = fabric("mesh:2", &["(0)->(1) down 25us up 650us"], &[0, 1]);
    let Run { times, congested, .. } = run(&pair, &settings, &[(0, 0, 1, 100_000)]);
    let Congested { dropped, timeouts, .. } = congested.unwrap();
    assert!(dropped >= 70 && timeouts >= 5 && times[0] > 650 * MICRO, "{dropped} {timeouts} {times:?}");
    assert!(times[0] < 850 * MICRO, "{times:?}");
}

/// What is in a switch when it fails for ever stays there, which is an error; with `--lossy` it is sent again.
#[test]
fn what_is_in_a_failed_switch_is_stranded() {
    let ring = fabric("torus:6", &["(1) down 25us"], &[0, 2]);
    // At switch (1) from 24.6 µs on, for 0.8 µs.
    let load = [(23_600 * NANO, 0, 2, 1000)];
    for model in [Model::Latency, Model::CutThrough, Model::Packet] {
        let Run { times, stranded, .. } = run(&ring, &of_model(model), &load);
        assert_eq!(
            (times, stranded.as_deref()),
            (vec![0], Some("a message for node2 is in switch (1), from which no route leads there any more")),
            "{model}"
        );
    }
    let mut settings = of_model(Model::Packet);
    (settings.packet.buffers, settings.packet.lossy) = (Buffers::Output, Some(Bytes(1 << 20)));
    assert!(run(&ring, &settings, &load).times[0] > 1000 * MICRO);
}

/// Every message arrives once under all routings, with links that fail and work again while they are on their way; and no link carries
/// anything while it does not work.
#[test]
fn all_messages_arrive_in_a_changing_network() {
    let faults = [
        "20%:3 down 3us up 9us",
        "20%:4 down 6us up 20us",
        "15%:5 down 12us up 13us",
        "10%:6 down 14us",
        "10%:7 down 15us up 40us",
        "30%:8=5% down 2us up 30us",
    ];
    for topology in ["torus:4x4", "fattree:4x4x4", "hyperx:4x4:2", "dragonfly:2x4x2", "dragonflyplus:2x3x3x2"]
    {
        let nodes = build(topology).nodes();
        let network = fabric(topology, &faults, &[]);
        let load: Vec<_> = (0..400u64)
            .map(|n| {
                (n * 70_000, (n * 7 % u64::from(nodes)) as u32, (n * 13 / 3 % u64::from(nodes)) as u32, 3000)
            })
            .collect();
        for routing in ["minimal", "ecmp:packet", "adaptive", "valiant", "ugal"] {
            for model in with_links() {
                let mut settings = of_model(model);
                settings.routing = routing.parse().unwrap();
                let found = run(&network, &settings, &load);
                let late = found.times.iter().position(|time| *time == 0);
                assert_eq!((late, found.stranded), (None, None), "{topology} {routing} {model}");
            }
        }
    }
}
