//! What was captured of a job's time: the run between `MPI_Init` and `MPI_Finalize`, and where it went.

use collectives::creations::Library;
use results::ByState;
use results::simulation::{Finish, JobSpan};
use vef_format::account::{Account, Entry, TimePart};
use vef_format::container::Span;
use vef_format::ids::Rank;
use vef_format::state::State;
use vef_format::units::{Picos, Ticks};

use crate::settings::Workload;

/// The captured span of a job.
pub(crate) struct Spans {
    /// The latest end of `MPI_Init`, as captured.
    initialisation: Picos,
    /// Simulated time of the latest end of `MPI_Init`.
    simulated: Picos,
    from_init: bool,
    /// The longest span of a task, as captured.
    captured: Option<Picos>,
    /// Where the time of all tasks went, and MPI's own work that a replay has in no state, in picoseconds.
    times: Option<(ByState<u64>, u64)>,
}

impl Spans {
    /// The job began so much later.
    pub(crate) fn delay(&mut self, by: Picos) {
        self.simulated = self.simulated.saturating_add(by);
    }

    /// From a trace with ticks of length `clock`, and the `accounts` of its tasks.
    /// `factors` are those of computing times, as for [`replay::Job::time_factors`].
    pub(crate) fn new(
        spans: &[Span],
        accounts: &[(Rank, Account, Ticks)],
        clock: Picos,
        workload: &Workload,
        factors: &[f64],
        kept: Kept,
    ) -> Self {
        let picos = |ticks: u64| Picos(ticks.saturating_mul(clock.0));
        let latest = spans.iter().map(|span| span.initialised.0).max().unwrap_or_default();
        let initialisation = picos(latest);
        // Tasks start to count at different times if they were launched one after the other: each has its own span.
        let span = |span: &Span| Some(span.finalised?.0.saturating_sub(span.initialised.0));
        // Tasks that were not recorded have no account.
        let is_recorded = |task: u32| {
            accounts.is_empty() || accounts.binary_search_by_key(&task, |(rank, ..)| rank.0).is_ok()
        };
        let recorded = (0..).zip(spans).filter(|&(task, _)| is_recorded(task));
        let longest: Option<Vec<u64>> = recorded.map(|(_, of_task)| span(of_task)).collect();
        let scaled = |(rank, span): (usize, &Span)| {
            let initialised = picos(span.initialised.0);
            match factors.get(rank).or(factors.last()) {
                None | Some(1.0) => initialised,
                Some(factor) => Picos((initialised.0 as f64 * factor).round() as u64),
            }
        };
        let before = match workload.from_launch {
            true => spans.iter().enumerate().map(scaled).max().unwrap_or_default(),
            false => Picos::ZERO,
        };
        Self {
            initialisation,
            simulated: workload.start.saturating_add(before),
            from_init: !workload.from_launch,
            captured: longest.and_then(|spans| spans.into_iter().max()).map(picos),
            times: (!accounts.is_empty()).then(|| {
                let (mut all, mut all_own) = (ByState::<u64>::default(), 0u64);
                for (rank, account, computing) in accounts {
                    let Some(span) = spans.get(rank.index()) else { continue };
                    let (states, own) = captured(span, account, *computing, workload.from_launch, kept);
                    all = ByState::from_fn(|state| all[state].saturating_add(picos(states[state]).0));
                    all_own = all_own.saturating_add(picos(own).0);
                }
                (all, all_own)
            }),
        }
    }

    /// Where the time of all tasks went, by the state in which a replay has it, and MPI's own work that it has in none.
    pub(crate) fn times(&self) -> Option<(ByState<u64>, u64)> {
        self.times
    }

    /// The captured and the simulated span.
    pub(crate) fn report(&self, finish: &Finish) -> JobSpan {
        JobSpan {
            initialisation_ps: self.initialisation.0,
            from_init: self.from_init,
            captured_ps: self.captured.map(|captured| captured.0),
            simulated_ps: finish.max_ps.saturating_sub(self.simulated.0),
        }
    }
}

/// What computing times contain beside computing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    pub(crate) send_waits: SendWaits,
    /// Whether they have times outside MPI without a core.
    pub(crate) preempted: bool,
}

/// Where a trace and its replay have what tasks waited for their own non-blocking sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendWaits {
    /// In no computing time.
    Apart,
    /// In computing times, from which the replay takes them.
    WithinComputing,
    /// In computing times, for good.
    Computing,
}

/// The captured times of a task, in ticks: what the trace has as computing, and the rest of the run by what the calls waited for; and MPI's own
/// work in calls that have records, which neither computes nor waits.
fn captured(
    span: &Span,
    account: &Account,
    computing: Ticks,
    from_launch: bool,
    kept: Kept,
) -> (ByState<u64>, u64) {
    let (times, start_up) = (account.by_part(), span.initialised.0);
    let (before, computing) = match (from_launch, span.in_records) {
        (true, false) => (start_up, computing.0.saturating_add(start_up)),
        (true, true) => (start_up, computing.0),
        (false, true) => (0, computing.0.saturating_sub(start_up)),
        (false, false) => (0, computing.0),
    };
    let sum = |of: fn(&Entry) -> bool| {
        let entries = account.0.iter().filter(|entry| of(entry));
        entries.fold(0u64, |sum, entry| sum.saturating_add(entry.took.0))
    };
    let waits = sum(|entry| entry.part == TimePart::Send && waits(entry));
    let (computing, waits) = match kept.send_waits {
        SendWaits::Apart => (computing, waits),
        SendWaits::WithinComputing => (computing.saturating_sub(waits), waits),
        SendWaits::Computing => (computing, 0),
    };
    let mut states = ByState::default();
    // A replay has a core for each task.
    let mut left = times.running().saturating_sub(times.preempted).saturating_add(before);
    let mut outside = times.outside.saturating_add(before);
    if kept.preempted {
        left = left.saturating_add(times.preempted);
        outside = outside.saturating_add(times.preempted);
    }
    let mut take = |time: u64| {
        let taken = time.min(left);
        left -= taken;
        taken
    };
    // Of several threads the trace has less than their sum.
    states[State::Computing] = take(computing.max(outside));
    states[State::Collective] = take(sum(is_collective));
    states[State::Send] = take(sum(sends).saturating_add(waits));
    // The rest of it is computing, but for what the trace leaves out.
    let counted = states[State::Computing].saturating_sub(outside);
    let own = take(sum(has_record).max(times.own.saturating_sub(counted)));
    states[State::Reception] = take(u64::MAX);
    (states, own)
}

fn waits(entry: &Entry) -> bool {
    entry.function.starts_with("MPI_Wait")
}

/// Whether calls send, and may wait for the receiver.
fn sends(entry: &Entry) -> bool {
    entry.part == TimePart::Send && !waits(entry)
}

/// Whether calls of MPI's own work surely have records: they begin a send or a collective. The time of others, such as `MPI_Irecv`, is computing;
/// `MPI_Start` may be of either kind.
fn has_record(entry: &Entry) -> bool {
    let name = entry.function.trim_end_matches("_c");
    let begins = |of: &str| name.starts_with(of);
    let receives = matches!(name, "MPI_Irecv" | "MPI_Imrecv");
    let is_non_blocking = begins("MPI_I") && !begins("MPI_Info_") && !receives || begins("MPI_Comm_idup");
    let is_send = name == "MPI_Bsend" || begins("MPI_Pready");
    entry.part == TimePart::Own && (is_non_blocking || is_send)
}

/// Whether all members of a communicator, window or file wait for each other.
fn is_collective(entry: &Entry) -> bool {
    const WINDOWS: [&str; 5] =
        ["MPI_Win_create", "MPI_Win_allocate", "MPI_Win_free", "MPI_Win_fence", "MPI_Win_set_info"];
    let agrees = |library: Library| !library.agreement(&entry.function).is_empty();
    match entry.part {
        // It has no record, and so is computing.
        TimePart::Communicator => entry.function != "MPI_Comm_free",
        TimePart::Collective => true,
        TimePart::Window => WINDOWS.iter().any(|name| entry.function.starts_with(name)),
        TimePart::File => agrees(Library::Mpich) || agrees(Library::OpenMpi),
        _ => false,
    }
}

#[cfg(test)]
impl Kept {
    const NOTHING: Self = Self { send_waits: SendWaits::Apart, preempted: false };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_work_of_non_blocking_collectives_is_no_waiting_for_messages() {
        let entry = |function: &str, part, took| Entry {
            function: function.into(),
            part,
            calls: 1,
            took: Ticks(took),
        };
        let account = Account(vec![
            entry("", TimePart::Outside, 1000),
            entry("MPI_Iallreduce", TimePart::Own, 200),
            entry("MPI_Isend", TimePart::Own, 30),
            entry("MPI_Irecv", TimePart::Own, 7),
            entry("MPI_Send", TimePart::Send, 50),
            entry("MPI_Wait", TimePart::Send, 400),
            entry("MPI_Wait", TimePart::Message, 10_000),
        ]);
        let span = Span { initialised: Ticks(0), in_records: false, finalised: None };
        let of = |account: &Account, computing| {
            let (states, own) = captured(&span, account, Ticks(computing), false, Kept::NOTHING);
            let of = [State::Computing, State::Send, State::Reception, State::Collective];
            (of.map(|state| states[state]), own)
        };
        assert_eq!(of(&account, 1007), ([1007, 450, 10_000, 0], 230));
        // Time without a core is no time of the run, unless it is computing.
        let preempted = Account([account.0.clone(), vec![entry("", TimePart::Preempted, 300)]].concat());
        assert_eq!(of(&preempted, 1007), of(&account, 1007));
        let (states, own) =
            captured(&span, &preempted, Ticks(1307), false, Kept { preempted: true, ..Kept::NOTHING });
        assert_eq!((states[State::Computing], states[State::Reception], own), (1307, 10_000, 230));
        // All members agree on where they access a file.
        let file =
            |function| Account([account.0.clone(), vec![entry(function, TimePart::File, 900)]].concat());
        assert_eq!(of(&file("MPI_File_write_at_all_c"), 1007), ([1007, 450, 10_000, 900], 230));
        assert_eq!(of(&file("MPI_File_write_at"), 1907), ([1907, 450, 10_000, 0], 230));
        // Those that start receives are computing, those that start sends and what is one-sided are not.
        let more = [entry("MPI_Startall", TimePart::Own, 500), entry("MPI_Put", TimePart::Own, 60)];
        let all = Account(account.0.iter().cloned().chain(more).collect());
        assert_eq!(of(&all, 1007 + 300), ([1307, 450, 10_000, 0], 230 + 200 + 60));
    }

    #[test]
    fn ranks_without_an_account_were_not_recorded() {
        let span = |finalised| Span { initialised: Ticks(1), in_records: false, finalised };
        let spans = [span(None), span(Some(Ticks(11)))];
        let entry = Entry { function: String::new(), part: TimePart::Outside, calls: 0, took: Ticks(10) };
        let accounts = [(Rank(1), Account(vec![entry]), Ticks(10))];
        let of = Spans::new(&spans, &accounts, Picos(1000), &Workload::new("t.vefx"), &[], Kept::NOTHING);
        assert_eq!(of.report(&Finish::of(vec![0, 10_000], |_| true)).captured_ps, Some(10_000));
        assert_eq!(of.times().map(|(states, _)| states[State::Computing]), Some(10_000));
    }

    #[test]
    fn a_job_ends_with_its_last_task() {
        let span =
            |initialised, finalised| Span { initialised: Ticks(initialised), in_records: true, finalised };
        let spans = [span(100, Some(Ticks(900))), span(150, Some(Ticks(800)))];
        let mut workload = Workload { from_launch: true, ..Workload::new("t.vefx") };
        let report = |workload: &Workload, spans: &[Span], finish| {
            Spans::new(spans, &[], Picos(1000), workload, &[], Kept::NOTHING)
                .report(&Finish::of(finish, |_| true))
        };
        let finish = || vec![900_000, 750_000];
        let whole = report(&workload, &spans, finish());
        assert_eq!((whole.initialisation_ps, whole.captured_ps), (150_000, Some(800_000)));
        assert_eq!(whole.simulated_ps, 750_000);
        let killed = report(&workload, &[spans[0], span(150, None)], finish());
        assert_eq!(killed.captured_ps, None);
        workload.from_launch = false;
        let from_init = report(&workload, &spans, finish());
        assert_eq!((from_init.captured_ps, from_init.simulated_ps), (Some(800_000), 900_000));
        workload.from_launch = true;
        // The first rank then initialises for 200 µs, the second one for 75 µs.
        let scaled = Spans::new(&spans, &[], Picos(1000), &workload, &[2.0, 0.5], Kept::NOTHING)
            .report(&Finish::of(finish(), |_| true));
        assert_eq!(scaled.simulated_ps, 700_000);
    }
}
