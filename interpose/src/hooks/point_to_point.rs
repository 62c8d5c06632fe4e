//! Sends, receives and probes.

use crate::call::{Ended, Hook, Recorded};
use crate::hooks::persistent::keep_template;
use crate::requests::{PendingRequest, Template};
use mpi_abi::prototypes::{self, Call, Name, Timing};
use mpi_abi::status::Status;
use vef_format::capture::event::{
    self, Action, Completion, Completions, Detail, Outcome, PostReceive, RequestId,
};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// The positions of a message's arguments.
struct Places {
    count: usize,
    datatype: usize,
    peer: usize,
    tag: usize,
    comm: usize,
}

impl Places {
    /// The positions in a family of functions, given the names of the first four arguments.
    const fn of(model: Call, [count, datatype, peer, tag]: [Name; 4]) -> Self {
        Self {
            count: model.place(count),
            datatype: model.place(datatype),
            peer: model.place(peer),
            tag: model.place(tag),
            comm: model.place(Name::Comm),
        }
    }
}

const SEND: Places = Places::of(Call::MPI_Send, [Name::Count, Name::Datatype, Name::Dest, Name::Tag]);
const RECEIVE: Places = Places::of(Call::MPI_Recv, [Name::Count, Name::Datatype, Name::Source, Name::Tag]);
const RECEIVE_STATUS: usize = Call::MPI_Recv.place(Name::Status);

/// The send of a call; `None`: to `MPI_PROC_NULL`, or on a communicator that a trace cannot represent.
fn sending(call: &mut Recorded, at: &Places, request: Option<RequestId>) -> Option<event::Send> {
    let args = call.args;
    let dest = args.int(at.peer);
    if dest == call.abi().constants.proc_null {
        return None;
    }
    let comm = call.comm(args.handle(at.comm));
    let datatype = call.datatype(args.handle(at.datatype));
    let bytes = datatype.bytes(args.number(at.count));
    if comm.foreign {
        call.put_other(bytes, Detail::None);
        return None;
    }
    Some(event::Send {
        comm: comm.id,
        dest: CommRank(dest as u32),
        tag: args.int(at.tag),
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
fn posting(call: &mut Recorded, at: &Places, sends: bool, request: RequestId) -> Option<PostReceive> {
    let args = call.args;
    let constants = &call.abi().constants;
    let (source, tag) = (args.int(at.peer), args.int(at.tag));
    if source == constants.proc_null {
        return None;
    }
    let comm = call.comm(args.handle(at.comm));
    let datatype = call.datatype(args.handle(at.datatype));
    let bytes = datatype.bytes(args.number(at.count));
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
fn has_wildcard(call: &Recorded, at: &Places) -> bool {
    let constants = &call.abi().constants;
    call.args.int(at.peer) == constants.any_source || call.args.int(at.tag) == constants.any_tag
}

/// `MPI_Send` and its variants.
pub(super) struct Send;

impl Hook for Send {
    fn after(&self, call: &mut Recorded, ended: Ended) {
        if !ended.is_success() {
            return;
        }
        let (timing, request) = (call.call().timing(), call.next_request());
        let request = (timing != Timing::Blocking).then_some(request);
        let send = sending(call, &SEND, request);
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
        if call.call().timing() == Timing::Blocking && has_wildcard(call, &RECEIVE) {
            call.supply_statuses(RECEIVE_STATUS, 1);
            // The source of a wildcard receive does not follow from the arguments.
            call.disable_shape();
        }
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        let request = call.next_request();
        let blocking = call.call().timing() == Timing::Blocking;
        if !(ended.is_success() || blocking && ended.has_received(call.tracer)) {
            return;
        }
        let post = posting(call, &RECEIVE, false, request);
        if call.call().timing() == Timing::Persistent {
            return keep_template(call, post.map_or(Template::Unrecorded, Template::Receive));
        }
        let Some(post) = post else { return };
        match call.call().timing() {
            Timing::Blocking => {
                // SAFETY: the call has written it.
                let status = unsafe { call.args.status_at(RECEIVE_STATUS, 0) };
                call.put_shaped(&Action::Receive(resolved(&post, status)));
            }
            _ => call.put_shaped(&Action::PostReceive(post)),
        }
    }
}

/// `MPI_Mrecv` completes the receive that a matched probe posted; `MPI_Imrecv` attaches it to a request.
pub(super) struct MatchedReceive;

const MESSAGE: usize = Call::MPI_Mrecv.place(Name::Message);

impl Hook for MatchedReceive {
    /// Removes the message before the call. MPI sets the handle to null, and another thread may get the same handle
    /// before the call returns.
    fn before(&self, call: &mut Recorded) {
        // SAFETY: the program passed one.
        call.saved = unsafe { call.args.handle_at(MESSAGE, 0) };
        call.freed.0 = call.tracer.known().messages.take(call.saved);
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        // SAFETY: as in `before`; a call that uses the message changes the handle. A truncated message is used, too.
        let unused = || unsafe { call.args.handle_at(MESSAGE, 0) } == call.saved;
        let Some(waiting) = call.freed.0.take() else { return };
        if !ended.has_received(call.tracer) && unused() {
            return call.tracer.known().messages.insert(call.saved, waiting);
        }
        if ended.is_success() && call.call().timing() == Timing::Immediate {
            call.made = Some(waiting);
        } else if ended.has_received(call.tracer) {
            let completion = Completion { request: waiting.request(), outcome: Outcome::Done };
            call.put(&Action::Complete(Completions::List(&[completion])));
        }
    }
}

/// `MPI_Sendrecv`, `MPI_Isendrecv` and their variants.
pub(super) struct Exchange;

const PAIR: (Places, Places) = (
    Places::of(Call::MPI_Sendrecv, [Name::Sendcount, Name::Sendtype, Name::Dest, Name::Sendtag]),
    Places::of(Call::MPI_Sendrecv, [Name::Recvcount, Name::Recvtype, Name::Source, Name::Recvtag]),
);
const REPLACE: (Places, Places) = (
    Places::of(Call::MPI_Sendrecv_replace, [Name::Count, Name::Datatype, Name::Dest, Name::Sendtag]),
    Places::of(Call::MPI_Sendrecv_replace, [Name::Count, Name::Datatype, Name::Source, Name::Recvtag]),
);

impl Exchange {
    /// The positions of both halves' arguments, and of the last argument: status or request.
    fn places(call: Call) -> (&'static (Places, Places), usize) {
        let last = call.parameters().len() - 1;
        if call.position(Name::Sendbuf).is_some() { (&PAIR, last) } else { (&REPLACE, last) }
    }
}

impl Hook for Exchange {
    fn before(&self, call: &mut Recorded) {
        let ((_, receive), last) = Self::places(call.call());
        if call.call().timing() == Timing::Blocking && has_wildcard(call, receive) {
            call.supply_statuses(last, 1);
            call.disable_shape();
        }
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        let ((send, receive), last) = Self::places(call.call());
        let first = call.next_request();
        let sends = call.args.int(send.peer) != call.abi().constants.proc_null;
        if call.call().timing() == Timing::Immediate {
            if !ended.is_success() {
                return;
            }
            // One request stands for both halves.
            let sent = sending(call, send, Some(first));
            if let Some(send) = sent {
                call.put(&Action::Send(send));
            }
            let second = call.next_request();
            let post = posting(call, receive, sends, second);
            if let Some(post) = post {
                call.put(&Action::PostReceive(post));
            }
            if let (Some(_), Some(post)) = (sent, post) {
                let flags = PendingRequest::flags_of(&post) | PendingRequest::TWIN;
                call.made = Some(PendingRequest::new(first, flags));
            }
            return;
        }
        if !ended.has_received(call.tracer) {
            return;
        }
        let send = sending(call, send, None);
        let post = posting(call, receive, sends, first);
        // SAFETY: the call has written it.
        let receive = post.map(|post| resolved(&post, unsafe { call.args.status_at(last, 0) }));
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

const PROBE_SOURCE: usize = Call::MPI_Probe.place(Name::Source);
const PROBE_TAG: usize = Call::MPI_Probe.place(Name::Tag);
const PROBE_COMM: usize = Call::MPI_Probe.place(Name::Comm);

impl Probe {
    fn status(call: &Recorded) -> usize {
        call.call().parameters().len() - 1
    }
}

impl Hook for Probe {
    fn before(&self, call: &mut Recorded) {
        let constants = &call.abi().constants;
        let wildcard = call.args.int(PROBE_SOURCE) == constants.any_source
            || call.args.int(PROBE_TAG) == constants.any_tag;
        // The status of a matched probe also tells the message's size.
        if wildcard || call.args.find(Name::Message).is_some() {
            call.supply_statuses(Self::status(call), 1);
        }
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        let args = call.args;
        let constants = &call.abi().constants;
        // SAFETY: a call that has succeeded has set its flag.
        let found = || args.find(Name::Flag).is_none_or(|flag| unsafe { args.int_at(flag, 0) } != 0);
        if !ended.is_success() || args.int(PROBE_SOURCE) == constants.proc_null {
            return;
        }
        if !found() {
            return call.record_failed_poll();
        }
        let comm = call.comm(args.handle(PROBE_COMM));
        if comm.foreign {
            return call.put_other(Bytes::ZERO, Detail::None);
        }
        // SAFETY: the call has written it.
        let status = unsafe { args.status_at(Self::status(call), 0) };
        let (mut source, mut tag) = (args.int(PROBE_SOURCE), args.int(PROBE_TAG));
        if let Some(status) = status {
            source = if source == constants.any_source { status.source() } else { source };
            tag = if tag == constants.any_tag { status.tag() } else { tag };
        }
        let source = CommRank(source as u32);
        let Some(message) = args.find(Name::Message) else {
            return call.put(&Action::Probe { comm: comm.id, source, tag });
        };
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
        // SAFETY: the call has set it.
        let message = unsafe { args.handle_at(message, 0) };
        call.tracer.known().messages.insert(message, PendingRequest::new(request, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_abi::prototypes::Category;

    #[test]
    fn arguments_are_where_the_hooks_look_for_them() {
        use mpi_abi::prototypes::Name::{
            Comm, Count, Datatype, Dest, Message, Recvcount, Recvtag, Recvtype, Sendbuf, Sendcount, Sendtag,
            Sendtype, Source, Tag,
        };
        for call in Call::all() {
            let like = |model: Call, names: &[Name]| assert!(call.is_like(model, names), "{}", call.name());
            match call.category() {
                Category::Send => like(Call::MPI_Send, &[Count, Datatype, Dest, Tag, Comm]),
                Category::Recv if call.position(Message).is_some() => like(Call::MPI_Mrecv, &[Message]),
                Category::Recv => like(Call::MPI_Recv, &[Count, Datatype, Source, Tag, Comm]),
                Category::SendRecv if call.position(Sendbuf).is_some() => like(
                    Call::MPI_Sendrecv,
                    &[Sendcount, Sendtype, Dest, Sendtag, Recvcount, Recvtype, Source, Recvtag, Comm],
                ),
                Category::SendRecv => {
                    like(
                        Call::MPI_Sendrecv_replace,
                        &[Count, Datatype, Dest, Sendtag, Source, Recvtag, Comm],
                    );
                }
                Category::Probe => like(Call::MPI_Probe, &[Source, Tag, Comm]),
                _ => {}
            }
        }
    }
}
