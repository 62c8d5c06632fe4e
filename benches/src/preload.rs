//! What the benchmarks of the preload library share.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiler, launcher.
pub const MPIS: [(&str, &str); 2] = [("mpicc.mpich", "mpiexec.mpich"), ("mpicc.openmpi", "mpirun.openmpi")];

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Builds the library as users do and says where it is.
///
/// # Panics
/// When it does not build.
pub fn build_library() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .current_dir(root())
        .args(["build", "--release", "-p", "interpose"])
        .status();
    assert!(built.expect("cargo").success(), "the library does not build");
    let bench = std::env::current_exe().expect("the benchmark's path");
    let directory = bench.parent().and_then(Path::parent).expect("target/release");
    directory.join("libvef_interpose.so")
}
