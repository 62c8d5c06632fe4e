//! Aligns the clocks of hosts.
//!
//! Tasks on one host share a clock. Between hosts, the wall clocks at the entry of `MPI_Init` give the offset of the
//! clocks; a capture without them (VEF-Prospector's) is not changed.

use super::Capture;
use crate::ids::Rank;
use std::collections::BTreeMap;

impl Capture {
    /// For each task, the offset from its clock to that of the first one with a wall clock; `zeros` are the times at which tasks entered `MPI_Init`.
    pub fn clock_shifts(&self, zeros: &[u64]) -> Vec<i64> {
        let mut hosts = BTreeMap::new();
        let mut first = None;
        let shift_of = |(rank, &zero): (u32, &u64)| {
            let info = self.rank(Rank(rank));
            let (host, wall) = info.map_or(("", 0), |info| (&info.host, info.realtime));
            if wall == 0 {
                return 0;
            }
            let between = wall.wrapping_sub(zero) as i64;
            let first = *first.get_or_insert(between);
            *hosts.entry(host).or_insert(between.wrapping_sub(first))
        };
        (0..).zip(zeros).map(shift_of).collect()
    }
}
