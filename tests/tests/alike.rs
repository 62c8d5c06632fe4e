//! The events of a capture do not depend on the MPI or on the language: programs that use what recorders trip over are recorded with
//! the same events under every MPI and through every Fortran interface.

use std::path::Path;
use vef_format::capture::event::{Action, Event};
use vef_format::capture::{Capture, CaptureError, Ending};
use vef_format::ids::Rank;
use vef_tests::{INTERFACES, Mpi, have, run, skipped, vef};

/// The actions of rank 1 of 3 of a program, as text. Completions are split and sorted by request, because their grouping and order
/// depend on timing; failed polls are omitted for the same reason.
fn actions(mpi: Mpi, work: &Path, program: &Path) -> Vec<String> {
    actions_behind(None, mpi, work, program)
}

/// The same with a library that is preloaded in front of the recorder.
fn actions_behind(library: Option<&Path>, mpi: Mpi, work: &Path, program: &Path) -> Vec<String> {
    let capture = work.join("capture");
    let mut command = vef();
    command.args(["run", "-n", "3", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture).arg("--");
    if let Some(library) = library {
        command.env("LD_PRELOAD", library);
    }
    let ended = run(command.current_dir(work).arg(program).arg(".")).success();
    // What `vef run` says of itself, and from the recorder only that the library stands in front.
    let in_front = |line: &str| line.contains(" stands in front of the recorder and has its own MPI_Send");
    let is_usual = |line: &str| {
        ["captured in ", "warning: "].iter().any(|start| line.starts_with(&format!("vef: {start}")))
            || library.is_some() && in_front(line)
    };
    let said = ended.stderr();
    assert_eq!(said.lines().any(in_front), library.is_some(), "{said}");
    let is_quiet = said.lines().filter(|line| line.contains("vef:")).all(is_usual);
    assert!(ended.stdout().contains("fine") && is_quiet, "{}\n{said}", ended.stdout());
    let capture = Capture::open(&capture).expect("a capture");
    let mut events = capture.events(Rank(1)).expect("its events");
    let functions = events.functions().to_vec();
    let mut list = Vec::new();
    let tell = |event: &Event<'_>| {
        match &event.action {
            Action::Complete(completions) => list.extend(completions.iter().map(|done| format!("{done:?}"))),
            action @ Action::Other { .. } => {
                let name = event.call.index().map_or("", |slot| &functions[slot].name);
                list.push(format!("{name} {action:?}"));
            }
            Action::Polls { .. } | Action::Preempted => {}
            other => list.push(format!("{other:?}")),
        }
        Ok::<_, CaptureError>(())
    };
    events.each(tell).expect("readable");
    assert_eq!(events.ending(), Ending::Finished);
    let is_completion = |text: &String| text.starts_with("Completion");
    list.chunk_by_mut(|a, b| is_completion(a) && is_completion(b)).for_each(<[String]>::sort);
    list
}

#[test]
fn traps_are_recorded_alike_under_every_mpi() {
    let mut before: Option<Vec<String>> = None;
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "traps", &["tests/c/traps.c"]);
        let list = actions(mpi, work.path(), &program);
        let count = |what: &str| list.iter().filter(|action| action.contains(what)).count();
        assert_eq!(
            (count("Init"), count("Finalize"), count("MPI_Put"), count("MPI_File_write")),
            (1, 1, 1, 1)
        );
        assert_eq!((count("tag: 16"), count("tag: Some(16)")), (1, 1), "a matched message is received once");
        assert_eq!(count("CommunicatorFree"), 7);
        assert!(!list.iter().any(|action| action.contains("Cancelled")));
        let before = before.get_or_insert_with(|| list.clone());
        for (i, (a, b)) in before.iter().zip(&list).enumerate() {
            assert_eq!(a, b, "action {i}");
        }
        assert_eq!(before.len(), list.len());
    }
}

#[test]
fn fortran_is_recorded_once_through_every_interface() {
    if !have("mpifort.mpich") || !have("mpifort.openmpi") {
        return skipped("needs mpifort of both MPIs");
    }
    let mut before: Option<Vec<String>> = None;
    for mpi in Mpi::installed() {
        // Of the two, only MPICH has 64-bit counts.
        let large = (mpi == Mpi::Mpich).then_some(("MPI_F08", "large_interfaces"));
        for (interface, name) in
            INTERFACES.map(|interface| (interface, "interfaces")).into_iter().chain(large)
        {
            let work = tempfile::tempdir().expect("a directory");
            let program = mpi.compile_fortran(work.path(), interface, name);
            let list = actions(mpi, work.path(), &program);
            assert_eq!(list.iter().filter(|action| action.starts_with("Send(")).count(), 4);
            assert_eq!(before.get_or_insert_with(|| list.clone()), &list, "{mpi:?} {interface}");
            // MPICH's Fortran functions call C's, which this library passes on to the recorder.
            std::fs::remove_dir_all(work.path().join("capture")).expect("removed");
            let profiler = ["-shared", "-fPIC", "tests/c/profiler.c", "-ldl"];
            let profiler = mpi.compile(work.path(), "profiler.so", &profiler);
            let behind = actions_behind(Some(&profiler), mpi, work.path(), &program);
            assert_eq!(behind, list, "{mpi:?} {interface}, behind a profiling library");
        }
    }
}
