//! What recording costs a program, a call: whole programs in pairs, without and with the preload library; every difference, and their
//! median. Beside it the floor: two clock reads and an append of 40 bytes, measured anew with every pair. All in time of the processor, the
//! system's for the program included.
//!
//!     cargo bench -p vef-benches --bench capture [-- PAIRS]
//!
//! Needs an MPI with its C compiler (`scripts/deps`); says which it did not find.

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::{Path, PathBuf};
use std::process::Command;
use vef_benches::preload::{MPIS, build_library};

/// Mode of `benches/c/micro.c`, iterations.
const MODES: [(&str, &str); 2] = [("local", "20000000"), ("self", "1000000")];

fn main() {
    let pairs = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(7);
    let library = build_library();
    let work = tempfile::tempdir().expect("a directory");
    for (compiler, launcher) in MPIS {
        let Some(program) = compile(compiler, work.path()) else {
            println!("{compiler}: not here");
            continue;
        };
        for (mode, iterations) in MODES {
            let of = |mode, iterations, preload: Option<&Path>| {
                nanos_a_call(launcher, &program, mode, iterations, preload, work.path())
            };
            let (mut floors, mut bare, mut added) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..pairs {
                floors.push(of("floor", "1000000", None));
                let without = of(mode, iterations, None);
                bare.push(without);
                added.push(of(mode, iterations, Some(&library)) - without);
            }
            let (bare, median_added, floor) =
                (median(&mut bare), median(&mut added.clone()), median(&mut floors));
            println!(
                "{launcher} {mode}: {bare:.1} ns a call, {median_added:+.1} ns recorded (median of {pairs} pairs), floor {floor:.1} ns: {:.2} x",
                median_added / floor,
            );
            let all: Vec<String> = added.iter().map(|added| format!("{added:+.1}")).collect();
            println!("    all pairs: {}", all.join(" "));
        }
    }
}

fn compile(compiler: &str, work: &Path) -> Option<PathBuf> {
    let program = work.join(compiler);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c/micro.c");
    let compiled = Command::new(compiler).arg("-O2").arg("-o").arg(&program).arg(source).status().ok()?;
    compiled.success().then_some(program)
}

fn nanos_a_call(
    launcher: &str,
    program: &Path,
    mode: &str,
    iterations: &str,
    preload: Option<&Path>,
    work: &Path,
) -> f64 {
    let capture = work.join("capture");
    let mut command = Command::new(launcher);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1").args(["-n", "1"]);
    if let Some(library) = preload {
        command
            .arg("env")
            .arg(format!("LD_PRELOAD={}", library.display()))
            .arg(format!("VEF_DIR={}", capture.display()));
    }
    let output = command.arg(program).args([mode, iterations]).output().expect("the launcher");
    let recorded = std::fs::remove_dir_all(&capture).is_ok();
    assert_eq!(recorded, preload.is_some(), "recorded when it should not, or not when it should");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("nanoseconds")
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
