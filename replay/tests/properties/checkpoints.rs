//! A replay that is saved and restored again and again, and one that is reset, against one that runs through.

use super::*;
use replay::{CheckpointError, Stats};
use vef_format::ids::MessageId;
use vef_format::record::{Dependency, Header, Message as VefMessage};
use vef_format::units::Ticks;

/// How the records are read.
#[derive(Clone, Copy, Debug)]
enum From {
    Memory,
    Text,
    Container,
}

/// The same job, opened anew.
fn job(program: &Program, text: &NamedTempFile, from: From) -> Job {
    match from {
        From::Memory => Job::loaded(&loaded(program)),
        From::Text => Job::open(text.path()).unwrap(),
        From::Container => Job::container(container_with_counts(program)),
    }
}

/// What a run comes to: messages with the moments at which they were handed out, finish, counts, times of tasks by state.
type Outcome = (Vec<(Picos, Message)>, Picos, Stats, Vec<[u64; 4]>);

/// Runs to the end; after every so many steps `interrupt` may put another replay in the place of this one.
fn run_interrupted(mut replay: Replay, every: usize, mut interrupt: impl FnMut(&mut Replay)) -> Outcome {
    let mut events: BTreeMap<(Picos, bool, usize), LiveId> = BTreeMap::new();
    let mut seen = Vec::new();
    for step in 1.. {
        let event = events.first_key_value().map(|(&(at, ..), _)| at);
        let Some(now) = replay.next_ready().into_iter().chain(event).min() else { break };
        if let Some(message) = replay.pop_ready(now).unwrap() {
            let (src, dst) = (message.src.0, message.dst.0);
            events.insert((Picos(now.0 + departure(src, dst)), false, seen.len()), message.id);
            events.insert((Picos(now.0 + flight(src, dst)), true, seen.len()), message.id);
            seen.push((now, message));
        } else if event == Some(now) {
            let ((_, arrives, _), id) = events.pop_first().unwrap();
            if arrives { replay.delivered(id, now).unwrap() } else { replay.sent(id, now).unwrap() }
        }
        if step % every == 0 {
            interrupt(&mut replay);
        }
    }
    assert!(replay.is_complete());
    let times = replay.accounts().unwrap().so_far(replay.engine(), 0);
    let seen = seen.into_iter().map(|(at, message)| (at, without_id(message))).collect();
    (seen, replay.finish(), replay.stats().clone(), times)
}

/// Later messages may have other ids: which slot is used next is not saved.
fn without_id(message: Message) -> Message {
    Message { id: LiveId::from_raw(0), ..message }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_saved_replay_goes_on_as_if_nothing_had_happened(
        program in program(), policy in policies(), every in 1usize..40,
        from in prop::sample::select(vec![From::Memory, From::Text, From::Container]), inside in any::<bool>(),
    ) {
        let text = text(&program);
        let build = || {
            let same_node = if inside { SameNode::default() } else { SameNode::ViaNetwork };
            let nodes = (0..program.header.tasks).map(|rank| rank / 2).collect();
            let job = job(&program, &text, from).nodes(nodes);
            Replay::builder().job(job).same_node(same_node).send_completion(policy).keep_times(true).build().unwrap()
        };
        let through = run_interrupted(build(), usize::MAX, |_| {});
        let saved = run_interrupted(build(), every, |replay| {
            let state = replay.save().unwrap();
            // Into another replay, or back into this one.
            if state.len() % 2 == 0 {
                *replay = build();
            }
            replay.restore(&state).unwrap();
        });
        prop_assert_eq!(&saved, &through);

        // After half of it, once more from the beginning.
        let mut replay = build();
        let mut steps = 0;
        while steps < through.0.len() / 2
            && let Some(now) = replay.next_ready()
            && let Some(message) = replay.pop_ready(now).unwrap()
        {
            steps += 1;
            if steps % 2 == 0 {
                replay.delivered(message.id, now).unwrap();
            }
        }
        replay.reset().unwrap();
        prop_assert_eq!(run_interrupted(replay, usize::MAX, |_| {}), through);
    }

    /// An engine, whose simulator keeps its own events.
    #[test]
    fn a_saved_engine_goes_on_as_if_nothing_had_happened(program in program(), every in 1usize..40) {
        let text = text(&program);
        let build = |from| outside().job(job(&program, &text, from)).engine().unwrap();
        let run = |mut engine: Engine, every: usize| {
            let mut events: BTreeMap<(Picos, usize), Next> = BTreeMap::new();
            let (mut count, mut seen) = (0, Vec::new());
            let mut add = |next: Next, events: &mut BTreeMap<_, _>| {
                let at = match next {
                    Next::Message(message) => {
                        seen.push(without_id(message));
                        Picos(message.start.0 + flight(message.src.0, message.dst.0))
                    }
                    Next::Inside { .. } | Next::Wake(_) => next.at(),
                };
                count += 1;
                events.insert((at, count), next);
            };
            engine.begin(&mut |next| add(next, &mut events)).unwrap();
            for step in 1.. {
                let Some(((now, _), event)) = events.pop_first() else { break };
                let out = &mut |next| add(next, &mut events);
                match event {
                    Next::Message(message) | Next::Inside { message, .. } => engine.delivered(message.id, now, out).unwrap(),
                    Next::Wake(wake) => engine.wake(wake, now, out).unwrap(),
                }
                if step % every == 0 {
                    let state = engine.save().unwrap();
                    engine = build(From::Memory);
                    engine.restore(&state).unwrap();
                }
            }
            assert!(engine.is_complete());
            (seen, engine.finish(), engine.stats().clone())
        };
        prop_assert_eq!(run(build(From::Text), every), run(build(From::Text), usize::MAX));
    }

    #[test]
    fn other_bytes_are_refused_and_change_nothing(
        program in program(), other in program(), at in any::<prop::sample::Index>(), bit in 0u32..8, cut in any::<bool>(),
    ) {
        let build = |program: &Program| outside().job(Job::loaded(&loaded(program))).keep_times(true).build().unwrap();
        let state = build(&program).save().unwrap();
        let mut spoilt = state.clone();
        match cut {
            true => spoilt.truncate(at.index(state.len())),
            false => spoilt[at.index(state.len())] ^= 1 << bit,
        }
        let mut replay = build(&program);
        let refused = replay.restore(&spoilt).unwrap_err();
        prop_assert!(matches!(refused, CheckpointError::NoCheckpoint | CheckpointError::Damaged), "{refused}");
        let foreign = build(&other).save().unwrap();
        if other.header != program.header {
            prop_assert!(matches!(replay.restore(&foreign), Err(CheckpointError::OtherReplay)));
        }
        prop_assert_eq!(run_interrupted(replay, usize::MAX, |_| {}), run_interrupted(build(&program), usize::MAX, |_| {}));
    }
}

/// A few MB for many tasks, all of which have a message under way.
#[test]
fn a_checkpoint_is_small() {
    const TASKS: u32 = 100_000;
    let header = Header { tasks: TASKS, messages: TASKS.into(), clock: Picos(1000), ..Header::default() };
    let message = |task: u32| {
        Record::Message(VefMessage {
            id: MessageId(task.into()),
            src: Rank(task),
            dst: Rank((task + 1) % TASKS),
            bytes: Bytes(8192),
            awaited: false,
            after: Dependency::Start,
            time: Ticks(1_000_000),
        })
    };
    let records = (0..TASKS).map(message);
    let trace = Arc::new(Loaded::from_records(header, OpCodes::default(), records).unwrap());
    let mut replay = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    let now = replay.next_ready().unwrap();
    let mut ids = Vec::new();
    replay.pop_ready_batch(now, TASKS as usize, |message| ids.push(message.id)).unwrap();
    let state = replay.save().unwrap();
    assert_eq!(ids.len(), TASKS as usize);
    assert!(state.len() < TASKS as usize * 80, "{} bytes", state.len());
    let mut other = Replay::builder().job(Job::loaded(&trace)).build().unwrap();
    other.restore(&state).unwrap();
    other.delivered_batch(ids, now).unwrap();
    assert!(other.is_complete());
}
