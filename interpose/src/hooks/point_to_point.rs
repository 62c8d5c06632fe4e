//! Sends, receives and probes.

use crate::call::{Ended, Hook, Noted, Recorded};
use crate::hooks::persistent::keep_template;
use crate::places::Side;
use crate::requests::{PendingRequest, Template};
use mpi_abi::prototypes::{Call, CallDetail, Timing};
use mpi_abi::status::Status;
use vef_format::capture::event::{
    Action, Completion, Completions, DatatypeId, Outcome, PostReceive, Receive, RequestId, Send, SendMode,
};
use vef_format::ids::{CommId, CommRank};
use vef_format::units::Bytes;

/// The communicator, bytes and datatype of the message of one side of a call; `None`: to or from `MPI_PROC_NULL`.
fn payload(call: &mut Recorded, side: &Side) -> Option<(CommId, Bytes, DatatypeId)> {
    let args = call.args;
    if args.int(side.peer.place()) == call.abi().constants.proc_null {
        return None;
    }
    let comm = call.comm(args.handle(args.at.comm.place()));
    let datatype = call.datatype(args.handle(side.datatype.place()));
    let bytes = datatype.bytes(args.number(side.count.place()));
    Some((comm.id, bytes, datatype.id))
}

fn sending(call: &mut Recorded, request: Option<RequestId>) -> Option<Send> {
    let (args, side) = (call.args, &call.args.at.send);
    let (comm, bytes, datatype) = payload(call, side)?;
    let (dest, tag) = (CommRank(args.int(side.peer.place()) as u32), args.int(side.tag.place()));
    Some(Send { comm, dest, tag, bytes, datatype, mode: mode(call.call()), request })
}

/// The send mode; the send of an exchange is standard.
fn mode(call: Call) -> SendMode {
    if let CallDetail::Send(mode) = call.detail() { mode } else { SendMode::Standard }
}

/// The receive of a call.
fn posting(call: &mut Recorded, request: RequestId) -> Option<PostReceive> {
    let (comm, bytes, datatype) = payload(call, &call.args.at.recv)?;
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
fn received(call: &Recorded, post: &PostReceive) -> Receive {
    let &PostReceive { comm, source, tag, bytes, datatype, .. } = post;
    let (any_source, any_tag) = (source.is_none(), tag.is_none());
    let (source, tag) = Sought { source, tag }.resolved(status(call).as_ref());
    Receive { comm, source, tag, any_source, any_tag, bytes, datatype }
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
pub(super) const SEND: Hook = Hook::after(|call| {
    let (timing, request) = (call.call().timing(), call.next_request());
    let send = sending(call, (timing != Timing::Blocking).then_some(request));
    if timing == Timing::Persistent {
        return keep_template(call, send.map_or(Template::Unrecorded, Template::Send));
    }
    send.into_iter().for_each(|send| call.put_shaped(&Action::Send(send)));
});

/// `MPI_Recv` and its variants.
pub(super) const RECEIVE: Hook = Hook { before: prepare_status, after: receive, ..Hook::NONE };

fn receive(call: &mut Recorded) {
    let request = call.next_request();
    let post = posting(call, request);
    if call.call().timing() == Timing::Persistent {
        return keep_template(call, post.map_or(Template::Unrecorded, Template::Receive));
    }
    let Some(post) = post else { return };
    match call.call().timing() {
        Timing::Blocking => call.put_shaped(&Action::Receive(received(call, &post))),
        _ => call.put_shaped(&Action::PostReceive(post)),
    }
}

/// `MPI_Mrecv` completes the receive that a matched probe posted; `MPI_Imrecv` attaches it to a request.
pub(super) const MATCHED_RECEIVE: Hook =
    Hook { before: take_message, after: receive_message, after_failure: keep_message };

/// Removes the message before the call. MPI sets the handle to null, and another thread may get the same handle
/// before the call returns.
fn take_message(call: &mut Recorded) {
    let (handle, own) = (message_handle(call), call.lane().writer.thread());
    if let Some(waiting) = call.tracer.known(|known| known.messages.take_of(handle, own)) {
        call.noted = Noted::Message(handle, waiting);
    }
}

fn receive_message(call: &mut Recorded) {
    let Noted::Message(_, waiting) = call.noted else { return };
    if call.call().timing() == Timing::Immediate {
        call.made = Some(waiting);
    } else {
        let completion = Completion { request: waiting.request(), outcome: Outcome::Done };
        call.put(&Action::Complete(Completions::List(&[completion])));
    }
}

fn keep_message(call: &mut Recorded, _ended: Ended) {
    // A call that uses the message changes the handle.
    if let Noted::Message(handle, waiting) = call.noted
        && message_handle(call) == handle
    {
        call.tracer.known(|known| known.messages.insert(handle, waiting));
    }
}

fn message_handle(call: &Recorded) -> usize {
    // SAFETY: the program passed one, or the probe has found a message and set it.
    unsafe { call.args.handle_at(call.args.at.message.place(), 0) }
}

/// `MPI_Sendrecv`, `MPI_Isendrecv` and their variants.
pub(super) const EXCHANGE: Hook = Hook { before: prepare_status, after: exchange, ..Hook::NONE };

fn exchange(call: &mut Recorded) {
    let first = call.next_request();
    if call.call().timing() == Timing::Immediate {
        // One request stands for both halves.
        let sent = sending(call, Some(first));
        sent.into_iter().for_each(|send| call.put(&Action::Send(send)));
        let second = call.next_request();
        let post = posting(call, second);
        post.into_iter().for_each(|post| call.put(&Action::PostReceive(post)));
        if let (Some(_), Some(post)) = (sent, post) {
            let flags = PendingRequest::flags_of(&post) | PendingRequest::TWIN;
            call.made = Some(PendingRequest::new(first, flags));
        }
        return;
    }
    let send = sending(call, None);
    let post = posting(call, first);
    let receive = post.map(|post| received(call, &post));
    let action = match (send, receive) {
        (Some(send), Some(receive)) => Action::Exchange { send, receive },
        (Some(send), None) => Action::Send(send),
        (None, Some(receive)) => Action::Receive(receive),
        (None, None) => return,
    };
    call.put_shaped(&action);
}

/// `MPI_Probe`, `MPI_Iprobe`, `MPI_Mprobe`, `MPI_Improbe`.
pub(super) const PROBE: Hook = Hook { before: prepare_probe, after: probed, ..Hook::NONE };

fn prepare_probe(call: &mut Recorded) {
    // The status of a matched probe also tells the message's size.
    if Sought::by(call).has_wildcard() || call.args.at.message.get().is_some() {
        call.supply_statuses(1);
    }
}

fn probed(call: &mut Recorded) {
    let args = call.args;
    let at = args.at;
    if args.int(at.recv.peer.place()) == call.abi().constants.proc_null {
        return;
    }
    if call.is_failed_poll() {
        return call.record_failed_poll();
    }
    let comm = call.comm(args.handle(at.comm.place()));
    let status = status(call);
    let (source, tag) = Sought::by(call).resolved(status.as_ref());
    if at.message.get().is_none() {
        return call.put(&Action::Probe { comm: comm.id, source, tag });
    }
    // It takes the message: from here on it is a receive that `MPI_Mrecv` completes.
    let request = call.next_request();
    let datatype = call.datatype(call.abi().byte().word()).id;
    let bytes = Bytes(status.and_then(|status| call.tracer.mpi.status_bytes(&status).ok()).unwrap_or(0));
    let (source, tag) = (Some(source), Some(tag));
    call.put(&Action::PostReceive(PostReceive { comm: comm.id, source, tag, bytes, datatype, request }));
    let handle = message_handle(call);
    call.tracer.known(|known| known.messages.insert(handle, PendingRequest::new(request, 0)));
}
