//! Congestion control and loss against closed forms and the figures of papers.

use proptest::prelude::*;
use vef_format::units::{Bytes, Picos};

use super::*;
use crate::model::{FlowSettings, Links, ModelError, Origin, Setup};
use crate::routing::tests::router;
use crate::topology::tests::build;
use crate::topology::{Fabric, LinkId};

const MICRO: u64 = 1_000_000;

pub(super) fn links(bandwidth: &str, latency: u64) -> Links {
    Links { bandwidth: bandwidth.parse().unwrap(), latency: Picos(latency), ..Links::default() }
}

pub(super) fn settings(congestion: &str, packet: u64) -> PacketSettings {
    PacketSettings {
        size: Bytes(packet),
        buffers: Buffers::Output,
        buffer: Some(Bytes(100_000_000)),
        congestion: (!congestion.is_empty()).then(|| congestion.parse().unwrap()),
        ..PacketSettings::default()
    }
}

pub(super) fn network<'a>(
    fabric: &'a Fabric,
    links: &'a Links,
    packet: PacketSettings,
    routing: &'static str,
) -> Result<Packets<'a>, ModelError> {
    let router = router(fabric, routing, 1).unwrap();
    Packets::new(&Setup { router, links, flow: FlowSettings::default(), packet, report_sent: true })
}

fn submit(network: &mut Packets<'_>, messages: &[(u64, u32, u32, u64)]) {
    for (&(at, src, dst, bytes), tag) in messages.iter().zip(0u64..) {
        // Of three jobs.
        let origin =
            Origin::Job { job: (tag % 3) as u32, kind: replay::Kind::PointToPoint, ranks: [src, dst] };
        network.submit(Picos(at), Carried { src, dst, bytes: Bytes(bytes), tag, origin }).unwrap();
    }
}

/// When each message is delivered, after which nothing of it is left; each is once, and each is sent once.
fn finish(network: &mut Packets<'_>, messages: usize) -> Vec<u64> {
    let (mut times, mut sent) = (vec![0; messages], vec![0; messages]);
    while let Some((now, happened)) = network.run_until(Picos::MAX).unwrap() {
        match happened {
            Happened::Delivered { tag, .. } => {
                assert_eq!(std::mem::replace(&mut times[tag as usize], now.0), 0, "{tag} twice");
            }
            Happened::Sent { tag } => sent[tag as usize] += 1,
        }
    }
    assert!(times.iter().all(|time| *time > 0), "{times:?}");
    assert!(sent.iter().all(|times| *times == 1), "{sent:?}");
    assert!(network.messages.is_empty() && network.packets.is_empty());
    times
}

fn carried(
    spec: &str,
    links: &Links,
    settings: PacketSettings,
    messages: &[(u64, u32, u32, u64)],
) -> (Vec<u64>, Congested) {
    let fabric = build(spec);
    let mut network = network(&fabric, links, settings, "minimal").unwrap();
    submit(&mut network, messages);
    let times = finish(&mut network, messages.len());
    (times, network.congested().unwrap_or_default())
}

/// With w packets of time T under way at most, packet k leaves when packet k − w is acknowledged, T + 2δ after it left.
#[test]
fn a_window_bounds_the_rate() {
    let links = links("8Gbit/s", 10 * MICRO);
    // A packet of 1000 bytes takes 1 µs; from node to node it takes 20 µs.
    let (time, delay, packets) = (MICRO, 20 * MICRO, 100usize);
    for buffers in [Buffers::Input, Buffers::Output] {
        for window in [1usize, 7, 40, 41, 60] {
            let settings =
                PacketSettings { buffers, ..settings(&format!("window:{}B", window * 1000), 1000) };
            let mut left: Vec<u64> = Vec::new();
            for packet in 0..packets {
                let link = left.last().map_or(0, |last| last + time);
                let open = packet.checked_sub(window).map_or(0, |of| left[of] + time + 2 * delay);
                left.push(link.max(open));
            }
            let expected = left[packets - 1] + time + delay;
            let (times, _) = carried("switch:2", &links, settings, &[(0, 0, 1, 1000 * packets as u64)]);
            assert_eq!(times, [expected], "{window} {buffers:?}");
        }
        // Full bandwidth with the product of bandwidth and delay, and not with less.
        let settings = PacketSettings { buffers, ..settings("window:bdp", 1000) };
        let (times, _) = carried("switch:2", &links, settings, &[(0, 0, 1, 100_000)]);
        assert_eq!(times, [100 * time + delay]);
    }
    // Several destinations have windows of their own.
    let settings = settings("window:1000B", 1000);
    let (times, _) = carried("switch:3", &links, settings, &[(0, 0, 1, 2000), (0, 0, 2, 2000)]);
    let round = 2 * delay + time;
    assert_eq!(times, [round + time + delay, round + 2 * time + delay]);
}

/// Queue of the link to node 0 at each arrival there, in packets, once `from` has passed.
fn queue_of_incast(
    links: &Links,
    settings: PacketSettings,
    senders: u32,
    from: u64,
    to: u64,
) -> (f64, f64, f64, Vec<u64>) {
    let fabric = build(&format!("switch:{}", senders + 1));
    let mut network = network(&fabric, links, settings, "minimal").unwrap();
    let size = settings.size.0;
    let messages: Vec<_> = (1..=senders).map(|src| (u64::from(src) * 3000, src, 0, size << 24)).collect();
    submit(&mut network, &messages);
    let at = LinkId::ejection(0);
    let (mut least, mut most, mut sum, mut count) = (u64::MAX, 0, 0, 0u64);
    let mut before = Vec::new();
    let sent = |network: &Packets<'_>| -> Vec<u64> {
        network.congestion.as_ref().unwrap().flows.iter().map(|flow| flow.sent).collect()
    };
    let mut now = 0;
    while now < to {
        now += MICRO;
        assert_eq!(network.run_until(Picos(now)).unwrap(), None);
        if now == from {
            before = sent(&network);
        }
        if now > from {
            let queue = network.congestion.as_ref().unwrap().queued[at.index()];
            (least, most) = (least.min(queue), most.max(queue));
            (sum, count) = (sum + queue, count + 1);
        }
    }
    let packets = |bytes: u64| bytes as f64 / size as f64;
    let sent = sent(&network).iter().zip(&before).map(|(now, before)| now - before).collect();
    (packets(least), packets(most), packets(sum) / count as f64, sent)
}

/// Section 3.3 of the paper, and its figure 12: N synchronised flows have a queue of at most K + N packets that swings by
/// A = ½·√(2N·(C·RTT + K)). Flows are not quite synchronised: by half as much to twice as much. The link is never idle.
#[test]
fn the_queue_of_dctcp_is_that_of_its_paper() {
    let links = links("10Gbit/s", 25 * MICRO);
    let (k, rtt) = (40.0, 10e9 * 100e-6 / 12_000.0);
    for senders in [2u32, 10] {
        let n = f64::from(senders);
        let swing = (2.0 * n * (rtt + k)).sqrt() / 2.0;
        let settings = settings("dctcp:K=60000B", 1500);
        let (least, most, _, sent) =
            queue_of_incast(&links, settings, senders, 50_000 * MICRO, 100_000 * MICRO);
        assert!((most - (k + n)).abs() <= 0.1 * (k + n), "{senders}: at most {most}");
        let swung = k + n - least;
        assert!((swing / 2.0..2.0 * swing).contains(&swung), "{senders}: {swung} instead of {swing}");
        let rate = sent.iter().sum::<u64>() as f64 * 8.0 / 0.05;
        assert!(rate > 0.999 * 10e9, "{rate}");
    }
}

/// Flows of an incast get equal shares of the link, and the queue of few is that of the fixed point of the fluid model (Y. Zhu et
/// al., "ECN or Delay", CoNEXT 2016, theorem 1): p³ = AI·N²/(τ·C²)·(1/B + N/(T·C))², in packets and seconds.
#[test]
fn flows_of_dcqcn_get_equal_shares() {
    let links = links("40Gbit/s", MICRO);
    for senders in [2u32, 8] {
        let settings = settings("dcqcn", 1000);
        let (_, most, mean, sent) =
            queue_of_incast(&links, settings, senders, 60_000 * MICRO, 160_000 * MICRO);
        let rates: Vec<f64> = sent.iter().map(|bytes| *bytes as f64 * 8.0 / 0.1).collect();
        let sum: f64 = rates.iter().sum();
        assert!(sum > 0.98 * 40e9, "{rates:?}");
        let equal = sum / f64::from(senders);
        assert!(rates.iter().all(|rate| (rate / equal - 1.0).abs() < 0.15), "{rates:?}");
        let (n, c) = (f64::from(senders), 40e9 / 8000.0);
        let p = (40e6 / 8000.0 * n * n / (55e-6 * c * c) * (1.0 / 10_000.0 + n / (55e-6 * c)).powi(2)).cbrt();
        let fixed = 5.0 + p / 0.01 * 195.0;
        assert!(senders > 2 || (mean / fixed - 1.0).abs() < 0.3, "{mean} instead of {fixed}");
        // Above Kmax every packet is marked.
        assert!(most < 300.0, "{most}");
    }
}

/// A receiver grants a packet each transmission time, from when the first request arrives: the last one arrives after three
/// latencies and the time of all, and none waits for another.
#[test]
fn an_incast_of_credits_has_no_queue() {
    let links = links("8Gbit/s", 10 * MICRO);
    let (time, delay) = (MICRO, 20 * MICRO);
    let messages: Vec<_> = (1..=8).map(|src| (0, src, 0, 25_000)).collect();
    let (times, counts) = carried("switch:9", &links, settings("credits", 1000), &messages);
    assert_eq!(times.iter().max(), Some(&(3 * delay + 8 * 25 * time)));
    assert_eq!(counts.largest_queue, 1000);
    // Credits go to all in turn: all end within a turn.
    assert!(times.iter().min() > Some(&(3 * delay + 7 * 25 * time)));
    let (_, counts) = carried("switch:9", &links, settings("window:1MB", 1000), &messages);
    assert!(counts.largest_queue > 100_000, "{counts:?}");
    // What goes without credits saves the request.
    let unsolicited = |bytes| {
        let messages = [(0, 0, 1, bytes)];
        carried("switch:2", &links, settings("credits:2000B", 1000), &messages).0[0]
    };
    assert_eq!(unsolicited(2000), 2 * time + delay);
    assert_eq!(unsolicited(2500), 3 * delay + time / 2);
    assert_eq!(unsolicited(0), delay);
}

/// Times by hand of a queue of one packet. The packets of both senders come at once, and that of node 1 is dropped.
#[test]
fn what_is_lost_is_sent_again() {
    let links = links("8Gbit/s", 10 * MICRO);
    let (time, delay) = (MICRO, 20 * MICRO);
    for control in ["", "window:1MB", "dctcp"] {
        let settings = PacketSettings { lossy: Some(Bytes(1000)), ..settings(control, 1000) };
        // Its second packet tells the receiver; the report takes as long as the packet did.
        let back = 2 * time + delay + delay;
        let messages = [(0, 0, 2, 1000), (0, 1, 2, 3000)];
        let (times, counts) = carried("switch:3", &links, settings, &messages);
        assert_eq!(times, [time + delay, back + 3 * time + delay], "{control}");
        let expected = Congested { dropped: 1, sent_again: 3, largest_queue: 1000, ..Congested::default() };
        assert_eq!(counts, expected, "{control}");
        // Nothing follows that would tell: the sender waits in vain.
        let messages = [(0, 0, 2, 1000), (0, 1, 2, 1000)];
        let (times, counts) = carried("switch:3", &links, settings, &messages);
        assert_eq!(times, [time + delay, 1_000_000_000 + time + delay], "{control}");
        assert_eq!((counts.dropped, counts.timeouts, counts.sent_again), (1, 1, 1), "{control}");
    }
}

#[test]
fn impossible_settings_are_refused() {
    let fabric = build("fattree:2x4x2");
    let links = Links::default();
    let lossy = |queue| PacketSettings { lossy: Some(Bytes(queue)), ..settings("", 1000) };
    let input = |control: &str| PacketSettings { buffers: Buffers::Input, ..settings(control, 1000) };
    for (settings, routing, problem) in [
        (input("dctcp"), "minimal", "marks by --congestion dctcp or dcqcn need --buffers output"),
        (
            PacketSettings { lossy: Some(Bytes(9999)), ..input("") },
            "minimal",
            "--lossy needs --buffers output",
        ),
        (lossy(999), "minimal", "--lossy needs room for a packet"),
        (lossy(9999), "ecmp:packet", "--lossy needs a routing"),
        (lossy(9999), "adaptive", "--lossy needs a routing"),
    ] {
        let error = network(&fabric, &links, settings, routing).err().unwrap().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
    assert!(network(&fabric, &links, input("credits"), "adaptive").is_ok());
}

fn controls() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "dctcp:K=2000B",
        "dcqcn:Kmin=1000B,Kmax=5000B,Pmax=0.5,timer=5us,cnp=5us",
        "window:bdp",
        "window:1500B",
        "credits",
        "credits:3000B",
    ])
}

fn loads(nodes: u32) -> impl Strategy<Value = Vec<(u64, u32, u32, u64)>> {
    let message = (0..20 * MICRO, 0..nodes, 0..nodes, prop_oneof![Just(0), 1..20_000u64]);
    prop::collection::vec(message, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every message is delivered once, whatever is dropped, and nothing is left.
    #[test]
    fn all_is_delivered_once(
        control in controls(), queue in prop::option::of(1000u64..8000), load in loads(8), weights in prop::sample::select(vec![&[][..], &[3, 1]]))
    {
        let fabric = build("fattree:2x4x2");
        let links = links("8Gbit/s", MICRO);
        let mut settings =
            PacketSettings { lossy: queue.map(Bytes), classes: classes(weights), ..settings(control, 1000) };
        if queue.is_some() {
            settings.retransmit = Picos(50 * MICRO);
        }
        let mut network = network(&fabric, &links, settings, "ecmp:pair").unwrap();
        submit(&mut network, &load);
        let times = finish(&mut network, load.len());
        for (finished, (at, _, _, bytes)) in times.into_iter().zip(load) {
            prop_assert!(finished >= at + bytes * 1000);
        }
        if let Some(all) = &network.congestion {
            prop_assert!(all.queued.iter().all(|queue| *queue == 0));
            prop_assert!(all.flows.iter().all(|flow| flow.loss.log.is_empty()));
            prop_assert_eq!(all.counts.dropped > 0, all.counts.sent_again > 0);
        }
    }

    /// A window that nobody fills changes nothing for nodes that send to one other.
    #[test]
    fn a_wide_window_changes_nothing(load in loads(8), output in any::<bool>()) {
        let load: Vec<_> = load.into_iter().map(|(at, src, _, bytes)| (at, src, (src + 3) % 8, bytes)).collect();
        let buffers = if output { Buffers::Output } else { Buffers::Input };
        let times = |control| {
            let settings = PacketSettings { buffers, buffer: None, ..settings(control, 1000) };
            let fabric = build("torus:2x4");
            let links = links("8Gbit/s", MICRO);
            let mut network = network(&fabric, &links, settings, "minimal").unwrap();
            submit(&mut network, &load);
            finish(&mut network, load.len())
        };
        prop_assert_eq!(times("window:1GB"), times(""));
    }
}

/// Classes of traffic, of which job n has weight `weights[n]`.
fn classes(weights: &[u16]) -> TrafficClasses {
    let mut classes = TrafficClasses::default();
    (0..).zip(weights).for_each(|(job, &weight)| classes.add(Members::Job(job), weight).unwrap());
    classes
}

/// Job n sends one message, of so many packets of 1 µs on each link; when it arrives, without the latencies of links.
fn shared(topology: &str, packet: PacketSettings, messages: &[(u32, u32, u64)]) -> Vec<f64> {
    let (fabric, links) = (build(topology), links("8Gbit/s", 100_000));
    let mut network = network(&fabric, &links, packet, "minimal").unwrap();
    for (&(src, dst, packets), job) in messages.iter().zip(0u32..) {
        let origin = Origin::Job { job, kind: replay::Kind::PointToPoint, ranks: [0, 1] };
        let message = Carried { src, dst, bytes: Bytes(packets * 1000), tag: job.into(), origin };
        network.submit(Picos(0), message).unwrap();
    }
    let times = finish(&mut network, messages.len());
    times.into_iter().map(|time| time as f64 / MICRO as f64).collect()
}

/// Of classes that share a link, the first to end has had its weight's part of it, and then the others theirs of the whole: on the cable between two switches,
/// on the link of a node that sends both, and on that of one that receives both; with all buffers and senders.
#[test]
fn classes_share_a_link_by_weight() {
    let input = PacketSettings { size: Bytes(1000), ..PacketSettings::default() };
    let output = settings("", 1000);
    let windows = settings("window:20kB", 1000);
    let credits = settings("credits", 1000);
    let aged = PacketSettings { arbiter: Arbiter::Age, ..input };
    let marks = settings("dctcp:K=20kB", 1000);
    let lossy = PacketSettings { lossy: Some(Bytes(100_000)), ..windows };
    for packet in [input, output, windows, credits, aged, marks, lossy] {
        for (topology, ways) in [
            ("fattree:2x3x1", [(0, 3), (1, 4), (2, 5)]),
            ("switch:4", [(0, 1), (0, 2), (0, 3)]),
            ("switch:4", [(1, 0), (2, 0), (3, 0)]),
        ] {
            let is_credits =
                packet.congestion.is_some_and(|control| matches!(control, Congestion::Credits { .. }));
            if is_credits && topology == "switch:4" && ways[0].1 == 0 {
                // The receiver gives credits to its senders in turn.
                continue;
            }
            // Two classes by 3 to 1, 300 packets each: the first has three of four, and ends after 400; then the other has 200 left.
            let packet = PacketSettings { classes: classes(&[3, 1]), ..packet };
            let two = [(ways[0].0, ways[0].1, 300), (ways[1].0, ways[1].1, 300)];
            let times = shared(topology, packet, &two);
            for (time, expected) in times.iter().zip([400.0, 600.0]) {
                assert!((time - expected).abs() < 8.0, "{topology} {ways:?} {packet:?}: {times:?}");
            }
            // Three by 5 to 2 to 1 (the last has no class), 400 packets each: 640 are through when the first ends, and 1000 when the second does.
            let packet = PacketSettings { classes: classes(&[5, 2]), ..packet };
            let times = shared(topology, packet, &ways.map(|(src, dst)| (src, dst, 400)));
            for (time, expected) in times.iter().zip([640.0, 1000.0, 1200.0]) {
                assert!((time - expected).abs() < 10.0, "{topology} {ways:?} {packet:?}: {times:?}");
            }
        }
    }
}

/// Notified senders of DCQCN and dropped packets waste a part of the link; the classes still end in the order of their weights, and what is lost of
/// one is sent again in it.
#[test]
fn classes_keep_their_order_when_packets_are_dropped_or_senders_notified() {
    let notified = settings("dcqcn:Kmin=5kB,Kmax=200kB,Pmax=0.01", 1000);
    let dropped =
        PacketSettings { lossy: Some(Bytes(10_000)), retransmit: Picos(100 * MICRO), ..settings("", 1000) };
    for packet in [notified, dropped] {
        let packet = PacketSettings { classes: classes(&[5, 2]), ..packet };
        let times = shared("fattree:2x3x1", packet, &[(0, 3, 400), (1, 4, 400), (2, 5, 400)]);
        // None has more than its part of the link.
        assert!(times[0] >= 640.0 && times[0] < times[1] && times[1] < times[2], "{packet:?}: {times:?}");
    }
}

/// A class has buffers of its own: what waits for a node that gets too much does not hold up another class behind it, as it does without classes.
#[test]
fn a_class_does_not_wait_behind_another() {
    // Three of one switch send to one node of the other; a fourth to another one.
    let messages = [(0, 4, 300), (1, 4, 300), (2, 4, 300), (3, 5, 100)];
    let packet = PacketSettings { size: Bytes(1000), vcs: Some(1), ..PacketSettings::default() };
    let without = shared("fattree:2x4x4", PacketSettings { vcs: Some(1), ..packet }, &messages);
    assert!(without[3] < 150.0, "{without:?}: D-mod-k gives it another spine");
    let without = shared("fattree:2x4x1", packet, &messages);
    let mut classes = TrafficClasses::default();
    classes.add(Members::Job(3), 1).unwrap();
    let with = shared("fattree:2x4x1", PacketSettings { classes, ..packet }, &messages);
    // It has half of the cable.
    assert!(without[3] > 300.0 && (with[3] - 200.0).abs() < 8.0, "{without:?} {with:?}");
    assert!((with[2] - 1000.0).abs() < 10.0, "{with:?}");
}

#[test]
fn classes_that_cannot_be() {
    let mut all = classes(&[3]);
    assert_eq!(all.add(Members::Job(0), 2), Err(ClassError::Twice));
    assert_eq!(all.add(Members::Background, 0), Err(ClassError::Weight));
    assert_eq!(all.add(Members::Background, 1001), Err(ClassError::Weight));
    (1..15).for_each(|job| all.add(Members::Job(job), 1).unwrap());
    assert_eq!(all.add(Members::Collectives, 1), Err(ClassError::TooMany));
    let (fabric, links) = (build("torus:4x4"), links("8Gbit/s", 1));
    let packet = PacketSettings { classes: all, vcs: Some(16), ..PacketSettings::default() };
    let error = network(&fabric, &links, packet, "minimal").err().unwrap();
    assert_eq!(
        error.to_string(),
        "16 × 16 virtual channels, of 16 classes of traffic: write a number from 1 to 15"
    );
    let packet = PacketSettings { classes: classes(&[3]), speedup: Some(2.0), ..PacketSettings::default() };
    let error = network(&fabric, &links, packet, "minimal").err().unwrap().to_string();
    assert!(error.starts_with("--class needs a switch without --speedup"), "{error}");
}
