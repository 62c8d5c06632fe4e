//! Traces of calls whose files are cut at their ends: what `--partial` imports replays to its end.

use crate::common::{import, sample};
use interchange::Options;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::path::Path;

fn partial() -> Options {
    Options { partial: true, flops_per_second: Some(1e9), ..Options::default() }
}

/// The lines of each rank of a program that ends: messages with and without wildcards, blocking or not, and collectives.
fn program(random: &mut SmallRng) -> Vec<Vec<String>> {
    let ranks = random.random_range(2..5u32);
    let mut lines: Vec<Vec<String>> = (0..ranks).map(|_| vec!["init".to_owned()]).collect();
    // Waits that a rank has yet to make.
    let mut pending: Vec<Vec<String>> = vec![Vec::new(); ranks as usize];
    for _ in 0..random.random_range(5..40) {
        let (from, tag) = (random.random_range(0..ranks), random.random_range(1..4));
        let to = (from + random.random_range(1..ranks)) % ranks;
        let bytes = random.random_range(1..100_000);
        let (sender, receiver) = (from as usize, to as usize);
        match random.random_range(0..8) {
            0 => lines.iter_mut().for_each(|lines| lines.push("allreduce 64 0 1".to_owned())),
            1 => lines.iter_mut().for_each(|lines| lines.push(format!("bcast 64 {from} 1"))),
            2 => {
                for (lines, pending) in lines.iter_mut().zip(&mut pending) {
                    lines.push("iallreduce 64 0 1".to_owned());
                    pending.push("wait 0 0 -4446".to_owned());
                }
            }
            3 => {
                if let Some(at) = (0..pending[sender].len()).collect::<Vec<_>>().choose(random) {
                    let wait = pending[sender].remove(*at);
                    lines[sender].push(wait);
                }
            }
            _ => {
                lines[sender].push(format!("isend {to} {tag} {bytes} 1"));
                pending[sender].push(format!("wait {from} {to} {tag}"));
                let source = if random.random_bool(0.5) { -333 } else { i64::from(from) };
                let blocks = random.random();
                let begin = if blocks { "recv" } else { "irecv" };
                lines[receiver].push(format!("{begin} {source} {tag} {bytes} 1"));
                if !blocks {
                    pending[receiver].push(format!("wait {from} {to} {tag}"));
                }
            }
        }
    }
    for lines in &mut lines {
        lines.extend(["waitall".to_owned(), "finalize".to_owned()]);
    }
    lines
}

/// A receive with a wildcard got what the cut rank sent. That a later receive asks for a message that this rank sent behind the cut must not
/// leave the wildcard the message of another rank, which is sent after it.
#[test]
fn a_wildcard_is_not_told_by_what_remains_of_a_cut_rank() {
    let work = tempfile::tempdir().unwrap();
    let lines = "0 init\n1 init\n2 init\n0 recv -333 1 8\n0 send 2 1 8\n0 recv -333 1 8\n0 recv 1 1 8\n1 send 0 1 8\n\
        2 recv 0 1 8\n2 send 0 1 8\n0 finalize\n2 finalize\n";
    let path = work.path().join("trace.txt");
    std::fs::write(&path, lines).unwrap();
    let (summary, mixed) = import(&path, &partial());
    assert_eq!((mixed.messages, mixed.matched), (2, 2));
    let left_out = "warning: receives left out: with a wildcard of which the trace does not tell the message (2): of ranks 0";
    assert!(summary.told().any(|told| told == left_out), "{:?}", summary.findings);
}

#[test]
fn random_programs_that_are_cut() {
    let (mut random, mut dropped) = (SmallRng::seed_from_u64(3), 0);
    for _ in 0..400 {
        let work = tempfile::tempdir().unwrap();
        for (rank, lines) in program(&mut random).iter().enumerate() {
            // Where no rank has a finalize, no line tells that any ends early.
            let kept = if rank > 0 && random.random_bool(0.6) {
                random.random_range(1..lines.len())
            } else {
                lines.len()
            };
            let text: String = lines[..kept].iter().map(|line| format!("{rank} {line}\n")).collect();
            std::fs::write(work.path().join(format!("{rank}.txt")), text).unwrap();
        }
        let (_, mixed) = import(work.path(), &partial());
        dropped += mixed.dropped.collectives + mixed.unmatched.sends + mixed.unmatched.receives;
    }
    assert!(dropped > 1000, "{dropped}");
}

/// Every prefix of a file of a sample.
fn prefixes(run: &str, file: &str) {
    let from = sample(run);
    let work = tempfile::tempdir().unwrap();
    copy(&from, work.path());
    let path = work.path().join(file);
    let bytes = std::fs::read(&path).unwrap();
    let mut imported = 0;
    let step = bytes.len() / 60;
    for end in (2 * step..bytes.len()).step_by(step) {
        std::fs::write(&path, &bytes[..end]).unwrap();
        let (summary, _) = import(work.path(), &partial());
        imported += summary.messages;
    }
    assert!(imported > 0);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let to = to.join(entry.file_name().unwrap());
        if entry.is_dir() { copy(&entry, &to) } else { assert!(std::fs::copy(&entry, &to).is_ok()) }
    }
}

#[test]
fn files_of_samples_that_are_cut() {
    for rank in 0..4 {
        prefixes("dumpi/alltoall-p2p", &format!("dumpi-2019.05.22.11.54.43-000{rank}.bin"));
        prefixes("dumpi/testtrace", &format!("testtrace-000{rank}.bin"));
    }
    for rank in 0..2 {
        prefixes("otf2/pingpong2", &format!("traces/{rank}.evt"));
    }
}
