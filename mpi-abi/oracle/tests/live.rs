//! The calls of `mpi_abi::api` under the real MPI, in programs that were not linked with it.

use std::path::PathBuf;
use std::process::Command;

use mpi_abi::tables::Flavour;

/// Told by the real header: Open MPI's communicators are pointers.
fn flavour() -> Flavour {
    if size_of::<mpi_sys::MPI_Comm>() == 8 { Flavour::OpenMpi } else { Flavour::Mpich }
}

/// The launcher and the library of the MPI that this package was built for.
fn launcher() -> (&'static str, &'static str) {
    match flavour() {
        Flavour::OpenMpi => ("mpirun.openmpi", "libmpi.so.40"),
        _ => ("mpirun.mpich", "libmpich.so.12"),
    }
}

fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    test.ancestors().nth(2).expect("target/debug/deps/live").join("examples").join(name)
}

fn run(mut command: Command) -> String {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn three_processes_that_open_their_mpi_themselves() {
    let mut command = Command::new(launcher().0);
    command.args(["-n", "3"]).arg(example("selfcheck"));
    let text = run(command);
    assert_eq!(text.matches("all as it should be").count(), 3, "{text}");
    assert_eq!(text.matches(&format!("({:?})", flavour())).count(), 3, "{text}");
}

#[test]
fn a_program_that_opens_its_mpi_out_of_the_global_scope() {
    let (launcher, library) = launcher();
    let mut command = Command::new(launcher);
    command.args(["-n", "2"]).arg(example("selfcheck")).args(["--local", library]);
    assert_eq!(run(command).matches("all as it should be").count(), 2);
}

/// The preload library with a wrapper for every function.
fn passthrough() -> String {
    example("libpassthrough.so").to_str().expect("a path in UTF-8").to_owned()
}

#[test]
fn a_program_does_not_notice_wrappers_around_every_function() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/program.c");
    let program = folder.join("program");
    let mut compile = Command::new(launcher().0.replace("mpirun", "mpicc"));
    compile.args(["-fno-pic", "-no-pie", "-Wall", "-o"]).arg(&program).arg(source).arg("-ldl");
    run(compile);
    let mut command = Command::new(launcher().0);
    command.args(["-n", "3", "env", &format!("LD_PRELOAD={}", passthrough())]).arg(program);
    assert_eq!(run(command).matches("nothing noticed").count(), 3);
}

#[test]
fn programs_without_mpi_do_not_notice_either() {
    let mut shell = Command::new("bash");
    shell.env("LD_PRELOAD", passthrough()).args(["-c", "echo one two | grep -o two && sh -c 'exit 0'"]);
    assert_eq!(run(shell), "two\n");
}

#[test]
fn a_preloaded_profiler_an_interpreter_and_our_library_get_along() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/interpreter.c");
    let mpicc = launcher().0.replace("mpirun", "mpicc");
    let compile = |compiler: &str, part: &str, flags: &[&str]| {
        let output = folder.join(part.to_lowercase()).to_str().expect("a path in UTF-8").to_owned();
        let mut command = Command::new(compiler);
        command.arg(format!("-D{part}")).args(flags).arg("-o").arg(&output).arg(&source).arg("-ldl");
        run(command);
        output
    };
    let host = compile("gcc", "HOST", &[]);
    let module = compile(&mpicc, "MODULE", &["-shared", "-fPIC"]);
    // Not linked with MPI: that would bring it into the global scope.
    let mut show = Command::new(&mpicc);
    show.arg("-show");
    let show = run(show);
    let include =
        show.split_whitespace().find(|word| word.starts_with("-I")).expect("mpicc adds its headers");
    let profiler = compile("gcc", "PROFILER", &["-shared", "-fPIC", include]);

    let mut command = Command::new(launcher().0);
    let preload = format!("LD_PRELOAD={profiler} {}", passthrough());
    command.args(["-n", "2", "env", &preload, &host, &module]);
    assert_eq!(run(command).matches("profiled").count(), 2);
}
