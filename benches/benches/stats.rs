//! What it costs to add a trace up (`vef stats`), beside only reading it: one thread, from the page cache.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use reports::stats::Stats;
use std::hint::black_box;
use std::path::Path;
use vef_benches::traces::Trace;
use vef_format::container;
use vef_format::text::Reader;

/// Some 50 million records each: a message and a mark each time, to one neighbour or to four.
const TRACES: [(&str, Trace); 2] = [
    ("ring", Trace::Ring { tasks: 4096, messages: 6250 }),
    ("halo", Trace::Halo { tasks: 4096, rounds: 1500 }),
];

fn read_text(path: &Path) -> u64 {
    let Ok(mut reader) = Reader::open(path) else { return 0 };
    let mut records = 0;
    while let Ok(Some(line)) = reader.next() {
        black_box(line);
        records += 1;
    }
    records
}

fn read_container(path: &Path) -> u64 {
    let Ok(reader) = container::Reader::open(path) else { return 0 };
    let mut records = 0;
    for task in reader.tasks() {
        let read = reader.task(task).each_raw(|raw| records += u64::from(black_box(raw).to < u32::MAX));
        assert!(read.is_ok());
    }
    records
}

fn stats(criterion: &mut Criterion) {
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    for (name, trace) in TRACES {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = ["t.vef", "t.vefx"].map(|name| directory.path().join(name));
        trace.write_text(&paths[0]).expect("a trace");
        trace.write_container(&paths[1], container::Settings::default()).expect("a trace");
        let mut group = criterion.benchmark_group(format!("stats/{name}"));
        group.sample_size(10).throughput(Throughput::Elements(trace.header().messages));
        for (kind, path) in ["text", "container"].into_iter().zip(&paths) {
            let read = if kind == "text" { read_text } else { read_container };
            assert_eq!(read(path), trace.header().messages);
            group.bench_function(format!("{kind}/read"), |bencher| bencher.iter(|| read(path)));
            group.bench_function(format!("{kind}/add up"), |bencher| {
                bencher.iter(|| {
                    alone.install(|| {
                        Stats::of_trace(path, &replay::Extent::default(), &|_| {}).map(|stats| stats.awaited)
                    })
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, stats);
criterion_main!(benches);
