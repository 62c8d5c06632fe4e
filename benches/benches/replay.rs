//! The replay engine: messages a second with immediate delivery, from memory, from a container and from text.
//!
//! Workloads: a ring (each rank computes, sends 8 KiB to the next rank and receives from the one before, over and
//! over), dissemination barriers as collectives, and a captured trace over and over: the text file that
//! `VEF_BENCH_TRACE` names, as `vef run --mix` leaves it. Each iteration replays a whole trace; throughput counts its
//! messages, and time is that on the processor, so that other programs disturb less.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use replay::{Engine, Job, Loaded, Replay, yardstick};
use std::sync::Arc;
use vef_benches::processor::timed;
use vef_benches::traces::Trace;
use vef_format::container::Settings;

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

fn replays(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10);
    let rings = ("ring", Trace::Ring { tasks: 256, messages: 20_000 / 8 });
    let barriers = ("barriers", Trace::Barriers { tasks: 1024, rounds: 200 / 4 });
    let captured = std::env::var_os("VEF_BENCH_TRACE");
    let repeated = captured.map(|path| ("repeated", Trace::repeated(path.as_ref(), 100).expect("a trace")));
    for (name, trace) in [rings, barriers].into_iter().chain(repeated) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("trace.vef");
        trace.write_text(&path).expect("a trace");
        let container_path = directory.path().join("trace.vefx");
        let plain = Settings { compress: false, keep_order: true };
        trace.write_container(&container_path, plain).expect("a trace");
        let loaded = Arc::new(Loaded::open(&path).expect("a trace"));

        let memory = || Replay::builder().job(Job::loaded(&loaded)).build().expect("a replay");
        group.throughput(Throughput::Elements(trace.messages()));
        group.bench_function(format!("{name}/memory"), |bencher| {
            bencher.iter_custom(|iterations| timed(iterations, memory, immediately))
        });
        let container =
            || Replay::builder().job(Job::open(&container_path).expect("a trace")).build().expect("a replay");
        group.bench_function(format!("{name}/container"), |bencher| {
            bencher.iter_custom(|iterations| timed(iterations, container, immediately))
        });
        let text = || Replay::builder().job(Job::open(&path).expect("a trace")).build().expect("a replay");
        group.bench_function(format!("{name}/text"), |bencher| {
            bencher.iter_custom(|iterations| timed(iterations, text, immediately))
        });
        let link = yardstick::default_link();
        group.bench_function(format!("{name}/yardstick"), |bencher| {
            let engine = || Engine::builder().job(Job::loaded(&loaded)).engine().expect("an engine");
            let outcome = |mut engine| yardstick::run(&mut engine, &link).expect("a trace");
            bencher.iter_custom(|iterations| timed(iterations, engine, outcome))
        });
    }
    group.finish();
}

criterion_group!(benches, replays);
criterion_main!(benches);
