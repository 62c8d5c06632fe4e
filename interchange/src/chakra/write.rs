//! Exports a trace: a file of nodes for each rank, and `groups.json` with the members of the communicators.
//!
//! The nodes are those of a schedule: computing, sends, receives. All-reduce, all-gather, all-to-all and reduce-scatter stay collectives if
//! all members have one size, because ASTRA-sim carries these out; all others become messages. Times are whole µs, and each
//! carries its remainder to the next of its rank.

use super::groups;
use super::node::kind;
use super::protobuf::Encoder;
use crate::export::{
    Collective, ExportError, ExportOptions, ExportProblem, Exported, Loaded, NewDirectory, Operations, Sink,
};
use crate::format::Progress;
use crate::goal::What;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use vef_format::ids::CommId;
use vef_format::operation::{OpCodes, Operation};
use vef_format::record::LocalCollective;

/// The version of the schema.
const VERSION: &[u8] = b"0.0.4";

/// Numbers of the types of an attribute's value.
mod value {
    pub(super) const INT32: u64 = 7;
    pub(super) const INT64: u64 = 9;
    pub(super) const BOOL: u64 = 27;
    pub(super) const STRING: u64 = 29;
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Computing { micros: u64 },
    Send { bytes: u64, to: u32, tag: u32 },
    Receive { bytes: u64, from: u32, tag: u32 },
    Collective { comm_type: u64, bytes: u64, comm: Option<CommId> },
}

/// The nodes of a rank.
#[derive(Debug, Default)]
struct Nodes {
    acts: Vec<Act>,
    /// The second node depends on the first.
    requires: Vec<(u32, u32)>,
    /// Nanoseconds that the next computation begins with.
    carried: u64,
    /// The communicator that stands for all ranks.
    world: Option<CommId>,
    /// The communicators of the collectives.
    used: BTreeSet<CommId>,
}

/// The `comm_type` of a collective that stays one.
fn comm_type(operation: Operation) -> Option<u64> {
    match operation {
        Operation::Allreduce => Some(0),
        Operation::Allgather => Some(2),
        Operation::Alltoall => Some(6),
        Operation::ReduceScatterBlock => Some(7),
        Operation::Barrier
        | Operation::Bcast
        | Operation::Reduce
        | Operation::Gather
        | Operation::Gatherv
        | Operation::Scatter
        | Operation::Scatterv
        | Operation::Allgatherv
        | Operation::Alltoallv
        | Operation::Alltoallw
        | Operation::ReduceScatter
        | Operation::Scan
        | Operation::Exscan => None,
    }
}

impl Sink for Nodes {
    fn clear(&mut self) {
        self.acts.clear();
        self.requires.clear();
        self.carried = 0;
    }

    fn add(&mut self, _: u32, what: What) -> u32 {
        let act = match what {
            What::Compute { time } => {
                let nanos = self.carried + time.0 / 1000;
                self.carried = nanos % 1000;
                Act::Computing { micros: nanos / 1000 }
            }
            What::Send { bytes, to, tag } => Act::Send { bytes: bytes.0, to, tag },
            // Those of an exported trace have a source and a tag.
            What::Receive { bytes, from, tag } => {
                Act::Receive { bytes: bytes.0, from: from.unwrap_or(0), tag: tag.unwrap_or(0) }
            }
        };
        self.acts.push(act);
        self.acts.len() as u32 - 1
    }

    fn require(&mut self, before: u32, number: u32) {
        self.requires.push((before, number));
    }

    fn collective(&mut self, trace: &Loaded, all: &Collective, part: &LocalCollective) -> Option<u32> {
        let comm_type = comm_type(all.operation)?;
        let ranks = trace.members.get(&part.comm)?.len() as u64;
        let bytes = part.amounts.send.0;
        let one_size = all.parts.iter().all(|(_, amounts)| *amounts == part.amounts);
        if !one_size || all.operation == Operation::ReduceScatterBlock && !bytes.is_multiple_of(ranks) {
            return None;
        }
        let comm = (self.world != Some(part.comm)).then_some(part.comm);
        self.used.extend(comm);
        self.acts.push(Act::Collective { comm_type, bytes, comm });
        Some(self.acts.len() as u32 - 1)
    }

    fn len(&self) -> usize {
        self.acts.len()
    }
}

/// The name of a group: 0 stands for all ranks in ASTRA-sim.
fn group(comm: CommId) -> String {
    (u64::from(comm.0) + 1).to_string()
}

impl Nodes {
    /// Writes the file of a rank.
    fn write(&mut self, mut out: impl Write) -> io::Result<()> {
        let mut message = Encoder::default();
        message.bytes(1, VERSION);
        message.write(&mut out)?;
        self.requires.sort_unstable_by_key(|&(_, number)| number);
        let mut requires = &self.requires[..];
        let mut before = Encoder::default();
        for (number, act) in (0..).zip(&self.acts) {
            let of_this = requires.partition_point(|&(_, of)| of <= number);
            before.clear();
            for &(on, _) in &requires[..of_this] {
                before.varint(on.into());
            }
            requires = &requires[of_this..];
            message.clear();
            message.number(1, number.into());
            let (name, kind) = match act {
                Act::Computing { .. } => ("computing", kind::COMP),
                Act::Send { .. } => ("send", kind::SEND),
                Act::Receive { .. } => ("receive", kind::RECV),
                Act::Collective { .. } => ("collective", kind::COLL),
            };
            message.bytes(2, name.as_bytes());
            message.number(3, kind);
            if !before.is_empty() {
                message.bytes(5, before.as_slice());
            }
            if let Act::Computing { micros } = act {
                message.number(7, *micros);
            }
            attribute(&mut message, "is_cpu_op", value::BOOL, 0);
            match *act {
                Act::Computing { .. } => {}
                Act::Send { bytes, to, tag } => {
                    attribute(&mut message, "comm_size", value::INT64, bytes);
                    attribute(&mut message, "comm_dst", value::INT32, to.into());
                    attribute(&mut message, "comm_tag", value::INT32, tag.into());
                }
                Act::Receive { bytes, from, tag } => {
                    attribute(&mut message, "comm_size", value::INT64, bytes);
                    attribute(&mut message, "comm_src", value::INT32, from.into());
                    attribute(&mut message, "comm_tag", value::INT32, tag.into());
                }
                Act::Collective { comm_type, bytes, comm } => {
                    attribute(&mut message, "comm_type", value::INT64, comm_type);
                    attribute(&mut message, "comm_size", value::INT64, bytes);
                    if let Some(comm) = comm {
                        let mut name = Encoder::default();
                        name.bytes(1, b"pg_name");
                        name.bytes(value::STRING, group(comm).as_bytes());
                        message.bytes(10, name.as_slice());
                    }
                }
            }
            message.write(&mut out)?;
        }
        out.flush()
    }
}

/// Adds an attribute. A value of 0 is written, too: it is one of several.
fn attribute(message: &mut Encoder, name: &str, kind: u64, number: u64) {
    let mut attribute = Encoder::default();
    attribute.bytes(1, name.as_bytes());
    attribute.number_or_zero(kind, number);
    message.bytes(10, attribute.as_slice());
}

pub(super) fn write(
    from: &Path,
    codes: &OpCodes,
    to: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let trace = Loaded::read(from, codes)?;
    let ranks = trace.header.tasks;
    let mut exported = Exported { ranks, ..Exported::default() };
    let failed = |error: io::Error| ExportProblem::from(error).of_file(to);
    let new = NewDirectory::create(to).map_err(failed)?;
    let mut nodes = Nodes { world: trace.world(), ..Nodes::default() };
    for rank in 0..ranks {
        progress.set(rank.into(), ranks.into());
        Operations::of(&trace, rank, options, &mut nodes, &mut exported)?;
        let file = File::create(new.path().join(format!("trace.{rank}.et"))).map_err(failed)?;
        nodes.write(BufWriter::with_capacity(1 << 20, file)).map_err(failed)?;
    }
    let members = |comm: &CommId| {
        let members: Vec<u32> = trace.members[comm].iter().map(|member| member.0).collect();
        (group(*comm), members)
    };
    let groups: BTreeMap<String, Vec<u32>> = nodes.used.iter().map(members).collect();
    if !groups.is_empty() {
        let text = serde_json::to_vec(&groups).map_err(|error| failed(error.into()))?;
        std::fs::write(new.path().join(groups::FILE), text).map_err(failed)?;
    }
    new.finish().map_err(failed)?;
    exported.remarks.push("times are whole µs; each rank's sum is exact but for less than 1 µs".to_owned());
    Ok(exported)
}
