//! Generated traces are sound, replay to their end, and have the messages that their patterns say.

use proptest::prelude::*;
use replay::{Engine, Job, yardstick};
use std::path::Path;
use vef_format::container::Settings;
use vef_format::units::{Bytes, Picos, Ticks};
use vef_format::validate::{Options, validate};
use workloads::{Model, PATTERNS, Workload, pattern};

/// A pattern on a grid of these sizes.
fn workload(name: &str, sizes: &[u32]) -> Workload {
    Workload { sizes: sizes.to_vec(), ..Workload::new(pattern(name).unwrap(), 1) }
}

/// Writes a workload, checks that it is sound, and replays it: messages, bytes, and how long it took.
fn replayed(workload: &Workload, container: bool) -> (u64, u64, Picos) {
    let file = tempfile::NamedTempFile::new().unwrap();
    match container {
        true => drop(workload.write_container(file.as_file(), Settings::default()).unwrap()),
        false => drop(workload.write_text(std::io::BufWriter::new(file.as_file())).unwrap()),
    }
    let report = validate(file.path(), &Options::default()).unwrap();
    assert!(report.is_complete() && report.warnings == 0, "{workload}: {:?}", report.problems);
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
    for (workload, messages) in [
        (workload("ring", &[5]), 5 * n),
        (workload("halo2d", &[4, 3]), 12 * 4 * n),
        (workload("halo2d", &[4, 1]), 4 * 2 * n),
        (workload("halo3d", &[3, 3, 2]), 18 * 6 * n),
        (workload("random", &[9]), 9 * n),
        (workload("incast", &[9]), 2 * 8 * n),
        (workload("sweep", &[4, 3]), (3 * 3 + 4 * 2) * n),
        // Two stages, a tensor group each: activations forward and back, an Allreduce of two by recursive doubling each time.
        (
            Workload { micro_batches: 3, gradient: Bytes(100), ..workload("training", &[1, 2, 2]) },
            (2 * 2 * 3 + 2 * 2 * 3 * 2) * n,
        ),
        (
            Workload { micro_batches: 1, gradient: Bytes(100), ..workload("training", &[2, 1, 3]) },
            (2 * 2 * 2 + 3 * 2) * n,
        ),
    ] {
        let workload = Workload { iterations: n as u32, bytes: Bytes(1000), ..workload };
        assert_eq!(replayed(&workload, false).0, messages, "{workload}");
    }
    let ring = Workload { iterations: 7, ..workload("ring", &[4]) };
    let (_, bytes, runtime) = replayed(&ring, true);
    // Computing and one message, seven times.
    assert_eq!((bytes, runtime), (4 * 7 * 8192, Picos(7 * (10_000_000 + 1_000_000 + 8192 * 800))));
}

#[test]
fn computing_is_balanced_or_not() {
    // Messages so short that they hide nothing.
    let even = Workload { iterations: 50, bytes: Bytes(8), ..workload("ring", &[16]) };
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
    let ring = workload("ring", &[16]);
    assert!(error(workload("ring", &[0])).contains("at least 1"));
    assert!(error(workload("halo2d", &[1 << 16, 1 << 16])).contains("at most"));
    assert!(error(Workload { imbalance: 1.5, ..ring.clone() }).contains("imbalance: a share from 0 to 1"));
    assert!(error(Workload { noise: f64::NAN, ..ring }).contains("noise"));
    assert!(pattern("stencil").unwrap_err().to_string().ends_with(
        "write ring, halo2d, halo3d, alltoall, allreduce, random, incast, sweep, fft, training or llm"
    ));
}

/// Collectives and messages of a training step, counted by hand.
#[test]
fn a_step_of_a_language_model() {
    let small = Model::tiny();
    let header = |sizes: &[u32], model: Model| {
        let workload = Workload { iterations: 1, micro_batches: 3, model, ..workload("llm", sizes) };
        replayed(&workload, true);
        workload.header().unwrap()
    };
    // Three micro-batches pass two stages forward and back, in two tensor ranks; each ends with a mark, and waits for what it gets.
    let pipeline = header(&[1, 2, 2], small.clone());
    assert_eq!(pipeline.messages, 2 * (2 * 3 * 2) + 4);
    // Two Allreduces in each of four layers, forward and back.
    assert_eq!(pipeline.collectives, 2 * 4 * 3 * 2);
    // Gradients of four layers and two tables of tokens (in one), once.
    let zero = |zero| header(&[3, 1, 1], Model { zero, ..small.clone() }).collectives;
    assert_eq!(zero(0), 4 + 1);
    // Divided, and then the parameters.
    assert_eq!(zero(1), 4 + 1 + 1);
    // Divided with each micro-batch.
    assert_eq!(zero(2), 3 * (4 + 1) + 1);
    // Parameters also come in front of each layer, forward and back.
    assert_eq!(zero(3), 3 * (4 + 1) + 2 * 3 * (4 + 1));
    // Tokens go to the experts and back in each layer, forward and back, in two groups of two; of each expert two ranks have the same.
    let experts = Model { experts: 4, used_experts: 2, expert_ranks: 2, ..small.clone() };
    assert_eq!(header(&[4, 1, 1], experts.clone()).collectives, 2 * 2 * 4 * 3 * 2 + (4 + 1) + 2 * 4);

    // What is exchanged while the ranks compute hides behind that.
    let runtime = |overlap| {
        let model = Model { overlap, flops: 1e12, ..small.clone() };
        replayed(&Workload { iterations: 1, model, ..workload("llm", &[4, 1, 1]) }, true).2
    };
    assert!(runtime(true) < runtime(false), "{} {}", runtime(true), runtime(false));

    let error =
        |sizes: &[u32], model| Workload { model, ..workload("llm", sizes) }.header().unwrap_err().to_string();
    assert!(error(&[1, 1, 3], small.clone()).contains("layers: 3 stages do not divide "));
    assert!(error(&[3, 1, 1], experts).contains("ranks do not divide 3 replicas (--parallel)"));
    assert!(error(&[1, 1, 1], Model { zero: 4, ..small.clone() }).contains("zero"));
    assert!(error(&[1, 1, 1], Model { hidden: u64::MAX, ..small }).contains("16777216"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// Any pattern with any number of tasks, as text and as container: the same trace, complete.
    #[test]
    fn all_replay_to_their_end(name in 0..PATTERNS.len(), tasks in 1u32..40, iterations in 0u32..4, noise in 0.0f64..1.0, bytes in 0u64..10_000, seed: u64) {
        let workload = Workload { iterations, noise, bytes: Bytes(bytes), seed, ..Workload::new(&PATTERNS[name], tasks) };
        prop_assert_eq!(workload.tasks(), tasks);
        prop_assert_eq!(replayed(&workload, false), replayed(&workload, true));
    }
}
