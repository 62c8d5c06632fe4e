//! What C sees of a message that it asks about: `vef_replay_describe` and `vef_engine_describe`.

use crate::border::{self, Versioned};
use replay::{Kind, Origin};
use std::ffi::{CString, c_char};
use std::sync::Arc;

/// Everything that the trace says of a message. Texts are valid until the next call of this kind on the handle, or until it is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Number of the sender's record that sends it, from 0; `UINT64_MAX` if another partition sent it.
    pub record: u64,
    /// Id of the point-to-point line, or of the collective, in the trace.
    pub trace_id: u64,
    /// Which job, from 0.
    pub job: u32,
    /// The sending rank of that job; `UINT32_MAX` if another partition sent it and no rank of this one has entered the collective: then
    /// all fields below but `dst_rank`, `src_node` and `dst_node` are as for point-to-point.
    pub src_rank: u32,
    /// The receiving rank of that job.
    pub dst_rank: u32,
    /// End node of the sender; `UINT32_MAX` with `src_rank`.
    pub src_node: u32,
    /// End node of the receiver.
    pub dst_node: u32,
    /// 0 is point-to-point, others are collective operations (`vef_kind_name`).
    pub kind: u32,
    /// Of a collective the communicator's number in the trace; `UINT32_MAX` of point-to-point.
    pub communicator: u32,
    /// The sender's rank of the communicator; `UINT32_MAX` of point-to-point.
    pub comm_src: u32,
    /// The receiver's rank of the communicator; `UINT32_MAX` of point-to-point.
    pub comm_dst: u32,
    /// The root's rank of the communicator, 0 of a collective without root; `UINT32_MAX` of point-to-point.
    pub root: u32,
    /// Number of the message among those that its sender sends in the collective, from 0; `UINT32_MAX` of point-to-point, or if another
    /// partition sent it.
    pub step: u32,
    /// Whether the trace records the tag.
    pub has_tag: u32,
    /// The tag with which the program sent it; 0 if `has_tag` is.
    pub tag: i32,
    /// The algorithm of the collective; null of point-to-point.
    pub algorithm: *const c_char,
    /// The MPI function of the record; null if the trace does not record it.
    pub function: *const c_char,
    /// The innermost phase of the program in which it was sent; null if there is none.
    pub phase: *const c_char,
}

impl Versioned for Description {}

/// The texts of the last description.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    algorithm: Option<CString>,
    function: Option<CString>,
    phase: Option<CString>,
}

impl Texts {
    /// A description whose texts are kept here.
    pub(crate) fn fill(&mut self, description: &replay::Description) -> Description {
        let replay::Description { job, src, dst, src_node, dst_node, record, origin, .. } = *description;
        let keep = |text: &Option<Arc<str>>| text.as_ref().map(border::owned_text);
        self.function = keep(&description.function);
        self.phase = keep(&description.phase);
        let (trace_id, tag, step) = match origin {
            Origin::Line { id, tag } => (id.0, tag, None),
            Origin::Step { collective, step } => (collective.0, None, step),
        };
        self.algorithm = step.map(|step| border::owned_text(step.algorithm));
        let text = |text: &Option<CString>| text.as_deref().map_or(std::ptr::null(), border::text);
        const NONE: u32 = u32::MAX;
        Description {
            record: record.unwrap_or(u64::MAX),
            trace_id,
            job,
            src_rank: src.map_or(NONE, |rank| rank.0),
            dst_rank: dst.0,
            src_node: src_node.unwrap_or(NONE),
            dst_node,
            kind: step.map_or(Kind::PointToPoint, |step| Kind::Collective(step.operation)).index() as u32,
            communicator: step.map_or(NONE, |step| step.comm.0),
            comm_src: step.map_or(NONE, |step| step.src),
            comm_dst: step.map_or(NONE, |step| step.dst),
            root: step.map_or(NONE, |step| step.root),
            step: step.and_then(|step| step.number).unwrap_or(NONE),
            has_tag: tag.is_some().into(),
            tag: tag.unwrap_or(0),
            algorithm: text(&self.algorithm),
            function: text(&self.function),
            phase: text(&self.phase),
        }
    }
}
