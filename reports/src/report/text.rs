//! A report for people on a terminal: at most a hundred columns, numbers to the right, units in the heads.

use super::model::Report;
use super::parts::percent;
use super::shown::{bytes, count, measure_of_ranks, range, spans, time};
use results::Exact;
use results::report::{Amount, Files, Spent};
use results::table::TextStyle;
use vef_format::units::{Count, Grouped};

/// How a report is shown.
#[derive(Debug, Clone, Copy)]
pub struct Shown {
    /// Rows of a table, at most.
    pub top: usize,
    /// Whether shares are drawn as bars: where the terminal shows them.
    pub bars: bool,
    /// How the rows beyond `top` are had.
    pub more: &'static str,
}

/// A part of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// By rank.
    Ranks,
    /// By pair of ranks.
    Pairs,
    /// By the distance of the ranks' numbers.
    Distances,
    /// By size.
    Sizes,
    /// By collective operation.
    Collectives,
    /// By communicator.
    Communicators,
    /// By phase.
    Phases,
    /// By MPI function.
    Calls,
    /// Time of the captured run, by part.
    Time,
    /// The same by MPI function.
    Functions,
    /// Use of files in the captured run.
    Files,
    /// The same by file and rank.
    FileRanks,
    /// Waits in the replay, by cause, function and phase.
    Waits,
    /// Waits in the replay, by pair of ranks.
    WaitPairs,
}

impl Section {
    /// Whether it takes a replay.
    pub const fn is_replayed(self) -> bool {
        matches!(self, Self::Waits | Self::WaitPairs)
    }

    /// Whether text traces have no room for what it shows.
    pub const fn is_of_containers(self) -> bool {
        matches!(
            self,
            Self::Phases | Self::Calls | Self::Time | Self::Functions | Self::Files | Self::FileRanks
        )
    }

    /// Every section, in the order in which they are shown.
    pub const ALL: [Self; 14] = [
        Self::Time,
        Self::Functions,
        Self::Files,
        Self::FileRanks,
        Self::Waits,
        Self::WaitPairs,
        Self::Sizes,
        Self::Pairs,
        Self::Distances,
        Self::Collectives,
        Self::Communicators,
        Self::Ranks,
        Self::Phases,
        Self::Calls,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ranks => "rank",
            Self::Pairs => "pair",
            Self::Distances => "distance",
            Self::Sizes => "size",
            Self::Collectives => "collective",
            Self::Communicators => "communicator",
            Self::Phases => "phase",
            Self::Calls => "call",
            Self::Time => "time",
            Self::Functions => "function",
            Self::Files => "file",
            Self::FileRanks => "file-rank",
            Self::Waits => "wait",
            Self::WaitPairs => "wait-pair",
        }
    }
}

/// Characters of the name of a file, at most.
const FILE_NAME: usize = 28;

/// Characters of the longest bar.
const BAR: usize = 24;

/// A table under construction: heads, then rows; the last column may be a bar.
#[derive(Default)]
pub(crate) struct Rows {
    heads: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// How many rows there are in all.
    all: u64,
    /// The value of each row's bar.
    shares: Vec<u128>,
}

impl Rows {
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new(), all: 0, shares: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row with the value of its bar.
    pub(crate) fn row(&mut self, share: Exact, fields: Vec<String>) {
        self.rows.push(fields);
        self.all = self.all.max(self.rows.len() as u64);
        self.shares.push(share.0);
    }

    /// The text: first column left-aligned, the others right-aligned; no line of heads if all are empty.
    pub(crate) fn write(&self, shown: &Shown, out: &mut String) {
        let width = |column: usize| {
            let fields = self.rows.iter().map(|row| row[column].chars().count());
            results::table::width(fields.chain([self.heads[column].chars().count()]))
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        let line = |fields: &[&str], bar: &str| {
            let cells = fields.iter().zip(&widths).enumerate().map(|(number, (field, width))| match number {
                0 => format!("{field:<width$}"),
                _ => format!("{field:>width$}"),
            });
            let text = format!("  {}  {bar}", cells.collect::<Vec<_>>().join("  "));
            text.trim_end().to_owned() + "\n"
        };
        if self.heads.iter().any(|head| !head.is_empty()) {
            out.push_str(&line(&self.heads, ""));
        }
        let most = self.shares.iter().copied().max().unwrap_or(0);
        for (row, share) in self.rows.iter().zip(&self.shares).take(shown.top) {
            let bar = if shown.bars { bar(*share, most) } else { String::new() };
            out.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>(), &bar));
        }
        let more = self.all.saturating_sub(self.rows.len().min(shown.top) as u64);
        if more > 0 {
            out.push_str(&format!("  … and {} more ({})\n", Grouped(more), shown.more));
        }
    }
}

/// A bar as long as `share` is of `most`, to an eighth of a character.
fn bar(share: u128, most: u128) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    if most == 0 {
        return String::new();
    }
    let eighths = (share as f64 / most as f64 * (8 * BAR) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    match (eighths % 8, share) {
        (0, 1..) if eighths == 0 => text.push('▏'),
        (0, _) => {}
        (rest, _) => text.push(EIGHTHS[rest]),
    }
    text
}

fn amount(of: &Amount) -> [String; 2] {
    [count(of.messages), count(of.bytes)]
}

impl Report {
    /// The whole report, or `only` a part of it.
    pub fn to_text(&self, only: Option<Section>, shown: &Shown) -> String {
        let mut out = String::new();
        match only {
            Some(section) => self.write_section(section, shown, &mut out),
            None => {
                out.push_str(&self.head_text());
                for section in Section::ALL {
                    self.write_section(section, shown, &mut out);
                }
            }
        }
        out
    }

    /// What the report is about, and its sums.
    pub(super) fn head_text(&self) -> String {
        let mut out = String::new();
        let (head, totals, sizes) = (&self.data.head, &self.data.totals, &self.data.sizes);
        out.push_str(&format!(
            "{}: {} of {}, {}\n",
            head.file,
            head.kind,
            Count(head.ranks, "rank"),
            bytes(head.file_bytes)
        ));
        if let Some(part) = &head.part {
            out.push_str(&format!("  only {part}\n"));
        }
        let about = [&head.command, &head.mpi, &head.date]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect::<Vec<_>>();
        if !about.is_empty() {
            out.push_str(&format!("  {}\n", about.join("; ")));
        }
        if !head.hosts.is_empty() {
            let hosts: Vec<String> = head
                .hosts
                .iter()
                .take(4)
                .map(|host| format!("{} ({})", host.name, Count(host.ranks, "rank")))
                .collect();
            let more = head.hosts.len().saturating_sub(4);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            out.push_str(&format!("  on {}{more}\n", hosts.join(", ")));
        }
        for spawned in &head.spawned {
            out.push_str(&format!("  spawned by the program: {spawned}\n"));
        }
        for warning in &head.warnings {
            out.push_str(&format!("  warning: {warning}\n"));
        }
        for line in &head.not_in_trace {
            out.push_str(&format!("  not in the trace: {line}\n"));
        }
        let mut fact = |name: &str, text: String| out.push_str(&format!("  {name:<14}{text}\n"));
        if let Some(captured) = head.captured {
            fact("captured", spans(&captured));
        }
        fact(
            "messages",
            format!(
                "{} with {}; {} awaited, {} of a rank to itself",
                count(totals.messages),
                bytes(totals.bytes),
                count(totals.awaited),
                count(totals.to_self)
            ),
        );
        fact(
            "sizes",
            match totals.messages.0 {
                0 => "none, as there are no messages".to_owned(),
                _ => format!(
                    "mean {}, median {}, p90 {}, p99 {}, from {} to {}",
                    bytes(sizes.mean),
                    bytes(sizes.p50),
                    bytes(sizes.p90),
                    bytes(sizes.p99),
                    bytes(sizes.min),
                    bytes(sizes.max)
                ),
            },
        );
        fact(
            "collectives",
            format!(
                "{} ({}) on {}",
                count(totals.collectives),
                Count(totals.collective_parts.0, "part"),
                Count(totals.communicators.0, "communicator")
            ),
        );
        let after = &totals.after;
        fact(
            "records",
            format!(
                "{}, of which marks {}; after a send {}, a reception {}, a collective {}",
                count(totals.records),
                count(totals.marks),
                count(after.send),
                count(after.reception),
                count(after.collective)
            ),
        );
        fact(
            "computing",
            format!("{} of all ranks, {} at most", time(totals.computing_ps), time(totals.computing_max_ps)),
        );
        if let Some(entropy) = &self.data.pairs.entropy {
            let (min, max) = (entropy.min, entropy.max);
            fact(
                "destinations",
                format!(
                    "entropy {:.2} bits on average, from {:.2} (rank {}) to {:.2} (rank {})",
                    entropy.mean, min.bits, min.rank, max.bits, max.rank
                ),
            );
        }
        if let Some(locality) = &self.data.locality {
            fact(
                "locality",
                format!(
                    "within a host {} with {}, between hosts {} with {}",
                    count(locality.same_host.messages),
                    bytes(locality.same_host.bytes),
                    count(locality.between_hosts.messages),
                    bytes(locality.between_hosts.bytes)
                ),
            );
        }
        out
    }

    fn write_section(&self, section: Section, shown: &Shown, out: &mut String) {
        if matches!(section, Section::Files | Section::FileRanks) {
            out.push_str(
                &self.data.files.as_ref().map_or(String::new(), |files| files_text(files, section, shown)),
            );
            return;
        }
        let (title, rows) = self.rows(section);
        if rows.is_empty() {
            return;
        }
        out.push_str(&format!("\n{title}\n"));
        rows.write(shown, out);
    }

    fn rows(&self, section: Section) -> (String, Rows) {
        match section {
            Section::Sizes => self.by_size(),
            Section::Pairs => self.by_pair(),
            Section::Distances => self.by_distance(),
            Section::Collectives => self.by_collective(),
            Section::Communicators => self.by_communicator(),
            Section::Ranks => self.by_rank(),
            Section::Phases => self.by_phase(),
            Section::Calls => self.by_call(),
            Section::Time => self.data.spent.as_ref().map(time_rows).unwrap_or_default(),
            Section::Functions => self.data.spent.as_ref().map(function_rows).unwrap_or_default(),
            // As tables (`write_section`).
            Section::Files | Section::FileRanks => Default::default(),
            Section::Waits => self.by_wait(),
            Section::WaitPairs => self.by_wait_pair(),
        }
    }

    fn by_size(&self) -> (String, Rows) {
        let mut rows = Rows::new(&["bytes a message", "messages", "bytes"]);
        for class in &self.data.sizes.classes {
            let [messages, bytes] = amount(&class.amount);
            rows.row(class.amount.messages, vec![range(class.from.0, class.to.0), messages, bytes]);
        }
        let different = match self.data.sizes.different {
            Some(different) => format!("{} different", Grouped(different)),
            None => "too many different ones to count".to_owned(),
        };
        (format!("Sizes of messages ({different})"), rows)
    }

    fn by_pair(&self) -> (String, Rows) {
        let mut rows = Rows::new(&["from → to", "messages", "bytes"]);
        rows.all = self.data.pairs.different.unwrap_or(0);
        for pair in &self.data.pairs.top {
            let [messages, bytes] = amount(&pair.amount);
            rows.row(pair.amount.bytes, vec![format!("{} → {}", pair.src, pair.dst), messages, bytes]);
        }
        let different = self.data.pairs.different.unwrap_or(0);
        let partners = self.data.pairs.partners.iter().filter(|row| row.partners > 0);
        let (least, most) = partners
            .fold((u32::MAX, 0), |(least, most), row| (least.min(row.partners), most.max(row.partners)));
        let least = least.min(most);
        let symmetry = self
            .data
            .pairs
            .symmetry
            .map_or_else(String::new, |share| format!("; {} of the bytes go both ways", percent(share)));
        let receivers = Count(most, "receiver").agree("receiver", "receivers");
        (
            format!(
                "Pairs of ranks ({}; {} {receivers} of a sender{symmetry})",
                Grouped(different),
                range(least.into(), most.into())
            ),
            rows,
        )
    }

    fn by_distance(&self) -> (String, Rows) {
        let mut rows = Rows::new(&["|from − to|", "messages", "bytes"]);
        for class in &self.data.distances {
            let [messages, bytes] = amount(&class.amount);
            rows.row(class.amount.messages, vec![range(class.from.into(), class.to.into()), messages, bytes]);
        }
        ("Distances of the ranks' numbers".to_owned(), rows)
    }

    fn by_collective(&self) -> (String, Rows) {
        let mut rows =
            Rows::new(&["operation", "members", "operations", "contributed, bytes", "obtained, bytes"]);
        for row in &self.data.collectives.operations {
            let fields = vec![
                row.operation.clone(),
                Grouped(row.members).to_string(),
                count(row.operations),
                count(row.sent_bytes),
                count(row.received_bytes),
            ];
            rows.row(row.sent_bytes.max(row.received_bytes), fields);
        }
        ("Collective operations".to_owned(), rows)
    }

    fn by_communicator(&self) -> (String, Rows) {
        let mut rows = Rows::new(&["communicator", "members", "operations"]);
        rows.all = self.data.collectives.different;
        for row in &self.data.collectives.communicators {
            let fields =
                vec![format!("C{}", row.id), Grouped(row.members).to_string(), count(row.operations)];
            rows.row(row.operations, fields);
        }
        ("Communicators".to_owned(), rows)
    }

    fn by_rank(&self) -> (String, Rows) {
        let mut rows =
            Rows::new(&["measure", "least", "of rank", "mean", "greatest", "of rank", "variation"]);
        for spread in &self.data.ranks.spread {
            let (name, value) = measure_of_ranks(&spread.measure);
            let fields = vec![
                name.to_owned(),
                value(spread.min.value),
                spread.min.rank.to_string(),
                value(Exact(spread.mean.round() as u128)),
                value(spread.max.value),
                spread.max.rank.to_string(),
                percent(spread.variation),
            ];
            rows.row(Exact(0), fields);
        }
        ("Ranks".to_owned(), rows)
    }

    fn by_phase(&self) -> (String, Rows) {
        let mut rows = Rows::new(&["phase", "entries", "messages", "bytes", "collective parts", "computing"]);
        for phase in &self.data.phases {
            let fields = vec![
                phase.name.clone(),
                count(phase.entries),
                count(phase.messages),
                count(phase.bytes),
                count(phase.collectives),
                time(phase.computing_ps),
            ];
            rows.row(phase.bytes, fields);
        }
        ("Phases".to_owned(), rows)
    }

    fn by_wait(&self) -> (String, Rows) {
        let waits = self.data.replayed.iter().flat_map(|replayed| &replayed.waits.places);
        let mut rows = Rows::new(&["cause", "function", "phase", "waits", "time"]);
        for place in waits {
            let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "–".to_owned());
            let (waits, took) = (Exact(place.waits.into()), Exact(place.time_ps.into()));
            let fields = vec![
                place.cause.name().to_owned(),
                name(&place.function),
                name(&place.phase),
                count(waits),
                time(took),
            ];
            rows.row(took, fields);
        }
        ("Why ranks wait in the replay, and where".to_owned(), rows)
    }

    fn by_wait_pair(&self) -> (String, Rows) {
        let pairs = self.data.replayed.iter().flat_map(|replayed| &replayed.waits.pairs);
        let mut rows = Rows::new(&["rank", "waits for", "cause", "waits", "time"]);
        for pair in pairs {
            let (waits, took) = (Exact(pair.waits.into()), Exact(pair.time_ps.into()));
            let fields = vec![
                pair.task.to_string(),
                pair.on_task.to_string(),
                pair.cause.name().to_owned(),
                count(waits),
                time(took),
            ];
            rows.row(took, fields);
        }
        ("Who waits for whom in the replay".to_owned(), rows)
    }

    fn by_call(&self) -> (String, Rows) {
        let mut rows = Rows::new(&["function", "records"]);
        for call in &self.data.calls {
            rows.row(call.records, vec![call.function.clone(), count(call.records)]);
        }
        ("MPI functions behind the records".to_owned(), rows)
    }
}

/// The parts of the captured time.
pub(crate) fn time_rows(spent: &Spent) -> (String, Rows) {
    let mut rows = Rows::new(&["part", "time", "share", "mean of a rank", "most", "of rank"]);
    for part in &spent.parts {
        let fields = vec![
            part.title().to_owned(),
            time(part.time_ps),
            part.share.map_or_else(|| "–".to_owned(), percent),
            time(part.mean_ps),
            time(part.max.value),
            part.max.rank.to_string(),
        ];
        rows.row(part.time_ps, fields);
    }
    (format!("Time as captured ({} of all ranks behind MPI_Init)", time(spent.run_ps)), rows)
}

/// The captured time in MPI functions.
pub(crate) fn function_rows(spent: &Spent) -> (String, Rows) {
    let mut rows = Rows::new(&["function", "part", "calls", "time", "share", "most of a rank", "of rank"]);
    for function in &spent.functions {
        let fields = vec![
            function.function.clone(),
            function.part.to_owned(),
            count(function.calls),
            time(function.time_ps),
            function.share.map_or_else(|| "–".to_owned(), percent),
            time(function.max.value),
            function.max.rank.to_string(),
        ];
        rows.row(function.time_ps, fields);
    }
    ("Time in MPI functions".to_owned(), rows)
}

/// The table of files, or of files and ranks.
pub(crate) fn files_text(files: &Files, section: Section, shown: &Shown) -> String {
    let [files, ranks] = files.clone().with_short_names(FILE_NAME).tables();
    let (table, who) = if section == Section::Files { (files, "ranks") } else { (ranks, "rank") };
    let style = TextStyle { top: shown.top, bars: false, more: shown.more, indent: "  " };
    let columns = [&["file", who][..], &Files::SHORT].concat();
    format!("\n{}\n{}", table.title, table.only(&columns).to_text(&style))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(10, 10), "█".repeat(BAR));
        assert_eq!(bar(5, 10), "█".repeat(BAR / 2));
        assert_eq!(
            (bar(0, 10), bar(1, 1_000_000), bar(0, 0)),
            (String::new(), "▏".to_owned(), String::new())
        );
    }
}
