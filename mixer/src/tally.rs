//! How the counts of tasks, and of the processes of a job, come together in the summary.

use crate::bytes::{Encoder, Garbled, Reader};
use crate::matching::Matched;
use crate::read::Walked;
use crate::summary::{Spent, Summary, Tally, Unmatched, UnmatchedKind, UnmatchedMessage};
use crate::task::Task;
use vef_format::capture::Function;
use vef_format::ids::Rank;
use vef_format::operation::Operation;
use vef_format::units::Bytes;

impl Spent {
    /// Of one task, whose recording lasted so long and whose calls these are.
    pub(crate) fn of(total: u64, functions: &[Function]) -> Self {
        let mut spent = Self { total, ..Self::default() };
        for Function { name, time, .. } in functions {
            let kind = match kind(name) {
                Kind::Wait => &mut spent.waiting,
                Kind::Poll => &mut spent.polling,
                Kind::Other => &mut spent.mpi,
            };
            *kind += time.0;
        }
        // Several threads spend more than one task's time.
        spent.total = spent.total.max(spent.waiting + spent.polling + spent.mpi);
        spent
    }

    fn add(&mut self, other: Self) {
        self.total += other.total;
        self.waiting += other.waiting;
        self.polling += other.polling;
        self.awaited += other.awaited;
        self.mpi += other.mpi;
    }
}

/// What a call does with its task's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Wait,
    Poll,
    Other,
}

/// What the function of this name does.
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

impl Summary {
    /// Counts what was read of consecutive tasks from `first` on, and gives the tasks.
    pub(crate) fn add_walked(&mut self, first: u32, walked: Vec<Walked>) -> Vec<Task> {
        let mut count = |(rank, walked): (u32, Walked)| {
            let Walked { task, skipped, torn, spent } = walked;
            self.spent.add(spent);
            let counts = task.counts;
            self.events += counts.events;
            self.messages += task.messages();
            self.marks += task.marks();
            self.local_collectives += counts.collectives;
            self.bytes.0 = self.bytes.0.saturating_add(counts.bytes);
            self.threaded += u64::from(task.records.has_threads());
            self.negative_times += counts.negative_times;
            self.unknown_requests += counts.unknown_requests;
            self.never_completed += counts.never_completed;
            self.skipped_unknown += skipped;
            self.torn += torn;
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

    /// The counts of [`Summary::add_walked`], for another process.
    pub(crate) fn encode_walked(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        for count in [
            self.events,
            self.messages,
            self.marks,
            self.local_collectives,
            self.bytes.0,
            self.threaded,
            self.negative_times,
            self.unknown_requests,
            self.never_completed,
            self.skipped_unknown,
            self.torn,
            self.spent.total,
            self.spent.waiting,
            self.spent.polling,
            self.spent.awaited,
            self.spent.mpi,
            self.not_representable.len() as u64,
        ] {
            encoder.put(count);
        }
        for (name, tally) in &self.not_representable {
            encoder.put_bytes(name.as_bytes());
            encoder.put(tally.count);
            encoder.put(tally.bytes.0);
        }
        self.killed.iter().for_each(|rank| encoder.put(rank.0.into()));
        encoder.0
    }

    /// Adds the counts that a process of higher tasks has encoded.
    pub(crate) fn import_walked(&mut self, bytes: &[u8]) -> Result<(), Garbled> {
        let mut reader = Reader::new(bytes);
        for count in [&mut self.events, &mut self.messages, &mut self.marks, &mut self.local_collectives] {
            *count += reader.get()?;
        }
        self.bytes.0 = self.bytes.0.saturating_add(reader.get()?);
        for count in [
            &mut self.threaded,
            &mut self.negative_times,
            &mut self.unknown_requests,
            &mut self.never_completed,
            &mut self.skipped_unknown,
            &mut self.torn,
            &mut self.spent.total,
            &mut self.spent.waiting,
            &mut self.spent.polling,
            &mut self.spent.awaited,
            &mut self.spent.mpi,
        ] {
            *count += reader.get()?;
        }
        for _ in 0..reader.get()? {
            let name = String::from_utf8_lossy(reader.get_bytes()?).into_owned();
            let tally = Tally { count: reader.get()?, bytes: Bytes(reader.get()?) };
            self.not_representable.entry(name).or_default().merge(tally);
        }
        while reader.more() {
            self.killed.push(Rank(reader.get_u32()?));
        }
        Ok(())
    }

    /// Takes over what became of the messages of all tasks.
    pub(crate) fn add_matched(&mut self, matched: Matched) {
        self.matched = matched.matched;
        self.dropped.sends = matched.unmatched.sends;
        self.dropped.cancelled = matched.cancelled;
        self.dropped.empty_self = matched.empty_self;
        self.bytes.0 = self.bytes.0.saturating_sub(matched.dropped_bytes);
        self.unmatched = matched.unmatched;
    }
}

impl Matched {
    /// For another process.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let Self { matched, cancelled, empty_self, dropped_bytes, unmatched } = self;
        for count in [*matched, *cancelled, *empty_self, *dropped_bytes, unmatched.sends, unmatched.receives]
        {
            encoder.put(count);
        }
        for message in &unmatched.first {
            encoder.put((message.kind == UnmatchedKind::Receive).into());
            encoder.put(message.task.0.into());
            // What is not known is 0, what is is one more.
            encoder.put(message.peer.map_or(0, |peer| u64::from(peer.0) + 1));
            encoder.put(message.tag.map_or(0, |tag| u64::from(tag as u32) + 1));
            encoder.put(message.bytes.map_or(0, |bytes| bytes.0.saturating_add(1)));
        }
        encoder.0
    }

    /// What another process has encoded.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let mut matched = Self {
            matched: reader.get()?,
            cancelled: reader.get()?,
            empty_self: reader.get()?,
            dropped_bytes: reader.get()?,
            unmatched: Unmatched { sends: reader.get()?, receives: reader.get()?, first: Vec::new() },
        };
        while reader.more() {
            let kind = if reader.get()? == 0 { UnmatchedKind::Send } else { UnmatchedKind::Receive };
            matched.unmatched.first.push(UnmatchedMessage {
                kind,
                task: Rank(reader.get_u32()?),
                peer: reader.get()?.checked_sub(1).map(|peer| Rank(peer as u32)),
                tag: reader.get()?.checked_sub(1).map(|tag| tag as u32 as i32),
                bytes: reader.get()?.checked_sub(1).map(Bytes),
            });
        }
        Ok(matched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vef_format::units::Nanos;

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
        assert_eq!(spent, Spent { total: 2000, waiting: 15, polling: 48, awaited: 0, mpi: 960 });
        assert_eq!(spent.computing(), 2000 - 1023);
        assert_eq!(Spent::of(5, &calls).computing(), 0);
    }
}
