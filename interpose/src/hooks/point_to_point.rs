//! Sends, receives and probes.

use crate::call::{Ended, Hook, Recorded};
use crate::hooks::persistent::keep_template;
use crate::places::Side;
use crate::requests::{PendingRequest, Template};
use mpi_abi::prototypes::{self, Call, Timing};
use mpi_abi::status::Status;
use vef_format::capture::event::{
    self, Action, Completion, Completions, DatatypeId, Detail, Outcome, PostReceive, RequestId,
};
use vef_format::ids::{CommId, CommRank};
use vef_format::units::Bytes;

/// A message as the sending or the receiving arguments of a call describe it.
struct Message {
    comm: CommId,
    peer: i32,
    tag: i32,
    bytes: Bytes,
    datatype: DatatypeId,
}

/// The message of one side of a call; `None`: to or from `MPI_PROC_NULL`, or on a communicator that a trace cannot
/// represent. Such a call gets another record, unless it `is_recorded` already.
fn message(call: &mut Recorded, side: &Side, is_recorded: bool) -> Option<Message> {
    let args = call.args;
    let peer = args.int(side.peer.place());
    if peer == call.abi().constants.proc_null {
        return None;
    }
    let comm = call.comm(args.handle(args.at.comm.place()));
    let datatype = call.datatype(args.handle(side.datatype.place()));
    let bytes = datatype.bytes(args.number(side.count.place()));
    if comm.foreign {
        if !is_recorded {
            call.put_other(bytes, Detail::None);
        }
        return None;
    }
    Some(Message { comm: comm.id, peer, tag: args.int(side.tag.place()), bytes, datatype: datatype.id })
}

fn sending(call: &mut Recorded, request: Option<RequestId>) -> Option<event::Send> {
    let at = call.args.at;
    let Message { comm, peer, tag, bytes, datatype } = message(call, &at.send, false)?;
    let mode = mode(call.call());
    Some(event::Send { comm, dest: CommRank(peer as u32), tag, bytes, datatype, mode, request })
}

/// The send mode; the send of an exchange is standard.
fn mode(call: Call) -> event::SendMode {
    match call.detail() {
        prototypes::Detail::Send(mode) => mode,
        _ => event::SendMode::Standard,
    }
}

/// The receive of a call, which may also send.
fn posting(call: &mut Recorded, sends: bool, request: RequestId) -> Option<PostReceive> {
    let at = call.args.at;
    let Message { comm, bytes, datatype, .. } = message(call, &at.recv, sends)?;
    let Sought { source, tag } = Sought::by(call);
    Some(PostReceive { comm, source, tag, bytes, datatype, request })
}

/// The message that a receive or probe asks for; `None`: a wildcard.
struct Sought {
    source: Option<CommRank>,
    tag: Option<i32>,
}

impl Sought {
    fn by(call: &Recorded) -> Self {
        let (args, constants, at) = (&call.args, &call.abi().constants, &call.args.at.recv);
        let (source, tag) = (args.int(at.peer.place()), args.int(at.tag.place()));
        Self {
            source: (source != constants.any_source).then_some(CommRank(source as u32)),
            tag: (tag != constants.any_tag).then_some(tag),
        }
    }

    fn has_wildcard(&self) -> bool {
        self.source.is_none() || self.tag.is_none()
    }

    /// The source and tag of the message that was found.
    fn resolved(&self, status: Option<&Status<'_>>) -> (CommRank, i32) {
        let source = self.source.or(status.map(|status| CommRank(status.source() as u32)));
        (source.unwrap_or_default(), self.tag.or(status.map(|status| status.tag())).unwrap_or_default())
    }
}

/// A posted receive that has received a message.
fn received(call: &Recorded, post: &PostReceive) -> event::Receive {
    let &PostReceive { comm, source, tag, bytes, datatype, .. } = post;
    let (any_source, any_tag) = (source.is_none(), tag.is_none());
    let (source, tag) = Sought { source, tag }.resolved(status(call).as_ref());
    event::Receive { comm, source, tag, any_source, any_tag, bytes, datatype }
}

/// The status of a receive or probe that has succeeded.
fn status(call: &Recorded) -> Option<Status<'static>> {
    // SAFETY: the call has written it.
    unsafe { call.args.status_at(0) }
}

/// Before a blocking receive: supplies a status if it is needed.
fn prepare_status(call: &mut Recorded) {
    if call.call().timing() == Timing::Blocking && Sought::by(call).has_wildcard() {
        call.supply_statuses(1);
        // The source of a wildcard receive does not follow from the arguments.
        call.key = None;
    }
}

/// `MPI_Send` and its variants.
pub(super) struct Send;

impl Hook for Send {
    fn after(&self, call: &mut Recorded) {
        let (timing, request) = (call.call().timing(), call.next_request());
        let request = (timing != Timing::Blocking).then_some(request);
        let send = sending(call, request);
        if timing == Timing::Persistent {
            return keep_template(call, send.map_or(Template::Unrecorded, Template::Send));
        }
        send.into_iter().for_each(|send| call.put_shaped(&Action::Send(send)));
    }
}

/// `MPI_Recv` and its variants.
pub(super) struct Receive;

impl Hook for Receive {
    fn before(&self, call: &mut Recorded) {
        prepare_status(call);
    }

    fn after(&self, call: &mut Recorded) {
        let request = call.next_request();
        let post = posting(call, false, request);
        if call.call().timing() == Timing::Persistent {
            return keep_template(call, post.map_or(Template::Unrecorded, Template::Receive));
        }
        let Some(post) = post else { return };
        match call.call().timing() {
            Timing::Blocking => call.put_shaped(&Action::Receive(received(call, &post))),
            _ => call.put_shaped(&Action::PostReceive(post)),
        }
    }
}

/// `MPI_Mrecv` completes the receive that a matched probe posted; `MPI_Imrecv` attaches it to a request.
pub(super) struct MatchedReceive;

impl Hook for MatchedReceive {
    /// Removes the message before the call. MPI sets the handle to null, and another thread may get the same handle
    /// before the call returns.
    fn before(&self, call: &mut Recorded) {
        call.saved = message_handle(call);
        let own = call.lane().writer.thread();
        call.freed.0 = call.tracer.known().messages.take_of(call.saved, own);
    }

    fn after(&self, call: &mut Recorded) {
        let Some(waiting) = call.freed.0.take() else { return };
        if call.call().timing() == Timing::Immediate {
            call.made = Some(waiting);
        } else {
            let completion = Completion { request: waiting.request(), outcome: Outcome::Done };
            call.put(&Action::Complete(Completions::List(&[completion])));
        }
    }

    fn after_failure(&self, call: &mut Recorded, _ended: Ended) {
        // A call that uses the message changes the handle.
        if let Some(waiting) = call.freed.0.take().filter(|_| message_handle(call) == call.saved) {
            call.tracer.known().messages.insert(call.saved, waiting);
        }
    }
}

fn message_handle(call: &Recorded) -> usize {
    // SAFETY: the program passed one, or the probe has found a message and set it.
    unsafe { call.args.handle_at(call.args.at.message.place(), 0) }
}

/// `MPI_Sendrecv`, `MPI_Isendrecv` and their variants.
pub(super) struct Exchange;

impl Hook for Exchange {
    fn before(&self, call: &mut Recorded) {
        prepare_status(call);
    }

    fn after(&self, call: &mut Recorded) {
        let first = call.next_request();
        let dest = call.args.at.send.peer.place();
        let sends = call.args.int(dest) != call.abi().constants.proc_null;
        if call.call().timing() == Timing::Immediate {
            // One request stands for both halves.
            let sent = sending(call, Some(first));
            if let Some(send) = sent {
                call.put(&Action::Send(send));
            }
            let second = call.next_request();
            let post = posting(call, sends, second);
            if let Some(post) = post {
                call.put(&Action::PostReceive(post));
            }
            if let (Some(_), Some(post)) = (sent, post) {
                let flags = PendingRequest::flags_of(&post) | PendingRequest::TWIN;
                call.made = Some(PendingRequest::new(first, flags));
            }
            return;
        }
        let send = sending(call, None);
        let post = posting(call, sends, first);
        let receive = post.map(|post| received(call, &post));
        let action = match (send, receive) {
            (Some(send), Some(receive)) => Action::Exchange { send, receive },
            (Some(send), None) => Action::Send(send),
            (None, Some(receive)) => Action::Receive(receive),
            (None, None) => return,
        };
        call.put_shaped(&action);
    }
}

/// `MPI_Probe`, `MPI_Iprobe`, `MPI_Mprobe`, `MPI_Improbe`.
pub(super) struct Probe;

impl Hook for Probe {
    fn before(&self, call: &mut Recorded) {
        // The status of a matched probe also tells the message's size.
        if Sought::by(call).has_wildcard() || call.args.at.message.get().is_some() {
            call.supply_statuses(1);
        }
    }

    fn after(&self, call: &mut Recorded) {
        let args = call.args;
        let at = args.at;
        if args.int(at.recv.peer.place()) == call.abi().constants.proc_null {
            return;
        }
        if call.is_failed_poll() {
            return call.record_failed_poll();
        }
        let comm = call.comm(args.handle(at.comm.place()));
        if comm.foreign {
            return call.put_other(Bytes::ZERO, Detail::None);
        }
        let status = status(call);
        let (source, tag) = Sought::by(call).resolved(status.as_ref());
        if at.message.get().is_none() {
            return call.put(&Action::Probe { comm: comm.id, source, tag });
        }
        // It takes the message: from here on it is a receive that `MPI_Mrecv` completes.
        let request = call.next_request();
        let datatype = call.datatype(call.abi().byte().word()).id;
        let bytes = status.and_then(|status| call.tracer.mpi.status_bytes(&status).ok()).unwrap_or(0);
        call.put(&Action::PostReceive(PostReceive {
            comm: comm.id,
            source: Some(source),
            tag: Some(tag),
            bytes: Bytes(bytes),
            datatype,
            request,
        }));
        call.tracer.known().messages.insert(message_handle(call), PendingRequest::new(request, 0));
    }
}
