//! Everything a pass over a trace counts, as tables: a row for each rank, pair, size …, none left out or put together.

use super::Stats;
use super::sizes::smallest_beside;
use crate::table::{Column, Table};

impl Stats {
    /// The tables. That of pairs is left out where there were too many to count one by one.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = vec![self.ranks()];
        tables.extend(self.pairs_table());
        tables.extend([
            self.sizes_table(),
            self.distances(),
            self.collectives_table(),
            self.phases_table(),
            self.calls_table(),
        ]);
        tables
    }

    fn ranks(&self) -> Table {
        let clock = u128::from(self.header.clock.0);
        let (sent, received, own) = (&self.pairs.sent, &self.pairs.received, &self.tasks);
        let mut columns = vec![Column::whole("rank", 0..own.len() as u64)];
        columns.extend(self.hosts.as_ref().map(|hosts| Column::text("host", hosts)));
        columns.extend([
            Column::whole("sent_messages", sent.iter().map(|volume| volume.messages)),
            Column::whole("sent_bytes", sent.iter().map(|volume| volume.bytes)),
            Column::whole("received_messages", received.iter().map(|volume| volume.messages)),
            Column::whole("received_bytes", received.iter().map(|volume| volume.bytes)),
            Column::whole("collectives", own.iter().map(|task| task.collectives)),
            Column::whole("marks", own.iter().map(|task| task.marks)),
            Column::whole("computing_ps", own.iter().map(|task| u128::from(task.ticks) * clock)),
        ]);
        Table { name: "ranks", columns }
    }

    fn pairs_table(&self) -> Option<Table> {
        let pairs = self.exact_pairs.as_ref()?;
        let columns = vec![
            Column::whole("src", pairs.iter().map(|(src, _, _)| u64::from(*src))),
            Column::whole("dst", pairs.iter().map(|(_, dst, _)| u64::from(*dst))),
            Column::whole("messages", pairs.iter().map(|(_, _, volume)| volume.messages)),
            Column::whole("bytes", pairs.iter().map(|(_, _, volume)| volume.bytes)),
        ];
        Some(Table { name: "pairs", columns })
    }

    fn sizes_table(&self) -> Table {
        let counts = &self.sizes;
        let sizes = || counts.sizes.iter().map(|(size, _)| *size);
        let mut columns = match counts.exact {
            true => vec![Column::whole("size", sizes())],
            // Two columns instead of `size`, as a row is a range of sizes.
            false => vec![
                Column::whole("size_from", sizes().map(|size| smallest_beside(size).max(counts.least))),
                Column::whole("size_to", sizes()),
            ],
        };
        columns.extend([
            Column::whole("messages", counts.sizes.iter().map(|(_, volume)| volume.messages)),
            Column::whole("bytes", counts.sizes.iter().map(|(_, volume)| volume.bytes)),
        ]);
        Table { name: "sizes", columns }
    }

    fn distances(&self) -> Table {
        let used = || self.pairs.by_distance.iter().enumerate().filter(|(_, volume)| volume.messages > 0);
        let most = |class: usize| (1u64 << class) - 1;
        let columns = vec![
            Column::whole(
                "distance_from",
                used().map(|(class, _)| most(class.max(1) - 1) + u64::from(class > 0)),
            ),
            Column::whole("distance_to", used().map(|(class, _)| most(class))),
            Column::whole("messages", used().map(|(_, volume)| volume.messages)),
            Column::whole("bytes", used().map(|(_, volume)| volume.bytes)),
        ];
        Table { name: "distances", columns }
    }

    fn collectives_table(&self) -> Table {
        let rows = &self.collectives;
        let members = |comm| self.communicators.get(comm).copied().unwrap_or(1);
        let columns = vec![
            Column::text("operation", rows.keys().map(|(_, code)| self.operation_name(*code))),
            Column::whole("communicator", rows.keys().map(|(comm, _)| u64::from(comm.0))),
            Column::whole("members", rows.keys().map(|(comm, _)| u64::from(members(comm)))),
            Column::whole("parts", rows.values().map(|tally| tally.parts)),
            Column::whole("sent_bytes", rows.values().map(|tally| tally.sent)),
            Column::whole("received_bytes", rows.values().map(|tally| tally.received)),
        ];
        Table { name: "collectives", columns }
    }

    fn phases_table(&self) -> Table {
        let clock = u128::from(self.header.clock.0);
        let rows = &self.phases;
        let columns = vec![
            Column::text("phase", rows.keys()),
            Column::whole("entries", rows.values().map(|phase| phase.entries)),
            Column::whole("messages", rows.values().map(|phase| phase.sent.messages)),
            Column::whole("bytes", rows.values().map(|phase| phase.sent.bytes)),
            Column::whole("collectives", rows.values().map(|phase| phase.collectives)),
            Column::whole("computing_ps", rows.values().map(|phase| u128::from(phase.ticks) * clock)),
        ];
        Table { name: "phases", columns }
    }

    fn calls_table(&self) -> Table {
        let columns = vec![
            Column::text("function", self.calls.keys()),
            Column::whole("records", self.calls.values().copied()),
        ];
        Table { name: "calls", columns }
    }
}
