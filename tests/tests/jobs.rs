//! `vef sim` with several traces: options by job, interference, jobs that repeat, background traffic.

use std::path::{Path, PathBuf};
use std::process::Command;
use vef_format::container::{About, Settings};
use vef_format::convert::convert;
use vef_tests::{number, run, vef};

fn json(command: &mut Command) -> serde_json::Value {
    let said = run(command).success().stdout();
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn generated(work: &Path, pattern: &str, ranks: &str) -> PathBuf {
    let trace = work.join(pattern).with_extension("vefx");
    let mut gen_ = vef();
    run(gen_.args(["gen", pattern, "-n", ranks, "--iterations", "5", "-o"]).arg(&trace)).success();
    trace
}

/// What a container says of its capture is said of each trace, and once.
#[test]
fn all_traces_are_warned_of() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = |name: &str| {
        let (text, container) = (work.path().join(name), work.path().join(name).with_extension("vefx"));
        let lines = "VEF3 2 3 0 0 0 0 1000\n0 0 1 8 4 9000000 -1\n1 0 0 0 1 1 0\n2 1 1 0 2 1 0\n";
        std::fs::write(&text, lines).expect("a trace");
        let origin = vec![(About::NOT_IN_TRACE.to_owned(), format!("calls of {name}"))];
        convert(&text, &container, &About { origin, ..About::default() }, Settings::default())
            .expect("a container");
        container
    };
    let [first, second, text] = [trace("first.vef"), trace("second.vef"), work.path().join("first.vef")];
    for more in [&[][..], &["--sweep", "latency=1us,2us"]] {
        let mut command = vef();
        command.arg("sim").args([&first, &second, &first, &text]).args(["--topology", "switch:8"]).args(more);
        let told = run(&mut command).success().stderr();
        for name in [&first, &second] {
            let name = name.file_name().expect("a name").display().to_string();
            let warning = format!("{name}: not in the trace: calls of {}", name.replace("vefx", "vef"));
            assert_eq!(told.matches(&warning).count(), 1, "{more:?}: {told}");
        }
        let of_text = told.matches("first.vef: 9.000 ms of the run time of ").count();
        assert_eq!(of_text, usize::from(more.is_empty()), "{told}");
    }
}

#[test]
fn jobs_run_beside_each_other_and_alone() {
    let work = tempfile::tempdir().expect("a directory");
    let (halo, all) = (generated(work.path(), "halo2d", "16"), generated(work.path(), "alltoall", "16"));
    let both = |options: &[&str]| {
        let mut command = vef();
        command.arg("sim").args([&halo, &all]).args(["--topology", "dragonfly:2x4x1"]).args(options);
        command
    };
    let result =
        json(&mut both(&["--json", "--place", "alltoall=random", "--repeat", "1=until:halo2d", "--links"]));
    let jobs = result["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 2);
    for (job, trace) in jobs.iter().zip([&halo, &all]) {
        let slowdown = job["alone"]["slowdown"].as_f64().expect("a slowdown");
        assert_eq!(slowdown, number(job, "runtime_ps") as f64 / number(&job["alone"], "runtime_ps") as f64);
        assert_eq!(job["trace"], trace.display().to_string());
    }
    assert!(number(&jobs[1]["runs"], "runs") >= 1);
    assert!(number(&result, "runtime_ps") >= number(&jobs[0], "runtime_ps"));
    // The job alone is the run of its trace alone: on the first nodes, as here.
    let mut single = vef();
    let single = json(single.arg("sim").arg(&halo).args(["--topology", "dragonfly:2x4x1", "--json"]));
    assert_eq!(single["runtime_ps"], jobs[0]["alone"]["runtime_ps"]);
    // Bytes by job are those of the links.
    for link in result["links"]["all"].as_array().expect("links") {
        let by_job = link["jobs"].as_array().expect("jobs");
        assert_eq!(by_job.iter().map(|of| number(of, "bytes")).sum::<u64>(), number(link, "bytes"));
    }
    let table = run(&mut both(&["--csv", "jobs", "--start", "alltoall=5us"])).success().stdout();
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.lines().nth(2).is_some_and(|line| line.contains(",5000000,")), "{table}");
    let text = run(&mut both(&["--background", "uniform@0.2"])).success().stdout();
    assert!(text.contains("slowdown 1.") && text.contains("background    uniform@0.2: "), "{text}");
    // A sweep has all jobs, too.
    let swept =
        run(&mut both(&["--sweep", "place=alltoall=random|alltoall=block", "--csv"])).success().stdout();
    assert_eq!(swept.lines().count(), 3, "{swept}");
    let classes: &[&str] = &["--model", "packet", "--sweep", "class=none|alltoall=4"];
    let swept = run(&mut both(&[classes, &["--csv"]].concat())).success().stdout();
    let cells = |line: usize| swept.lines().nth(line).expect("a line").split(',').collect::<Vec<_>>();
    let column = |name: &str| cells(0).iter().position(|cell| *cell == name).expect("a column");
    let report = json(&mut both(&[classes, &["--json"]].concat()));
    for (point, class) in ["none", "alltoall=4"].into_iter().enumerate() {
        let options = ["--model", "packet", "--json", "--class", class];
        let alone = json(&mut both(if class == "none" { &options[..3] } else { &options }));
        for job in 0..2 {
            let expected = &alone["jobs"][job];
            assert_eq!(report["points"][point]["report"]["jobs"][job]["alone"], expected["alone"]);
            let cell = |name| cells(point + 1)[column(&format!("job{job}_{name}"))];
            assert_eq!(cell("runtime_ps"), expected["runtime_ps"].to_string());
            let slowdown = expected["alone"]["slowdown"].as_f64().expect("a slowdown");
            assert!((cell("slowdown").parse::<f64>().expect("a number") - slowdown).abs() < 1e-3);
        }
    }
    let text = run(&mut both(classes)).success().stdout();
    assert!(text.contains("halo2d: run time") && text.contains("alltoall: slowdown"), "{text}");
    // One job alone has no columns of its own.
    let mut single = vef();
    let single = run(single.arg("sim").arg(&halo).args(["--sweep", "latency=1us,2us", "--csv"])).success();
    assert!(!single.stdout().contains("job0"));
}

/// A GOAL schedule, in text or binary, before or behind a trace: 1000 B over one switch, then 5 µs of computing.
/// A part of the run is that of each trace, or an error that names the trace without one.
#[test]
fn a_part_is_one_of_every_job() {
    let work = tempfile::tempdir().expect("a directory");
    let traces = [generated(work.path(), "halo2d", "16"), generated(work.path(), "alltoall", "8")];
    let sim = |options: &[&str]| {
        let mut command = vef();
        command.arg("sim").args(&traces).args(["--topology", "dragonfly:2x4x1"]).args(options);
        command
    };
    let result = json(&mut sim(&["--iterations", "--json"]));
    let jobs = result["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 2);
    for job in jobs {
        let part = &job["part"];
        assert!(number(part, "records") < number(part, "of_records"), "{part}");
    }
    let refused = run(&mut sim(&["--phase", "main"])).exited(2).stderr();
    assert!(refused.contains("halo2d.vefx: the trace has no phases"), "{refused}");
}

#[test]
fn goal_schedules_are_jobs_in_every_model() {
    let work = tempfile::tempdir().expect("a directory");
    let halo = generated(work.path(), "halo2d", "4");
    let (text, binary) = (work.path().join("two.goal"), work.path().join("two.bin"));
    std::fs::write(
        &text,
        "num_ranks 2\nrank 0 {\na: send 1000b to 1 tag 0\n}\nrank 1 {\na: recv 1000b from 0 tag 0\nb: calc 5000\nb requires a\n}\n",
    )
    .expect("a schedule");
    run(vef().args(["export", "--to", "goal-bin"]).arg(&text).arg("-o").arg(&binary)).success();
    let cut_through = 800 + 2 * 500 + 5000;
    for (model, ns) in [
        ("cut-through", cut_through),
        ("store-and-forward", cut_through + 800),
        ("latency", cut_through),
        ("injection", cut_through),
        ("packet", cut_through),
        ("flow", cut_through),
        // L, o and g are 0.
        ("loggp", 5000),
    ] {
        for goal in [&text, &binary] {
            for (traces, job) in [([&halo, goal], 1), ([goal, &halo], 0)] {
                let mut command = vef();
                command.arg("sim").args(traces).args(["--model", model, "--json"]);
                if model == "loggp" {
                    command.args(["--loggp", "L=0,o=0,g=0,G=0,O=0,S=65535"]);
                }
                let result = json(&mut command);
                let job = &result["jobs"][job];
                assert_eq!(number(job, "runtime_ps"), ns * 1000, "{model} {traces:?}");
                assert_eq!(job["alone"]["slowdown"], 1.0, "{model} {traces:?}");
                assert_eq!(job["trace"], goal.display().to_string());
            }
        }
    }
    // A repeated sweep knows its results, though the schedule is converted again.
    let points = work.path().join("points");
    let swept = |latency: &str| {
        let mut command = vef();
        command.arg("sim").args([&text, &halo]).args(["--sweep", latency, "-o"]).arg(&points).arg("--csv");
        run(&mut command).success().stdout()
    };
    let first = swept("latency=1us,2us");
    assert_eq!((swept("latency=1us,2us"), points.read_dir().expect("points").count()), (first, 2));
}

#[test]
fn wrong_jobs_are_named() {
    let work = tempfile::tempdir().expect("a directory");
    let (halo, all) = (generated(work.path(), "halo2d", "4"), generated(work.path(), "alltoall", "4"));
    for (options, problem) in [
        (
            &["--place", "other=block"][..],
            "--place other=block: no job \"other\"; write halo2d, alltoall, or a number from 0 to 1",
        ),
        (&["--place", "block"], "--place block: write JOB=VALUE"),
        (&["--start", "halo2d=5"], "--start halo2d=5: "),
        (&["--repeat", "halo2d=0"], "--repeat halo2d=0: write JOB=TIMES"),
        (&["--repeat", "halo2d=until:2"], "--repeat halo2d=until:2: no job \"2\""),
        (
            &["--repeat", "0=until:1", "--repeat", "1=until:0"],
            "job 0 repeats until job 1 is over: that must be another job",
        ),
        (
            &["--repeat", "0=2", "--model", "loggp"],
            "jobs that repeat or begin after others: not with model loggp",
        ),
        (
            &["--repeat", "0=2", "--critical-path"],
            "the critical path: not with jobs that repeat or begin after others",
        ),
        (&["--topology", "switch:7"], "task 3 is placed on node 7"),
        (
            &["--topology", "switch:7", "--placement", "random"],
            "job 1 needs 4 nodes that no other job has; the topology has 3",
        ),
        (&["--background", "uniform"], "write PATTERN@LOAD"),
        (&["--background", "uniform@2"], "the load is a share above 0 and up to 1"),
        (&["--report", "page.html"], "--report: a page is about one trace"),
    ] {
        let mut command = vef();
        command.current_dir(work.path()).arg("sim").args([&halo, &all]).args(options);
        let refused = run(&mut command).exited(2).stderr();
        assert!(refused.contains(problem), "{options:?}: {refused}");
        assert_eq!(refused.trim_end().lines().count(), 1, "{refused}");
    }
}

/// A result without what differs from run to run.
fn untimed(mut result: serde_json::Value) -> serde_json::Value {
    if let Some(result) = result.as_object_mut() {
        result.remove("performance");
    }
    result
}

#[test]
fn a_result_runs_again() {
    let work = tempfile::tempdir().expect("a directory");
    let (halo, all) = (generated(work.path(), "halo2d", "16"), generated(work.path(), "alltoall", "8"));
    let result = work.path().join("result.json");
    let written = |arguments: &[&str]| {
        let mut command = vef();
        command.args(arguments).arg("--json");
        let said = run(&mut command).success().stdout();
        std::fs::write(&result, &said).expect("a result");
        serde_json::from_str::<serde_json::Value>(&said).expect("JSON")
    };
    let again = |arguments: &[&str]| {
        let mut command = vef();
        command.arg(arguments[0]).arg("--again").arg(&result).args(&arguments[1..]).arg("--json");
        json(&mut command)
    };
    let [halo, all] = [&halo, &all].map(|path| path.to_str().expect("UTF-8"));
    let first = written(&[
        "sim",
        halo,
        all,
        "--topology",
        "torus:5x5",
        "--routing",
        "adaptive",
        "--model",
        "packet",
        "--place",
        "alltoall=random",
        "--repeat",
        "1=2",
        "--fail",
        "(0,0)<->(1,0)",
        "--fail",
        "10%:2=50%",
        "--seed",
        "7",
        "--compute-scale",
        "0-3=0.5,1.5",
        "--links",
    ]);
    assert_eq!(first["settings"]["credit-delay"][0], "0ns");
    assert_eq!(untimed(again(&["sim"])), untimed(first.clone()));
    let faster = again(&["sim", "--bandwidth=100Gbit/s"]);
    assert_eq!(faster["network"]["bandwidth_bits_per_s"], 100_000_000_000_u64);
    assert_eq!(faster["network"]["failures"], first["network"]["failures"]);
    // A trace beside it takes the place of those of the result, of which no option names one.
    let one = written(&["sim", halo, all, "--topology", "torus:5x5", "--seed", "7"]);
    let other = again(&["sim", all]);
    assert_eq!(
        (other["jobs"].as_array().map(Vec::len), &other["jobs"][0]["trace"]),
        (Some(1), &one["jobs"][1]["trace"])
    );
    assert_eq!(other["network"]["topology"], "torus:5x5");
    let first = written(&[
        "sim",
        halo,
        "--fail",
        "(0,0)<->(1,0)",
        "--topology",
        "torus:5x5",
        "--bandwidth",
        "1Gbit/s",
    ]);
    assert_eq!(again(&["sim", all])["network"]["failures"], first["network"]["failures"]);
    // A preset beside the result sets what it sets; options given beside it come first.
    let preset = again(&["sim", "--preset=ndr", "--latency=1us"]);
    assert_eq!(preset["network"]["bandwidth_bits_per_s"], 400_000_000_000_u64);
    assert_eq!(preset["settings"]["latency"][0], "1us");
    assert_eq!(preset["settings"]["switch-delay"][0], "130ns");
    let traffic = [
        "traffic",
        "--topology",
        "mesh:4x4",
        "--pattern",
        "0.5*uniform+0.5*hotspot:3=0.2",
        "--message",
        "hadoop",
        "--load",
        "0.1,0.2",
    ];
    let first = written(&traffic);
    assert_eq!(again(&["traffic"]), first);
    assert_eq!(again(&["traffic", "--load", "0.3"])["points"].as_array().map(Vec::len), Some(1));
    // That of another command, and what is none.
    let mut wrong = vef();
    let refused = run(wrong.arg("sim").arg("--again").arg(&result)).exited(2).stderr();
    assert!(refused.contains("not a result with settings, as vef sim --json writes it"), "{refused}");
    std::fs::write(&result, "{").expect("a file");
    let refused = run(vef().arg("traffic").arg("--again").arg(&result)).exited(2).stderr();
    assert!(refused.contains("not a result") && refused.trim_end().lines().count() == 1, "{refused}");
}

#[test]
fn failures_are_named_and_routed_around() {
    let work = tempfile::tempdir().expect("a directory");
    let halo = generated(work.path(), "halo2d", "16");
    let simulated = |options: &[&str]| {
        let mut command = vef();
        command.arg("sim").arg(&halo).args(["--topology", "torus:4x4"]).args(options);
        run(&mut command)
    };
    let runtime = |options: &[&str]| {
        let said = simulated(&[options, &["--json"]].concat()).success().stdout();
        number(&serde_json::from_str(&said).expect("JSON"), "runtime_ps")
    };
    let whole = runtime(&[]);
    assert!(runtime(&["--fail", "(0,0)<->(1,0)"]) > whole);
    assert!(runtime(&["--fail", "(0,0)<->(1,0)=10%"]) > whole);
    assert!(runtime(&["--fail", "(0,0)<->(1,0) down 10us up 1ms"]) > whole);
    let for_a_time = simulated(&["--fail", "(2,1) down 10us up 1ms"]).success().stdout();
    let slower = &["--fail", "(0,0)<->(1,0)=10% down 10us up 10s"];
    assert!(runtime(slower) > whole);
    let said = simulated(slower).success().stdout();
    assert!(said.contains("failures      (0,0)<->(1,0)=10% down 10us up 10s"), "{said}");
    let mistyped = simulated(&["--fail", "10% dwon 1ms"]).exited(2).stderr();
    assert!(mistyped.contains("` down TIME up TIME` (or ` down TIME` alone) where"), "{mistyped}");
    assert!(for_a_time.contains("no route leads from node0 to node6; 1 of 16 nodes in use"), "{for_a_time}");
    let cut_off = simulated(&["--fail", "(2,1)"]).exited(2).stderr();
    assert!(cut_off.contains("failed links leave no route from node0 to node6; 1 of 16 nodes"), "{cut_off}");
    let few = ["--model", "packet", "--vcs", "1", "--fail", "(0,0)<->(1,0)"];
    let deadlock = simulated(&few).exited(2).stderr();
    assert!(
        deadlock.contains("virtual channels here; 1 can deadlock: (") && deadlock.contains(" -> "),
        "{deadlock}"
    );
    let unused = simulated(&["--model", "loggp", "--fail", "(0,0)"]).exited(2).stderr();
    assert!(unused.contains("--fail: no effect"), "{unused}");
}

/// A list of the Parallel Workloads Archive, by number of ranks and by executable; invalid lists and options.
#[test]
fn jobs_arrive_from_a_list() {
    let work = tempfile::tempdir().expect("a directory");
    let (ring, halo) = (generated(work.path(), "ring", "4"), generated(work.path(), "halo2d", "4"));
    let alltoall = generated(work.path(), "alltoall", "8");
    let list = work.path().join("jobs.swf");
    let write =
        |lines: &str| std::fs::write(&list, format!("; MaxNodes: 16\n;caf\u{e9}\n{lines}")).expect("a list");
    let sim = |options: &[&str]| {
        let mut command = vef();
        command.arg("sim").args([&ring, &halo, &alltoall]).arg("--arrivals").arg(&list).args(options);
        command
    };
    let named = ["--program", "7=ring", "--program", "9=1", "--arrival-second", "1us"];
    write(
        "1 0 -1 60 4 -1 -1 4 -1 -1 1 1 1 7 1 -1 -1 -1\n2 0 -1 60 8 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1\n\
         3 1 -1 60 -1 -1 -1 4 -1 -1 0 1 1 9 1 -1 -1 -1\n4 2 -1 60 8 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1\n",
    );
    let result = json(sim(&named).arg("--json"));
    let jobs = result["arrivals"]["jobs"].as_array().expect("jobs");
    let of = |key: &str| jobs.iter().map(|job| number(job, key)).collect::<Vec<_>>();
    assert_eq!((of("job"), of("trace"), of("nodes")), (vec![1, 2, 3, 4], vec![0, 2, 1, 2], vec![4, 8, 4, 8]));
    assert_eq!(of("submit_ps"), [0, 0, 1_000_000, 2_000_000]);
    assert_eq!(result["network"]["topology"], "switch:16");
    // All nodes are in use: the last job waits for the first that ends, of those that leave it eight.
    let ends: Vec<u64> = (0..3).map(|job| of("submit_ps")[job] + of("runtime_ps")[job]).collect();
    assert_eq!(of("wait_ps"), [0, 0, 0, ends[1].min(ends[0].max(ends[2])) - 2_000_000]);
    let table = run(sim(&named).args(["--csv", "arrivals"])).success().stdout();
    assert_eq!(table.lines().count(), 5);
    run(sim(&named).args(["--csv", "jobs"])).exited(2);
    assert!(run(&mut sim(&named)).success().stdout().contains("arrivals      4 jobs, which had "));
    let links = run(sim(&named).args(["--csv", "job-links"])).success().stdout();
    assert!(links.lines().skip(1).all(|line| line.split(',').any(|field| matches!(field, "0" | "1" | "2"))));
    assert!(links.lines().count() > 16, "{links}");

    // As the archive has it.
    let plain = std::fs::read(&list).expect("a list");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &plain).expect("memory");
    let packed = packed.finish().expect("memory");
    std::fs::write(&list, &packed).expect("a list");
    assert_eq!(json(sim(&named).arg("--json"))["arrivals"], result["arrivals"]);
    std::fs::write(&list, &packed[..packed.len() - 20]).expect("a list");
    let said = run(&mut sim(&named)).exited(2).stderr();
    assert!(said.contains("jobs.swf: it is compressed by gzip, and cut off or damaged"), "{said}");

    // Four nodes are free, the third job needs eight, the fourth has a short time on four.
    write(
        "1 0 -1 1000 8 -1 -1 8 -1 -1 1 1 1 -1 1 -1 -1 -1\n2 0 -1 1 4 -1 -1 4 1000.5 -1 1 1 1 7 1 -1 -1 -1\n\
         3 0 -1 60 8 -1 -1 8 60 -1 1 1 1 -1 1 -1 -1 -1\n4 0.0 -1 60 4 -1 -1 4 60 -1 1 1 1 7 1 -1 -1 -1\n",
    );
    let waits = |backfill: &str| {
        let options = ["--program", "7=ring", "--arrival-second", "1us", "--backfill", backfill, "--json"];
        let result = json(&mut sim(&options));
        let jobs = result["arrivals"]["jobs"].as_array().expect("jobs").clone();
        jobs.iter().map(|job| number(job, "wait_ps") > 0).collect::<Vec<_>>()
    };
    assert_eq!(waits("none"), [false, false, true, true]);
    assert_eq!(waits("easy"), [false, false, true, false]);
    std::fs::write(&list, &plain).expect("a list");

    let refused = |options: &[&str]| run(&mut sim(options)).exited(2).stderr();
    let said = refused(&["--program", "7=ring"]);
    assert!(
        said.contains("jobs.swf:5: job 3: several traces have 4 ranks, and executable 9 has none of its own"),
        "{said}"
    );
    let said = refused(&["--program", "7=alltoall", "--program", "9=ring"]);
    assert!(
        said.contains("jobs.swf:3: job 1 has 4 processors; the trace of executable 7 has 8 ranks"),
        "{said}"
    );
    assert!(
        refused(&[&named[..], &["--program", "8=ring"]].concat())
            .contains("jobs.swf: no job that ran has executable 8, which is given a trace")
    );
    assert!(refused(&["--program", "x=ring"]).contains("--program x=ring: \"x\": not a number from 0"));
    assert!(refused(&["--program", "7=rang"]).contains("did you mean ring?"));
    assert!(refused(&["--start", "ring=1us"]).contains("cannot be used with"));
    assert!(
        refused(&[&named[..], &["--topology", "switch:4"]].concat())
            .contains("alltoall.vefx: its jobs need 8 nodes; the topology has 4")
    );
    write("1 0 -1 60 4 -1 -1 4 -1 -1 1 1 1 7 1 -1 -1 -1\n2 0 -1 60 8 -1 -");
    assert!(refused(&named).contains("jobs.swf:4: 7 fields; a job has 18"));
    std::fs::write(&list, [0u8, 159, 146, 150].repeat(1000)).expect("garbage");
    assert!(refused(&named).contains("jobs.swf:1: "));
}
