//! Every MPI function, in three ways that must agree: the table of `docs/calls.md`, what the libraries of the installed
//! MPIs and the recorder export, and what a program that calls each of them leaves in its capture.

use mpi_abi::prototypes::{Call, Category, Group, Name, Timing};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_format::capture::{Capture, Digest};
use vef_format::ids::Rank;
use vef_tests::{Mpi, Wheel, number, products, root, run, skipped, vef};

/// What the recorder makes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    /// An event that becomes part of a trace.
    Event(&'static str),
    /// An event that a trace cannot represent: name, time, bytes.
    Other(&'static str),
    /// In the call table alone.
    Counted(&'static str),
    /// Nothing: the call is passed on.
    Passed,
}
use Treatment::*;

fn treatment(call: Call) -> Treatment {
    use Category as C;
    match (call, call.category()) {
        (Call::MPI_Initialized | Call::MPI_Finalized, _) => Passed,
        (Call::MPI_Init | Call::MPI_Init_thread, _) => Event("begin"),
        (Call::MPI_Finalize | Call::MPI_Abort, _) => Event("end"),
        (Call::MPI_Cancel, _) => Counted("its request's completion says whether it was cancelled"),
        (Call::MPI_Pready | Call::MPI_Pready_list | Call::MPI_Pready_range, _) => {
            Event("a message for each partition")
        }
        (Call::MPI_Parrived, _) => Event("completion, if the partition has arrived"),
        (
            Call::MPI_File_open
            | Call::MPI_File_set_view
            | Call::MPI_File_set_size
            | Call::MPI_File_preallocate
            | Call::MPI_File_set_atomicity
            | Call::MPI_File_set_info
            | Call::MPI_File_seek_shared
            | Call::MPI_File_close,
            _,
        ) => Event("collectives by which all members agree"),
        (Call::MPI_File_seek, _) => Event("the own position in the file"),
        (Call::MPI_Comm_join, _) => Other("time"),
        (call, C::Process) if call.position(Name::Comm).is_some() => {
            Event("definition of the communicator, and of the processes that are met")
        }
        (_, C::Process) => Counted("local"),
        (
            Call::MPI_Request_get_status
            | Call::MPI_Request_get_status_all
            | Call::MPI_Request_get_status_any,
            _,
        ) => Event("poll, if nothing has completed"),
        (Call::MPI_Win_test, _) => Event("synchronisation of a window, if the flag is set"),
        (_, category) => match (category, call.timing()) {
            (C::Send | C::Recv | C::Collective | C::NeighborCollective, Timing::Persistent) => {
                Counted("each start is an event")
            }
            (C::Partitioned, Timing::Persistent) => Event("definition of the transfer"),
            (C::Send, _) => Event("send"),
            (C::Recv, _) => Event("receive"),
            (C::SendRecv, _) => Event("send and receive"),
            (C::Probe, _) => Event("probe, if a message was found"),
            (C::Wait, _) => Event("completion, if a request has completed"),
            (C::Start, _) => Event("start of a persistent request"),
            (C::RequestFree, _) => Event("end of an active request"),
            (C::Collective, _) if has_counts(call) => Event("collective, bytes per peer"),
            (C::Collective, _) => Event("collective"),
            (C::CommCreate, _) => Event("definition of the communicator"),
            (C::CommFree, _) => Event("end of the communicator"),
            (C::TypeFree, _) => Counted("the handle becomes invalid"),
            (C::NeighborCollective, _) => Event("messages to the neighbours"),
            (C::Rma, _) => Event("messages between origin and target"),
            (C::RmaSync | C::WinCreate | C::WinFree, _) => Event("synchronisation of a window"),
            (C::Io, _) => Other("bytes requested"),
            (C::FileOpen | C::FileClose | C::FileSync, _) => Other("time"),
            _ => Passed,
        },
    }
}

/// Whether there is a count for each member.
fn has_counts(call: Call) -> bool {
    [Name::Sendcounts, Name::Recvcounts].into_iter().any(|name| call.position(name).is_some())
}

/// The shared libraries of an MPI, of Debian's those that the loader finds; `None` if it is not installed whole. Of PyPI's, only Intel's has one
/// for Fortran.
fn libraries(mpi: Mpi) -> Option<Vec<PathBuf>> {
    let names: &[&str] = match mpi {
        Mpi::Mpich => &["libmpich.so.12", "libmpichfort.so.12"],
        Mpi::OpenMpi => &["libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40"],
        Mpi::Wheel(Wheel::Mpich5) => &["libmpi.so.12"],
        Mpi::Wheel(Wheel::StandardAbi) => &["libmpi_abi.so.1"],
        Mpi::Wheel(Wheel::OpenMpi5) => &["libmpi.so.40"],
        Mpi::Wheel(Wheel::Intel) => {
            &["libmpi.so.12", "libmpifort.so.12", "libmpi_abi.so.1", "libmpifort_abi.so.1"]
        }
    };
    let listing = Command::new("/sbin/ldconfig").arg("-p").output().expect("ldconfig").stdout;
    let listing = String::from_utf8_lossy(&listing).into_owned();
    let path = |name: &&str| match mpi {
        Mpi::Wheel(wheel) => Some(wheel.home().join("lib").join(name)).filter(|path| path.is_file()),
        Mpi::Mpich | Mpi::OpenMpi => {
            let line = listing.lines().find(|line| line.split_whitespace().next() == Some(name))?;
            line.split_whitespace().last().map(PathBuf::from)
        }
    };
    names.iter().map(path).collect()
}

/// The functions that a library exports.
fn exported(library: &Path) -> BTreeSet<String> {
    let listing = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library)).success().stdout();
    let function = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        ["T", "W", "i"].contains(fields.get(1)?).then(|| fields[2].to_owned())
    };
    listing.lines().filter_map(function).collect()
}

/// All functions of an MPI, or `None` when it is not installed whole.
fn functions(mpi: Mpi) -> Option<BTreeSet<String>> {
    Some(libraries(mpi)?.iter().flat_map(|library| exported(library)).collect())
}

/// The names under which Fortran calls a function, as gfortran and its kin write them: `mpif.h` and `use mpi`, `use mpi_f08`,
/// and the latter with large counts.
fn fortran_names(stem: &str) -> [Vec<String>; 3] {
    let names = |suffixes: &[&str]| suffixes.iter().map(|suffix| format!("{stem}{suffix}")).collect();
    [names(&["_"]), names(&["_f08_", "_f08ts_"]), names(&["_f08_large_", "_f08ts_large_"])]
}

/// `mpi_send` for `MPI_Send` and `MPI_Send_c`.
fn stem(call: Call) -> String {
    let name = if call.group() == Group::Large { call.name().trim_end_matches("_c") } else { call.name() };
    name.to_lowercase()
}

/// Which forms of a function an MPI has: `C _c F f08 f08+`.
fn forms(call: Call, present: &BTreeSet<String>) -> String {
    let has = |name: &String| present.contains(name);
    let [mpif, f08, large] = fortran_names(&stem(call));
    let forms = [
        ("C", has(&call.name().to_owned())),
        ("_c", has(&format!("{}_c", call.name()))),
        ("F", mpif.iter().any(has)),
        ("f08", f08.iter().any(has)),
        ("f08+", large.iter().any(has)),
    ];
    let text: Vec<&str> = forms.iter().filter(|(_, there)| *there).map(|(form, _)| *form).collect();
    if text.is_empty() { "–".into() } else { text.join(" ") }
}

const PREAMBLE: &str = "\
# MPI calls and their records in a capture

Generated from the table of prototypes (`mpi-abi/functions.txt`) by `VEF_UPDATE_DOCS=1 cargo test -p vef-tests calls::`.
The same test fails if this page is out of date, if an installed MPI exports a function that is missing here, or if the
recorder does not export all names that it should.

In a capture:

- **event**: becomes part of a trace.
- **other**: an event with name, time and bytes that a trace cannot represent; `vef mix` reports the sums.
- **counted**: the number of calls is recorded; no event.
- `–`: passed on to MPI, not counted.

Only calls that succeed have events; calls that fail are counted. Traces have calls on communicators with processes of other worlds if these are part of the capture.

Forms that an MPI has: `C`; `_c` with large counts; `F` in `mpif.h` and `use mpi`; `f08` in `use mpi_f08`; `f08+` with
large counts there. The recorder has all of them, with the names that gfortran, flang, ifort and nvfortran use (one
trailing underscore); programs compiled with `-fsecond-underscore` or upper-case names are not recorded.

";

/// The whole page. `None` for an MPI: its column is as in `before`.
fn page(present: &[Option<BTreeSet<String>>; 2], before: &str) -> String {
    let old: BTreeMap<&str, Vec<&str>> = before
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            (cells.len() == 4).then(|| (cells[0], cells))
        })
        .collect();
    let mut text = PREAMBLE.to_owned();
    text.push_str("| call | in a capture | MPICH 4.0 | Open MPI 4.1 |\n|---|---|---|---|\n");
    let plain = Call::all().filter(|call| call.group() != Group::Large);
    let rows: BTreeMap<&str, Call> = plain.map(|call| (call.name(), call)).collect();
    for (name, call) in rows {
        let capture = match treatment(call) {
            Event(what) => format!("event: {what}"),
            Other(what) => format!("other: {what}"),
            Counted(what) => format!("counted: {what}"),
            Passed => "–".into(),
        };
        let cell = |column: usize| match &present[column] {
            Some(present) => forms(call, present),
            None => old.get(name).map_or("?", |cells| cells[2 + column]).to_owned(),
        };
        writeln!(text, "| {name} | {capture} | {} | {} |", cell(0), cell(1)).expect("a string");
    }
    text
}

#[test]
fn the_page_of_all_calls_is_up_to_date() {
    let path = root().join("docs/calls.md");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let present = Mpi::DEBIAN.map(functions);
    for (mpi, present) in Mpi::DEBIAN.iter().zip(&present) {
        if present.is_none() {
            skipped(format_args!(
                "the column of {mpi:?} is not compared: it is not installed (scripts/deps)"
            ));
        }
    }
    let now = page(&present, &before);
    if std::env::var_os("VEF_UPDATE_DOCS").is_some() {
        std::fs::write(&path, now).expect("docs/calls.md");
        return;
    }
    let differing = now.lines().zip(before.lines()).find(|(now, before)| now != before);
    assert!(now == before, "docs/calls.md is out of date: VEF_UPDATE_DOCS=1; first: {differing:?}");
}

/// Exported under an `MPI_` name, but no function that a program calls to communicate.
fn passed_over(name: &str) -> bool {
    // The tools interface, predefined callbacks, and the Fortran forms of functions without an error code.
    name.starts_with("MPI_T_")
        || ["_FN", "_FN_NULL", "_F90", "_F"].iter().any(|end| name.ends_with(end))
        // Fortran's names in capitals, and Open MPI's own between its Fortran and C.
        || !name.chars().any(char::is_lowercase)
        || name.ends_with("_f")
        || name.ends_with("_f08")
        // Conversions of statuses, which live in the Fortran libraries.
        || name.starts_with("MPI_Status_f")
        || name == "MPI_Status_c2f08"
        // Open MPI 5's own.
        || name == "MPI_Session_set_info"
}

#[test]
fn no_function_of_an_mpi_is_missing() {
    let recorder = exported(&products().join("libvef_interpose.so"));
    for mpi in Mpi::every() {
        let Some(present) = functions(mpi) else {
            skipped(format_args!("{mpi:?} is not installed whole (scripts/deps)"));
            continue;
        };
        let mut wrong = Vec::new();
        for name in present.iter().filter(|name| name.starts_with("MPI_") && !passed_over(name)) {
            if Call::from_name(name).is_none() {
                wrong.push(format!("{name} is not in the table"));
            }
        }
        for call in Call::all() {
            let wrapped = recorder.contains(call.name());
            // In C also what is handed on at once: tools may want to see it. The few that are only in C are written by hand.
            let expected = match call.group() {
                // By these programs ask whether there is an MPI.
                _ if ["MPI_Get_version", "MPI_Get_library_version"].contains(&call.name()) => false,
                Group::Others => false,
                Group::COnly => [Category::Lifecycle, Category::Pcontrol].contains(&call.category()),
                _ => true,
            };
            if wrapped != expected {
                wrong.push(format!("{} wrapped: {wrapped}, but {:?}", call.name(), treatment(call)));
            }
            if treatment(call) != Passed {
                let names = fortran_names(&stem(call)).concat();
                let unseen = names.iter().filter(|name| present.contains(*name) && !recorder.contains(*name));
                wrong.extend(unseen.map(|name| format!("{name} of {mpi:?} is not recorded")));
            }
        }
        assert!(present.len() > 900 && wrong.is_empty(), "{mpi:?}, {}:\n{}", present.len(), wrong.join("\n"));
    }
}

/// Captures a run of the program that calls everything; gives the capture, and what it says it did not call.
fn capture(mpi: Mpi, work: &Path, arguments: &[&str], code: i32) -> (PathBuf, Vec<String>) {
    let program = mpi.compile(work, "every_call", &["tests/c/every_call.c"]);
    let capture = work.join(format!("capture{}", arguments.len()));
    let mut command = vef();
    command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture).arg("--");
    let ended = run(command.arg(program).arg(work).args(arguments)).exited(code);
    let said = ended.stdout();
    assert!(code != 0 || said.contains("fine"), "{}", ended.stderr());
    let not_called = said.lines().find_map(|line| line.strip_prefix("not called: ")).unwrap_or_default();
    if !not_called.is_empty() {
        skipped(format_args!("{mpi:?} has no ports here: {not_called}"));
    }
    (capture, not_called.split_whitespace().map(str::to_owned).collect())
}

#[test]
fn a_call_of_each_is_in_the_capture() {
    let recorder = exported(&products().join("libvef_interpose.so"));
    for mpi in Mpi::with(&[Wheel::StandardAbi]) {
        // Intel MPI ends by a signal in the program, without the recorder, too.
        if mpi == Mpi::Wheel(Wheel::Intel) {
            continue;
        }
        let Some(present) = functions(mpi) else { continue };
        let work = tempfile::tempdir().expect("a directory");
        let (all, not_called) = capture(mpi, work.path(), &[], 0);
        let (aborted, _) = capture(mpi, work.path(), &["abort"], 3);
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        for capture in [&all, &aborted] {
            let capture = Capture::open(capture).expect("a capture");
            for rank in 0..2 {
                for function in capture.functions(Rank(rank)).expect("its calls") {
                    *calls.entry(function.name).or_default() += function.calls;
                }
            }
        }
        let digest = Digest::of(&Capture::open(&all).expect("a capture"), |_| {}).expect("readable");
        let trace = work.path().join("out.vef");
        let mixed =
            run(vef().args(["mix", "--json", "-i"]).arg(&all).arg("-o").arg(&trace)).success().stdout();
        let mixed: serde_json::Value = serde_json::from_str(&mixed).expect("JSON");
        let mut wrong = Vec::new();
        let wrapped = Call::all().filter(|call| recorder.contains(call.name()));
        for call in wrapped.filter(|call| present.contains(call.name()) && treatment(*call) != Passed) {
            let name = call.name();
            let count = calls.get(name).copied().unwrap_or(0);
            if count == 0 && not_called.iter().all(|known| known != name) {
                wrong.push(format!("{name} is not called by tests/c/every_call.c, or not counted"));
            }
            let tally = &mixed["not_representable"][name];
            // Processes cannot be spawned here, or their worlds (of MPICH 5) are not recorded; only Open MPI's members agree on a sync, only MPICH's on hints; to delete a file
            // moves nothing that a trace would lack.
            let others = [Call::MPI_File_sync, Call::MPI_File_set_info, Call::MPI_File_delete];
            let is_elsewhere = call.category() == Category::Process || others.contains(&call);
            match treatment(call) {
                Other(what) if tally.is_null() => {
                    wrong.extend((!is_elsewhere).then(|| format!("{name} ({what}) left no event")));
                }
                Other(what) => {
                    let ends = name.ends_with("_end");
                    let sized = what != "time" && !ends;
                    if sized != (number(tally, "bytes") > 0) {
                        wrong.push(format!("{name} ({what}): {tally}"));
                    }
                }
                _ if !tally.is_null() && !is_elsewhere => {
                    wrong.push(format!("{name} is an ordinary event, but {tally}"))
                }
                _ => {}
            }
        }
        assert!(wrong.is_empty(), "{mpi:?}:\n{}", wrong.join("\n"));
        // Of each rank: one between groups, 4 partitions where there are some, and 18 with plain and 18 with large counts, or 16 where there
        // are neither those nor `Isendrecv`.
        let sends = match (present.contains("MPI_Send_c"), present.contains("MPI_Isendrecv")) {
            (true, _) => 2 + 2 * (18 + 18),
            (false, true) => 2 + 2 * 18,
            (false, false) => 2 + 2 * 16,
        };
        let partitions = if present.contains("MPI_Psend_init") { 2 * 4 } else { 0 };
        assert_eq!(digest.messages, sends + partitions, "{mpi:?}");
        let check = run(vef().args(["check", "--json"]).arg(&trace)).success().stdout();
        assert!(check.contains("\"complete\": true"), "{check}");
    }
}
