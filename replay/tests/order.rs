//! Messages of one moment have one order, however the replay is driven: on a network in which it matters who comes first, an engine, a
//! replay message by message and in batches, and partitions come to the same times.

use replay::{
    Bytes, Engine, Job, LiveId, Loaded, Message, Next, OpCodes, Picos, Replay, ReplayError, SameNode,
    SendCompletion, Wake,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::Path;
use std::sync::Arc;
use vef_format::text::Reader;

const SIDE: u32 = 4;
const RANKS: u32 = SIDE * SIDE;

/// A halo exchange on a torus of 16 ranks, an Allreduce behind every second step. Computing is the same everywhere, so that nearly all
/// messages start together with others.
fn halo() -> Arc<Loaded> {
    let mut lines = Vec::new();
    let mut last: Vec<Option<String>> = vec![None; RANKS as usize];
    let mut id = 0;
    let mut next_id = || {
        id += 1;
        id - 1
    };
    let neighbours = |rank: u32| {
        let (x, y) = (rank % SIDE, rank / SIDE);
        let at = |x: u32, y: u32| x % SIDE + y % SIDE * SIDE;
        [at(x + 1, y), at(x + SIDE - 1, y), at(x, y + 1), at(x, y + SIDE - 1)]
    };
    for step in 0..6 {
        let mut sent = BTreeMap::new();
        for rank in 0..RANKS {
            for (way, to) in neighbours(rank).into_iter().enumerate() {
                let id = next_id();
                let (kind, after) = match (way, &last[rank as usize]) {
                    (0, None) => (0, "-1".to_owned()),
                    (0, Some(after)) if after.starts_with('G') => (3, after.clone()),
                    (0, Some(after)) => (1, after.clone()),
                    (_, _) => (1, (id - 1).to_string()),
                };
                let time = if way == 0 { 500 } else { 0 };
                let bytes = 8192 + 64 * u64::from(rank % 3);
                lines.push(format!("{id} {rank} {to} {bytes} {} {time} {after}", 4 + kind));
                sent.insert((rank, way), id);
            }
        }
        for rank in 0..RANKS {
            for (way, from) in neighbours(rank).into_iter().enumerate() {
                let id = next_id();
                let back = way ^ 1;
                lines.push(format!("{id} {rank} {rank} 0 2 0 {}", sent[&(from, back)]));
                last[rank as usize] = Some(id.to_string());
            }
            if step % 2 == 1 {
                let after = last[rank as usize].clone().unwrap();
                lines.push(format!("G{step} C0 2 {rank} 512 512 1 7 {after}"));
                last[rank as usize] = Some(format!("G{step}"));
            }
        }
    }
    let messages = lines.iter().filter(|line| !line.starts_with('G')).count();
    let parts = lines.len() - messages;
    let all: Vec<String> = (0..RANKS).map(|rank| rank.to_string()).collect();
    let head = format!("VEF3 {RANKS} {messages} 1 3 {parts} 0 1000\nC0 {}\n", all.join(" "));
    loaded(&(head + &lines.join("\n") + "\n"))
}

fn loaded(text: &str) -> Arc<Loaded> {
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("halo.vef")).unwrap();
    Arc::new(Loaded::read(reader, OpCodes::default()).unwrap())
}

/// A network: four nodes share a link of 10 Gbit/s, on which messages are one after the other, and 1 µs lies behind it. With
/// a `picos_a_byte` of 0 messages do not meet.
#[derive(Default)]
struct Network {
    picos_a_byte: u64,
    free: BTreeMap<u32, u64>,
    /// When and, of one moment, in the order of the messages: which arrive.
    arrivals: BinaryHeap<Reverse<(u64, u64, u64)>>,
    started: Vec<(u64, u32, u32, u64)>,
}

impl Network {
    fn new(picos_a_byte: u64) -> Self {
        Self { picos_a_byte, ..Self::default() }
    }

    /// A message enters; returns when it arrives.
    fn carry(&mut self, message: &Message, id: LiveId) {
        let free = self.free.entry(message.src_node / 4).or_default();
        let left = message.start.0.max(*free * u64::from(self.picos_a_byte > 0))
            + message.bytes.0 * self.picos_a_byte;
        *free = left;
        self.started.push((message.start.0, message.src.0, message.dst.0, message.bytes.0));
        self.arrivals.push(Reverse((left + 1_000_000, message.order, id.to_raw())));
    }

    fn next(&self) -> Option<u64> {
        self.arrivals.peek().map(|&Reverse((at, ..))| at)
    }

    fn pop(&mut self, now: u64) -> Option<LiveId> {
        match self.next() {
            Some(at) if at == now => self.arrivals.pop().map(|Reverse((_, _, id))| LiveId::from_raw(id)),
            _ => None,
        }
    }
}

type Outcome = (Picos, Vec<(u64, u32, u32, u64)>);

fn builder(trace: &Arc<Loaded>) -> replay::Builder {
    Replay::builder().job(Job::loaded(trace)).same_node(SameNode::ViaNetwork)
}

/// One by one with a `batch` of 0.
fn by_replay(trace: &Arc<Loaded>, mut network: Network, batch: usize) -> Outcome {
    let mut replay = builder(trace).build().unwrap();
    while let Some(now) = replay.next_ready().map(|at| at.0).into_iter().chain(network.next()).min() {
        while let Some(id) = network.pop(now) {
            replay.delivered(id, Picos(now)).unwrap();
        }
        match batch {
            0 => {
                while let Some(message) = replay.pop_ready(Picos(now)).unwrap() {
                    network.carry(&message, message.id);
                }
            }
            _ => replay
                .pop_ready_batch(Picos(now), batch, |message| network.carry(&message, message.id))
                .unwrap(),
        }
    }
    assert!(replay.is_complete());
    (replay.finish(), network.started)
}

/// Engines side by side, each with its nodes.
/// With `by_order` false, messages of one moment are in the order in which they became known.
fn by_engines(trace: &Arc<Loaded>, mut network: Network, parts: u32, by_order: bool) -> Outcome {
    let part_of = |node: u32| node % parts;
    let mut engines = match parts {
        1 => vec![builder(trace).engine().unwrap()],
        _ => builder(trace).partitions(parts, part_of).unwrap(),
    };
    // By time and order: messages that start, and wake-ups, which come before.
    let mut starting: BTreeMap<(Picos, u64, usize), Message> = BTreeMap::new();
    let mut wakes: BinaryHeap<Reverse<(Picos, u64, usize)>> = BinaryHeap::new();
    let mut number = 0;
    let mut keep =
        |part: usize, follows: Vec<Next>, starting: &mut BTreeMap<_, _>, wakes: &mut BinaryHeap<_>| {
            for next in follows {
                number += 1;
                match next {
                    Next::Message(message) => {
                        let order = if by_order { message.order } else { 0 };
                        starting.insert((message.start, order, number), message);
                    }
                    Next::Wake(wake) => wakes.push(Reverse((wake.to_raw().0, wake.to_raw().1, part))),
                    Next::Inside { .. } => panic!("all messages are the network's"),
                }
            }
        };
    for (part, engine) in engines.iter_mut().enumerate() {
        let mut follows = Vec::new();
        engine.begin(&mut follows).unwrap();
        keep(part, follows, &mut starting, &mut wakes);
    }
    loop {
        let start = starting.first_key_value().map(|((at, ..), _)| at.0);
        let wake = wakes.peek().map(|Reverse((at, ..))| at.0);
        let Some(now) = [start, wake, network.next()].into_iter().flatten().min() else { break };
        let mut follows = Vec::new();
        if let Some(id) = network.pop(now) {
            // The partition of the receiver is in the upper bits.
            let (part, id) = ((id.to_raw() >> 60) as usize, LiveId::from_raw(id.to_raw() & !(0xf << 60)));
            engines[part].delivered(id, Picos(now), &mut follows).unwrap();
            keep(part, follows, &mut starting, &mut wakes);
        } else if wake == Some(now) {
            let Some(Reverse((at, target, part))) = wakes.pop() else { break };
            engines[part].wake(Wake::from_raw(at, target), at, &mut follows).unwrap();
            keep(part, follows, &mut starting, &mut wakes);
        } else if let Some((_, message)) = starting.pop_first() {
            let (from, to) = ((message.src_node % parts) as usize, (message.dst_node % parts) as usize);
            let id = match from == to {
                true => message.id,
                false => {
                    let parcel = engines[from].export(message.id).unwrap();
                    let id = engines[to].import(parcel).unwrap();
                    assert!(matches!(engines[to].import(parcel), Err(ReplayError::ImportedTwice)));
                    id
                }
            };
            assert_eq!(id.to_raw() >> 60, 0);
            network.carry(&message, LiveId::from_raw(id.to_raw() | (to as u64) << 60));
        }
    }
    assert!(engines.iter().all(Engine::is_complete));
    (engines.iter().map(Engine::finish).max().unwrap(), network.started)
}

#[test]
fn all_ways_to_drive_a_replay_order_messages_alike() {
    let trace = halo();
    for picos_a_byte in [0, 800] {
        let expected = by_replay(&trace, Network::new(picos_a_byte), 0);
        for batch in [1, 3, 1000] {
            assert_eq!(by_replay(&trace, Network::new(picos_a_byte), batch), expected, "batches of {batch}");
        }
        for parts in [1, 2, 5] {
            let found = by_engines(&trace, Network::new(picos_a_byte), parts, true);
            assert_eq!(found, expected, "{parts} engines");
        }
    }
}

#[test]
fn captured_traces_take_the_same_time() {
    let Some(folder) = skipping::shared("data/vef-prospector") else { return };
    for name in ["p2p-a.vef", "p2p-b.vef"] {
        let trace = loaded(&std::fs::read_to_string(folder.join(name)).unwrap());
        for picos_a_byte in [0, 800] {
            let expected = by_replay(&trace, Network::new(picos_a_byte), 0);
            assert_eq!(by_replay(&trace, Network::new(picos_a_byte), 1000), expected, "{name}");
            for parts in [1, 2] {
                assert_eq!(by_engines(&trace, Network::new(picos_a_byte), parts, true), expected, "{name}");
            }
        }
    }
}

#[test]
fn a_message_that_is_known_late_is_not_behind_others() {
    // At 2 µs start a message of rank 3, known from the beginning, and one of rank 0, which answers what it has received at 1.8 µs.
    let text = "VEF3 4 4 0 0 0 0 100\n0 3 0 1000 4 0 -1\n1 3 1 5000 5 20000 0\n2 0 2 9000 6 2000 0\n3 2 3 100 6 100000 2\n";
    let (trace, network) = (loaded(text), || Network::new(800));
    let asked = by_replay(&trace, network(), 0);
    assert_eq!(
        asked.1,
        [(0, 3, 0, 1000), (2_000_000, 0, 2, 9000), (2_000_000, 3, 1, 5000), (20_200_000, 2, 3, 100)]
    );
    assert_eq!(by_engines(&trace, network(), 1, true), asked);
    assert_eq!(by_engines(&trace, network(), 2, true), asked);
    // As they became known.
    assert_eq!(by_engines(&trace, network(), 1, false).0.0 - asked.0.0, 4_000_000);
}

#[test]
fn a_report_before_the_start_is_refused() {
    let mut started = Vec::new();
    let mut engine = builder(&halo()).engine().unwrap();
    engine
        .begin(&mut |next: Next| {
            if let Next::Message(message) = next {
                started.push(message)
            }
        })
        .unwrap();
    let first = started[0];
    assert_eq!(first.start, Picos(500_000));
    let early = Picos(499_999);
    let mut nothing = |next: Next| panic!("{next:?}");
    let refused = engine.delivered(first.id, early, &mut nothing).unwrap_err();
    assert!(refused.is_misuse() && matches!(refused, ReplayError::BeforeStart { .. }), "{refused}");
    assert!(matches!(engine.sent(first.id, early, &mut nothing), Err(ReplayError::BeforeStart { .. })));
    engine.sent(first.id, first.start, &mut nothing).unwrap();
    engine.delivered(first.id, first.start, &mut |_: Next| {}).unwrap();
}

/// Task 1 computes for 1 µs, sends to task 2, and waits for the large message of task 0, which waits for that under rendezvous in calls.
#[test]
fn a_message_that_waited_for_a_call_follows_what_its_receiver_starts() {
    let trace = loaded(
        "VEF3 3 6 1 0 0 0 1000\nC0 0 1 2\n0 0 1 100000 4 0 -1\n1 1 2 8 4 1000 -1\n2 1 1 0 1 0 1\n3 1 1 0 2 0 0\n4 2 2 0 0 0 -1\n5 2 2 0 2 0 1\n",
    );
    let given = |policy: SendCompletion| {
        let mut replay = builder(&trace).send_completion(policy).build().unwrap();
        let mut given = Vec::new();
        while let Some(now) = replay.next_ready() {
            while let Some(message) = replay.pop_ready(now).unwrap() {
                given.push((message.start.0, message.src.0, message.order));
            }
        }
        given
    };
    let eager = given(SendCompletion::Eager);
    assert_eq!([(eager[0].0, eager[0].1), (eager[1].0, eager[1].1)], [(0, 0), (1_000_000, 1)]);
    let in_calls = given(SendCompletion::RendezvousInCalls { above: Bytes(999) });
    // Both start at one moment; that of the higher number lets the other start.
    assert_eq!(
        [(in_calls[0].0, in_calls[0].1), (in_calls[1].0, in_calls[1].1)],
        [(1_000_000, 1), (1_000_000, 0)]
    );
    assert!(in_calls[0].2 > in_calls[1].2, "{in_calls:?}");
}
