//! Inside a crate the files depend one way, too: no circles of files (how they are found: `tests/src/modules.rs`). And no file of tests
//! is left out of its suite.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use vef_tests::modules::Crate;

#[test]
fn files_depend_one_way() {
    let root = vef_tests::root();
    let mut found = BTreeSet::new();
    let mut reasons = String::new();
    for entry in std::fs::read_dir(&root).expect("the repository") {
        let folder = entry.expect("an entry").path();
        for file in ["src/lib.rs", "src/main.rs"].map(|file| folder.join(file)) {
            if !file.is_file() {
                continue;
            }
            let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
            let of = Crate::load(&file.strip_prefix(&root).expect("a path in it").to_string_lossy(), &read);
            let dependencies = of.dependencies();
            for circle in of.circles() {
                for (from, to) in circle.iter().flat_map(|from| circle.iter().map(move |to| (from, to))) {
                    if let Some(name) = dependencies[from].get(to) {
                        let _ = writeln!(reasons, "{from} uses {name} of {to}");
                    }
                }
                found.insert(circle);
            }
        }
    }
    assert!(found.is_empty(), "circles of files: {found:#?}\n{reasons}");
}

/// A file of tests that its suite does not name would never run.
#[test]
fn every_file_of_tests_runs() {
    let mut suites = 0;
    for entry in std::fs::read_dir(vef_tests::root()).expect("the repository") {
        let folder = entry.expect("an entry").path();
        let tests = folder.join("tests");
        let Ok(suite) = std::fs::read_to_string(tests.join("suite.rs")) else { continue };
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        suites += 1;
        for entry in std::fs::read_dir(tests).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let runs = suite.contains(&format!("\nmod {name};\n"))
                || manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
            let is_tests = path.extension().is_some_and(|kind| kind == "rs") || path.join("mod.rs").is_file();
            assert!(runs || !is_tests, "{} is in no program: name it in suite.rs beside it", path.display());
        }
    }
    assert!(suites >= 10, "{suites} suites");
}
