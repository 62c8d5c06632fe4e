//! Makes the account of a task's time (`docs/time.md`) from the call table of its capture and what its waits completed.

use crate::unrecorded::Unrecorded;
use crate::waiting::time_part;
use vef_format::account::{Account, ByPart, Entry, TimePart};
use vef_format::capture::Function;
use vef_format::capture::event::{
    Action, Collective, Creation, Detail, Event, Io, Neighbourhood, Partitioned, Send, Transfer,
};
use vef_format::units::{Nanos, Ticks};

/// What the events of a task add to its call table.
#[derive(Debug, Default)]
pub struct Clock {
    /// Duration of `MPI_Init`.
    start_up: u64,
    /// Return of `MPI_Init`.
    initialised: Option<Nanos>,
    /// Entry of `MPI_Finalize`.
    finalised: Option<Nanos>,
    /// Time without a core outside MPI, of all threads.
    preempted: u64,
    /// Of a capture of one phase.
    outside_phase: Option<Unrecorded>,
    /// Time outside this phase, and in calls that are recorded, of all threads.
    unrecorded: u64,
    recorded: u64,
    /// The highest thread that made a call.
    last_thread: u16,
    /// By slot of the call table: whether the function polls.
    polling: Vec<bool>,
    /// By slot of the call table: time and number of waits for something else than messages, runs of failed polls, and successful polls.
    waits: Vec<(ByPart, ByPart)>,
    /// Of a capture without a call table: time and number of the calls that it has, by part.
    unnamed: Option<Box<(ByPart, ByPart)>>,
}

/// The part of the time that a call without a name counts for; `None`: not a call that takes time, or a completion of requests.
pub fn part_of(action: &Action<'_>) -> Option<TimePart> {
    let unless_pending = |pending: bool, part| Some(if pending { TimePart::Own } else { part });
    match action {
        Action::Send(Send { request, .. }) => unless_pending(request.is_some(), TimePart::Send),
        Action::PostReceive(_) => Some(TimePart::Own),
        Action::Partitioned(Partitioned::Arrived { .. }) => Some(TimePart::Message),
        Action::Partitioned(_) => Some(TimePart::Own),
        Action::Receive(_) | Action::Exchange { .. } | Action::Probe { .. } => Some(TimePart::Message),
        Action::Collective(Collective { request, .. })
        | Action::Neighbourhood(Neighbourhood { request, .. }) => {
            unless_pending(request.is_some(), TimePart::Collective)
        }
        Action::Creation(Creation { request, .. }) => {
            unless_pending(request.is_some(), TimePart::Communicator)
        }
        Action::Polls { .. } => Some(TimePart::Polling),
        Action::Other { detail, .. } => match detail {
            Detail::None => Some(TimePart::Own),
            Detail::Transfer(Transfer { request, .. }) => unless_pending(request.is_some(), TimePart::Window),
            Detail::Window { .. } | Detail::WindowFree(_) | Detail::Sync { .. } => Some(TimePart::Window),
            Detail::Io(Io { request, .. }) => unless_pending(request.is_some(), TimePart::File),
            Detail::FileOpen { .. }
            | Detail::FileOpenAt { .. }
            | Detail::FileView { .. }
            | Detail::FileViewTiled { .. }
            | Detail::FileSeek { .. }
            | Detail::FileClose(_) => Some(TimePart::File),
        },
        Action::Init
        | Action::Finalize
        | Action::Complete(_)
        | Action::Preempted
        | Action::Communicator(_)
        | Action::Meeting(_)
        | Action::CommunicatorFree(_)
        | Action::Datatype(_)
        | Action::Topology(_)
        | Action::Forget(_)
        | Action::Phase { .. }
        | Action::Abort { .. }
        | Action::Stopped { .. } => None,
    }
}

/// The part of the time that a wait counts for that completes requests of two parts: a message comes first, and a send last.
#[inline(always)]
pub fn of_all(one: TimePart, other: TimePart) -> TimePart {
    match (one, other) {
        (TimePart::Message, _) | (_, TimePart::Own) => one,
        (_, TimePart::Message) | (TimePart::Own, _) => other,
        (TimePart::Send, _) => other,
        _ => one,
    }
}

impl Clock {
    /// Of a task with these functions in its call table, whose calls are recorded in this phase only, if there is one.
    pub fn new(functions: &[Function], only_phase: Option<&str>) -> Self {
        let polls = |function: &Function| time_part(&function.name) == TimePart::Polling;
        let unnamed = functions.is_empty().then(Box::default);
        let outside_phase = only_phase.map(Unrecorded::outside);
        Self { polling: functions.iter().map(polls).collect(), unnamed, outside_phase, ..Self::default() }
    }

    /// Each event comes here first. Returns how much of the thread's time since its previous event was outside the phase in which calls are
    /// recorded, in nanoseconds.
    #[inline(always)]
    pub fn event(&mut self, event: &Event<'_>) -> u64 {
        self.last_thread = self.last_thread.max(event.thread);
        if self.unnamed.is_some()
            && let Some(part) = part_of(&event.action)
        {
            self.add_unnamed(event, part);
        }
        if self.outside_phase.is_some() { self.pass_unrecorded(event) } else { 0 }
    }

    #[cold]
    fn pass_unrecorded(&mut self, event: &Event<'_>) -> u64 {
        let took = self.outside_phase.as_mut().map_or(0, |phase| phase.before(event.thread, event));
        self.unrecorded = self.unrecorded.saturating_add(took);
        let is_call = part_of(&event.action).is_some()
            || matches!(
                event.action,
                Action::Complete(_) | Action::CommunicatorFree(_) | Action::Forget(_) | Action::Abort { .. }
            );
        if is_call {
            self.recorded = self.recorded.saturating_add(event.end.0.saturating_sub(event.start.0));
        }
        took
    }

    #[cold]
    fn add_unnamed(&mut self, event: &Event<'_>, part: TimePart) {
        if let Some((times, calls)) = self.unnamed.as_deref_mut() {
            times.add(part, event.end.0.saturating_sub(event.start.0));
            calls.add(part, 1);
        }
    }

    /// `event` is the call of `MPI_Init`.
    pub fn begin(&mut self, event: &Event<'_>) {
        if self.initialised.is_none() {
            self.initialised = Some(event.end);
            self.start_up = event.end.since(event.start).unwrap_or(0);
            if let Some(phase) = &mut self.outside_phase {
                phase.begin(event.end);
            }
        }
    }

    /// `event` is the call of `MPI_Finalize`.
    pub fn end(&mut self, event: &Event<'_>) {
        self.finalised = Some(event.start);
    }

    /// Entry of `MPI_Finalize`.
    pub fn finalised(&self) -> Option<Nanos> {
        self.finalised
    }

    /// The call `event` completed requests, and so waited for `part`.
    #[inline(always)]
    pub fn completed(&mut self, event: &Event<'_>, part: TimePart) {
        if self.unnamed.is_some() {
            self.add_unnamed(event, part);
        }
        if part != TimePart::Message || self.polls(event) {
            self.add(event, part);
        }
    }

    /// The event is a run of failed polls: what is between them is mostly the recorder's own work.
    #[cold]
    pub fn polled(&mut self, event: &Event<'_>) {
        self.add(event, TimePart::Polling);
    }

    /// The event says how long its thread had no core. Returns how much of that is in nothing else, in nanoseconds.
    #[cold]
    pub fn preempted(&mut self, event: &Event<'_>) -> u64 {
        if !self.is_recorded() {
            return 0;
        }
        let time = event.end.0.saturating_sub(event.start.0);
        self.preempted = self.preempted.saturating_add(time);
        time
    }

    /// Whether calls are recorded now: not outside the phase of a capture of one phase.
    pub fn is_recorded(&self) -> bool {
        self.outside_phase.as_ref().is_none_or(Unrecorded::is_inside)
    }

    fn polls(&self, event: &Event<'_>) -> bool {
        event.call.index().is_some_and(|slot| self.polling.get(slot) == Some(&true))
    }

    #[cold]
    fn add(&mut self, event: &Event<'_>, part: TimePart) {
        let Some(slot) = event.call.index() else { return };
        let part = if self.polls(event) { TimePart::Polling } else { part };
        if slot >= self.waits.len() {
            self.waits.resize(slot + 1, Default::default());
        }
        let (times, calls) = &mut self.waits[slot];
        times.add(part, event.end.0.saturating_sub(event.start.0));
        calls.add(part, 1);
    }

    /// The account of a task with these functions in its call table, whose recording lasted from `begin` to `end`. Without a call
    /// table it has the calls of the capture, without names, and what they leave of the run is unknown.
    ///
    /// Time outside MPI is what the calls leave of the run, so the parts of a task sum to it exactly.
    pub fn account(&self, functions: &[Function], (begin, end): (Nanos, Nanos)) -> Account {
        let mut entries = Vec::new();
        if self.initialised.is_some() {
            let start_up = functions.iter().find(|function| function.name.starts_with("MPI_Init"));
            let name = start_up.map_or("MPI_Init", |function| &function.name);
            let took = Ticks(self.start_up);
            entries.push(Entry { function: name.to_owned(), part: TimePart::StartUp, calls: 1, took });
        }
        match self.unnamed.as_deref() {
            Some((times, calls)) => {
                let used = TimePart::ALL.iter().filter(|&&part| calls.of(part) > 0);
                entries.extend(used.map(|&part| Entry {
                    function: String::new(),
                    part,
                    calls: calls.of(part),
                    took: Ticks(times.of(part)),
                }));
            }
            None => self.named(functions, &mut entries),
        }
        let inside = Account(entries.clone()).by_part().inside();
        let begin = self.initialised.unwrap_or(begin);
        let run = self.finalised.unwrap_or(end).since(begin).unwrap_or(0);
        let all = run.saturating_mul(u64::from(self.last_thread) + 1);
        let rest = all.saturating_sub(inside);
        let preempted = self.preempted.min(rest);
        // The table has calls, too, that are outside the phase and not recorded: those that make communicators.
        let unknown = match self.outside_phase {
            None => 0,
            Some(_) => {
                let in_phase = all.saturating_sub(self.unrecorded).saturating_sub(self.recorded);
                rest.saturating_sub(in_phase).min(rest - preempted)
            }
        };
        let part = match self.unnamed {
            Some(_) => TimePart::Unknown,
            // It never left `MPI_Init`.
            None if self.initialised.is_none() && functions.iter().all(|function| function.calls == 0) => {
                TimePart::StartUp
            }
            None => TimePart::Outside,
        };
        let mut outside =
            |part, took| entries.push(Entry { function: String::new(), part, calls: 0, took: Ticks(took) });
        outside(part, rest - preempted - unknown);
        if preempted > 0 {
            outside(TimePart::Preempted, preempted);
        }
        if unknown > 0 {
            outside(TimePart::Unknown, unknown);
        }
        Account(entries)
    }

    /// The entries of the functions in the call table.
    fn named(&self, functions: &[Function], entries: &mut Vec<Entry>) {
        // A run of failed polls has the name of its first one, and the others' time, too: what it has beside all of them is between them.
        let of_runs = |slot: usize| self.waits.get(slot).map_or(0, |(times, _)| times.polling);
        let polls = functions
            .iter()
            .enumerate()
            .filter(|(_, function)| time_part(&function.name) == TimePart::Polling);
        let (runs, calls) = polls.fold((0, 0), |(runs, calls): (u64, u64), (slot, function)| {
            (runs.saturating_add(of_runs(slot)), calls.saturating_add(function.time.0))
        });
        let mut between = runs.saturating_sub(calls);
        for (slot, Function { name, calls, time, .. }) in functions.iter().enumerate() {
            let part = time_part(name);
            if part == TimePart::StartUp {
                continue;
            }
            let of = |part, calls, took| Entry { function: name.clone(), part, calls, took: Ticks(took) };
            let first = entries.len();
            entries.push(of(part, *calls, time.0));
            let (times, calls) = self.waits.get(slot).copied().unwrap_or_default();
            if part == TimePart::Polling {
                let gaps = times.polling.saturating_sub(time.0).min(between);
                entries[first].took.0 = time.0.saturating_add(gaps);
                between -= gaps;
            }
            if part == TimePart::Message {
                for &part in TimePart::ALL {
                    // Durations of single calls are rounded, their sum in the table is not.
                    let took = times.of(part).min(entries[first].took.0);
                    let calls = calls.of(part).min(entries[first].calls);
                    if calls > 0 {
                        entries[first].took.0 -= took;
                        entries[first].calls -= calls;
                        entries.push(of(part, calls, took));
                    }
                }
                // Of waits that all were for something else, rounding may leave some time.
                if entries.len() > first + 1 && entries[first].calls == 0 {
                    let rest = entries.remove(first);
                    entries[first].took.0 = entries[first].took.0.saturating_add(rest.took.0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::capture::event::CallSlot;

    /// Calls within calls, and tables with any numbers: no part is negative.
    #[test]
    fn calls_longer_than_the_run_leave_nothing_outside() {
        let function =
            |name: &str, time| Function { name: name.into(), calls: 1, errors: 0, time: Nanos(time) };
        for (times, outside) in [([40, 50], 10), ([40, 61], 0), ([u64::MAX, u64::MAX], 0)] {
            let functions = [function("MPI_Recv", times[0]), function("MPI_Never_heard_of", times[1])];
            let account = Clock::new(&functions, None).account(&functions, (Nanos(5), Nanos(105)));
            assert_eq!(account.by_part().outside, outside);
            assert_eq!(account.by_part().own, times[1]);
        }
        // All waits are for sends, by 7 ns less than the table has.
        let functions = [function("MPI_Wait", 30)];
        let mut clock = Clock::new(&functions, None);
        let (start, end, call) = (Nanos(5), Nanos(28), CallSlot(0));
        clock.completed(&Event { start, end, thread: 0, call, action: Action::Init }, TimePart::Send);
        let account = clock.account(&functions, (Nanos(5), Nanos(105)));
        let waits: Vec<_> = account.0.iter().filter(|entry| entry.function == "MPI_Wait").collect();
        assert_eq!(
            waits.iter().map(|wait| (wait.part, wait.calls, wait.took.0)).collect::<Vec<_>>(),
            [(TimePart::Send, 1, 30)]
        );
        // Two functions that poll in turn, in runs that have the name of the first one.
        let functions = [function("MPI_Iprobe", 30), function("MPI_Test", 50)];
        for (run, polling) in [(90, 90), (70, 80)] {
            let mut clock = Clock::new(&functions, None);
            let (start, end, call) = (Nanos(5), Nanos(5 + run), CallSlot(0));
            clock.polled(&Event { start, end, thread: 0, call, action: Action::Polls { count: 4 } });
            let account = clock.account(&functions, (Nanos(5), Nanos(105)));
            assert_eq!((account.by_part().polling, account.by_part().outside), (polling, 100 - polling));
        }
        // A task whose recording ended in `MPI_Init`; one of a program with sessions has calls.
        let called = |calls| [Function { calls, ..function("MPI_Recv", 0) }];
        let by_part = |calls| {
            Clock::new(&called(calls), None).account(&called(calls), (Nanos(5), Nanos(105))).by_part()
        };
        assert_eq!((by_part(0).outside, by_part(0).start_up), (0, 100));
        assert_eq!((by_part(1).outside, by_part(1).start_up), (100, 0));
        // A clock that went backwards.
        let functions = [function("MPI_Recv", 3)];
        let account = Clock::new(&functions, None).account(&functions, (Nanos(9), Nanos(5)));
        assert_eq!((account.by_part().outside, account.by_part().running()), (0, 3));
    }
}
