//! The calls of one rank in terms of MPI's handles: communicators, datatypes, persistent requests. For formats that have them as the
//! program passed them.

use super::arguments::{Collecting, Receiving, Sending, Span, Status, WORLD};
use super::creations::Handle;
use super::functions::Called;
use super::recorder::{Counts, Recorder};
use super::resolved::{Comm, Why};
use crate::error::Problem;
use hashbrown::HashMap;
use std::sync::Arc;
use vef_format::capture::Group;
use vef_format::capture::event::{Members, Origin, SendMode};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

/// A source or tag that is a wildcard.
const ANY: i64 = -1;

/// A call: when it was made, and of which function.
pub(crate) type At = (Span, Called);

/// The arguments of a send or receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    /// Elements.
    pub(crate) count: i64,
    /// Their datatype.
    pub(crate) datatype: Handle,
    /// The peer; negative: none, or any.
    pub(crate) peer: i64,
    /// The tag; −1 of a receive: any.
    pub(crate) tag: i32,
    /// The communicator.
    pub(crate) comm: Handle,
}

/// A rank's part of a collective, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Its block, or vector.
    pub(crate) own: u64,
    /// All blocks.
    pub(crate) sum: u64,
    /// Sent and received, where the operation does not follow from the two above.
    pub(crate) amounts: Option<(u64, u64)>,
    /// To each rank, in vector forms.
    pub(crate) send: Vec<u64>,
    /// From each rank, in vector forms.
    pub(crate) recv: Vec<u64>,
}

/// A communicator of the rank.
#[derive(Clone, Debug)]
struct Local {
    id: CommId,
    /// The members, or why they are not known.
    members: Result<Arc<Group>, Why>,
    /// Own rank.
    me: u32,
    /// Calls so far that created communicators from it.
    creations: u32,
}

/// A persistent request.
#[derive(Clone, Copy, Debug)]
enum Persistent {
    Send(Envelope, SendMode),
    Receive(Envelope),
}

/// The calls of one rank.
#[derive(Debug)]
pub(crate) struct Process {
    recorder: Recorder,
    /// The communicators that the next creating calls make.
    created: std::vec::IntoIter<Option<Comm>>,
    comms: HashMap<Handle, Local>,
    sizes: HashMap<Handle, Option<u64>>,
    persistent: HashMap<Handle, Persistent>,
    /// Whether traffic on communicators with unknown members is left out, not refused.
    partial: bool,
}

impl Process {
    /// A rank of a world of `tasks` ranks. `created`: what its calls create, in order.
    pub(crate) fn new(
        recorder: Recorder,
        tasks: u32,
        (world, itself): (Handle, Handle),
        created: Vec<Option<Comm>>,
        partial: bool,
    ) -> Result<Self, Problem> {
        let rank = recorder.rank();
        let group = |members: Members<'_>| {
            let outside = || Problem::NoRank { rank: rank.0.into(), ranks: tasks };
            Group::new(members, tasks).map(Arc::new).ok_or_else(outside)
        };
        let local = |id, members, me| Local { id, members: Ok(members), me, creations: 0 };
        let comms = [
            (world, local(WORLD, group(Members::All)?, rank.0)),
            (itself, local(CommId(1), group(Members::List(&[rank]))?, 0)),
        ];
        Ok(Self {
            recorder,
            created: created.into_iter(),
            comms: comms.into(),
            sizes: HashMap::new(),
            persistent: HashMap::new(),
            partial,
        })
    }

    /// The file of the rank, for calls without handles.
    pub(crate) fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Completes the rank.
    pub(crate) fn finish(self) -> Result<Counts, Problem> {
        self.recorder.finish(None)
    }

    /// Sets the size of a datatype; `None`: it is not known.
    pub(crate) fn set_size(&mut self, datatype: Handle, size: Option<u64>) {
        self.sizes.insert(datatype, size);
    }

    /// The size of an element, if it is known.
    pub(crate) fn known_size(&self, datatype: Handle) -> Option<u64> {
        self.sizes.get(&datatype).copied().flatten()
    }

    /// Bytes of `count` elements.
    pub(crate) fn bytes(&self, count: i64, datatype: Handle) -> Result<u64, Problem> {
        if count == 0 {
            return Ok(0);
        }
        let count = u64::try_from(count)
            .map_err(|_| Problem::Expected { expected: "a count", found: count.to_string() })?;
        let size = self.known_size(datatype).ok_or_else(|| {
            Problem::Invalid(format!("the size of datatype {datatype} does not follow from the trace"))
        })?;
        count.checked_mul(size).ok_or_else(|| Problem::TooLarge(format!("{count} × {size} bytes")))
    }

    fn comm(&self, handle: Handle) -> Result<&Local, Problem> {
        let unknown =
            || Problem::Invalid(format!("communicator {handle} is not created in the trace of this rank"));
        self.comms.get(&handle).ok_or_else(unknown)
    }

    /// The communicator; `None`: its traffic is left out.
    fn known(&mut self, handle: Handle) -> Result<Option<(CommId, Arc<Group>, u32)>, Problem> {
        let why = match self.comms.get(&handle) {
            Some(Local { id, members: Ok(group), me, .. }) => return Ok(Some((*id, group.clone(), *me))),
            Some(&Local { members: Err(why), .. }) => why,
            None if self.partial => Why::Unknown,
            None => return Err(self.comm(handle).err().unwrap_or(Problem::Truncated("a communicator"))),
        };
        if why == Why::Unknown && !self.partial {
            return Err(Problem::Invalid(format!(
                "communicator {handle} {}; vef import --partial leaves its calls out",
                why.as_str()
            )));
        }
        self.recorder.found(why.finding());
        Ok(None)
    }

    /// The rank `peer` of a communicator of this group.
    fn peer(peer: i64, comm: Handle, group: &Group) -> Result<u32, Problem> {
        let inside = u32::try_from(peer).ok().filter(|&peer| group.get(CommRank(peer)).is_some());
        inside.ok_or_else(|| {
            Problem::Invalid(format!("rank {peer} of communicator {comm}, which has {} ranks", group.count()))
        })
    }

    /// A send; with a request if it is not blocking.
    pub(crate) fn send(
        &mut self,
        (span, called): At,
        envelope: Envelope,
        mode: SendMode,
        request: Option<Handle>,
    ) -> Result<(), Problem> {
        let nothing = |recorder: &mut Recorder| {
            if let Some(request) = request {
                recorder.open_nothing(request);
            }
        };
        if envelope.peer < 0 {
            nothing(&mut self.recorder);
            return Ok(());
        }
        let bytes = self.bytes(envelope.count, envelope.datatype)?;
        let Some((comm, group, _)) = self.known(envelope.comm)? else {
            nothing(&mut self.recorder);
            return self.recorder.other(span, called, bytes);
        };
        let dest = Self::peer(envelope.peer, envelope.comm, &group)?;
        let sending = Sending { comm, dest, tag: envelope.tag, bytes, mode };
        self.recorder.send(span, called, sending, request)
    }

    /// The arguments of a receive; `None`: it gets nothing, or is left out.
    fn receiving(&mut self, at: At, envelope: Envelope) -> Result<Option<Receiving>, Problem> {
        if envelope.peer < ANY {
            return Ok(None);
        }
        let bytes = self.bytes(envelope.count, envelope.datatype)?;
        let Some((comm, group, _)) = self.known(envelope.comm)? else {
            self.recorder.other(at.0, at.1, 0)?;
            return Ok(None);
        };
        let source = match envelope.peer {
            ANY => None,
            peer => Some(Self::peer(peer, envelope.comm, &group)?),
        };
        let tag = (i64::from(envelope.tag) != ANY).then_some(envelope.tag);
        Ok(Some(Receiving { comm, source, tag, bytes }))
    }

    /// A receive is posted.
    pub(crate) fn post(&mut self, at: At, envelope: Envelope, request: Handle) -> Result<(), Problem> {
        match self.receiving(at, envelope)? {
            Some(receiving) => self.recorder.post(at.0, at.1, receiving, request),
            None => {
                self.recorder.open_nothing(request);
                Ok(())
            }
        }
    }

    /// Whether a status says that nothing was received: the source was `MPI_PROC_NULL`, in the number of a wildcard.
    fn is_nothing(got: Option<Status>) -> bool {
        got.is_some_and(|got| got.source < 0 && got.bytes.is_none_or(|bytes| bytes == 0))
    }

    /// A blocking receive.
    pub(crate) fn receive(&mut self, at: At, envelope: Envelope, got: Option<Status>) -> Result<(), Problem> {
        match self.receiving(at, envelope)? {
            Some(receiving) if receiving.source.is_some() || !Self::is_nothing(got) => {
                self.recorder.receive(at.0, at.1, receiving, got)
            }
            _ => Ok(()),
        }
    }

    /// A call that sends and receives.
    pub(crate) fn exchange(
        &mut self,
        at: At,
        send: Envelope,
        receive: Envelope,
        got: Option<Status>,
    ) -> Result<(), Problem> {
        let mode = SendMode::Standard;
        let receives = receive.peer >= 0 || receive.peer == ANY && !Self::is_nothing(got);
        if !receives {
            return self.send(at, send, mode, None);
        }
        if send.peer < 0 || self.known(send.comm)?.is_none() {
            return self.receive(at, receive, got);
        }
        let bytes = self.bytes(send.count, send.datatype)?;
        let (Some((comm, group, _)), Some(receiving)) =
            (self.known(send.comm)?, self.receiving(at, receive)?)
        else {
            return Ok(());
        };
        let dest = Self::peer(send.peer, send.comm, &group)?;
        let sending = Sending { comm, dest, tag: send.tag, bytes, mode };
        self.recorder.exchange(at.0, at.1, sending, receiving, got)
    }

    /// A persistent send is made.
    pub(crate) fn send_init(&mut self, envelope: Envelope, mode: SendMode, request: Handle) {
        self.persistent.insert(request, Persistent::Send(envelope, mode));
    }

    /// A persistent receive is made.
    pub(crate) fn receive_init(&mut self, envelope: Envelope, request: Handle) {
        self.persistent.insert(request, Persistent::Receive(envelope));
    }

    /// A persistent request is started.
    pub(crate) fn start(&mut self, at: At, request: Handle) -> Result<(), Problem> {
        match self.persistent.get(&request).copied() {
            Some(Persistent::Send(envelope, mode)) => self.send(at, envelope, mode, Some(request)),
            Some(Persistent::Receive(envelope)) => self.post(at, envelope, request),
            None if self.partial => {
                self.recorder.skip(at.1);
                self.recorder.open_nothing(request);
                Ok(())
            }
            None => Err(Problem::Invalid(format!("request {request} is started, but no call made it"))),
        }
    }

    /// A call that completed requests.
    pub(crate) fn complete(
        &mut self,
        (span, called): At,
        requests: impl IntoIterator<Item = (Handle, Option<Status>)>,
    ) -> Result<(), Problem> {
        // A persistent request that is not active is as good as none.
        let pending: Vec<_> = requests
            .into_iter()
            .filter(|(request, _)| {
                self.recorder.is_pending(*request) || !self.persistent.contains_key(request)
            })
            .collect();
        self.recorder.complete(span, called, pending)
    }

    /// `MPI_Request_free`.
    pub(crate) fn free_request(&mut self, (span, called): At, request: Handle) -> Result<(), Problem> {
        self.persistent.remove(&request);
        self.recorder.forget(span, called, request)
    }

    /// A probe found the message of this status.
    pub(crate) fn probe(
        &mut self,
        (span, called): At,
        comm: Handle,
        source: i64,
        tag: i32,
        got: Option<Status>,
    ) -> Result<(), Problem> {
        let (source, tag) = got.map_or((source, tag), |got| (got.source, got.tag));
        let Some((id, group, _)) = self.known(comm)? else { return self.recorder.other(span, called, 0) };
        if source < 0 || i64::from(tag) == ANY {
            // Which message it found is not known: its time is computing.
            self.recorder.skip(called);
            return Ok(());
        }
        let source = Self::peer(source, comm, &group)?;
        self.recorder.probe(span, called, id, source, tag)
    }

    /// A collective; `parts` returns this rank's part, from its rank and the size of the communicator.
    pub(crate) fn collective(
        &mut self,
        (span, called): At,
        operation: Operation,
        comm: Handle,
        root: Option<i64>,
        parts: impl FnOnce(&Self, u32, u32) -> Result<Parts, Problem>,
    ) -> Result<(), Problem> {
        let Some((id, group, me)) = self.known(comm)? else { return self.recorder.other(span, called, 0) };
        let root = match root {
            Some(root) => Some(Self::peer(root, comm, &group)?),
            None => None,
        };
        let Parts { own, sum, amounts, send, recv } = parts(self, me, group.count())?;
        let amounts = match amounts {
            Some((send, recv)) => Amounts { send: Bytes(send), recv: Bytes(recv) },
            None => operation.amounts(root == Some(me), Bytes(own), Bytes(sum)),
        };
        let (send_counts, recv_counts) = (&send[..], &recv[..]);
        let collecting = Collecting { operation, comm: id, root, amounts, send_counts, recv_counts };
        self.recorder.collective(span, called, &collecting, None)
    }

    /// A call that creates a communicator from `parent`; `new` is `None` where this rank is no member.
    pub(crate) fn create(
        &mut self,
        (span, called): At,
        parent: Handle,
        new: Option<Handle>,
    ) -> Result<(), Problem> {
        let made = self.created.next().flatten();
        let Some(local) = self.comms.get_mut(&parent) else {
            if self.partial {
                self.recorder.skip(called);
                return Ok(());
            }
            return self.comm(parent).map(drop);
        };
        let origin = Origin::Child { parent: local.id, ordinal: local.creations };
        local.creations += 1;
        let (parent, foreign) = (local.id, local.members.is_err());
        if let (Some(new), Some(made)) = (new, made) {
            let id = self.recorder.communicator(Span { end: span.start, ..span }, origin, &made)?;
            let rank = self.recorder.rank();
            let (members, me) = match made {
                Comm::Of(group) => {
                    let me = group.rank_of(rank).map_or(0, |me| me.0);
                    (Ok(group), me)
                }
                Comm::Foreign(why) => (Err(why), 0),
            };
            self.comms.insert(new, Local { id, members, me, creations: 0 });
        }
        if foreign {
            self.recorder.other(span, called, 0)
        } else {
            self.recorder.creation(span, called, parent)
        }
    }

    /// `MPI_Comm_free`.
    pub(crate) fn free_comm(&mut self, (span, called): At, comm: Handle) -> Result<(), Problem> {
        match self.comms.remove(&comm) {
            Some(Local { id, .. }) if id.0 > 1 => self.recorder.free(span, called, id),
            _ => Ok(()),
        }
    }
}
