//! What several fuzz targets need.

pub mod memory;
pub mod program;

use mixer::Table;
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use sim_example::routing::{Load, Router, RoutingSpec};
use sim_example::topology::{LinkId, TopologySpec};
use vef_format::capture::layout::{CHUNK_SIZE, HEADER_SIZE};
use vef_format::record::{Header, Record};
use vef_format::validate::{Kind, Options, validate};
use vef_format::text::{Reader, TextError, Writer};
use vef_format::units::Bytes;

/// A fuzz target that may hold 64 MB, or as many as given, and four bytes for each byte of its input.
#[macro_export]
macro_rules! target {
    (|$bytes:ident| $body:expr) => {
        $crate::target!(64, |$bytes| $body);
    };
    ($megabytes:literal, |$bytes:ident| $body:expr) => {
        libfuzzer_sys::fuzz_target!(|$bytes: &[u8]| { $crate::memory::within($megabytes, $bytes.len(), || $body) });
    };
}

/// Links without load.
struct Unloaded;

impl Load for Unloaded {
    fn load(&self, _: LinkId) -> u64 {
        0
    }

    fn of_bytes(&self, bytes: Bytes) -> u64 {
        bytes.0
    }
}

/// Reads a file of that suffix which describes a network; routes between some of its nodes end there.
pub fn network(bytes: &[u8], suffix: &str) {
    with_directory(|directory| {
        let path = directory.join("network").with_extension(suffix);
        std::fs::write(&path, bytes).expect("a temporary file");
        let Ok(fabric) = TopologySpec::File(path).build(2) else { return };
        let nodes = fabric.nodes();
        let routing = RoutingSpec::default();
        let router = Router::new(&fabric, &*routing, 1).expect("shortest routes are for all topologies");
        for (src, dst) in (0..nodes.min(8)).flat_map(|node| [(node, nodes - 1 - node), (0, node)]) {
            let mut route = router.start(src, dst, router.key(src, dst, 0));
            let hops = (0..fabric.links()).take_while(|_| !router.next(&mut route, &Unloaded).last).count();
            assert_eq!(route.dst, dst);
            assert!(src == dst || hops < fabric.links() as usize, "a route without an end");
        }
    });
}

/// Imports files of a format of calls, which are refused or become a capture, whole and as a part, whose mix ends.
pub fn import(files: &[(&str, &[u8])]) {
    with_directory(|directory| {
        let run = directory.join("run");
        for (name, bytes) in files {
            let path = run.join(name);
            std::fs::create_dir_all(path.parent().unwrap_or(&run)).expect("a temporary directory");
            std::fs::write(path, bytes).expect("a temporary file");
        }
        for partial in [false, true] {
            let options =
                interchange::Options { partial, flops_per_second: Some(1e9), ..interchange::Options::default() };
            let Ok(files) = interchange::Files::of(std::slice::from_ref(&run)) else { return };
            let Ok(format) = interchange::Format::of(&files) else { return };
            let (trace, capture) = (directory.join("trace.vef"), directory.join(format!("capture-{partial}")));
            let made = interchange::import(format, &files, &trace, || Ok(capture.clone()), &options, &interchange::Quiet);
            if let Ok(interchange::Imported::Capture { .. }) = made {
                let mixing = mixer::Options { lenient: partial, jobs: 1, ..mixer::Options::default() };
                let _ = mixer::mix(&capture, &trace, &mixing, &mixer::Quiet);
            }
        }
        let _ = std::fs::remove_dir_all(&run);
    });
}

/// The records of a text trace.
pub fn read_text(bytes: &[u8]) -> Result<(Header, Vec<Record>), TextError> {
    let mut reader = Reader::from_bytes(bytes, Path::new("fuzz.vef"))?;
    let mut records = Vec::new();
    while let Some(line) = reader.next()? {
        records.push(line.to_record());
    }
    Ok((*reader.header(), records))
}

/// Records as a text trace.
pub fn write_text(header: &Header, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).expect("a vector takes everything");
    for record in records {
        writer.line(&record.borrowed()).expect("what was read can be written");
    }
    writer.finish().expect("the counts were checked by the reader")
}

/// Gives `use_it` a directory of this process, in memory where there is such a file system.
pub fn with_directory(use_it: impl FnOnce(&Path)) {
    thread_local! {
        static DIRECTORY: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
    }
    DIRECTORY.with_borrow_mut(|directory| {
        let directory = directory.get_or_insert_with(|| {
            tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory")
        });
        use_it(directory.path());
    });
}

/// Writes the first bytes of a rank's file of a capture, and those of its first chunk; zeros else.
pub fn write_rank_file(path: &Path, header: &[u8], chunk: &[u8]) {
    let file = File::create(path).expect("a temporary file");
    file.write_all_at(header, 0)
        .and_then(|()| file.write_all_at(chunk, HEADER_SIZE as u64))
        .and_then(|()| file.set_len((HEADER_SIZE + CHUNK_SIZE) as u64))
        .expect("a temporary file");
}

/// Makes the checksums of a container right, without which nothing behind them would ever be reached.
pub fn reseal(bytes: &mut [u8]) {
    let mut at = 8;
    while bytes.len() >= 24 && at + 24 <= bytes.len() - 24 {
        let stored = u32::from_le_bytes([bytes[at + 16], bytes[at + 17], bytes[at + 18], bytes[at + 19]]) as usize;
        let Some(content) = bytes.get(at + 24..(at + 24).saturating_add(stored)) else { break };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[at..at + 20]);
        crc.update(content);
        let crc = crc.finalize().to_le_bytes();
        bytes[at + 20..at + 24].copy_from_slice(&crc);
        at += 24 + stored;
    }
    if let Some(footer) = bytes.len().checked_sub(24) {
        let crc = crc32fast::hash(&bytes[footer..footer + 16]).to_le_bytes();
        bytes[footer + 16..footer + 20].copy_from_slice(&crc);
    }
}

/// Mixes the capture in `directory`, `how` saying with which options. What comes out is a trace in which nothing is wrong
/// but what the program itself did: tasks that wait for each other, ends before `MPI_Finalize` (perhaps behind the wait for
/// a message), absurd times.
pub fn mix(directory: &Path, how: u8) {
    let strict = mixer::Options {
        skip_unknown: how & 1 != 0,
        jobs: 1,
        lower_collectives: (how & 2 != 0).then(Table::default),
        ..mixer::Options::default()
    };
    let mix = |options: &mixer::Options, name: &str| {
        let trace = directory.join(name);
        mixer::mix(directory, &trace, options, &mixer::Quiet).ok()?;
        let report = validate(&trace, &Options::default()).expect("a trace that can be read");
        for problem in &report.problems {
            // Roots are not compared between members: a trace has them as sizes, which validation holds against each other.
            let own_fault = problem.text.contains("two roots")
                || matches!(
                    problem.kind,
                    Kind::Cycle | Kind::TimeRange | Kind::EndsEarly | Kind::AwaitedByNobody
                );
            assert!(own_fault, "{problem}");
        }
        std::fs::read(trace).ok()
    };
    let lenient = mix(&mixer::Options { lenient: true, ..strict.clone() }, "lenient.vef");
    if let Some(strict) = mix(&strict, "strict.vef") {
        assert!(lenient.is_some_and(|lenient| lenient == strict), "nothing had to be dropped, and yet it differs");
    }
}
