//! What `scripts/install` installs beside the programs, and the packages made from that: a Debian package that is installed into an empty
//! root, captures a program there, and leaves nothing behind when it is removed; an archive that works where it is unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vef_tests::{Mpi, have, products, root, run, run_for, skipped, vef};

/// Runs one of `scripts/` with what is built already; returns the file that it has made.
fn package(script: &str, to: &Path) -> PathBuf {
    let profile = if products().ends_with("release") { "release" } else { "dev" };
    let mut command = Command::new(root().join("scripts").join(script));
    command.arg(to).env("VEF_INSTALL_PROFILE", profile);
    let made = run_for(&mut command, Duration::from_secs(600)).success().stdout();
    made.lines().last().expect("a file").into()
}

/// Captures a program by this `vef`.
fn captures(program: &Path, work: &Path) {
    let Some(&mpi) = Mpi::installed().first() else { return };
    let ring = mpi.compile(work, "spine", &["tests/c/spine.c"]);
    let mut command = Command::new(program);
    for (name, value) in vef().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env_remove("VEF_INTERPOSE").current_dir(work);
    command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "--mix", "spine.vefx", "--"]);
    run(command.arg(ring)).success();
    assert!(work.join("spine.vefx").exists());
}

#[test]
fn the_debian_package_is_installed_and_removed() {
    if !have("dpkg-deb") {
        return skipped("dpkg-deb is not here: no Debian package");
    }
    let work = tempfile::tempdir().expect("a directory");
    let package = package("deb", work.path());
    match have("lintian") {
        true => {
            let said = run(Command::new("lintian").arg(&package)).success().stdout();
            assert_eq!(said, "", "lintian");
        }
        false => skipped("lintian is not here: the Debian package is not looked at"),
    }
    let system = work.path().join("root");
    for directory in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"] {
        fs::create_dir_all(system.join(directory)).expect("created");
    }
    for file in ["status", "available"] {
        fs::write(system.join("var/lib/dpkg").join(file), "").expect("written");
    }
    let dpkg = |words: &[&str]| {
        let mut command = Command::new("dpkg");
        // Its dependencies are this system's; the empty root has no shell.
        command.arg("--root").arg(&system).args(["--force-depends", "--force-not-root", "--log=/dev/null"]);
        run(command.args(words)).success()
    };
    dpkg(&["--install", package.to_str().expect("a path")]);
    let usr = system.join("usr");
    let version = run(Command::new(usr.join("bin/vef")).arg("--version")).success().stdout();
    assert_eq!(version, format!("vef {}\n", env!("CARGO_PKG_VERSION")));
    assert!(!usr.join("lib/libvef_interpose.so").exists(), "where the loader looks");
    captures(&usr.join("bin/vef"), work.path());
    for file in
        ["doc/vef/copyright", "doc/vef/changelog.gz", "man/man1/vef-sim.1.gz", "man/man1/vmpirun.1.gz"]
    {
        assert!(fs::metadata(usr.join("share").join(file)).is_ok_and(|there| there.len() > 100), "{file}");
    }
    dpkg(&["--purge", "vef"]);
    assert!(!usr.exists(), "{:?}", fs::read_dir(&usr).map(|left| left.count()));
}

#[test]
fn the_archive_works_where_it_is_unpacked() {
    let work = tempfile::tempdir().expect("a directory");
    let archive = package("tarball", work.path());
    run(Command::new("tar").arg("-C").arg(work.path()).arg("-xf").arg(&archive)).success();
    let name = archive.file_name().and_then(|name| name.to_str()).expect("a name");
    let prefix = work.path().join(name.strip_suffix(".tar.gz").expect("an archive"));
    captures(&prefix.join("bin/vef"), work.path());
    // Each command has a page without a warning of the formatter, and completions are valid.
    let help = run(vef().arg("--help")).success().stdout();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"sim") && !commands.contains(&"generate"), "{help}");
    for command in commands.iter().filter(|command| **command != "help") {
        let page = prefix.join(format!("share/man/man1/vef-{command}.1"));
        let text = fs::read_to_string(&page).expect("a page");
        assert!(
            text.contains(".SH NAME") && text.contains(&format!("vef\\-{command}")),
            "{}",
            page.display()
        );
        if have("man") {
            let mut man = Command::new("man");
            man.args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]).arg(&page).env("LC_ALL", "C.UTF-8");
            let warnings = run(man.env("MANROFFSEQ", "")).success().stderr();
            assert_eq!(warnings, "", "{}", page.display());
        }
    }
    let completions = prefix.join("share/bash-completion/completions/vef");
    let script = format!("source {} && complete -p vef", completions.display());
    assert!(run(Command::new("bash").args(["-c", &script])).success().stdout().contains("vef"));
    // Installed pages say which commands need the source.
    let page = fs::read_to_string(prefix.join("share/doc/vef/README.md")).expect("README.md");
    assert!(page.contains("need vef's source"), "{}", page.lines().take(5).collect::<String>());
}

#[test]
fn the_spack_recipe_is_of_this_version() {
    let recipe = fs::read_to_string(root().join("replay-ffi/packaging/spack/packages/vef/package.py"))
        .expect("the recipe");
    let (version, rust) = (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_RUST_VERSION"));
    assert!(recipe.contains(&format!("version(\"{version}\")")), "not version {version}: {recipe}");
    assert!(recipe.contains(&format!("\"rust@{rust}:\"")), "not Rust {rust}: {recipe}");
}
