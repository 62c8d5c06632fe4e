//! The table of `docs/c-api.md` has every facility of the crate `replay`, of `vef_replay.h` and of `vef_replay.hpp`, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names in backquotes in a column of the table, from 1, but for cells of a dash and a reason.
fn column(number: usize) -> BTreeSet<String> {
    let guide = read("docs/c-api.md");
    let (_, table) = guide.split_once("## The same in Rust, C and C++\n").expect("the table");
    let rows =
        table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut names = BTreeSet::new();
    for row in rows.skip(2) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 6, "{row}");
        let cell = cells[number + 1];
        if !cell.starts_with('–') {
            names.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    names
}

/// What follows `before` in a text, as far as it is a name.
fn names_after(text: &str, before: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = |after: &str| after.split(|c| !is_part(c)).next().unwrap_or_default().to_owned();
    text.split(before).skip(1).map(name).collect()
}

/// The public methods of the types that describe and drive a replay.
fn methods() -> BTreeSet<String> {
    let mut methods = BTreeSet::new();
    for file in fs::read_dir(root().join("replay/src")).expect("the sources") {
        let path = file.expect("a file").path();
        let Ok(source) = fs::read_to_string(&path) else { continue };
        for kind in ["Builder", "Job", "Replay", "Engine"] {
            for block in source.split(&format!("\nimpl {kind} {{\n")).skip(1) {
                let block = block.split("\n}\n").next().unwrap_or_default();
                methods
                    .extend(names_after(block, "\n    pub fn ").iter().map(|name| format!("{kind}::{name}")));
            }
        }
    }
    methods
}

#[test]
fn every_method_in_rust_has_a_row() {
    let mut table = column(1);
    for other in ["Result", "Stats::of", "Sink"] {
        table.remove(other);
    }
    let methods = methods();
    assert!(methods.len() > 40, "{methods:?}");
    assert_eq!(table, methods);
}

#[test]
fn every_function_in_c_has_a_row() {
    let header = read("replay-ffi/include/vef_replay.h");
    let declared = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/']) && line.contains("vef_") && line.contains('('));
    let name = |line: &str| line.split('(').next()?.rsplit([' ', '*']).next().map(str::to_owned);
    let declared: BTreeSet<String> =
        declared.filter(|line| !line.starts_with("typedef")).filter_map(name).collect();
    assert!(declared.len() > 50, "{declared:?}");
    assert_eq!(column(2), declared);
}

#[test]
fn every_method_in_cpp_has_a_row() {
    let header = read("replay-ffi/include/vef_replay.hpp");
    let mut methods = BTreeSet::new();
    let mut public = false;
    for line in header.lines() {
        match line {
            "public:" => public = true,
            "private:" => public = false,
            _ => {}
        }
        // Four spaces: a declaration of the class; constructors and operators have no type in front.
        let declared =
            line.strip_prefix("    ").filter(|rest| public && !rest.starts_with([' ', '/', '{', '}', '*']));
        let Some(declared) = declared.filter(|rest| rest.contains('(') && !rest.contains("operator")) else {
            continue;
        };
        let head = declared.split('(').next().unwrap_or_default();
        if let Some((_, name)) = head.rsplit_once([' ', '&', '*'])
            && !name.starts_with(|c: char| c.is_ascii_uppercase())
        {
            methods.insert(name.to_owned());
        }
    }
    assert!(methods.len() > 40, "{methods:?}");
    assert_eq!(column(3), methods);
}
