//! The replay engine: messages a second with immediate delivery, from memory and from text.
//!
//! Workloads: a ring (each rank computes, sends 8 KiB to the next rank and receives from the one before, over and
//! over), and dissemination barriers as collectives. Each iteration replays a whole trace; throughput counts its
//! messages, and time is that on the processor, so that other programs disturb less.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use replay::{Job, Loaded, Replay, yardstick};
use std::hint::black_box;
use std::io::BufWriter;
use std::sync::Arc;
use std::time::{Duration, Instant};
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, OpCodes, Operation};
use vef_format::record::{Communicator, Dependency, Header, LocalCollective, Message, Record, Version};
use vef_format::text::Writer;
use vef_format::units::{Bytes, Picos, Ticks};

fn header(tasks: u32, records: &[Record]) -> Header {
    let count = |wanted: fn(&Record) -> bool| records.iter().filter(|record| wanted(record)).count() as u64;
    let local_collectives = count(|record| matches!(record, Record::Collective(_)));
    Header {
        version: Version::V3,
        tasks,
        messages: count(|record| matches!(record, Record::Message(_))),
        communicators: count(|record| matches!(record, Record::Communicator(_))),
        collectives: local_collectives / u64::from(tasks),
        local_collectives,
        received: 0,
        clock: Picos(1000),
    }
}

/// `messages` a rank around a ring of `tasks`; two records a message, in the order in which they happen.
fn ring(tasks: u32, messages: u32) -> (Header, Vec<Record>) {
    let mut records = Vec::with_capacity(2 * (tasks * messages) as usize);
    let mut id = 0;
    let mut next_id = || {
        id += 1;
        MessageId(id - 1)
    };
    // The message that each rank received last.
    let mut received = vec![None; tasks as usize];
    for _ in 0..messages {
        let mut sent = Vec::with_capacity(tasks as usize);
        for rank in 0..tasks {
            let message = Message {
                id: next_id(),
                src: Rank(rank),
                dst: Rank((rank + 1) % tasks),
                bytes: Bytes(8192),
                awaited: true,
                after: received[rank as usize].map_or(Dependency::Start, Dependency::Received),
                time: Ticks(1000 + u64::from(rank * 37 % 101)),
            };
            sent.push(message.id);
            records.push(Record::Message(message));
        }
        for rank in 0..tasks {
            records.push(Record::Message(Message {
                id: next_id(),
                src: Rank(rank),
                dst: Rank(rank),
                bytes: Bytes(0),
                awaited: false,
                after: Dependency::Sent(sent[rank as usize]),
                time: Ticks(20),
            }));
            received[rank as usize] = Some(sent[((rank + tasks - 1) % tasks) as usize]);
        }
    }
    (header(tasks, &records), records)
}

/// `rounds` barriers of all `tasks`, with computing between.
fn barriers(tasks: u32, rounds: u32) -> (Header, Vec<Record>) {
    let members = (0..tasks).map(Rank).collect();
    let mut records = vec![Record::Communicator(Communicator { id: CommId(0), members })];
    for round in 0..rounds {
        records.extend((0..tasks).map(|rank| {
            let before = round.checked_sub(1).map(|before| CollectiveId(before.into()));
            Record::Collective(LocalCollective {
                id: CollectiveId(round.into()),
                comm: CommId(0),
                op: Operation::Barrier.default_code(),
                task: Rank(rank),
                amounts: Amounts::default(),
                after: before.map_or(Dependency::Start, Dependency::Collective),
                time: Ticks(1000 + u64::from(rank * 37 % 101)),
            })
        }));
    }
    (header(tasks, &records), records)
}

/// Every message arrives when it is handed out.
fn immediately(mut replay: Replay) -> u64 {
    let mut messages = 0;
    while let Some(now) = replay.next_ready() {
        while let Ok(Some(message)) = replay.pop_ready(now) {
            replay.delivered(message.id, now).expect("a live message");
            messages += 1;
        }
    }
    assert!(replay.is_complete());
    messages
}

/// Time that this thread has had on the processor; time that has passed where the system does not tell.
fn processor_time(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// Times `run` on what `make` makes, as often as criterion wants.
fn timed<T, U>(iterations: u64, make: impl Fn() -> T, run: impl Fn(T) -> U) -> Duration {
    let since = Instant::now();
    let one = || {
        let made = make();
        let begin = processor_time(since);
        black_box(run(made));
        processor_time(since) - begin
    };
    (0..iterations).map(|_| one()).sum()
}

fn replays(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10);
    let rings = ("ring", ring(256, 20_000 / 8), 256 * 20_000 / 8);
    let barriers = ("barriers", barriers(1024, 200 / 4), 1024 * 10 * 200 / 4);
    for (name, (header, records), messages) in [rings, barriers] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("trace.vef");
        let file = std::fs::File::create(&path).expect("a file");
        let mut writer = Writer::new(BufWriter::new(file), &header).expect("a header");
        for record in &records {
            match record {
                Record::Communicator(communicator) => {
                    writer.communicator(communicator.id, &communicator.members)
                }
                Record::Message(message) => writer.message(message),
                Record::Collective(collective) => writer.collective(collective),
            }
            .expect("a record");
        }
        writer.finish().expect("a trace");
        let loaded = Arc::new(Loaded::from_records(header, OpCodes::default(), records).expect("a trace"));

        let memory = || Replay::builder().job(Job::loaded(&loaded)).build().expect("a replay");
        group.throughput(Throughput::Elements(messages));
        group.bench_function(format!("{name}/memory"), |bencher| {
            bencher.iter_custom(|iterations| timed(iterations, memory, immediately))
        });
        let text = || Replay::builder().job(Job::open(&path).expect("a trace")).build().expect("a replay");
        group.bench_function(format!("{name}/text"), |bencher| {
            bencher.iter_custom(|iterations| timed(iterations, text, immediately))
        });
        let link = yardstick::default_link();
        group.bench_function(format!("{name}/yardstick"), |bencher| {
            let outcome = |mut replay| yardstick::run(&mut replay, &link).expect("a trace");
            bencher.iter_custom(|iterations| timed(iterations, memory, outcome))
        });
    }
    group.finish();
}

criterion_group!(benches, replays);
criterion_main!(benches);
