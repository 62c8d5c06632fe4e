//! Exports a trace: a file of nodes for each rank, and `groups.json` with the members of the communicators.
//!
//! The nodes are those of a schedule: computing, sends, receives. All-reduce, all-gather, all-to-all and reduce-scatter stay collectives if
//! all members have one size, because ASTRA-sim carries these out; all others become messages. Times are whole µs, and each
//! carries its remainder to the next of its rank.

use super::groups;
use super::node::kind;
use super::protobuf::Encoder;
use crate::export::{Collective, Export, ExportError, Exported, Loaded, Operations, Sink};
use crate::goal::What;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use vef_format::ids::CommId;
use vef_format::new_directory::NewDirectory;
use vef_format::operation::{Amounts, Operation};

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
    /// A node, and a part of it.
    message: Encoder,
    part: Encoder,
    attributes: Attributes,
}

/// What is the same in all nodes, as it is encoded: the fields of name and type of each kind of node, the whole field of the attribute
/// `is_cpu_op`, which is always false, and the other attributes but for their numbers.
#[derive(Debug)]
struct Attributes {
    computing: Vec<u8>,
    send: Vec<u8>,
    receive: Vec<u8>,
    collective: Vec<u8>,
    is_cpu_op: Vec<u8>,
    size: Vec<u8>,
    to: Vec<u8>,
    from: Vec<u8>,
    tag: Vec<u8>,
    comm_type: Vec<u8>,
}

impl Default for Attributes {
    fn default() -> Self {
        let encoded = |name: &str, kind: u64| {
            let mut attribute = Encoder::default();
            attribute.bytes(1, name.as_bytes());
            // The number is written even if it is 0: it is one of several kinds of values.
            attribute.varint(kind << 3);
            let mut field = Encoder::default();
            field.bytes(10, attribute.as_slice());
            field.as_slice().to_vec()
        };
        let head = |name: &str, kind: u64| {
            let mut node = Encoder::default();
            node.bytes(2, name.as_bytes());
            node.number(3, kind);
            node.as_slice().to_vec()
        };
        let mut is_cpu_op = Encoder::default();
        is_cpu_op.field_and_number(&encoded("is_cpu_op", value::BOOL), 0);
        Self {
            computing: head("computing", kind::COMP),
            send: head("send", kind::SEND),
            receive: head("receive", kind::RECV),
            collective: head("collective", kind::COLL),
            is_cpu_op: is_cpu_op.as_slice().to_vec(),
            size: encoded("comm_size", value::INT64),
            to: encoded("comm_dst", value::INT32),
            from: encoded("comm_src", value::INT32),
            tag: encoded("comm_tag", value::INT32),
            comm_type: encoded("comm_type", value::INT64),
        }
    }
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

    fn collective(&mut self, trace: &Loaded, all: &Collective, part: Amounts) -> Option<u32> {
        let comm_type = comm_type(all.operation)?;
        let ranks = trace.members.get(&all.comm)?.len() as u64;
        let bytes = part.send.0;
        if !all.has_equal_parts
            || all.operation == Operation::ReduceScatterBlock && !bytes.is_multiple_of(ranks)
        {
            return None;
        }
        let comm = (self.world != Some(all.comm)).then_some(all.comm);
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
        self.message.clear();
        self.message.bytes(1, VERSION);
        self.message.write(&mut out)?;
        self.requires.sort_unstable_by_key(|&(_, number)| number);
        let mut requires = self.requires.iter().peekable();
        for (number, &act) in (0..).zip(&self.acts) {
            self.message.clear();
            self.message.number(1, number.into());
            let names = &self.attributes;
            self.message.fields(match act {
                Act::Computing { .. } => &names.computing,
                Act::Send { .. } => &names.send,
                Act::Receive { .. } => &names.receive,
                Act::Collective { .. } => &names.collective,
            });
            self.part.clear();
            while let Some(&(before, _)) = requires.next_if(|&&(_, of)| of == number) {
                self.part.varint(before.into());
            }
            if !self.part.is_empty() {
                self.message.bytes(5, self.part.as_slice());
            }
            if let Act::Computing { micros } = act {
                self.message.number(7, micros);
            }
            self.message.fields(&names.is_cpu_op);
            match act {
                Act::Computing { .. } => {}
                Act::Send { bytes, to, tag } => {
                    self.message.field_and_number(&names.size, bytes);
                    self.message.field_and_number(&names.to, to.into());
                    self.message.field_and_number(&names.tag, tag.into());
                }
                Act::Receive { bytes, from, tag } => {
                    self.message.field_and_number(&names.size, bytes);
                    self.message.field_and_number(&names.from, from.into());
                    self.message.field_and_number(&names.tag, tag.into());
                }
                Act::Collective { comm_type, bytes, comm } => {
                    self.message.field_and_number(&names.comm_type, comm_type);
                    self.message.field_and_number(&names.size, bytes);
                    if let Some(comm) = comm {
                        self.part.clear();
                        self.part.bytes(1, b"pg_name");
                        self.part.bytes(value::STRING, group(comm).as_bytes());
                        self.message.bytes(10, self.part.as_slice());
                    }
                }
            }
            self.message.write(&mut out)?;
        }
        out.flush()
    }
}

pub(super) fn write(export: &Export<'_>) -> Result<Exported, ExportError> {
    let (trace, failed) = (export.trace, |error| export.failed(error));
    let new = NewDirectory::create(export.to).map_err(failed)?;
    let mut nodes = Nodes { world: trace.world(), ..Nodes::default() };
    let mut operations = Operations::new(export);
    for rank in export.ranks() {
        operations.task(rank, &mut nodes)?;
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
    let mut exported = operations.exported;
    exported.remarks.push("times are whole µs; each rank's sum is exact but for less than 1 µs".to_owned());
    Ok(exported)
}
