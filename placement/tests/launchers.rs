//! What holds for the rules of every launcher in the list.

use clap::{Args, FromArgMatches};
use placement::{Error, LAUNCHERS, Launcher, Placement, Request, launcher};

/// Parses the options of a launcher.
fn request(words: &[&str]) -> Request {
    let matches = Request::augment_args(clap::Command::new("request").no_binary_name(true))
        .try_get_matches_from(words)
        .unwrap_or_else(|error| panic!("{error}"));
    Request::from_arg_matches(&matches).unwrap_or_else(|error| panic!("{error}"))
}

fn place(launcher: &dyn Launcher, words: &[&str]) -> Result<Placement, Error> {
    launcher.place(&request(words))
}

/// The options that not every launcher has, with a value where they take one.
const SPECIAL: [&[&str]; 11] = [
    &["--map-by", "node"],
    &["--rank-by", "node"],
    &["--bynode"],
    &["--rankfile", "/nowhere"],
    &["--hwloc", "/nowhere"],
    &["--ntasks-per-node", "1"],
    &["--distribution", "block"],
    &["--launch-node", "node0"],
    &["--core", "1"],
    &["--nooversubscribe"],
    &["--unknown-slots", "1"],
];

#[test]
fn each_has_a_name_of_its_own() {
    for listed in LAUNCHERS {
        let found = launcher(listed.name()).expect("its name is known");
        assert!(std::ptr::eq(found, listed), "two launchers are called {}", listed.name());
    }
    assert!(launcher("").is_none());
}

#[test]
fn each_refuses_the_options_that_it_does_not_list() {
    for launcher in LAUNCHERS {
        for option in launcher.options() {
            assert!(SPECIAL.iter().any(|special| special[0] == *option), "{}: {option}", launcher.name());
        }
        for special in SPECIAL {
            let words = [&["-n", "2", "--nodes", "2", "--slots", "1"], special].concat();
            let refused = place(launcher, &words)
                .is_err_and(|error| error.to_string().contains("has no meaning in the"));
            let is_listed = launcher.options().contains(&special[0]);
            assert_eq!(refused, !is_listed, "{}: {}", launcher.name(), special[0]);
        }
    }
}

#[test]
fn each_fills_the_slots_of_the_nodes() {
    for launcher in LAUNCHERS {
        for (nodes, slots) in [(1, 1), (1, 4), (3, 2), (5, 3)] {
            let cluster = ["--nodes", &nodes.to_string(), "--slots", &slots.to_string()];
            // GetInfo places one rank unless it is told how many.
            let unasked = place(launcher, &cluster).expect("at least one rank").ranks.len();
            assert!(unasked == nodes * slots || unasked == 1, "{}: {unasked}", launcher.name());
            for ranks in 1..=nodes * slots {
                let count = ranks.to_string();
                let placed =
                    place(launcher, &[&cluster[..], &["-n", &count]].concat()).expect("enough slots");
                assert_eq!(placed.nodes.len(), nodes, "{}", launcher.name());
                assert_eq!(placed.ranks.len(), ranks, "{}", launcher.name());
                let mut taken = vec![0; nodes];
                for location in &placed.ranks {
                    taken[location.node as usize] += 1;
                    assert!(!location.oversubscribed, "{}: {ranks} ranks", launcher.name());
                }
                assert!(taken.iter().all(|&ranks| ranks <= slots), "{}: {taken:?}", launcher.name());
            }
            let error = place(launcher, &[&cluster[..], &["-n", "0"]].concat()).unwrap_err().to_string();
            assert_eq!(error, "a placement needs at least one rank", "{}", launcher.name());
        }
    }
}
