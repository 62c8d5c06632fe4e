//! A profile for people on a terminal: the tables of `vef stats`, in its words.

use crate::report::{Section, file_ranks_table, files_table, functions_table, time_table};
use results::captured::unrecorded;
use results::profile::{Pair, Profile};
use results::shown::{percent, time};
use results::table::{Cell, Table, TextStyle};
use vef_format::account::TimePart;
use vef_format::units::{Count, Grouped};

/// The parts of a profile, in the order in which they are shown.
pub const SECTIONS: [Section; 8] = [
    Section::Time,
    Section::Functions,
    Section::Calls,
    Section::Ranks,
    Section::Phases,
    Section::Files,
    Section::FileRanks,
    Section::Pairs,
];

/// The whole profile, or `only` a part of it; empty if there is nothing of that.
pub fn text(profile: &Profile, only: Option<Section>, style: &TextStyle) -> String {
    let mut out = String::new();
    if only.is_none() {
        out.push_str(&format!(
            "{}: {} in calls of MPI ({}), of {} between MPI_Init and MPI_Finalize, of all threads\n",
            Count(profile.tasks, "rank"),
            time(picos(profile.mpi_ns)),
            percent(share(profile.mpi_ns, profile.thread_ns)),
            time(picos(profile.thread_ns))
        ));
    }
    let mut unrecorded = unrecorded(profile.unrecorded, profile.tasks).map(|what| format!("  {what}\n"));
    if only.is_none() {
        out.extend(unrecorded.take());
    }
    for section in SECTIONS.into_iter().filter(|section| only.is_none_or(|only| only == *section)) {
        let table = match section {
            Section::Time => profile.spent.as_ref().map(time_table),
            Section::Functions => profile.spent.as_ref().map(functions_table),
            Section::Files => profile.files.as_ref().map(files_table),
            Section::FileRanks => profile.files.as_ref().map(file_ranks_table),
            Section::Calls => Some(calls(profile)),
            Section::Ranks => Some(ranks(profile)),
            Section::Phases => Some(phases(profile)),
            _ => Some(pairs(profile)),
        };
        if let Some(table) = table.filter(|table| !table.is_empty()) {
            out.push_str(&format!("\n{}\n{}", table.title, table.to_text(style)));
        }
        if section == Section::Calls {
            out.push_str(&representable(profile));
            out.push_str(&buffers(profile));
        }
        if section == Section::Ranks || only == Some(Section::Pairs) {
            out.push_str(&transfers(profile));
        }
    }
    if !out.is_empty() {
        out.extend(unrecorded);
    }
    out
}

fn picos(ns: u64) -> u128 {
    u128::from(ns) * 1000
}

fn time_of(ns: u64) -> Cell {
    Cell::Time(picos(ns))
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

fn calls(profile: &Profile) -> Table {
    let heads = ["function", "calls", "time", "most of a rank", "bytes", "errors"];
    let mut table = Table::of_heads("calls", "Calls of MPI functions", &heads);
    for call in &profile.calls {
        let mark = if call.representable { "" } else { " *" };
        table.row([
            Cell::text(format!("{}{mark}", call.name)),
            Cell::count(call.calls),
            time_of(call.ns),
            time_of(call.longest_rank_ns),
            Cell::count(call.bytes),
            Cell::count(call.errors),
        ]);
    }
    table.with_bars(&[2])
}

/// Which calls a trace has no records for: accesses to files, unless it has storage servers.
fn representable(profile: &Profile) -> String {
    let beyond = profile.calls.iter().filter(|call| !call.representable);
    let beyond: Vec<String> = beyond.map(|call| format!("{} × {}", Grouped(call.calls), call.name)).collect();
    match beyond.is_empty() {
        true => "  All of these calls can be represented in a VEF trace.\n".to_owned(),
        false => format!("  * Not in a trace without vef mix --io-servers: {}.\n", beyond.join(", ")),
    }
}

/// Receives whose bytes are not those of a message.
fn buffers(profile: &Profile) -> String {
    match profile.buffers {
        0 => String::new(),
        buffers => format!(
            "  The sends for {} were not recorded: their bytes are those of the buffers.\n",
            Count(buffers, "receive")
        ),
    }
}

/// What is not among the messages.
fn transfers(profile: &Profile) -> String {
    match profile.ranks.iter().map(|rank| rank.transfers).sum() {
        0u64 => String::new(),
        made => format!(
            "  Not among the messages: {} (MPI_Put, MPI_Get …); a trace has them and their synchronisation as messages.\n",
            Count(made, "one-sided transfer")
        ),
    }
}

fn ranks(profile: &Profile) -> Table {
    let heads = ["rank", "calls", "time in MPI", "share", "messages sent", "bytes sent"];
    let mut table = Table::of_heads("ranks", "Ranks", &heads);
    for (number, rank) in (0u64..).zip(&profile.ranks) {
        let threads = rank.wall_ns.saturating_mul(rank.threads.into()).max(rank.mpi_ns);
        table.row([
            Cell::Id(number),
            Cell::count(rank.calls),
            time_of(rank.mpi_ns),
            Cell::Share(share(rank.mpi_ns, threads)),
            Cell::count(rank.messages),
            Cell::count(rank.bytes),
        ]);
    }
    table.with_bars(&[2])
}

fn phases(profile: &Profile) -> Table {
    let heads = ["phase", "entries", "time", "in MPI", "polling", "most of a rank", "of rank"];
    let mut table = Table::of_heads("phases", "Phases", &heads);
    for phase in &profile.phases {
        let [inside, polling] = [phase.times_ns.inside(), phase.times_ns.of(TimePart::Polling)];
        table.row([
            Cell::text(if phase.name.is_empty() { "(in no phase)" } else { &phase.name }),
            Cell::count(phase.entries),
            time_of(phase.ns),
            Cell::Share(share(inside, phase.ns)),
            Cell::Share(share(polling, phase.ns)),
            time_of(phase.max_ns),
            Cell::Id(phase.max_rank.into()),
        ]);
    }
    table.with_bars(&[2])
}

fn pairs(profile: &Profile) -> Table {
    let mut table = Table::of_heads("pairs", "Pairs of ranks", &["from → to", "messages", "bytes"]);
    for &Pair { from, to, messages, bytes } in &profile.pairs {
        table.row([Cell::text(format!("{from} → {to}")), Cell::count(messages), Cell::count(bytes)]);
    }
    table.with_bars(&[2])
}
