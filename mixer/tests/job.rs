//! The processes of an MPI job write the same bytes, and fail with the same error, as one process: with both MPIs; with fewer
//! processes than tasks, as many, and more; with shares in memory, in parts, or some of each.
//!
//! The test starts itself under a launcher. Each process then runs [`one_process`], which writes the result of its mix.

use crate::capture::{self, Program};
use crate::model;
use mixer::{Job, MixError, Options, Quiet, Summary, Table, mix, mix_among};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use vef_format::capture::event::Action;
use vef_format::operation::Operation;
use vef_format::units::Bytes;

/// Directory of the capture and of the processes' results.
const PLACE: &str = "VEF_TEST_JOB_PLACE";
/// Name of the trace.
const TRACE: &str = "VEF_TEST_JOB_TRACE";
/// Set to lower collectives.
const LOWER: &str = "VEF_TEST_JOB_LOWER";
/// Set to make each task a part.
const PARTS: &str = "VEF_TEST_JOB_PARTS";
/// Directory for temporary files, if not beside the trace.
const TEMPORARY: &str = "VEF_TEST_JOB_TEMPORARY";

fn options(lower: bool) -> Options {
    Options { jobs: 1, lower_collectives: Table::builtin("default").filter(|_| lower), ..Options::default() }
}

#[test]
#[ignore = "is started by the other tests, under a launcher"]
fn one_process() {
    let place = std::env::var_os(PLACE).expect("started by another test");
    let place = Path::new(&place);
    let lower = std::env::var_os(LOWER).is_some();
    let memory = std::env::var_os(PARTS).map(|_| Bytes(1));
    let trace = std::env::var_os(TRACE).expect("started by another test");
    let temporary = std::env::var_os(TEMPORARY).map(Into::into);
    let options = Options { memory, temporary, ..options(lower) };
    let job = Job::of_launcher().expect("MPI starts");
    assert!(job.size() > 1, "one of several processes");
    let outcome = mix_among(&place.join("capture"), &place.join("out").join(trace), &options, &Quiet, &job);
    let said = match outcome {
        Ok(summary) if job.rank() == 0 => {
            fs::write(place.join("spilled"), summary.spilled.0.to_string()).expect("written");
            format!("{:?}", alike(summary))
        }
        Ok(_) => "well".to_owned(),
        Err(MixError::ReportedByPeer) => "elsewhere".to_owned(),
        Err(error) => error.to_string(),
    };
    fs::write(place.join(format!("said.{}", job.rank())), said).expect("written");
    job.finish().expect("MPI ends");
}

/// The fields of two summaries that must be equal.
fn alike(summary: Summary) -> Summary {
    let (times, nothing) = (Default::default(), Bytes(0));
    Summary { times, spilled: nothing, peak_memory: nothing, ..summary }
}

/// A launcher of any number of processes, whatever the number of cores.
fn launchers(processes: u32) -> Vec<Command> {
    let known = [("mpiexec.mpich", &[][..]), ("mpirun.openmpi", &["--oversubscribe", "--quiet"][..])];
    let mut found = Vec::new();
    for (name, arguments) in known {
        if !skipping::installed(name) {
            continue;
        }
        let mut command = Command::new(name);
        command.args(arguments).args(["-n", &processes.to_string()]);
        // Open MPI refuses to be started by root without this.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        found.push(command);
    }
    found
}

/// Starts [`one_process`] in each process of `launcher` in `place`; on failure returns the output.
fn start(mut launcher: Command, place: &Path, trace: &str) -> Result<(), String> {
    let _ = fs::remove_dir_all(place.join("out"));
    fs::create_dir(place.join("out")).unwrap();
    let this = std::env::current_exe().unwrap();
    launcher.env(PLACE, place).env(TRACE, trace).arg(this).args([
        "--exact",
        "job::one_process",
        "--ignored",
        "--quiet",
    ]);
    static TURN: Mutex<()> = Mutex::new(());
    // One launcher at a time: waiting ranks poll, and would slow each other down.
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = launcher.output().unwrap();
    drop(turn);
    let noise = || String::from_utf8_lossy(&[&ended.stdout[..], &ended.stderr[..]].concat()).into_owned();
    if ended.status.success() { Ok(()) } else { Err(format!("{launcher:?}: {}", noise())) }
}

/// The result of the process with a rank.
fn said(place: &Path, rank: u32) -> String {
    fs::read_to_string(place.join(format!("said.{rank}"))).unwrap()
}

/// Mixes `tasks` in one process and in several, in memory and in parts: the same trace, or the same error and no trace.
fn the_same(tasks: &[Vec<capture::Happened>], sizes: &[u32], lower: bool) {
    the_same_trace("t.vef", tasks, sizes, lower);
}

fn the_same_trace(trace: &str, tasks: &[Vec<capture::Happened>], sizes: &[u32], lower: bool) {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path();
    capture::write(&place.join("capture"), tasks);
    let alone = place.join("alone").with_extension(Path::new(trace).extension().unwrap());
    let expected = match mix(&place.join("capture"), &alone, &options(lower), &Quiet) {
        Ok(summary) => format!("{:?}", alike(summary)),
        Err(error) => error.to_string(),
    };
    // With almost no memory, a process with two tasks has two parts.
    let ways = |&size: &u32| [(size, false), (size, true)];
    let differ = |&(size, in_parts): &(u32, bool)| !in_parts || tasks.len() > size as usize;
    for (size, in_parts) in sizes.iter().flat_map(ways).filter(differ) {
        for mut launcher in launchers(size) {
            if lower {
                launcher.env(LOWER, "1");
            }
            if in_parts {
                launcher.env(PARTS, "1");
            }
            let which = format!("{launcher:?}");
            start(launcher, place, trace).unwrap();
            assert_eq!(said(place, 0), expected, "{which}");
            let written = fs::read(place.join("out").join(trace)).ok();
            assert!(written == fs::read(&alone).ok(), "{which} writes other bytes than one process");
            let others = if written.is_some() { "well" } else { "elsewhere" };
            (1..size).for_each(|rank| assert_eq!(said(place, rank), others));
            assert_eq!(fs::read_dir(place.join("out")).unwrap().count(), written.iter().count());
            if written.is_some() {
                let spilled = fs::read_to_string(place.join("spilled")).unwrap() != "0";
                assert_eq!(spilled, in_parts, "{which}");
            }
        }
    }
}

#[test]
fn any_number_of_processes_writes_the_same_bytes() {
    the_same(&model::run(11, 7, 3_000).events, &[2, 3, 8], false);
}

#[test]
fn threads_are_mixed_alike() {
    let plan = model::Plan { tasks: 5, threads: 3, early: true, steps: 2_000 };
    let run = model::run_plan(15, plan);
    the_same(&run.events, &[3], false);
    the_same_trace("t.vefx", &run.events, &[3], false);
}

#[test]
fn clocks_that_disagree_are_no_trouble() {
    let mut run = model::run(12, 5, 2_000);
    for (rank, events) in run.events.iter_mut().enumerate() {
        for event in events {
            event.start += (rank as u64 * 7 % 5) * 9_000;
            event.end += (rank as u64 * 7 % 5) * 9_000;
        }
    }
    the_same(&run.events, &[3], false);
}

#[test]
fn collectives_are_lowered_alike() {
    // In parts, only the last of four processes has two tasks.
    the_same(&model::run(13, 5, 500).events, &[4], true);
}

#[test]
fn a_place_without_room_for_temporary_files_is_told_by_one() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path();
    capture::write(&place.join("capture"), &model::run(14, 5, 200).events);
    for mut launcher in launchers(3) {
        // Of these three, the first has one part, and needs no file.
        launcher.env(PARTS, "1").env(TEMPORARY, place.join("no/such"));
        start(launcher, place, "t.vef").unwrap();
        let expected =
            format!("the temporary file in {}/no/such: No such file or directory", place.display());
        assert!(said(place, 0).contains(&expected), "{}", said(place, 0));
        assert_eq!((said(place, 1), said(place, 2)), ("elsewhere".into(), "elsewhere".into()));
        assert_eq!(fs::read_dir(place.join("out")).unwrap().count(), 0);
    }
}

#[test]
fn losses_and_errors_are_the_same() {
    // A killed task: the process that reports the loss learns of it from another.
    let mut killed = Program::new(4);
    killed.send(3, 0, 0, 4).receive(0, 3, 0).send(3, 2, 9, 5).collective(1, Operation::Barrier, None);
    for rank in 0..3 {
        killed.call(rank, Action::Finalize);
    }
    the_same(&killed.tasks, &[3], false);
    let mut unmatched = Program::new(4);
    unmatched.send(1, 3, 7, 70).receive(3, 2, 8).send(0, 3, 1, 2).receive(3, 0, 1).finish();
    the_same(&unmatched.tasks, &[2], false);
    let mut disagreeing = Program::new(4);
    for rank in [0, 1, 3] {
        disagreeing.collective(rank, Operation::Barrier, None);
    }
    disagreeing.collective(2, Operation::Allreduce, None).finish();
    the_same(&disagreeing.tasks, &[2, 4], false);
    let mut outside = Program::new(3);
    outside.send(2, 9, 0, 1).finish();
    the_same(&outside.tasks, &[3], false);
    let mut circle = Program::new(3);
    circle.receive(0, 2, 0).receive(2, 0, 0).send(0, 2, 0, 1).send(2, 0, 0, 1).finish();
    the_same(&circle.tasks, &[2, 3], false);
}
