//! What the ranks of a running program do: rates since the previous look at their captures, which grow (`vef run --live`).

mod view;

pub use view::{lines, summary};

use mpi_abi::waiting::time_part;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vef_format::account::TimePart;
use vef_format::capture::event::{Action, Event, Partitioned};
use vef_format::capture::{CaptureError, Followed, Follower, world_size};
use vef_format::ids::Rank;
use vef_format::units::{Bytes, Nanos};

/// Bytes of records that a look reads at most, of all ranks together: about two million calls. At a higher rate the view is late,
/// but takes no more of the processors that the program needs.
const MOST: usize = 16 << 20;

/// A running program, as its captures show it.
#[derive(Debug)]
pub struct Live {
    directory: PathBuf,
    ranks: Vec<RankState>,
    looked: Option<Instant>,
}

#[derive(Debug)]
struct RankState {
    follower: Follower,
    activity: Activity,
    phases: Vec<String>,
    /// By slot of the call table: the function's name, and whether its calls wait.
    functions: Vec<(String, bool)>,
    /// End of the latest record, on the clock of its host.
    until: Option<Nanos>,
    /// When records of the rank were last seen.
    seen: Instant,
    sums: Sums,
}

/// What a rank does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// The rank.
    pub rank: Rank,
    /// Its state.
    pub state: RankActivity,
    /// Messages that it sends in a second.
    pub messages: f64,
    /// Bytes that it sends in a second: of its messages, and of its part of collectives.
    pub bytes: f64,
    /// Shares of its time in MPI, and waiting there; `None`: no call returned since the previous look.
    pub shares: Option<Shares>,
    /// The innermost phase of the program.
    pub phase: Option<String>,
    /// The function of its latest record.
    pub last_call: Option<String>,
    /// Time since records were last seen.
    pub quiet: Duration,
}

/// Whether a rank is running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RankActivity {
    /// It has not returned from `MPI_Init`, or is not recorded.
    #[default]
    NotYet,
    /// It runs; all its records were read.
    Running,
    /// It runs; more has been recorded than is read in a look, so the values are of an earlier time.
    Behind,
    /// It has called `MPI_Finalize`, or its recording has stopped.
    Over,
    /// Its file cannot be read.
    Unreadable,
}

/// Parts of a rank's time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// In MPI.
    pub mpi: f64,
    /// In calls of MPI that wait for other ranks, or ask whether they have done something (`docs/time.md`).
    pub waiting: f64,
}

/// Of the records of one look.
#[derive(Debug, Default)]
struct Sums {
    messages: u64,
    bytes: u64,
    mpi: u64,
    waiting: u64,
    events: u64,
    first: Option<Nanos>,
    last: Nanos,
    threads: u64,
}

impl Live {
    /// Of the capture that a program writes into `directory`.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ranks: Vec::new(), looked: None }
    }

    /// Looks at what has been recorded since the previous look; returns what each rank does, in the order of ranks. Empty before the
    /// first rank is there.
    pub fn look(&mut self) -> Vec<Activity> {
        let now = Instant::now();
        if self.ranks.is_empty() {
            let tasks = world_size(&self.directory).unwrap_or(0);
            self.ranks = (0..tasks).map(|rank| RankState::new(&self.directory, Rank(rank), now)).collect();
        }
        let since = self.looked.map(|looked| now - looked);
        self.looked = Some(now);
        let most = MOST / self.ranks.len().max(1);
        self.ranks.iter_mut().map(|rank| rank.look(most, now, since)).collect()
    }
}

impl RankState {
    fn new(directory: &Path, rank: Rank, now: Instant) -> Self {
        let activity = Activity { rank, ..Activity::default() };
        let (follower, sums) = (Follower::new(directory, rank), Sums::default());
        Self { follower, activity, phases: Vec::new(), functions: Vec::new(), until: None, seen: now, sums }
    }

    /// `since`: time since the previous look.
    fn look(&mut self, most: usize, now: Instant, since: Option<Duration>) -> Activity {
        let Self { follower, activity, phases, functions, sums, .. } = self;
        if !matches!(activity.state, RankActivity::Over | RankActivity::Unreadable) {
            *sums = Sums::default();
            let mut last_call = None;
            let looked = follower.look(most, |event, table| {
                let known = functions.len();
                functions.extend(
                    table
                        .get(known..)
                        .unwrap_or_default()
                        .iter()
                        .map(|function| (function.name.clone(), waits(&function.name))),
                );
                let slot = event.call.index().filter(|&slot| slot < functions.len());
                last_call = slot.or(last_call);
                sums.add(event, slot.map(|slot| functions[slot].1));
                match event.action {
                    Action::Phase { begin: true, name } => phases.push(name.to_owned()),
                    Action::Phase { begin: false, name } => {
                        if let Some(at) = phases.iter().rposition(|phase| phase == name) {
                            phases.remove(at);
                        }
                    }
                    _ => {}
                }
            });
            if let Some(slot) = last_call {
                activity.last_call = Some(functions[slot].0.clone());
            }
            self.take(looked, now, since);
        }
        self.activity.clone()
    }

    fn take(&mut self, looked: Result<Followed, CaptureError>, now: Instant, since: Option<Duration>) {
        let Self { activity, phases, until, seen, sums, .. } = self;
        activity.state = match looked {
            Ok(Followed::NotYet) => RankActivity::NotYet,
            Ok(Followed::Until(_)) => RankActivity::Running,
            Ok(Followed::Behind) => RankActivity::Behind,
            Ok(Followed::Over) => RankActivity::Over,
            Err(_) => RankActivity::Unreadable,
        };
        if sums.events > 0 {
            *seen = now;
        }
        activity.quiet = now - *seen;
        activity.phase = phases.last().cloned();
        // From the end of the latest record that the previous look found, to that of this one.
        let covered = match (until.or(sums.first), sums.events) {
            (Some(from), 1..) => sums.last.0.saturating_sub(from.0),
            _ => 0,
        };
        *until = (*until).max((sums.events > 0).then_some(sums.last));
        let covered = covered as f64;
        activity.shares = (covered > 0.0).then(|| {
            let whole = covered * sums.threads.max(1) as f64;
            let share = |part: u64| (part as f64 / whole).min(1.0);
            Shares { mpi: share(sums.mpi), waiting: share(sums.waiting) }
        });
        // What a rank did in a part of the time between looks, it did in all of that time: it is quiet in the rest.
        let between = since.filter(|_| activity.state == RankActivity::Running);
        let seconds = covered.max(between.map_or(0.0, |since| since.as_nanos() as f64)) / 1e9;
        let rate = |sum: u64| if seconds > 0.0 { sum as f64 / seconds } else { 0.0 };
        (activity.messages, activity.bytes) = (rate(sums.messages), rate(sums.bytes));
    }
}

impl Sums {
    /// `waits`: whether calls of the event's function do, if it has one.
    fn add(&mut self, event: &Event<'_>, waits: Option<bool>) {
        self.events += 1;
        self.first.get_or_insert(event.start);
        self.last = self.last.max(event.end);
        self.threads = self.threads.max(u64::from(event.thread) + 1);
        let (messages, bytes) = sent(&event.action);
        self.messages += messages;
        self.bytes = self.bytes.saturating_add(bytes.0);
        let duration = event.end.0.saturating_sub(event.start.0);
        self.mpi += if waits.is_some() { duration } else { 0 };
        self.waiting += if waits == Some(true) { duration } else { 0 };
    }
}

/// Whether calls of the function wait for other ranks or for the file system, or ask whether they still must.
fn waits(function: &str) -> bool {
    match time_part(function) {
        TimePart::Own | TimePart::StartUp | TimePart::Outside | TimePart::Unknown | TimePart::Preempted => {
            false
        }
        TimePart::Message
        | TimePart::Send
        | TimePart::Collective
        | TimePart::Communicator
        | TimePart::Window
        | TimePart::File
        | TimePart::Polling => true,
    }
}

/// The messages that a call sends, and the bytes that it sends.
fn sent(action: &Action<'_>) -> (u64, Bytes) {
    match action {
        Action::Send(send) | Action::Exchange { send, .. } => (1, send.bytes),
        Action::Collective(part) => (0, part.amounts.send),
        Action::Neighbourhood(part) => {
            let of_list = Bytes(part.send_counts.iter().fold(0, |sum, &bytes| sum.saturating_add(bytes)));
            (0, if part.send_counts.is_empty() { part.block.send } else { of_list })
        }
        Action::Partitioned(Partitioned::Ready { count, bytes, .. }) => {
            ((*count).into(), Bytes(bytes.0.saturating_mul((*count).into())))
        }
        Action::Partitioned(_)
        | Action::Init
        | Action::Finalize
        | Action::Abort { .. }
        | Action::Communicator(_)
        | Action::Meeting(_)
        | Action::Datatype(_)
        | Action::Creation(_)
        | Action::CommunicatorFree(_)
        | Action::Receive(_)
        | Action::PostReceive(_)
        | Action::Complete(_)
        | Action::Forget(_)
        | Action::Probe { .. }
        | Action::Polls { .. }
        | Action::Preempted
        | Action::Topology(_)
        | Action::Phase { .. }
        | Action::Stopped { .. }
        | Action::Other { .. } => (0, Bytes(0)),
    }
}
