//! How fast a trace is read, written and validated, against what the machine does with the same bytes: a search for
//! line ends (the least that a reader does) and a copy (the least that a writer does).
//!
//! The trace is made here: 240 tasks that exchange messages with neighbours and call an Allreduce now and then, as in
//! a molecular dynamics run; about 32 MB of text, more than the caches hold.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::path::Path;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::{Amounts, OpCode};
use vef_format::record::{Dependency, Header, LocalCollective, Message, Version};
use vef_format::text::{Line, Reader, Writer};
use vef_format::units::{Bytes, Picos, Ticks};
use vef_format::validate::{Options, Validator};

const TASKS: u32 = 240;
const STEPS: u64 = 1700;

/// The records of the trace, in the order of the file, behind its one communicator of all tasks.
fn records() -> Vec<Line<'static>> {
    let mut records = Vec::new();
    let mut ids = 0..;
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let mut after = vec![Dependency::Start; TASKS as usize];
    for step in 0..STEPS {
        let distance = 1 + (step % 6) as u32;
        let sent: Vec<MessageId> = (0..TASKS).map(|_| MessageId(ids.next().unwrap_or_default())).collect();
        for task in 0..TASKS {
            let at = task as usize;
            records.push(Line::Message(Message {
                id: sent[at],
                src: Rank(task),
                dst: Rank((task + distance) % TASKS),
                bytes: Bytes(64 << next(10)),
                awaited: true,
                after: after[at],
                time: Ticks(next(200_000)),
            }));
            after[at] = Dependency::Sent(sent[at]);
        }
        for task in 0..TASKS {
            let at = task as usize;
            records.push(Line::Message(Message {
                id: MessageId(ids.next().unwrap_or_default()),
                src: Rank(task),
                dst: Rank(task),
                bytes: Bytes::ZERO,
                awaited: false,
                after: after[at],
                time: Ticks(next(2_000)),
            }));
            after[at] = Dependency::Received(sent[((task + TASKS - distance) % TASKS) as usize]);
        }
        if step % 10 == 9 {
            for task in 0..TASKS {
                let id = CollectiveId(step / 10);
                records.push(Line::Collective(LocalCollective {
                    id,
                    comm: CommId(0),
                    op: OpCode(2),
                    task: Rank(task),
                    amounts: Amounts { send: Bytes(48), recv: Bytes(48) },
                    after: after[task as usize],
                    time: Ticks(next(2_000)),
                }));
                after[task as usize] = Dependency::Collective(id);
            }
        }
    }
    records
}

fn header(records: &[Line<'_>]) -> Header {
    let messages = records.iter().filter(|line| matches!(line, Line::Message(_))).count() as u64;
    Header {
        version: Version::V3,
        tasks: TASKS,
        messages,
        communicators: 1,
        collectives: STEPS / 10,
        local_collectives: records.len() as u64 - messages,
        received: 0,
        clock: Picos(1000),
    }
}

fn write(into: Vec<u8>, header: &Header, members: &[Rank], records: &[Line<'_>]) -> Vec<u8> {
    let write = || {
        let mut writer = Writer::new(into, header)?;
        writer.communicator(CommId(0), members)?;
        for record in records {
            match record {
                Line::Message(message) => writer.message(message)?,
                Line::Collective(part) => writer.collective(part)?,
                Line::Communicator { id, members } => writer.communicator(*id, members)?,
            }
        }
        writer.finish()
    };
    write().expect("a vector takes everything")
}

fn text(criterion: &mut Criterion) {
    let records = records();
    let header = header(&records);
    let members: Vec<Rank> = (0..TASKS).map(Rank).collect();
    let text = write(Vec::new(), &header, &members, &records);
    let mut group = criterion.benchmark_group("text");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(20);

    group.bench_function("limit: find line ends", |bencher| {
        bencher.iter(|| memchr::memchr_iter(b'\n', black_box(&text)).count());
    });
    group.bench_function("read", |bencher| {
        bencher.iter(|| {
            let mut reader = Reader::from_bytes(black_box(&text), Path::new("t")).expect("a header");
            let mut lines = 0;
            while let Some(line) = reader.next().expect("a record") {
                black_box(&line);
                lines += 1;
            }
            lines
        });
    });
    group.bench_function("limit: copy", |bencher| {
        let mut copy = vec![0; text.len()];
        bencher.iter(|| copy.copy_from_slice(black_box(&text)));
    });
    group.bench_function("write", |bencher| {
        let buffer = || Vec::with_capacity(text.len());
        // The buffer is touched once, so that the system's part in handing out memory is not measured.
        let mut spare = Some(write(buffer(), &header, &members, &records));
        bencher.iter_batched(
            || (),
            |()| {
                let mut into = spare.take().unwrap_or_default();
                into.clear();
                spare = Some(write(into, &header, &members, black_box(&records)));
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();

    let mut group = criterion.benchmark_group("validate");
    group.throughput(Throughput::Elements(records.len() as u64)).sample_size(10);
    group.bench_function("records", |bencher| {
        bencher.iter(|| {
            let mut validator = Validator::new(&header, &Options::default());
            validator.add(2, &Line::Communicator { id: CommId(0), members: &members });
            for (number, record) in (3..).zip(&records) {
                validator.add(number, record);
            }
            validator.finish()
        });
    });
    group.finish();
}

criterion_group!(benches, text);
criterion_main!(benches);
