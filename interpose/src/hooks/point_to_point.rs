//! Sends, receives and probes.

use crate::call::{Ended, Hook, Recorded};
use crate::hooks::persistent::keep_template;
use crate::hooks::places::Places;
use crate::requests::{PendingRequest, Template};
use mpi_abi::prototypes::{self, Call, Timing};
use mpi_abi::status::Status;
use vef_format::capture::event::{
    self, Action, Completion, Completions, Detail, Outcome, PostReceive, RequestId,
};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// The send of a call; `None`: to `MPI_PROC_NULL`, or on a communicator that a trace cannot represent.
fn sending(call: &mut Recorded, request: Option<RequestId>) -> Option<event::Send> {
    let args = call.args;
    let Places { comm, send: at, .. } = Places::of(args.call());
    let dest = args.int(at.peer.place());
    if dest == call.abi().constants.proc_null {
        return None;
    }
    let comm = call.comm(args.handle(comm.place()));
    let datatype = call.datatype(args.handle(at.datatype.place()));
    let bytes = datatype.bytes(args.number(at.count.place()));
    if comm.foreign {
        call.put_other(bytes, Detail::None);
        return None;
    }
    Some(event::Send {
        comm: comm.id,
        dest: CommRank(dest as u32),
        tag: args.int(at.tag.place()),
        bytes,
        datatype: datatype.id,
        mode: mode(args.call()),
        request,
    })
}

/// The send mode; the send of an exchange is standard.
fn mode(call: Call) -> event::SendMode {
    match call.detail() {
        prototypes::Detail::Send(prototypes::SendMode::Buffered) => event::SendMode::Buffered,
        prototypes::Detail::Send(prototypes::SendMode::Synchronous) => event::SendMode::Synchronous,
        prototypes::Detail::Send(prototypes::SendMode::Ready) => event::SendMode::Ready,
        _ => event::SendMode::Standard,
    }
}

/// The receive of a call; `None` as for [`sending`]. `sends`: the call also sends, so that [`sending`] records it on
/// a communicator that a trace cannot represent.
fn posting(call: &mut Recorded, sends: bool, request: RequestId) -> Option<PostReceive> {
    let args = call.args;
    let Places { comm, recv: at, .. } = Places::of(args.call());
    let constants = &call.abi().constants;
    let (source, tag) = (args.int(at.peer.place()), args.int(at.tag.place()));
    if source == constants.proc_null {
        return None;
    }
    let comm = call.comm(args.handle(comm.place()));
    let datatype = call.datatype(args.handle(at.datatype.place()));
    let bytes = datatype.bytes(args.number(at.count.place()));
    if comm.foreign {
        if !sends {
            call.put_other(bytes, Detail::None);
        }
        return None;
    }
    Some(PostReceive {
        comm: comm.id,
        source: (source != constants.any_source).then_some(CommRank(source as u32)),
        tag: (tag != constants.any_tag).then_some(tag),
        bytes,
        datatype: datatype.id,
        request,
    })
}

/// A posted receive with its wildcards resolved by the status.
fn resolved(post: &PostReceive, status: Option<Status<'_>>) -> event::Receive {
    let source = post.source.or(status.map(|status| CommRank(status.source() as u32)));
    let tag = post.tag.or(status.map(|status| status.tag()));
    event::Receive {
        comm: post.comm,
        source: source.unwrap_or_default(),
        tag: tag.unwrap_or_default(),
        any_source: post.source.is_none(),
        any_tag: post.tag.is_none(),
        bytes: post.bytes,
        datatype: post.datatype,
    }
}

/// Whether the receive has a wildcard, so that its status is needed.
fn has_wildcard(call: &Recorded) -> bool {
    let (constants, at) = (&call.abi().constants, &Places::of(call.call()).recv);
    call.args.int(at.peer.place()) == constants.any_source
        || call.args.int(at.tag.place()) == constants.any_tag
}

/// The status of a receive or probe that has succeeded.
fn status(call: &Recorded) -> Option<Status<'static>> {
    // SAFETY: the call has written it.
    unsafe { call.args.status_at(Places::of(call.call()).status.place(), 0) }
}

/// Before a blocking receive: supplies a status if it is needed.
fn prepare_status(call: &mut Recorded) {
    if call.call().timing() == Timing::Blocking && has_wildcard(call) {
        call.supply_statuses(Places::of(call.call()).status.place(), 1);
        // The source of a wildcard receive does not follow from the arguments.
        call.disable_shape();
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
            Timing::Blocking => call.put_shaped(&Action::Receive(resolved(&post, status(call)))),
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
        call.saved = message(call);
        call.freed.0 = call.tracer.known().messages.take(call.saved);
    }

    fn after(&self, call: &mut Recorded) {
        let Some(waiting) = call.freed.0.take() else { return };
        if call.call().timing() == Timing::Immediate {
            call.made = Some(waiting);
        } else {
            put_received(call, waiting);
        }
    }

    fn after_failure(&self, call: &mut Recorded, ended: Ended) {
        let Some(waiting) = call.freed.0.take() else { return };
        if ended.has_received(call.tracer) {
            // A truncated message is used, too.
            put_received(call, waiting);
        } else if message(call) == call.saved {
            // A call that uses the message changes the handle.
            call.tracer.known().messages.insert(call.saved, waiting);
        }
    }
}

/// The handle of a call's message.
fn message(call: &Recorded) -> usize {
    // SAFETY: the program passed one, or the probe has found a message and set it.
    unsafe { call.args.handle_at(Places::of(call.call()).message.place(), 0) }
}

fn put_received(call: &mut Recorded, waiting: PendingRequest) {
    let completion = Completion { request: waiting.request(), outcome: Outcome::Done };
    call.put(&Action::Complete(Completions::List(&[completion])));
}

/// `MPI_Sendrecv`, `MPI_Isendrecv` and their variants.
pub(super) struct Exchange;

impl Hook for Exchange {
    fn before(&self, call: &mut Recorded) {
        prepare_status(call);
    }

    fn after(&self, call: &mut Recorded) {
        let first = call.next_request();
        let dest = Places::of(call.call()).send.peer;
        let sends = call.args.int(dest.place()) != call.abi().constants.proc_null;
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
        let receive = post.map(|post| resolved(&post, status(call)));
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
        let at = Places::of(call.call());
        // The status of a matched probe also tells the message's size.
        if has_wildcard(call) || at.message.get().is_some() {
            call.supply_statuses(at.status.place(), 1);
        }
    }

    fn after(&self, call: &mut Recorded) {
        let (args, constants) = (call.args, &call.abi().constants);
        let at = Places::of(args.call());
        let (source, tag) = (args.int(at.recv.peer.place()), args.int(at.recv.tag.place()));
        if source == constants.proc_null {
            return;
        }
        // SAFETY: the call has succeeded, and so has set its flag.
        if at.flag.get().is_some_and(|flag| unsafe { args.int_at(flag, 0) } == 0) {
            return call.record_failed_poll();
        }
        let comm = call.comm(args.handle(at.comm.place()));
        if comm.foreign {
            return call.put_other(Bytes::ZERO, Detail::None);
        }
        let status = status(call);
        let resolve = |given, wildcard, found: fn(&Status<'_>) -> i32| match &status {
            Some(status) if given == wildcard => found(status),
            _ => given,
        };
        let source = CommRank(resolve(source, constants.any_source, |status| status.source()) as u32);
        let tag = resolve(tag, constants.any_tag, |status| status.tag());
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
        call.tracer.known().messages.insert(message(call), PendingRequest::new(request, 0));
    }
}
