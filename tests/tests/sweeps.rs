//! `vef sim` over many points: the table is that of single runs, what is there is not run again, processes share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_tests::{Mpi, number, run, vef};

fn trace(work: &Path) -> PathBuf {
    let trace = work.join("halo.vefx");
    run(vef().args(["gen", "halo2d", "-n", "16", "--iterations", "5", "-o"]).arg(&trace)).success();
    trace
}

/// `vef sim` of a trace.
fn sim(trace: &Path, options: &[&str], more: &[&str]) -> Command {
    let mut command = vef();
    command.arg("sim").arg(trace).args(options).args(more);
    command
}

fn json(command: &mut Command) -> serde_json::Value {
    let said = run(command).success().stdout();
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

const SWEEP: [&str; 4] = ["--sweep", "topology=torus:4x4|fattree:4x4x2", "--sweep", "bandwidth=10G,100G"];

#[test]
fn a_table_is_that_of_single_runs() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let points = work.path().join("points");
    let sweep = || {
        let mut command = vef();
        command.arg("sim").arg(&trace).args(SWEEP).arg("-o").arg(&points);
        command
    };
    let table = json(sweep().arg("--json"));
    assert_eq!(table["schema"], "vef-sweep/2");
    let rows = table["points"].as_array().expect("points").clone();
    assert_eq!(rows.len(), 4);
    for row in &rows {
        let value = |option: &str| row["settings"][option].as_str().expect("a value").to_owned();
        let bandwidth = format!("{}bit/s", value("bandwidth"));
        let mut single = vef();
        single.arg("sim").arg(&trace).args([
            "--json",
            "--topology",
            &value("topology"),
            "--bandwidth",
            &bandwidth,
        ]);
        let single = json(&mut single);
        for key in ["runtime_ps", "ideal", "latency", "links", "kinds", "sizes", "network"] {
            assert_eq!(row["report"][key], single[key], "{key}");
        }
    }
    let times = |rows: &[serde_json::Value]| -> Vec<u64> {
        rows.iter().map(|row| number(&row["report"], "runtime_ps")).collect()
    };
    let csv = run(sweep().arg("--csv")).success().stdout();
    let of_csv: Vec<u64> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(2).and_then(|field| field.parse().ok()).expect("a time"))
        .collect();
    assert_eq!(of_csv, times(&rows));
    assert!(csv.starts_with("topology,bandwidth,runtime_ps,ideal_runtime_ps,slowdown,wait_mean_ps,turnaround_mean_ps,messages,"), "{csv}");

    // Interrupted after two points: these are taken as they are, the others are run.
    let mut kept: Vec<PathBuf> =
        fs::read_dir(&points).expect("points").map(|entry| entry.expect("an entry").path()).collect();
    kept.sort();
    assert_eq!(kept.len(), 4, "{kept:?}");
    kept.drain(..2).for_each(|path| fs::remove_file(path).expect("a point"));
    for path in &kept {
        let mut point: serde_json::Value =
            serde_json::from_slice(&fs::read(path).expect("a point")).expect("JSON");
        point["report"]["runtime_ps"] = 12345.into();
        fs::write(path, point.to_string()).expect("a point");
    }
    let again = json(sweep().arg("--json"));
    let again = times(again["points"].as_array().expect("points"));
    assert_eq!(again.iter().filter(|time| **time == 12345).count(), 2);
    for (then, time) in again.iter().zip(times(&rows)) {
        assert!([12345, time].contains(then));
    }
    // Of other settings the directory has nothing.
    let other = json(sweep().args(["--json", "--no-ideal"]));
    assert_eq!(times(other["points"].as_array().expect("points")), times(&rows));
}

/// With `--waits`, the table says for what each point waits most: the cause with the greatest sum of a single run.
#[test]
fn a_sweep_says_what_is_waited_for() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let sim =
        |options: &[&str]| sim(&trace, &["--topology", "fattree:4x4x2", "--no-ideal", "--waits"], options);
    let table = run(sim(&["--sweep", "bandwidth=10M,100G"]).arg("--csv")).success().stdout();
    let mut rows = table.lines().map(|row| row.split(',').collect::<Vec<_>>());
    let head = rows.next().expect("a head");
    let value = |row: &[&str], name| {
        row[head.iter().position(|column| *column == name).expect("a column")].to_owned()
    };
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), 2);
    for (row, bandwidth) in rows.iter().zip(["10M", "100G"]) {
        let alone = json(sim(&["--bandwidth", bandwidth]).arg("--json"));
        let mut sums = std::collections::BTreeMap::new();
        for place in alone["waits"]["places"].as_array().expect("places") {
            let cause = place["cause"].as_str().expect("a cause");
            *sums.entry(cause.to_owned()).or_insert(0.0) += place["time_ps"].as_f64().expect("a time");
        }
        let all: f64 = sums.values().sum();
        let (cause, most) = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("a cause");
        assert!(value(row, "waited_most").replace(' ', "_").starts_with(&cause), "{row:?}: {cause}");
        let share: f64 = value(row, "waited_most_share").parse().expect("a number");
        assert!((share - most / all).abs() < 1e-4, "{row:?}: {}", most / all);
    }
    let shown = run(&mut sim(&["--sweep", "bandwidth=10M,100G"])).success().stdout();
    assert!(shown.contains("busiest link  waits most for"), "{shown}");
}

/// A point is the run with that option, of any model, also of an option that has no value.
#[test]
fn every_option_can_be_swept() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let sim = |options: &[&str]| {
        json(&mut sim(&trace, &["--topology", "torus:4x4", "--no-ideal", "--json"], options))
    };
    for (model, option, values) in [
        ("packet", "speedup", "1|2.5"),
        ("packet", "packet-size", "1KiB|4KiB"),
        ("loggp", "loggp", "L=1000,o=0|L=2000,g=10"),
        ("flow", "bandwidth", "10G|20G"),
        ("flow", "connections", "message|pair"),
        ("cut-through", "send-completion", "sent|rendezvous:1000|rendezvous-in-calls:1000"),
        ("cut-through", "seed", "4|18446744073709551615"),
    ] {
        let table = sim(&["--model", model, "--sweep", &format!("{option}={values}")]);
        let points = table["points"].as_array().expect("points").clone();
        for (point, value) in points.iter().zip(values.split('|')) {
            let alone = sim(&["--model", model, &format!("--{option}={value}")]);
            assert!(number(&alone, "runtime_ps") > 0);
            assert_eq!(point["report"]["runtime_ps"], alone["runtime_ps"], "{option}={value}");
            assert_eq!(point["settings"][option], value);
        }
        assert_eq!(points.len(), values.split('|').count());
    }
    let compat = sim(&["--model", "loggp", "--sweep", "compat=true,false"]);
    assert_eq!(compat["points"].as_array().map(Vec::len), Some(2));
    for (wrong, said) in [("compat=maybe", "write true or false"), ("links=true", "cannot be swept")] {
        let refused = run(vef().arg("sim").arg(&trace).args(["--sweep", wrong])).exited(2).stderr();
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn processes_share_the_points() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let mut alone = vef();
    let table = run(alone.arg("sim").arg(&trace).args(SWEEP).arg("--csv")).success().stdout();
    for mpi in Mpi::installed() {
        let points = work.path().join(format!("{mpi:?}"));
        let mut command = Command::new(mpi.launcher()[0]);
        command.args(&mpi.launcher()[1..]).args(["-n", "3"]).arg(vef().get_program());
        command.arg("sim").arg(&trace).args(SWEEP).arg("--csv").arg("-o").arg(&points);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        assert_eq!(run(&mut command).success().stdout(), table, "{mpi:?}");
        let left = fs::read_dir(&points).expect("points").count();
        assert_eq!(left, 4, "{mpi:?}: lock files are left");
    }
}

#[test]
fn nonsense_is_refused_in_one_line() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    for (arguments, part) in [
        (&["--sweep", "colour=red"][..], "no option is called --colour"),
        (&["--sweep", "bandwith=10G"], "no option is called --bandwith; did you mean --bandwidth?"),
        (&["--sweep", "foo=1"], "no option is called --foo"),
        (&["--sweep", "topology=tours:4x4|torus:4x4"], "did you mean torus?"),
        (&["--sweep", "bandwidth"], "OPTION=VALUE"),
        (&["--sweep", "bandwidth=10G,10G"], "10G is repeated"),
        (&["--sweep", "bandwidth=10G", "--sweep", "bandwidth=20G"], "given twice"),
        (&["--sweep", "bandwidth=fast,10G"], "bandwidth=fast"),
        (&["--sweep", "topology=torus:4x4|ring:5"], "topology=ring:5"),
        (&["--sweep", "model=packet,loggq"], "model=loggq"),
        (&["--sweep", "topology=torus:4x4|torus:2x2"], "1 of 2 points without a result; topology=torus:2x2"),
        (&["--csv", "colours"], "possible values"),
        (&["--csv"], "only a sweep has a table of points"),
        (&["--draw", "/nowhere/out.svg"], "/nowhere"),
        (&["-o", "points"], "--sweep"),
        (&["--model", "loggp", "--send-completion", "sent"], "--loggp S=BYTES"),
        (&["--vcs", "4", "--weights", "latency"], "--weights, --vcs: no effect with --model cut-through"),
        (&["--model", "flow", "--packet-size", "4KiB"], "--packet-size: no effect with --model flow"),
        (&["--model", "packet", "--rendezvous", "handshake"], "--rendezvous: no effect with --model packet"),
        (&["--model", "loggp", "--bandwidth", "1Gbit/s"], "--bandwidth: no effect with --model loggp"),
        (
            &["--topology", "torus:4x4", "--global-latency", "1us"],
            "--global-latency: no effect with --topology torus:4x4",
        ),
        (&["--model", "loggp", "--csv", "time"], "model loggp has no links"),
        (&["-j", "2"], "-j: no effect with --model cut-through"),
        (
            &["--model", "packet", "--congestion", "window:bdp", "-j", "2"],
            "-j: no effect with --congestion or --lossy",
        ),
        (&["--model", "packet", "--retransmit", "2ms"], "--retransmit needs --lossy"),
        (&["--model", "packet", "--retransmit", "1ms"], "--retransmit needs --lossy"),
        (&["--sweep", "retransmit=1ms,2ms", "--model", "packet"], "--retransmit needs --lossy"),
        (&["--sweep", "latency=1us,2us", "--csv", "ranks"], "--csv ranks: a sweep has one table"),
        (&["--sweep", "latency=1us,2us", "--plot", "times.png"], "--plot writes SVG"),
        (&["--sweep", "preset=none,ndr", "--preset", "hdr"], "--preset is given beside the sweep"),
        (&["--repeat", "0=4294967296"], "with a number from 1 to 4294967295"),
        (&["--collectives", "offload:1us,comms=99"], "no trace has a communicator of that number"),
        (
            &["--model", "packet", "--buffers", "output", "--lossy", "64KiB", "--retransmit", "1ps"],
            "a --retransmit of 100ns or more",
        ),
        (&["--sweep", "model=flow,latency", "--vcs", "4"], "--vcs: no effect at any point of the sweep"),
        (&["--sweep", "vcs=2,4"], "--vcs: no effect at any point of the sweep"),
        (&["--sweep", "weights=equal,latency"], "--weights: no effect at any point of the sweep"),
        (
            &["--model", "loggp", "--sweep", "routing=minimal,valiant"],
            "--routing: no effect at any point of the sweep",
        ),
    ] {
        let refused = run(vef().arg("sim").arg(&trace).args(arguments)).exited(2);
        assert!(refused.stderr().contains(part), "{arguments:?}: {}", refused.stderr());
        assert!(refused.stderr().matches("--sweep").count() <= 1, "{}", refused.stderr());
    }
}

/// In a ring a cut between iterations costs as much at another one: an iteration is a twentieth of the run all the same.
#[test]
fn iterations_of_a_ring_are_as_long_as_they_are() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("ring.vefx");
    run(vef().args(["gen", "ring", "-n", "4", "--iterations", "20", "-o"]).arg(&trace)).success();
    let runtime =
        |options: &[&str]| number(&json(&mut sim(&trace, &["--no-ideal", "--json"], options)), "runtime_ps");
    let whole = runtime(&[]);
    for (part, iterations) in [("2", 1), ("3", 1), ("10", 1), ("5-9", 5)] {
        assert_eq!(20 * runtime(&[&format!("--iterations={part}")]), iterations * whole, "{part}");
    }
}

/// What is off by default is so in a sweep, too.
#[test]
fn none_leaves_an_option_out() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let runtime = |arguments: &[&str]| {
        let result = json(&mut sim(&trace, &["--no-ideal", "--json"], arguments));
        result["points"][0]
            .get("report")
            .map_or_else(|| number(&result, "runtime_ps"), |report| number(report, "runtime_ps"))
    };
    let plain = runtime(&[]);
    for swept in ["preset=none,ndr", "fail=none,0%:1", "calibration=none", "phase=none", "iterations=none,2"]
    {
        assert_eq!(runtime(&["--sweep", swept]), plain, "{swept}");
    }
}

/// Means over seeds, with intervals by Student's t of two degrees of freedom: 4.303 standard deviations / √3.
#[test]
fn seeds_have_a_mean_and_an_interval() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let expected = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / 3.0;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        (mean, 4.3027 * (squares / 2.0 / 3.0).sqrt())
    };
    let is_near = |value: &serde_json::Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!((value - expected).abs() <= 1e-4 * expected, "{value} instead of {expected}");
    };
    let options = ["--topology", "torus:4x8", "--placement", "random", "--sweep", "seed=5..7", "--no-ideal"];
    let mut sweep = vef();
    let sweep =
        json(sweep.arg("sim").arg(&trace).args(options).args(["--sweep", "latency=1us,2us", "--json"]));
    let points = sweep["points"].as_array().expect("points");
    let over_seeds = sweep["over_seeds"].as_array().expect("means");
    assert_eq!((points.len(), over_seeds.len()), (6, 2));
    for means in over_seeds {
        let latency = &means["settings"]["latency"];
        let of_latency = points.iter().filter(|point| point["settings"]["latency"] == *latency);
        let times: Vec<f64> = of_latency.map(|point| number(&point["report"], "runtime_ps") as f64).collect();
        let (mean, half_width) = expected(&times);
        assert!(half_width > 0.0, "{times:?}");
        assert_eq!(means["seeds"], 3);
        is_near(&means["runtime_ps"]["mean"], mean);
        is_near(&means["runtime_ps"]["half_width"], half_width);
    }
    let text = run(vef().arg("sim").arg(&trace).args(options)).success().stdout();
    assert!(text.contains("\nover 3 seeds: run time ") && text.contains(" (95 %)"), "{text}");

    let traffic = |options: &[&str]| {
        let mut command = vef();
        json(
            command
                .args(["traffic", "--topology", "torus:4x4", "--load", "0.4", "--window", "300", "--json"])
                .args(options),
        )
    };
    let point = |seed: &str| traffic(&["--seed", seed])["points"][0].clone();
    let alone = ["5", "6", "7"].map(point);
    let mut all = traffic(&["--seed", "5", "--seeds", "3"])["points"][0].clone();
    let over_seeds = all.as_object_mut().expect("a point").remove("over_seeds").expect("means");
    assert_eq!(all, alone[0]);
    let latencies = alone.each_ref().map(|point| number(&point["latency"], "mean_ps") as f64);
    let accepted = alone.each_ref().map(|point| point["accepted"].as_f64().expect("a load"));
    for (name, values) in [("latency_mean_ps", latencies), ("accepted", accepted)] {
        let (mean, half_width) = expected(&values);
        is_near(&over_seeds[name]["mean"], mean);
        is_near(&over_seeds[name]["half_width"], half_width);
    }
}

/// DCQCN marks at random.
#[test]
fn random_marks_depend_on_the_seed() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("incast.vefx");
    let generate =
        ["gen", "incast", "-n", "8", "--iterations", "1", "--bytes", "4MiB", "--compute", "0us", "-o"];
    run(vef().args(generate).arg(&trace)).success();
    let runtime = |seed: &str| {
        let mut command = vef();
        command.arg("sim").arg(&trace).args([
            "--no-ideal",
            "--json",
            "--model",
            "packet",
            "--buffers",
            "output",
        ]);
        command.args(["--buffer", "1MB", "--congestion", "dcqcn", "--seed", seed]);
        number(&json(&mut command), "runtime_ps")
    };
    assert_eq!(runtime("1"), runtime("1"));
    assert_ne!(runtime("1"), runtime("2"));
}

#[test]
fn a_network_is_drawn() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let picture = work.path().join("out.svg");
    run(vef().arg("sim").arg(&trace).args(["--topology", "fattree:4x4x2", "--draw"]).arg(&picture)).success();
    let svg = fs::read_to_string(&picture).expect("a picture");
    // 16 nodes' cables and 4 × 2 between the switches; what the links did is written at each.
    assert_eq!(svg.matches("<path").count(), 16 + 8);
    assert!(svg.starts_with("<svg") && svg.contains("leaf0 – spine1: "), "{svg}");
}

#[test]
fn computing_times_are_scaled_and_drawn_again() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("halo.vefx");
    let shape = ["gen", "halo2d", "-n", "4", "--iterations", "60", "--noise", "0.3", "-o"];
    run(vef().args(shape).arg(&trace)).success();
    let sim = |options: &[&str]| {
        let mut command = vef();
        command.arg("sim").arg(&trace).args(options);
        command
    };
    let computing = |options: &[&str]| -> Vec<u64> {
        let report = json(sim(options).arg("--json"));
        let ranks = report["jobs"][0]["ranks"].as_array().expect("ranks").clone();
        ranks.iter().map(|rank| number(rank, "computing_ps")).collect()
    };
    let captured = computing(&[]);
    assert!(captured.iter().all(|&time| time > 0), "{captured:?}");
    assert_eq!(computing(&["--compute-scale", "0"]), [0; 4]);
    let by_rank = [2 * captured[0], 2 * captured[1], captured[2], 0];
    assert_eq!(computing(&["--compute-scale", "0-1=2,3=0"]), by_rank);
    let file = work.path().join("factors");
    fs::write(&file, "# slow\n0-1=2\n3=0 # fast\n").expect("a file");
    let file = file.to_str().expect("a path");
    assert_eq!(computing(&["--compute-scale", file]), by_rank);
    for (text, said) in
        [(&b"0=1\n1=x\n"[..], ":2: compute scale \"1=x\""), (b"0=1\n\n\x7fELF\xff", ":3: not a text")]
    {
        fs::write(file, text).expect("a file");
        let refused = run(&mut sim(&["--compute-scale", file])).exited(2).stderr();
        assert!(refused.contains(&format!("{file}{said}")), "{refused}");
    }
    let refused = run(&mut sim(&["--compute-scale", "4=2"])).exited(2).stderr();
    assert!(refused.contains("the trace has 4 tasks, no rank 4"), "{refused}");

    // A rank computes once per iteration: 59 times behind a record, at one place.
    let removed = json(sim(&["--compute-noise", "removed", "--json"]).arg("--no-ideal"));
    assert!(number(&removed["jobs"][0]["computing"]["noise"], "replaced") >= 4 * 59, "{removed}");
    let seeds = |jobs: &str| {
        let table =
            json(&mut sim(&["--sweep", "seed=1,2,3", "--compute-noise", "resampled", "--json", "-j", jobs]));
        let points = table["points"].as_array().expect("points").clone();
        points.iter().map(|point| number(&point["report"], "runtime_ps")).collect::<Vec<u64>>()
    };
    let times = seeds("1");
    assert_eq!(seeds("3"), times);
    assert!(times[0] != times[1] && times[1] != times[2], "{times:?}");
    let single = json(&mut sim(&["--seed", "2", "--compute-noise", "resampled", "--json"]));
    assert_eq!(number(&single, "runtime_ps"), times[1]);
    let refused = run(&mut sim(&["--compute-noise", "gaussian"])).exited(2).stderr();
    assert!(refused.contains("removed:QUANTILE"), "{refused}");
}

/// Algorithms of collectives, the rules by which Open MPI uses the fastest, and what would have no effect.
#[test]
fn collectives_are_tuned() {
    let work = tempfile::tempdir().expect("a directory");
    let (trace, rules) = (work.path().join("halo.vefx"), work.path().join("rules"));
    let generated = ["gen", "halo2d", "-n", "16", "--iterations", "1", "-o"];
    run(vef().args(generated).arg(&trace)).success();
    let tune = |options: &[&str]| {
        run(vef().arg("sim").arg(&trace).args(["--topology", "fattree:4x4x2", "--tune"]).args(options))
    };
    let csv = tune(&["barrier,allreduce,barrier", "--csv", "--tuned", rules.to_str().expect("a path")])
        .success()
        .stdout();
    assert!(csv.starts_with("operation,bytes,library,algorithm,time_ps,fastest\n"), "{csv}");
    let fastest =
        csv.lines().filter(|line| line.starts_with("allreduce,2097152,openmpi,") && line.ends_with('*'));
    assert_eq!(fastest.map(|line| line.split(',').nth(3)).collect::<Vec<_>>(), [Some("ring")], "{csv}");
    let written = std::fs::read_to_string(rules.join("openmpi.rules")).expect("rules");
    assert!(
        written.starts_with("2 # collectives\n2 # allreduce\n1 # communicator sizes\n16 # ranks\n"),
        "{written}"
    );
    for (options, error) in [
        (&["scan"][..], "write allreduce, alltoall, allgather, bcast, reduce, barrier"),
        (
            &["barrier", "--background", "uniform@0.2", "--waits"],
            "--background, --waits: no effect with --tune",
        ),
        (&["barrier", "--cost", "prices.toml"], "cannot be used with"),
        (&["barrier", "--csv", "jobs"], "--tune has one table; write --csv alone"),
    ] {
        let said = tune(options).exited(2).stderr();
        assert!(said.contains(error), "{said}");
    }
}

/// MPICH sends by the rules of `mpich.json`, as recorded in its own sends.
#[test]
fn mpich_uses_what_is_tuned() {
    if !Mpi::installed().contains(&Mpi::Mpich) {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    let (trace, rules) = (work.path().join("six.vefx"), work.path().join("rules"));
    run(vef().args(["gen", "halo2d", "-n", "6", "--iterations", "1", "-o"]).arg(&trace)).success();
    let file = run(Command::new("mpicc.mpich").arg("-print-file-name=libmpich.so")).success().stdout();
    let tune = |library: &str| {
        let mut tune = sim(&trace, &["--tune", "allreduce,barrier", "--mpich-library", library], &[]);
        run(tune.arg("--tuned").arg(&rules))
    };
    let refused = tune("/bin/sh").exited(2).stderr();
    assert!(refused.contains("/bin/sh: no rules for collectives"), "{refused}");
    tune(file.trim()).success();
    let sent = |rules: Option<&Path>| {
        let record = vef_tests::root().join("collectives/tests/record/record.sh");
        let mut record = Command::new(record);
        record.args(["mpich", "6", "6000"]);
        rules.map(|rules| record.env("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", rules));
        let lines = run(&mut record).success().stdout();
        let allreduce = lines.lines().find(|line| line.starts_with("allreduce 1500 "));
        // Number and bytes of the messages.
        allreduce.map(|line| line.split(' ').skip(4).take(2).collect::<Vec<_>>().join(" "))
    };
    // Reduce-scatter and allgather among four, and two outside; recursive doubling sends the whole vector.
    assert_eq!(sent(None).as_deref(), Some("20 15000"));
    assert_eq!(sent(Some(&rules.join("mpich.json"))).as_deref(), Some("12 18000"));
}

#[test]
fn results_conform_to_their_schema() {
    let work = tempfile::tempdir().expect("a directory");
    let halo = work.path().join("halo.vefx");
    run(vef().args(["gen", "halo2d", "-n", "16", "--iterations", "60", "-o"]).arg(&halo)).success();
    // Collectives, and the ends of MPI_Init.
    let demo = work.path().join("demo.vefx");
    run(vef().args(["mix", "-i"]).arg(vef_tests::root().join("cli/demo/capture")).arg("-o").arg(&demo))
        .success();
    let observed = &["--links", "--critical-path"][..];
    let noise = &["--compute-noise", "resampled", "--compute-scale", "0=0.5"][..];
    let mut all = vec![
        (&halo, ["--no-ideal", "--same-node", "100ns,100Gbit/s", "--placement", "block:2"].to_vec()),
        (&halo, noise.to_vec()),
        (&demo, [observed, &["--from-launch"]].concat()),
    ];
    for model in ["cut-through", "store-and-forward", "latency", "packet", "flow"] {
        all.push((&demo, [observed, &["--model", model]].concat()));
        all.push((&halo, vec!["--model", model, "--topology", "torus:4x4"]));
    }
    all.push((&halo, vec!["--model", "loggp"]));
    let result = work.path().join("result.json");
    for (trace, options) in all {
        let said = run(vef().arg("sim").arg(trace).args(&options).arg("--json")).success().stdout();
        fs::write(&result, said).expect("a result");
        let spoils = [
            "r.update(complete=False)",
            "r['jobs'][0].pop('finish')",
            "r['network'].update(new=1)",
            "r.update(runtime_ps=0.5)",
            "r['links'].update(all=[{}])",
            "r.update(critical_path={})",
            "r['kinds'][0].update(kind='shout')",
        ];
        vef_tests::schema::conforms("vef-sim-2", &result, &spoils);
    }
}

#[test]
fn threads_do_not_change_a_result() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("halo.vefx");
    run(vef().args(["gen", "halo2d", "-n", "1600", "--iterations", "2", "--noise", "0.3", "-o"]).arg(&trace))
        .success();
    let network = ["--model", "packet", "--topology", "torus:40x40", "--routing", "adaptive", "--json", "-j"];
    let report = |threads: &str| {
        let mut report = json(vef().arg("sim").arg(&trace).args(network).arg(threads));
        let performance =
            report.as_object_mut().and_then(|keys| keys.remove("performance")).expect("a speed");
        (report, number(&performance, "events"))
    };
    let one = report("1");
    assert!(number(&one.0, "messages") == 12_800 && one.1 > 12_800, "{one:?}");
    assert_eq!(one, report("3"));
}

/// A measurement of noise, and figures that the run does not use, are named; of a sweep once.
#[test]
fn a_calibration_that_does_not_apply_is_named() {
    let work = tempfile::tempdir().expect("a directory");
    let (trace, file) = (trace(work.path()), work.path().join("noise.toml"));
    let estimate = |name: &str| format!("[intra.{name}]\nvalue = 1.0\nlow = 1.0\nhigh = 1.0\n");
    let estimates =
        ["latency_ns", "send_overhead_ns", "receive_overhead_ns", "gap_ns", "ns_per_byte", "burst_bytes"];
    let head = "schema = \"vef-calibration-2\"\nmpi = \"\"\nmachine = \"\"\nreduction_ns_per_byte = 0.0\n";
    let intra = "[intra]\nduplex = 1.0\nresidual = [1.0, 3.5]\nsegments = []\n";
    let text: String = [head, intra].into_iter().map(str::to_owned).chain(estimates.map(estimate)).collect();
    fs::write(&file, text).expect("written");
    let warned = |options: &[&str]| {
        let mut command = vef();
        command.arg("sim").arg(&trace).arg("--calibration").arg(&file).args(options);
        let said = run(&mut command).success().stderr();
        let doubts = said.lines().filter(|line| line.contains("within a node: the figures miss")).count();
        assert_eq!(doubts, 1, "{said}");
        said.lines().filter(|line| line.contains("no [inter]")).count()
    };
    assert_eq!(warned(&[]), 1);
    assert_eq!(warned(&["--placement", "block:4"]), 1);
    assert_eq!(warned(&["--placement", "block:16"]), 0);
    assert_eq!(warned(&SWEEP), 1);
}

/// A calibration replaces the defaults of options, not what is given, be it the default; and so when a result is run again.
#[test]
fn a_calibration_leaves_what_is_given() {
    let work = tempfile::tempdir().expect("a directory");
    let at = |name: &str| work.path().join(name);
    let trace = trace(work.path());
    let estimates = [
        ("latency_ns", 1000.0),
        ("send_overhead_ns", 300.0),
        ("receive_overhead_ns", 200.0),
        ("gap_ns", 500.0),
        ("ns_per_byte", 1.0),
        ("burst_bytes", 0.0),
    ];
    let estimate = |(name, value): (&str, f64)| {
        format!("[inter.{name}]\nvalue = {value:.1}\nlow = {value:.1}\nhigh = {value:.1}\n")
    };
    let head = "schema = \"vef-calibration-2\"\nmpi = \"\"\nmachine = \"\"\nreduction_ns_per_byte = 0.0\n\
        [inter]\nduplex = 1.0\neager_limit_bytes = 4000\nresidual = [0.0, 0.0]\nsegments = []\n";
    fs::write(at("c.toml"), head.to_owned() + &estimates.map(estimate).concat()).expect("written");
    let result = |words: &[&str], name: &str| {
        let mut command = vef();
        let report = json(command.arg("sim").args(words).arg("--json").current_dir(work.path()));
        fs::write(at(name), report.to_string()).expect("written");
        number(&report, "runtime_ps")
    };
    let path = trace.to_str().expect("a path");
    let calibrated = result(&[path, "--calibration", "c.toml"], "calibrated.json");
    let given = result(&[path, "--calibration", "c.toml", "--overhead", "0ns"], "given.json");
    assert!(given < calibrated, "{given} {calibrated}");
    result(&[path], "plain.json");
    let again = |name: &str, words: &[&str]| result(&[&["--again", name], words].concat(), "again.json");
    assert_eq!(again("calibrated.json", &[]), calibrated);
    assert_eq!(again("given.json", &[]), given);
    assert_eq!(again("plain.json", &["--calibration", "c.toml"]), calibrated);
    let mut sweep = sim(&trace, &["--calibration", "c.toml"], &["--sweep", "overhead=0ns,500ns", "--json"]);
    let times = json(sweep.current_dir(work.path()));
    let times: Vec<_> = times["points"].as_array().expect("points").iter().collect();
    let times: Vec<u64> = times.iter().map(|point| number(&point["report"], "runtime_ps")).collect();
    assert_eq!(times, [given, calibrated]);
}

/// 9 ms before the first record, or 7 ms, of runs of 17 and 15 ms.
#[test]
fn a_run_that_is_mostly_initialisation_is_named() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("t.vef");
    let said = |command: &str, ticks: u64| {
        let records = format!("VEF3 2 2 0 0 0 0 1000\n0 0 1 8 4 {ticks} -1\n1 1 0 8 2 8000000 0\n");
        fs::write(&trace, records).expect("written");
        let said = run(vef().arg(command).arg(&trace)).success().stderr();
        said.lines().filter(|line| line.contains("before a rank's first record")).count()
    };
    for command in ["sim", "check"] {
        assert_eq!((said(command, 9_000_000), said(command, 7_000_000)), (1, 0), "{command}");
    }
}

#[test]
fn a_sweep_says_what_follows() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = trace(work.path());
    let prices = work.path().join("prices.toml");
    fs::write(&prices, "switch = 1000\nport = 10\ncable = 7\ninterface = 1.5\n").expect("prices");
    let sweep = || {
        let mut command = vef();
        let bandwidths =
            ["--sweep", "bandwidth=1G,10G,100G,1T,10T,100T", "--sweep", "topology=torus:4x4|fattree:4x4x2"];
        command.arg("sim").arg(&trace).args(bandwidths).arg("--cost").arg(&prices);
        command
    };
    let table = json(sweep().arg("--json"));
    let points = table["points"].as_array().expect("points");
    let time = |bandwidth: &str, topology: &str| {
        let is_it = |point: &&serde_json::Value| {
            point["settings"]["bandwidth"] == bandwidth && point["settings"]["topology"] == topology
        };
        number(&points.iter().find(is_it).expect("a point")["report"], "runtime_ps") as f64
    };
    // The first value from which on no other gains a percent.
    let values = ["1G", "10G", "100G", "1T", "10T", "100T"];
    let answers: Vec<&str> =
        table["answers"].as_array().expect("answers").iter().filter_map(|answer| answer.as_str()).collect();
    for topology in ["torus:4x4", "fattree:4x4x2"] {
        let gains = |from: usize| {
            values[from + 1..].iter().any(|to| time(to, topology) <= 0.99 * time(values[from], topology))
        };
        let enough = (0..5).find(|&from| !gains(from)).expect("more bandwidth than is needed");
        assert!(enough > 0, "1G is not enough for this trace");
        let said =
            format!("bandwidth={} topology={topology} suffices: bandwidth up to 100T gains", values[enough]);
        assert!(answers.iter().any(|answer| answer.starts_with(&said)), "{said}: {answers:?}");
    }
    // A torus has 16 switches with a node each, and 32 cables between them; the fat tree 6 with 8.
    let costs = |topology: &str| {
        let of = |point: &&serde_json::Value| point["settings"]["topology"] == topology;
        points.iter().find(of).expect("a point")["cost"].as_f64().expect("a cost")
    };
    assert_eq!(costs("torus:4x4"), 16_000.0 + 10.0 * (16.0 + 64.0) + 7.0 * 32.0 + 1.5 * 16.0);
    assert_eq!(costs("fattree:4x4x2"), 6_000.0 + 10.0 * (16.0 + 16.0) + 7.0 * 8.0 + 1.5 * 16.0);
    let text = run(&mut sweep()).success().stdout();
    assert!(answers.iter().all(|answer| text.contains(answer)), "{text}");
    let best = points.iter().min_by_key(|point| number(&point["report"], "runtime_ps")).expect("points");
    let fastest = format!(
        "fastest: bandwidth={} topology={}",
        best["settings"]["bandwidth"].as_str().expect("a value"),
        best["settings"]["topology"].as_str().expect("a value")
    );
    assert_eq!(answers[0], fastest);
    // Of one network all points cost the same: none is the cheapest.
    let one = json(
        vef()
            .arg("sim")
            .arg(&trace)
            .args(["--topology", "torus:4x4", "--sweep", "bandwidth=10T,100T", "--json", "--cost"])
            .arg(&prices),
    );
    let said = one["answers"].to_string();
    assert!(said.contains("not slower") && !said.contains("cheapest"), "{said}");
    // More switches on the second level than are needed.
    let topologies = ["--sweep", "topology=fattree:4x4x4|fattree:4x4x2", "--bandwidth", "100T", "--cost"];
    let two = run(vef().arg("sim").arg(&trace).args(topologies).arg(&prices)).success().stdout();
    assert!(two.contains("\nthe cheapest of these 2: topology=fattree:4x4x2 (6400)\n"), "{two}");

    // The picture: a curve for each topology, a dot for each point; also on the page of a report, with the answers.
    let [picture, result, page] = ["plot.svg", "sweep.json", "page.html"].map(|name| work.path().join(name));
    run(sweep().arg("--plot").arg(&picture)).success();
    let picture = fs::read_to_string(picture).expect("a picture");
    assert!(picture.contains("topology=torus:4x4") && picture.contains("run time, "), "{picture}");
    assert_eq!(picture.matches("<circle").count(), points.len());
    fs::write(&result, table.to_string()).expect("a result");
    run(vef().arg("report").arg(&trace).arg("--sim").arg(&result).arg("-o").arg(&page)).success();
    let page = fs::read_to_string(&page).expect("a page");
    assert!(page.contains(&fastest) && page.matches("<circle").count() >= points.len());
    let other = work.path().join("other.vef");
    run(vef().args(["gen", "ring", "-n", "4", "-o"]).arg(&other)).success();
    let refused =
        run(vef().arg("report").arg(&other).arg("--sim").arg(&result).arg("-o").arg("no")).exited(2);
    assert!(refused.stderr().contains("the result of another trace"), "{}", refused.stderr());

    fs::write(&prices, "switch = 1\nrouter = 2\n").expect("prices");
    let refused = run(&mut sweep()).exited(2).stderr();
    assert!(refused.contains("prices.toml:2: unknown field `router`"), "{refused}");
}

#[test]
fn what_is_random_says_which_differences_mean_nothing() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = work.path().join("noisy.vefx");
    let generate = ["gen", "halo2d", "-n", "16", "--iterations", "40", "--noise", "0.2", "-o"];
    run(vef().args(generate).arg(&trace)).success();
    let mut command = vef();
    let seeds = ["--sweep", "topology=torus:4x4|fattree:4x4x2", "--sweep", "seed=1,2,3"];
    command.arg("sim").arg(&trace).args(["--compute-noise", "resampled", "--json"]).args(seeds);
    let table = json(&mut command);
    let points = table["points"].as_array().expect("points");
    let spread = |topology: &str| {
        let times: Vec<f64> = points
            .iter()
            .filter(|point| point["settings"]["topology"] == topology)
            .map(|point| number(&point["report"], "runtime_ps") as f64)
            .collect();
        let (least, most) =
            times.iter().fold((f64::MAX, 0.0f64), |(least, most), &time| (least.min(time), most.max(time)));
        (most - least) * 3.0 / times.iter().sum::<f64>()
    };
    let spread = 100.0 * spread("torus:4x4").max(spread("fattree:4x4x2"));
    let said = table["answers"][0].as_str().expect("an answer");
    let expected = format!(
        "3 seeds: the run times of one setting differ by up to {spread:.1} %; settings are compared seed by seed, and a \
         difference counts if every seed shows it"
    );
    assert_eq!(said, expected);
    assert!(spread > 0.0);
}

/// Jobs whose trace varies are headed by their numbers: the name of one would be wrong for the others.
#[test]
fn a_job_whose_trace_varies_has_its_number() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name).display().to_string();
    for (name, pattern) in [("one.vefx", "ring"), ("two.vefx", "halo2d"), ("beside.vefx", "ring")] {
        run(vef().args(["gen", pattern, "-n", "4", "-o", &path(name)])).success();
    }
    let swept = format!("trace={},{}", path("one.vefx"), path("two.vefx"));
    let jobs = ["sim", &path("one.vefx"), &path("beside.vefx"), "--topology", "switch:8", "--sweep"]
        .map(str::to_owned);
    let shown = run(vef().args(jobs).arg(swept)).success().stdout();
    let head = shown.lines().next().expect("a head");
    assert!(head.contains("job 0: run time") && head.contains("beside: run time"), "{head}");
}

/// A GOAL schedule is executed as one in a sweep, too: as a trace, what two streams of a rank do at once comes one after the other.
#[test]
fn a_schedule_takes_as_long_in_a_sweep() {
    let work = tempfile::tempdir().expect("a directory");
    let schedule = work.path().join("streams.goal");
    let text = "num_ranks 1\nrank 0 {\na: calc 100 cpu 0\nb: calc 200 cpu 1\n}\n";
    fs::write(&schedule, text).expect("a schedule");
    let alone = json(&mut sim(&schedule, &["--model", "loggp"], &["--json"]));
    assert_eq!(number(&alone, "runtime_ps"), 200_000);
    let swept = json(&mut sim(&schedule, &["--model", "loggp", "--sweep", "loggp=L=1|L=2"], &["--json"]));
    let points = swept["points"].as_array().expect("points");
    assert!(points.iter().all(|point| number(&point["report"], "runtime_ps") == 200_000), "{swept:#}");
    let refused = sim(&schedule, &["--model", "loggp", "--sweep", "compute-scale=1,2"], &[]).output();
    let refused = String::from_utf8(refused.expect("vef").stderr).expect("text");
    assert!(refused.contains("no effect on a GOAL schedule: --compute-scale"), "{refused}");
}
