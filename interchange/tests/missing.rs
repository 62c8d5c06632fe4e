//! Ranks that the files of others name, but that have none: named, refused, and with `--partial` left out.

use interchange::{Files, Format, ImportError, Imported, Options, Problem, Quiet, Summary, import};
use std::path::{Path, PathBuf};

fn imported(paths: &[PathBuf], partial: bool) -> Result<Summary, ImportError> {
    let work = tempfile::tempdir().unwrap();
    let files = Files::of(paths)?;
    let options = Options { partial, ..Options::default() };
    let (trace, capture) = (work.path().join("t.vef"), work.path().join("capture"));
    let made = import(Format::of(&files)?, &files, &trace, || Ok(capture.clone()), &options, &Quiet)?;
    Ok(match made {
        Imported::Trace(summary) => summary,
        Imported::Capture { summary, .. } => {
            mixer::mix(
                &capture,
                &trace,
                &mixer::Options { lenient: true, ..Default::default() },
                &mixer::Quiet,
            )
            .unwrap();
            summary
        }
    })
}

/// Rank `rank` of `ranks` and the others of `missing` are named, and nothing else is lost.
fn assert_missing(paths: &[PathBuf], missing: &[u32], ranks: u32) {
    match imported(paths, false).map_err(|error| error.problem) {
        Err(Problem::MissingRank { rank, missing: count, ranks: all }) => {
            assert_eq!((rank, count as usize, all), (missing[0], missing.len(), ranks), "{paths:?}");
        }
        other => panic!("{paths:?}: {other:?}"),
    }
    let summary = imported(paths, true).unwrap();
    assert_eq!((summary.ranks, &summary.missing_ranks[..]), (ranks, missing), "{paths:?}");
}

fn write(directory: &Path, files: &[(&str, &str)]) -> Vec<PathBuf> {
    let write = |(name, text): &(&str, &str)| {
        std::fs::write(directory.join(name), text).unwrap();
        directory.join(name)
    };
    files.iter().map(write).collect()
}

#[test]
fn ranks_without_a_block_of_a_schedule() {
    let work = tempfile::tempdir().unwrap();
    let sends = "num_ranks 5\nrank 0 { send 8b to 1 send 8b to 4 }\nrank 1 { recv 8b from 0 }\nrank 3 { }\n";
    let paths = write(work.path(), &[("t.goal", sends)]);
    assert_missing(&paths, &[2, 4], 5);
    let summary = imported(&paths, true).unwrap();
    assert_eq!((summary.messages, summary.unmatched.sends), (1, 1));
    // Of a number that cannot be, no memory is taken.
    let paths = write(work.path(), &[("t.goal", "num_ranks 4000000000\nrank 0 { }\n")]);
    assert!(matches!(imported(&paths, true).unwrap_err().problem, Problem::TooLarge(_)));
}

#[test]
fn ranks_that_messages_of_simgrid_name() {
    let work = tempfile::tempdir().unwrap();
    let lines =
        "0 init\n0 isend 2 0 8\n0 isend 1 0 8\n0 waitall\n0 finalize\n1 init\n1 recv 0 0 8\n1 finalize\n";
    assert_missing(&write(work.path(), &[("actions", lines)]), &[2], 3);
}

#[test]
fn ranks_that_communicators_of_liballprof_have() {
    let work = tempfile::tempdir().unwrap();
    let text =
        |rank: u32| format!("MPI_Init:-:1:2:1.0\nMPI_Barrier:3.0:0,{rank},3:4.0\nMPI_Finalize:5.0:-\n");
    let [first, second] = [0, 1].map(text);
    assert_missing(&write(work.path(), &[("run-0.txt", &first), ("run-1.txt", &second)]), &[2], 3);
}

#[test]
fn ranks_that_messages_of_chakra_name() {
    let Some(ring) = skipping::shared("data/interchange/chakra/ring_allreduce8") else { return };
    let file = |rank: u32| ring.join(format!("custom_allreduce.{rank}.et"));
    assert_missing(&(0..7).map(file).collect::<Vec<_>>(), &[7], 8);
}
