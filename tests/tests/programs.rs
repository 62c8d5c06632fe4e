//! Real programs, captured: their results are those of a run without the recorder, the trace holds what an independent counter
//! saw in the same run, checks as complete and simulates to its end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vef_tests::spine::{capture_and_mix, holds_what_was_counted};
use vef_tests::{Mpi, Wheel, counts, from_pypi, installed, root, run, run_for, shared, vef};

/// Minutes, on a busy machine with fewer cores than ranks.
const LONG: Duration = Duration::from_secs(400);

/// The same run without the recorder; its stdout.
fn untraced(mpi: Mpi, work: &Path, ranks: u32, program: &[&str]) -> String {
    let mut command = Command::new(mpi.launcher()[0]);
    command.args(&mpi.launcher()[1..]).args(["-n", &ranks.to_string()]).args(program).current_dir(work);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    run_for(&mut command, LONG).success().stdout()
}

/// The lines of an output that do not tell of time.
fn results(output: &str, of_time: &[&str]) -> Vec<String> {
    output.lines().filter(|line| of_time.iter().all(|word| !line.contains(word))).map(str::to_owned).collect()
}

/// Runs a program both ways, each in a directory with a copy of `inputs`; the outputs (stdout, or the file `output` of it)
/// must agree but for lines with one of the words `of_time`.
fn verify(
    mpi: Mpi,
    ranks: u32,
    program: &[&str],
    inputs: &[PathBuf],
    output: Option<&str>,
    of_time: &[&str],
) {
    let [plain, traced] = [(); 2].map(|()| {
        let work = tempfile::tempdir().expect("a directory");
        for input in inputs {
            let copy = work.path().join(input.file_name().expect("a file"));
            std::fs::write(copy, std::fs::read(input).expect("an input")).expect("its copy");
        }
        work
    });
    let printed = untraced(mpi, plain.path(), ranks, program);
    let (trace, also) = capture_and_mix(mpi, traced.path(), ranks, program);
    holds_what_was_counted(traced.path(), &trace, ranks);
    let text = |work: &Path, stdout: String| match output {
        None => stdout,
        Some(file) => std::fs::read_to_string(work.join(file)).expect("its output"),
    };
    let (before, after) = (text(plain.path(), printed), text(traced.path(), also));
    let (before, after) = (results(&before, of_time), results(&after, of_time));
    assert!(before.len() > 20 || output.is_none() && !before.is_empty(), "nothing to compare: {before:?}");
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before, after);
    }
    assert_eq!(before.len(), after.len());
}

#[test]
fn lammps_on_4_and_8_ranks() {
    if !installed("lmp") {
        return;
    }
    let Some(input) = shared("apps/lammps/in.lj") else { return };
    let of_time =
        ["time", "Performance", "CPU", "%", "|", "timesteps/s", "Section", "Pair  ", "Other", "Total wall"];
    for ranks in [4, 8] {
        let program = ["lmp", "-log", "none", "-in", "in.lj"];
        verify(Mpi::OpenMpi, ranks, &program, std::slice::from_ref(&input), None, &of_time);
    }
}

#[test]
fn hpcc() {
    if !installed("hpcc") {
        return;
    }
    let Some(input) = shared("apps/hpcc/hpccinf.txt") else { return };
    // 8 ranks take minutes where cores are few and busy.
    let ranks = std::env::var("VEF_HPCC_RANKS").ok().and_then(|ranks| ranks.parse().ok()).unwrap_or(4);
    let work = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    for work in &work {
        std::fs::copy(&input, work.path().join("hpccinf.txt")).expect("its input");
    }
    untraced(Mpi::OpenMpi, work[0].path(), ranks, &["hpcc"]);
    let (trace, _) = capture_and_mix(Mpi::OpenMpi, work[1].path(), ranks, &["hpcc"]);
    holds_what_was_counted(work[1].path(), &trace, ranks);
    // Nearly all it prints is speed; what it verifies is the rest.
    let verdicts = work.map(|work| {
        let text = std::fs::read_to_string(work.path().join("hpccoutf.txt")).expect("its output");
        ["PASSED", "FAILED", "Success=1"].map(|verdict| text.matches(verdict).count())
    });
    assert!(verdicts[0][0] > 0 && verdicts[0][2] == 1, "{verdicts:?}");
    assert_eq!(verdicts[0], verdicts[1]);
}

#[test]
fn quantum_espresso() {
    // 280 MB: not in scripts/deps.
    if !installed("pw.x") {
        return;
    }
    let (Some(input), Some(potential)) = (shared("apps/qe/h2.in"), shared("apps/qe/H.UPF")) else { return };
    let of_time = ["WALL", "secs", "starts on", "terminated on", "Mb", "MB"];
    let program = ["env", "OMP_NUM_THREADS=1", "pw.x", "-ndiag", "1", "-in", "h2.in"];
    verify(Mpi::OpenMpi, 2, &program, &[input, potential], None, &of_time);
}

/// What each rank sends to, and fetches from, the other, against a counter in front of the recorder in the same run.
#[test]
fn one_sided_benchmarks_of_intel_mpi() {
    let intel = Mpi::Wheel(Wheel::Intel);
    let program = Wheel::Intel.home().join("bin/IMB-RMA");
    if Mpi::with(&[Wheel::Intel]).contains(&intel) && installed(program.to_str().expect("UTF-8")) {
        holds_what_one_sided_calls_moved(intel, &Wheel::Intel.home(), &program);
    }
}

fn holds_what_one_sided_calls_moved(intel: Mpi, home: &Path, program: &Path) {
    let work = tempfile::tempdir().expect("a directory");
    let place = |name: &str| work.path().join(name);
    let counter =
        intel.compile(work.path(), "counter", &["-shared", "-fPIC", "tests/c/count_transfers.c", "-ldl"]);
    let mut command = vef();
    command.args(["run", "-n", "2", "--mpirun", &intel.launcher().join(" "), "-o"]).arg(place("capture"));
    command.arg("--").arg(program).args(["-iter", "3", "-msglog", "0:6"]);
    command.env("LD_PRELOAD", counter).env("LD_LIBRARY_PATH", home.join("lib")).env("I_MPI_ROOT", home);
    let printed = run_for(&mut command, LONG).success().stderr();
    // By rank: to others, from others, within itself.
    let mut counted = [[0u64; 3]; 2];
    for line in printed.lines().filter_map(|line| line.strip_prefix("transfers ")) {
        let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
        counted[numbers[0] as usize].copy_from_slice(&numbers[1..]);
    }
    let trace = place("t.vef");
    let mixed = run(vef().args(["mix", "-i"]).arg(place("capture")).arg("-o").arg(&trace)).success();
    assert!(!mixed.stdout().contains("not in the trace"), "{}", mixed.stdout());
    let [[sent, fetched, within], [other_sent, other_fetched, other_within]] = counted;
    assert!(sent > 10_000 && fetched > 10_000, "{printed}");
    assert_eq!(moved(&trace), [[within, sent + other_fetched], [other_sent + fetched, other_within]]);
    let checked = run(vef().arg("check").arg(&trace)).success().stdout();
    assert!(checked.contains("complete: every record replays") && !checked.contains("warning"), "{checked}");
    run(vef().arg("sim").arg(&trace).args(["--topology", "switch:2", "--model", "packet"])).success();
}

/// Bytes of messages from each task to each.
fn moved<const TASKS: usize>(trace: &Path) -> [[u64; TASKS]; TASKS] {
    let mut moved = [[0; TASKS]; TASKS];
    for ((from, to), (_, bytes)) in counts::of_trace(trace).traffic {
        moved[from as usize][to as usize] += bytes;
    }
    moved
}

#[test]
fn netpipe_on_both_mpis() {
    for (mpi, program) in [(Mpi::Mpich, "NPmpich2"), (Mpi::OpenMpi, "NPopenmpi")] {
        if !installed(program) {
            continue;
        }
        // -n: as many messages of each size, however fast; -i checks what arrives.
        for options in [&["-n", "50", "-u", "4096"][..], &["-i", "-n", "5", "-u", "1024"]] {
            let work = tempfile::tempdir().expect("a directory");
            let line: Vec<&str> = [program].iter().chain(options).copied().collect();
            let (trace, _) = capture_and_mix(mpi, work.path(), 2, &line);
            holds_what_was_counted(work.path(), &trace, 2);
        }
    }
}

/// A Python with the mpi4py of PyPI, a wheel for every MPI, made once in `target/`; `None`, said aloud: it cannot be had here.
fn python() -> Option<PathBuf> {
    let home = root().join("target/mpi4py-wheel");
    let python = home.join("bin/python");
    let works = |python: &Path| {
        let mut import = Command::new(python);
        python.is_file() && run(import.args(["-c", "import mpi4py"])).output.status.success()
    };
    if works(&python) {
        return Some(python);
    }
    (from_pypi(&home, &["mpi4py==4.1.2"]) && works(&python)).then_some(python)
}

/// What tells the wheel where an MPI is: Debian's MPICH does not have the name that the other MPIs of its ABI have.
fn library(mpi: Mpi, work: &Path) -> PathBuf {
    let (name, file) =
        if mpi == Mpi::Mpich { ("libmpi.so.12", "libmpich.so.12") } else { ("libmpi.so.40", "libmpi.so.40") };
    let machine = std::env::consts::ARCH;
    let link = work.join(name);
    std::os::unix::fs::symlink(format!("/usr/lib/{machine}-linux-gnu/{file}"), &link).expect("a link");
    link
}

#[test]
fn the_mpi4py_wheel_on_both_mpis() {
    for mpi in Mpi::installed() {
        let Some(python) = python() else { continue };
        let links = tempfile::tempdir().expect("a directory");
        let which = format!("MPI4PY_LIBMPI={}", library(mpi, links.path()).display());
        let path = format!("LD_LIBRARY_PATH={}", links.path().display());
        let script = root().join("tests/py/ring.py");
        let (python, script) = (python.to_str().expect("a path"), script.to_str().expect("a path"));
        let program = ["env", &which, &path, python, script];
        verify(mpi, 2, &program, &[], None, &[]);
        // Without the counter, which is linked to MPI and so makes its functions visible to all: Python alone opens it.
        let work = tempfile::tempdir().expect("a directory");
        let mut command = vef();
        command.current_dir(work.path()).args([
            "run",
            "-n",
            "2",
            "--mpirun",
            &mpi.launcher().join(" "),
            "--mix",
            "out.vef",
            "--",
        ]);
        let ended = run(command.args(program)).success();
        assert!(ended.stderr().contains("all can be represented"), "{}", ended.stderr());
        let alone = vef_tests::counts::of_trace(&work.path().join("out.vef"));
        let messages: u64 = alone.traffic.values().map(|pair| pair.0).sum();
        assert_eq!(messages, 2 * 3, "{alone:?}");
    }
}

/// One-sided transfers of a Python program are the messages that it counted itself.
#[test]
fn one_sided_python_on_both_mpis() {
    const RANKS: usize = 3;
    for mpi in Mpi::installed() {
        let Some(python) = python() else { continue };
        let work = tempfile::tempdir().expect("a directory");
        let which = format!("MPI4PY_LIBMPI={}", library(mpi, work.path()).display());
        let path = format!("LD_LIBRARY_PATH={}", work.path().display());
        let mut command = vef();
        command.current_dir(work.path()).args(["run", "-n", "3", "--mpirun", &mpi.launcher().join(" ")]);
        command
            .args(["--mix", "rma.vef", "--", "env", &which, &path])
            .arg(python)
            .arg(root().join("tests/py/rma.py"));
        let ended = run(&mut command).success();
        assert!(ended.stderr().contains("all can be represented"), "{}", ended.stderr());
        let printed = ended.stdout();
        // In front of the summary of the trace.
        let line = printed.lines().next().expect("a line");
        let (sent, fetched) = line.split_once(' ').expect("two numbers");
        let [sent, fetched] = [sent, fetched].map(|bytes| bytes.parse::<u64>().expect("a number"));
        assert!(sent > 0 && fetched > 0, "{mpi:?}: {printed}");
        let mut expected = [[0; RANKS]; RANKS];
        for (rank, right) in (0..RANKS).map(|rank| (rank, (rank + 1) % RANKS)) {
            expected[rank][right] = sent;
            expected[right][rank] = fetched;
        }
        assert_eq!(moved(&work.path().join("rma.vef")), expected, "{mpi:?}");
        let checked = run(vef().current_dir(work.path()).args(["check", "rma.vef"])).success().stdout();
        assert!(checked.contains("complete: every record replays"), "{checked}");
    }
}

#[test]
fn a_pool_of_spawned_workers_is_in_the_trace() {
    // Debian's MPICH cannot spawn.
    for mpi in Mpi::installed().into_iter().filter(|&mpi| mpi == Mpi::OpenMpi) {
        let Some(python) = python() else { continue };
        let work = tempfile::tempdir().expect("a directory");
        let which = format!("MPI4PY_LIBMPI={}", library(mpi, work.path()).display());
        let script = root().join("tests/py/pool.py");
        let mut command = vef();
        command.current_dir(work.path()).args(["run", "-n", "1", "--mpirun", &mpi.launcher().join(" ")]);
        command.args(["--oversubscribe", "--mix", "pool.vefx", "--", "env", &which]).arg(python).arg(script);
        let ended = run(&mut command).success();
        let sum: u64 = (0..60u64).map(|count| (0..count).map(|number| number * number).sum::<u64>()).sum();
        assert!(ended.stdout().contains(&format!("sum {sum}\n")), "{}", ended.stdout());
        let said = ended.stderr();
        assert!(
            said.contains("all can be represented") && said.contains("tasks 1 to 3 were spawned"),
            "{said}"
        );
        let checked = run(vef().current_dir(work.path()).args(["check", "pool.vefx"])).success().stdout();
        assert!(
            checked.contains("4 tasks") && checked.contains("complete: every record replays"),
            "{checked}"
        );
    }
}
