//! A profile for people on a terminal: the tables of `vef stats`, in its words.

use crate::report::{Rows, Section, Shown, files_text, function_rows, time_rows};
use results::Exact;
use results::profile::{Pair, Profile};
use vef_format::account::TimePart;
use vef_format::units::{Count, Grouped, Picos};

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
pub fn text(profile: &Profile, only: Option<Section>, shown: &Shown) -> String {
    let mut out = String::new();
    if only.is_none() {
        out.push_str(&format!(
            "{}: {} in calls of MPI ({}), of {} between MPI_Init and MPI_Finalize, of all threads\n",
            Count(profile.tasks, "rank"),
            time(profile.mpi_ns),
            share(profile.mpi_ns, profile.thread_ns),
            time(profile.thread_ns)
        ));
    }
    for section in SECTIONS.into_iter().filter(|section| only.is_none_or(|only| only == *section)) {
        let (title, rows) = match section {
            Section::Files | Section::FileRanks => {
                out.push_str(
                    &profile.files.as_ref().map_or(String::new(), |files| files_text(files, section, shown)),
                );
                continue;
            }
            Section::Time => profile.spent.as_ref().map(time_rows).unwrap_or_default(),
            Section::Functions => profile.spent.as_ref().map(function_rows).unwrap_or_default(),
            Section::Calls => calls(profile),
            Section::Ranks => ranks(profile),
            Section::Phases => phases(profile),
            _ => pairs(profile),
        };
        if !rows.is_empty() {
            out.push_str(&format!("\n{title}\n"));
            rows.write(shown, &mut out);
        }
        if section == Section::Calls {
            out.push_str(&representable(profile));
        }
    }
    out
}

/// A time in nanoseconds, with its unit.
fn time(ns: u64) -> String {
    Picos(ns.saturating_mul(1000)).to_string()
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn grouped(count: u64) -> String {
    Grouped(count).to_string()
}

fn calls(profile: &Profile) -> (String, Rows) {
    let mut rows = Rows::new(&["function", "calls", "time", "most of a rank", "bytes", "errors"]);
    for call in &profile.calls {
        let mark = if call.representable { "" } else { " *" };
        let fields = vec![
            format!("{}{mark}", call.name),
            grouped(call.calls),
            time(call.ns),
            time(call.longest_rank_ns),
            grouped(call.bytes),
            grouped(call.errors),
        ];
        rows.row(Exact(call.ns.into()), fields);
    }
    ("Calls of MPI functions".to_owned(), rows)
}

/// Which calls a trace has no records for.
fn representable(profile: &Profile) -> String {
    let beyond = profile.calls.iter().filter(|call| !call.representable);
    let beyond: Vec<String> = beyond.map(|call| format!("{} × {}", Grouped(call.calls), call.name)).collect();
    match beyond.is_empty() {
        true => "  All of it can be represented in a VEF trace.\n".to_owned(),
        false => format!("  * A VEF trace cannot represent: {}.\n", beyond.join(", ")),
    }
}

fn ranks(profile: &Profile) -> (String, Rows) {
    let mut rows = Rows::new(&["rank", "calls", "time in MPI", "share", "messages sent", "bytes sent"]);
    for (number, rank) in profile.ranks.iter().enumerate() {
        let threads = rank.wall_ns.saturating_mul(rank.threads.into()).max(rank.mpi_ns);
        let fields = vec![
            number.to_string(),
            grouped(rank.calls),
            time(rank.mpi_ns),
            share(rank.mpi_ns, threads),
            grouped(rank.messages),
            grouped(rank.bytes),
        ];
        rows.row(Exact(rank.mpi_ns.into()), fields);
    }
    ("Ranks".to_owned(), rows)
}

fn phases(profile: &Profile) -> (String, Rows) {
    let mut rows = Rows::new(&["phase", "entries", "time", "in MPI", "polling", "most of a rank", "of rank"]);
    for phase in &profile.phases {
        let [inside, polling] = [phase.times_ns.inside(), phase.times_ns.of(TimePart::Polling)];
        let fields = vec![
            if phase.name.is_empty() { "(in no phase)".to_owned() } else { phase.name.clone() },
            grouped(phase.entries),
            time(phase.ns),
            share(inside, phase.ns),
            share(polling, phase.ns),
            time(phase.max_ns),
            phase.max_rank.to_string(),
        ];
        rows.row(Exact(phase.ns.into()), fields);
    }
    ("Phases".to_owned(), rows)
}

fn pairs(profile: &Profile) -> (String, Rows) {
    let mut rows = Rows::new(&["from → to", "messages", "bytes"]);
    for &Pair { from, to, messages, bytes } in &profile.pairs {
        rows.row(Exact(bytes.into()), vec![format!("{from} → {to}"), grouped(messages), grouped(bytes)]);
    }
    ("Pairs of ranks".to_owned(), rows)
}
