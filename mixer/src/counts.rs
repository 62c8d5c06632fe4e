//! Counts of a task, which are summed over the tasks of a process and of a job.

use crate::summary::{Spent, Tally};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use vef_format::capture::Function;
use vef_format::ids::Rank;
use vef_format::operation::Operation;

/// Counts of one or more tasks. [`Summary`](crate::Summary) has the same fields, with their meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) events: u64,
    pub(crate) messages: u64,
    pub(crate) marks: u64,
    pub(crate) local_collectives: u64,
    /// Payload of the messages.
    pub(crate) bytes: u64,
    pub(crate) threaded: u64,
    pub(crate) negative_times: u64,
    pub(crate) unknown_requests: u64,
    pub(crate) never_completed: u64,
    pub(crate) found_only: u64,
    pub(crate) skipped_unknown: u64,
    pub(crate) torn: u64,
    pub(crate) spent: Spent,
    pub(crate) not_representable: BTreeMap<String, Tally>,
    pub(crate) killed: Vec<Rank>,
}

impl Counts {
    /// Adds the counts of higher tasks.
    pub(crate) fn merge(&mut self, later: Self) {
        macro_rules! add {
            ($($name:ident)+) => { $(add_to(&mut self.$name, later.$name);)+ };
        }
        add!(events messages marks local_collectives bytes threaded negative_times);
        add!(unknown_requests never_completed found_only skipped_unknown torn);
        self.spent.add(later.spent);
        for (name, tally) in later.not_representable {
            self.not_representable.entry(name).or_default().merge(tally);
        }
        self.killed.extend(later.killed);
    }
}

impl Spent {
    /// Classifies the calls of one task, whose recording lasted `total`.
    pub(crate) fn of(total: u64, functions: &[Function]) -> Self {
        let mut spent = Self { total, ..Self::default() };
        for Function { name, time, .. } in functions {
            let kind = match kind(name) {
                Kind::Wait => &mut spent.waiting,
                Kind::Poll => &mut spent.polling,
                Kind::Other => &mut spent.mpi,
            };
            add_to(kind, time.0);
        }
        // With several threads, the calls may sum to more than the duration.
        spent.total = spent.total.max(spent.in_mpi());
        spent
    }

    fn add(&mut self, other: Self) {
        let Self { total, waiting, polling, awaited, send_waits, mpi } = other;
        add_to(&mut self.total, total);
        add_to(&mut self.waiting, waiting);
        add_to(&mut self.polling, polling);
        add_to(&mut self.awaited, awaited);
        add_to(&mut self.send_waits, send_waits);
        add_to(&mut self.mpi, mpi);
    }
}

/// Kind of a function by how it uses time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Wait,
    Poll,
    Other,
}

/// The kind of the function `name`.
fn kind(name: &str) -> Kind {
    let name = name.strip_prefix("MPI_").unwrap_or(name);
    let name = name.strip_suffix("_c").unwrap_or(name);
    let waits = ["Recv", "Mrecv", "Probe", "Mprobe", "Sendrecv", "Sendrecv_replace", "Isendrecv"];
    match name {
        "Test_cancelled" => Kind::Other,
        "Iprobe" | "Improbe" => Kind::Poll,
        _ if name.starts_with("Test") || name.starts_with("Request_get_status") => Kind::Poll,
        _ if name.starts_with("Wait") || waits.contains(&name) || name.starts_with("Neighbor_") => Kind::Wait,
        _ if Operation::ALL.iter().any(|operation| operation.name() == name) => Kind::Wait,
        _ => Kind::Other,
    }
}

/// Adds counts of a capture, which may have any value.
pub(crate) fn add_to(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::units::{Bytes, Nanos};

    #[test]
    fn calls_are_told_by_what_they_do_with_time() {
        let call = |name: &str, time| Function { name: name.into(), calls: 1, errors: 0, time: Nanos(time) };
        let calls = [
            call("MPI_Recv_c", 1),
            call("MPI_Waitany", 2),
            call("MPI_Allreduce", 4),
            call("MPI_Sendrecv", 8),
            call("MPI_Testsome", 16),
            call("MPI_Iprobe", 32),
            call("MPI_Iallreduce", 64),
            call("MPI_Recv_init", 128),
            call("MPI_Test_cancelled", 256),
            call("MPI_Win_create", 512),
        ];
        let spent = Spent::of(2000, &calls);
        assert_eq!(spent, Spent { total: 2000, waiting: 15, polling: 48, mpi: 960, ..Spent::default() });
        assert_eq!(spent.computing(), 2000 - 1023);
        assert_eq!(Spent::of(5, &calls).computing(), 0);
    }

    /// The call table of a capture may hold any times.
    #[test]
    fn sums_saturate() {
        let call = |name: &str| Function { name: name.into(), calls: 1, errors: 0, time: Nanos(u64::MAX) };
        let calls = ["MPI_Recv", "MPI_Wait", "MPI_Test", "MPI_Put", "MPI_Get"].map(call);
        let spent = Spent::of(5, &calls);
        let most = Spent {
            total: u64::MAX,
            waiting: u64::MAX,
            polling: u64::MAX,
            mpi: u64::MAX,
            ..Spent::default()
        };
        assert_eq!((spent, spent.computing()), (most, 0));
        let mut sum = spent;
        sum.add(Spent { awaited: 7, ..spent });
        assert_eq!(sum, Spent { awaited: 7, ..most });
        let tally = Tally { count: u64::MAX, bytes: Bytes(u64::MAX) };
        let counts = Counts {
            events: u64::MAX,
            torn: u64::MAX,
            spent,
            not_representable: [("MPI_Put".to_owned(), tally)].into(),
            ..Counts::default()
        };
        let mut sum = counts.clone();
        sum.merge(counts.clone());
        assert_eq!(sum, counts);
    }

    #[test]
    fn waits_for_sends_are_told_from_a_hundredth_on() {
        let spent = |send_waits| Spent { total: 1000, send_waits, ..Spent::default() };
        assert_eq!(spent(9).notable_send_waits(), None);
        assert_eq!(spent(10).notable_send_waits().unwrap(), "10.000 ns (1.0 % of the tasks' time)");
        // A capture without clocks.
        assert_eq!(Spent { send_waits: 1, ..Spent::default() }.notable_send_waits(), None);
    }
}
