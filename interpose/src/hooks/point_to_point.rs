//! Sends, receives and probes.

use crate::comms::Comm;
use crate::lane::Lane;
use crate::requests::{Template, Waiting};
use crate::shapes::Key;
use crate::wrap::{
    Args, Done, Language, Row, SUCCESS, alike, around, find, pend_like, simply, simply_even_paused,
};
use mpi_abi::arguments::Kind;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::Call;
use mpi_abi::status::Status;
use vef_format::capture::event::{
    Action, Completion, Completions, Outcome, PostReceive, Receive, RequestId, Send, SendMode,
};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// How a send completes, from the function's name.
const fn mode(call: Call) -> SendMode {
    use Call::*;
    match call {
        MPI_Bsend | MPI_Bsend_c | MPI_Ibsend | MPI_Ibsend_c | MPI_Bsend_init | MPI_Bsend_init_c => {
            SendMode::Buffered
        }
        MPI_Ssend | MPI_Ssend_c | MPI_Issend | MPI_Issend_c | MPI_Ssend_init | MPI_Ssend_init_c => {
            SendMode::Synchronous
        }
        MPI_Rsend | MPI_Rsend_c | MPI_Irsend | MPI_Irsend_c | MPI_Rsend_init | MPI_Rsend_init_c => {
            SendMode::Ready
        }
        _ => SendMode::Standard,
    }
}

/// The sending half of a call; `None`: to nobody, or on a communicator that is not translated.
#[inline(always)]
fn sending<R: Row, L: Language>(
    done: &mut Done<'_>,
    args: &Args<'_, R, L>,
    request: Option<RequestId>,
) -> Option<Send> {
    let dest = args.dest();
    if dest == args.abi.constants.proc_null {
        return None;
    }
    let comm = done.comm(args.comm());
    let datatype = done.datatype(args.datatype());
    let bytes = datatype.bytes(args.count());
    if comm.foreign {
        done.put_other(bytes);
        return None;
    }
    Some(Send {
        comm: comm.id,
        dest: CommRank(dest as u32),
        tag: args.tag(),
        bytes,
        datatype: datatype.id,
        mode: mode(R::CALL),
        request,
    })
}

/// What a receive asks for; `None` as for [`sending`].
#[inline(always)]
fn posting<R: Row, L: Language>(
    done: &mut Done<'_>,
    args: &Args<'_, R, L>,
    tag: i32,
    request: RequestId,
) -> Option<PostReceive> {
    let constants = &args.abi.constants;
    let source = args.source();
    if source == constants.proc_null {
        return None;
    }
    let comm = done.comm(args.comm());
    let datatype = done.datatype(args.recvtype());
    let bytes = datatype.bytes(args.recvcount());
    if comm.foreign {
        // A call that also sends is recorded as that.
        if find(R::NAMES, &["dest"]).is_none() || args.dest() == constants.proc_null {
            done.put_other(bytes);
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

/// A posted receive that its status has resolved.
#[inline(always)]
fn resolved(post: &PostReceive, status: Option<Status<'_>>) -> Receive {
    let source = post.source.or(status.map(|status| CommRank(status.source() as u32)));
    let tag = post.tag.or(status.map(|status| status.tag()));
    Receive {
        comm: post.comm,
        source: source.unwrap_or_default(),
        tag: tag.unwrap_or_default(),
        any_source: post.source.is_none(),
        any_tag: post.tag.is_none(),
        bytes: post.bytes,
        datatype: post.datatype,
    }
}

/// Whether a wildcard has to be resolved by a status that the program does not want; then it gets ours.
#[inline(always)]
fn want_status<R: Row, L: Language, const N: usize>(
    lane: &mut Lane,
    words: &mut [usize; N],
    abi: &'static Abi,
    wildcard: bool,
) {
    let status = const { find(R::NAMES, &["status"]) };
    if let Some(index) = status
        && wildcard
        && (words[index] == 0 || L::ignores_status(abi, words[index]))
    {
        words[index] = lane.own_statuses(abi, 1);
    }
}

/// Whether a call names a wildcard.
#[inline(always)]
fn has_wildcard<R: Row, L: Language>(args: &Args<'_, R, L>, tag: i32) -> bool {
    let constants = &args.abi.constants;
    args.source() == constants.any_source || tag == constants.any_tag
}

impl Done<'_> {
    /// Remembers the request behind the address `place` as under way.
    #[inline(always)]
    pub(crate) fn pend<R: Row, L: Language>(
        &mut self,
        args: &Args<'_, R, L>,
        place: usize,
        request: RequestId,
        flags: u8,
    ) {
        let handle = args.handle_at(Kind::RequestPtr, place, 0);
        self.pend_handle(handle, request, flags);
    }

    #[inline(always)]
    pub(crate) fn pend_handle(&mut self, handle: usize, request: RequestId, flags: u8) {
        self.shared.requests.insert(handle, Waiting::new(request, flags));
    }

    /// Remembers what the persistent request behind `place` does.
    pub(crate) fn keep_template<R: Row, L: Language>(&mut self, args: &Args<'_, R, L>, template: Template) {
        let handle = args.handle_at(Kind::RequestPtr, args.request(), 0);
        let shared = &mut *self.shared;
        let place = match shared.free_templates.pop() {
            Some(place) => {
                shared.template_list[place as usize] = Some(template);
                place
            }
            None => {
                shared.template_list.push(Some(template));
                shared.template_list.len() as u32 - 1
            }
        };
        shared.templates.insert(handle, place);
    }
}

/// The flags of a posted receive.
#[inline(always)]
pub(crate) fn flags(post: &PostReceive) -> u8 {
    if post.source.is_none() || post.tag.is_none() { Waiting::WILDCARD } else { 0 }
}

type MessageKey = Key<2, 1, 2>;
type ExchangeKey = Key<3, 2, 4>;

/// What tells a send from others of its function.
#[inline(always)]
pub(crate) fn send_key<R: Row, L: Language>(args: &Args<'_, R, L>) -> MessageKey {
    Key {
        handles: [args.raw_comm(), args.raw_datatype()],
        counts: [args.count()],
        ints: [args.dest(), args.tag()],
    }
}

/// What tells what a receive asks for from others of its function.
#[inline(always)]
pub(crate) fn receive_key<R: Row, L: Language>(args: &Args<'_, R, L>) -> MessageKey {
    Key {
        handles: [args.raw_comm(), args.raw_recvtype()],
        counts: [args.recvcount()],
        ints: [args.source(), args.tag()],
    }
}

/// As [`send_key`], of both halves of a call.
#[inline(always)]
pub(crate) fn exchange_key<R: Row, L: Language>(args: &Args<'_, R, L>) -> ExchangeKey {
    Key {
        handles: [args.raw_comm(), args.raw_datatype(), args.raw_recvtype()],
        counts: [args.count(), args.recvcount()],
        ints: [args.dest(), args.source(), args.tag(), args.recvtag()],
    }
}

/// `MPI_Send` and its like.
#[allow(non_snake_case)]
pub(crate) fn Send<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    alike::<R, L, N, _>(
        words,
        next,
        |_, _, _| (),
        |args| Some(send_key(args)),
        |_, _, _, _| (),
        |done, args, key| {
            if let Some(send) = sending(done, args, None) {
                done.put_first::<R, L>(key, &Action::Send(send), 0);
            }
        },
    )
}

/// `MPI_Isend` and its like.
#[allow(non_snake_case)]
pub(crate) fn SendImmediate<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    alike::<R, L, N, _>(
        words,
        next,
        |_, _, _| (),
        |args| Some(send_key(args)),
        pend_like,
        |done, args, key| {
            let request = done.next_request();
            if let Some(send) = sending(done, args, Some(request)) {
                done.put_first::<R, L>(key, &Action::Send(send), 0);
                done.pend(args, args.request(), request, 0);
            }
        },
    )
}

/// `MPI_Send_init` and its like.
#[allow(non_snake_case)]
pub(crate) fn SendPersistent<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply_even_paused::<R, L, N>(words, next, |done, args| {
        let request = done.next_request();
        if let Some(send) = sending(done, args, Some(request)) {
            done.keep_template(args, Template::Send(send));
        }
    })
}

/// `MPI_Recv`, `MPI_Mrecv`.
#[allow(non_snake_case)]
pub(crate) fn Recv<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    if const { find(R::NAMES, &["message"]).is_some() } {
        return receive_matched::<R, L, N>(words, next);
    }
    alike::<R, L, N, _>(
        words,
        next,
        |lane, words, abi| {
            let args = Args::<R, L>::new(words, abi);
            let wildcard = has_wildcard(&args, args.tag());
            want_status::<R, L, N>(lane, words, abi, wildcard);
        },
        // What a wildcard met is not in the arguments.
        |args| (!has_wildcard(args, args.tag())).then(|| receive_key(args)),
        |_, _, _, _| (),
        |done, args, key| {
            if let Some(post) = posting(done, args, args.tag(), done.next_request()) {
                let receive = resolved(&post, args.status_at(args.status(), 0));
                done.put_first::<R, L>(key, &Action::Receive(receive), 0);
            }
        },
    )
}

/// `MPI_Irecv`, `MPI_Imrecv`.
#[allow(non_snake_case)]
pub(crate) fn RecvImmediate<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    if const { find(R::NAMES, &["message"]).is_some() } {
        return receive_matched::<R, L, N>(words, next);
    }
    alike::<R, L, N, _>(
        words,
        next,
        |_, _, _| (),
        |args| Some(receive_key(args)),
        pend_like,
        |done, args, key| {
            let request = done.next_request();
            if let Some(post) = posting(done, args, args.tag(), request) {
                done.put_first::<R, L>(key, &Action::PostReceive(post), flags(&post));
                done.pend(args, args.request(), request, flags(&post));
            }
        },
    )
}

/// `MPI_Recv_init`.
#[allow(non_snake_case)]
pub(crate) fn RecvPersistent<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply_even_paused::<R, L, N>(words, next, |done, args| {
        let request = done.next_request();
        if let Some(post) = posting(done, args, args.tag(), request) {
            done.keep_template(args, Template::Receive(post));
        }
    })
}

/// `MPI_Mrecv` completes what the matched probe began; `MPI_Imrecv` hands it to a request.
fn receive_matched<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    around::<R, L, N, usize>(
        words,
        next,
        // The call sets the message to null.
        |_, words, abi| {
            let args = Args::<R, L>::new(words, abi);
            args.handle_at(Kind::MessagePtr, args.message(), 0)
        },
        |done, args, message, code| {
            if code == SUCCESS
                && let Some(waiting) = done.shared.messages.take(message)
            {
                if const { find(R::NAMES, &["request"]).is_some() } {
                    done.pend(args, args.request(), waiting.request(), 0);
                } else {
                    let completion = Completion { request: waiting.request(), outcome: Outcome::Done };
                    done.put(&Action::Complete(Completions::List(&[completion])));
                }
            }
        },
    )
}

/// `MPI_Sendrecv`, `MPI_Sendrecv_replace`.
#[allow(non_snake_case)]
pub(crate) fn SendRecv<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    alike::<R, L, N, _>(
        words,
        next,
        |lane, words, abi| {
            let args = Args::<R, L>::new(words, abi);
            let wildcard = has_wildcard(&args, args.recvtag());
            want_status::<R, L, N>(lane, words, abi, wildcard);
        },
        |args| (!has_wildcard(args, args.recvtag())).then(|| exchange_key(args)),
        |_, _, _, _| (),
        |done, args, key| {
            let send = sending(done, args, None);
            let post = posting(done, args, args.recvtag(), done.next_request());
            let receive = post.map(|post| resolved(&post, args.status_at(args.status(), 0)));
            let action = match (send, receive) {
                (Some(send), Some(receive)) => Action::Exchange { send, receive },
                (Some(send), None) => Action::Send(send),
                (None, Some(receive)) => Action::Receive(receive),
                (None, None) => return,
            };
            done.put_first::<R, L>(key, &action, 0);
        },
    )
}

/// `MPI_Isendrecv`, `MPI_Isendrecv_replace`: one request stands for both halves.
#[allow(non_snake_case)]
pub(crate) fn SendRecvImmediate<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply::<R, L, N>(words, next, |done, args| {
        let handle = args.handle_at(Kind::RequestPtr, args.request(), 0);
        let first = done.next_request();
        let send = sending(done, args, Some(first));
        if let Some(send) = send {
            done.put(&Action::Send(send));
        }
        let second = done.next_request();
        let post = posting(done, args, args.recvtag(), second);
        if let Some(post) = post {
            done.put(&Action::PostReceive(post));
        }
        if send.is_some() {
            done.pend_handle(handle, first, if post.is_some() { Waiting::TWIN } else { 0 });
        }
        if let Some(post) = post {
            done.pend_handle(handle, second, flags(&post));
        }
    })
}

/// `MPI_Probe`, `MPI_Iprobe`, `MPI_Mprobe`, `MPI_Improbe`.
#[allow(non_snake_case)]
pub(crate) fn Probe<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    let has_flag = const { find(R::NAMES, &["flag"]).is_some() };
    let matches = const { find(R::NAMES, &["message"]).is_some() };
    around::<R, L, N, ()>(
        words,
        next,
        |lane, words, abi| {
            let args = Args::<R, L>::new(words, abi);
            // The status of a matched probe also tells the message's size.
            let wanted = matches || has_wildcard(&args, args.tag());
            want_status::<R, L, N>(lane, words, abi, wanted);
        },
        |done, args, (), code| {
            let found = code == SUCCESS && (!has_flag || args.int_at(args.flag(), 0) != 0);
            let constants = &args.abi.constants;
            if !found || args.source() == constants.proc_null {
                return;
            }
            let comm = done.comm(args.comm());
            if comm.foreign {
                return done.put_other(Bytes::ZERO);
            }
            let status = args.status_at(args.status(), 0);
            let (source, tag) = probed(args, status);
            if matches {
                post_matched(done, args, comm, source, tag, status);
            } else {
                done.put(&Action::Probe { comm: comm.id, source, tag });
            }
        },
    )
}

/// Whom a probe found, and with which tag.
fn probed<R: Row, L: Language>(args: &Args<'_, R, L>, status: Option<Status<'_>>) -> (CommRank, i32) {
    let constants = &args.abi.constants;
    let (mut source, mut tag) = (args.source(), args.tag());
    if let Some(status) = status {
        source = if source == constants.any_source { status.source() } else { source };
        tag = if tag == constants.any_tag { status.tag() } else { tag };
    }
    (CommRank(source as u32), tag)
}

/// A matched probe takes the message: from here on it is a receive that `MPI_Mrecv` completes.
fn post_matched<R: Row, L: Language>(
    done: &mut Done<'_>,
    args: &Args<'_, R, L>,
    comm: Comm,
    source: CommRank,
    tag: i32,
    status: Option<Status<'_>>,
) {
    let request = done.next_request();
    let datatype = done.datatype(args.abi.byte().word()).id;
    let bytes = Bytes(status.and_then(|status| status.bytes()).unwrap_or(0));
    let post = PostReceive { comm: comm.id, source: Some(source), tag: Some(tag), bytes, datatype, request };
    done.put(&Action::PostReceive(post));
    let message = args.handle_at(Kind::MessagePtr, args.message(), 0);
    done.shared.messages.insert(message, Waiting::new(request, 0));
}
