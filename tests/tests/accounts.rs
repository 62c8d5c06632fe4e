//! The account of each rank's time says what an independent profiler (`tests/c/timer.c`) measures in the same run; its parts are the run.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use vef_format::capture::Capture;
use vef_format::capture::event::Action;
use vef_format::ids::Rank;
use vef_tests::{Mpi, installed, products, run, run_for, shared, vef};

/// Minutes, on a busy machine with fewer cores than ranks.
const LONG: Duration = Duration::from_secs(400);

/// Times in nanoseconds by function, and the whole as `run`.
type Times = BTreeMap<String, f64>;

/// Functions that poll. A run of failed polls in a row, with the short gaps between them, counts for the function of the first.
const POLLS: [&str; 7] = [
    "MPI_Iprobe",
    "MPI_Improbe",
    "MPI_Test",
    "MPI_Testall",
    "MPI_Testany",
    "MPI_Testsome",
    "MPI_Request_get_status",
];

/// `times` with one for all polls.
fn with_polls_together(mut times: Times) -> Times {
    let polls: Vec<f64> = POLLS.iter().filter_map(|poll| times.remove(*poll)).collect();
    if !polls.is_empty() {
        times.insert("polls".into(), polls.iter().sum());
    }
    times
}

/// What the profiler measured on a rank.
fn measured(directory: &Path, rank: u32) -> Times {
    let path = directory.join(format!("{rank}.txt"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let line = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        (fields[0].to_owned(), fields[2].parse().expect("a time"))
    };
    with_polls_together(text.lines().map(line).collect())
}

/// The table `name` of a trace: rows of fields.
fn table(trace: &Path, name: &str) -> Vec<Vec<String>> {
    let csv = run(vef().arg("stats").arg(trace).args(["--csv", name])).success().stdout();
    csv.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// The account of a rank in a trace: times by function, and the sum of all parts but start-up as `run`.
fn account(trace: &Path, rank: u32) -> Times {
    let mut times = Times::new();
    for row in table(trace, "function-ranks") {
        let [of, function, part, _, picos] = row.try_into().expect("five columns");
        if of == rank.to_string() && part != "start_up" {
            *times.entry(function).or_default() += picos.parse::<f64>().expect("a time") / 1e3;
        }
    }
    let row = table(trace, "times").into_iter().find(|row| row[0] == rank.to_string()).expect("the rank");
    // The rank, start-up, and the parts of the run.
    let run: f64 = row[2..].iter().map(|picos| picos.parse::<f64>().expect("a time") / 1e3).sum();
    times.insert("run".into(), run);
    with_polls_together(times)
}

/// For how long a rank had no core outside MPI, ns.
fn preempted(trace: &Path, rank: u32) -> f64 {
    let row = table(trace, "times").into_iter().find(|row| row[0] == rank.to_string()).expect("the rank");
    row.last().expect("a column").parse::<f64>().expect("a time") / 1e3
}

/// The account of each rank lies between what the profilers measured: that behind the recorder, and that in front of it. Of a run, the
/// one in front sees less. Whatever the machine does, their clocks are read in this order.
fn lies_between(trace: &Path, [front, behind]: [&Path; 2], told: &str) {
    for rank in 0..4 {
        let [front, behind] = [front, behind].map(|directory| measured(directory, rank));
        let account = account(trace, rank);
        assert_eq!(front.len(), behind.len(), "{told}, rank {rank}");
        let unknown = account.keys().find(|function| !front.contains_key(*function));
        assert_eq!(unknown, None, "{told}, rank {rank}: not measured");
        // Two clocks of a machine differ by less than this.
        let slack = behind["run"] / 1e4;
        for (function, &outer) in &front {
            let (time, inner) = (account.get(function).copied().unwrap_or(0.0), behind[function]);
            let (least, most) = match function.as_str() {
                "run" => (outer, inner),
                // The sleep between them is what the kernel leaves, which includes what a hypervisor takes.
                "polls" => (inner, outer + front["gaps"] + behind["run"] / 100.0),
                "gaps" => continue,
                // A core that is lost in a call of MPI's own work is not that work.
                _ => (inner - preempted(trace, rank), outer),
            };
            assert!(
                (least - slack..=most + slack).contains(&time),
                "{told}, rank {rank}, {function}: {time} ns, and {least} to {most} ns by the profilers"
            );
        }
    }
}

#[test]
fn an_account_is_what_an_independent_profiler_measures() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        for way in ["stencil", "idup", "probe", "cart", "threads"] {
            agrees(mpi, work.path(), &[&program.display().to_string(), way]);
        }
    }
}

/// The same of programs that are used: the `MPI_Send` of LAMMPS waits, too, and its `MPI_Cart_create` is long; HPCC polls; pw.x is
/// Fortran.
#[test]
fn an_account_of_real_programs_is_what_an_independent_profiler_measures() {
    let programs: [(&[&str], &[&str]); 3] = [
        (&["lammps/in.lj"], &["lmp", "-log", "none", "-in", "in.lj"]),
        (&["hpcc/hpccinf.txt"], &["hpcc"]),
        // 280 MB: not in scripts/deps.
        (&["qe/h2.in", "qe/H.UPF"], &["pw.x", "-ndiag", "1", "-in", "h2.in"]),
    ];
    for (inputs, program) in programs {
        if !installed(program[0]) {
            continue;
        }
        let Some(inputs) =
            inputs.iter().map(|input| shared(&format!("apps/{input}"))).collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let work = tempfile::tempdir().expect("a directory");
        for input in inputs {
            let name = input.file_name().expect("a file");
            std::fs::copy(&input, work.path().join(name)).expect("its copy");
        }
        agrees(Mpi::OpenMpi, work.path(), program);
    }
}

/// Runs a program by four ranks between two profilers: its account lies between theirs, and its parts are the captured time of each
/// rank, to the nanosecond.
fn agrees(mpi: Mpi, work: &Path, program: &[&str]) {
    let way = program.last().expect("a word");
    let place = |name: &str| work.join(format!("{way}-{name}"));
    let [capture, trace] = ["capture", "trace.vefx"].map(place);
    let mut command = vef();
    let profiler = |name: &str, variable: &str| {
        let macros = format!("-DTIMES=\"{variable}\"");
        let library = mpi.compile(work, name, &["-shared", "-fPIC", &macros, "tests/c/timer.c", "-ldl"]);
        let times = place(variable);
        std::fs::create_dir(&times).expect("a directory");
        (library, times)
    };
    let [(front, outer), (behind, inner)] = [profiler("front.so", "FRONT"), profiler("behind.so", "BEHIND")];
    let list = [&front, &products().join("libvef_interpose.so"), &behind]
        .map(|library| library.display().to_string());
    command
        .env("OMP_NUM_THREADS", "1")
        .env("FRONT", &outer)
        .env("BEHIND", &inner)
        .env("LD_PRELOAD", list.join(":"));
    command
        .current_dir(work)
        .args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"])
        .arg(&capture);
    run_for(command.arg("--").args(program), LONG).success();
    run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
    same_as_the_profile(&capture, &trace);
    for (rank, run) in captured(&capture).into_iter().enumerate() {
        let account = account(&trace, rank as u32)["run"];
        // A rank counts for each of its threads that makes calls.
        let threads = (account / run).round();
        let several = *way == "threads" && rank == 0;
        let told = format!("{mpi:?} {way}, rank {rank}: {account} of {run} ns");
        assert!(threads * run == account && (threads > 1.0) == several, "{told}");
    }
    // Of several threads the profiler counts none apart.
    if *way != "threads" {
        lies_between(&trace, [&outer, &inner], &format!("{mpi:?} {way}"));
    }
}

/// Nanoseconds from the return of `MPI_Init` to the call of `MPI_Finalize` by the records of each rank.
fn captured(directory: &Path) -> Vec<f64> {
    let capture = Capture::open(directory).expect("a capture");
    let of_rank = |rank| {
        let (mut begin, mut end) = (0, 0);
        let mut events = capture.events(Rank(rank)).expect("events");
        let read = events.each(|event| {
            match event.action {
                Action::Init => begin = event.end.0,
                Action::Finalize => end = event.start.0,
                _ => {}
            }
            Ok::<_, vef_format::capture::CaptureError>(())
        });
        read.expect("events");
        (end - begin) as f64
    };
    (0..capture.tasks()).map(of_rank).collect()
}

/// `vef profile` reads the capture by itself, and gives the same account.
fn same_as_the_profile(capture: &Path, trace: &Path) {
    let json = |command: &mut std::process::Command| -> Value {
        serde_json::from_str(&run(command).success().stdout()).expect("JSON")
    };
    let profile = json(vef().args(["profile", "--json"]).arg(capture));
    let stats = json(vef().args(["stats", "--json"]).arg(trace));
    assert_eq!(profile["schema"], "vef-profile/1");
    assert!(profile["spent"]["parts"].as_array().expect("parts").len() > 1);
    assert_eq!(profile["spent"], stats["spent"]);
    // One figure for a function, wherever it is shown.
    let mut spent = BTreeMap::<&str, u64>::new();
    for row in stats["spent"]["functions"].as_array().expect("functions") {
        let time = row["time_ps"].as_u64().expect("a time");
        *spent.entry(row["function"].as_str().expect("a name")).or_default() += time / 1000;
    }
    for call in profile["calls"].as_array().expect("calls") {
        let name = call["name"].as_str().expect("a name");
        assert!(
            ["MPI_Init", "MPI_Init_thread", "MPI_Finalize"].contains(&name) || call["ns"] == spent[name],
            "{call} {spent:?}"
        );
    }
    let mut shares =
        profile["spent"]["parts"].as_array().into_iter().flatten().filter_map(|part| part["share"].as_f64());
    assert!(shares.all(|share| (0.0..=1.0).contains(&share)));
}

/// Time outside MPI is what the stencil's ranks sleep, rank 3 three times as long as the others, which wait for it.
#[test]
fn waiting_is_told_from_work() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "seconds", &["tests/c/seconds.c", "-lpthread"]);
        let [capture, trace] = ["capture", "t.vefx"].map(|name| work.path().join(name));
        let mut command = vef();
        command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        command.arg("--mix").arg(&trace).arg("--").arg(&program).arg("stencil");
        let printed = run_for(&mut command, Duration::from_secs(200)).success().stdout();
        let slept: f64 = printed.lines().filter_map(|line| line.parse::<f64>().ok()).sum::<f64>() / 1e6;
        let rows = table(&trace, "times");
        let sum = |column: usize| -> f64 {
            rows.iter().map(|row| row[column].parse::<f64>().expect("a time") / 1e9).sum()
        };
        let (outside, message, preempted) = (sum(2), sum(4), sum(12));
        let told = format!("{mpi:?}: {slept} ms, {rows:?}");
        // A rank that wakes up may wait for a core.
        assert!(slept >= 240.0 && outside >= 240.0 && outside + preempted >= 0.99 * slept, "{told}");
        assert!(message > 0.0 && outside - slept < 0.05 * (outside + message), "{told}");
    }
}

/// Where ranks share cores, computing is what it takes on a core: each rank of `tests/c/shared_cores.c` prints that.
#[test]
fn times_without_a_core_are_no_computing() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if cores > 8 {
        return skipping::skipped(format_args!(
            "times_without_a_core: {cores} cores, too many for more ranks"
        ));
    }
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "shared_cores", &["tests/c/shared_cores.c"]);
        let [capture, trace, kept] = ["capture", "t.vef", "kept.vef"].map(|name| work.path().join(name));
        let ranks = cores + 2;
        let mut command = vef();
        command.args(["run", "-n", &ranks.to_string(), "--mpirun", &mpi.launcher().join(" "), "-o"]);
        let printed = run_for(command.arg(&capture).arg("--").arg(&program), LONG).success().stdout();
        run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
        run(vef().args(["mix", "--keep-preempted", "-i"]).arg(&capture).arg("-o").arg(&kept)).success();
        let [computed, kept] = [&trace, &kept].map(|trace| computing(trace));
        let used = printed.lines().filter_map(|line| line.trim().split_once(' '));
        let used: Vec<(usize, f64)> = used
            .map(|(rank, used)| (rank.parse().expect("a rank"), used.parse().expect("seconds")))
            .collect();
        assert_eq!(used.len(), ranks, "{mpi:?}: {printed}");
        for &(rank, used) in &used {
            let computed = computed[rank];
            // What it takes to lose a core and to get it back is in no time of the scheduler's.
            assert!(
                (0.97 * used..1.3 * used + 0.02).contains(&computed),
                "{mpi:?}, rank {rank}: {used} {computed}"
            );
        }
        run(vef().args(["text", "--times"]).arg(&capture)).success();
        for &(rank, used) in &used {
            let text = std::fs::read_to_string(capture.join(format!("ti_traces/ti_trace{rank}.txt")));
            let text = text.expect("a text trace");
            let computed =
                text.lines().filter_map(|line| line.split_once(" compute ")?.1.parse::<f64>().ok());
            let computed = computed.sum::<f64>() / 1e9;
            assert!(
                (0.97 * used..1.3 * used + 0.02).contains(&computed),
                "{mpi:?}, text of rank {rank}: {used} {computed}"
            );
        }
        let all = |times: &[f64]| times.iter().sum::<f64>();
        assert!(all(&kept) > 1.4 * all(&computed), "{mpi:?}: {kept:?} {computed:?}");
    }
}

/// Seconds that each rank computes in a replay.
fn computing(trace: &Path) -> Vec<f64> {
    let json = run(vef().args(["sim", "--json"]).arg(trace)).success().stdout();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let ranks = json["jobs"][0]["ranks"].as_array().expect("ranks");
    ranks.iter().map(|rank| rank["computing_ps"].as_f64().expect("a time") / 1e12).collect()
}

/// Calls in a phase belong to the innermost one, and the phases sum to the run.
#[test]
fn phases_of_a_profile_sum_to_the_run() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "phases", &["tests/c/phases.c"]);
        let mut command = vef();
        command.current_dir(work.path()).args([
            "run",
            "-n",
            "2",
            "--mpirun",
            &mpi.launcher().join(" "),
            "-o",
            "out",
            "--",
        ]);
        run(command.arg(&program).arg("5")).success();
        let json = run(vef().args(["profile", "--json"]).arg(work.path().join("out"))).success().stdout();
        let profile: Value = serde_json::from_str(&json).expect("JSON");
        let phases: BTreeMap<&str, &Value> = profile["phases"]
            .as_array()
            .expect("phases")
            .iter()
            .map(|phase| (phase["name"].as_str().expect("a name"), phase))
            .collect();
        assert_eq!(phases.keys().copied().collect::<Vec<_>>(), ["", "inner", "setup", "solve"]);
        let entries = |name: &str| phases[name]["entries"].as_u64().expect("a count");
        assert_eq!([entries("setup"), entries("solve"), entries("inner")], [2, 10, 10]);
        let ns = |phase: &Value| phase["ns"].as_u64().expect("a time");
        assert_eq!(
            phases.values().map(|phase| ns(phase)).sum::<u64>(),
            profile["wall_ns"].as_u64().expect("a time")
        );
        let time = |name: &str, part: &str| phases[name]["times_ns"][part].as_u64().expect("a time");
        assert!(
            time("setup", "communicator") > 0 && time("solve", "message") > 0 && time("inner", "own") > 0
        );
        assert_eq!(
            [time("inner", "message"), time("setup", "collective"), time("inner", "communicator")],
            [0, 0, 0]
        );
    }
}
