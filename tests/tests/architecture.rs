//! Dependencies between the workspace's crates point down only, and the lockfile keeps the promised
//! minimum Rust version.

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::collections::BTreeMap;

/// The level of each crate and what it may use of the others: docs/architecture.md draws the same table.
const HOUSE: &[(&str, u8, &[&str])] = &[
    ("vef-format", 1, &[]),
    ("mpi-abi", 1, &[]),
    ("collectives", 1, &[]),
    ("interpose", 2, &["mpi-abi", "vef-format"]),
    ("mixer", 2, &["vef-format", "collectives", "mpi-abi"]),
    ("replay", 2, &["vef-format", "collectives"]),
    ("placement", 2, &[]),
    ("reports", 2, &["vef-format"]),
    ("sim-example", 3, &["replay", "placement", "vef-format"]),
    ("replay-ffi", 3, &["replay", "placement"]),
    ("collbench", 4, &["mpi-abi", "collectives", "sim-example"]),
    (
        "cli",
        5,
        &[
            "vef-format",
            "mpi-abi",
            "collectives",
            "mixer",
            "replay",
            "placement",
            "reports",
            "sim-example",
            "collbench",
        ],
    ),
];

/// Packages that hold no part of the product and may use any of it.
const OUTSIDE: &[&str] = &["vef-tests", "vef-benches"];

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
    let level = |name: &str| HOUSE.iter().find(|(n, ..)| *n == name).map(|&(_, level, _)| level);

    for (name, package) in &ours {
        if OUTSIDE.contains(name) {
            continue;
        }
        let (_, own_level, allowed) = HOUSE
            .iter()
            .find(|(n, ..)| n == name)
            .unwrap_or_else(|| panic!("{name} is not in the table of this test: give it a level"));
        for used in uses(package, &ours) {
            assert!(allowed.contains(&used), "{name} uses {used}, which the map does not allow");
            assert!(level(used).is_some_and(|l| l < *own_level), "{name} → {used} does not point down");
        }
    }
    for (name, ..) in HOUSE {
        assert!(ours.contains_key(name), "{name} is in the table but not in the workspace");
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
