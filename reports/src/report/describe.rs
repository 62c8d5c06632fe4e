//! From sums over a trace to the data of a report.

use super::model::Report;
use super::spent::spent;
use super::who;
use crate::stats::{CollectiveTally, SizeCounts, Stats, Volume};
use results::Exact;
use results::captured::{computing_times, too_few_cores, unrecorded};
use results::classes::{ends, power};
use results::report::Report as Data;
use results::report::{
    After, Call, Captured, Collectives, CommonSize, Communicator, Distance, Head, Host, Locality, OfRank,
    Operation, Phase, Ranks, ReportSchema, SizeClass, Sizes, Spread, Totals,
};
use std::collections::BTreeMap;
use std::path::Path;
use vef_format::container::{About, Span};
use vef_format::ids::CommId;
use vef_format::units::Picos;

/// Rows of the table of ranks, at most: of more ranks, several share one.
const MOST_ROWS: usize = 4096;
/// Pairs, frequent sizes and communicators listed by default.
const LISTED: usize = 20;

impl Report {
    /// The report on the trace in the file `path`, whose statistics are `stats`.
    pub fn new(path: &Path, stats: &Stats) -> Self {
        Self::with_top(path, stats, LISTED)
    }

    /// As [`Report::new`], with `top` rows in the lists of the greatest.
    pub fn with_top(path: &Path, stats: &Stats, top: usize) -> Self {
        let data = Data {
            schema: ReportSchema::default(),
            head: head(path, stats),
            totals: totals(stats),
            sizes: sizes(&stats.sizes, top),
            pairs: who::pairs(stats, top),
            distances: distances(stats),
            locality: locality(stats),
            ranks: ranks(stats),
            collectives: collectives(stats, top),
            calls: calls(stats),
            spent: stats.accounts.as_ref().map(|accounts| spent(accounts, stats.header.clock)),
            files: stats.files.report(stats.header.clock, top),
            phases: phases(stats),
            replayed: None,
            simulated: None,
            sweep: None,
            against: None,
        };
        Self { data, links: None }
    }
}

fn head(path: &Path, stats: &Stats) -> Head {
    let first = |wanted| stats.about.facts(wanted).next().cloned();
    let mut hosts: Vec<Host> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for name in stats.hosts.iter().flatten() {
        let place = *places.entry(name).or_insert_with(|| {
            hosts.push(Host { name: name.clone(), ranks: 0 });
            hosts.len() - 1
        });
        hosts[place].ranks += 1;
    }
    let (ranks, recorded) = (stats.program_tasks(), stats.recorded.len() as u32);
    let warnings = [
        unrecorded(ranks - recorded, ranks),
        too_few_cores(stats.about.facts(About::OVERSUBSCRIBED)),
        computing_times(&stats.about, true),
    ];
    Head {
        file: path.display().to_string(),
        kind: if stats.is_container { "container" } else { "text" }.to_owned(),
        file_bytes: std::fs::metadata(path).map(|file| file.len()).unwrap_or(0).into(),
        tool: concat!("vef ", env!("CARGO_PKG_VERSION")).to_owned(),
        program: first("program"),
        command: first("command"),
        mpi: first("library").or_else(|| first("mpi")),
        date: first("date"),
        part: stats.part.clone(),
        captured: stats.spans.as_deref().map(|spans| captured(spans, stats.header.clock)),
        ranks: stats.header.tasks,
        hosts,
        spawned: stats.about.facts(About::SPAWNED).cloned().collect(),
        serving: [About::STORAGE, About::INTERFACES]
            .into_iter()
            .flat_map(|name| stats.about.facts(name).map(move |tasks| format!("{name}: {tasks}")))
            .collect(),
        clock_ps: stats.header.clock.0.into(),
        warnings: warnings.into_iter().flatten().collect(),
        not_in_trace: stats.about.facts(About::NOT_IN_TRACE).cloned().collect(),
    }
}

fn captured(spans: &[Span], clock: Picos) -> Captured {
    let picos = |ticks: u64| Exact(u128::from(ticks) * u128::from(clock.0));
    let latest = spans.iter().map(|span| span.initialised.0).max().unwrap_or(0);
    let earliest = spans.iter().map(|span| span.initialised.0).min().unwrap_or(0);
    // Ranks that were launched one after the other start to count at different times.
    let span = |span: &Span| Some(span.finalised?.0.saturating_sub(span.initialised.0));
    let lengths: Option<Vec<u64>> = spans.iter().map(span).collect();
    let longest = lengths.and_then(|lengths| lengths.into_iter().max());
    Captured {
        initialisation_ps: picos(latest),
        launch_skew_ps: picos(latest - earliest),
        span_ps: longest.map(picos),
    }
}

fn totals(stats: &Stats) -> Totals {
    let [nothing, send, reception, collective] = stats.dependencies.map(Exact::from);
    let clock = u128::from(stats.header.clock.0);
    let all = stats.pairs.all();
    let ticks = stats.tasks.iter().map(|task| u128::from(task.ticks));
    let sum = |of: fn(&crate::stats::TaskTally) -> u64| {
        stats.tasks.iter().map(|task| u128::from(of(task))).sum::<u128>()
    };
    let operations = stats.collectives.iter().map(|((comm, _), tally)| operations(stats, *comm, tally));
    Totals {
        records: stats.dependencies.iter().map(|&count| u128::from(count)).sum::<u128>().into(),
        messages: all.messages,
        bytes: all.bytes,
        awaited: stats.awaited.into(),
        to_self: stats.to_self.into(),
        marks: sum(|task| task.marks).into(),
        collectives: operations.sum::<u64>().into(),
        collective_parts: sum(|task| task.collectives).into(),
        communicators: (stats.communicators.len() as u64).into(),
        computing_ps: ticks.clone().sum::<u128>().saturating_mul(clock).into(),
        computing_max_ps: (ticks.max().unwrap_or(0) * clock).into(),
        after: After { nothing, send, reception, collective },
    }
}

/// Number of operations on a communicator, from their parts.
fn operations(stats: &Stats, comm: CommId, tally: &CollectiveTally) -> u64 {
    let members = stats.communicators.get(&comm).copied().unwrap_or(1).max(1);
    tally.parts.div_ceil(members.into())
}

fn sizes(counts: &SizeCounts, top: usize) -> Sizes {
    let mut classes: BTreeMap<u32, Volume> = BTreeMap::new();
    let mut all = Volume::default();
    for &(size, volume) in &counts.sizes {
        classes.entry(power(size)).or_default().add(volume);
        all.add(volume);
    }
    let mut common: Vec<&(u64, Volume)> = counts.sizes.iter().filter(|_| counts.exact).collect();
    common.sort_by_key(|(size, volume)| (std::cmp::Reverse(volume.messages), *size));
    common.truncate(top);
    let quantile = |share: f64| Exact::from(counts.quantile(share));
    Sizes {
        mean: all.bytes.checked_div(all.messages).unwrap_or(0).into(),
        min: counts.least.into(),
        p50: quantile(0.5),
        p90: quantile(0.9),
        p99: quantile(0.99),
        max: counts.most.into(),
        different: counts.exact.then_some(counts.sizes.len() as u64),
        classes: size_classes(&classes),
        common: common
            .into_iter()
            .map(|&(size, volume)| CommonSize { size: size.into(), amount: volume.into() })
            .collect(),
    }
}

fn size_classes(classes: &BTreeMap<u32, Volume>) -> Vec<SizeClass> {
    let class = |(&class, &volume): (&u32, &Volume)| {
        let (from, to) = ends(class);
        SizeClass { from: from.into(), to: to.into(), amount: volume.into() }
    };
    classes.iter().map(class).collect()
}

fn distances(stats: &Stats) -> Vec<Distance> {
    let class = |(class, &volume): (u32, &Volume)| {
        let (from, to) = ends(class);
        Distance { from: from as u32, to: to as u32, amount: volume.into() }
    };
    let used = (0..).zip(&stats.pairs.by_distance).filter(|(_, volume)| volume.messages > 0);
    used.map(class).collect()
}

fn locality(stats: &Stats) -> Option<Locality> {
    let (hosts, pairs) = (stats.hosts.as_ref()?, stats.exact_pairs.as_ref()?);
    let (mut same, mut between) = (Volume::default(), Volume::default());
    for &(src, dst, volume) in pairs {
        match hosts.get(src as usize) == hosts.get(dst as usize) {
            true => same.add(volume),
            false => between.add(volume),
        }
    }
    Some(Locality { same_host: same.into(), between_hosts: between.into() })
}

fn ranks(stats: &Stats) -> Ranks {
    let clock = u128::from(stats.header.clock.0);
    let (tasks, recorded) = (stats.tasks.len(), &stats.recorded[..]);
    let per_row = tasks.div_ceil(MOST_ROWS).max(1);
    let column = |of: &dyn Fn(usize) -> u128| -> Vec<Exact> {
        (0..tasks)
            .step_by(per_row)
            .map(|first| Exact((first..(first + per_row).min(tasks)).map(of).sum()))
            .collect()
    };
    let (sent, received, own) = (&stats.pairs.sent, &stats.pairs.received, &stats.tasks);
    let sent_messages = |rank: usize| u128::from(sent[rank].messages);
    let sent_bytes = |rank: usize| u128::from(sent[rank].bytes);
    let received_messages = |rank: usize| u128::from(received[rank].messages);
    let received_bytes = |rank: usize| u128::from(received[rank].bytes);
    let computing = |rank: usize| u128::from(own[rank].ticks) * clock;
    let collectives = |rank: usize| u128::from(own[rank].collectives);
    let marks = |rank: usize| u128::from(own[rank].marks);
    Ranks {
        ranks_per_row: per_row as u32,
        sent_messages: column(&sent_messages),
        sent_bytes: column(&sent_bytes),
        received_messages: column(&received_messages),
        received_bytes: column(&received_bytes),
        computing_ps: column(&computing),
        collectives: column(&collectives),
        marks: column(&marks),
        spread: [
            spread("computing_ps", recorded, &computing),
            spread("sent_messages", recorded, &sent_messages),
            spread("sent_bytes", recorded, &sent_bytes),
            spread("received_messages", recorded, &received_messages),
            spread("received_bytes", recorded, &received_bytes),
            spread("collectives", recorded, &collectives),
        ]
        .into_iter()
        .flatten()
        .collect(),
    }
}

/// Least, mean, greatest and variation of a measure over these ranks; `None` without ranks.
pub(super) fn spread(measure: &str, ranks: &[u32], of: &dyn Fn(usize) -> u128) -> Option<Spread> {
    let of_rank = |rank: u32| OfRank { rank, value: Exact(of(rank as usize)) };
    let values = || ranks.iter().map(|&rank| of(rank as usize) as f64);
    let mean = values().sum::<f64>() / ranks.len() as f64;
    let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / ranks.len() as f64;
    let all = || ranks.iter().copied();
    Some(Spread {
        measure: measure.to_owned(),
        min: of_rank(all().min_by_key(|&rank| of(rank as usize))?),
        mean,
        // The first of several.
        max: of_rank(all().rev().max_by_key(|&rank| of(rank as usize))?),
        variation: if mean == 0.0 { 0.0 } else { variance.sqrt() / mean },
    })
}

fn collectives(stats: &Stats, top: usize) -> Collectives {
    let mut by_size: BTreeMap<(String, u32), Operation> = BTreeMap::new();
    let mut by_comm: BTreeMap<CommId, u64> = BTreeMap::new();
    for ((comm, code), tally) in &stats.collectives {
        let members = stats.communicators.get(comm).copied().unwrap_or(1);
        let name = stats.operation_name(*code);
        let count = operations(stats, *comm, tally);
        *by_comm.entry(*comm).or_default() += count;
        let operation = by_size.entry((name.clone(), members)).or_insert(Operation {
            operation: name,
            members,
            communicators: 0,
            operations: Exact(0),
            parts: Exact(0),
            sent_bytes: Exact(0),
            received_bytes: Exact(0),
        });
        operation.communicators += 1;
        operation.operations.0 += u128::from(count);
        operation.parts.0 += u128::from(tally.parts);
        operation.sent_bytes.0 += u128::from(tally.sent);
        operation.received_bytes.0 += u128::from(tally.received);
    }
    let mut operations: Vec<Operation> = by_size.into_values().collect();
    operations.sort_by_key(|operation| std::cmp::Reverse(operation.sent_bytes.max(operation.received_bytes)));
    let mut communicators: Vec<Communicator> = by_comm
        .into_iter()
        .map(|(comm, operations)| Communicator {
            id: comm.0,
            members: stats.communicators.get(&comm).copied().unwrap_or(0),
            operations: operations.into(),
        })
        .collect();
    communicators.sort_by_key(|communicator| std::cmp::Reverse(communicator.operations));
    let different = communicators.len() as u64;
    communicators.truncate(top);
    Collectives { operations, different, communicators }
}

fn calls(stats: &Stats) -> Vec<Call> {
    let mut calls: Vec<Call> = stats
        .calls
        .iter()
        .map(|(function, &records)| Call { function: function.clone(), records: records.into() })
        .collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.records));
    calls
}

fn phases(stats: &Stats) -> Vec<Phase> {
    let clock = u128::from(stats.header.clock.0);
    let phase = |(name, tally): (&String, &crate::stats::PhaseTally)| Phase {
        name: name.clone(),
        entries: tally.entries.into(),
        messages: tally.sent.messages.into(),
        bytes: tally.sent.bytes.into(),
        collectives: tally.collectives.into(),
        computing_ps: (u128::from(tally.ticks) * clock).into(),
        sizes: size_classes(&tally.by_size),
    };
    let mut phases: Vec<Phase> = stats.phases.iter().map(phase).collect();
    phases.sort_by_key(|phase| std::cmp::Reverse(phase.computing_ps));
    phases
}
