//! Inside a crate the files depend one way, too: no circles of files (how they are found: `tests/src/modules.rs`).

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
