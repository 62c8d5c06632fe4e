//! Mixing, in records a second, beside its limit: reading the same capture and writing as many bytes with no work
//! between. `cargo run --release -p vef-benches --example mix` does the same at full size, with memory.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mixer::{Options, Quiet, mix};
use vef_benches::limit;
use vef_benches::workload::Workload;

fn mixing(criterion: &mut Criterion) {
    let workloads = [
        ("240 tasks", Workload { tasks: 240, records: 1_000_000, ahead: 0 }),
        ("8 tasks", Workload { tasks: 8, records: 1_000_000, ahead: 0 }),
        ("8 tasks, one ahead", Workload { tasks: 8, records: 800_000, ahead: 100_000 }),
    ];
    for (name, workload) in workloads {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (capture, trace) = (dir.path().join("capture"), dir.path().join("t.vef"));
        workload.write(&capture).expect("the capture is written");
        let options = |jobs| Options { jobs, ..Options::default() };
        let records = mix(&capture, &trace, &options(0), &Quiet).expect("it mixes").records;
        let written = std::fs::metadata(&trace).expect("the trace is there").len();
        let mut group = criterion.benchmark_group(format!("mix/{name}"));
        group.throughput(Throughput::Elements(records)).sample_size(10);
        for jobs in [1, 2] {
            group.bench_function(format!("{jobs} threads"), |bencher| {
                bencher.iter(|| mix(&capture, &trace, &options(jobs), &Quiet).expect("it mixes"));
            });
        }
        group.bench_function("limit: read and write", |bencher| {
            bencher.iter(|| limit::read_and_write(&capture, &trace, written).expect("files can be copied"));
        });
        group.finish();
    }
}

criterion_group!(benches, mixing);
criterion_main!(benches);
