//! Collectives that the network carries out itself, such as reductions in switches: `offload:LATENCY` instead of messages.
//!
//! Data streams through the network: a member has its result LATENCY after the last member of which it needs data has entered, and the
//! time of the most bytes that one of these sends or that it receives over the link of a node. A root that only sends, and other members of
//! an operation with a root that receives, are complete when their bytes are sent. The links of the network are not used.

use std::collections::HashMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use replay::{Bytes, Collective, CollectiveEvents, CollectiveId, CommId, EventOn, Picos, Queue};
use vef_format::operation::{Operation, Root};

use crate::model::OutOfTime;
use crate::quantity::{Bandwidth, QuantityError, parse_bytes, parse_time};

/// How collectives are carried out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Collectives {
    /// By messages between the members.
    #[default]
    Messages,
    /// By the network itself, those that are chosen; others by messages.
    Offload(Offload),
}

/// Which collectives the network carries out, and how fast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offload {
    /// From the last entry to the first byte of a result.
    pub latency: Picos,
    /// Which collectives; always for each entry.
    pub which: CollectiveEvents,
}

impl Offload {
    /// The operations that are carried out if none are named: those that switches are made for.
    pub const USUAL: [Operation; 4] =
        [Operation::Barrier, Operation::Bcast, Operation::Reduce, Operation::Allreduce];

    /// [`Offload::USUAL`] of any size and number of members.
    pub fn new(latency: Picos) -> Self {
        let operations = Self::USUAL.to_vec();
        Self {
            latency,
            which: CollectiveEvents { operations, on: EventOn::EachEntry, ..CollectiveEvents::default() },
        }
    }
}

/// What is wrong with a text of [`Collectives`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OffloadError {
    /// It is neither of the two forms.
    #[error(
        "write messages, or offload:LATENCY and any of ,ops=NAME+NAME… ,bytes=FROM-TO ,ranks=FROM-TO ,comms=N+N…"
    )]
    Form,
    /// The latency is none.
    #[error("{text:?}: {error}")]
    Latency {
        /// As it is written.
        text: String,
        /// What is wrong.
        error: QuantityError,
    },
    /// There is no such operation.
    #[error("no collective operation is called {0:?}")]
    Operation(String),
    /// A range is none, or it is empty.
    #[error("{0:?}: write FROM-TO, FROM- or -TO, and nothing that is above TO as FROM")]
    Range(String),
    /// A number of a communicator is none.
    #[error("{0:?} is not the number of a communicator")]
    Comm(String),
}

impl FromStr for Collectives {
    type Err = OffloadError;

    fn from_str(text: &str) -> Result<Self, OffloadError> {
        let mut items = text.trim().split(',');
        let first = items.next().unwrap_or_default();
        let Some(latency) = first.strip_prefix("offload:") else {
            return match text.trim() {
                "messages" => Ok(Self::Messages),
                _ => Err(OffloadError::Form),
            };
        };
        let latency =
            parse_time(latency).map_err(|error| OffloadError::Latency { text: latency.to_owned(), error })?;
        let mut offload = Offload::new(latency);
        for item in items {
            let (key, value) = item.split_once('=').ok_or(OffloadError::Form)?;
            let which = &mut offload.which;
            match key {
                "ops" => {
                    let named =
                        |name| Operation::named(name).ok_or_else(|| OffloadError::Operation(name.to_owned()));
                    which.operations = value.split('+').map(named).collect::<Result<_, _>>()?;
                }
                "bytes" => {
                    which.bytes = range(value, u64::MAX, |text| parse_bytes(text).ok().map(|bytes| bytes.0))?;
                }
                "ranks" => which.ranks = range(value, u32::MAX, |text| text.parse().ok())?,
                "comms" => {
                    let comm = |text: &str| {
                        text.parse().map(CommId).map_err(|_| OffloadError::Comm(text.to_owned()))
                    };
                    which.comms = Some(value.split('+').map(comm).collect::<Result<_, _>>()?);
                }
                _ => return Err(OffloadError::Form),
            }
        }
        Ok(Self::Offload(offload))
    }
}

/// A range from `FROM-TO`, `FROM-` or `-TO`.
fn range<T: Copy + Default + PartialOrd>(
    text: &str,
    most: T,
    number: impl Fn(&str) -> Option<T>,
) -> Result<RangeInclusive<T>, OffloadError> {
    let end = |text: &str, otherwise| if text.is_empty() { Some(otherwise) } else { number(text) };
    let ends = text.split_once('-').and_then(|(from, to)| Some(end(from, T::default())?..=end(to, most)?));
    ends.filter(|ends| !ends.is_empty() && text != "-").ok_or_else(|| OffloadError::Range(text.to_owned()))
}

impl fmt::Display for Collectives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Offload(Offload { latency, which }) = self else { return f.write_str("messages") };
        let names: Vec<&str> = which.operations.iter().map(|operation| operation.key()).collect();
        write!(f, "offload:{}ps,ops={}", latency.0, names.join("+"))?;
        if which.bytes != (0..=u64::MAX) {
            write!(f, ",bytes={}-{}", which.bytes.start(), which.bytes.end())?;
        }
        if which.ranks != (0..=u32::MAX) {
            write!(f, ",ranks={}-{}", which.ranks.start(), which.ranks.end())?;
        }
        if let Some(comms) = &which.comms {
            let numbers: Vec<String> = comms.iter().map(|comm| comm.0.to_string()).collect();
            write!(f, ",comms={}", numbers.join("+"))?;
        }
        Ok(())
    }
}

/// A member's completion, to be reported to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    pub(crate) collective: (u32, CollectiveId),
    pub(crate) member: u32,
}

/// The collectives that the network is carrying out.
#[derive(Debug)]
pub(crate) struct InNetwork {
    latency: Picos,
    /// Of a node's link.
    bandwidth: Bandwidth,
    open: HashMap<(u32, CollectiveId), Open>,
    completions: Queue<Completed>,
    /// Collectives that all members have entered.
    pub(crate) carried_out: u64,
}

/// Whose data a member needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Own,
    Root,
    /// That of members up to itself.
    Before,
    All,
}

impl Needs {
    fn of(operation: Operation, is_root: bool) -> Self {
        match (operation.root(), operation) {
            (Some(Root::Sends), _) if is_root => Self::Own,
            (Some(Root::Sends), _) => Self::Root,
            (Some(Root::Receives), _) if is_root => Self::All,
            (Some(Root::Receives), _) => Self::Own,
            (None, Operation::Scan | Operation::Exscan) => Self::Before,
            (None, _) => Self::All,
        }
    }
}

/// A collective that not all members have entered.
#[derive(Debug)]
struct Open {
    entries: Vec<Option<Entry>>,
    entered: u32,
    /// Members from the first on that have entered.
    leading: u32,
    /// The data of these.
    before: Data,
    all: Data,
    /// That of the root, once it has entered.
    root: Option<Data>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Picos,
    bytes: [Bytes; 2],
}

/// Data that members give: when the last of them has entered, and the most bytes that one of them sends.
#[derive(Clone, Copy, Debug, Default)]
struct Data {
    at: Picos,
    most: Bytes,
}

impl Data {
    fn with(self, entry: Entry) -> Self {
        Self { at: self.at.max(entry.at), most: self.most.max(entry.bytes[0]) }
    }
}

impl InNetwork {
    pub(crate) fn new(latency: Picos, bandwidth: Bandwidth) -> Self {
        Self { latency, bandwidth, open: HashMap::new(), completions: Queue::new(), carried_out: 0 }
    }

    /// When the next member is complete.
    pub(crate) fn next(&self) -> Option<Picos> {
        self.completions.next()
    }

    /// The next member that is complete, up to `limit`.
    pub(crate) fn pop(&mut self, limit: Picos) -> Option<(Picos, Completed)> {
        self.completions.pop(limit)
    }

    /// A member enters a collective.
    ///
    /// # Errors
    /// A member is complete after the end of time.
    pub(crate) fn enter(&mut self, event: &Collective) -> Result<(), OutOfTime> {
        let Collective { job, id, operation, root, ranks, at, member: Some(member), bytes, .. } = *event
        else {
            return Ok(());
        };
        let open = self.open.entry((job, id)).or_insert_with(|| Open {
            entries: vec![None; ranks as usize],
            entered: 0,
            leading: 0,
            before: Data::default(),
            all: Data::default(),
            root: None,
        });
        let entry = Entry { at, bytes };
        open.entries[member as usize] = Some(entry);
        open.entered += 1;
        open.all = open.all.with(entry);
        // Members that have now what they need.
        let mut ready: Vec<(u32, Data)> = Vec::new();
        match Needs::of(operation, member == root) {
            Needs::Own if operation.root() == Some(Root::Sends) => {
                let data = Data::default().with(entry);
                open.root = Some(data);
                let others =
                    (0..ranks).filter(|other| *other != member && open.entries[*other as usize].is_some());
                ready.extend(others.map(|other| (other, data)));
            }
            Needs::Own | Needs::All => {}
            Needs::Root => ready.extend(open.root.map(|data| (member, data))),
            Needs::Before => {
                while let Some(&Some(entry)) = open.entries.get(open.leading as usize) {
                    open.before = open.before.with(entry);
                    ready.push((open.leading, open.before));
                    open.leading += 1;
                }
            }
        }
        let is_last = open.entered == ranks;
        if is_last {
            let needs_all = |other: &u32| Needs::of(operation, *other == root) == Needs::All;
            ready.extend((0..ranks).filter(needs_all).map(|other| (other, open.all)));
        }
        let collective = (job, id);
        if Needs::of(operation, member == root) == Needs::Own {
            let sent = self.bandwidth.time(bytes[0]).and_then(|time| at.checked_add(time));
            let sent = sent.ok_or(OutOfTime { bytes: bytes[0] })?;
            self.completions.push(sent, Completed { collective, member });
        }
        for (member, data) in ready {
            let Some(Entry { at, bytes }) = open.entries[member as usize] else { continue };
            let most = data.most.max(bytes[1]);
            let result = self.bandwidth.time(most).and_then(|time| time.checked_add(self.latency));
            let result =
                result.and_then(|time| data.at.checked_add(time)).ok_or(OutOfTime { bytes: most })?;
            self.completions.push(result.max(at), Completed { collective, member });
        }
        if is_last {
            self.open.remove(&collective);
            self.carried_out += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What members enter, and when they are complete: 1000 bytes take 1 µs, the latency is 2 µs.
    fn completions(operation: Operation, root: u32, entries: &[(u32, u64, [u64; 2])]) -> Vec<(u32, u64)> {
        let mut network = InNetwork::new(Picos(2_000_000), "1GB/s".parse().unwrap());
        for &(member, at, bytes) in entries {
            network
                .enter(&Collective {
                    job: 0,
                    id: CollectiveId(7),
                    comm: CommId(0),
                    operation,
                    root,
                    ranks: entries.len() as u32,
                    at: Picos(at * 1_000_000),
                    member: Some(member),
                    bytes: bytes.map(Bytes),
                })
                .unwrap();
        }
        assert!(network.open.is_empty());
        let popped = std::iter::from_fn(|| network.pop(Picos::MAX));
        popped.map(|(at, completed)| (completed.member, at.0 / 1_000_000)).collect()
    }

    #[test]
    fn members_wait_for_those_of_which_they_need_data() {
        use Operation::{Allreduce, Barrier, Bcast, Reduce, Scan};
        let none = [0, 0];
        assert_eq!(
            completions(Barrier, 0, &[(0, 1, none), (2, 9, none), (1, 3, none)]),
            [(0, 11), (1, 11), (2, 11)]
        );
        let both = [3000, 3000];
        assert_eq!(completions(Allreduce, 0, &[(0, 1, both), (1, 4, both)]), [(0, 9), (1, 9)]);
        // The root is complete when it has sent; who comes late finds the data there.
        let bcast = [(2, 0, [0, 1000]), (1, 5, [1000, 0]), (0, 20, [0, 1000])];
        assert_eq!(completions(Bcast, 1, &bcast), [(1, 6), (2, 8), (0, 20)]);
        let reduce = [(0, 0, [1000, 0]), (1, 1, [0, 1000]), (2, 9, [1000, 0])];
        assert_eq!(completions(Reduce, 1, &reduce), [(0, 1), (2, 10), (1, 12)]);
        assert_eq!(
            completions(Scan, 0, &[(1, 1, none), (0, 3, none), (2, 0, none)]),
            [(0, 5), (1, 5), (2, 5)]
        );
        assert_eq!(
            completions(Scan, 0, &[(0, 0, none), (2, 1, none), (1, 9, none)]),
            [(0, 2), (1, 11), (2, 11)]
        );
    }

    #[test]
    fn texts_read_back() {
        for (text, shown) in [
            ("messages", "messages"),
            ("offload:2us", "offload:2000000ps,ops=barrier+bcast+reduce+allreduce"),
            (
                "offload:1ns,ops=Allreduce+reduce_scatter,bytes=-4KiB",
                "offload:1000ps,ops=allreduce+reduce-scatter,bytes=0-4096",
            ),
            (
                "offload:0ps,ranks=3-,comms=0+7",
                "offload:0ps,ops=barrier+bcast+reduce+allreduce,ranks=3-4294967295,comms=0+7",
            ),
        ] {
            let collectives: Collectives = text.parse().unwrap();
            assert_eq!(collectives.to_string(), shown);
            assert_eq!(shown.parse(), Ok(collectives));
        }
        for (text, says) in [
            ("", "write messages, or offload:LATENCY"),
            ("offload", "write messages, or offload:LATENCY"),
            ("offload:", "\"\": expected a decimal number"),
            ("offload:2", "\"2\": unknown or missing unit"),
            ("offload:2us,", "write messages, or offload:LATENCY"),
            ("offload:2us,op=bcast", "write messages, or offload:LATENCY"),
            ("offload:2us,ops=", "no collective operation is called \"\""),
            ("offload:2us,ops=Sum", "no collective operation is called \"Sum\""),
            ("offload:2us,bytes=4", "\"4\": write FROM-TO"),
            ("offload:2us,bytes=-", "\"-\": write FROM-TO"),
            ("offload:2us,ranks=5-4", "\"5-4\": write FROM-TO"),
            ("offload:2us,comms=x", "\"x\" is not the number of a communicator"),
        ] {
            let error = text.parse::<Collectives>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
