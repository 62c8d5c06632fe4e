//! Truncated, garbled and partial traces of calls: an error with a place, or a partial import; never a panic.

use crate::common::{capture, sample};
use interchange::{Options, Problem, Result, Summary};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn partial() -> Options {
    Options { partial: true, flops_per_second: Some(1e9), ..Options::default() }
}

/// Copies a sample; returns the copy of the file `name`.
fn copy(from: &Path, to: &Path, name: &str) -> PathBuf {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap().path();
        let target = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true => drop(copy(&entry, &target, "")),
            false => drop(std::fs::copy(&entry, &target).unwrap()),
        }
    }
    to.join(name)
}

/// A temporary directory, in memory where there is such a file system: thousands of files are written.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// A copy of a sample in which one file is replaced again and again.
struct Sample {
    directory: TempDir,
    file: PathBuf,
    bytes: Vec<u8>,
}

impl Sample {
    fn of(path: &Path, file: &str) -> Self {
        let directory = directory();
        let file = copy(path, &directory.path().join("in"), file);
        let bytes = std::fs::read(&file).unwrap();
        Self { directory, file, bytes }
    }

    fn import(&self, bytes: &[u8], options: &Options) -> Result<Summary> {
        std::fs::write(&self.file, bytes).unwrap();
        capture(&[self.directory.path().join("in")], self.directory.path(), options)
    }

    /// Every prefix, and random changes of some bytes.
    fn garble(&self, changes: u32, prefixes: usize) {
        for end in (0..self.bytes.len()).step_by((self.bytes.len() / prefixes).max(1)) {
            for options in [partial(), Options::default()] {
                let _ = self.import(&self.bytes[..end], &options);
            }
        }
        let mut random = SmallRng::seed_from_u64(7);
        for _ in 0..changes {
            let mut bytes = self.bytes.clone();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.random()][random.random_range(0..6)];
            }
            let _ = self.import(&bytes, &partial());
        }
    }
}

/// The text of a trace with most actions of SimGrid.
const TI: &str = "0 init\n1 init\n0 isend 1 7 100 0\n1 recv -333 -444 100 0\n0 wait 0 1 7\n0 compute 1e9\n\
    0 allreduce 5e4 5e8\n1 allreduce 5e4 5e8\n0 gatherv 1 1 2 0 1 1\n1 gatherv 2 1 2 0 1 1\n\
    0 alltoallv 10 1 2 3 4 5\n1 alltoallv 10 1 2 3 4 5\n0 sendRecv 5 1 5 1 2 2\n1 sendRecv 5 0 5 0 2 2\n\
    1 irecv 0 3 1 1\n0 send 1 3 1 1\n1 waitall 1\n0 finalize\n1 finalize\n";

const LIBALLPROF: &str = "# host: h\nMPI_Init:-:1:2:1.0\n\
    MPI_Isend:2.0:1000:3:11,8,8:0:5:500,0,1:9000:3.0\nMPI_Irecv:3.0:1000:3:11,8,8:0:-1:500,0,1:9008:4.0\n\
    MPI_Waitall:5.0:2:9000:0:6.0\nMPI_Comm_split:6.0:500,0,1:3:0:600,0,1:7.0\n\
    MPI_Allreduce:7.5:1:2:4:11,8,8:3:600,0,1:8.0\nMPI_Finalize:13.0:-\n";

fn text(name: &str, text: &str) -> Sample {
    let directory = directory();
    let file = directory.path().join("in").join(name);
    std::fs::create_dir(directory.path().join("in")).unwrap();
    Sample { directory, file, bytes: text.as_bytes().to_vec() }
}

#[test]
fn garbled_dumpi() {
    let sample = Sample::of(&sample("dumpi/testtrace"), "testtrace-0001.bin");
    sample.import(&sample.bytes, &Options::default()).unwrap();
    sample.garble(700, 700);
}

#[test]
fn garbled_events_of_otf2() {
    let sample = Sample::of(&sample("otf2/pingpong2"), "traces/1.evt");
    sample.import(&sample.bytes, &Options::default()).unwrap();
    sample.garble(700, 868);
}

#[test]
fn garbled_definitions_of_otf2() {
    for (file, prefixes) in [("traces.def", 200), ("traces/1.def", 147), ("traces.otf2", 100)] {
        Sample::of(&sample("otf2/pingpong2"), file).garble(200, prefixes);
    }
}

#[test]
fn garbled_ti() {
    let sample = text("trace.txt", TI);
    let summary = sample.import(&sample.bytes, &partial()).unwrap();
    assert_eq!((summary.ranks, summary.messages), (2, 4));
    sample.garble(700, TI.len());
}

#[test]
fn garbled_liballprof() {
    let sample = text("trace-0.txt", LIBALLPROF);
    let summary = sample.import(&sample.bytes, &Options::default()).unwrap();
    assert_eq!((summary.ranks, summary.messages, summary.bytes), (1, 1, 24));
    sample.garble(700, LIBALLPROF.len());
}

/// A missing rank is refused, and imported as one without calls where parts will do.
#[test]
fn missing_ranks_are_named() {
    let cases =
        [(sample("dumpi/testtrace"), "testtrace-0001.bin", 4), (sample("otf2/pingpong2"), "traces/1.evt", 2)];
    for (path, file, ranks) in cases {
        let sample = Sample::of(&path, file);
        std::fs::remove_file(&sample.file).unwrap();
        let import = |options: &Options| {
            capture(&[sample.directory.path().join("in")], sample.directory.path(), options)
        };
        let error = import(&Options::default()).unwrap_err();
        assert!(
            matches!(error.problem, Problem::MissingRank { rank: 1, missing: 1, ranks: all } if all == ranks),
            "{error}"
        );
        let summary = import(&partial()).unwrap();
        assert_eq!((summary.ranks, summary.missing_ranks), (ranks, vec![1]));
    }
}

/// A file that was cut has no index; its whole records are imported, and the byte is named at which they end.
#[test]
fn a_cut_file_is_imported_up_to_the_cut() {
    let sample = Sample::of(&sample("dumpi/alltoall-p2p"), "dumpi-2019.05.22.11.54.43-0002.bin");
    let cut = &sample.bytes[..1500];
    let error = sample.import(cut, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("--partial"), "{error}");
    let summary = sample.import(cut, &partial()).unwrap();
    let cuts: Vec<_> = summary.findings.iter().flat_map(|finding| &finding.first).collect();
    assert!(cuts.iter().any(|cut| cut.starts_with("rank 2 ends at byte ")), "{summary:?}");
    assert!(summary.messages > 36 && summary.messages < 48, "{summary:?}");
    // Without a record, its rank is missing.
    for length in [0, 10] {
        let cut = &sample.bytes[..length];
        assert!(sample.import(cut, &Options::default()).is_err());
        let summary = sample.import(cut, &partial()).unwrap();
        assert_eq!((summary.ranks, summary.missing_ranks), (4, vec![2]), "{length}");
    }
}

/// A wildcard gets what remains, if that is unique.
#[test]
fn wildcards_get_what_remains() {
    let of = |sends: &str| {
        let trace = format!(
            "0 init\n1 init\n2 init\n{sends}2 recv -333 -444 8\n2 recv 1 5 8\n0 finalize\n1 finalize\n2 finalize\n"
        );
        let sample = text("trace.txt", &trace);
        sample.import(trace.as_bytes(), &Options::default())
    };
    let summary = of("0 send 2 4 8\n1 send 2 5 8\n").unwrap();
    assert_eq!(summary.remarks, ["1 receive with a wildcard got the only message that remained"]);
    let error = of("0 send 2 4 8\n1 send 2 5 8\n1 send 2 6 8\n").unwrap_err().to_string();
    assert!(error.contains("rank 2") && error.contains("wildcard"), "{error}");
}

/// A trace has times in picoseconds, in 64 bits: 213 days.
#[test]
fn a_run_longer_than_a_trace_is_refused() {
    let of = |seconds: &str| {
        let trace = format!("0 init\n0 sleep {seconds}\n0 barrier\n0 finalize\n");
        text("trace.txt", &trace).import(trace.as_bytes(), &Options::default())
    };
    assert!(of("1e7").is_ok());
    let error = of("2e7").unwrap_err();
    assert!(matches!(error.problem, Problem::TooLarge(_)), "{error}");
}

/// What an import otherwise names and counts, `--strict` refuses, with the function, the rank and the call.
#[test]
fn strict_refuses_what_is_left_out() {
    let cases = [
        ("0 init\n0 put 1 8\n0 finalize\n", "left out: calls of put (1): rank 0"),
        ("0 init\n0 isend 0 1 8\n0 finalize\n", "requests that no call completes (1): rank 0, call 2"),
        (
            "0 init\n0 wait 0 0 7\n0 finalize\n",
            "waits for requests that were not made, or whose call was left out (1): rank 0, call 2",
        ),
    ];
    for (trace, expected) in cases {
        let sample = text("trace.txt", trace);
        let summary = sample.import(trace.as_bytes(), &Options::default()).unwrap();
        let faults: Vec<String> = summary.faults().map(|fault| fault.in_one_line()).collect();
        assert_eq!(faults, [expected]);
        let strict = Options { strict: true, ..Options::default() };
        let error = sample.import(trace.as_bytes(), &strict).unwrap_err();
        assert!(matches!(&error.problem, Problem::Invalid(wrong) if wrong == expected), "{error}");
    }
    // Nothing is left out of a sound trace.
    let sample = Sample::of(&sample("dumpi/testtrace"), "testtrace-0001.bin");
    sample.import(&sample.bytes, &Options { strict: true, ..Options::default() }).unwrap();
}

/// The text about a run names its ranks: their files are beside it.
#[test]
fn a_meta_file_alone_is_its_run() {
    let run = Sample::of(&sample("dumpi/testtrace"), "testtrace.meta");
    let directory = directory();
    let summary = capture(std::slice::from_ref(&run.file), directory.path(), &Options::default()).unwrap();
    assert_eq!((summary.ranks, summary.messages), (4, 4));
    std::fs::remove_file(run.file.with_file_name("testtrace-0002.bin")).unwrap();
    let error = capture(std::slice::from_ref(&run.file), directory.path(), &Options::default()).unwrap_err();
    assert!(matches!(error.problem, Problem::MissingRank { rank: 2, .. }), "{error}");
}

#[test]
fn unknown_versions_are_refused() {
    let run = Sample::of(&sample("dumpi/testtrace"), "testtrace-0000.bin");
    let header = u64::from_be_bytes(run.bytes[run.bytes.len() - 32..][..8].try_into().unwrap()) as usize;
    for (version, is_known) in
        [([0, 5, 9], false), ([1, 1, 0], true), ([13, 0, 0], true), ([14, 0, 0], false)]
    {
        let mut bytes = run.bytes.clone();
        bytes[header..header + 3].copy_from_slice(&version);
        let result = run.import(&bytes, &Options::default());
        assert_eq!(result.is_ok(), is_known, "{version:?}: {result:?}");
        if let Err(error) = result {
            let [major, minor, _] = version;
            let wanted = format!("version {major}.{minor}.");
            assert!(
                error.to_string().contains(&wanted) && error.to_string().ends_with("0.6 to 13 are known"),
                "{error}"
            );
        }
    }
    let old = text("actions", "p0 init\np0 send p1 100\np1 recv p0 100\n");
    let error = old.import(&old.bytes, &Options::default()).unwrap_err().to_string();
    assert!(error.ends_with("actions:1: the line \"p0 init\" cannot be imported: ranks are numbers without p, which SimGrid passes over, too"), "{error}");
}
