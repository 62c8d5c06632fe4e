//! Decodes records into [`Action`]s, the reverse of [`super::encode`].

use super::encode::{collective_flag, detail, kind, outcome, unzigzag};
use super::event::{
    Action, CallSlot, Collective, Communicator, Completion, Completions, Datatype, DatatypeId, Detail,
    FileId, Io, Members, Origin, Outcome, PostReceive, Receive, Remote, RequestId, Send, SendMode, Split,
    Transfer, WindowId,
};
use crate::ids::{CommId, CommRank, Rank};
use crate::operation::{Amounts, Operation};
use crate::units::Bytes;
use crate::varint::{Ended, Source};

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They end within the record.
    Ended,
    /// A field has an invalid value.
    Nonsense(&'static str, u64),
}

impl From<Ended> for Fault {
    fn from(_: Ended) -> Self {
        Self::Ended
    }
}

/// Buffers for the lists of a decoded action.
#[derive(Debug, Default)]
pub(super) struct Lists {
    completions: Vec<Completion>,
    send_counts: Vec<u64>,
    recv_counts: Vec<u64>,
    ranks: Vec<Rank>,
    remote: Vec<Rank>,
}

/// State of the reader that a record depends on.
pub(super) struct Context {
    /// The thread that wrote the record.
    pub(super) thread: u16,
    /// Number of requests that the thread had started before.
    pub(super) requests: u64,
    /// Number of slots in the call table.
    pub(super) calls: usize,
}

/// `action` without borrowed data, if it can be a shape.
pub(super) fn as_shape(action: &Action<'_>) -> Option<Action<'static>> {
    Some(match *action {
        Action::Send(send) => Action::Send(send),
        Action::Receive(receive) => Action::Receive(receive),
        Action::PostReceive(post) => Action::PostReceive(post),
        Action::Exchange { send, receive } => Action::Exchange { send, receive },
        Action::Probe { comm, source, tag } => Action::Probe { comm, source, tag },
        Action::Collective(Collective {
            operation,
            comm,
            root,
            amounts,
            count,
            datatype,
            recv_datatype,
            request,
            send_counts: [],
            recv_counts: [],
        }) => Action::Collective(Collective {
            operation,
            comm,
            root,
            amounts,
            count,
            datatype,
            recv_datatype,
            request,
            send_counts: &[],
            recv_counts: &[],
        }),
        Action::Other { bytes, detail } => Action::Other {
            bytes,
            detail: match detail {
                Detail::None => Detail::None,
                Detail::Transfer(transfer) => Detail::Transfer(transfer),
                Detail::Io(io) => Detail::Io(io),
                Detail::Sync { window, target, exclusive, assert, group: None } => {
                    Detail::Sync { window, target, exclusive, assert, group: None }
                }
                _ => return None,
            },
        },
        _ => return None,
    })
}

/// Completions of `count` of the thread's own requests; `after` requests were started after the last of them.
#[inline]
pub(super) fn run(count: u64, after: u64, context: &Context) -> Result<Action<'static>, Fault> {
    let end = context.requests.checked_sub(after).ok_or(Fault::Nonsense("distance of a request", after))?;
    let number = end.checked_sub(count).ok_or(Fault::Nonsense("number of completed requests", count))?;
    let first = RequestId { thread: context.thread, number };
    Ok(Action::Complete(Completions::Run { first, count }))
}

/// The function in a record: slot in the call table plus one.
#[inline(always)]
pub(super) fn call_slot(code: u64, calls: usize) -> Result<CallSlot, Fault> {
    match code.checked_sub(1) {
        None => Ok(CallSlot::NONE),
        Some(slot) if slot < calls as u64 => Ok(CallSlot(slot as u16)),
        Some(slot) => Err(Fault::Nonsense("slot of the call table", slot)),
    }
}

/// Decodes the fields of a record of kind `kind`, other than its function.
pub(super) fn action<'a>(
    source: &mut Source<'a>,
    kind: u8,
    context: &Context,
    lists: &'a mut Lists,
) -> Result<Action<'a>, Fault> {
    let own_next = RequestId { thread: context.thread, number: context.requests };
    Ok(match kind {
        kind::INIT => Action::Init,
        kind::FINALIZE => Action::Finalize,
        kind::ABORT => Action::Abort { code: get_u32(source, "error code")? as i32 },
        kind::COMMUNICATOR => Action::Communicator(communicator(source, lists)?),
        kind::DATATYPE => {
            let id = DatatypeId(get_u32(source, "datatype")?);
            let size = Bytes(source.get()?);
            let contiguous = flag(source, "datatype flags")?;
            Action::Datatype(Datatype { id, size, contiguous, name: text(source)? })
        }
        kind::COMMUNICATOR_FREE => Action::CommunicatorFree(comm(source)?),
        kind::PHASE_BEGIN | kind::PHASE_END => {
            Action::Phase { begin: kind == kind::PHASE_BEGIN, name: text(source)? }
        }
        kind::OTHER => {
            let bytes = Bytes(source.get()?);
            Action::Other { bytes, detail: detail(source, own_next, &mut lists.ranks)? }
        }
        kind::STOPPED => Action::Stopped { reason: text(source)? },
        kind::FORGET => {
            let head = source.get()?;
            Action::Forget(request(source, head, context.thread, context.requests)?)
        }
        kind::PROBE => Action::Probe { comm: comm(source)?, source: comm_rank(source)?, tag: tag(source)? },
        kind::POLLS => Action::Polls { count: source.get()? },
        kind::COMPLETE_RUN => {
            let (count, after) = (source.get()?, source.get()?);
            run(count, after, context)?
        }
        kind::COMPLETE => {
            completions(source, context, &mut lists.completions)?;
            Action::Complete(Completions::List(&lists.completions))
        }
        kind::SEND..kind::RECEIVE => {
            Action::Send(sent(Transferred::read(source)?, kind - kind::SEND, context))
        }
        kind::RECEIVE..kind::POST_RECEIVE => {
            Action::Receive(receive(Transferred::read(source)?, kind - kind::RECEIVE))
        }
        kind::POST_RECEIVE..kind::EXCHANGE => {
            let flags = kind - kind::POST_RECEIVE;
            Action::PostReceive(PostReceive {
                comm: comm(source)?,
                source: if flags & kind::ANY_SOURCE == 0 { Some(comm_rank(source)?) } else { None },
                tag: if flags & kind::ANY_TAG == 0 { Some(tag(source)?) } else { None },
                bytes: Bytes(source.get()?),
                datatype: datatype(source)?,
                request: own_next,
            })
        }
        kind::EXCHANGE..36 => {
            let code = source.get()?;
            if code > 3 {
                return Err(Fault::Nonsense("send mode", code));
            }
            Action::Exchange {
                send: sent(Transferred::read(source)?, code as u8, context),
                receive: receive(Transferred::read(source)?, kind - kind::EXCHANGE),
            }
        }
        kind::COLLECTIVE => collective(source, own_next, lists)?,
        other => return Err(Fault::Nonsense("kind of record", u64::from(other))),
    })
}

fn completions(source: &mut Source<'_>, context: &Context, list: &mut Vec<Completion>) -> Result<(), Fault> {
    list.clear();
    let count = list_len(source)?;
    let mut previous = context.requests;
    for _ in 0..count {
        let head = source.get()?;
        let request = request(source, head, context.thread, previous)?;
        if request.thread == context.thread {
            if request.number >= context.requests {
                return Err(Fault::Nonsense("request that was not made yet", request.number));
            }
            previous = request.number + 1;
        }
        let outcome = match head & 3 {
            outcome::DONE => Outcome::Done,
            outcome::CANCELLED => Outcome::Cancelled,
            received => Outcome::Received {
                source: comm_rank(source)?,
                tag: tag(source)?,
                bytes: if received == outcome::RECEIVED_BYTES { Some(Bytes(source.get()?)) } else { None },
            },
        };
        list.push(Completion { request, outcome });
    }
    Ok(())
}

fn request(source: &mut Source<'_>, head: u64, own: u16, previous: u64) -> Result<RequestId, Fault> {
    let code = head >> outcome::BITS;
    if head & outcome::FOREIGN == 0 {
        Ok(RequestId { thread: own, number: previous.wrapping_add(unzigzag(code) as u64) })
    } else {
        let thread = source.get()?;
        let thread = u16::try_from(thread).map_err(|_| Fault::Nonsense("thread", thread))?;
        Ok(RequestId { thread, number: code })
    }
}

/// Decodes the function and the fields of a send of kind `kind`.
#[inline(always)]
pub(super) fn send(
    source: &mut Source<'_>,
    kind: u8,
    context: &Context,
) -> Result<(CallSlot, Action<'static>), Fault> {
    let [call, comm, peer, tag, bytes, datatype] = source.fields::<6, 0b10_1011>()?;
    let call = call_slot(call, context.calls)?;
    let to = Transferred::new([comm, peer, tag, bytes, datatype])?;
    Ok((call, Action::Send(sent(to, kind - kind::SEND, context))))
}

/// Decodes a send; `flags` are the low bits of its kind.
#[inline(always)]
fn sent(to: Transferred, flags: u8, context: &Context) -> Send {
    let Transferred { comm, peer, tag, bytes, datatype } = to;
    let own_next = RequestId { thread: context.thread, number: context.requests };
    let request = (flags & 4 != 0).then_some(own_next);
    Send { comm, dest: peer, tag, bytes, datatype, mode: mode(flags & 3), request }
}

fn receive(from: Transferred, flags: u8) -> Receive {
    let Transferred { comm, peer, tag, bytes, datatype } = from;
    Receive {
        comm,
        source: peer,
        tag,
        any_source: flags & kind::ANY_SOURCE != 0,
        any_tag: flags & kind::ANY_TAG != 0,
        bytes,
        datatype,
    }
}

/// Fields common to sends and receives.
struct Transferred {
    comm: CommId,
    peer: CommRank,
    tag: i32,
    bytes: Bytes,
    datatype: DatatypeId,
}

impl Transferred {
    /// Decodes communicator, rank, tag, bytes and datatype.
    #[inline(always)]
    fn new([comm, peer, tag, bytes, datatype]: [u64; 5]) -> Result<Self, Fault> {
        if (comm | peer | tag | datatype) >> 32 != 0 {
            return Err(over_32_bits([
                ("communicator", comm),
                ("rank", peer),
                ("tag", tag),
                ("datatype", datatype),
            ]));
        }
        Ok(Self {
            comm: CommId(comm as u32),
            peer: CommRank(peer as u32),
            tag: tag as u32 as i32,
            bytes: Bytes(bytes),
            datatype: DatatypeId(datatype as u32),
        })
    }

    fn read(source: &mut Source<'_>) -> Result<Self, Fault> {
        Self::new(source.fields::<5, 0>()?)
    }
}

/// The error for the first value with more than 32 bits.
#[cold]
fn over_32_bits(fields: [(&'static str, u64); 4]) -> Fault {
    let wide = fields.into_iter().find(|&(_, value)| value >> 32 != 0);
    wide.map_or(Fault::Ended, |(what, value)| Fault::Nonsense(what, value))
}

fn collective<'a>(
    source: &mut Source<'_>,
    next: RequestId,
    lists: &'a mut Lists,
) -> Result<Action<'a>, Fault> {
    let code = source.get()?;
    let operation = usize::try_from(code).ok().and_then(|index| Operation::ALL.get(index));
    let operation = *operation.ok_or(Fault::Nonsense("collective operation", code))?;
    let flags = source.get()?;
    if flags & !collective_flag::ALL != 0 {
        return Err(Fault::Nonsense("flags of a collective", flags));
    }
    let has = |flag| flags & flag != 0;
    let comm = comm(source)?;
    let root = if has(collective_flag::ROOT) { Some(comm_rank(source)?) } else { None };
    let amounts = Amounts { send: Bytes(source.get()?), recv: Bytes(source.get()?) };
    let count = source.get()?;
    let own = datatype(source)?;
    let recv_datatype = if has(collective_flag::RECV_DATATYPE) { Some(datatype(source)?) } else { None };
    counts(source, has(collective_flag::SEND_COUNTS), &mut lists.send_counts)?;
    counts(source, has(collective_flag::RECV_COUNTS), &mut lists.recv_counts)?;
    Ok(Action::Collective(Collective {
        operation,
        comm,
        root,
        amounts,
        count,
        datatype: own,
        recv_datatype,
        request: has(collective_flag::REQUEST).then_some(next),
        send_counts: &lists.send_counts,
        recv_counts: &lists.recv_counts,
    }))
}

fn counts(source: &mut Source<'_>, present: bool, list: &mut Vec<u64>) -> Result<(), Fault> {
    list.clear();
    if present {
        for _ in 0..list_len(source)? {
            list.push(source.get()?);
        }
    }
    Ok(())
}

fn communicator<'a>(source: &mut Source<'_>, lists: &'a mut Lists) -> Result<Communicator<'a>, Fault> {
    let id = comm(source)?;
    let foreign = flag(source, "communicator flags")?;
    let origin = match source.get()? {
        0 => Origin::World,
        1 => Origin::SelfOnly,
        2 => Origin::Child { parent: comm(source)?, ordinal: get_u32(source, "ordinal")? },
        3 => Origin::Group { parent: comm(source)?, tag: tag(source)?, ordinal: get_u32(source, "ordinal")? },
        4 => Origin::Unseen { ordinal: get_u32(source, "ordinal")? },
        code => return Err(Fault::Nonsense("origin of a communicator", code)),
    };
    let split = match flag(source, "split of a communicator")? {
        true => Some(Split { color: get_i32(source, "colour")?, key: get_i32(source, "key")? }),
        false => None,
    };
    let members = members(source, &mut lists.ranks)?;
    let remote = match source.get()? {
        0 => None,
        1 => Some(Remote::Inside(self::members(source, &mut lists.remote)?)),
        2 => Some(Remote::Outside(get_u32(source, "member count")?)),
        code => return Err(Fault::Nonsense("other group of a communicator", code)),
    };
    Ok(Communicator { id, origin, split, members, remote, foreign })
}

fn members<'a>(source: &mut Source<'_>, ranks: &'a mut Vec<Rank>) -> Result<Members<'a>, Fault> {
    Ok(match source.get()? {
        0 => Members::All,
        1 => {
            let first = Rank(get_u32(source, "rank")?);
            let stride = unzigzag(source.get()?);
            let count = get_u32(source, "member count")?;
            if stride == 0 && count > 1 {
                return Err(Fault::Nonsense("stride of members", 0));
            }
            Members::Strided { first, stride, count }
        }
        2 => {
            ranks.clear();
            for _ in 0..list_len(source)? {
                ranks.push(Rank(get_u32(source, "rank")?));
            }
            Members::List(ranks)
        }
        code => return Err(Fault::Nonsense("form of a member list", code)),
    })
}

fn detail<'a>(
    source: &mut Source<'a>,
    next: RequestId,
    ranks: &'a mut Vec<Rank>,
) -> Result<Detail<'a>, Fault> {
    let code = source.get()?;
    if code == detail::NONE {
        return Ok(Detail::None);
    }
    // All others begin with the number of a window or file.
    let id = get_u32(source, "number of a window or file")?;
    Ok(match code {
        detail::WINDOW => Detail::Window {
            id: WindowId(id),
            comm: comm(source)?,
            size: Bytes(source.get()?),
            unit: get_u32(source, "unit")?,
        },
        detail::WINDOW_FREE => Detail::WindowFree(WindowId(id)),
        detail::TRANSFER..detail::SYNC if code - detail::TRANSFER < 2 => Detail::Transfer(Transfer {
            window: WindowId(id),
            target: comm_rank(source)?,
            displacement: unzigzag(source.get()?),
            sent: Bytes(source.get()?),
            fetched: Bytes(source.get()?),
            at_target: Bytes(source.get()?),
            request: (code & 1 != 0).then_some(next),
        }),
        detail::SYNC..detail::IO => Detail::Sync {
            window: WindowId(id),
            assert: get_i32(source, "assertion")?,
            exclusive: code & 2 != 0,
            target: if code & 1 != 0 { Some(comm_rank(source)?) } else { None },
            group: if code & 4 != 0 { Some(members(source, ranks)?) } else { None },
        },
        detail::IO..detail::FILE_OPEN => Detail::Io(Io {
            file: FileId(id),
            offset: if code & 1 != 0 { Some(unzigzag(source.get()?)) } else { None },
            write: code & 2 != 0,
            collective: code & 4 != 0,
            request: (code & 8 != 0).then_some(next),
        }),
        detail::FILE_OPEN => Detail::FileOpen {
            id: FileId(id),
            comm: comm(source)?,
            mode: get_i32(source, "access mode")?,
            name: text(source)?,
        },
        detail::FILE_VIEW => Detail::FileView {
            file: FileId(id),
            displacement: unzigzag(source.get()?),
            unit: Bytes(source.get()?),
        },
        detail::FILE_CLOSE => Detail::FileClose(FileId(id)),
        code => return Err(Fault::Nonsense("kind of detail", code)),
    })
}

/// The length of a list whose items have at least one byte each.
fn list_len(source: &mut Source<'_>) -> Result<usize, Fault> {
    let count = source.get()?;
    match usize::try_from(count) {
        Ok(len) if len <= source.remaining() => Ok(len),
        _ => Err(Fault::Ended),
    }
}

#[inline(always)]
fn mode(code: u8) -> SendMode {
    match code {
        0 => SendMode::Standard,
        1 => SendMode::Buffered,
        2 => SendMode::Synchronous,
        _ => SendMode::Ready,
    }
}

fn flag(source: &mut Source<'_>, what: &'static str) -> Result<bool, Fault> {
    match source.get()? {
        flag @ (0 | 1) => Ok(flag == 1),
        other => Err(Fault::Nonsense(what, other)),
    }
}

#[inline(always)]
fn get_u32(source: &mut Source<'_>, what: &'static str) -> Result<u32, Fault> {
    let value = source.get()?;
    u32::try_from(value).map_err(|_| Fault::Nonsense(what, value))
}

fn get_i32(source: &mut Source<'_>, what: &'static str) -> Result<i32, Fault> {
    let value = source.get()?;
    i32::try_from(unzigzag(value)).map_err(|_| Fault::Nonsense(what, value))
}

#[inline(always)]
fn comm(source: &mut Source<'_>) -> Result<CommId, Fault> {
    Ok(CommId(get_u32(source, "communicator")?))
}

#[inline(always)]
fn comm_rank(source: &mut Source<'_>) -> Result<CommRank, Fault> {
    Ok(CommRank(get_u32(source, "rank")?))
}

#[inline(always)]
fn tag(source: &mut Source<'_>) -> Result<i32, Fault> {
    Ok(get_u32(source, "tag")? as i32)
}

#[inline(always)]
fn datatype(source: &mut Source<'_>) -> Result<DatatypeId, Fault> {
    Ok(DatatypeId(get_u32(source, "datatype")?))
}

fn text<'a>(source: &mut Source<'a>) -> Result<&'a str, Fault> {
    let raw = source.text()?;
    std::str::from_utf8(raw).map_err(|_| Fault::Nonsense("text of bytes", raw.len() as u64))
}
