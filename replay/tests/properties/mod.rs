//! The engine against a naive one, on random traces: same start times, same messages, in any order of deliveries.

mod checkpoints;
mod generator;
mod naive;
mod partitions;

use generator::{Call, Program, program};
use naive::{Setting, departure, flight};
use proptest::prelude::*;
use replay::{
    BuildError, Builder, Bytes, Container, Engine, Job, Kind, Left, Link, LiveId, Loaded, Message, Next,
    Picos, Replay, ReplayError, SameNode, SendCompletion, Sink, Started, Wake, yardstick,
};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tempfile::NamedTempFile;
use vef_format::container::{self, About, Note, Settings};
use vef_format::convert::convert;
use vef_format::ids::Rank;
use vef_format::operation::{OpCodes, Operation};
use vef_format::record::Record;
use vef_format::text::{Line, Writer};

/// A message as both engines can name it.
type Sent = (Kind, u32, u32, u64, u64);

fn loaded(program: &Program) -> Arc<Loaded> {
    let records = program.records.iter().cloned();
    Arc::new(Loaded::from_records(program.header, OpCodes::default(), records).unwrap())
}

/// Every message is handed out, those of a task to itself too.
fn outside() -> Builder {
    Replay::builder().same_node(SameNode::ViaNetwork)
}

fn replay(program: &Program) -> Replay {
    outside().job(Job::loaded(&loaded(program))).build().unwrap()
}

/// Every message takes [`flight`]; gives messages with the moment at which they were handed out.
fn run(replay: &mut Replay) -> Vec<Message> {
    let mut arrivals: BTreeMap<(Picos, usize), LiveId> = BTreeMap::new();
    let mut seen = Vec::new();
    loop {
        let arrival = arrivals.first_key_value().map(|(&(at, _), _)| at);
        let Some(now) = replay.next_ready().into_iter().chain(arrival).min() else { break };
        if let Some(message) = replay.pop_ready(now).unwrap() {
            assert_eq!(message.ready, now);
            arrivals.insert((Picos(now.0 + flight(message.src.0, message.dst.0)), seen.len()), message.id);
            seen.push(message);
        } else if arrival == Some(now) {
            let (_, id) = arrivals.pop_first().unwrap();
            replay.delivered(id, now).unwrap();
        }
    }
    seen
}

/// As [`run`], and every message has left its source after [`departure`].
fn run_with_departures(replay: &mut Replay) -> Vec<Message> {
    // A departure comes before an arrival, as it does of one message.
    let mut events: BTreeMap<(Picos, bool, usize), LiveId> = BTreeMap::new();
    let mut seen = Vec::new();
    loop {
        let event = events.first_key_value().map(|(&(at, ..), _)| at);
        let Some(now) = replay.next_ready().into_iter().chain(event).min() else { break };
        if let Some(message) = replay.pop_ready(now).unwrap() {
            let (src, dst) = (message.src.0, message.dst.0);
            events.insert((Picos(now.0 + departure(src, dst)), false, seen.len()), message.id);
            events.insert((Picos(now.0 + flight(src, dst)), true, seen.len()), message.id);
            seen.push(message);
        } else if event == Some(now) {
            let ((_, arrives, _), id) = events.pop_first().unwrap();
            if arrives { replay.delivered(id, now).unwrap() } else { replay.sent(id, now).unwrap() }
        }
    }
    seen
}

#[derive(Clone, Copy)]
enum Event {
    Sent(LiveId),
    Arrival(LiveId),
    Wake(Wake),
}

/// A queue of events for each task.
struct Tasks {
    events: Vec<BTreeMap<(Picos, usize), Event>>,
    /// What is to be sorted in by its task, which the engine knows.
    wakes: Vec<Wake>,
    report_sent: bool,
    count: usize,
    seen: Vec<Message>,
    /// What was told of records, by task, and of parts of collectives.
    started: Vec<Vec<Started>>,
    left: Vec<Left>,
}

impl Tasks {
    fn new(program: &Program, report_sent: bool) -> Self {
        let events = vec![BTreeMap::new(); program.header.tasks as usize];
        let started = vec![Vec::new(); events.len()];
        Self { events, wakes: Vec::new(), report_sent, count: 0, seen: Vec::new(), started, left: Vec::new() }
    }

    fn first(&self) -> Option<Picos> {
        self.events.iter().filter_map(|events| Some(events.first_key_value()?.0.0)).min()
    }

    fn push(&mut self, task: Rank, at: Picos, event: Event) {
        self.count += 1;
        self.events[task.index()].insert((at, self.count), event);
    }

    fn call(
        &mut self,
        engine: &mut Engine,
        call: impl FnOnce(&mut Engine, &mut Self) -> Result<(), ReplayError>,
    ) {
        call(engine, self).unwrap();
        for wake in std::mem::take(&mut self.wakes) {
            self.push(engine.task_of(&wake).unwrap().1, wake.at, Event::Wake(wake));
        }
    }
}

impl Sink for Tasks {
    fn take(&mut self, next: Next) {
        match next {
            Next::Message(message) => {
                let (src, dst) = (message.src.0, message.dst.0);
                if self.report_sent {
                    let at = Picos(message.start.0 + departure(src, dst));
                    self.push(message.src, at, Event::Sent(message.id));
                }
                self.push(message.dst, Picos(message.start.0 + flight(src, dst)), Event::Arrival(message.id));
                self.seen.push(message);
            }
            Next::Wake(wake) => self.wakes.push(wake),
            Next::Inside { .. } => panic!("every task is on its own node"),
        }
    }

    fn started(&mut self, started: &Started) {
        self.started[started.task.index()].push(*started);
    }

    fn left(&mut self, left: &Left) {
        self.left.push(*left);
    }
}

/// As [`run`], with at most so many messages and deliveries at a time; gives messages with the moments of their calls.
fn one_by_one(replay: &mut Replay, most: usize) -> Vec<(Picos, Message)> {
    in_turns(
        replay,
        most,
        |replay, now, given| {
            for _ in 0..most {
                given.extend(replay.pop_ready(now).unwrap());
            }
        },
        |replay, ids, now| ids.iter().for_each(|&id| replay.delivered(id, now).unwrap()),
    )
}

/// The same through the calls for several at once.
fn in_batches(replay: &mut Replay, most: usize) -> Vec<(Picos, Message)> {
    in_turns(
        replay,
        most,
        |replay, now, given| {
            replay.pop_ready_batch(now, most, |message| given.push(message)).unwrap();
        },
        |replay, ids, now| replay.delivered_batch(ids.iter().copied(), now).unwrap(),
    )
}

fn in_turns(
    replay: &mut Replay,
    most: usize,
    pop: impl Fn(&mut Replay, Picos, &mut Vec<Message>),
    deliver: impl Fn(&mut Replay, &[LiveId], Picos),
) -> Vec<(Picos, Message)> {
    let mut arrivals: BTreeMap<(Picos, usize), LiveId> = BTreeMap::new();
    let mut seen = Vec::new();
    loop {
        let arrival = arrivals.first_key_value().map(|(&(at, _), _)| at);
        let Some(now) = replay.next_ready().into_iter().chain(arrival).min() else { break };
        let mut ids = Vec::new();
        while ids.len() < most
            && let Some(first) = arrivals.first_entry()
            && first.key().0 <= now
        {
            ids.push(first.remove());
        }
        deliver(replay, &ids, now);
        let mut given = Vec::new();
        pop(replay, now, &mut given);
        for message in given {
            let at = Picos(now.0 + flight(message.src.0, message.dst.0));
            arrivals.insert((at, seen.len()), message.id);
            seen.push((now, message));
        }
    }
    seen
}

fn text(program: &Program) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    let mut writer = Writer::new(Vec::new(), &program.header).unwrap();
    for record in &program.records {
        writer.line(&record.borrowed()).unwrap();
    }
    file.write_all(&writer.finish().unwrap()).unwrap();
    file
}

/// A container that tells what each member of an Alltoallv sends to each.
fn container_with_counts(program: &Program) -> Container {
    let settings = Settings { compress: false, keep_order: program.header.messages.is_multiple_of(2) };
    let mut writer =
        container::Writer::new(Vec::new(), &program.header, &About::default(), settings).unwrap();
    let mut records = vec![0; program.header.tasks as usize];
    let mut place = |task: Rank| {
        records[task.index()] += 1;
        records[task.index()] - 1
    };
    for record in &program.records {
        match record {
            Record::Communicator { id, members } => writer.communicator(*id, members).unwrap(),
            Record::Message(message) => {
                place(message.src);
                writer.message(message).unwrap();
            }
            Record::Collective(part) => {
                let call = &program.calls[part.id.index()];
                let rank = call.members.iter().position(|&member| member == part.task).unwrap();
                let received: Vec<u64> = call.blocks.iter().map(|row| row[rank]).collect();
                let note = Note::Counts { sent: &call.blocks[rank], received: &received };
                let place = place(part.task);
                if matches!(call.operation, Operation::Alltoallv | Operation::Alltoallw) {
                    writer.note(Some(part.task), place, &note).unwrap();
                }
                writer.collective(part).unwrap();
            }
        }
    }
    let bytes = writer.finish().unwrap();
    Container::new(container::Reader::from_bytes(bytes, Path::new("test.vefx")).unwrap()).unwrap()
}

fn container(program: &Program) -> NamedTempFile {
    let container = tempfile::Builder::new().suffix(".vefx").tempfile().unwrap();
    let settings = Settings { keep_order: program.header.messages.is_multiple_of(2), ..Settings::default() };
    convert(text(program).path(), container.path(), &About::default(), settings).unwrap();
    container
}

fn sorted(messages: impl IntoIterator<Item = Message>, with_times: bool) -> Vec<Sent> {
    let name = |message: Message| {
        let at = if with_times { message.ready.0 } else { 0 };
        (message.kind, message.src.0, message.dst.0, message.bytes.0, at)
    };
    let mut sent: Vec<Sent> = messages.into_iter().map(name).collect();
    sent.sort_by_key(|&(kind, src, dst, bytes, at)| (kind.index(), src, dst, at, bytes));
    sent
}

/// When sends are complete.
fn policies() -> impl Strategy<Value = SendCompletion> {
    let above = Bytes(20);
    prop::sample::select(vec![
        SendCompletion::Eager,
        SendCompletion::WhenSent,
        SendCompletion::LargeWhenSent { above },
        SendCompletion::Rendezvous { above },
        SendCompletion::RendezvousInCalls { above },
    ])
}

fn is_reported(policy: SendCompletion) -> bool {
    matches!(policy, SendCompletion::WhenSent | SendCompletion::LargeWhenSent { .. })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn every_message_starts_when_the_rule_says(program in program()) {
        let naive = naive::run(&program, Setting::PLAIN);
        let mut engine = replay(&program);
        let seen = run(&mut engine);
        prop_assert!(engine.is_complete(), "{}", engine.stuck().unwrap());
        prop_assert!(engine.stuck().is_none());
        prop_assert_eq!(sorted(seen.iter().copied(), true), naive.messages);
        let finish: Vec<u64> = engine.progress(0).map(|task| task.finished.unwrap().0).collect();
        prop_assert_eq!(finish, naive.finish);
        prop_assert_eq!(engine.stats().delivered, seen.len() as u64);
        // A second run does the very same in the very same order.
        let again = run(&mut replay(&program));
        prop_assert_eq!(seen, again);
    }

    #[test]
    fn senders_wait_and_sizes_are_as_called(program in program(), policy in policies(), counts in any::<bool>()) {
        let naive = naive::run(&program, Setting { policy, counts });
        let job = match counts {
            true => Job::container(container_with_counts(&program)),
            false => Job::loaded(&loaded(&program)),
        };
        let mut engine = outside().job(job).send_completion(policy).build().unwrap();
        let seen = run_with_departures(&mut engine);
        prop_assert!(engine.is_complete(), "{}", engine.stuck().unwrap());
        prop_assert_eq!(sorted(seen, true), naive.messages);
        let finish: Vec<u64> = engine.progress(0).map(|task| task.finished.unwrap().0).collect();
        prop_assert_eq!(finish, naive.finish);
        let is_split = |call: &&Call| matches!(call.operation, Operation::Alltoallv | Operation::Alltoallw);
        let split = if counts { 0 } else { program.calls.iter().filter(is_split).count() };
        prop_assert_eq!(engine.stats().split_evenly, split as u64);
    }

    #[test]
    fn tasks_advance_in_any_order_that_causality_allows(
        program in program(),
        when_sent in any::<bool>(),
        from_file in any::<bool>(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..200),
    ) {
        let policy = if when_sent { SendCompletion::WhenSent } else { SendCompletion::Eager };
        let naive = naive::run(&program, Setting { policy, counts: false });
        let file = container(&program);
        let job = match from_file {
            true => Job::open(file.path()).unwrap(),
            false => Job::loaded(&loaded(&program)),
        };
        let mut engine = outside().job(job).send_completion(policy).engine().unwrap();
        let mut tasks = Tasks::new(&program, when_sent);
        tasks.call(&mut engine, |engine, tasks| engine.begin(tasks));
        let mut picks = picks.iter().cycle();
        while let Some(first) = tasks.first() {
            // What happens in this window at one task changes nothing at another before its end; and a message has left its
            // source before it arrives.
            let end = Picos(first.0 + if when_sent { 250 } else { 500 });
            loop {
                let in_window = |(at, _): (Picos, usize)| at < end;
                let ready: Vec<usize> = (0..tasks.events.len())
                    .filter(|&task| tasks.events[task].first_key_value().is_some_and(|(&key, _)| in_window(key)))
                    .collect();
                if ready.is_empty() {
                    break;
                }
                let task = ready[picks.next().unwrap().index(ready.len())];
                let ((now, _), event) = tasks.events[task].pop_first().unwrap();
                tasks.call(&mut engine, |engine, tasks| match event {
                    Event::Sent(id) => engine.sent(id, now, tasks),
                    Event::Arrival(id) => engine.delivered(id, now, tasks),
                    Event::Wake(wake) => engine.wake(wake, now, tasks),
                });
            }
        }
        prop_assert!(engine.is_complete(), "{}", engine.stuck().unwrap());
        prop_assert_eq!(sorted(tasks.seen, true), naive.messages);
        let finish: Vec<u64> = engine.progress(0).map(|task| task.finished.unwrap().0).collect();
        prop_assert_eq!(finish, naive.finish);
        // What it was told of records on the way, too.
        for (task, (told, expected)) in tasks.started.iter().zip(&naive.starts).enumerate() {
            let times: Vec<_> = told.iter().map(|told| (told.released.0, told.at.0)).collect();
            prop_assert_eq!(&times, expected);
            let of_task = |record: &&Record| match record {
                Record::Message(message) => message.src.index() == task,
                Record::Collective(part) => part.task.index() == task,
                Record::Communicator { .. } => false,
            };
            for (number, (told, record)) in told.iter().zip(program.records.iter().filter(of_task)).enumerate() {
                prop_assert_eq!((told.number, told.job), (number as u64, 0));
                match (told.record.unwrap().line(Rank(task as u32)), record) {
                    (Line::Message(told), Record::Message(message)) => prop_assert_eq!(told, *message),
                    (Line::Collective(told), Record::Collective(part)) => prop_assert_eq!(told, *part),
                    (told, record) => prop_assert!(false, "{told:?} for {record:?}"),
                }
            }
        }
        let left: BTreeMap<_, _> =
            tasks.left.iter().map(|left| ((left.id.0, left.task.0), left.at.0)).collect();
        prop_assert_eq!(left.len(), tasks.left.len());
        prop_assert_eq!(left, naive.left);
    }

    #[test]
    fn partitions_are_one_replay(
        program in program(),
        policy in policies(),
        parts in 1u32..4,
        from_file in any::<bool>(),
    ) {
        let naive = naive::run(&program, Setting { policy, counts: false });
        let (text, loaded) = (text(&program), loaded(&program));
        let job = if from_file { Job::open(text.path()).unwrap() } else { Job::loaded(&loaded) };
        let engines = outside().job(job).send_completion(policy).partitions(parts, |node| node % parts);
        if parts > 1 && matches!(policy, SendCompletion::RendezvousInCalls { .. }) {
            prop_assert!(matches!(engines, Err(BuildError::InCallsOfPartitions)));
            return Ok(());
        }
        let mut engines = engines.unwrap();
        let seen = partitions::run(&mut engines, is_reported(policy));
        prop_assert_eq!(sorted(seen, true), naive.messages);
        for (at, engine) in engines.iter().enumerate() {
            prop_assert!(engine.is_complete(), "partition {at}: {}", engine.stuck().unwrap());
        }
        let task = |rank: usize| engines[rank % parts as usize].progress(0).nth(rank).unwrap();
        let finish: Vec<u64> = (0..naive.finish.len()).map(|rank| task(rank).finished.unwrap().0).collect();
        prop_assert_eq!(finish, naive.finish);
        // All counts are those of one engine.
        let mut whole = outside().job(Job::loaded(&loaded)).send_completion(policy).build().unwrap();
        run_with_departures(&mut whole);
        let mut stats = engines[0].stats().clone();
        engines[1..].iter().for_each(|engine| stats.add(engine.stats()));
        prop_assert_eq!(stats.exported, stats.imported);
        (stats.exported, stats.imported) = (0, 0);
        prop_assert_eq!(&stats, whole.stats());
    }

    #[test]
    fn files_are_what_was_in_memory(program in program()) {
        let (file, container) = (text(&program), container(&program));
        let expected = run(&mut replay(&program));
        for path in [file.path(), container.path()] {
            let mut opened = outside().job(Job::open(path).unwrap()).build().unwrap();
            prop_assert_eq!(&run(&mut opened), &expected);
            prop_assert!(opened.is_complete());
        }
    }

    #[test]
    fn batches_are_the_calls_one_by_one(
        program in program(),
        most in 1usize..9,
        policy in policies(),
        one_node in any::<bool>(),
    ) {
        let file = container(&program);
        let same_node = match one_node {
            false => SameNode::ViaNetwork,
            true => SameNode::Inside(Link::new(Picos(700), 1_000_000_000_000).unwrap().into()),
        };
        // In memory and from a container, which is read in another way.
        for from_file in [false, true] {
            let engine = || {
                let job = match from_file {
                    false => Job::loaded(&loaded(&program)),
                    true => Job::open(file.path()).unwrap(),
                };
                let nodes = (0..program.header.tasks).map(|task| task / 2).collect();
                let builder = outside().job(job.nodes(nodes));
                builder.send_completion(policy).same_node(same_node).build().unwrap()
            };
            let (mut one, mut other) = (engine(), engine());
            let expected = one_by_one(&mut one, most);
            prop_assert_eq!(in_batches(&mut other, most), expected);
            prop_assert!(one.is_complete() && other.is_complete());
            prop_assert_eq!(one.stats(), other.stats());
            prop_assert_eq!(one.finish(), other.finish());
        }
    }

    #[test]
    fn any_order_of_deliveries_gives_the_same_messages(
        program in program(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0u64..1000, any::<bool>()), 1..50),
        policy in policies(),
    ) {
        let trace = loaded(&program);
        let mut engine =
            outside().job(Job::loaded(&trace)).send_completion(policy).build().unwrap();
        let (mut live, mut seen, mut now) = (Vec::new(), Vec::new(), Picos::ZERO);
        for (pick, later, report) in picks.iter().cycle() {
            if live.is_empty() {
                let Some(next) = engine.next_ready() else { break };
                now = now.max(next);
            }
            now.0 += later;
            while let Some(message) = engine.pop_ready(now).unwrap() {
                live.push(message.id);
                seen.push(message);
            }
            // All that was ready waits for receivers.
            if live.is_empty() {
                continue;
            }
            let at = pick.index(live.len());
            // A message is reported sent at most once, then delivered.
            if *report && is_reported(policy) && engine.sent(live[at], now).is_ok() {
                continue;
            }
            let id = live.swap_remove(at);
            engine.delivered(id, now).unwrap();
            let twice = engine.delivered(id, now);
            prop_assert!(matches!(twice, Err(ReplayError::NotLive { .. })), "delivered twice");
        }
        prop_assert!(engine.is_complete(), "{}", engine.stuck().unwrap());
        let naive = naive::run(&program, Setting::PLAIN).messages.into_iter().map(|sent| (sent.0.index(), sent.1, sent.2, sent.3));
        let mut naive: Vec<_> = naive.collect();
        let mut seen: Vec<_> =
            sorted(seen, false).into_iter().map(|sent| (sent.0.index(), sent.1, sent.2, sent.3)).collect();
        naive.sort_unstable();
        seen.sort_unstable();
        prop_assert_eq!(seen, naive);
    }

    #[test]
    fn a_lost_message_is_explained(program in program(), lost in any::<prop::sample::Index>()) {
        let total = run(&mut replay(&program)).len();
        prop_assume!(total > 0);
        let lost = lost.index(total);
        let mut engine = replay(&program);
        let mut count = 0;
        while let Some(now) = engine.next_ready() {
            while let Some(message) = engine.pop_ready(now).unwrap() {
                if count != lost {
                    engine.delivered(message.id, now).unwrap();
                }
                count += 1;
            }
        }
        prop_assert!(!engine.is_complete());
        let stuck = engine.stuck().unwrap();
        prop_assert_eq!((stuck.live, stuck.undelivered.len(), stuck.circle), (1, 1, None));
        prop_assert!(stuck.to_string().contains("not delivered"));
    }

    #[test]
    fn jobs_do_not_disturb_each_other(one in program(), other in program()) {
        let nodes = |program: &Program, from: u32| (from..from + program.header.tasks).collect::<Vec<_>>();
        let mut both = outside()
            .job(Job::loaded(&loaded(&one)).nodes(nodes(&one, 100)))
            .job(Job::loaded(&loaded(&other)).nodes(nodes(&other, 7)).start(Picos(5000)))
            .build()
            .unwrap();
        let seen = run(&mut both);
        prop_assert!(both.is_complete());
        for (job, program, from, start) in [(0, &one, 100, 0), (1, &other, 7, 5000)] {
            let mine = seen.iter().copied().filter(|message| message.job == job);
            prop_assert!(mine.clone().all(|message| message.src_node == from + message.src.0));
            let mut expected = naive::run(program, Setting::PLAIN);
            expected.messages.iter_mut().for_each(|sent| sent.4 += start);
            prop_assert_eq!(sorted(mine, true), expected.messages);
        }
    }

    #[test]
    fn within_a_node_the_engine_carries_messages_itself(program in program()) {
        let link = Link::new(Picos(1_000_000), 10_000_000_000).unwrap();
        let trace = loaded(&program);
        let on_one_node = vec![0; program.header.tasks as usize];
        let mut inside = outside()
            .job(Job::loaded(&trace).nodes(on_one_node))
            .same_node(SameNode::Inside(link.into()))
            .engine()
            .unwrap();
        let outcome = yardstick::run(&mut inside, &yardstick::default_link()).unwrap();
        prop_assert!(outcome.complete());
        prop_assert_eq!(inside.stats().inside, inside.stats().total());
        // The same link outside takes the same time.
        let mut outside = outside().job(Job::loaded(&trace)).engine().unwrap();
        let same = yardstick::run(&mut outside, &link).unwrap();
        prop_assert_eq!(same.runtime, outcome.runtime);
        prop_assert_eq!(inside.stats().total(), outside.stats().total());
    }

    #[test]
    fn a_cut_trace_ends_in_a_report_or_an_error(program in program(), keep in any::<prop::sample::Index>()) {
        let keep = keep.index(program.records.len());
        let records = program.records[..keep].iter().cloned();
        let trace = Arc::new(Loaded::from_records(program.header, OpCodes::default(), records).unwrap());
        let link = yardstick::default_link();
        match outside().job(Job::loaded(&trace)).engine() {
            Ok(mut engine) => {
                if let Ok(outcome) = yardstick::run(&mut engine, &link) {
                    prop_assert_eq!(outcome.complete(), engine.is_complete());
                    prop_assert_eq!(outcome.stuck.is_some(), !engine.is_complete());
                }
            }
            Err(BuildError::Start(_)) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
