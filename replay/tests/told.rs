//! What jobs, engines and containers tell beside messages.

use replay::{
    CapturedRecord, Container, Engine, Job, Kind, Label, Link, LoadError, Loaded, Memory, Next, OpCodes,
    Picos, Replay, ReplayError, SameNode, SendCompletion, Table, Wake,
};
use std::path::Path;
use std::sync::Arc;
use vef_format::account::{Account, Entry, TimePart};
use vef_format::container::{About, Note, Reader, Settings, Span, Writer};
use vef_format::ids::{CommId, MessageId, Rank};
use vef_format::operation::Operation;
use vef_format::record::{Dependency, Header, Message, Record};
use vef_format::text;
use vef_format::units::{Bytes, Ticks};

fn loaded(text: &str) -> Job {
    let reader = text::Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    Job::loaded(&Arc::new(Loaded::read(reader, OpCodes::default()).unwrap()))
}

fn container(text: &str, notes: &[(Option<u32>, u64, Note<'_>)]) -> Job {
    let mut reader = text::Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    let mut writer =
        Writer::new(Vec::new(), reader.header(), &About::default(), Settings::default()).unwrap();
    for (task, place, note) in notes {
        writer.note(task.map(Rank), *place, note).unwrap();
    }
    while let Some(line) = reader.next().unwrap() {
        writer.line(&line).unwrap();
    }
    let reader = Reader::from_bytes(writer.finish().unwrap(), Path::new("test.vefx")).unwrap();
    Job::container(Container::new(reader).unwrap())
}

/// Three tasks: two messages, a mark and a Barrier.
const TEXT: &str = "VEF3 3 3 1 1 3 0 250\nC0 0 1 2\n0 0 1 9 4 10 -1\n1 1 2 9 2 5 0\n2 2 2 0 0 7 -1\n\
    G0 C0 6 0 0 0 1 1 0\nG0 C0 6 1 0 0 1 1 1\nG0 C0 6 2 0 0 1 1 2\n";

/// Every message arrives when it is taken; gives (sender, receiver) of each.
fn run(replay: &mut Replay) -> Vec<(u32, u32)> {
    let mut seen = Vec::new();
    while let Some(now) = replay.next_ready() {
        while let Some(message) = replay.pop_ready(now).unwrap() {
            seen.push((message.src.0, message.dst.0));
            replay.delivered(message.id, now).unwrap();
        }
    }
    seen
}

#[test]
fn sizes_and_counts() {
    let job = || loaded(TEXT);
    assert_eq!((job().tasks(), job().records(), job().clock()), (3, 6, Picos(250)));
    // Of four nodes the last has no task.
    let placed = || job().nodes(vec![7, 2, 4, 90]);
    assert_eq!((job().nodes_needed(), placed().nodes_needed(), Engine::builder().nodes_needed()), (3, 8, 0));
    let builder = Replay::builder().job(job()).job(placed());
    assert_eq!(builder.nodes_needed(), 8);
    let mut replay = builder.build().unwrap();
    assert_eq!((replay.jobs(), replay.tasks(1), replay.tasks(2)), (2, 3, 0));
    run(&mut replay);
    assert!(replay.is_complete());
    let stats = replay.stats();
    assert_eq!((stats.records(), stats.marks, stats.collective_parts), (12, 2, 6));
    let kinds: Vec<(String, u64)> =
        stats.kinds().map(|(kind, count)| (kind.to_string(), count.messages)).collect();
    let barrier = stats.of(Kind::Collective(Operation::Barrier)).messages;
    assert!(barrier > 0);
    assert_eq!(kinds, [("point-to-point".to_owned(), 4), ("Barrier".to_owned(), barrier)]);
}

#[test]
fn a_container_tells_how_it_was_captured() {
    let notes = [
        (None, 0, Note::Host("a")),
        (None, 1, Note::Host("b")),
        (None, 2, Note::Host("a")),
        (Some(0), 0, Note::StartUp(Ticks(100))),
        (Some(1), 0, Note::Initialised(Ticks(2))),
        (Some(2), 0, Note::StartUp(Ticks(300))),
        (Some(2), 0, Note::Finalised(Ticks(900))),
        (Some(1), 0, Note::Call("MPI_Send")),
        (Some(1), 1, Note::Call("MPI_Barrier")),
        // The second record began when the first had and its computing, and waits took 30 more.
        (Some(1), 0, Note::Moment(Ticks(3))),
        (Some(1), 1, Note::Moment(Ticks(34))),
        (Some(2), 0, Note::Time { function: "", part: TimePart::Outside, calls: 0, took: Ticks(8) }),
    ];
    let job = || container(TEXT, &notes);
    assert_eq!(job().captured_nodes().unwrap(), Some(vec![0, 1, 0]));
    let span = |initialised, in_records, finalised: Option<u64>| Span {
        initialised: Ticks(initialised),
        in_records,
        finalised: finalised.map(Ticks),
    };
    let spans = vec![span(100, false, None), span(2, true, None), span(300, false, Some(900))];
    assert_eq!(job().captured_spans().unwrap(), Some(spans));
    let record = |function: Option<&str>, at: Option<u64>| CapturedRecord {
        label: Label { tag: None, function: function.map(Arc::from), phase: None },
        at: at.map(Ticks),
    };
    let wanted = [(Rank(1), 1), (Rank(0), 1), (Rank(1), 0)];
    let records =
        [record(Some("MPI_Barrier"), Some(34)), record(None, None), record(Some("MPI_Send"), Some(5))];
    assert_eq!(job().captured_records(&wanted).unwrap(), records);
    let entry = Entry { function: String::new(), part: TimePart::Outside, calls: 0, took: Ticks(8) };
    assert_eq!(job().captured_accounts().unwrap(), [(Rank(2), Account(vec![entry]), Ticks(8))]);
    // Behind the launch the first message is that of task 0; behind MPI_Init that of task 2 in the Barrier.
    for (from_launch, start) in [(true, 110), (false, 8)] {
        let mut job = job();
        job.from_launch(from_launch).unwrap();
        let replay = Replay::builder().job(job).build().unwrap();
        assert_eq!(replay.next_ready(), Some(Picos(start * 250)));
    }
    // A text tells none of that.
    let text = loaded(TEXT);
    assert_eq!((text.captured_nodes().unwrap(), text.captured_spans().unwrap()), (None, None));
    assert_eq!(text.captured_records(&wanted).unwrap(), vec![CapturedRecord::default(); 3]);
    assert!(text.captured_accounts().unwrap().is_empty() && text.labels().unwrap().is_none());
}

/// Member 0 never enters, so that the container has no note of the root, which is task 2.
#[test]
fn a_container_that_lacks_a_member_has_the_root_all_the_same() {
    let text = "VEF3 3 0 1 1 2 0 1\nC0 0 1 2\nG0 C0 0 1 0 8 0 1 -1\nG0 C0 0 2 8 0 0 5 -1\n";
    let linear = || Table::from_toml("bcast = [{ algorithm = 'linear' }]").unwrap();
    for job in [loaded(text), container(text, &[])] {
        let mut replay = Replay::builder().job(job).algorithms(linear()).build().unwrap();
        let mut seen = run(&mut replay);
        seen.sort_unstable();
        assert_eq!(seen, [(2, 0), (2, 1)]);
    }
}

/// In a text the header may promise as many tasks as there are lines for, in memory as many as there are records.
#[test]
fn many_tasks_need_a_line_each() {
    let text = |count: u32| {
        let lines: String = (0..count).map(|task| format!("{task} {task} {task} 0 0 0 -1\n")).collect();
        format!("VEF3 70000 {count} 0 0 0 0 1\n{lines}")
    };
    for (lines, fits) in [(70_000, true), (1000, false)] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text(lines)).unwrap();
        for job in
            [Job::open(file.path()).unwrap(), Job::loaded(&Arc::new(Loaded::open(file.path()).unwrap()))]
        {
            assert_eq!(job.check_tasks(0).is_ok(), fits);
        }
    }
}

fn message(src: u32, dst: u32) -> Record {
    let (src, dst, bytes) = (Rank(src), Rank(dst), Bytes(8));
    let (id, after, time) = (MessageId(src.0.into()), Dependency::Start, Ticks(0));
    Record::Message(Message { id, src, dst, bytes, awaited: false, after, time })
}

#[test]
fn a_trace_in_memory_has_its_own_codes_and_says_which_record_is_wrong() {
    let read = |text: &str| {
        let reader = text::Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
        Loaded::read(reader, OpCodes::parse("77 Bcast", Path::new("codes.txt")).unwrap())
    };
    let trace = read("VEF3 2 0 1 1 2 0 1\nC0 0 1\nG0 C0 77 0 8 0 0 1 -1\nG0 C0 77 1 0 8 0 1 -1\n").unwrap();
    assert_eq!((trace.header().tasks, trace.records()), (2, 2));
    let mut replay = Replay::builder().job(Job::loaded(&Arc::new(trace))).build().unwrap();
    assert_eq!(run(&mut replay), [(0, 1)]);
    let members = vec![Rank(0), Rank(1)];
    let records = [0, 2].map(|task| message(task, 1)).into_iter();
    let records = std::iter::once(Record::Communicator { id: CommId(0), members }).chain(records);
    let header = Header { tasks: 2, ..Header::default() };
    let outside = Loaded::from_records(header, OpCodes::default(), records).unwrap_err();
    assert!(matches!(outside, LoadError::Rank { record: 2, task: Rank(2), tasks: 2 }), "{outside}");
}

#[test]
fn a_communicator_may_come_behind_its_first_use() {
    let text = "VEF3 2 0 1 1 2 0 1\nG0 C0 6 0 0 0 0 1 -1\nG0 C0 6 1 0 0 0 1 -1\nC0 0 1\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let mut replay = Replay::builder().job(Job::open(file.path()).unwrap()).build().unwrap();
    run(&mut replay);
    assert!(replay.is_complete(), "{}", replay.stuck().unwrap());
}

/// Task 2 sends 20 messages to task 3, more than it may ahead of its simulator.
fn sends() -> String {
    let sends: String = (0..20).map(|id| format!("{id} 2 3 8 0 1 -1\n")).collect();
    format!("VEF3 4 20 0 0 0 0 1000\n{sends}")
}

#[test]
fn a_wake_up_goes_through_plain_numbers() {
    let raw = |nodes: [u32; 4]| {
        let same_node = SameNode::Inside(Memory::default());
        let job = loaded(&sends()).nodes(nodes.to_vec());
        let mut engine = Engine::builder().job(job).same_node(same_node).engine().unwrap();
        let mut all = Vec::new();
        engine.begin(&mut all).unwrap();
        assert_eq!(all.len(), 1 + usize::from(Engine::RUN_AHEAD));
        let Some(Next::Wake(wake)) = all.pop() else { panic!("{all:?}") };
        assert_eq!((wake.at, engine.task_of(&wake)), (Picos(17_000), Some((0, Rank(2)))));
        let (at, raw) = wake.to_raw();
        assert_eq!(Wake::from_raw(at, raw), wake);
        engine.wake(Wake::from_raw(at, raw), at, &mut all).unwrap();
        assert_eq!(all.len(), 20);
        raw
    };
    // Within a node, and between two.
    assert_ne!(raw([0; 4]), raw([0, 1, 2, 3]));
}

/// Two messages of 1000 bytes: to the task itself, and to another one of its node.
#[test]
fn a_copy_to_itself_is_another_one_than_to_others_of_the_node() {
    let job = loaded("VEF3 2 2 0 0 0 0 1\n0 0 0 1000 0 0 -1\n1 0 1 1000 0 0 -1\n").nodes(vec![5, 5]);
    let link = |picos, bits| Link::new(Picos(picos), bits).unwrap();
    // 10 and 30 picoseconds, 8 and 4 a byte.
    let memory = Memory { itself: link(10, 1_000_000_000_000), shared: link(30, 2_000_000_000_000) };
    let mut engine = Engine::builder().job(job).same_node(SameNode::Inside(memory)).engine().unwrap();
    let mut arrivals = Vec::new();
    engine.begin(&mut |next: Next| arrivals.push((next.at(), matches!(next, Next::Inside { .. })))).unwrap();
    assert_eq!(arrivals, [(Picos(8010), true), (Picos(4030), true)]);
    assert_eq!(memory.itself.bits_per_second(), 1_000_000_000_000);
}

/// Task 1 is called at 5 µs; what comes before that, for it or for a send of it, is refused and changes nothing.
#[test]
fn the_time_of_a_task_does_not_go_back() {
    let text = "VEF3 2 4 0 0 0 0 1000\n0 1 0 8 0 1 -1\n1 1 0 8 0 1 -1\n2 0 1 8 4 0 -1\n3 1 1 0 2 0 2\n";
    let same_node = SameNode::ViaNetwork;
    let builder = Engine::builder().job(loaded(text)).same_node(same_node);
    let mut engine = builder.send_completion(SendCompletion::WhenSent).engine().unwrap();
    let mut ids = Vec::new();
    let mut keep = |next: Next| {
        if let Next::Message(message) = next {
            ids.push((message.src, message.id));
        }
    };
    engine.begin(&mut keep).unwrap();
    ids.sort_unstable();
    let [(Rank(0), to), (Rank(1), first), (Rank(1), second)] = ids[..] else { panic!("{ids:?}") };
    let mut nothing = |next: Next| panic!("{next:?}");
    engine.delivered(to, Picos(5_000_000), &mut nothing).unwrap();
    for refused in [
        engine.sent(first, Picos(4_999_999), &mut nothing),
        engine.delivered(second, Picos(4_999_999), &mut nothing),
    ] {
        let clock = Picos(5_000_000);
        assert!(
            matches!(refused, Err(ReplayError::Backwards { clock: at, .. }) if at == clock),
            "{refused:?}"
        );
    }
    engine.sent(first, Picos(5_000_000), &mut nothing).unwrap();
    engine.delivered(first, Picos(6_000_000), &mut nothing).unwrap();
    engine.delivered(second, Picos(6_000_000), &mut nothing).unwrap();
    assert!(engine.is_complete() && engine.stuck().is_none());
}

/// Task 2 is called late for its seventeenth message.
#[test]
fn the_time_of_a_task_that_was_called_does_not_go_back() {
    let builder = Engine::builder().job(loaded(&sends())).same_node(SameNode::ViaNetwork);
    let mut engine = builder.engine().unwrap();
    let mut all = Vec::new();
    engine.begin(&mut all).unwrap();
    let (Some(Next::Wake(wake)), Next::Message(first)) = (all.pop(), all[0]) else { panic!("{all:?}") };
    engine.wake(wake, Picos(50_000), &mut all).unwrap();
    let refused = engine.sent(first.id, Picos(49_999), &mut all);
    assert!(
        matches!(refused, Err(ReplayError::Backwards { clock: Picos(50_000), at: Picos(49_999) })),
        "{refused:?}"
    );
    // Nor behind a report of it.
    engine.sent(first.id, Picos(60_000), &mut all).unwrap();
    let Next::Message(second) = all[1] else { panic!("{all:?}") };
    let refused = engine.sent(second.id, Picos(59_999), &mut all);
    assert!(
        matches!(refused, Err(ReplayError::Backwards { clock: Picos(60_000), at: Picos(59_999) })),
        "{refused:?}"
    );
    // Not before the start of the message, but before an arrival at its receiver.
    engine.delivered(first.id, Picos(70_000), &mut all).unwrap();
    let refused = engine.delivered(second.id, second.start, &mut all);
    let clock = Picos(70_000);
    assert!(matches!(refused, Err(ReplayError::Backwards { clock: at, .. }) if at == clock), "{refused:?}");
}

/// Task 0 sends to task 1 while that computes; task 1 is in a call from 5 ns on.
#[test]
fn a_message_that_waited_for_a_call_calls_for_its_sender() {
    let job = loaded("VEF3 2 2 0 0 0 0 1000\n0 0 1 9000 0 1 -1\n1 1 1 0 0 5 -1\n");
    let policy = SendCompletion::RendezvousInCalls { above: Bytes(8000) };
    let builder = Engine::builder().job(job).same_node(SameNode::ViaNetwork);
    let mut engine = builder.send_completion(policy).engine().unwrap();
    let (mut out, mut called) = (Vec::new(), Vec::new());
    engine.begin(&mut out).unwrap();
    while let Some(first) = (0..out.len()).min_by_key(|&place| Next::at(&out[place])) {
        if let Next::Wake(wake) = out.remove(first) {
            called.push((wake.at, engine.task_of(&wake)));
            engine.wake(wake, wake.at, &mut out).unwrap();
        }
    }
    let expected = [(1000, 0), (5000, 1), (5000, 0)];
    assert_eq!(called, expected.map(|(at, task)| (Picos(at), Some((0, Rank(task))))));
}

#[test]
fn a_job_is_stalled_when_nothing_of_it_can_be_reported() {
    let circle = "VEF3 2 2 0 0 0 0 1\n0 0 1 1 6 0 1\n1 1 0 1 6 0 0\n";
    // The root of 24 sends 23 messages in a row.
    let members: String = (0..24).map(|rank| format!(" {rank}")).collect();
    let parts: String = (0..24)
        .map(|rank| {
            format!("G0 C0 0 {rank} {} {} 0 1 -1\n", 8 * u32::from(rank == 0), 8 * u32::from(rank > 0))
        })
        .collect();
    let bcast = format!("VEF3 24 0 1 1 24 0 1000\nC0{members}\n{parts}");
    for text in [sends(), bcast] {
        let linear = Table::from_toml("bcast = [{ algorithm = 'linear' }]").unwrap();
        let builder = Engine::builder().job(loaded(circle)).job(loaded(&text)).algorithms(linear);
        let mut engine = builder.same_node(SameNode::ViaNetwork).engine().unwrap();
        let (mut next, mut now) = (Vec::new(), Picos::ZERO);
        engine.begin(&mut next).unwrap();
        assert_eq!(next.len(), 1 + usize::from(Engine::RUN_AHEAD));
        while let Some(what) = next.pop() {
            now = now.max(what.at());
            // A message, or the call for further ones.
            assert_eq!([0, 1].map(|job| engine.is_stalled(job)), [true, false]);
            match what {
                Next::Message(message) => engine.delivered(message.id, now, &mut next).unwrap(),
                Next::Wake(wake) => engine.wake(wake, now, &mut next).unwrap(),
                Next::Inside { .. } => panic!("all messages are the network's"),
            }
        }
        assert_eq!([0, 1].map(|job| engine.is_stalled(job)), [true, true]);
        assert_eq!([0, 1].map(|job| engine.is_over(job)), [false, true]);
    }
}

#[test]
fn records_that_have_not_started_are_told() {
    // Two Isends, computing, and the waits for them, for the second one first.
    let text = "VEF3 2 4 0 0 0 0 1\n0 0 1 10 0 10 -1\n1 0 1 20 1 5 0\n2 0 1 30 1 100 1\n3 1 1 0 2 0 2\n";
    let wait = |send| (Some(0), 2, Note::SendWait { send, before: Ticks(20), took: Ticks(30) });
    let notes = [(Some(0), 0, Note::Detached), (Some(0), 1, Note::Detached), wait(1), wait(0)];
    let policy = SendCompletion::WhenSent;
    let mut engine = Engine::builder().job(container(text, &notes)).send_completion(policy).engine().unwrap();
    let mut messages = Vec::new();
    let mut keep = |next: Next| {
        if let Next::Message(message) = next {
            messages.push(message.id);
        }
    };
    let told = |engine: &Engine| -> Vec<_> {
        let told = engine.next_records(0).map(|next| {
            next.map(|next| {
                (
                    next.number,
                    next.record.map(|raw| raw.id),
                    next.dependency,
                    next.after,
                    next.released,
                    next.at,
                )
            })
        });
        told.collect()
    };
    engine.begin(&mut keep).unwrap();
    // Task 0 is in the first wait, which is no record; task 1 waits for message 2.
    let late = Picos::MAX;
    let other = Some((0, Some(3), 2, 2, late, late));
    assert_eq!(told(&engine), [Some((2, None, 1, 1, late, late)), other]);
    engine.sent(messages[1], Picos(40), &mut |_: Next| {}).unwrap();
    assert_eq!(told(&engine), [Some((2, Some(2), 1, 0, late, late)), other]);
    engine.sent(messages[0], Picos(50), &mut |_: Next| {}).unwrap();
    assert_eq!(told(&engine), [None, other]);
}
