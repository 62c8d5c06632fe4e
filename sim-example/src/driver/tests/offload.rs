//! Collectives that the network carries out: run times by formula, and what excludes them.

use std::io::Write;

use replay::{Bytes, Picos};
use tempfile::NamedTempFile;
use vef_format::operation::Operation;

use super::super::*;
use crate::model::Model;

const RANKS: u64 = 5;
const STEPS: u64 = 4;
const LATENCY: u64 = 2_000_000;

/// Task r computes 100 r + 10 ticks of 1 ns before each operation of 1000 bytes, whose records wait for the one before; and sends 1000 bytes
/// to the next task at the end.
fn steps(code: u32, bytes: u64) -> NamedTempFile {
    let mut text = format!("VEF3 {RANKS} {RANKS} 1 {STEPS} {} 0 1000\nC3 4 3 2 1 0\n", RANKS * STEPS);
    for step in 0..STEPS {
        for rank in 0..RANKS {
            let (dependency, after) =
                if step == 0 { (0, "-1".to_owned()) } else { (3, format!("G{}", step - 1)) };
            let compute = 100 * rank + 10;
            text += &format!("G{step} C3 {code} {rank} {bytes} {bytes} {dependency} {compute} {after}\n");
        }
    }
    for rank in 0..RANKS {
        text += &format!("{rank} {rank} {} 1000 3 0 G{}\n", (rank + 1) % RANKS, STEPS - 1);
    }
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn offloaded(trace: &NamedTempFile, how: &str) -> Settings {
    let mut settings = Settings { jobs: vec![Workload::new(trace.path())], ..Settings::default() };
    settings.collectives = how.parse().unwrap();
    settings
}

fn quiet(settings: &Settings) -> Simulation {
    simulate(settings, &mut |_| {}).unwrap()
}

#[test]
fn reductions_in_the_network_take_what_the_formula_says() {
    let trace = steps(2, 1000);
    let report = quiet(&offloaded(&trace, "offload:2us"));
    // The slowest task computes 410 ns; 1000 bytes take 800 ns. The last messages have two links of 500 ns.
    let last = 800_000 + 2 * 500_000;
    assert_eq!(report.runtime_ps, STEPS * (410_000 + LATENCY + 800_000) + last);
    assert_eq!((report.messages, report.collectives, report.collectives_offloaded), (RANKS, STEPS, STEPS));
    assert!(
        report.to_text().contains("4 of 4 collectives carried out by the network"),
        "{}",
        report.to_text()
    );
    let times: u64 = report.jobs[0].times.0.iter().sum();
    assert_eq!(times, report.jobs[0].finish.tasks_ps.iter().sum::<u64>());

    // Every model that has links has the same, for only the last messages use them.
    for model in [Model::Latency, Model::StoreAndForward, Model::Flow, Model::Packet] {
        let mut settings = offloaded(&trace, "offload:2us");
        settings.network.model = model;
        let runtime = quiet(&settings).runtime_ps;
        assert!(runtime >= report.runtime_ps && runtime <= report.runtime_ps + 800_000, "{model}: {runtime}");
        assert_eq!(quiet(&settings).collectives_offloaded, STEPS);
    }
    let by_messages = quiet(&offloaded(&trace, "messages"));
    assert!(by_messages.messages > RANKS && by_messages.collectives_offloaded == 0);
}

#[test]
fn what_is_not_chosen_is_carried_out_by_messages() {
    let trace = steps(2, 1000);
    let by_messages = quiet(&offloaded(&trace, "messages"));
    for how in ["ops=bcast+barrier", "bytes=-999", "bytes=1001-", "ranks=-4", "comms=3,bytes=1001-"] {
        let report = quiet(&offloaded(&trace, &format!("offload:2us,{how}")));
        assert_eq!(
            (report.runtime_ps, report.messages),
            (by_messages.runtime_ps, by_messages.messages),
            "{how}"
        );
    }
    for how in ["ops=allreduce", "bytes=1000-1000", "ranks=5-", "comms=3"] {
        assert_eq!(quiet(&offloaded(&trace, &format!("offload:2us,{how}"))).messages, RANKS, "{how}");
    }
}

/// All operations end, also those that are not made for switches.
#[test]
fn all_operations_can_be_offloaded() {
    for operation in Operation::ALL {
        let code = operation.default_code();
        // Only rank 4 of the communicator, task 0, has bytes of a root.
        let bytes = |rank: u64| operation.amounts(rank == 0, Bytes(10), Bytes(50));
        let mut text = format!("VEF3 {RANKS} 0 1 1 {RANKS} 0 1000\nC3 4 3 2 1 0\n");
        for rank in 0..RANKS {
            let amounts = bytes(rank);
            text += &format!("G0 C3 {} {rank} {} {} 0 {rank} -1\n", code.0, amounts.send.0, amounts.recv.0);
        }
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let report = quiet(&offloaded(&file, &format!("offload:1us,ops={}", operation.key())));
        assert_eq!((report.messages, report.collectives_offloaded), (0, 1), "{operation}");
        assert!(report.runtime_ps >= 4_000 + 1_000_000, "{operation}: {}", report.runtime_ps);
    }
}

#[test]
fn jobs_and_their_runs_are_told_apart() {
    let trace = steps(2, 1000);
    let mut settings = offloaded(&trace, "offload:2us");
    settings.jobs.push(settings.jobs[0].clone());
    settings.jobs[1].repeat = Repeat::Times(3);
    settings.observe.waits = true;
    let alone = quiet(&offloaded(&trace, "offload:2us")).runtime_ps;
    assert!(
        simulate(&settings, &mut |_| {})
            .unwrap_err()
            .to_string()
            .contains("waits: not with jobs that repeat")
    );
    settings.observe.waits = false;
    let report = quiet(&settings);
    assert_eq!(report.collectives_offloaded, 4 * STEPS);
    assert_eq!(report.jobs[1].runs.unwrap().runs, 3);
    assert!(report.runtime_ps >= 3 * (alone - 2_000_000));
}

/// Whose last record is a collective that the network carries out.
#[test]
fn a_job_that_ends_with_a_collective_runs_again() {
    let text =
        "VEF3 2 0 1 1 2 0 1000\nC3 0 1\nG0 C3 2 0 1000 1000 0 1000 -1\nG0 C3 2 1 1000 1000 0 1000 -1\n";
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let mut settings = offloaded(&file, "offload:2us");
    settings.jobs[0].repeat = Repeat::Times(3);
    let report = quiet(&settings);
    let runs = report.jobs[0].runs.unwrap();
    assert_eq!((runs.runs, runs.max_ps), (3, 1_000_000 + 800_000 + LATENCY));
    assert_eq!(report.runtime_ps, 3 * runs.max_ps);
}

#[test]
fn what_excludes_them_is_said() {
    let trace = steps(2, 1000);
    let says = |change: &dyn Fn(&mut Settings)| {
        let mut settings = offloaded(&trace, "offload:2us");
        change(&mut settings);
        simulate(&settings, &mut |_| {}).unwrap_err().to_string()
    };
    let of_network = "collectives that the network carries out";
    assert_eq!(
        says(&|s| s.observe.critical_path = true),
        format!("the critical path: not with {of_network}")
    );
    assert_eq!(
        says(&|s| s.collectives = "offload:2us,comms=3+9".parse().unwrap()),
        "--collectives comms=9: no trace has a communicator of that number"
    );
    assert_eq!(says(&|s| s.network.model = Model::LogGp), format!("{of_network}: not with model loggp"));
    // 213 days are too long.
    let trace = steps(2, u64::MAX / 16);
    let error = simulate(&offloaded(&trace, "offload:2us"), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("would arrive after 2^64 ps"), "{error}");
    // A member that never comes.
    let mut text = format!("VEF3 {RANKS} 0 1 1 {} 0 1000\nC3 4 3 2 1 0\n", RANKS - 1);
    (1..RANKS).for_each(|rank| text += &format!("G0 C3 6 {rank} 0 0 0 0 -1\n"));
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    // No task waits for what follows nothing; but the collective is not over.
    let report = simulate(&offloaded(&file, "offload:2us"), &mut |_| {});
    assert!(report.is_err(), "{report:?}");
    assert_eq!(Picos(LATENCY), Picos(2_000_000));
}
