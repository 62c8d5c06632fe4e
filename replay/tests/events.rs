//! Collectives as events: run times by formula, some as events and others as messages, and what is refused.

use replay::{
    Bytes, Collective, CollectiveEvents, Engine, EventOn, Job, Loaded, Next, OpCodes, Picos, Rank, Replay,
    ReplayError, Sink,
};
use std::path::Path;
use std::sync::Arc;
use vef_format::ids::{CollectiveId, CommId};
use vef_format::operation::Operation;
use vef_format::text::Reader;

const RANKS: u64 = 5;
const STEPS: u64 = 4;

/// Task r computes 100 r + 10 ticks of 1 ns before each of the Allreduces, whose records wait for the one before.
fn allreduces() -> Job {
    let parts = RANKS * STEPS;
    let mut text = format!("VEF3 {RANKS} 0 1 {STEPS} {parts} 0 1000\nC3 4 3 2 1 0\n");
    for step in 0..STEPS {
        for rank in 0..RANKS {
            let (code, after) = if step == 0 { (0, "-1".to_owned()) } else { (3, format!("G{}", step - 1)) };
            text += &format!("G{step} C3 2 {rank} 64 64 {code} {} {after}\n", 100 * rank + 10);
        }
    }
    loaded(&text)
}

fn loaded(text: &str) -> Job {
    let reader = Reader::from_bytes(text.as_bytes(), Path::new("test.vef")).unwrap();
    Job::loaded(&Arc::new(Loaded::read(reader, OpCodes::default()).unwrap()))
}

fn replay(events: CollectiveEvents) -> Replay {
    Replay::builder().job(allreduces()).collective_events(events).build().unwrap()
}

/// When a collective is over that is carried out in 2 µs, all members at once.
const TOOK: u64 = 2_000_000;

#[test]
fn a_run_of_reductions_in_the_network_takes_what_the_formula_says() {
    let mut replay = replay(CollectiveEvents::default());
    let mut seen = Vec::new();
    while let Some(now) = replay.next_ready() {
        assert!(replay.pop_ready(now).unwrap().is_none());
        let Some(event) = replay.pop_collective(now).unwrap() else { continue };
        assert_eq!(event.at, now);
        seen.push(event);
        let members = replay.members(event.job, event.id).unwrap();
        let latest = members.iter().filter_map(|member| member.entered).map(|(at, _)| at).max();
        assert_eq!((members.len() as u64, latest), (RANKS, Some(now)));
        // The communicator lists the tasks backwards.
        assert_eq!((members[0].task, members[4].node), (Rank(4), 0));
        assert!(members.iter().all(|member| member.entered.unwrap().1.map(|bytes| bytes.0) == [64, 64]));
        for member in 0..event.ranks {
            replay.complete_member((event.job, event.id), member, Picos(now.0 + TOOK)).unwrap();
        }
        assert_eq!(replay.members(event.job, event.id), None);
    }
    assert!(replay.is_complete(), "{}", replay.stuck().unwrap());
    let slowest = (100 * (RANKS - 1) + 10) * 1000;
    assert_eq!(replay.finish(), Picos(STEPS * (slowest + TOOK)));
    let expected = |step: u64| Collective {
        job: 0,
        id: CollectiveId(step),
        comm: CommId(3),
        operation: Operation::Allreduce,
        root: 0,
        ranks: RANKS as u32,
        at: Picos((step + 1) * slowest + step * TOOK),
        member: None,
        node: None,
        bytes: [Bytes(64); 2],
    };
    assert_eq!(seen, (0..STEPS).map(expected).collect::<Vec<_>>());
    assert_eq!((replay.stats().total().messages, replay.stats().collectives), (0, STEPS));
}

#[test]
fn each_member_enters_and_leaves_by_itself() {
    let mut replay = replay(CollectiveEvents { on: EventOn::EachEntry, ..CollectiveEvents::default() });
    let mut entries = 0;
    // No member waits for another: each is through after 1 ns.
    while let Some(now) = replay.next_ready() {
        while let Some(event) = replay.pop_collective(now).unwrap() {
            entries += 1;
            let member = event.member.unwrap();
            let members = replay.members(event.job, event.id).unwrap();
            assert!(members[member as usize].entered.is_some_and(|(at, _)| at == event.at));
            assert!(!members[member as usize].complete);
            replay.complete_member((event.job, event.id), member, now).unwrap();
            // As long as it is not over for all.
            if let Some(members) = replay.members(event.job, event.id) {
                assert!(members[member as usize].complete && members[member as usize].entered.is_none());
            }
        }
    }
    assert!(replay.is_complete(), "{}", replay.stuck().unwrap());
    assert_eq!((entries, replay.finish()), (RANKS * STEPS, Picos(STEPS * (100 * (RANKS - 1) + 10) * 1000)));
}

#[test]
fn some_are_events_and_others_messages() {
    let chosen = |events: CollectiveEvents| {
        let mut replay = replay(events);
        let mut events = 0;
        while let Some(now) = replay.next_ready() {
            while let Some(message) = replay.pop_ready(now).unwrap() {
                replay.delivered(message.id, now).unwrap();
            }
            while let Some(event) = replay.pop_collective(now).unwrap() {
                events += 1;
                (0..event.ranks).for_each(|member| {
                    replay.complete_member((event.job, event.id), member, now).unwrap();
                });
            }
        }
        assert!(replay.is_complete(), "{}", replay.stuck().unwrap());
        (events, replay.stats().total().messages > 0)
    };
    let all = CollectiveEvents::default;
    assert_eq!(chosen(all()), (STEPS, false));
    assert_eq!(chosen(CollectiveEvents { operations: vec![Operation::Bcast], ..all() }), (0, true));
    assert_eq!(chosen(CollectiveEvents { ranks: 0..=4, ..all() }), (0, true));
    assert_eq!(chosen(CollectiveEvents { ranks: 5..=5, bytes: 64..=64, ..all() }), (STEPS, false));
    assert_eq!(chosen(CollectiveEvents { bytes: 65..=u64::MAX, ..all() }), (0, true));
    assert_eq!(chosen(CollectiveEvents { comms: Some(vec![CommId(2)]), ..all() }), (0, true));
    assert_eq!(chosen(CollectiveEvents { comms: Some(vec![CommId(3)]), ..all() }), (STEPS, false));
}

/// The events of an engine.
#[derive(Default)]
struct Events(Vec<Collective>);

impl Sink for Events {
    fn take(&mut self, next: Next) {
        panic!("{next:?}");
    }

    fn collective(&mut self, collective: &Collective) {
        self.0.push(*collective);
    }
}

#[test]
fn an_engine_refuses_what_cannot_be() {
    let mut engine =
        Engine::builder().job(allreduces()).collective_events(CollectiveEvents::default()).engine().unwrap();
    let mut events = Events::default();
    engine.begin(&mut events).unwrap();
    let event = events.0.pop().unwrap();
    let (first, slowest) = ((event.job, event.id), event.at);
    let mut nothing = Events::default();
    for (of, member, at) in
        [((0, CollectiveId(1)), 0, slowest), ((1, event.id), 0, slowest), (first, 5, slowest)]
    {
        let refused = engine.complete_member(of, member, at, &mut nothing).unwrap_err();
        assert!(refused.is_misuse() && matches!(refused, ReplayError::NoMember { .. }), "{refused}");
    }
    // Member 0 is task 4, which came last.
    let early = engine.complete_member(first, 0, Picos(slowest.0 - 1), &mut nothing);
    assert!(matches!(early, Err(ReplayError::Backwards { .. })));
    engine.complete_member(first, 0, slowest, &mut nothing).unwrap();
    assert!(matches!(
        engine.complete_member(first, 0, slowest, &mut nothing),
        Err(ReplayError::NoMember { .. })
    ));
    let stuck = engine.stuck().unwrap().to_string();
    assert!(stuck.contains("G0 (Allreduce), which is the simulator's to complete"), "{stuck}");
    let divided = || Engine::builder().job(allreduces()).collective_events(CollectiveEvents::default());
    assert_eq!(divided().partitions(1, |_| 0).unwrap().len(), 1);
    assert!(divided().partitions(2, |node| node % 2).unwrap_err().to_string().contains("cannot be events"));
}
