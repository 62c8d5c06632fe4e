//! The walk over one task's events, in order of their starts. It makes records and channels.
//!
//! [`Walk::take`] has a line for each kind of event; the rules, which have the numbers of `docs/mixing.md`, are
//!
//! | rule | of | in |
//! |---|---|---|
//! | 1, 7 | the start and the end of MPI | `timeline.rs` |
//! | 2, 3, 4, 8 | posted receives, sends, blocking receives, `Sendrecv` | `messages.rs` |
//! | 6, 9 | collectives, and the messages that replace them | `collectives.rs` |
//! | 4, 5, 9 | completions of requests | `completions.rs` |
//! | 10 | probes | `probes.rs` |
//! | 11 | creations of communicators | `creations.rs` |
//! | 12 | neighbourhood collectives | `neighbourhoods.rs` |
//! | 13, 14 | one-sided transfers, and their synchronisation | `one_sided.rs` |
//! | 15 | answers to the requests of others | `answers.rs` |
//! | 16 | accesses to files, if there are storage servers | `files.rs`, `two_phases.rs` |
//! | 17 | partitioned communication | `partitioned.rs` |
//! | 18 | collectives between groups | `between.rs` |
//!
//! `timeline.rs` gives each record its time and its dependency (`polls.rs` says which part of failed polls is waiting), `builder.rs` has what all rules share, and `notes.rs` makes
//! the notes of a container.

mod answers;
mod between;
mod builder;
mod called;
mod collectives;
mod completions;
mod creations;
mod files;
mod locals;
mod messages;
mod neighbourhoods;
mod notes;
mod one_sided;
mod opened;
mod partitioned;
mod polls;
mod probes;
mod recent;
mod requested;
mod requests;
mod timeline;
mod transfers;
mod two_phases;
mod windows;

use crate::communicators::Communicators;
use crate::error::{MixError, Problem};
use crate::task::Task;
use crate::two_phase::Plans;
use ::collectives::windows::OneSided;
use builder::Builder;
pub(crate) use builder::WalkOptions;
use called::{Agreements, Probes};
use mpi_abi::account::Clock;
use notes::NoteTaker;
use requested::Answers;
pub(crate) use requested::{Answer, Fenced, Owed};
pub(crate) use transfers::Told;
use vef_format::capture::event::{Action, Creation, Detail, Event};
use vef_format::capture::{Consumer, Events};
use vef_format::ids::Rank;
use windows::Windows;

/// Walks over the events of one task.
pub(crate) struct Walk<'a>(Builder<'a>);

impl<'a> Walk<'a> {
    /// Begins before the first of the `events` of `rank`, which are none of a task that only answers. What the task does for others is
    /// `owed`. About so many records are `expected`.
    pub(crate) fn new(
        rank: Rank,
        communicators: &'a Communicators,
        options: WalkOptions<'a>,
        events: Option<&Events>,
        owed: Option<&'a Owed>,
        expected: usize,
    ) -> Self {
        let threads = events.is_some_and(Events::has_many_threads);
        let (functions, only_phase) =
            (events.map_or(&[][..], Events::functions), events.and_then(Events::only_phase));
        let answers = Answers::new(owed);
        let WalkOptions { polls, keep_init, .. } = options;
        let notes = options.with_notes.then(|| {
            let threads = threads || !answers.are_given();
            Box::new(NoteTaker::new(polls, keep_init, threads, functions))
        });
        let (probes, agreements) = (Probes::new(functions), Agreements::new(options.creations, functions));
        let code = OneSided::of(options.library, options.interfaces.is_some());
        let called =
            (Clock::new(functions, only_phase), probes, agreements, Windows::new(code, functions), answers);
        Self(Builder::new(rank, communicators, options, threads, notes, called, expected))
    }

    /// Before the first event: the task receives partitions from these sends, and accesses files by these plans.
    pub(crate) fn tell(&mut self, told: Option<&'a Told>, plans: Option<&'a Plans>) {
        self.0.transfers.told = told;
        self.0.plans = plans;
    }

    /// Number of records so far.
    pub(crate) fn records(&self) -> usize {
        self.0.records()
    }

    /// The task of a storage server or a network interface, which answers and does nothing else.
    pub(crate) fn serve(mut self) -> Result<Task, MixError> {
        self.0.answer_all().map_err(|problem| self.0.error(problem))?;
        Ok(self.0.finish(&[], Default::default()))
    }

    /// Ends the walk of these `events`.
    pub(crate) fn finish(mut self, events: &Events) -> Result<Task, MixError> {
        self.0.answer_rest().map_err(|problem| self.0.error(problem))?;
        self.0.windows_end();
        self.0.abandon_open_receives();
        self.0.resolve_probes();
        self.0.ended(events.ending());
        Ok(self.0.finish(events.functions(), events.span()))
    }
}

impl Consumer<MixError> for &mut Walk<'_> {
    #[inline(always)]
    fn take(&mut self, event: &Event<'_>) -> Result<(), MixError> {
        let builder = &mut self.0;
        if !builder.answers.are_given() {
            builder.answer_before(event).map_err(|problem| builder.error(problem))?;
        }
        let before = builder.records();
        builder.enter(event).map_err(|problem| builder.error(problem))?;
        apply(builder, event).map_err(|problem| builder.error(problem))?;
        let has_record = builder.records() > before;
        if !has_record && !builder.answers.are_given() {
            builder.begin_answering(event);
        }
        let before = if has_record { before } else { builder.records() };
        builder.leave(event, before, has_record);
        if !builder.answers.are_given() && !matches!(event.action, Action::Phase { .. } | Action::Preempted) {
            builder.answers.returned = builder.answers.returned.max(event.end.0);
        }
        if has_record && !builder.answers.are_given() {
            builder.answer_after(event).map_err(|problem| builder.error(problem))?;
        }
        Ok(())
    }
}

/// Applies the rule for an event.
#[inline(always)]
fn apply(walk: &mut Builder<'_>, event: &Event<'_>) -> Result<(), Problem> {
    match &event.action {
        Action::Send(send) => walk.send(event, send),
        Action::PostReceive(posted) => walk.post(event, posted),
        Action::Complete(completions) => walk.complete(event, *completions),
        _ => apply_rare(walk, event),
    }
}

/// [`apply`] for the less frequent kinds.
#[inline(never)]
fn apply_rare(walk: &mut Builder<'_>, event: &Event<'_>) -> Result<(), Problem> {
    match &event.action {
        Action::Init => walk.begin(event),
        Action::Finalize => walk.finalize(event),
        Action::Communicator(communicator) => return walk.communicator(communicator),
        Action::Receive(receive) => return walk.receive(event, receive),
        Action::Exchange { send, receive } => return walk.exchange(event, send, receive),
        Action::Collective(part) if walk.comms.is_between_groups(part.comm)? => {
            return walk.between(event, part);
        }
        Action::Collective(part) => return walk.collective(event, part),
        Action::Topology(topology) => return walk.topology(topology),
        Action::Datatype(described) => _ = walk.element_sizes.insert(described.id, described.size),
        Action::Neighbourhood(part) => return walk.neighbourhood(event, part),
        Action::Partitioned(call) => return walk.partitioned(event, call),
        Action::Creation(Creation { comm, request: None })
            if walk.agreements.are_sent() && walk.comms.is_between_groups(*comm)? =>
        {
            return walk.creation_between(event, *comm);
        }
        Action::Creation(Creation { comm, request }) => return walk.creation(event, *comm, *request),
        Action::CommunicatorFree(comm) => return walk.communicator_freed(event, *comm),
        Action::Forget(request) => walk.forget(*request),
        Action::Polls { .. } => {
            if !walk.answers.are_given() {
                walk.may_answer_in(event);
            }
            walk.polled(event);
        }
        Action::Preempted => walk.preempted(event),
        Action::Other { bytes, detail } => match detail {
            Detail::Window { id, comm, size, unit } => {
                return walk.window(event, *id, *comm, (*size, *unit));
            }
            Detail::WindowFree(id) => return walk.window_freed(event, *id),
            Detail::Transfer(transfer) => return walk.transfer(event, transfer),
            Detail::Sync { window, target, assert, group, .. } => {
                return walk.synchronise(event, *window, *target, *assert, *group);
            }
            Detail::Io(io) => return walk.accessed(event, io, *bytes),
            Detail::FileOpen { id, comm, name, .. } => return walk.file_opened(event, *id, *comm, 0, name),
            Detail::FileOpenAt { id, comm, position, name, .. } => {
                return walk.file_opened(event, *id, *comm, *position, name);
            }
            Detail::FileView { file, displacement, unit } => {
                return walk.file_viewed(event, *file, *displacement, *unit, None);
            }
            Detail::FileViewTiled { file, displacement, unit, tile } => {
                return walk.file_viewed(event, *file, *displacement, *unit, Some(*tile));
            }
            Detail::FileSeek { file, position } => walk.file_sought(*file, *position),
            Detail::FileClose(file) => return walk.file_closed(event, *file),
            Detail::None => walk.not_representable(event.call, *bytes),
        },
        Action::Probe { comm, source, tag } => return walk.probe(event, *comm, *source, *tag),
        Action::Stopped { reason } => walk.stopped(reason),
        // Not calls of the program that take time.
        Action::Send(_)
        | Action::PostReceive(_)
        | Action::Complete(_)
        | Action::Meeting(_)
        | Action::Phase { .. }
        | Action::Abort { .. } => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::collectives::choose::Table;
    use vef_format::capture::event::{
        CallSlot, Collective, Communicator, Completions, DatatypeId, Members, Origin, Remote, RequestId,
    };
    use vef_format::ids::CommId;
    use vef_format::operation::{Amounts, Operation};
    use vef_format::units::Bytes;
    use vef_format::units::Nanos;

    /// A lowered collective has as many messages and receives as it has peers: far more than a task has events.
    #[test]
    fn messages_of_lowered_collectives_are_counted_before_their_numbers_wrap() {
        let (comm, table) = (CommId(0), Table::builtin("default").unwrap());
        let communicators = Communicators::new(1000);
        let options = WalkOptions { lower: Some(&table), ..WalkOptions::default() };
        let mut walk = Walk::new(Rank(0), &communicators, options, None, None, 0);
        walk.0.most = 3500;
        let alltoall = Collective {
            operation: Operation::Alltoall,
            comm,
            root: None,
            amounts: Amounts { send: Bytes(1 << 30), recv: Bytes(1 << 30) },
            count: 1,
            datatype: DatatypeId::default(),
            recv_datatype: None,
            request: None,
            send_counts: &[],
            recv_counts: &[],
        };
        let mut take = |action| {
            let (start, end) = (Nanos(1), Nanos(1));
            (&mut walk).take(&Event { start, end, thread: 0, call: CallSlot::NONE, action })
        };
        take(Action::Init).unwrap();
        take(Action::Communicator(world())).unwrap();
        let mut calls = 2;
        let error = loop {
            match take(Action::Collective(alltoall.clone())) {
                Ok(()) => calls += 1,
                Err(error) => break error,
            }
        };
        let expected = matches!(
            error,
            MixError::Event { task: Rank(0), event, problem: Problem::TooManyEvents } if event == calls
        );
        assert!(expected && calls < 5, "{error}, after {calls} events");
        let task = &walk.0.task;
        assert!(task.sends.len() + task.receives.len() < 3500);
    }

    fn world() -> Communicator<'static> {
        let (origin, members, remote) = (Origin::World, Members::All, Remote::None);
        Communicator { id: CommId(0), origin, split: None, members, remote, foreign: false }
    }

    /// Requests of a damaged capture.
    #[test]
    fn unknown_requests_are_counted() {
        let communicators = Communicators::new(2);
        let mut walk = Walk::new(Rank(0), &communicators, WalkOptions::default(), None, None, 0);
        let first = RequestId { thread: 0, number: 7 };
        let complete = Action::Complete(Completions::Run { first, count: 3 });
        for action in [Action::Init, Action::Communicator(world()), complete, Action::Forget(first)] {
            let (start, end) = (Nanos(1), Nanos(1));
            (&mut walk).take(&Event { start, end, thread: 0, call: CallSlot::NONE, action }).unwrap();
        }
        assert_eq!(walk.0.task.counts.unknown_requests, 3 + 1);
    }

    /// So many collectives are kept when the records are read: not all.
    #[test]
    fn what_depends_on_the_latest_collective_reaches_no_further() {
        let communicators = Communicators::new(2);
        let mut walk = Walk::new(Rank(0), &communicators, WalkOptions::default(), None, None, 0);
        let barrier = Action::Collective(creations::collective(Operation::Barrier, CommId(0)));
        let calls = std::iter::repeat_n(barrier, 10);
        for action in [Action::Init, Action::Communicator(world())].into_iter().chain(calls) {
            let (start, end) = (Nanos(1), Nanos(1));
            (&mut walk).take(&Event { start, end, thread: 0, call: CallSlot::NONE, action }).unwrap();
        }
        // A collective itself is behind the one that it depends on.
        assert_eq!((walk.0.task.collectives, walk.0.task.reach), (10, 2));
    }
}
