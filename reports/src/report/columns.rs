//! Tables from the replay and from a simulation, beside those of the trace.

use super::model::Report;
use crate::exact::Exact;
use crate::table::{Column, Table};

impl Report {
    /// Tables beside those of `Stats::tables`: `time` (a row a step and kind), `waits` (a row a rank, or group of ranks), `links`.
    pub fn tables(&self) -> Vec<Table> {
        [self.over_time_table(), self.waits(), self.links.clone()].into_iter().flatten().collect()
    }

    fn over_time_table(&self) -> Option<Table> {
        let over = &self.replayed.as_ref()?.over_time;
        let bins = over.messages.first().map_or(0, Vec::len);
        let steps = || (0..over.kinds.len()).flat_map(|_| 0..bins as u128);
        let columns = vec![
            Column::text("kind", over.kinds.iter().flat_map(|kind| std::iter::repeat_n(kind.as_str(), bins))),
            Column::whole("from_ps", steps().map(|bin| Exact(bin * over.bin_ps.0))),
            Column::whole("messages", over.messages.iter().flatten().copied()),
            Column::whole("bytes", over.bytes.iter().flatten().copied()),
        ];
        Some(Table { name: "time", columns })
    }

    fn waits(&self) -> Option<Table> {
        let ranks = &self.replayed.as_ref()?.ranks;
        let of = |name, values: &[Exact]| Column::whole(name, values.iter().copied());
        let columns = vec![
            Column::whole(
                "rank",
                (0..ranks.computing_ps.len() as u64).map(|row| row * u64::from(ranks.ranks_per_row)),
            ),
            of("computing_ps", &ranks.computing_ps),
            of("collective_ps", &ranks.collective_ps),
            of("reception_ps", &ranks.reception_ps),
            of("send_ps", &ranks.send_ps),
            of("finished_ps", &ranks.finished_ps),
        ];
        Some(Table { name: "waits", columns })
    }
}
