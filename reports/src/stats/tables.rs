//! Everything a pass over a trace counts, as tables: a row for each rank, pair, size …, none left out or put together.

use super::sizes::smallest_beside;
use super::{Accounts, Stats, Volume};
use results::classes::ends;
use results::table::{Cell, Column, Table};
use vef_format::account::TimePart;

const MESSAGES: Column = Column::new("messages", "messages");
const BYTES: Column = Column::new("bytes", "bytes");

fn volume(volume: &Volume) -> [Cell; 2] {
    [Cell::count(volume.messages), Cell::count(volume.bytes)]
}

impl Stats {
    /// The tables. That of pairs is left out where there were too many to count one by one.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.ranks_table()];
        tables.extend(self.pairs_table());
        tables.extend([
            self.sizes_table(),
            self.distances_table(),
            self.collectives_table(),
            self.phases_table(),
            self.calls_table(),
        ]);
        tables.extend(self.accounts.iter().flat_map(|accounts| self.account_tables(accounts)));
        let files = self.files.report(self.header.clock, usize::MAX);
        tables.extend(files.iter().flat_map(|files| files.tables()));
        tables
    }

    fn ranks_table(&self) -> Table {
        let mut columns = vec![Column::new("rank", "rank")];
        columns.extend(self.hosts.as_ref().map(|_| Column::new("host", "host")));
        columns.extend([
            Column::new("sent_messages", "messages sent"),
            Column::new("sent_bytes", "bytes sent"),
            Column::new("received_messages", "messages received"),
            Column::new("received_bytes", "bytes received"),
            Column::new("collectives", "parts of collectives"),
            Column::new("marks", "marks"),
            Column::new("computing_ps", "computing"),
        ]);
        let clock = u128::from(self.header.clock.0);
        let mut table = Table::new("ranks", "Ranks", columns);
        for (rank, task) in self.tasks.iter().enumerate() {
            let host = self.hosts.as_ref().map(|hosts| Cell::text(&hosts[rank]));
            let [sent, received] = [&self.pairs.sent[rank], &self.pairs.received[rank]].map(volume);
            let own = [
                Cell::count(task.collectives),
                Cell::count(task.marks),
                Cell::Time(u128::from(task.ticks) * clock),
            ];
            let rank = [Cell::Id(rank as u64)];
            table.row(rank.into_iter().chain(host).chain(sent).chain(received).chain(own));
        }
        table
    }

    fn pairs_table(&self) -> Option<Table> {
        let columns = [Column::new("src", "from"), Column::new("dst", "to"), MESSAGES, BYTES];
        let mut table = Table::new("pairs", "Pairs of ranks", columns);
        for (src, dst, sent) in self.exact_pairs.as_ref()? {
            let ends = [src, dst].map(|&rank| Cell::Id(rank.into()));
            table.row(ends.into_iter().chain(volume(sent)));
        }
        Some(table)
    }

    fn sizes_table(&self) -> Table {
        let counts = &self.sizes;
        let columns = match counts.exact {
            true => vec![Column::new("size", "size")],
            // Two columns instead of `size`, as a row is a range of sizes.
            false => vec![Column::new("size_from", "from"), Column::new("size_to", "to")],
        };
        let columns = [columns, vec![MESSAGES, BYTES]].concat();
        let mut table = Table::new("sizes", "Sizes of messages", columns);
        for (size, sent) in &counts.sizes {
            let from = (!counts.exact).then(|| smallest_beside(*size).max(counts.least));
            table.row(from.into_iter().chain([*size]).map(Cell::count).chain(volume(sent)));
        }
        table
    }

    fn distances_table(&self) -> Table {
        let columns =
            [Column::new("distance_from", "from"), Column::new("distance_to", "to"), MESSAGES, BYTES];
        let mut table = Table::new("distances", "Distances of the ranks' numbers", columns);
        let used = (0..).zip(&self.pairs.by_distance).filter(|(_, sent)| sent.messages > 0);
        for (class, sent) in used {
            let (from, to) = ends(class);
            table.row([from, to].map(Cell::count).into_iter().chain(volume(sent)));
        }
        table
    }

    fn collectives_table(&self) -> Table {
        let columns = [
            Column::new("operation", "operation"),
            Column::new("communicator", "communicator"),
            Column::new("members", "members"),
            Column::new("parts", "parts"),
            Column::new("sent_bytes", "contributed, bytes"),
            Column::new("received_bytes", "obtained, bytes"),
        ];
        let mut table = Table::new("collectives", "Collective operations", columns);
        for ((comm, code), tally) in &self.collectives {
            table.row([
                Cell::text(self.operation_name(*code)),
                Cell::Id(comm.0.into()),
                Cell::count(self.communicators.get(comm).copied().unwrap_or(1)),
                Cell::count(tally.parts),
                Cell::count(tally.sent),
                Cell::count(tally.received),
            ]);
        }
        table
    }

    fn phases_table(&self) -> Table {
        let columns = [
            Column::new("phase", "phase"),
            Column::new("entries", "entries"),
            MESSAGES,
            BYTES,
            Column::new("collectives", "collective parts"),
            Column::new("computing_ps", "computing"),
        ];
        let clock = u128::from(self.header.clock.0);
        let mut table = Table::new("phases", "Phases", columns);
        for (name, phase) in &self.phases {
            let [messages, bytes] = volume(&phase.sent);
            table.row([
                Cell::text(name),
                Cell::count(phase.entries),
                messages,
                bytes,
                Cell::count(phase.collectives),
                Cell::Time(u128::from(phase.ticks) * clock),
            ]);
        }
        table
    }

    fn account_tables(&self, accounts: &Accounts) -> [Table; 3] {
        let clock = u128::from(self.header.clock.0);
        let time = |ticks: u64| Cell::Time(u128::from(ticks) * clock);
        let part = |&part: &TimePart| Column {
            name: format!("{}_ps", part.name()).into(),
            ..Column::new("", part.title())
        };
        let columns: Vec<Column> =
            [Column::new("rank", "rank")].into_iter().chain(TimePart::ALL.iter().map(part)).collect();
        let mut times = Table::new("times", "Time of the captured run", columns);
        for (rank, task) in accounts.tasks.iter().enumerate() {
            let parts = TimePart::ALL.iter().map(|&part| time(task.of(part)));
            times.row([Cell::Id(rank as u64)].into_iter().chain(parts));
        }
        let [function, part, calls, took] = [
            Column::new("function", "function"),
            Column::new("part", "part of the time"),
            Column::new("calls", "calls"),
            Column::new("time_ps", "time"),
        ];
        let columns = [
            vec![function.clone(), part.clone(), calls.clone(), took.clone()],
            vec![Column::new("max_ps", "of one rank"), Column::new("max_rank", "of rank")],
        ];
        let mut functions = Table::new("functions", "Time in MPI functions", columns.concat());
        for (name, part, sum) in accounts.by_function() {
            let (rank, most) = sum.most;
            functions.row([
                Cell::text(name),
                Cell::text(part.name()),
                Cell::count(sum.calls),
                time(sum.ticks),
                time(most),
                Cell::Id(rank.0.into()),
            ]);
        }
        let columns = [Column::new("rank", "rank"), function, part, calls, took];
        let mut ranks = Table::new("function-ranks", "Time in MPI functions by rank", columns);
        for entry in &accounts.entries {
            ranks.row([
                Cell::Id(entry.task.0.into()),
                Cell::text(&accounts.functions[entry.function as usize]),
                Cell::text(entry.part.name()),
                Cell::count(entry.calls),
                time(entry.ticks),
            ]);
        }
        [times, functions, ranks]
    }

    fn calls_table(&self) -> Table {
        let columns = [Column::new("function", "function"), Column::new("records", "records")];
        let mut table = Table::new("calls", "MPI functions behind the records", columns);
        for (function, &records) in &self.calls {
            table.row([Cell::text(function), Cell::count(records)]);
        }
        table
    }
}
