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

/// The error of an import as text.
fn refused(paths: &[PathBuf], partial: bool) -> String {
    imported(paths, partial).unwrap_err().to_string()
}

#[test]
fn the_line_that_names_a_missing_rank_of_simgrid() {
    let work = tempfile::tempdir().unwrap();
    let refused = |lines: &str, partial| {
        let paths = write(work.path(), &[("actions", lines)]);
        refused(&paths, partial).replace(&*work.path().to_string_lossy(), "")
    };
    let lines = "0 init\n0 isend 1 0 8\n1 init\n1 sendRecv 8 0 8 4\n";
    let place = "/actions:4: rank 2 of 5 is missing, and 2 others; vef import --partial imports the others";
    assert_eq!(refused(lines, false), place);
    // What --partial cannot help with does not advise it.
    let huge = "0 init\n0 isend 4000000000 0 8\n";
    for partial in [false, true] {
        let what = "/actions:2: the number of ranks (4000000001, of which 1 is there) is too large";
        assert_eq!(refused(huge, partial), what);
    }
    // Without the file of the last rank, the counts for each rank tell that one is missing, even if the first one too many looks like a type.
    for line in ["allgatherv 1 1 1 1 6 6", "reducescatter 1 1 1 0 6", "alltoallv 3 1 1 1 3 1 1 1 6 6"] {
        let lines = format!("0 init\n1 init\n0 {line}\n");
        let why = refused(&lines, true);
        assert!(why.starts_with("/actions:3: ") && why.contains("are not those of 2 ranks"), "{why}");
    }
}

#[test]
fn a_rank_of_simgrid_that_ends_without_finalize_is_cut() {
    let work = tempfile::tempdir().unwrap();
    let first = "0 init\n0 send 1 0 8\n0 send 1 0 8\n0 finalize\n";
    let files = |second: &str| write(work.path(), &[("rank0", first), ("rank1", second)]);
    let relative = |text: &str| text.replace(&*work.path().to_string_lossy(), "");
    // In the middle of a line, behind a line end, behind a whole line without one; the messages up to there.
    let cuts =
        [("1 init\n1 recv 0 0 8\n1 re", 2), ("1 init\n1 recv 0 0 8\n", 2), ("1 init\n1 recv 0 0 8\n1", 2)];
    for (second, line) in cuts {
        let why = relative(&refused(&files(second), false));
        let by_line = why.starts_with("/rank1:");
        assert!(by_line, "{second:?}: {why}");
        let summary = imported(&files(second), true).unwrap();
        let early: Vec<String> =
            summary.findings.iter().map(|finding| relative(&finding.in_one_line())).collect();
        let expected =
            format!("files that end early (1): rank 1 ends at line {line} of /rank1, without finalize");
        assert_eq!(early, [expected], "{second:?}");
        assert_eq!((summary.calls["MPI_Recv"], summary.messages), (1, 2));
    }
    let why = "/rank1:2: rank 1 ends here without finalize, which other ranks have; vef import --partial imports what is there";
    assert_eq!(relative(&refused(&files("1 init\n1 recv 0 0 8\n"), false)), why);
    // Behind a line that cannot be read to its end, nothing is said of versions before 3.20.
    for (cut, is_old) in [("1 init\n1 recv 0 0", true), ("1 init\n1 recv 0", false)] {
        let why = relative(&refused(&files(&format!("{cut}\n1 finalize\n")), false));
        assert_eq!(why.contains("--old-ti"), is_old, "{why}");
        let paths = write(work.path(), &[("actions", &format!("0 init\n{cut}"))]);
        let why = relative(&refused(&paths, false));
        assert_eq!(
            why,
            "/actions:3: the file ends within this line; vef import --partial imports the lines before"
        );
    }
    // An empty file is named, not the line of another that names its rank.
    let why = "/rank1: has no line of any rank, and rank 1 of 2 is missing; vef import --partial imports the others";
    assert_eq!(relative(&refused(&files(""), false)), why);
    assert_eq!(imported(&files(""), true).unwrap().missing_ranks, [1]);
    // SimGrid replays texts without finalize.
    let paths = write(work.path(), &[("actions", "0 init\n0 send 1 0 8\n1 init\n1 recv 0 0 8\n")]);
    let summary = imported(&paths, false).unwrap();
    assert!(summary.remarks.iter().any(|remark| remark.contains("no rank has a finalize")), "{summary:?}");
}

/// Copies a sample without one of its files.
fn without(sample: &str, file: &str) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap().path();
            let to = to.join(entry.file_name().unwrap());
            if entry.is_dir() { copy(&entry, &to) } else { assert!(std::fs::copy(&entry, &to).is_ok()) }
        }
    }
    let work = tempfile::tempdir().unwrap();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(sample), work.path());
    std::fs::remove_file(work.path().join(file)).unwrap();
    work
}

#[test]
fn ranks_that_messages_of_dumpi_name() {
    let run = without("dumpi/testtrace", "testtrace.meta");
    let paths = [run.path().to_path_buf()];
    assert_eq!(imported(&paths, false).unwrap().ranks, 4);
    std::fs::remove_file(run.path().join("testtrace-0003.bin")).unwrap();
    assert_missing(&paths, &[3], 4);
    let why = refused(&paths, false);
    assert!(why.contains("testtrace-0000.bin: record 5 at byte 208"), "{why}");
}

/// One rank in the middle names those behind it, too.
#[test]
fn ranks_that_the_only_file_of_dumpi_names() {
    let run = "dumpi/alltoall-p2p";
    let name = "dumpi-2019.05.22.11.54.43";
    let run = without(run, &format!("{name}.meta"));
    for rank in [0, 2, 3] {
        std::fs::remove_file(run.path().join(format!("{name}-000{rank}.bin"))).unwrap();
    }
    assert_missing(&[run.path().to_path_buf()], &[0, 2, 3], 4);
}

/// A file that is cut within a line, or between two, has its whole lines, and its end is named.
#[test]
fn a_text_of_liballprof_that_is_cut() {
    let work = tempfile::tempdir().unwrap();
    let of = |rank: u32| {
        format!(
            "MPI_Init:-:1:2:1.0\nMPI_Barrier:3.0:0,{rank},2:4.0\nMPI_Bcast:5.0:7:12:13,1,1:0:0,{rank},2:6.0\nMPI_Finalize:7.0:-\n"
        )
    };
    let whole = of(1);
    let [begin, finalize] = ["MPI_Bcast", "MPI_Finalize"].map(|name| whole.find(name).unwrap());
    for end in begin..whole.len() - 1 {
        let paths = write(work.path(), &[("t-0.txt", &of(0)), ("t-1.txt", &whole[..end])]);
        let why = refused(&paths, false);
        assert!(why.contains("t-1.txt:") && why.contains("vef import --partial imports"), "{end}: {why}");
        let summary = imported(&paths, true).unwrap();
        let told: Vec<String> = summary.told().collect();
        assert!(
            told.iter()
                .any(|told| told.starts_with("warning: files that end early (1): rank 1 ends at line ")),
            "{end}: {told:?}"
        );
        assert_eq!(
            summary.calls.values().sum::<u64>(),
            4 + 2 + u64::from(end >= finalize),
            "{end}: {:?}",
            summary.calls
        );
    }
    // Where no rank has a MPI_Finalize, none lacks it.
    let cut = |rank| of(rank).replace("MPI_Finalize:7.0:-\n", "");
    let paths = write(work.path(), &[("t-0.txt", &cut(0)), ("t-1.txt", &cut(1))]);
    let summary = imported(&paths, false).unwrap();
    assert!(
        summary.remarks.iter().any(|remark| remark.contains("no rank has a MPI_Finalize")),
        "{summary:?}"
    );
}

#[test]
fn files_of_an_archive() {
    let run = without("otf2/pingpong2", "traces/1.evt");
    assert_missing(&[run.path().to_path_buf()], &[1], 2);
    let run = without("otf2/pingpong2", "traces/1.def");
    assert_missing(&[run.path().to_path_buf()], &[1], 2);
    let why = refused(&[run.path().to_path_buf()], false);
    assert!(why.contains("traces/1.def: rank 1 of 2 is missing"), "{why}");
    // A writer need not give its locations definitions of their own.
    std::fs::remove_file(run.path().join("traces/0.def")).unwrap();
    let summary = imported(&[run.path().to_path_buf()], false).unwrap();
    assert!(summary.remarks.iter().any(|remark| remark.contains("definitions of its own")), "{summary:?}");
    let run = without("otf2/pingpong2", "traces.otf2");
    for name in ["", "traces.def", "traces/0.evt"] {
        let why = refused(&[run.path().join(name)], false);
        assert!(why.contains("expected an anchor X.otf2"), "{why}");
    }
}
