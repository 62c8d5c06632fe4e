//! Dependencies between the workspace's crates point down only, as the table in docs/architecture.md says, and the lockfile
//! keeps the promised minimum Rust version.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::BTreeMap;

/// A row of the table in docs/architecture.md: a crate, its level, and what it may use of the others.
struct Row {
    name: String,
    level: u8,
    uses: Vec<String>,
}

/// The table of crates in docs/architecture.md.
fn house() -> Vec<Row> {
    let path = vef_tests::root().join("docs/architecture.md");
    let text = std::fs::read_to_string(&path).expect("docs/architecture.md");
    let table = text.lines().skip_while(|line| !line.starts_with("| level | crate |")).skip(2);
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<Vec<String>> = table.take_while(|line| line.starts_with('|')).map(cells).collect();
    let name = |row: &[String]| {
        // The first word in backquotes: a folder, which the package is named after.
        let folder = row[1].split('`').nth(1).unwrap_or_else(|| panic!("no crate in {row:?}"));
        folder.trim_end_matches('/').to_owned()
    };
    let names: Vec<String> = rows.iter().map(|row| name(row)).collect();
    let of_row = |row: Vec<String>| Row {
        level: row[0].parse().unwrap_or_else(|_| panic!("no level in {row:?}")),
        uses: match row[3].as_str() {
            "–" => Vec::new(),
            "all" => names.iter().filter(|other| **other != name(&row)).cloned().collect(),
            list => list.split(", ").map(str::to_owned).collect(),
        },
        name: name(&row),
    };
    rows.into_iter().map(of_row).collect()
}

/// Packages that hold no part of the product and may use any of it.
const OUTSIDE: &[&str] = &["vef-tests", "vef-benches", "skipping"];

fn metadata() -> Metadata {
    MetadataCommand::new().other_options(vec!["--locked".into()]).exec().expect("cargo metadata")
}

/// What `package` uses of the workspace, dev-dependencies left out.
fn uses<'a>(package: &'a Package, ours: &BTreeMap<&str, &Package>) -> Vec<&'a str> {
    package
        .dependencies
        .iter()
        .filter(|d| d.kind != DependencyKind::Development && ours.contains_key(d.name.as_str()))
        .map(|d| d.name.as_str())
        .collect()
}

#[test]
fn dependencies_point_down() {
    let metadata = metadata();
    let ours: BTreeMap<&str, &Package> =
        metadata.workspace_packages().into_iter().map(|p| (p.name.as_str(), p)).collect();
    let house = house();
    assert!(house.len() > 10, "{} rows in the table of docs/architecture.md", house.len());
    let row = |name: &str| house.iter().find(|row| row.name == name);

    for (name, package) in &ours {
        if OUTSIDE.contains(name) {
            continue;
        }
        let own = row(name).unwrap_or_else(|| panic!("{name} is not in the table of docs/architecture.md"));
        for used in uses(package, &ours) {
            assert!(
                own.uses.iter().any(|allowed| allowed == used),
                "{name} uses {used}, which docs/architecture.md does not say"
            );
            assert!(
                row(used).is_some_and(|used| used.level < own.level),
                "{name} → {used} does not point down"
            );
        }
    }
    for Row { name, .. } in &house {
        assert!(ours.contains_key(name.as_str()), "{name} is in the table but not in the workspace");
    }
}

#[test]
fn nothing_links_the_preload_library() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        assert!(
            package.dependencies.iter().all(|d| d.name != "interpose"),
            "{}: an rlib of the interposer would leak MPI_* symbols",
            package.name
        );
    }
    let interpose = metadata.packages.iter().find(|p| p.name == "interpose").expect("interpose");
    let library = interpose.targets.iter().find(|t| t.name == "vef_interpose").expect("its library");
    assert_eq!(library.crate_types.len(), 1);
    assert_eq!(library.crate_types[0].to_string(), "cdylib");
}

#[test]
fn the_lockfile_keeps_the_minimum_rust_version() {
    let metadata = metadata();
    let ours = metadata.workspace_packages();
    let promised = ours[0].rust_version.clone().expect("rust-version of the workspace");
    for package in &ours {
        assert_eq!(package.rust_version.as_ref(), Some(&promised), "{}", package.name);
    }
    for package in &metadata.packages {
        if let Some(needed) = &package.rust_version {
            assert!(
                *needed <= promised,
                "{} {} needs Rust {needed}, the workspace promises {promised}",
                package.name,
                package.version
            );
        }
    }
}

/// Pages whose file names must be those of files. A name may stand behind a longer one, and continue from one of its folders.
const PAGES: &[&str] = &["docs/architecture.md"];

#[test]
fn files_that_the_pages_name_are_there() {
    let root = vef_tests::root();
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        let mut named = 0;
        for line in text.lines() {
            let mut folder = std::path::PathBuf::new();
            let is_file = |name: &&str| {
                let letters = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
                name.chars().all(letters)
                    && !name.starts_with('/')
                    && (name.contains(".rs") || name.contains('/'))
            };
            for name in line.split('`').skip(1).step_by(2).filter(is_file) {
                let found =
                    folder.ancestors().map(|folder| folder.join(name)).find(|path| root.join(path).exists());
                let found = found.unwrap_or_else(|| panic!("{page}: there is no {name}: {line}"));
                folder = if root.join(&found).is_dir() {
                    found
                } else {
                    found.parent().unwrap_or(&found).to_path_buf()
                };
                named += 1;
            }
        }
        assert!(named > 5, "{page} names {named} files");
    }
}
