//! Several tools between a program and its MPI: order, contexts, the built-in ones beside files, in C and Fortran, on both
//! MPIs; and what the built-in ones write.

use std::path::{Path, PathBuf};
use std::process::Command;
use vef_format::capture::event::Action;
use vef_format::capture::{Capture, CaptureError};
use vef_format::ids::Rank;
use vef_tests::{Ended, INTERFACES, Mpi, have, products, root, run, skipped, vef};

const RANKS: u64 = 3;

/// A C program or tool with the headers of this project.
fn compile(mpi: Mpi, work: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let mut arguments = vec!["-Wall", "-Werror", "-I", "interpose/include"];
    arguments.extend(options);
    arguments.push(source);
    mpi.compile(work, name, &arguments)
}

fn tool(mpi: Mpi, work: &Path, name: &str, source: &str) -> String {
    let path = compile(mpi, work, &format!("{name}.so"), source, &["-shared", "-fPIC"]);
    path.to_str().expect("a path").to_owned()
}

/// A tool in Rust: an example of `mpi-abi`.
fn rust_tool(name: &str) -> String {
    let path = vef_tests::example(name).join(format!("lib{name}.so"));
    path.to_str().expect("a path").to_owned()
}

/// `vef run` of `program` with `tools`, into `work/out`.
fn with_tools(mpi: Mpi, work: &Path, tools: &[&str], program: &Path) -> Command {
    let mut command = vef();
    command.current_dir(work).args(["run", "-n", &RANKS.to_string(), "--mpirun", &mpi.launcher().join(" ")]);
    command.arg("-o").arg(work.join("out"));
    command.args(tools.iter().flat_map(|tool| ["--tool", tool])).arg("--").arg(program);
    command
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Calls of a function in a profile.
fn calls(work: &Path, profile: &str, function: &str) -> u64 {
    let ended = run(vef().args(["profile", "--json"]).arg(work.join("out").join(profile))).success();
    let report: serde_json::Value = serde_json::from_str(&ended.stdout()).expect("JSON");
    let calls = report["calls"].as_array().expect("calls").clone();
    calls.iter().filter(|call| call["name"] == function).map(|call| vef_tests::number(call, "calls")).sum()
}

#[test]
fn a_broadcast_is_replaced_between_two_profiles() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = compile(mpi, work.path(), "chain", "tests/c/chain.c", &[]);
        let bcast = tool(mpi, work.path(), "linear_bcast", "examples/tools/linear_bcast.c");
        run(&mut with_tools(mpi, work.path(), &["profile", &bcast, "profile"], &program)).success();
        let first = |function| calls(work.path(), "profile", function);
        let second = |function| calls(work.path(), "profile.2", function);
        // One broadcast (each rank calls it); two messages of the program's own from each rank.
        assert_eq!((first("MPI_Bcast"), first("MPI_Send"), first("MPI_Recv")), (RANKS, 2 * RANKS, 0));
        let replaced = RANKS - 1;
        assert_eq!(
            (second("MPI_Bcast"), second("MPI_Send"), second("MPI_Recv")),
            (0, 2 * RANKS + replaced, replaced)
        );
        assert!(!work.path().join("out/0.vefc").exists(), "nobody asked for a capture");
        let text = run(vef().arg("profile").arg(work.path().join("out"))).success().stdout();
        assert!(text.contains("MPI_Bcast") && text.contains("can be represented"), "{text}");
    }
}

#[test]
fn tools_of_all_kinds_in_one_chain() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = compile(mpi, work.path(), "chain", "tests/c/chain.c", &[]);
        let seen = tool(mpi, work.path(), "seen", "tests/c/seen.c");
        let rust = rust_tool("count_sends");
        let tools: [&str; 5] = [&seen, &rust, "capture", "text", &seen];
        let ended = run(&mut with_tools(mpi, work.path(), &tools, &program)).success();
        // Both see the same 14 calls; the second also that which the first makes. Three phases begin and end (100 each).
        let lines: Vec<String> =
            ended.stdout().lines().filter(|line| line.contains("seen.")).map(Into::into).collect();
        assert!(
            lines.contains(&"seen.0 at 0: any 14 pcontrols 3 phases 303 mismatches 0".into()),
            "{lines:?}"
        );
        assert!(
            lines.contains(&"seen.1 at 4: any 15 pcontrols 3 phases 303 mismatches 0".into()),
            "{lines:?}"
        );
        assert_eq!(
            ended.stderr().matches("count_sends at 1: 2 messages").count() as u64,
            RANKS,
            "{}",
            ended.stderr()
        );
        // The recorder behind two tools records as it does alone.
        let mix = |capture: &Path| {
            let trace = capture.with_extension("vef");
            run(vef().args(["mix", "-i"]).arg(capture).arg("-o").arg(&trace)).success();
            vef_tests::counts::of_trace(&trace)
        };
        let alone = work.path().join("alone");
        let mut command = vef();
        command
            .args(["run", "-n", &RANKS.to_string(), "--mpirun", &mpi.launcher().join(" "), "-o"])
            .arg(&alone);
        run(command.arg("--").arg(&program)).success();
        assert_eq!(mix(&work.path().join("out")), mix(&alone));
    }
}

/// What the text tool writes of `tests/c/chain.c` on rank 1.
const TEXT: &str = "\
1 init 1
1 bcast 1 (of 4 bytes) 0 of type 1 on comm MPI_COMM_WORLD
Phase ring start.
1 Irecv 0 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD
1 send 2 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD
1 wait
Phase anybody start.
1 Irecv 0 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD
1 send 2 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD
1 wait
Phase anybody end.
Phase ring end.
Phase pcontrol_3 start.
1 Comm split. color=1, key=1.New comm mini_comm_0_1 of size 1
1 allReduce 1 (of 4 bytes) of type 1 on comm mini_comm_0_1 1
Comm mini_comm_0_1 free.
Phase pcontrol_3 end.
1 finalize
";

#[test]
fn text_traces_and_their_aggregation() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = compile(mpi, work.path(), "chain", "tests/c/chain.c", &[]);
        // The program runs without the tracer as well.
        let launcher = mpi.launcher();
        let mut plain = Command::new(launcher[0]);
        plain.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        run(plain.args(&launcher[1..]).args(["-n", "2"]).arg(&program)).success();

        run(&mut with_tools(mpi, work.path(), &["text"], &program)).success();
        let out = work.path().join("out");
        assert_eq!(read(&out.join("ti_traces/ti_trace1.txt")), TEXT);
        run(vef().arg("text").arg(&out)).success();
        let parsed = |name: &str| read(&out.join("ti_traces/parserOutput").join(name));
        assert_eq!(
            parsed("communicators.txt"),
            "MPI_COMM_WORLD {'members': [0, 1, 2], 'size': 3}\n\
             mini_comm_0_0 {'members': ['0', '2'], 'size': 2}\nmini_comm_0_1 {'members': ['1'], 'size': 1}\n"
        );
        assert_eq!(
            parsed("global.txt"),
            "(bcast 0 4 contig MPI_COMM_WORLD)\nGoing to ring.txt\nReturned from ring.txt\n\
             Going to pcontrol_3.txt\nReturned from pcontrol_3.txt\n"
        );
        let ring =
            "(0 1 4 contig MPI_COMM_WORLD)\n(1 2 4 contig MPI_COMM_WORLD)\n(2 0 4 contig MPI_COMM_WORLD)\n";
        assert_eq!(
            parsed("ring.txt"),
            format!(
                "Coming from global.txt\n{ring}Going to anybody.txt\nReturned from anybody.txt\nReturning to global.txt\n"
            )
        );
        assert_eq!(parsed("anybody.txt"), format!("Coming from ring.txt\n{ring}Returning to ring.txt\n"));
        assert!(parsed("overall.txt").contains("2 (0 1 4 contig MPI_COMM_WORLD)\n"));
    }
}

#[test]
fn fortran_reaches_the_tools_as_c_does() {
    if !have("mpifort.mpich") || !have("mpifort.openmpi") {
        return skipped("needs mpifort of both MPIs");
    }
    let mut traces = Vec::new();
    for mpi in Mpi::installed() {
        for interface in INTERFACES {
            let work = tempfile::tempdir().expect("a directory");
            let program = mpi.compile_fortran(work.path(), interface, "interfaces");
            let tools = ["text", "capture", "text"];
            let ended: Ended = run(&mut with_tools(mpi, work.path(), &tools, &program)).success();
            assert!(ended.stdout().contains("fine"), "{mpi:?} {interface}: {}", ended.stdout());
            let trace = |place: &str| read(&work.path().join("out").join(place).join("ti_trace1.txt"));
            assert_eq!(trace("ti_traces"), trace("ti_traces.2"), "{mpi:?} {interface}");
            traces.push(trace("ti_traces"));
        }
    }
    assert!(traces[0].lines().count() > 20, "{}", traces[0]);
    assert!(traces.windows(2).all(|pair| pair[0] == pair[1]), "{traces:#?}");
}

/// Once each, with C's strings and handles; and they do what they do without tools.
#[test]
fn calls_that_are_fortrans_own_are_shown_to_the_tools() {
    if !have("mpifort.mpich") || !have("mpifort.openmpi") {
        return skipped("needs mpifort of both MPIs");
    }
    let expected = "rank 0\nset |a world|\nget |a world| 7\ninfo |key| |some value| 1\nop 1 1\nfile |strings.data| 1\n\
                    win 16 4 1\nsend 4 of 2\n";
    for mpi in Mpi::installed() {
        for interface in INTERFACES {
            let work = tempfile::tempdir().expect("a directory");
            let program = mpi.compile_fortran(work.path(), interface, "strings");
            let strings = tool(mpi, work.path(), "strings", "tests/c/strings.c");
            // The recorder first and last: it counts the same, and its capture mixes.
            let tools = ["profile", strings.as_str(), "capture"];
            let ended = run(&mut with_tools(mpi, work.path(), &tools, &program)).success();
            let said = ended.stdout().replace("fine\n", "");
            assert!(ended.stdout().contains("fine"), "{mpi:?} {interface}: {said}");
            assert_eq!(said, expected, "{mpi:?} {interface}");
            for (function, count) in
                [("MPI_File_open", RANKS), ("MPI_Win_create", RANKS), ("MPI_Send", RANKS), ("MPI_Put", 1)]
            {
                assert_eq!(calls(work.path(), "profile", function), count, "{mpi:?} {interface} {function}");
            }
            let trace = work.path().join("out.vef");
            run(vef().args(["mix", "-i"]).arg(work.path().join("out")).arg("-o").arg(&trace)).success();
            let capture = Capture::open(&work.path().join("out")).expect("a capture");
            for function in ["MPI_File_open", "MPI_Win_create", "MPI_Send"] {
                let functions = capture.functions(Rank(0)).expect("readable");
                let once = functions.iter().any(|of| of.name == function && of.calls == 1);
                assert!(once, "{mpi:?} {interface} {function}: {functions:?}");
            }
        }
    }
}

/// A handle that comes again in another thread before the recorder has seen its wait return.
#[test]
fn a_handle_is_reused_before_its_wait_returns() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = compile(mpi, work.path(), "reused", "tests/c/reused.c", &["-rdynamic", "-lpthread"]);
        let late = tool(mpi, work.path(), "late_return", "tests/c/late_return.c");
        let of_mode = |mode: &str| {
            let out = work.path().join(mode);
            let mut command = vef();
            command.args(["run", "-n", "1", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&out);
            command.args(["--tool", "capture", "--tool", &late]).arg("--").arg(&program);
            let ended = run(command.arg(mode)).success();
            assert!(ended.stdout().contains("reused"), "{}", ended.stdout());
            // Open MPI gives the handles of neighbourhood operations to these alone, and all from nowhere one handle.
            let is_reused = mpi == Mpi::Mpich || !["unknown", "nowhere"].contains(&mode);
            assert_eq!(ended.stdout().contains("not reused"), !is_reused, "{mpi:?} {mode}");
            let mixed =
                run(vef().args(["mix", "-i"]).arg(&out).arg("-o").arg(work.path().join("reused.vef")));
            let lacks = mixed.success().stdout().contains("not in the trace");
            assert!(!lacks, "{mpi:?} {mode}");
            out
        };
        of_mode("freed");
        of_mode("nowhere");
        of_mode("cancelled");
        of_mode("matched");
        let out = of_mode("unknown");
        let mut events = Capture::open(&out).expect("a capture").events(Rank(0)).expect("a rank");
        let mut completed = std::collections::HashMap::new();
        let each = events.each(|event| {
            if let vef_format::capture::event::Action::Complete(list) = &event.action {
                *completed.entry(event.thread).or_insert(0) += list.iter().count();
            }
            Ok::<_, vef_format::capture::CaptureError>(())
        });
        each.expect("readable");
        // Each by the thread that waited for its own.
        let mut completed: Vec<usize> = completed.into_values().collect();
        completed.sort_unstable();
        assert_eq!(completed, [1, 128], "{mpi:?}");
    }
}

#[test]
fn what_cannot_be_loaded_is_one_line_and_the_program_runs() {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let program = compile(mpi, work.path(), "chain", "tests/c/chain.c", &[]);
    let seen = tool(mpi, work.path(), "seen", "tests/c/seen.c");
    for (tools, says) in [
        ("nosuch", "tool nosuch: neither a built-in tool"),
        ("profile:./none.so", "tool ./none.so: "),
        ("libm.so.6", "tool libm.so.6: not a tool"),
        ("capture:text:capture", "`capture` is named twice"),
        (seen.as_str(), "it was told to refuse"),
    ] {
        let mut command = Command::new(mpi.launcher()[0]);
        command.args(&mpi.launcher()[1..]).args(["-n", "2", "env"]).current_dir(work.path());
        command.arg(format!("LD_PRELOAD={}", products().join("libvef_interpose.so").display()));
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("VEF_DIR", work.path().join("refused")).env("TOOLS", tools).env("SEEN_REFUSE", "1");
        let ended = run(command.arg(&program)).success();
        let lines: Vec<String> =
            ended.stderr().lines().filter(|line| line.contains("vef: ")).map(Into::into).collect();
        assert!(lines.len() == 1 && lines[0].contains(says), "{tools}: {}", ended.stderr());
        assert!(!work.path().join("refused").exists(), "{tools}: something was written");
    }
    let refused = run(&mut with_tools(mpi, work.path(), &["nosuch"], &program)).exited(2);
    assert!(refused.stderr().contains("--tool nosuch: neither"), "{}", refused.stderr());
}

#[test]
fn a_profile_counts_persistent_transfers_where_they_are_started() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = compile(mpi, work.path(), "persistent", "tests/c/persistent.c", &[]);
        run(&mut with_tools(mpi, work.path(), &["profile"], &program)).success();
        let ended = run(vef().args(["profile", "--json"]).arg(work.path().join("out"))).success();
        let profile: serde_json::Value = serde_json::from_str(&ended.stdout()).expect("JSON");
        let of = |name: &str| {
            let calls = profile["calls"].as_array().expect("calls");
            let call = calls.iter().find(|call| call["name"] == name).expect(name);
            (vef_tests::number(call, "calls") / RANKS, vef_tests::number(call, "bytes") / RANKS)
        };
        // Sent and asked for, three times 40 bytes; to nobody, nothing.
        assert_eq!((of("MPI_Startall"), of("MPI_Start")), ((3, 240), (1, 0)));
        assert_eq!((of("MPI_Send_init"), of("MPI_Recv_init")), ((2, 0), (1, 0)));
        let mut pairs = profile["pairs"].as_array().expect("pairs").clone();
        pairs.sort_by_key(|pair| vef_tests::number(pair, "from"));
        let right =
            |rank| serde_json::json!({ "from": rank, "to": (rank + 1) % RANKS, "messages": 3, "bytes": 120 });
        assert_eq!(pairs, (0..RANKS).map(right).collect::<Vec<_>>());
        // A start's time is that of its first event, and of a send it is no computing: the receive, first in the array, comes behind it.
        let capture = work.path().join("capture");
        let mut captured = vef();
        captured.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        run(captured.arg("--").arg(&program)).success();
        let capture = Capture::open(&capture).expect("a capture");
        let mut starts = Vec::new();
        let mut events = capture.events(Rank(0)).expect("a rank");
        let each = events.each(|event| {
            match event.action {
                Action::Send(_) => starts.push("send"),
                Action::PostReceive(_) => starts.push("receive"),
                _ => {}
            }
            Ok::<_, CaptureError>(())
        });
        each.expect("readable");
        assert_eq!(starts[..6], ["send", "receive", "send", "receive", "send", "receive"], "{mpi:?}");
    }
}

/// How often each of two kinds of events is in the capture of a rank: sends, and the end of a recording that stopped.
fn sends_and_stops(capture: &Path, rank: u32) -> (usize, usize) {
    let (mut sends, mut stops) = (0, 0);
    let capture = Capture::open(capture).expect("a capture");
    let mut events = capture.events(Rank(rank)).expect("a rank");
    let each = events.each(|event| {
        match event.action {
            Action::Send(_) => sends += 1,
            Action::Stopped { .. } => stops += 1,
            _ => {}
        }
        Ok::<_, CaptureError>(())
    });
    each.expect("readable");
    (sends, stops)
}

#[test]
fn an_exception_of_a_tool_does_not_reach_the_program() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let cpp = |name: &str, source: &str, options: &[&str]| {
            let output = work.path().join(name);
            let mut compiler = Command::new(mpi.mpicc().replace("mpicc", "mpicxx"));
            compiler
                .current_dir(root())
                .args(["-w", "-std=c++20", "-I", "interpose/include", "-o"])
                .arg(&output);
            run(compiler.args(options).arg(source)).success();
            output
        };
        let unaware = cpp("unaware", "tests/c/unaware.cc", &[]);
        let throwing = cpp("throwing.so", "tests/c/throwing_tool.cc", &["-shared", "-fPIC"]);
        let (throwing, panicking) = (throwing.to_str().expect("a path"), rust_tool("panicking_tool"));
        for (tool, place, within) in [
            (throwing, "before", "MPI_Isend"),
            (throwing, "after", "MPI_Isend"),
            (throwing, "phase", "a phase"),
            (&*panicking, "before", "MPI_Isend"),
            (&*panicking, "after", "MPI_Isend"),
        ] {
            let mut command = with_tools(mpi, work.path(), &["capture", tool], &unaware);
            let ended = run(command.env("THROWS", place)).success();
            let case = format!("{mpi:?} {tool} {place}: {}", ended.stderr());
            assert!(ended.stdout().contains("right 24 uncaught 0"), "{case}{}", ended.stdout());
            let line = format!("vef: a tool threw an exception in {within}: ");
            assert_eq!(ended.stderr().matches(&line).count() as u64, RANKS, "{case}");
            for rank in 0..RANKS as u32 {
                let (sends, stops) = sends_and_stops(&work.path().join("out"), rank);
                assert!(sends < 8 && stops == 1, "{case}");
            }
            std::fs::remove_dir_all(work.path().join("out")).expect("a capture");
        }
        // An exception in `open` refuses the tools, one in `close` comes when all is recorded.
        let mut command = with_tools(mpi, work.path(), &["capture", throwing], &unaware);
        let ended = run(command.env("THROWS", "open"));
        assert!(ended.stderr().contains("its open threw an exception"), "{}", ended.stderr());
        let mut command = with_tools(mpi, work.path(), &["capture", throwing], &unaware);
        let ended = run(command.env("THROWS", "close")).success();
        assert!(ended.stderr().contains("threw an exception in its close"), "{}", ended.stderr());
        assert_eq!(sends_and_stops(&work.path().join("out"), 0), (8, 0), "{mpi:?}");
        std::fs::remove_dir_all(work.path().join("out")).expect("a capture");
        // The program's own exceptions pass through a tool.
        let throws = cpp("throws", "tests/c/throws.cc", &[]);
        let ended = run(&mut with_tools(mpi, work.path(), &[throwing, "capture"], &throws)).success();
        assert!(ended.stdout().contains("caught 6"), "{}{}", ended.stdout(), ended.stderr());
        assert!(!ended.stderr().contains("threw"), "{}", ended.stderr());
    }
}
