//! Generated traces are sound, replay to their end, and have the messages that their patterns say.

use proptest::prelude::*;
use replay::{Engine, Job, yardstick};
use std::path::Path;
use vef_format::container::Settings;
use vef_format::units::{Bytes, Picos, Ticks};
use vef_format::validate::{Options, validate, validate_container};
use workloads::{Kernel, Workload};

const NAMES: [&str; 10] =
    ["ring", "halo2d", "halo3d", "alltoall", "allreduce", "random", "incast", "sweep", "fft", "training"];

/// Writes a workload, checks that it is sound, and replays it: messages, bytes, and how long it took.
fn replayed(workload: &Workload, container: bool) -> (u64, u64, Picos) {
    let file = tempfile::NamedTempFile::new().unwrap();
    match container {
        true => drop(workload.write_container(file.as_file(), Settings::default()).unwrap()),
        false => drop(workload.write_text(std::io::BufWriter::new(file.as_file())).unwrap()),
    }
    let report = match container {
        true => validate_container(file.path(), &Options::default()).unwrap(),
        false => validate(file.path(), &Options::default()).unwrap(),
    };
    assert!(report.is_complete() && report.warnings == 0, "{}: {:?}", workload.kernel, report.problems);
    run(file.path())
}

fn run(path: &Path) -> (u64, u64, Picos) {
    let mut engine = Engine::builder().job(Job::open(path).unwrap()).engine().unwrap();
    let outcome = yardstick::run(&mut engine, &yardstick::default_link()).unwrap();
    assert!(outcome.stuck.is_none(), "{:?}", outcome.stuck);
    let total = engine.stats().total();
    (total.messages, total.bytes.0, outcome.runtime)
}

#[test]
fn patterns_have_their_messages() {
    let n = 3;
    for (kernel, messages) in [
        (Kernel::Ring { tasks: 5 }, 5 * n),
        (Kernel::Halo2d { grid: [4, 3] }, 12 * 4 * n),
        (Kernel::Halo2d { grid: [4, 1] }, 4 * 2 * n),
        (Kernel::Halo3d { grid: [3, 3, 2] }, 18 * 6 * n),
        (Kernel::Random { tasks: 9 }, 9 * n),
        (Kernel::Incast { tasks: 9 }, 2 * 8 * n),
        (Kernel::Sweep { grid: [4, 3] }, (3 * 3 + 4 * 2) * n),
        // Two stages, a tensor group each: activations forward and back, an Allreduce of two by recursive doubling each time.
        (
            Kernel::Training { data: 1, tensor: 2, pipeline: 2, micro_batches: 3, gradient: Bytes(100) },
            (2 * 2 * 3 + 2 * 2 * 3 * 2) * n,
        ),
        (
            Kernel::Training { data: 2, tensor: 1, pipeline: 3, micro_batches: 1, gradient: Bytes(100) },
            (2 * 2 * 2 + 3 * 2) * n,
        ),
    ] {
        let workload = Workload { kernel, iterations: n as u32, bytes: Bytes(1000), ..Workload::default() };
        assert_eq!(replayed(&workload, false).0, messages, "{kernel}");
    }
    let ring = Workload { kernel: Kernel::Ring { tasks: 4 }, iterations: 7, ..Workload::default() };
    let (_, bytes, runtime) = replayed(&ring, true);
    // Computing and one message, seven times.
    assert_eq!((bytes, runtime), (4 * 7 * 8192, Picos(7 * (10_000_000 + 1_000_000 + 8192 * 800))));
}

#[test]
fn computing_is_balanced_or_not() {
    // Messages so short that they hide nothing.
    let even = Workload { iterations: 50, bytes: Bytes(8), ..Workload::default() };
    let slow = |workload: &Workload| replayed(workload, true).2.0 as f64;
    let imbalanced = slow(&Workload { imbalance: 0.5, ..even.clone() });
    let noisy = slow(&Workload { noise: 0.5, ..even.clone() });
    assert!(imbalanced > 1.1 * slow(&even), "{imbalanced}");
    assert!(noisy > 1.05 * slow(&even), "{noisy}");
    let seed = |seed| slow(&Workload { noise: 0.5, seed, ..even.clone() });
    assert_eq!(seed(5), seed(5));
    assert_ne!(seed(5), seed(6));
    let without = slow(&Workload { compute: Ticks(0), ..even.clone() });
    assert_eq!(slow(&even) - without, 50.0 * 10_000_000.0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let error = |workload: Workload| workload.header().unwrap_err().to_string();
    let ring = Workload::default();
    assert!(error(Workload { kernel: Kernel::Ring { tasks: 0 }, ..ring.clone() }).contains("at least 1"));
    assert!(
        error(Workload { kernel: Kernel::Halo2d { grid: [1 << 16, 1 << 16] }, ..ring.clone() })
            .contains("at most")
    );
    assert!(error(Workload { imbalance: 1.5, ..ring.clone() }).contains("imbalance: a share from 0 to 1"));
    assert!(error(Workload { noise: f64::NAN, ..ring }).contains("noise"));
    assert!(Kernel::named("stencil", 4).unwrap_err().to_string().contains("write ring, halo2d"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Any pattern with any number of tasks, as text and as container: the same trace, complete.
    #[test]
    fn all_replay_to_their_end(name in 0usize..10, tasks in 1u32..40, iterations in 0u32..4, noise in 0.0f64..1.0, bytes in 0u64..10_000, seed: u64) {
        let kernel = Kernel::named(NAMES[name], tasks).unwrap();
        prop_assert_eq!((kernel.tasks(), kernel.name()), (tasks, NAMES[name]));
        let workload = Workload { kernel, iterations, noise, bytes: Bytes(bytes), seed, ..Workload::default() };
        prop_assert_eq!(replayed(&workload, false), replayed(&workload, true));
    }
}
