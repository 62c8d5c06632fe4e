//! The profile of a capture: what `vef profile` shows. Times are in nanoseconds (`_ns`).

use crate::Exact;
use crate::report::{Files, Spent};
use crate::schema::schema;
use crate::table::TextStyle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use vef_format::account::{ByPart, TimePart};
use vef_format::units::{Count, Grouped};

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Version of these keys; another number where a key goes or changes its meaning.
    pub schema: ProfileSchema,
    /// Number of ranks.
    pub tasks: u32,
    /// Time in MPI of all ranks together, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time from the end of `MPI_Init` to the start of `MPI_Finalize` of all ranks together, ns.
    pub wall_ns: u64,
    /// The same of all threads that make calls, of which `mpi_ns` is a share, ns.
    pub thread_ns: u64,
    /// The parts of that time, by function and rank, as in a report; `null` for a capture without a call table.
    pub spent: Option<Spent>,
    /// What the ranks did with files, as in a report but with all files; `null` without any.
    pub files: Option<Files>,
    /// By phase of the program, the longest first; the name of time outside of all phases is empty. None without phases.
    pub phases: Vec<Phase>,
    /// By function, the one that took longest first.
    pub calls: Vec<Function>,
    /// By rank, in order.
    pub ranks: Vec<Rank>,
    /// Messages by sender and receiver, the pair with most bytes first.
    pub pairs: Vec<Pair>,
}

schema!(ProfileSchema of Profile: "vef-profile/1");

/// A function in all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    /// Its C name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// Time of all calls, of polls with what is short between failed ones (`docs/time.md`), ns.
    pub ns: u64,
    /// Time of the rank that it took longest, ns.
    pub longest_rank_ns: u64,
    /// Bytes sent and received in messages, and of the buffers given to collectives and other calls.
    pub bytes: u64,
    /// How many returned an error.
    pub errors: u64,
    /// Whether a VEF trace has records for it.
    pub representable: bool,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Its calls of MPI.
    pub calls: u64,
    /// Time in them, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time from the end of `MPI_Init` to the start of `MPI_Finalize`, ns.
    pub wall_ns: u64,
    /// Number of threads that make calls.
    pub threads: u32,
    /// Messages that it sent.
    pub messages: u64,
    /// Bytes that it sent in them.
    pub bytes: u64,
}

/// A phase of the program; a call counts for the innermost one that it is in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// How often a rank entered it, all ranks together.
    pub entries: u64,
    /// Time in it, of all threads of all ranks, ns.
    pub ns: u64,
    /// The parts of that time, of recorded calls, ns.
    pub times_ns: ByPart,
    /// The longest time of a rank in it.
    pub max_ns: u64,
    /// That rank.
    pub max_rank: u32,
}

/// Messages from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// The sender's rank in `MPI_COMM_WORLD`.
    pub from: u32,
    /// The receiver's.
    pub to: u32,
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Pairs and ranks in the text form, at most.
const SHOWN: usize = 16;
/// Characters of the name of a file, at most.
const NAME: usize = 28;

impl fmt::Display for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        let share = |part: u64, whole: u64| format!("{:.1}", 100.0 * part as f64 / whole.max(1) as f64);
        writeln!(
            out,
            "{}, {} ms of all threads from MPI_Init to MPI_Finalize, {} ms of them ({} %) in calls of MPI\n",
            Count(self.tasks, "rank"),
            ms(self.thread_ns),
            ms(self.mpi_ns),
            share(self.mpi_ns, self.thread_ns)
        )?;
        if let Some(spent) = &self.spent {
            let longest = |picos: Exact| format!("{:.3}", picos.0 as f64 / 1e9);
            writeln!(out, "{:<28}{:>14}{:>10}{:>14}{:>8}", "part of the time", "ms", "%", "most", "of rank")?;
            for part in &spent.parts {
                let share =
                    part.share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}", 100.0 * share));
                let [all, most] = [part.time_ps, part.max.value].map(longest);
                writeln!(out, "{:<28}{all:>14}{share:>10}{most:>14}{:>8}", part.title(), part.max.rank)?;
            }
            writeln!(out)?;
        }
        writeln!(
            out,
            "{:<28}{:>12}{:>14}{:>14}{:>18}{:>8}",
            "function", "calls", "ms", "longest rank", "bytes", "errors"
        )?;
        let mut beyond = Vec::new();
        for call in &self.calls {
            let mut name = call.name.clone();
            let [calls, bytes, errors] = [call.calls, call.bytes, call.errors].map(Grouped);
            if !call.representable {
                beyond.push(format!("{calls} × {name}"));
                name += " *";
            }
            let [time, longest] = [call.ns, call.longest_rank_ns].map(ms);
            writeln!(out, "{name:<28}{calls:>12}{time:>14}{longest:>14}{bytes:>18}{errors:>8}")?;
        }
        match beyond.is_empty() {
            true => writeln!(out, "\nAll of it can be represented in a VEF trace.\n")?,
            false => writeln!(out, "\n* A VEF trace cannot represent: {}.\n", beyond.join(", "))?,
        }
        writeln!(
            out,
            "{:>8}{:>12}{:>14}{:>10}{:>12}{:>18}",
            "rank", "calls", "MPI ms", "%", "messages", "bytes sent"
        )?;
        for (number, rank) in self.ranks.iter().enumerate().take(SHOWN) {
            let [calls, messages, bytes] = [rank.calls, rank.messages, rank.bytes].map(Grouped);
            let threads = rank.wall_ns.saturating_mul(rank.threads.into()).max(rank.mpi_ns);
            let (time, share) = (ms(rank.mpi_ns), share(rank.mpi_ns, threads));
            writeln!(out, "{number:>8}{calls:>12}{time:>14}{share:>10}{messages:>12}{bytes:>18}")?;
        }
        more(out, self.ranks.len())?;
        writeln!(out)?;
        if !self.phases.is_empty() {
            writeln!(
                out,
                "{:<28}{:>10}{:>14}{:>10}{:>14}{:>8}{:>10}",
                "phase", "entries", "ms", "in MPI %", "longest rank", "rank", "polling %"
            )?;
            for phase in self.phases.iter().take(SHOWN) {
                let name = if phase.name.is_empty() { "(in no phase)" } else { &phase.name };
                let [inside, polling] = [phase.times_ns.inside(), phase.times_ns.of(TimePart::Polling)];
                writeln!(
                    out,
                    "{name:<28}{:>10}{:>14}{:>10}{:>14}{:>8}{:>10}",
                    Grouped(phase.entries),
                    ms(phase.ns),
                    share(inside, phase.ns),
                    ms(phase.max_ns),
                    phase.max_rank,
                    share(polling, phase.ns)
                )?;
            }
            more(out, self.phases.len())?;
            writeln!(out)?;
        }
        if let Some(files) = &self.files {
            let style = TextStyle { top: SHOWN, more: "--json has all", ..TextStyle::WHOLE };
            for (table, who) in files.clone().with_short_names(NAME).tables().iter().zip(["ranks", "rank"]) {
                let columns = [&["file", who][..], &Files::SHORT].concat();
                writeln!(out, "{}\n{}", table.title, table.only(&columns).to_text(&style))?;
            }
        }
        writeln!(out, "{:>8}{:>8}{:>12}{:>18}", "from", "to", "messages", "bytes")?;
        for &Pair { from, to, messages, bytes } in self.pairs.iter().take(SHOWN) {
            writeln!(out, "{from:>8}{to:>8}{:>12}{:>18}", Grouped(messages), Grouped(bytes))?;
        }
        more(out, self.pairs.len())
    }
}

fn more(out: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    match all.checked_sub(SHOWN) {
        Some(rest @ 1..) => writeln!(out, "     … and {rest} more (--json has all)"),
        _ => Ok(()),
    }
}
