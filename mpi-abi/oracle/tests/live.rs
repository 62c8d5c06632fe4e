//! The calls of `mpi_abi::api` under the real MPI, in programs that were not linked with it.

use std::path::PathBuf;
use std::process::Command;

use mpi_abi::tables::Flavour;

/// From the real header: Open MPI's communicators are pointers.
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
