//! Counts of a task, which are summed over the tasks of a process and of a job.

use crate::summary::{Spent, Tally};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vef_format::ids::Rank;

/// Counts of one or more tasks. [`Summary`](crate::Summary) has the same fields, with their meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) messages: u64,
    pub(crate) marks: u64,
    pub(crate) local_collectives: u64,
    pub(crate) agreements: u64,
    /// Payload of the messages.
    pub(crate) bytes: u64,
    pub(crate) threaded: u64,
    /// Of the others, tasks that answer one-sided requests.
    pub(crate) answering: u64,
    pub(crate) negative_times: u64,
    pub(crate) unknown_requests: u64,
    pub(crate) never_completed: u64,
    pub(crate) found_only: u64,
    pub(crate) never_synchronised: u64,
    pub(crate) outside_windows: u64,
    pub(crate) shared_windows: u64,
    pub(crate) answered_outside: u64,
    pub(crate) partitions_not_ready: u64,
    pub(crate) partitions_inactive: u64,
    pub(crate) partitioned_sizes: u64,
    pub(crate) skipped_unknown: u64,
    pub(crate) torn: u64,
    pub(crate) spent: Spent,
    pub(crate) not_representable: BTreeMap<String, Tally>,
    pub(crate) killed: Vec<Rank>,
    pub(crate) stopped: Vec<Rank>,
    pub(crate) unrecorded: Vec<Rank>,
    pub(crate) unbegun: Vec<Rank>,
}

impl Counts {
    /// Adds the counts of higher tasks.
    pub(crate) fn merge(&mut self, later: Self) {
        macro_rules! add {
            ($($name:ident)+) => { $(add_to(&mut self.$name, later.$name);)+ };
        }
        add!(events messages marks local_collectives agreements bytes threaded answering negative_times);
        add!(unknown_requests never_completed found_only skipped_unknown torn);
        add!(never_synchronised outside_windows shared_windows answered_outside);
        add!(partitions_not_ready partitions_inactive partitioned_sizes);
        self.spent.add(later.spent);
        for (name, tally) in later.not_representable {
            self.not_representable.entry(name).or_default().merge(tally);
        }
        self.killed.extend(later.killed);
        self.stopped.extend(later.stopped);
        self.unrecorded.extend(later.unrecorded);
        self.unbegun.extend(later.unbegun);
    }
}

impl Spent {
    fn add(&mut self, other: Self) {
        let Self { times, awaited, polls_kept, calls_kept, preempted_kept, send_waits } = other;
        self.times.merge(&times);
        add_to(&mut self.awaited, awaited);
        add_to(&mut self.polls_kept, polls_kept);
        add_to(&mut self.calls_kept, calls_kept);
        add_to(&mut self.preempted_kept, preempted_kept);
        add_to(&mut self.send_waits, send_waits);
    }
}

/// Adds counts of a capture, which may have any value.
pub(crate) fn add_to(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::account::{ByPart, TimePart};
    use vef_format::units::Bytes;

    /// The call table of a capture may hold any times.
    #[test]
    fn sums_saturate() {
        let mut most = Spent::default();
        TimePart::ALL.iter().for_each(|&part| most.times.add(part, u64::MAX));
        let mut sum = most;
        sum.add(Spent { awaited: 7, ..most });
        assert_eq!(sum, Spent { awaited: 7, ..most });
        assert_eq!((sum.times.inside(), sum.times.running()), (u64::MAX, u64::MAX));
        let tally = Tally { count: u64::MAX, bytes: Bytes(u64::MAX) };
        let counts = Counts {
            events: u64::MAX,
            torn: u64::MAX,
            spent: most,
            not_representable: [("MPI_Put".to_owned(), tally)].into(),
            ..Counts::default()
        };
        let mut sum = counts.clone();
        sum.merge(counts.clone());
        assert_eq!(sum, counts);
    }

    #[test]
    fn parts_are_told_from_a_hundredth_on() {
        let times = ByPart { outside: 900, message: 100, start_up: 5000, ..ByPart::default() };
        let spent = Spent { times, ..Spent::default() };
        assert_eq!(spent.notable(8), None);
        assert_eq!(spent.notable(9).unwrap(), "9.000 ns (1.0 % of computing, 0.9 % of the tasks' time)");
        // Of little computing, the most may be polls, however long the tasks wait.
        let spent =
            Spent { polls_kept: 60, times: ByPart { outside: 40, message: 99_900, ..times }, ..spent };
        assert_eq!(spent.notable(60).unwrap(), "60.000 ns (60.0 % of computing, 0.1 % of the tasks' time)");
        assert_eq!(spent.notably_left_out(1000).unwrap(), "1.000 µs (1.0 % of the tasks' time)");
        assert_eq!(spent.notably_left_out(900), None);
        // A capture without clocks.
        assert_eq!(Spent::default().notable(1), None);
    }
}
