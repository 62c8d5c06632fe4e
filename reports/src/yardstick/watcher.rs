//! Collects statistics from the events of a replay.

use super::bins::{self, Lane, MOST, Width, fold};
use super::operations::Operations;
use super::senders::Senders;
use super::under_way::UnderWay;
use crate::report::matrix;
use crate::stats::{Stats, Sums, Volume};
use replay::{Engine, Kind, Left, Link, Message, Next, Picos, Sink, Started, WaitSums};
use results::report::{
    CollectiveTimes, Efficiency, InFlight, OfKind, OverTime, RankStates, RankTime, Replayed, States,
};
use results::simulation::WaitsReport;
use results::{ByState, Exact};
use vef_format::raw::RawKind;
use vef_format::state::State;

/// Rows of the picture of ranks over time, at most.
const MOST_ROWS: u32 = 256;
/// Bins of time in that picture, at most.
const ROW_BINS: usize = 512;
const BINS_PER_ROW_BIN: usize = MOST / ROW_BINS;
/// Rows of the table of ranks, at most.
const MOST_RANKS: usize = 4096;
/// Messages between two reports of progress.
const OFTEN: u64 = 1 << 18;

/// Statistics of a rank.
#[derive(Clone, Debug, Default)]
struct Task {
    /// Start of its last record.
    last: Picos,
    /// Time in each state.
    times: ByState<u64>,
    /// Of its computing, that until `MPI_Init` returned.
    initialising: u64,
}

pub(super) struct Watcher<'a> {
    link: Link,
    progress: &'a mut dyn FnMut(u64),
    seen: u64,
    width: Width,
    /// Messages and bytes of each kind.
    kinds: Vec<Option<[Lane; 2]>>,
    totals: Vec<Volume>,
    states: ByState<Lane>,
    /// When `MPI_Init` returned, by rank, as captured; empty if unknown, or if the time before it is left out.
    initialised: Vec<Picos>,
    initialising: Lane,
    in_flight: Lane,
    under_way: UnderWay,
    ranks_per_row: u32,
    /// Bytes by row of ranks and bin of time.
    rows: Vec<u64>,
    /// Those that ran the program.
    tasks: Vec<Task>,
    /// Those of them that were recorded.
    recorded: &'a [u32],
    collectives: Sums,
    operations: Operations<'a>,
    senders: Senders,
    waits: WaitSums,
}

impl<'a> Watcher<'a> {
    pub(super) fn new(
        stats: &'a Stats,
        link: Link,
        from_launch: bool,
        waits: WaitSums,
        progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        let tasks = stats.header.tasks;
        let ranks_per_row = tasks.div_ceil(MOST_ROWS).max(1);
        let rows = tasks.div_ceil(ranks_per_row) as usize;
        let (spans, clock) = (stats.spans.iter().flatten().filter(|_| from_launch), stats.header.clock);
        Self {
            link,
            progress,
            seen: 0,
            width: Width::FIRST,
            kinds: (0..Kind::COUNT).map(|_| None).collect(),
            totals: vec![Volume::default(); Kind::COUNT],
            states: ByState::from_fn(|_| bins::lane()),
            initialised: spans.map(|span| Picos(span.initialised.0.saturating_mul(clock.0))).collect(),
            initialising: bins::lane(),
            in_flight: bins::lane(),
            under_way: UnderWay::new(),
            ranks_per_row,
            rows: vec![0; rows * ROW_BINS],
            tasks: vec![Task::default(); stats.program_tasks() as usize],
            recorded: &stats.recorded,
            collectives: Sums::new(tasks),
            operations: Operations::new(stats),
            senders: Senders::new(tasks),
            waits,
        }
    }

    /// Widens the bins until they hold a moment.
    #[inline(always)]
    fn reach(&mut self, at: Picos) {
        while !self.width.holds(at) {
            self.widen();
        }
    }

    #[cold]
    fn widen(&mut self) {
        self.width.double();
        let kinds = self.kinds.iter_mut().flatten().flatten();
        let lanes = kinds
            .chain(&mut self.states.0)
            .chain([&mut self.in_flight, &mut self.initialising])
            .map(|lane| &mut lane[..]);
        lanes.chain(self.rows.chunks_mut(ROW_BINS)).for_each(|lane| fold(lane, u64::saturating_add));
        self.under_way.fold();
    }

    fn message(&mut self, message: &Message, arrives: Option<Picos>) {
        let volume = Volume { messages: 1, bytes: message.bytes.0 };
        let arrives = arrives.unwrap_or(message.start);
        self.reach(arrives);
        let (width, bin) = (self.width, self.width.bin(message.start));
        let kind = message.kind.index();
        self.totals[kind].add(volume);
        let [messages, bytes] = self.kinds[kind].get_or_insert_with(|| [bins::lane(), bins::lane()]);
        messages[bin] += 1;
        bytes[bin] = bytes[bin].saturating_add(volume.bytes);
        let row = (message.src.0 / self.ranks_per_row) as usize;
        let cell = &mut self.rows[row * ROW_BINS + bin / BINS_PER_ROW_BIN];
        *cell = cell.saturating_add(volume.bytes);
        width.add_span(&mut self.in_flight, message.start, arrives);
        self.under_way.add(message.start, arrives);
        match message.kind {
            Kind::PointToPoint => self.senders.add(message.src, message.start, arrives),
            _ => self.collectives.add((message.src.0, message.dst.0), volume),
        }
        self.seen += 1;
        if self.seen.is_multiple_of(OFTEN) {
            (self.progress)(self.seen);
        }
    }

    /// Adds the time that a rank was in a state.
    fn was(&mut self, rank: usize, state: State, from: Picos, to: Picos) {
        if from < to {
            self.reach(to);
            self.width.add_span(&mut self.states[state], from, to);
            self.tasks[rank].times[state] += to.0 - from.0;
        }
    }

    pub(super) fn finish(mut self, engine: &Engine, runtime: Picos, ideal: Picos) -> Replayed {
        self.reach(runtime);
        let mut finished = bins::lane();
        let mut finish_times = Vec::with_capacity(self.tasks.len());
        for (rank, progress) in engine.progress(0).enumerate().take(self.tasks.len()) {
            let end = progress.finished.unwrap_or(runtime);
            // After its last record a rank can only be in a collective.
            let last = self.tasks[rank].last;
            self.was(rank, State::Collective, last, end);
            self.width.add_span(&mut finished, end, runtime);
            finish_times.push(runtime.0 - end.0);
        }
        let computing: Vec<u64> =
            self.recorded.iter().map(|&rank| self.tasks[rank as usize].times[State::Computing]).collect();
        let bins = (self.width.bin(runtime) + 1).min(MOST);
        let bin_ps = Exact::from(self.width.picos());
        let shown = |lane: &[u64]| lane[..bins].iter().map(|&value| Exact::from(value)).collect::<Vec<_>>();
        let used: Vec<(Kind, &[Lane; 2])> = Kind::all()
            .zip(&self.kinds)
            .filter_map(|(kind, lanes)| lanes.as_ref().map(|lanes| (kind, lanes)))
            .collect();
        let width = self.width.picos();
        let mean = |(bin, &time): (usize, &u64)| {
            let whole = (runtime.0 - bin as u64 * width).min(width);
            if whole == 0 { 0.0 } else { time as f64 / whole as f64 }
        };
        let most = self.under_way.finish(self.width);
        let mut waits = self.waits;
        waits.end();
        Replayed {
            latency_ps: self.link.latency().0.into(),
            bandwidth_bits_per_s: self.link.bits_per_second(),
            runtime_ps: runtime.0.into(),
            ideal_runtime_ps: ideal.0.into(),
            efficiency: efficiency(&computing, runtime, ideal),
            kinds: Kind::all()
                .zip(&self.totals)
                .filter(|(_, volume)| volume.messages > 0)
                .map(|(kind, &volume)| OfKind { kind: kind.to_string(), amount: volume.into() })
                .collect(),
            over_time: OverTime {
                bin_ps,
                kinds: used.iter().map(|(kind, _)| kind.to_string()).collect(),
                messages: used.iter().map(|(_, [messages, _])| shown(&messages[..])).collect(),
                bytes: used.iter().map(|(_, [_, bytes])| shown(&bytes[..])).collect(),
            },
            rank_time: RankTime {
                ranks_per_row: self.ranks_per_row,
                rows: (self.rows.len() / ROW_BINS) as u32,
                bin_ps: Exact(bin_ps.0 * BINS_PER_ROW_BIN as u128),
                bytes: self
                    .rows
                    .chunks(ROW_BINS)
                    .flat_map(|row| &row[..bins.div_ceil(BINS_PER_ROW_BIN)])
                    .map(|&bytes| bytes.into())
                    .collect(),
            },
            states: States {
                bin_ps,
                times: without_sends(|state| shown(&self.states[state][..])),
                initialising_ps: shown(&self.initialising[..]),
                finished_ps: shown(&finished[..]),
            },
            in_flight: InFlight {
                bin_ps,
                mean: self.in_flight[..bins].iter().enumerate().map(mean).collect(),
                max: shown(&most[..]),
                of_sender_max: self.senders.max(),
                of_sender: self.senders.classes(),
            },
            ranks: rank_states(&self.tasks, &finish_times),
            waits: WaitsReport::new(waits.places(), waits.pairs()),
            collectives: CollectiveTimes {
                matrix: matrix(&self.collectives),
                operations: self.operations.finish(runtime),
            },
        }
    }
}

/// The lists of all states but the waits for sends, which are complete at once.
fn without_sends(list: impl Fn(State) -> Vec<Exact>) -> ByState<Vec<Exact>> {
    ByState::from_fn(|state| if state == State::Send { Vec::new() } else { list(state) })
}

fn rank_states(tasks: &[Task], finished: &[u64]) -> RankStates {
    let per_row = tasks.len().div_ceil(MOST_RANKS).max(1);
    let sums = |of: &dyn Fn(&Task) -> u64| {
        let sum = |tasks: &[Task]| tasks.iter().map(|task| u128::from(of(task))).sum();
        tasks.chunks(per_row).map(|tasks| Exact(sum(tasks))).collect()
    };
    let sum = |times: &[u64]| times.iter().map(|&time| u128::from(time)).sum();
    RankStates {
        ranks_per_row: per_row as u32,
        times: without_sends(|state| sums(&|task| task.times[state])),
        initialising_ps: sums(&|task| task.initialising),
        finished_ps: finished.chunks(per_row).map(|times| Exact(sum(times))).collect(),
    }
}

impl Sink for Watcher<'_> {
    fn take(&mut self, next: Next) {
        match next {
            Next::Message(message) => {
                let arrives = self.link.time(message.bytes).and_then(|time| message.start.checked_add(time));
                self.message(&message, arrives);
            }
            Next::Inside { message, arrives } => self.message(&message, Some(arrives)),
            Next::Wake(_) => {}
        }
    }

    fn started(&mut self, started: &Started) {
        self.waits.started(started);
        let rank = started.task.index();
        if rank >= self.tasks.len() {
            return;
        }
        let last = std::mem::replace(&mut self.tasks[rank].last, started.at);
        self.was(rank, State::Computing, started.released, started.at);
        let initialised = self.initialised.get(rank).copied().unwrap_or_default().min(started.at);
        if started.released < initialised {
            self.width.add_span(&mut self.initialising, started.released, initialised);
            self.tasks[rank].initialising += initialised.0 - started.released.0;
        }
        // There are no waits for sends, which are complete at once.
        let Some(raw) = started.record else { return };
        if raw.kind() == RawKind::Collective {
            self.operations.entered(&raw, started.at);
        }
        self.was(rank, State::of_dependency(raw.tag), last, started.released);
    }

    fn left(&mut self, left: &Left) {
        self.waits.left(left);
        self.operations.left(left.id.0, left.at);
    }

    #[inline]
    fn reached(&mut self, now: Picos) {
        self.under_way.reached(now, self.width);
    }
}

/// Efficiency from the ranks' computing times and the run times; none where nothing takes any time.
fn efficiency(computing: &[u64], runtime: Picos, ideal: Picos) -> Option<Efficiency> {
    let most = computing.iter().copied().max()? as f64;
    let mean = computing.iter().map(|&time| time as f64).sum::<f64>() / computing.len() as f64;
    let (runtime, ideal) = (runtime.0 as f64, ideal.0 as f64);
    if most == 0.0 || runtime == 0.0 {
        return None;
    }
    let (load_balance, serialisation, transfer) = (mean / most, most / ideal, ideal / runtime);
    let communication = serialisation * transfer;
    Some(Efficiency {
        load_balance,
        serialisation,
        transfer,
        communication,
        parallel: load_balance * communication,
    })
}
