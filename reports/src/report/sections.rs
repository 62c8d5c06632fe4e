//! The tables of a report's sections: those of the terminal, and the wider ones of the page.

use super::model::Report;
use super::shown::{measure, share};
use results::report::{After, Amount, CollectiveTimes, Files, Locality, Pair, Replayed, Sizes, Spent};
use results::shown::{percent, range};
use results::table::{Cell, Table};
use vef_format::account::TimePart;
use vef_format::units::{Count, Grouped};

/// Characters of the name of a file, at most.
const FILE_NAME: usize = 28;

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

    /// Every section with its name on the command line, in the order in which they are shown.
    pub const ALL: [(Self, &'static str); 14] = [
        (Self::Time, "time"),
        (Self::Functions, "function"),
        (Self::Files, "file"),
        (Self::FileRanks, "file-rank"),
        (Self::Waits, "wait"),
        (Self::WaitPairs, "wait-pair"),
        (Self::Sizes, "size"),
        (Self::Pairs, "pair"),
        (Self::Distances, "distance"),
        (Self::Collectives, "collective"),
        (Self::Communicators, "communicator"),
        (Self::Ranks, "rank"),
        (Self::Phases, "phase"),
        (Self::Calls, "call"),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(section, _)| *section == self).map_or("", |(_, name)| name)
    }
}

impl Report {
    /// The table of a section for a terminal, if there is something about it.
    pub(super) fn table(&self, section: Section) -> Option<Table> {
        let table = match section {
            Section::Sizes => self.sizes_table(),
            Section::Pairs => self.narrow_pairs_table(),
            Section::Distances => self.distances_table(),
            Section::Collectives => self
                .collectives_table()
                .only(&["operation", "members", "operations", "contributed, bytes", "obtained, bytes"])
                .with_bars(&[3, 4]),
            Section::Communicators => self.communicators_table(),
            Section::Ranks => self.ranks_table(),
            Section::Phases => self.phases_table(),
            Section::Calls => self.calls_table(),
            Section::Time => time_table(self.data.spent.as_ref()?),
            Section::Functions => functions_table(self.data.spent.as_ref()?),
            Section::Files => files_table(self.data.files.as_ref()?),
            Section::FileRanks => file_ranks_table(self.data.files.as_ref()?),
            Section::Waits => self.waits_table()?,
            Section::WaitPairs => self.wait_pairs_table()?,
        };
        (!table.is_empty()).then_some(table)
    }

    /// Sums over the trace.
    pub(super) fn totals_table(&self) -> Table {
        let (totals, sizes) = (&self.data.totals, &self.data.sizes);
        let messages = match &self.data.head.part {
            None => "messages in the trace",
            Some(_) => "messages in this part",
        };
        let mut table = Table::facts("totals", "Sums");
        table.fact(messages, Cell::count(totals.messages));
        table.fact("in them", Cell::Bytes(totals.bytes.0));
        table.fact("collective operations", Cell::count(totals.collectives));
        let communicators =
            Count(totals.communicators.0, "communicator").agree("communicator", "communicators");
        table.fact(communicators, Cell::count(totals.communicators));
        table.fact("records", Cell::count(totals.records));
        if totals.messages.0 > 0 {
            table.fact("mean size", Cell::Bytes(sizes.mean.0));
            table.fact("median size", Cell::Bytes(sizes.p50.0));
            table.fact("99th percentile of sizes", Cell::Bytes(sizes.p99.0));
        }
        table.fact("computing, all ranks", Cell::Time(totals.computing_ps.0));
        if let Some(replayed) = &self.data.replayed {
            table.fact("run time on the yardstick network", Cell::Time(replayed.runtime_ps.0));
        }
        table
    }

    fn sizes_table(&self) -> Table {
        let sizes = &self.data.sizes;
        let different = match sizes.different {
            Some(different) => format!("{} different", Grouped(different)),
            None => "too many different ones to count".to_owned(),
        };
        let title = format!("Sizes of messages ({different})");
        let classes = sizes.classes.iter();
        let rows = classes.map(|class| (Cell::text(range(class.from, class.to)), class.amount));
        amounts("sizes", title, "bytes a message", rows).with_bars(&[1])
    }

    fn narrow_pairs_table(&self) -> Table {
        let pairs = &self.data.pairs;
        let different = pairs.different.unwrap_or(0);
        let partners = pairs.partners.iter().filter(|row| row.partners > 0);
        let (least, most) = partners
            .fold((u32::MAX, 0), |(least, most), row| (least.min(row.partners), most.max(row.partners)));
        let receivers = Count(most, "receiver").agree("receiver", "receivers");
        let symmetry = pairs
            .symmetry
            .map_or_else(String::new, |share| format!("; {} of the bytes go both ways", percent(share)));
        let title = format!(
            "Pairs of ranks ({}; {} {receivers} of a sender{symmetry})",
            Grouped(different),
            range(least.min(most), most)
        );
        let ends = |pair: &Pair| Cell::text(format!("{} → {}", pair.src, pair.dst));
        let rows = pairs.top.iter().map(|pair| (ends(pair), pair.amount));
        let mut table = amounts("pairs", title, "from → to", rows);
        table.all = table.all.max(different);
        table.with_bars(&[2])
    }

    /// The pairs with most bytes.
    pub(super) fn pairs_table(&self) -> Table {
        let mut table = Table::of_heads("pairs", "Pairs of ranks", &["from", "to", "messages", "bytes"]);
        for pair in &self.data.pairs.top {
            let ends = [pair.src, pair.dst].map(|rank| Cell::Id(rank.into()));
            table.row(ends.into_iter().chain(pair.amount.cells()));
        }
        table.all = table.all.max(self.data.pairs.different.unwrap_or(0));
        table
    }

    fn distances_table(&self) -> Table {
        let classes = self.data.distances.iter();
        let rows = classes.map(|class| (Cell::text(range(class.from, class.to)), class.amount));
        amounts("distances", "Distances of the ranks' numbers", "|from − to|", rows).with_bars(&[1])
    }

    /// Collective operations.
    pub(super) fn collectives_table(&self) -> Table {
        let ends = ["contributed, bytes", "obtained, bytes"];
        let heads = ["operation", "members", "communicators", "operations", "parts", ends[0], ends[1]];
        let mut table = Table::of_heads("collectives", "Collective operations", &heads);
        for row in &self.data.collectives.operations {
            table.row([
                Cell::text(&row.operation),
                Cell::count(row.members),
                Cell::count(row.communicators),
                Cell::count(row.operations),
                Cell::count(row.parts),
                Cell::count(row.sent_bytes),
                Cell::count(row.received_bytes),
            ]);
        }
        table
    }

    /// Communicators, in the CSV with the collective operations on them.
    pub(super) fn communicators_table(&self) -> Table {
        let heads = ["communicator", "members", "operations"];
        let mut table = Table::of_heads("collectives", "Communicators", &heads);
        for row in &self.data.collectives.communicators {
            let name = Cell::text(format!("C{}", row.id));
            table.row([name, Cell::count(row.members), Cell::count(row.operations)]);
        }
        table.all = table.all.max(self.data.collectives.different);
        table.with_bars(&[2])
    }

    /// Measures of the ranks.
    pub(super) fn ranks_table(&self) -> Table {
        let heads = ["measure", "least", "of rank", "mean", "greatest", "of rank", "variation"];
        let mut table = Table::of_heads("ranks", "Ranks", &heads);
        for spread in &self.data.ranks.spread {
            let (name, cell) = measure(&spread.measure);
            table.row([
                Cell::text(name),
                cell(spread.min.value.0),
                Cell::Id(spread.min.rank.into()),
                cell(spread.mean.round() as u128),
                cell(spread.max.value.0),
                Cell::Id(spread.max.rank.into()),
                Cell::Share(spread.variation),
            ]);
        }
        table
    }

    /// The program's phases.
    pub(super) fn phases_table(&self) -> Table {
        let heads = ["phase", "entries", "messages", "bytes", "collective parts", "computing"];
        let mut table =
            Table::of_heads("phases", "Phases (what is in several counts for the innermost)", &heads);
        for phase in &self.data.phases {
            table.row([
                Cell::text(&phase.name),
                Cell::count(phase.entries),
                Cell::count(phase.messages),
                Cell::count(phase.bytes),
                Cell::count(phase.collectives),
                Cell::Time(phase.computing_ps.0),
            ]);
        }
        table.with_bars(&[3])
    }

    /// Records by MPI function.
    pub(super) fn calls_table(&self) -> Table {
        let heads = ["function", "records"];
        let mut table = Table::of_heads("calls", "MPI functions behind the records", &heads);
        for call in &self.data.calls {
            table.row([Cell::text(&call.function), Cell::count(call.records)]);
        }
        table.with_bars(&[1])
    }

    /// Waits in the replay, by cause, function and phase.
    pub(super) fn waits_table(&self) -> Option<Table> {
        let waits = &self.data.replayed.as_ref()?.waits;
        let mut title = "Why ranks wait in the replay, and where".to_owned();
        if let Some(time) = self.in_sends() {
            title += &format!(". For sends they do not: in the captured run, these took {time}");
        }
        let heads = ["cause", "function", "phase", "waits", "time"];
        let mut table = Table::of_heads("wait-causes", title, &heads);
        for place in &waits.places {
            let name = |name: &Option<String>| Cell::text(name.as_deref().unwrap_or("–"));
            table.row([
                Cell::text(place.cause.name()),
                name(&place.function),
                name(&place.phase),
                Cell::count(place.waits),
                Cell::Time(place.time_ps.into()),
            ]);
        }
        Some(table.with_bars(&[4]))
    }

    /// How long all ranks together were in sends, and waited for these, in the captured run. The replay completes each send when it begins.
    pub(super) fn in_sends(&self) -> Option<String> {
        let sends = self.data.spent.as_ref()?.parts.iter().find(|part| part.part == TimePart::Send.name())?;
        (sends.time_ps.0 > 0).then(|| Cell::Time(sends.time_ps.0).shown())
    }

    /// Waits in the replay, by pair of ranks.
    pub(super) fn wait_pairs_table(&self) -> Option<Table> {
        let [_, pairs] = self.data.replayed.as_ref()?.waits.tables();
        let mut table = pairs.only(&["rank", "on_rank", "cause", "waits", "time_ps"]).with_bars(&[4]);
        "Who waits for whom in the replay".clone_into(&mut table.title);
        Some(table)
    }
}

/// Time of the captured run, by part.
pub(crate) fn time_table(spent: &Spent) -> Table {
    let run = Cell::Time(spent.run_ps.0).shown();
    let title = format!("Time as captured ({run} of all ranks behind MPI_Init)");
    let heads = ["part", "time", "share", "mean of a rank", "most", "of rank"];
    let mut table = Table::of_heads("times", title, &heads);
    for part in &spent.parts {
        let time = Cell::Time(part.time_ps.0);
        let cells = [Cell::text(part.title()), time, share(part.share), Cell::Time(part.mean_ps.0)];
        table.row(cells.into_iter().chain(part.max.time_cells()));
    }
    table.with_bars(&[1])
}

/// The same by MPI function.
pub(crate) fn functions_table(spent: &Spent) -> Table {
    let heads = ["function", "part", "calls", "time", "share", "most of a rank", "of rank"];
    let mut table = Table::of_heads("functions", "Time in MPI functions", &heads);
    for function in &spent.functions {
        let cells = [
            Cell::text(&function.function),
            Cell::text(function.part_title()),
            Cell::count(function.calls),
            Cell::Time(function.time_ps.0),
            share(function.share),
        ];
        table.row(cells.into_iter().chain(function.max.time_cells()));
    }
    table.with_bars(&[3])
}

/// Use of files in the captured run.
pub(crate) fn files_table(files: &Files) -> Table {
    let [files, _] = files.clone().with_short_names(FILE_NAME).tables();
    files.only(&[&["file", "ranks"][..], &Files::SHORT].concat())
}

/// The same by file and rank.
pub(crate) fn file_ranks_table(files: &Files) -> Table {
    let [_, ranks] = files.clone().with_short_names(FILE_NAME).tables();
    ranks.only(&[&["file", "rank"][..], &Files::SHORT].concat())
}

/// A table of messages and bytes.
fn amounts(
    name: &'static str,
    title: impl Into<String>,
    head: &'static str,
    rows: impl IntoIterator<Item = (Cell, Amount)>,
) -> Table {
    let mut table = Table::of_heads(name, title, &[head, "messages", "bytes"]);
    for (first, amount) in rows {
        table.row([first].into_iter().chain(amount.cells()));
    }
    table
}

/// Records by what they wait for.
pub(super) fn after_table(after: &After) -> Table {
    let &After { nothing, send, reception, collective } = after;
    let mut table = Table::of_heads("after", "What records wait for", &["records that wait for", "records"]);
    table.fact("nothing", Cell::count(nothing));
    table.fact("a send of the rank", Cell::count(send));
    table.fact("a message", Cell::count(reception));
    table.fact("a collective", Cell::count(collective));
    table
}

/// Messages on the network in the replay.
pub(super) fn kinds_table(replayed: &Replayed) -> Table {
    let rows = replayed.kinds.iter().map(|kind| (Cell::text(&kind.kind), kind.amount));
    amounts("kinds", "Messages on the network", "kind", rows)
}

/// Messages within hosts and between them.
pub(super) fn locality_table(locality: &Locality) -> Table {
    let &Locality { same_host, between_hosts } = locality;
    let rows = [("within a host", same_host), ("between hosts", between_hosts)];
    let rows = rows.map(|(name, amount)| (Cell::text(name), amount));
    amounts("locality", "Locality", "messages as captured", rows)
}

/// The least, the greatest and the mean size, and quantiles.
pub(super) fn quantiles_table(sizes: &Sizes) -> Table {
    let heads = ["", "least", "median", "90 %", "99 %", "greatest", "mean"];
    let mut table = Table::of_heads("quantiles", "Sizes", &heads);
    let values = [sizes.min, sizes.p50, sizes.p90, sizes.p99, sizes.max, sizes.mean];
    table.row([Cell::text("size")].into_iter().chain(values.map(|value| Cell::Bytes(value.0))));
    table
}

/// The most frequent sizes.
pub(super) fn common_sizes_table(sizes: &Sizes) -> Table {
    let rows = sizes.common.iter().map(|common| (Cell::count(common.size), common.amount));
    let mut table = amounts("sizes", "Most frequent sizes", "bytes a message", rows);
    table.all = table.all.max(sizes.different.unwrap_or(0));
    table
}

/// How long collective operations take in the replay.
pub(super) fn collective_times_table(collectives: &CollectiveTimes) -> Table {
    let heads = [
        "operation",
        "members",
        "operations",
        "time inside",
        "share",
        "mean time inside",
        "mean gap of entries",
        "longest gap",
    ];
    let mut table = Table::of_heads("collective-times", "Time in collectives", &heads);
    for row in &collectives.operations {
        let parts = (row.operations.0 * u128::from(row.members)).max(1);
        table.row([
            Cell::text(&row.operation),
            Cell::count(row.members),
            Cell::count(row.operations),
            Cell::Time(row.inside_ps.0),
            Cell::Share(row.share),
            Cell::Time(row.inside_ps.0 / parts),
            Cell::Time(row.entry_gap_mean_ps.0),
            Cell::Time(row.entry_gap_max_ps.0),
        ]);
    }
    table
}
