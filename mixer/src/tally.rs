//! Sums the counts of tasks, and of the processes of a job, into the summary.

use crate::bytes::{Coded, Encoder, Garbled, Reader, coded};
use crate::matching::Matched;
use crate::read::Walked;
use crate::summary::{Spent, Summary, Tally, Unmatched, UnmatchedKind, UnmatchedMessage};
use crate::task::Task;
use std::collections::BTreeMap;
use vef_format::capture::Function;
use vef_format::ids::Rank;
use vef_format::operation::Operation;

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

    fn parts(&mut self) -> [&mut u64; 6] {
        let Self { total, waiting, polling, awaited, send_waits, mpi } = self;
        [total, waiting, polling, awaited, send_waits, mpi]
    }

    fn add(&mut self, mut other: Self) {
        self.parts().into_iter().zip(other.parts()).for_each(|(own, other)| add_to(own, *other));
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
fn add_to(sum: &mut u64, count: u64) {
    *sum = sum.saturating_add(count);
}

impl Summary {
    /// Adds the counts of the tasks from `first` on; returns the tasks.
    pub(crate) fn add_walked(&mut self, first: u32, walked: Vec<Walked>) -> Vec<Task> {
        let mut count = |(rank, walked): (u32, Walked)| {
            let Walked { task, skipped, torn, spent } = walked;
            self.spent.add(spent);
            let counts = task.counts;
            add_to(&mut self.events, counts.events);
            add_to(&mut self.messages, task.messages());
            add_to(&mut self.marks, task.marks());
            add_to(&mut self.local_collectives, counts.collectives);
            self.bytes.0 = self.bytes.0.saturating_add(counts.bytes);
            self.threaded += u64::from(task.records.has_threads());
            add_to(&mut self.negative_times, counts.negative_times);
            add_to(&mut self.unknown_requests, counts.unknown_requests);
            add_to(&mut self.never_completed, counts.never_completed);
            add_to(&mut self.skipped_unknown, skipped);
            add_to(&mut self.torn, torn);
            for (name, &tally) in &task.not_representable {
                self.not_representable.entry(name.clone()).or_default().merge(tally);
            }
            if !counts.finalized {
                self.killed.push(Rank(rank));
            }
            task
        };
        (first..).zip(walked).map(&mut count).collect()
    }

    /// The counts that are sums over tasks.
    fn sums(&mut self) -> impl Iterator<Item = &mut u64> {
        let counts = [
            &mut self.events,
            &mut self.messages,
            &mut self.marks,
            &mut self.local_collectives,
            &mut self.bytes.0,
            &mut self.threaded,
            &mut self.negative_times,
            &mut self.unknown_requests,
            &mut self.never_completed,
            &mut self.skipped_unknown,
            &mut self.torn,
        ];
        counts.into_iter().chain(self.spent.parts())
    }

    /// Encodes the counts of [`Summary::add_walked`] for another process.
    pub(crate) fn encode_walked(&mut self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        self.sums().for_each(|sum| sum.put(&mut encoder));
        self.not_representable.put(&mut encoder);
        self.killed.put(&mut encoder);
        encoder.0
    }

    /// Adds the encoded counts of a process of higher tasks.
    pub(crate) fn import_walked(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        let mut reader = Reader::new(bytes);
        for sum in self.sums() {
            add_to(sum, reader.get()?);
        }
        let others: BTreeMap<String, Tally> = Coded::get(&mut reader)?;
        for (name, tally) in others {
            self.not_representable.entry(name).or_default().merge(tally);
        }
        self.killed.extend(Vec::<Rank>::get(&mut reader)?);
        Ok(())
    }

    /// Takes over the result of matching all tasks.
    pub(crate) fn add_matched(&mut self, matched: Matched) {
        self.matched = matched.matched;
        self.dropped.sends = matched.unmatched.sends;
        self.dropped.cancelled = matched.cancelled;
        self.dropped.empty_self = matched.empty_self;
        self.bytes.0 = self.bytes.0.saturating_sub(matched.dropped_bytes);
        self.unmatched = matched.unmatched;
    }
}

coded!(Tally { count, bytes });
coded!(Matched { matched, cancelled, empty_self, dropped_bytes, unmatched });
coded!(Unmatched { sends, receives, first });
coded!(UnmatchedMessage { kind, task, peer, tag, bytes });

impl Coded for UnmatchedKind {
    fn put(&self, encoder: &mut Encoder) {
        encoder.put((*self == Self::Receive).into());
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
        Ok(if reader.get()? == 0 { Self::Send } else { Self::Receive })
    }
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
        let summary = Summary {
            events: u64::MAX,
            torn: u64::MAX,
            spent,
            not_representable: [("MPI_Put".to_owned(), tally)].into(),
            ..Summary::default()
        };
        let mut sum = summary.clone();
        let encoded = sum.encode_walked();
        sum.import_walked(&encoded).unwrap();
        assert_eq!(sum, summary);
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
