//! How a test says that it did not test.
//!
//! The test harness knows no "skipped": such a test returns early and counts as `ok`. This crate makes it visible. A line
//! `SKIPPED test: why` goes to stderr past the harness, which hides what passing tests print, and to the file that
//! `VEF_SKIPPED` names, from which `scripts/test` makes its last paragraph.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The variable with the file that lists the tests which were skipped.
const LIST: &str = "VEF_SKIPPED";

/// Says that the running test did not test, or not all. Each test says each reason once.
pub fn skipped(why: impl Display) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let thread = std::thread::current();
    // The harness names threads by their tests; with one thread for all there is the program's name.
    let program = std::env::args().next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let test = thread.name().filter(|name| *name != "main").map_or(program, str::to_owned);
    let line = format!("SKIPPED {test}: {why}\n");
    if !SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        return;
    }
    // In one write: tests run side by side. A reader that has left is no reason to fail.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os(LIST) {
        let list = File::options().create(true).append(true).open(list);
        let _ = list.and_then(|mut list| list.write_all(line.as_bytes()));
    }
}

/// A file or folder of the material that lies beside the repository. Where it is absent the test is [`skipped`].
pub fn shared(path: &str) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let full = repository.canonicalize().unwrap_or(repository).join("../shared").join(path);
    if !full.exists() {
        skipped(format_args!("../shared/{path} is absent"));
        return None;
    }
    Some(full)
}

/// Whether a program is in `PATH`; the test is [`skipped`] without it.
pub fn installed(program: &str) -> bool {
    let there = have(program);
    if !there {
        skipped(format_args!("{program} is not installed (scripts/deps)"));
    }
    there
}

/// Whether a program is in `PATH`.
pub fn have(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|directory| directory.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    #[ignore = "is started by the other test"]
    fn skips() {
        for _ in 0..2 {
            assert_eq!(shared("no such thing"), None);
        }
    }

    #[test]
    fn a_skipped_test_is_seen_and_listed() {
        let list = std::env::temp_dir().join(format!("vef-skipped.{}", std::process::id()));
        let this = std::env::current_exe().expect("the test's own path");
        let ended =
            Command::new(this).args(["--ignored", "skips"]).env(LIST, &list).output().expect("it starts");
        let listed = std::fs::read_to_string(&list).expect("a list");
        std::fs::remove_file(&list).expect("a file");
        assert!(ended.status.success());
        let line = "SKIPPED tests::skips: ../shared/no such thing is absent\n";
        assert_eq!((String::from_utf8_lossy(&ended.stderr).as_ref(), listed.as_str()), (line, line));
    }
}
