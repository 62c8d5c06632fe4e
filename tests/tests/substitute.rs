//! `vef run --tool collectives=TABLE`: a program that checks what its collectives give, carried out by schedules of this project, on both MPIs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_tests::{Ended, Mpi, root, run, vef};

fn program(mpi: Mpi, work: &Path) -> PathBuf {
    mpi.compile(work, "collectives", &["-pthread", "tests/c/collectives.c"])
}

/// `vef run` of a program with tools on some ranks, into `work/out`.
fn with_tools(mpi: Mpi, work: &Path, ranks: u32, tools: &[&str]) -> Command {
    let mut command = vef();
    command.current_dir(work).args(["run", "-n", &ranks.to_string(), "--mpirun", &mpi.launcher().join(" ")]);
    command.arg("-o").arg(work.join("out"));
    command.args(tools.iter().flat_map(|tool| ["--tool", tool])).arg("--");
    command
}

/// How many results the program says were right.
fn checks(ended: &Ended) -> u64 {
    let text = ended.stdout();
    let number = text.split("collectives: ").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{text}\n{}", ended.stderr()))
}

/// Calls of each function by how they were done, as the tool tells.
fn usage(work: &Path) -> BTreeMap<String, Vec<(String, u64)>> {
    let file = work.join("out/collectives.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut usage: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_else(|| panic!("{line}")).to_owned();
        let (calls, function, how) = (word(), word(), word());
        usage.entry(function).or_default().push((how, calls.parse().expect("a number")));
    }
    usage
}

const FUNCTIONS: [&str; 17] = [
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Gather",
    "MPI_Scatter",
    "MPI_Allgather",
    "MPI_Alltoall",
    "MPI_Gatherv",
    "MPI_Scatterv",
    "MPI_Allgatherv",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Scan",
    "MPI_Exscan",
];

#[test]
fn results_are_right_by_any_algorithm() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = program(mpi, work.path());
        // What the program checks does not depend on who carries the collectives out.
        for ranks in [2, 5] {
            let mut expected = None;
            if mpi == Mpi::OpenMpi {
                let mut alone = Command::new(mpi.launcher()[0]);
                alone.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                alone.args(&mpi.launcher()[1..]).args(["-n", &ranks.to_string()]).arg(&program);
                expected = Some(checks(&run(&mut alone).success()));
            }
            let tables = root().join("tests/c/tables");
            let (trees, rings) = (tables.join("trees.toml"), tables.join("rings.toml"));
            let tables = ["default", "openmpi", "mpich"].map(str::to_owned).into_iter();
            let tables = tables.chain([trees, rings].map(|path| path.to_str().expect("a path").to_owned()));
            for table in tables {
                let _ = std::fs::remove_dir_all(work.path().join("out"));
                let mut command = with_tools(mpi, work.path(), ranks, &[&format!("collectives={table}")]);
                // These tables leave a call to the MPI that MPICH itself gets wrong.
                let without = mpi == Mpi::Mpich && ["default", "mpich"].contains(&table.as_str());
                let ended = run(command.arg(&program).args(without.then_some("without"))).success();
                let found = checks(&ended);
                assert!(found > 100_000, "{found}");
                if !without {
                    assert_eq!(found, *expected.get_or_insert(found), "{mpi:?} {table}");
                }
                let usage = usage(work.path());
                for function in FUNCTIONS {
                    let done = &usage[function];
                    let (left, ours): (Vec<_>, Vec<_>) =
                        done.iter().partition(|(how, _)| how.starts_with("mpi"));
                    assert!(
                        ours.iter().map(|of| of.1).sum::<u64>() > 10,
                        "{mpi:?} {table} {function}: {done:?}"
                    );
                    // Left to the MPI: inter-communicators and communicators of one rank, wrong arguments, and operations that
                    // need their order where no rule of the table keeps it.
                    let reduces = ["educe", "can"].iter().any(|part| function.contains(part));
                    for (how, _) in left {
                        let expected = ["mpi (communicator)", "mpi (arguments)"].contains(&how.as_str());
                        assert!(
                            expected || (reduces && how == "mpi (no rule)"),
                            "{mpi:?} {table} {function}: {how}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn three_threads_have_collectives_at_once() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = program(mpi, work.path());
        let mut command = with_tools(mpi, work.path(), 3, &["collectives=default"]);
        let ended = run(command.arg(&program).arg("threads")).success();
        if ended.stdout().contains("no threads") {
            vef_tests::skipped(format_args!("{mpi:?} has no MPI_THREAD_MULTIPLE"));
            continue;
        }
        assert!(checks(&ended) > 10_000, "{}", ended.stdout());
    }
}

#[test]
fn array_sections_with_holes_are_right_or_refused() {
    if !vef_tests::have("gfortran") {
        vef_tests::skipped(format_args!("no gfortran"));
        return;
    }
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = work.path().join("sections");
        let mut build = Command::new(mpi.mpicc().replace("mpicc", "mpifort"));
        build
            .current_dir(root())
            .arg("-o")
            .arg(&program)
            .arg("tests/c/sections.f90")
            .arg("-J")
            .arg(work.path());
        run(&mut build).success();
        let ended = run(with_tools(mpi, work.path(), 2, &["collectives=default"]).arg(&program));
        if mpi == Mpi::Mpich {
            assert!(
                ended.stderr().contains("section with holes cannot be substituted"),
                "{}",
                ended.stderr()
            );
            assert!(!ended.stdout().contains("sections: right") && !ended.output.status.success());
        } else {
            // The compiler copies the section: MPI gets an array without holes.
            assert!(ended.success().stdout().contains("sections: right"));
        }
    }
}

/// Calls of a function in a capture.
fn calls(directory: &Path, function: &str) -> u64 {
    let ended = run(vef().args(["profile", "--json"]).arg(directory)).success();
    let report: serde_json::Value = serde_json::from_str(&ended.stdout()).expect("JSON");
    let calls = report["calls"].as_array().expect("calls").clone();
    calls.iter().filter(|call| call["name"] == function).map(|call| vef_tests::number(call, "calls")).sum()
}

#[test]
fn a_recorder_sees_what_is_at_its_place() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "chain", &["-I", "interpose/include", "tests/c/chain.c"]);
        let table = work.path().join("table.toml");
        std::fs::write(&table, "bcast = [{ algorithm = \"linear\" }]\n").expect("a table");
        let tool = format!("collectives={}", table.display());
        run(with_tools(mpi, work.path(), 4, &["profile", &tool, "capture"]).arg(&program)).success();
        let out = work.path().join("out");
        // One broadcast on four ranks, three messages to the others; the program has two of its own from each rank.
        let in_front = |function| calls(&out.join("profile"), function);
        assert_eq!((in_front("MPI_Bcast"), in_front("MPI_Isend"), in_front("MPI_Comm_split")), (4, 0, 4));
        let behind = |function| calls(&out, function);
        assert_eq!((behind("MPI_Bcast"), behind("MPI_Isend"), behind("MPI_Comm_split")), (0, 3, 8));
        // The table names nothing else.
        assert_eq!(in_front("MPI_Allreduce"), behind("MPI_Allreduce"));
        assert_eq!(usage(work.path()).keys().map(String::as_str).collect::<Vec<_>>(), ["MPI_Bcast"]);
        run(vef().args(["mix", "-i"]).arg(&out).arg("-o").arg(work.path().join("trace.vef"))).success();
    }
}

#[test]
fn a_table_that_is_wrong_is_told_before_the_run() {
    let work = tempfile::tempdir().expect("a directory");
    let table = work.path().join("table.toml");
    std::fs::write(&table, "bcast = [\n  { algorithm = \"bruck\" },\n]\n").expect("a table");
    let said = |tools: &[&str]| {
        let mut command = with_tools(Mpi::Mpich, work.path(), 2, tools);
        run(command.arg("true")).exited(2).stderr()
    };
    let wrong = said(&[&format!("collectives={}", table.display())]);
    assert!(wrong.contains("line 2, column 3: bcast has no algorithm 'bruck'"), "{wrong}");
    let missing = said(&["collectives=magic"]);
    assert!(missing.contains("neither default, openmpi, mpich, nccl nor a file"), "{missing}");
    let twice = said(&["collectives=default", "collectives=mpich"]);
    assert!(twice.contains("substituted once"), "{twice}");
}

#[test]
fn nothing_is_kept_of_a_communicator_that_is_freed() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "comm_freed", &["tests/c/comm_freed.c"]);
        run(with_tools(mpi, work.path(), 4, &["collectives=default"]).arg(&program)).success();
    }
}
