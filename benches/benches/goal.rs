//! Reading GOAL schedules: operations per second of processor time in text and binary, of a halo exchange with its dependencies.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use interchange::goal::{BinaryWriter, Operation, RankGraph, Reader, TextWriter, What};
use std::hint::black_box;
use std::io::Cursor;
use std::path::Path;
use vef_benches::processor::timed;
use vef_format::units::{Bytes, Picos};

const RANKS: u32 = 16;
const ITERATIONS: u32 = 2000;

/// The operations of a rank: in each iteration, computing, then a message to either neighbour and one from each.
fn rank(rank: u32, graph: &mut RankGraph) {
    graph.clear();
    let mut add = |what, after: &[u32]| {
        let number = graph.operations.len() as u32;
        graph.operations.push(Operation { what, rank, cpu: 0, nic: 0, place: 0 });
        graph.requires.extend(after.iter().map(|&after| (after, number)));
        number
    };
    let mut last = Vec::new();
    for iteration in 0..ITERATIONS {
        let computing = add(What::Compute { time: Picos(12_345_000) }, &last);
        last.clear();
        for neighbour in [(rank + 1) % RANKS, (rank + RANKS - 1) % RANKS] {
            let (bytes, tag) = (Bytes(8192), iteration);
            add(What::Send { bytes, to: neighbour, tag }, &[computing]);
            last.push(add(What::Receive { bytes, from: Some(neighbour), tag: Some(tag) }, &[computing]));
        }
    }
}

fn read(bytes: Vec<u8>) -> usize {
    let mut reader = Reader::from_bytes(Path::new("bench"), bytes).expect("a schedule");
    let (mut graph, mut operations) = (RankGraph::default(), 0);
    while reader.next(&mut graph).expect("a valid schedule").is_some() {
        operations += black_box(&graph).operations.len();
    }
    operations
}

fn reading(criterion: &mut Criterion) {
    let mut text = TextWriter::new(Vec::new(), RANKS).expect("memory");
    let mut binary = BinaryWriter::new(Cursor::new(Vec::new()), RANKS).expect("memory");
    let mut graph = RankGraph::default();
    for number in 0..RANKS {
        rank(number, &mut graph);
        text.rank(&graph).expect("memory");
        binary.rank(&graph).expect("memory");
    }
    let text = text.finish().expect("memory");
    let binary = binary.finish().expect("memory").into_inner();
    let operations = RANKS * ITERATIONS * 5;
    let mut group = criterion.benchmark_group("goal");
    group.throughput(Throughput::Elements(operations.into()));
    for (name, bytes) in [("text", text), ("binary", binary)] {
        group.bench_function(name, |bencher| {
            let checked = |bytes| assert_eq!(read(bytes), operations as usize);
            bencher.iter_custom(|iterations| timed(iterations, || bytes.clone(), checked));
        });
    }
    group.finish();
}

criterion_group!(benches, reading);
criterion_main!(benches);
