//! Time-independent text traces in MinI's format: one file for each rank, one line for each call, no times.
//!
//! ```text
//! 0 init 1
//! Phase round0 start.
//! 0 Irecv 3 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD
//! 0 send 1 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD
//! 0 wait
//! Phase round0 end.
//! 0 Comm split. color=0, key=0.New comm mini_comm_0_0 of size 4
//! 0 allReduce 1 (of 4 bytes) of type 1 on comm mini_comm_0_0 1
//! Comm mini_comm_0_0 free.
//! 0 finalize
//! ```
//!
//! The first number is the caller's rank in `MPI_COMM_WORLD`; peers and roots are ranks of the communicator. Format after
//! "MinI" (diploma thesis, NTUA), §3.3.

use crate::operation::Operation;

/// The file beside the ranks' traces with the number of ranks. It is not part of MinI's format.
pub const RANKS_FILE: &str = "ranks";

/// Names of the calls that complete requests or probe; they have no further fields.
pub const COMPLETIONS: [(&str, &str); 8] = [
    ("MPI_Wait", "wait"),
    ("MPI_Waitall", "waitall"),
    ("MPI_Waitany", "waitany"),
    ("MPI_Waitsome", "waitsome"),
    ("MPI_Test", "test"),
    ("MPI_Testall", "testall"),
    ("MPI_Testany", "testany"),
    ("MPI_Testsome", "testsome"),
];

/// Names of the calls that send.
pub const SENDS: [(&str, &str); 10] = [
    ("MPI_Send", "send"),
    ("MPI_Bsend", "bsend"),
    ("MPI_Ssend", "ssend"),
    ("MPI_Rsend", "rsend"),
    ("MPI_Isend", "Isend"),
    ("MPI_Ibsend", "Ibsend"),
    ("MPI_Issend", "Issend"),
    ("MPI_Irsend", "Irsend"),
    ("MPI_Sendrecv", "Sendrecv"),
    ("MPI_Isendrecv", "Isendrecv"),
];

/// Names of the calls that receive.
pub const RECEIVES: [(&str, &str); 2] = [("MPI_Recv", "recv"), ("MPI_Irecv", "Irecv")];

/// The name of a collective operation; non-blocking ones have the prefix `I`.
pub const fn collective_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Bcast => "bcast",
        Operation::Reduce => "reduce",
        Operation::Allreduce => "allReduce",
        Operation::Gather => "gather",
        Operation::Scatter => "scatter",
        Operation::Allgather => "allGather",
        Operation::Barrier => "barrier",
        Operation::Alltoall => "allToAll",
        Operation::Gatherv => "gatherv",
        Operation::Scatterv => "scatterv",
        Operation::Allgatherv => "allGatherv",
        Operation::Alltoallv => "allToAllv",
        Operation::Alltoallw => "allToAllw",
        Operation::ReduceScatter => "reduceScatter",
        Operation::ReduceScatterBlock => "reduceScatterBlock",
        Operation::Scan => "scan",
        Operation::Exscan => "exscan",
    }
}

/// Code of a derived datatype with gaps; all other codes are contiguous datatypes.
pub const NOT_CONTIGUOUS: u32 = 101;

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Without amounts: init, waits, barriers, freed communicators, cycle counts.
    Other,
    /// A phase begins or ends.
    Phase {
        /// Whether it begins.
        start: bool,
        /// Its name.
        name: &'a str,
    },
    /// A new communicator of the caller.
    Communicator {
        /// The caller's rank in `MPI_COMM_WORLD`.
        caller: u32,
        /// Its name.
        name: &'a str,
        /// Number of members.
        size: u32,
    },
    /// A message to or from a peer.
    Message(Message<'a>),
    /// A collective operation.
    Collective(Collective<'a>),
}

/// A point-to-point line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The first field, a rank in `MPI_COMM_WORLD`: the caller, or in the second line of a `Sendrecv` the sender.
    pub first: u32,
    /// Name of the call.
    pub call: &'a str,
    /// Rank of the peer in the communicator; -1: unknown.
    pub peer: i64,
    /// Bytes.
    pub bytes: u64,
    /// Whether the datatype is contiguous.
    pub contiguous: bool,
    /// Name of the communicator.
    pub comm: &'a str,
}

impl Message<'_> {
    /// Whether the first field is the sender.
    pub fn is_send(&self) -> bool {
        SENDS.iter().any(|(_, name)| *name == self.call)
    }
}

/// Bytes that a collective moves between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Load {
    /// The same for all processes.
    Same(u64),
    /// Least, median and greatest of all processes.
    Spread(u64, u64, u64),
}

/// A collective line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective<'a> {
    /// The caller's rank in `MPI_COMM_WORLD`.
    pub caller: u32,
    /// Name of the call.
    pub call: &'a str,
    /// Bytes.
    pub load: Load,
    /// The root's rank in the communicator.
    pub root: Option<u32>,
    /// Whether both datatypes are contiguous.
    pub contiguous: bool,
    /// Name of the communicator.
    pub comm: &'a str,
    /// With a root: the caller's rank in the communicator, except in `MPI_COMM_WORLD`. Without: the number of the call among
    /// such calls on the communicator, from 1.
    pub last: Option<u64>,
}

impl Line<'_> {
    /// Parses a line without its end.
    ///
    /// # Errors
    /// The problem with the line.
    pub fn parse(text: &str) -> Result<Line<'_>, &'static str> {
        if let Some(phase) = text.strip_prefix("Phase ") {
            let phase = phase.strip_suffix('.').ok_or("a phase's line ends in a full stop")?;
            return match (phase.strip_suffix(" start"), phase.strip_suffix(" end")) {
                (Some(name), _) => Ok(Line::Phase { start: true, name }),
                (_, Some(name)) => Ok(Line::Phase { start: false, name }),
                _ => Err("a phase starts or ends"),
            };
        }
        if text.starts_with("Comm ") {
            return Ok(Line::Other);
        }
        let (first, rest) = text.split_once(' ').ok_or("one word")?;
        let first: u32 = first.parse().map_err(|_| "the first field is not a rank")?;
        if rest.starts_with("Comm ") {
            return communicator(first, rest);
        }
        let (call, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if SENDS.iter().chain(&RECEIVES).any(|(_, name)| *name == call) {
            return message(first, call, rest).map(Line::Message);
        }
        if rest.contains(" bytes) ") {
            collective(first, call, rest).map(Line::Collective)
        } else {
            Ok(Line::Other)
        }
    }
}

/// `Comm split. color=0, key=0.New comm NAME of size 4`.
fn communicator(caller: u32, text: &str) -> Result<Line<'_>, &'static str> {
    let (_, made) = text.split_once("New comm ").ok_or("no new communicator")?;
    let (name, size) = made.rsplit_once(" of size ").ok_or("a communicator without a size")?;
    let size = size.parse().map_err(|_| "the size of a communicator is not a number")?;
    Ok(Line::Communicator { caller, name, size })
}

/// `3 1 (of 4 bytes) 1 on comm NAME`.
fn message<'a>(first: u32, call: &'a str, text: &'a str) -> Result<Message<'a>, &'static str> {
    let (counts, rest) = text.split_once(" (of ").ok_or("no datatype's size")?;
    let (peer, count) = counts.split_once(' ').ok_or("peer and count are missing")?;
    let (size, rest) = rest.split_once(" bytes) ").ok_or("no datatype's size")?;
    let (code, comm) = rest.split_once(" on comm ").ok_or("no communicator")?;
    Ok(Message {
        first,
        call,
        peer: peer.parse().map_err(|_| "the peer is not a rank")?,
        bytes: product(count, size)?,
        contiguous: is_contiguous(code)?,
        comm,
    })
}

/// `1 (of 4 bytes) [ROOT ]of type 1 on comm NAME[ NUMBER]`, or `min=1 median=2 max=3 (of …`.
fn collective<'a>(caller: u32, call: &'a str, text: &'a str) -> Result<Collective<'a>, &'static str> {
    let (counts, rest) = text.split_once(" (of ").ok_or("no datatype's size")?;
    let (size, rest) = rest.split_once(" bytes) ").ok_or("no datatype's size")?;
    let load = match counts.strip_prefix("min=") {
        None => Load::Same(product(counts, size)?),
        Some(counts) => {
            let (least, counts) = counts.split_once(" median=").ok_or("no median")?;
            let (median, most) = counts.split_once(" max=").ok_or("no maximum")?;
            Load::Spread(product(least, size)?, product(median, size)?, product(most, size)?)
        }
    };
    let (kind, place) = rest.split_once(" on comm ").ok_or("no communicator")?;
    let (root, types) = match kind.strip_prefix("of ") {
        Some(types) => (None, types),
        None => {
            let (root, types) = kind.split_once(" of ").ok_or("no datatype")?;
            (Some(root.parse().map_err(|_| "the root is not a rank")?), types)
        }
    };
    let codes = types.strip_prefix("types ").or_else(|| types.strip_prefix("type ")).ok_or("no datatype")?;
    let mut contiguous = true;
    for code in codes.split(", ") {
        contiguous &= is_contiguous(code)?;
    }
    // Communicator names contain no blank.
    let (comm, last) = match place.split_once(' ') {
        None => (place, None),
        Some((comm, last)) => (comm, Some(last.parse().map_err(|_| "the last field is not a number")?)),
    };
    Ok(Collective { caller, call, load, root, contiguous, comm, last })
}

fn product(count: &str, size: &str) -> Result<u64, &'static str> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| "a count is not a number");
    number(count)?.checked_mul(number(size)?).ok_or("more bytes than fit 64 bits")
}

fn is_contiguous(code: &str) -> Result<bool, &'static str> {
    code.parse::<u32>().map(|code| code != NOT_CONTIGUOUS).map_err(|_| "the datatype's code is not a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_format() {
        for line in [
            "0 init 1",
            "0 wait",
            "Comm mini_comm_0_0 free.",
            "0 finalize",
            "3 barrier on comm X",
            "0 compute 17",
        ] {
            assert_eq!(Line::parse(line), Ok(Line::Other), "{line}");
        }
        assert_eq!(Line::parse("Phase a b end."), Ok(Line::Phase { start: false, name: "a b" }));
        assert_eq!(
            Line::parse("1 Comm split. color=1, key=1.New comm mini_comm_0_1 of size 4"),
            Ok(Line::Communicator { caller: 1, name: "mini_comm_0_1", size: 4 })
        );
        let Ok(Line::Message(message)) = Line::parse("0 Irecv 3 2 (of 4 bytes) 101 on comm W") else {
            panic!()
        };
        assert_eq!(
            (message.peer, message.bytes, message.contiguous, message.is_send()),
            (3, 8, false, false)
        );
        let Ok(Line::Collective(reduce)) = Line::parse("4 allReduce 1 (of 4 bytes) of type 1 on comm c 12")
        else {
            panic!()
        };
        assert_eq!(
            (reduce.load, reduce.root, reduce.last, reduce.comm),
            (Load::Same(4), None, Some(12), "c")
        );
        let text = "2 gatherv min=1 median=2 max=4 (of 8 bytes) 3 of types 0, 101 on comm MPI_COMM_WORLD";
        let Ok(Line::Collective(gather)) = Line::parse(text) else { panic!() };
        assert_eq!((gather.load, gather.root, gather.last), (Load::Spread(8, 16, 32), Some(3), None));
        assert!(!gather.contiguous);
    }

    #[test]
    fn what_is_garbled_is_an_error() {
        for line in [
            "",
            "send",
            "x send 1 1 (of 4 bytes) 1 on comm W",
            "0 send 1 (of 4 bytes) 1 on comm W",
            "0 send 1 1 (of 4 bytes) 1 on",
            "0 send 1 99999999999999999999 (of 4 bytes) 1 on comm W",
            "0 send 1 9999999999999999999 (of 4 bytes) 1 on comm W",
            "0 allReduce 1 (of 4 bytes) of kind 1 on comm W 1",
            "0 gatherv min=1 max=4 (of 8 bytes) 3 of type 0 on comm W",
            "Phase x",
            "0 Comm split. color=0",
        ] {
            assert!(Line::parse(line).is_err(), "{line}");
        }
    }
}
