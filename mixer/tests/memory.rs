//! [`Options::memory`] is a limit: mixes that need far more run in a process with little more address space.

use collectives::choose::Table;
use mixer::{Options, Quiet, mix};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use vef_format::capture::event::*;
use vef_format::capture::{RankInfo, RankWriter};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::{Bytes, Nanos};

/// The limit of a mix, and the other memory of its process: code, and stacks of threads.
const MEMORY: u64 = 24 << 20;
const BESIDE: u64 = 16 << 20;

const WORLD: CommId = CommId(0);

/// Writes a capture of `tasks` tasks of `calls` calls each; `call` returns a call by rank and index, `clock` its time.
fn write(
    dir: &Path,
    tasks: u32,
    calls: u64,
    clock: impl Fn(u64) -> u64,
    call: impl Fn(u32, u64) -> Action<'static>,
) {
    for rank in 0..tasks {
        let info = RankInfo { rank: Rank(rank), tasks, host: "one".into(), ..RankInfo::default() };
        let mut writer = RankWriter::create(dir, &info).unwrap();
        let mut at = 0;
        let mut put = |action| {
            let (start, end) = (Nanos(clock(at)), Nanos(clock(at + 1)));
            at += 2;
            writer.event(&Event { start, end, thread: 0, call: CallSlot::NONE, action }).unwrap();
        };
        put(Action::Init);
        put(Action::Communicator(Communicator {
            id: WORLD,
            origin: Origin::World,
            split: None,
            members: Members::All,
            remote: Remote::None,
            foreign: false,
        }));
        (0..calls).for_each(|index| put(call(rank, index)));
        put(Action::Finalize);
        writer.finish().unwrap();
    }
}

/// A call of a task; even ranks send to the next rank.
fn pairs(rank: u32, _: u64) -> Action<'static> {
    let (comm, tag, bytes, datatype) = (WORLD, 3, Bytes(1000), DatatypeId(0));
    match rank % 2 {
        0 => Action::Send(Send {
            comm,
            dest: CommRank(rank + 1),
            tag,
            bytes,
            datatype,
            mode: SendMode::Standard,
            request: None,
        }),
        _ => Action::Receive(Receive {
            comm,
            source: CommRank(rank - 1),
            tag,
            any_source: false,
            any_tag: false,
            bytes,
            datatype,
        }),
    }
}

fn alltoall(_: u32, _: u64) -> Action<'static> {
    Action::Collective(Collective {
        operation: Operation::Alltoall,
        comm: WORLD,
        root: None,
        amounts: Amounts { send: Bytes(64 << 16), recv: Bytes(64 << 16) },
        count: 0,
        datatype: DatatypeId(0),
        recv_datatype: None,
        request: None,
        send_counts: &[],
        recv_counts: &[],
    })
}

/// Mixes the capture in `dir` in a process with limited memory; returns the outcome.
fn mix_within(dir: &Path, lower: bool, memory: Option<u64>) -> Output {
    let limit = format!("ulimit -d {} && exec \"$@\"", (MEMORY + BESIDE) >> 10);
    let mut command = Command::new("sh");
    command.args(["-c", &limit, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "memory::the_mix", "--test-threads", "1"]).env("CAPTURE", dir);
    // A backtrace needs memory: without any left, its printer would wait for itself.
    command.env("RUST_BACKTRACE", "0");
    command.env("LOWER", if lower { "1" } else { "" });
    command.env("MEMORY", memory.map_or(String::new(), |memory| memory.to_string()));
    command.output().unwrap()
}

#[test]
#[ignore = "the others run it, each in a process of its own"]
fn the_mix() {
    let variable = |name| std::env::var(name).unwrap();
    let capture = variable("CAPTURE");
    let capture = Path::new(&capture);
    let options = Options {
        memory: variable("MEMORY").parse().ok().map(Bytes),
        lower_collectives: (!variable("LOWER").is_empty()).then(Table::default),
        jobs: 1,
        ..Options::default()
    };
    mix(capture, &capture.with_extension("vef"), &options, &Quiet).unwrap();
}

/// Within the limit, the mix of the capture in `dir` succeeds with the same trace as without; with all memory allowed the system
/// kills it, so the limit is effective.
fn is_bounded(dir: &Path, lower: bool) {
    let trace = dir.with_extension("vef");
    let bounded = mix_within(dir, lower, Some(MEMORY));
    let said = [&bounded.stdout[..], &bounded.stderr].concat();
    assert!(bounded.status.success(), "{}", String::from_utf8_lossy(&said));
    let within = fs::read(&trace).unwrap();
    assert!(!mix_within(dir, lower, Some(1 << 40)).status.success(), "the system's limit is none");
    let lower_collectives = lower.then(Table::default);
    mix(dir, &trace, &Options { lower_collectives, ..Options::default() }, &Quiet).unwrap();
    assert!(fs::read(&trace).unwrap() == within, "another trace");
}

#[test]
fn a_compressed_capture_is_mixed_within_its_memory() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("capture");
    fs::create_dir(&capture).unwrap();
    write(&capture, 32, 100_000, |at| 1000 + 100 * at, pairs);
    for rank in 0..32 {
        vef_format::capture::compress(&capture, Rank(rank)).unwrap();
    }
    is_bounded(&capture, false);
}

#[test]
fn lowered_collectives_are_mixed_within_their_memory() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("capture");
    fs::create_dir(&capture).unwrap();
    write(&capture, 64, 450, |at| 1000 + 100 * at, alltoall);
    is_bounded(&capture, true);
}

#[test]
fn records_of_one_instant_are_mixed_within_their_memory() {
    let dir = tempfile::tempdir().unwrap();
    let capture = dir.path().join("capture");
    fs::create_dir(&capture).unwrap();
    write(&capture, 128, 25_000, |_| 1000, pairs);
    is_bounded(&capture, false);
}
