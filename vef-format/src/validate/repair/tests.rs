//! Sound traces, damaged in every way that can be mended: they come back byte for byte. What cannot be known stays.

use super::{Mended, Repair, Trace, repair};
use crate::ids::{CollectiveId, CommId, MessageId, Rank};
use crate::operation::{Amounts, OpCode};
use crate::record::{Dependency, Header, LocalCollective, Message, Record, Version};
use crate::text::Reader;
use crate::trace::CopyError;
use crate::units::{Bytes, Picos, Ticks};
use crate::validate::{Options, validate};
use proptest::prelude::*;
use std::path::Path;

/// A sound trace in the making: tasks that send, receive and call collectives, ids counted along the file.
struct Program {
    tasks: u32,
    records: Vec<Record>,
    previous: Vec<Dependency>,
    messages: u64,
    collectives: u64,
}

impl Program {
    fn new(tasks: u32) -> Self {
        let comm = |id, members: Vec<u32>| {
            let members = members.into_iter().map(Rank).collect();
            Record::Communicator { id: CommId(id), members }
        };
        let mut records = vec![comm(0, (0..tasks).collect()), comm(1, vec![tasks - 1, 0])];
        if tasks > 3 {
            records.push(comm(2, vec![1, 2, 3]));
        }
        let previous = vec![Dependency::Start; tasks as usize];
        Self { tasks, records, previous, messages: 0, collectives: 0 }
    }

    fn line(&mut self, src: u32, dst: u32, bytes: u64, awaited: bool) -> MessageId {
        let id = MessageId(self.messages);
        self.messages += 1;
        let after = self.previous[src as usize];
        let (src, dst, bytes, time) = (Rank(src), Rank(dst), Bytes(bytes), Ticks(id.0 * 7));
        self.records.push(Record::Message(Message { id, src, dst, bytes, awaited, after, time }));
        id
    }

    fn message(&mut self, src: u32, dst: u32, bytes: u64, awaited: bool) {
        let id = self.line(src, dst, bytes, awaited);
        self.previous[src as usize] = Dependency::Sent(id);
        if awaited {
            self.line(dst, dst, 0, false);
            self.previous[dst as usize] = Dependency::Received(id);
        }
    }

    fn collective(&mut self, comm: usize) {
        let id = CollectiveId(self.collectives);
        self.collectives += 1;
        let Record::Communicator { id: comm, members } = self.records[comm].clone() else {
            panic!("communicators come first")
        };
        for &task in &members {
            let previous = &mut self.previous[task.index()];
            let after = std::mem::replace(previous, Dependency::Collective(id));
            let amounts = Amounts { send: Bytes(8), recv: Bytes(8) };
            let part = LocalCollective { id, comm, op: OpCode(2), task, amounts, after, time: Ticks(3) };
            self.records.push(Record::Collective(part));
        }
    }

    fn finish(mut self) -> Trace {
        for task in 0..self.tasks {
            self.line(task, task, 0, false);
        }
        let communicators = if self.tasks > 3 { 3 } else { 2 };
        let header = Header {
            version: Version::V3,
            tasks: self.tasks,
            messages: self.messages,
            communicators,
            collectives: self.collectives,
            local_collectives: self.records.len() as u64 - self.messages - communicators,
            received: 0,
            clock: Picos(1000),
        };
        Trace { header, records: (2..).zip(self.records).collect() }
    }
}

fn program() -> impl Strategy<Value = Trace> {
    let step = (0u8..8, any::<u8>(), any::<u8>(), any::<bool>());
    (3u32..7, proptest::collection::vec(step, 1..40)).prop_map(|(tasks, steps)| {
        let mut program = Program::new(tasks);
        for (kind, a, b, awaited) in steps {
            let (src, dst) = (u32::from(a) % tasks, u32::from(b) % tasks);
            match kind {
                0..5 => program.message(src, dst, 1 + u64::from(a), awaited),
                5 => program.collective(0),
                6 => program.collective(1),
                _ => program.collective(if tasks > 3 { 2 } else { 0 }),
            }
        }
        program.finish()
    })
}

/// Ways to damage a trace.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Bit,
    WrongId,
    WrongDependency,
    Swap,
    LateCommunicator,
    Twice,
}

use Damage::*;
const DAMAGES: [Damage; 6] = [Bit, WrongId, WrongDependency, Swap, LateCommunicator, Twice];

/// The places of what `wanted` finds, of which `pick` chooses one.
fn choose(trace: &Trace, pick: u32, wanted: impl Fn(usize, &Record) -> bool) -> Option<usize> {
    let found: Vec<usize> = (0..trace.records.len()).filter(|&at| wanted(at, &trace.records[at].1)).collect();
    (!found.is_empty()).then(|| found[pick as usize % found.len()])
}

/// Damages a trace; `false` where there is nothing of that kind to damage.
fn damage(trace: &mut Trace, damage: Damage, pick: u32, how: u32) -> bool {
    let in_task = super::changes::by_task(&trace.records);
    // The record before, in the task.
    let before = |at: usize| {
        let places = &in_task[&trace.records[at].1.task()?];
        places.iter().rev().find(|&&place| place < at).copied()
    };
    let unknown = 1 << 40;
    let at = match damage {
        Bit => {
            choose(trace, pick, |_, record| matches!(record, Record::Message(message) if message.bytes.0 > 0))
        }
        WrongId => choose(trace, pick, |_, record| match record {
            // No record refers to a mark in front of a reception, so any unused id is valid.
            Record::Message(message) => how.is_multiple_of(2) || message.bytes.0 > 0,
            _ => false,
        }),
        WrongDependency => choose(trace, pick, |_, record| record.after() != Dependency::Start),
        Swap => choose(trace, pick, |at, record| {
            matches!(record.after(), Dependency::Sent(_) | Dependency::Collective(_)) && before(at).is_some()
        }),
        LateCommunicator => choose(trace, pick, |_, record| match record {
            Record::Communicator { id, .. } => trace
                .records
                .iter()
                .any(|(_, record)| matches!(record, Record::Collective(part) if part.comm == *id)),
            _ => false,
        }),
        Twice => choose(trace, pick, |_, record| matches!(record, Record::Communicator { .. })),
    };
    let Some(at) = at else { return false };
    let other = choose(trace, how, |other, record| other != at && matches!(record, Record::Message(_)));
    let place = before(at);
    let strange = match other.map(|other| &trace.records[other].1) {
        Some(Record::Message(message)) if how.is_multiple_of(2) => message.id,
        _ => MessageId(unknown),
    };
    let task = trace.records[at].1.task();
    let mut others = trace.records.iter().filter_map(|(_, record)| match record {
        Record::Message(message) if Some(message.src) != task && Some(message.dst) != task => {
            Some(message.id)
        }
        _ => None,
    });
    let of_others = others.next_back().filter(|_| how.is_multiple_of(2)).unwrap_or(MessageId(unknown));
    match (damage, &mut trace.records[at].1) {
        (Bit, Record::Message(message)) => message.awaited = !message.awaited,
        (WrongId, Record::Message(message)) => message.id = strange,
        (
            WrongDependency,
            Record::Message(Message { after, .. }) | Record::Collective(LocalCollective { after, .. }),
        ) => {
            *after = match *after {
                Dependency::Start => return false,
                Dependency::Sent(_) => Dependency::Sent(of_others),
                Dependency::Received(_) => Dependency::Received(of_others),
                Dependency::Collective(_) => Dependency::Collective(CollectiveId(unknown)),
            };
        }
        (Swap, _) => {
            let before = place.expect("chosen so");
            let lines = [before, at].map(|at| trace.records[at].0);
            trace.records.swap(before, at);
            (trace.records[before].0, trace.records[at].0) = (lines[0], lines[1]);
        }
        (LateCommunicator, _) => {
            let record = trace.records.remove(at);
            trace.records.push(record);
        }
        (Twice, record) => {
            let copy = record.clone();
            let to = at + 1 + how as usize % (trace.records.len() - at);
            trace.records.insert(to, (1000, copy));
        }
        _ => unreachable!("chosen so"),
    }
    true
}

fn records(trace: &Trace) -> Vec<&Record> {
    trace.records.iter().map(|(_, record)| record).collect()
}

fn copy(trace: &Trace) -> Trace {
    Trace { header: trace.header, records: trace.records.clone() }
}

proptest! {
    #[test]
    fn what_was_damaged_comes_back(
        sound in program(),
        kind in 0..DAMAGES.len(),
        pick: u32,
        how: u32,
        counts in proptest::collection::vec(any::<u64>(), 4),
        lie: bool,
    ) {
        let options = Options::default();
        let before = sound.validate(&options);
        prop_assert!(before.problems.is_empty(), "{:?}", before.problems);

        let mut trace = copy(&sound);
        let damaged = damage(&mut trace, DAMAGES[kind], pick, how);
        if lie {
            let header = &mut trace.header;
            (header.messages, header.communicators) = (counts[0], counts[1]);
            (header.collectives, header.local_collectives) = (counts[2], counts[3]);
        }
        let repair = trace.mend(&options);
        let what = format!("{:?} of {:?}: {:?}", DAMAGES[kind], records(&sound), repair);
        prop_assert!(repair.report.problems.is_empty(), "{}", what);
        prop_assert_eq!(trace.header, sound.header);
        prop_assert_eq!(records(&trace), records(&sound), "{}", what);
        prop_assert_eq!(repair.changes.is_empty(), !damaged && !lie, "{}", what);
    }

    /// A repair terminates for any defect, and reports what remains.
    #[test]
    fn any_trace_can_be_looked_at((header, records) in crate::testing::trace()) {
        let mut trace = Trace { header, records: (2..).zip(records).collect() };
        let options = Options::default();
        let repair = trace.mend(&options);
        prop_assert_eq!(trace.validate(&options), repair.report);
    }
}

/// Repairs the trace `text`; returns the report and the output.
fn repaired(text: &str) -> (Repair, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("in.vef"), folder.path().join("out.vef"));
    std::fs::write(&from, text).unwrap();
    let repair = repair(&from, &to, &Options::default()).unwrap();
    assert_eq!(std::fs::read_to_string(&from).unwrap(), text, "the trace itself stays");
    let written = std::fs::read_to_string(&to).ok();
    if written.is_some() {
        assert!(validate(&to, &Options::default()).unwrap().is_complete());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1 + usize::from(written.is_some()));
    (repair, written)
}

const SOUND: &str = "VEF3 2 4 1 1 2 0 1000\nC0 0 1\n0 0 1 80 4 10 -1\n1 1 1 0 0 20 -1\nG0 C0 2 1 8 8 2 5 0\n\
    G0 C0 2 0 8 8 1 5 0\n2 0 0 0 3 7 G0\n3 1 1 0 3 7 G0\n";

#[test]
fn a_sound_trace_is_written_as_it_is() {
    let (repair, written) = repaired(SOUND);
    assert_eq!((repair.changes, written.as_deref()), (vec![], Some(SOUND)));
}

#[test]
fn changes_are_told_with_their_lines() {
    let damaged = SOUND
        .replace("VEF3 2 4 1 1 2", "VEF3 2 9 1 1 7")
        .replace("0 0 1 80 4", "0 0 1 80 0")
        .replace("2 0 0 0 3 7 G0", "0 0 0 0 3 7 G5");
    let (repair, written) = repaired(&damaged);
    let told: Vec<String> =
        repair.changes.iter().map(|change| format!("{}: {}", change.line, change.text)).collect();
    assert_eq!(
        told,
        [
            "7: id 0 → 2, its place among all others",
            "7: waits for G5 → G0, the only event that can have come before",
            "3: message 0 is waited for: marked as awaited (+4)",
            "1: 9 point-to-point lines → 4; if lines were lost, they stay lost",
            "1: 7 lines of collectives → 2; if lines were lost, they stay lost",
        ]
    );
    assert_eq!((repair.kinds[&Mended::HeaderCount], written.as_deref()), (2, Some(SOUND)));
}

#[test]
fn kinds_of_dependency_that_were_mistaken() {
    // A reception taken for a send, and a send taken for a reception.
    for (from, to) in [("8 8 2 5 0", "8 8 1 5 0"), ("0 8 8 1 5 0", "0 8 8 2 5 0")] {
        assert_eq!(repaired(&SOUND.replacen(from, to, 1)).1.as_deref(), Some(SOUND), "{to}");
    }
}

#[test]
fn what_cannot_be_known_is_said_and_nothing_written() {
    // Which of two operations, which of two messages, tasks that really wait for each other, a member that is missing.
    for (damaged, problem) in [
        (SOUND.replacen("G0 C0 2 1", "G0 C0 6 1", 1), "G0 is operation 6, not 2 of task 1 at line 5"),
        (SOUND.replacen("G0 C0 2 0 8 8 1 5 0\n", "", 1).replace("2 0 0 0 3 7 G0", "2 0 0 0 1 7 0"), "G0 has lines of 1 of 2"),
        (
            "VEF3 2 4 0 0 0 0 1\n0 0 0 0 0 1 -1\n1 1 1 0 0 1 -1\n2 0 1 8 6 1 3\n3 1 0 8 6 1 2\n".to_owned(),
            "tasks wait for each other",
        ),
        (
            "VEF3 2 6 0 0 0 0 1\n0 0 1 8 4 1 -1\n1 0 1 9 5 1 0\n2 0 0 0 1 1 1\n3 1 1 0 0 1 -1\n4 1 1 0 2 1 77\n5 1 1 0 2 1 78\n"
                .to_owned(),
            "waits for record 77, which does not exist",
        ),
    ] {
        let (repair, written) = repaired(&damaged);
        assert_eq!(written, None, "{damaged}");
        assert!(repair.report.problems.iter().any(|found| found.text.contains(problem)), "{repair:?}");
    }
}

#[test]
fn a_cut_task_keeps_its_messages_as_they_are() {
    // Task 1 was killed after its reception; its later waits are unknown.
    let cut = "VEF3 2 3 0 0 0 0 1\n0 0 1 8 4 1 -1\n1 0 1 9 5 1 0\n2 0 0 0 1 1 1\n";
    let (repair, written) = repaired(cut);
    assert_eq!((repair.changes, written.as_deref()), (vec![], Some(cut)));
}

#[test]
fn version_2_becomes_version_3() {
    let v2 = "VEF2 2 4 0 0 0 7 1\n0 0 1 8 0 0 -1\n1 1 1 0 0 0 -1\n2 1 1 0 2 0 0\n3 0 0 0 1 0 0\n";
    let v3 = "VEF3 2 4 0 0 0 0 1\n0 0 1 8 4 0 -1\n1 1 1 0 0 0 -1\n2 1 1 0 2 0 0\n3 0 0 0 1 0 0\n";
    assert_eq!(repaired(v2).1.as_deref(), Some(v3));
}

#[test]
fn the_trace_itself_and_unreadable_ones_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.vef");
    std::fs::write(&path, SOUND).unwrap();
    let same = repair(&path, &folder.path().join("./t.vef"), &Options::default()).unwrap_err();
    assert!(matches!(same, CopyError::Same(_)), "{same}");
    let nowhere = repair(&path, Path::new("/nowhere/t.vef"), &Options::default()).unwrap_err().to_string();
    assert!(nowhere.starts_with("/nowhere/t.vef: No such file"), "{nowhere}");
    std::fs::write(&path, &SOUND[..SOUND.len() - 3]).unwrap();
    let cut = repair(&path, &folder.path().join("u.vef"), &Options::default()).unwrap_err().to_string();
    assert!(cut.ends_with("t.vef:8: the last line has no end: the file is truncated"), "{cut}");
    let read = Trace::read(Reader::from_bytes(SOUND.as_bytes(), Path::new("t")).unwrap()).unwrap();
    assert_eq!(read.records.len(), 7);
}
