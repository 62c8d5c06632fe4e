//! The example simulator on its topologies: messages a second, replay included, traces in memory.
//!
//! The workload is a sequence of shifts by random distances: in each round every rank computes a little, sends 8 KiB
//! to the rank that far away and waits for the message that comes to it. Every rank sends and receives once a round, so
//! that the end nodes are loaded evenly, while the links inside the network are not: messages wait in it.
//! Throughput counts messages; the number of links that a message crosses, and so of events, depends on the topology.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use replay::{Engine, Job, Loaded};
use sim_example::model::Model;
use sim_example::{NetworkSettings, run};
use std::hint::black_box;
use std::sync::Arc;
use vef_format::ids::{MessageId, Rank};
use vef_format::operation::OpCodes;
use vef_format::record::{Dependency, Header, Message, Record, Version};
use vef_format::units::{Bytes, Picos, Ticks};

const TASKS: u32 = 256;
const ROUNDS: u64 = 1000;

/// `ROUNDS` shifts among `TASKS` ranks, a message and a mark each a round.
fn shifts() -> Arc<Loaded> {
    let mut random = SmallRng::seed_from_u64(1);
    let tasks = u64::from(TASKS);
    let header = Header {
        version: Version::V3,
        tasks: TASKS,
        messages: 2 * tasks * ROUNDS,
        communicators: 0,
        collectives: 0,
        local_collectives: 0,
        received: 0,
        clock: Picos(1000),
    };
    let mut records = Vec::with_capacity(header.messages as usize);
    let mut shift_before = 0;
    for round in 0..ROUNDS {
        let shift = random.random_range(1..TASKS);
        // The message from `rank` in a round, and the mark at which it begins to wait.
        let id = |round: u64, rank: u32| MessageId(2 * (round * tasks + u64::from(rank)));
        for rank in 0..TASKS {
            let after = match round {
                0 => Dependency::Start,
                _ => Dependency::Received(id(round - 1, (rank + TASKS - shift_before) % TASKS)),
            };
            let sent = id(round, rank);
            let time = Ticks(random.random_range(100..2000));
            let (dst, bytes) = (Rank((rank + shift) % TASKS), Bytes(8192));
            let message = Message { id: sent, src: Rank(rank), dst, bytes, awaited: true, after, time };
            records.push(Record::Message(message));
            records.push(Record::Message(Message {
                id: MessageId(sent.0 + 1),
                dst: Rank(rank),
                bytes: Bytes::ZERO,
                awaited: false,
                after: Dependency::Sent(sent),
                time: Ticks(20),
                ..message
            }));
        }
        shift_before = shift;
    }
    Arc::new(Loaded::from_records(header, OpCodes::default(), records).expect("a trace"))
}

fn simulations(criterion: &mut Criterion) {
    let trace = shifts();
    let mut group = criterion.benchmark_group("sim");
    group.sample_size(10);
    group.throughput(Throughput::Elements(u64::from(TASKS) * ROUNDS));
    let mut bench = |name: &str, topology: &str, model| {
        let topology = topology.parse().expect("a topology");
        let network = NetworkSettings { topology, model, ..NetworkSettings::default() };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let engine = Engine::builder().job(Job::loaded(&trace)).engine().expect("an engine");
                let report = run(engine, &network, false, &mut |_| {}).expect("a simulation");
                assert_eq!(report.messages, u64::from(TASKS) * ROUNDS);
                black_box(report)
            });
        });
    };
    bench("latency", "switch:256", Model::Latency);
    for topology in ["switch:256", "fattree:16x16x16", "fattree:k=12", "torus:8x8x4"] {
        bench(topology, topology, Model::CutThrough);
    }
    bench("store-and-forward", "fattree:16x16x16", Model::StoreAndForward);
    group.finish();
}

criterion_group!(benches, simulations);
criterion_main!(benches);
