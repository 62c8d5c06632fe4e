//! With the feature `embed`: builds the libraries that `vef run` preloads, so that they become part of the command. Cargo installs
//! programs only, and has no dependency on a library of this kind.

use std::path::Path;
use std::process::Command;

/// Packages and the libraries that they make.
const LIBRARIES: [(&str, &str); 2] =
    [("interpose", "libvef_interpose.so"), ("substitute", "libvef_collectives.so")];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_EMBED").is_none() {
        return;
    }
    let variable = |name: &str| std::env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"));
    let (package, out) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
    let root = Path::new(&package).parent().expect("the workspace");
    let parts = ["interpose", "substitute", "mpi-abi", "vef-format", "collectives"];
    for part in parts.into_iter().chain(["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"]) {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    // A directory of its own: the other one is locked by the build that this is part of.
    let directory = Path::new(&out).join("target");
    let target = variable("TARGET");
    let mut build = Command::new(variable("CARGO"));
    build.current_dir(root).args(["build", "--locked", "--release", "--target-dir"]).arg(&directory);
    build.arg("--target").arg(&target);
    build.env("CARGO_PROFILE_RELEASE_STRIP", "symbols").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let built = build.args(LIBRARIES.iter().flat_map(|(package, _)| ["-p", package])).status();
    assert!(built.is_ok_and(|status| status.success()), "the preloaded libraries do not build");
    for (_, file) in LIBRARIES {
        let (from, to) = (directory.join(&target).join("release").join(file), Path::new(&out).join(file));
        std::fs::copy(&from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }
}
