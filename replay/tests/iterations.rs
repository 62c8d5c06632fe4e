//! Iterations cut out of a run take what iterations of the whole run take, once it is in its steady state.

use proptest::prelude::*;
use replay::{Engine, Job, Link, Loaded, Part, Picos, yardstick};
use std::path::Path;
use std::sync::Arc;
use vef_format::operation::OpCodes;
use vef_format::text::Reader;
use vef_format::units::Bytes;
use workloads::{Workload, pattern};

/// Bytes of a message: 1 µs and 1 ns a byte, which computing of 10 µs does not hide.
const BYTES: u64 = 3000;

fn job(workload: &Workload) -> Job {
    let mut text = Vec::new();
    workload.write_text(&mut text).unwrap();
    let reader = Reader::from_bytes(&text, Path::new("test.vef")).unwrap();
    Job::loaded(&Arc::new(Loaded::read(reader, OpCodes::default()).unwrap()))
}

fn runtime(job: Job) -> u64 {
    let mut engine = Engine::builder().job(job).engine().unwrap();
    let outcome = yardstick::run(&mut engine, &Link::new(Picos(1_000_000), 8_000_000_000).unwrap()).unwrap();
    assert!(outcome.complete(), "{}", outcome.stuck.unwrap());
    outcome.runtime.0
}

fn workload(name: &str, sizes: &[u32], iterations: u32) -> Workload {
    let mut workload = Workload::new(pattern(name).unwrap(), 1);
    workload.sizes = sizes.to_vec();
    (workload.iterations, workload.bytes, workload.gradient) = (iterations, Bytes(BYTES), Bytes(BYTES));
    workload
}

/// Of iterations `first` to `last` of 24: their run time, that of one in the steady state, and the longest way of a message of one
/// iteration through all ranks, in picoseconds.
fn cut(name: &str, sizes: &[u32], first: u32, last: u32) -> (u64, u64) {
    let whole = workload(name, sizes, 24);
    let steady = (runtime(job(&whole)) - runtime(job(&workload(name, sizes, 12)))) / 12;
    let part = Part::iterations(&format!("{first}-{last}")).unwrap();
    let selection = job(&whole).select(&part).unwrap_or_else(|error| panic!("{name} {sizes:?}: {error}"));
    (runtime(job(&whole).part(Arc::new(selection))), steady)
}

#[test]
fn iterations_take_as_long_as_in_the_whole_run() {
    let rings = (2..=17).map(|ranks| ("ring", vec![ranks]));
    let others = [
        ("halo2d", vec![4, 4]),
        ("halo2d", vec![5, 3]),
        ("halo2d", vec![8, 6]),
        ("halo3d", vec![2, 2, 2]),
        ("halo3d", vec![4, 3, 3]),
        ("alltoall", vec![7]),
        ("allreduce", vec![9]),
        ("incast", vec![6]),
        ("fft", vec![4, 3]),
        ("training", vec![2, 2, 3]),
    ];
    for (name, sizes) in rings.chain(others) {
        for (first, last) in [(2, 3), (5, 5), (10, 14), (2, 20), (1, 7), (2, 23), (23, 23)] {
            let (part, steady) = cut(name, &sizes, first, last);
            let expected = steady * u64::from(last + 1 - first);
            let off = part.abs_diff(expected) as f64 / expected as f64;
            assert!(off < 0.001, "{name} {sizes:?}, {first}-{last}: {part}, {expected} of the whole run");
        }
    }
}

/// A wavefront from each corner in turn: an iteration is four of them, and a part begins and ends with a wave that fills the grid.
#[test]
fn waves_take_as_long_but_for_the_first_one() {
    for sizes in [[2, 2], [3, 3], [4, 4], [5, 2]] {
        let (part, steady) = cut("sweep", &sizes, 2, 4);
        let expected = 3 * 4 * steady;
        assert!(part.abs_diff(expected) < 2 * steady, "{sizes:?}: {part}, {expected} of the whole run");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn any_iterations_of_any_ring_or_halo(ranks in 2u32..=16, wide in 1u32..5, high in 2u32..5, first in 1u32..20, more in 0u32..4) {
        for (name, sizes) in [("ring", vec![ranks]), ("halo2d", vec![wide, high])] {
            let (part, steady) = cut(name, &sizes, first, first + more);
            let expected = steady * u64::from(more + 1);
            prop_assert!(part.abs_diff(expected) * 1000 < expected, "{} {:?}: {} {}", name, sizes, part, expected);
        }
    }
}
