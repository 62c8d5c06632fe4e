//! Tables from the replay and from a simulation, beside those of the trace.

use super::model::Report;
use results::sweep::Sweep;
use results::table::{Cell, Column, Table};

impl Report {
    /// Tables beside those of `Stats::tables`: `time` (a row a step and kind), `waits` (a row a rank, or group of ranks), `links`.
    pub fn tables(&self) -> Vec<Table> {
        let waits = self.data.replayed.iter().flat_map(|replayed| replayed.waits.tables());
        let points = self.data.sweep.as_ref().map(Sweep::table);
        [self.over_time_table(), self.rank_states(), self.links.clone(), points]
            .into_iter()
            .flatten()
            .chain(waits)
            .collect()
    }

    fn over_time_table(&self) -> Option<Table> {
        let over = &self.data.replayed.as_ref()?.over_time;
        let heads = ["kind", "from_ps", "messages", "bytes"];
        let mut table = Table::of_heads("time", "Messages by when they start", &heads);
        for ((kind, messages), bytes) in over.kinds.iter().zip(&over.messages).zip(&over.bytes) {
            for (bin, (messages, bytes)) in (0..).zip(messages.iter().zip(bytes)) {
                let from = Cell::Time(bin * over.bin_ps.0);
                table.row([Cell::text(kind), from, Cell::count(*messages), Cell::count(*bytes)]);
            }
        }
        Some(table)
    }

    fn rank_states(&self) -> Option<Table> {
        let ranks = &self.data.replayed.as_ref()?.ranks;
        let known = || ranks.times.iter().filter(|(_, times)| !times.is_empty());
        let states = known()
            .map(|(state, _)| Column { name: format!("{}_ps", state.name()).into(), ..Column::new("", "") });
        let (rank, finished) = (Column::new("rank", ""), Column::new("finished_ps", ""));
        let columns: Vec<Column> = [rank].into_iter().chain(states).chain([finished]).collect();
        let mut table = Table::new("waits", "Ranks", columns);
        for (row, finished) in ranks.finished_ps.iter().enumerate() {
            let rank = Cell::Id(row as u64 * u64::from(ranks.ranks_per_row));
            let times = known().map(|(_, times)| &times[row]).chain([finished]);
            table.row([rank].into_iter().chain(times.map(|time| Cell::Time(time.0))));
        }
        Some(table)
    }
}
