//! The preload library does no harm where it does not belong, and `vef run` reaches the ranks however they are
//! started.

use std::path::Path;
use std::process::Command;
use vef_format::capture::{Capture, Digest, compress, rank_path};
use vef_format::ids::Rank;
use vef_tests::{Ended, Mpi, products, root, run, skipped, vef};

#[test]
fn a_script_that_starts_other_things_is_not_harmed() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
        let mut script = Command::new("bash");
        products();
        script.arg(root().join("tests/c/hello.sh")).arg(mpi.launcher().join(" ")).arg(&program);
        script.current_dir(work.path()).env("VEF_DIR", work.path().join("capture"));
        script.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        script.env("LD_PRELOAD", products().join("libvef_interpose.so"));
        let ended = run(&mut script).success();
        assert_eq!(ended.stdout(), "done\npython is well\n1\n", "{}", ended.stderr());
        assert_eq!(ended.stderr(), "");
        let trace = work.path().join("out.vef");
        run(vef().args(["mix", "-i"]).arg(work.path().join("capture")).arg("-o").arg(&trace)).success();
    }
}

#[test]
fn exit_code_and_streams_are_the_programs() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let mut command = vef();
        command.current_dir(work.path()).args([
            "run",
            "-n",
            "1",
            "--mpirun",
            &mpi.launcher().join(" "),
            "--",
        ]);
        let ended = run(command.args(["sh", "-c", "echo out; echo err >&2; exit 7"])).exited(7);
        assert_eq!(ended.stdout(), "out\n");
        assert!(ended.stderr().contains("err\n"), "{}", ended.stderr());
    }
}

#[test]
fn several_programs_on_one_line() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
        let trace = work.path().join("out.vef");
        let mut command = vef();
        command.current_dir(work.path()).args(["run", "--mix"]).arg(&trace).arg("--").args(mpi.launcher());
        command.args(["-n", "2"]).arg(&program).args([":", "-n", "2", "env"]).arg(&program);
        run(&mut command).success();
        let header = std::fs::read_to_string(trace).expect("a trace");
        assert!(header.starts_with("VEF3 4 "), "{}", header.lines().next().unwrap_or_default());
    }
}

/// The identity of the run in the files of a capture of two ranks, which must agree.
fn identity(capture: &Path) -> u64 {
    let capture = Capture::open(capture).expect("a capture");
    let runs: Vec<u64> =
        (0..2).map(|rank| capture.rank(Rank(rank)).map(|info| info.run).expect("a rank")).collect();
    assert!(runs[0] != 0 && runs[0] == runs[1], "{runs:?}");
    runs[0]
}

/// `vef mix` of a capture.
fn mixed(capture: &Path) -> Ended {
    run(vef().args(["mix", "-i"]).arg(capture).arg("-o").arg(capture.with_extension("vef")))
}

#[test]
fn files_of_two_runs_do_not_pass_for_a_capture() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "phases", &["tests/c/phases.c"]);
        let program = program.to_str().expect("a path");
        let wrapper = work.path().join("wrapper.sh");
        std::fs::write(&wrapper, "#!/bin/sh\n\"$@\"\n").expect("a script");
        run(Command::new("chmod").arg("+x").arg(&wrapper)).success();
        let wrapper = wrapper.to_str().expect("a path");

        let lines: [&[&str]; 2] =
            [&["-n", "2", program], &["-n", "1", program, ":", "-n", "1", wrapper, program]];
        let captured = |name: &str, by_vef: bool, line: &[&str]| {
            let capture = work.path().join(name);
            let mut command = match by_vef {
                true => vef(),
                false => Command::new(mpi.launcher()[0]),
            };
            if by_vef {
                command.arg("run").arg("-o").arg(&capture).arg("--").args(mpi.launcher());
            } else {
                command.args(&mpi.launcher()[1..]).env("VEF_DIR", &capture);
                command.env("LD_PRELOAD", products().join("libvef_interpose.so"));
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            }
            run(command.args(line)).success();
            (identity(&capture), capture)
        };
        for by_vef in [true, false] {
            let [(one, first), (other, second)] =
                [0, 1].map(|number| captured(&format!("capture-{by_vef}-{number}"), by_vef, lines[number]));
            assert_ne!(one, other);
            mixed(&first).success();
            let (swapped, whose) = (rank_path(&first, Rank(1)), rank_path(&first, Rank(0)));
            std::fs::copy(rank_path(&second, Rank(1)), &swapped).expect("copied");
            let said = mixed(&first).exited(2).stderr();
            let expected = format!("{}: is of another run than {}\n", swapped.display(), whose.display());
            assert!(said.ends_with(&expected), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
            // With the other file of that run, compressed, it is one again.
            compress(&second, Rank(0)).expect("compressed");
            std::fs::remove_file(&whose).expect("removed");
            std::fs::copy(second.join("0.vefc.zst"), first.join("0.vefc.zst")).expect("copied");
            mixed(&first).success();
        }
    }
}

/// A profiling library that calls `PMPI` takes calls away in front of the recorder, which says so; behind it, both see all.
#[test]
fn a_profiling_library_belongs_behind() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
        let profiler = ["-shared", "-fPIC", "-DTO_PMPI", "tests/c/profiler.c", "-ldl"];
        let profiler = mpi.compile(work.path(), "profiler.so", &profiler);
        let recorder = products().join("libvef_interpose.so");
        let sent = |libraries: [&Path; 2]| {
            let capture = work.path().join("capture");
            let _ = std::fs::remove_dir_all(&capture);
            let preload = libraries.map(|library| library.display().to_string()).join(":");
            let mut command = Command::new(mpi.launcher()[0]);
            command.args(&mpi.launcher()[1..]).args(["-n", "2", "env", &format!("LD_PRELOAD={preload}")]);
            command.arg(format!("VEF_DIR={}", capture.display())).arg(&program);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            let ended = run(command.current_dir(work.path())).success();
            let capture = Capture::open(&capture).expect("a capture");
            (Digest::of(&capture, |_| {}).expect("readable").messages, ended.stderr())
        };
        let (all, said) = sent([&recorder, &profiler]);
        assert!(!said.contains("in front of the recorder"), "{said}");
        let (some, said) = sent([&profiler, &recorder]);
        assert!(some < all, "{mpi:?}: {some} of {all}");
        let told =
            format!("vef: {} stands in front of the recorder and has its own MPI_Send", profiler.display());
        assert_eq!(said.matches(&told).count(), 1, "{mpi:?}: {said}");
    }
}

/// An allocator may stand in front of the recorder and behind it.
#[test]
fn an_allocator_is_preloaded_too() {
    let jemalloc = Path::new("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2");
    if !jemalloc.is_file() {
        return skipped("libjemalloc2 is not installed (scripts/deps)");
    }
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
        let recorder = products().join("libvef_interpose.so");
        let messages =
            [&[recorder.as_path()][..], &[jemalloc, &recorder], &[&recorder, jemalloc]].map(|libraries| {
                let capture = work.path().join("capture");
                let _ = std::fs::remove_dir_all(&capture);
                let preload: Vec<_> = libraries.iter().map(|library| library.display().to_string()).collect();
                let mut command = Command::new(mpi.launcher()[0]);
                command.args(&mpi.launcher()[1..]).args(["-n", "2", "env"]);
                command
                    .arg(format!("LD_PRELOAD={}", preload.join(":")))
                    .arg(format!("VEF_DIR={}", capture.display()));
                command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                assert_eq!(run(command.arg(&program)).success().stderr(), "", "{mpi:?}");
                Digest::of(&Capture::open(&capture).expect("a capture"), |_| {}).expect("readable").messages
            });
        assert!(
            messages[0] > 0 && messages.iter().all(|&number| number == messages[0]),
            "{mpi:?}: {messages:?}"
        );
    }
}

/// A program that is not linked to its MPI, and finds its functions by name in the global scope, as MPI.jl does.
#[test]
fn names_of_the_global_scope_are_recorded() {
    for (mpi, library) in [(Mpi::Mpich, "libmpich.so.12"), (Mpi::OpenMpi, "libmpi.so.40")] {
        if !Mpi::installed().contains(&mpi) {
            continue;
        }
        let work = tempfile::tempdir().expect("a directory");
        let headers = run(mpi.compiler().arg("-show")).success().stdout();
        let mut compiler = Command::new("cc");
        compiler.args(headers.split_whitespace().filter(|word| word.starts_with("-I"))).current_dir(root());
        let program = work.path().join("global_names");
        run(compiler.args(["-w", "-o"]).arg(&program).args(["tests/c/global_names.c", "-ldl"])).success();
        let capture = work.path().join("capture");
        let mut command = vef();
        command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        run(command.arg("--").arg(&program).arg(library)).success();
        let digest = Digest::of(&Capture::open(&capture).expect("a capture"), |_| {}).expect("readable");
        assert_eq!((digest.messages, digest.never_completed), (2, 0), "{mpi:?}");
    }
}

/// The library is loaded into users' programs, on machines with older systems than that on which it was built. What a build on Debian 12
/// needs beyond glibc 2.28 (RHEL 8) is what glibc moved from other libraries, or gave a new name; a build on an older system needs less.
#[test]
fn the_recorder_needs_no_later_glibc_than_it_has_to() {
    const ALLOWED: (u32, u32) = (2, 34);
    let mut objdump = Command::new("objdump");
    let listing = run(objdump.arg("-T").arg(products().join("libvef_interpose.so"))).success().stdout();
    let needed = |line: &str| {
        let version = line.split_once("(GLIBC_")?.1.split_once(')')?;
        let mut numbers = version.0.split('.').map(|number| number.parse().ok());
        Some(((numbers.next()??, numbers.next()??), version.1.trim().to_owned()))
    };
    let symbols: Vec<((u32, u32), String)> = listing.lines().filter_map(needed).collect();
    assert!(symbols.len() > 20, "{listing}");
    let too_new: Vec<_> = symbols.iter().filter(|(version, _)| *version > ALLOWED).collect();
    assert!(too_new.is_empty(), "{too_new:?}");
}
