//! What a message under way is: everything that the trace says of it, looked up by its id. Simulators that do not ask pay nothing.

use crate::engine::Engine;
use crate::error::ReplayError;
use crate::live::{Of, UNKNOWN};
use crate::message::LiveId;
use collectives::Algorithm;
use std::sync::Arc;
use vef_format::ids::{CollectiveId, CommId, MessageId, Rank};
use vef_format::operation::Operation;

/// What a message is ([`Engine::describe`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Which of the traces, from 0.
    pub job: u32,
    /// The sending task; `None` of a collective's message that another partition has exported before a task of this one entered the collective.
    pub src: Option<Rank>,
    /// The receiving task.
    pub dst: Rank,
    /// End node of the sender; `None` as `src`.
    pub src_node: Option<u32>,
    /// End node of the receiver.
    pub dst_node: u32,
    /// The record of the sender that sends it, from 0; `None` where another partition or a record of number 2^32 or more has sent it.
    pub record: Option<u64>,
    /// Whether it is a line of the trace, or a step of a collective.
    pub origin: Origin,
    /// The MPI function that made the record, if the trace records it.
    pub function: Option<Arc<str>>,
    /// The innermost phase of the program in which it is sent, if the trace records phases.
    pub phase: Option<Arc<str>>,
}

/// Where a message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A point-to-point line of the trace.
    Line {
        /// Its id in the trace.
        id: MessageId,
        /// The tag with which the program sent it, if the trace records that.
        tag: Option<i32>,
    },
    /// A step of a collective.
    Step {
        /// Which collective of the trace.
        collective: CollectiveId,
        /// More of it; `None` as [`Description::src`].
        step: Option<Step>,
    },
}

/// A message as a step of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The communicator.
    pub comm: CommId,
    /// The operation.
    pub operation: Operation,
    /// The algorithm that plays it.
    pub algorithm: Algorithm,
    /// The root, a rank of the communicator; 0 of an operation without one.
    pub root: u32,
    /// The sender's rank of the communicator.
    pub src: u32,
    /// The receiver's rank of the communicator.
    pub dst: u32,
    /// Number of the message among those that its sender sends in this collective, from 0; `None` where another partition has sent it.
    pub number: Option<u32>,
}

impl Engine {
    /// Everything that the trace says of a message that has started and is not delivered.
    ///
    /// Tag, function and phase come from the container's notes, which are read when they are first asked for; 256 of each task are kept.
    ///
    /// # Errors
    /// The id names no such message, or the notes cannot be read; the replay continues in both cases.
    pub fn describe(&mut self, id: LiveId) -> Result<Description, ReplayError> {
        let Some(&flight) = self.live.get(id) else { return Err(ReplayError::NotLive { id }) };
        let receiver = &self.sequences[flight.receiver as usize];
        let (job, dst) = (receiver.job, receiver.rank);
        let (src, record, mut origin) = match flight.of {
            Of::Line { id, record, .. } => {
                let src = self.sequences[flight.src as usize].rank;
                (Some(src), record, Origin::Line { id: MessageId(id), tag: None })
            }
            Of::Collective { open, number, record } => {
                let (src, origin) = self.step(open, flight.src, flight.dst, Some(number));
                (Some(src), record, origin)
            }
            Of::Imported(id) => match self.jobs[job as usize].open.get(&id) {
                Some(&open) => {
                    let (src, origin) = self.step(open, flight.src, flight.dst, None);
                    (Some(src), UNKNOWN, origin)
                }
                None => (None, UNKNOWN, Origin::Step { collective: id, step: None }),
            },
        };
        let record = (record != UNKNOWN).then_some(u64::from(record));
        let label = match (src, record) {
            (Some(src), Some(record)) => {
                self.jobs[job as usize].source.label(src, record).map_err(ReplayError::Notes)?
            }
            _ => Default::default(),
        };
        if let Origin::Line { tag, .. } = &mut origin {
            *tag = label.tag;
        }
        let nodes = &self.live.nodes;
        let first_task = self.jobs[job as usize].first_task as usize;
        Ok(Description {
            job,
            src,
            dst,
            src_node: src.map(|src| nodes[first_task + src.index()]),
            dst_node: nodes[flight.receiver as usize],
            record,
            origin,
            function: label.function,
            phase: label.phase,
        })
    }

    /// The sender, and the step of an open collective.
    fn step(&self, at: u32, src: u32, dst: u32, number: Option<u32>) -> (Rank, Origin) {
        let open = &self.collectives.open[at as usize];
        let sender = self.collectives.groups[open.group as usize].members[src as usize];
        let step = Step {
            comm: open.comm,
            operation: open.operation,
            algorithm: open.choice.algorithm,
            root: open.root,
            src,
            dst,
            number,
        };
        (sender, Origin::Step { collective: open.id, step: Some(step) })
    }
}
