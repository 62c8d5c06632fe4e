//! How one rank spends its time (`docs/time.md`), and in which phases of the program.

use hashbrown::HashMap;
use mpi_abi::account::{Clock, of_all, part_of};
use mpi_abi::waiting::time_part;
use std::collections::BTreeMap;
use vef_format::account::{Account, ByPart, TimePart};
use vef_format::capture::event::{
    Action, Completions, Creation, Detail, Event, Io, Neighbourhood, Partitioned, PartitionedId, RequestId,
    Send, Transfer,
};
use vef_format::capture::{Events, Function};
use vef_format::units::Nanos;

/// Times in one phase, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InPhase {
    /// How often it began.
    pub(super) entries: u64,
    /// The parts of the time in it, of all threads.
    pub(super) times: ByPart,
}

/// Follows the events of one rank.
pub(super) struct TimeOfRank {
    clock: Clock,
    /// By slot of the call table.
    parts: Vec<TimePart>,
    /// What a wait for a request counts for.
    pending: HashMap<RequestId, TimePart>,
    /// What the completions of partitioned transfers wait for.
    partitioned: HashMap<PartitionedId, TimePart>,
    threads: Vec<Thread>,
    /// From here on threads are in no phase.
    initialised: Nanos,
    phases: BTreeMap<String, InPhase>,
}

/// A thread's way through the phases.
#[derive(Default)]
struct Thread {
    /// Names of the phases that it is in, the innermost last.
    open: Vec<String>,
    /// When the innermost one changed.
    since: Option<Nanos>,
    /// Time in MPI since then, by part.
    inside: ByPart,
}

impl TimeOfRank {
    /// Before the first event of a rank.
    pub(super) fn new(events: &Events) -> Self {
        let functions = events.functions();
        Self {
            clock: Clock::new(functions, events.only_phase()),
            parts: functions.iter().map(|function| time_part(&function.name)).collect(),
            pending: HashMap::new(),
            partitioned: HashMap::new(),
            threads: Vec::new(),
            initialised: events.span().0,
            phases: BTreeMap::new(),
        }
    }

    pub(super) fn event(&mut self, event: &Event<'_>) {
        let unrecorded = self.clock.event(event);
        let thread = usize::from(event.thread);
        if thread >= self.threads.len() {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        self.threads[thread].inside.add(TimePart::Unknown, unrecorded);
        let by_name = event.call.index().and_then(|slot| self.parts.get(slot).copied());
        let mut part = by_name.or_else(|| part_of(&event.action)).unwrap_or(TimePart::Own);
        match &event.action {
            Action::Init => {
                self.clock.begin(event);
                self.initialised = event.end;
                return;
            }
            Action::Finalize => {
                self.clock.end(event);
                return;
            }
            Action::Phase { begin, name } => {
                self.change(thread, event.start, |open| match begin {
                    true => open.push((*name).to_owned()),
                    false => {
                        let last = open.iter().rposition(|of| of == name);
                        open.truncate(last.unwrap_or(open.len()));
                    }
                });
                if *begin {
                    self.phases.entry((*name).to_owned()).or_default().entries += 1;
                }
                return;
            }
            Action::Send(Send { request: Some(request), .. }) => self.wait_for(*request, TimePart::Send),
            Action::PostReceive(posted) => self.wait_for(posted.request, TimePart::Message),
            Action::Partitioned(Partitioned::Init(init)) => {
                self.partitioned.insert(init.id, if init.sends { TimePart::Send } else { TimePart::Message });
            }
            Action::Partitioned(Partitioned::Start { id, request }) => {
                self.wait_for(*request, self.partitioned.get(id).copied().unwrap_or(TimePart::Own));
            }
            Action::Collective(call) => {
                if let Some(request) = call.request {
                    self.wait_for(request, TimePart::Collective);
                }
            }
            Action::Neighbourhood(Neighbourhood { request: Some(request), .. }) => {
                self.wait_for(*request, TimePart::Collective);
            }
            Action::Creation(Creation { request: Some(request), .. }) => {
                self.wait_for(*request, TimePart::Communicator);
            }
            Action::Other { detail: Detail::Transfer(Transfer { request: Some(request), .. }), .. } => {
                self.wait_for(*request, TimePart::Window);
            }
            Action::Other { detail: Detail::Io(Io { request: Some(request), .. }), .. } => {
                self.wait_for(*request, TimePart::File);
            }
            Action::Complete(completions) => {
                let waited = self.completed(*completions);
                self.clock.completed(event, waited);
                if part == TimePart::Message || self.parts.is_empty() {
                    part = waited;
                }
            }
            Action::Polls { .. } => self.clock.polled(event),
            Action::Preempted => {
                let took = self.clock.preempted(event);
                self.threads[thread].inside.add(TimePart::Preempted, took);
                return;
            }
            // Definitions take no time of the program's.
            Action::Communicator(_) | Action::Meeting(_) | Action::Datatype(_) | Action::Topology(_) => {
                return;
            }
            _ => {}
        }
        self.threads[thread].inside.add(part, event.end.since(event.start).unwrap_or(0));
    }

    /// The account, and the phases by name, with "" for time outside of all; `span`: when the recording began and ended.
    pub(super) fn finish(
        mut self,
        functions: &[Function],
        span: (Nanos, Nanos),
    ) -> (Account, BTreeMap<String, InPhase>) {
        let end = self.clock.finalised().unwrap_or(span.1);
        for thread in 0..self.threads.len() {
            self.change(thread, end, Vec::clear);
        }
        let account = self.clock.account(functions, span);
        if account.is_of_one_phase() {
            // Outside of it the table alone has the calls that make communicators.
            let (all, mut rest) = (account.by_part(), ByPart::default());
            for &part in TimePart::ALL.iter().filter(|&&part| part != TimePart::StartUp) {
                let phases = self.phases.iter().filter(|(name, _)| !name.is_empty());
                let inside = phases.map(|(_, phase)| phase.times.of(part)).fold(0, u64::saturating_add);
                rest.add(part, all.of(part).saturating_sub(inside));
            }
            self.phases.entry(String::new()).or_default().times = rest;
        }
        (account, self.phases)
    }

    fn wait_for(&mut self, request: RequestId, part: TimePart) {
        self.pending.insert(request, part);
    }

    /// What a call has waited for that completes these requests.
    fn completed(&mut self, completions: Completions<'_>) -> TimePart {
        let mut part = TimePart::Own;
        let mut one = |request| part = of_all(part, self.pending.remove(&request).unwrap_or(TimePart::Own));
        match completions {
            Completions::Run { first: RequestId { thread, number }, count } => {
                (number..number.saturating_add(count)).for_each(|number| one(RequestId { thread, number }));
            }
            Completions::List(list) => list.iter().for_each(|completion| one(completion.request)),
        }
        part
    }

    /// The phases of a thread change at `now`: the time since the last change belongs to the innermost one.
    fn change(&mut self, thread: usize, now: Nanos, change: impl FnOnce(&mut Vec<String>)) {
        let Thread { open, since, inside } = &mut self.threads[thread];
        let name = open.last().map_or("", String::as_str);
        let all = now.since(since.unwrap_or(self.initialised)).unwrap_or(0);
        let phase = self.phases.entry(name.to_owned()).or_default();
        phase.times.merge(inside);
        let rest = if self.parts.is_empty() { TimePart::Unknown } else { TimePart::Outside };
        phase.times.add(rest, all.saturating_sub(inside.running()));
        (*since, *inside) = (Some(now), ByPart::default());
        change(open);
    }
}
