//! The rule for collectives between the groups of an inter-communicator: the messages that the MPI library sends.

use super::builder::{Builder, Lowered};
use super::timeline::Chain;
use crate::channels::{Channel, Purpose};
use crate::error::Problem;
use crate::lower::table_of;
use crate::records::After;
use crate::task::Fate;
use ::collectives::between::{Move, Party, Peer, Role, creation};
use vef_format::capture::event::{Collective, Event, RequestId};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::Operation;
use vef_format::units::Bytes;

impl Builder<'_> {
    /// Rule 18. A call that does not block sends all its messages at once and completes all its receives at its wait.
    #[cold]
    pub(super) fn between(&mut self, event: &Event<'_>, call: &Collective<'_>) -> Result<(), Problem> {
        let (rank, library) = (self.rank, self.options.library);
        let local = self.comms.get(call.comm)?;
        let (own, others) = (local.group.clone(), local.peers.clone());
        let role = match call.root {
            _ if call.root.is_some() != call.operation.is_rooted() => {
                return Err(Problem::Root(call.operation));
            }
            None => Role::Rootless,
            Some(CommRank::ROOT) => Role::Root,
            Some(CommRank::BESIDE_ROOT) => Role::Beside,
            Some(CommRank(root)) if root < others.count() => Role::Opposite(root),
            Some(CommRank(rank)) => {
                return Err(Problem::Peer { comm: call.comm.0, size: others.count(), rank });
            }
        };
        // Overlapping ones that do not block may be in different order on each member, so each has its own tag.
        let tag = if call.request.is_some() { local.between } else { 0 };
        local.between = local.between.wrapping_add(1);
        let party = Party {
            operation: call.operation,
            blocking: call.request.is_none(),
            rank: own.rank_of(rank).ok_or(Problem::NotAMember(call.comm.0))?.0,
            own: own.count(),
            others: others.count(),
            role,
            send: call.amounts.send.0,
            recv: call.amounts.recv.0,
            unit: self.unit(call),
            send_counts: call.send_counts,
            recv_counts: call.recv_counts,
        };
        let table = self.options.lower.unwrap_or(table_of(library));
        let moves = party.moves(library, table).map_err(|error| Problem::Schedule(call.operation, error))?;
        self.between_messages(event, call.comm, call.request, tag, moves)
    }

    /// The bytes of an element of a reduction, in which all ranks have the same datatype.
    fn unit(&self, call: &Collective<'_>) -> u32 {
        let size = self.element_sizes.get(&call.datatype).filter(|_| call.operation.reduces());
        size.and_then(|size| u32::try_from(size.0).ok()).map_or(1, |size| size.max(1))
    }

    /// Rule 11, between groups that meet or have met: the messages by which they agree, as in `MPI_Intercomm_create`; the first rank of each is
    /// taken as its leader.
    #[cold]
    pub(super) fn creation_between(&mut self, event: &Event<'_>, comm: CommId) -> Result<(), Problem> {
        let (rank, library) = (self.rank, self.options.library);
        let local = self.comms.get(comm)?;
        let number = local.group.rank_of(rank).ok_or(Problem::NotAMember(comm.0))?.0;
        let (own, others) = (local.group.count(), local.peers.count());
        let moves = creation(library, table_of(library), number, own, others)
            .map_err(|error| Problem::Schedule(Operation::Barrier, error))?;
        self.between_messages(event, comm, None, 0, moves)
    }

    /// Adds the messages and receives of a call on an inter-communicator.
    fn between_messages(
        &mut self,
        event: &Event<'_>,
        comm: CommId,
        request: Option<RequestId>,
        tag: i32,
        moves: Vec<Move>,
    ) -> Result<(), Problem> {
        let mut chain = Chain::default();
        let local = self.comms.get(comm)?;
        let (index, own, others) = (local.index, local.group.clone(), local.peers.clone());
        let channel = |peer| {
            let (group, rank) = match peer {
                Peer::Own(rank) => (&own, rank),
                Peer::Other(rank) => (&others, rank),
            };
            match group.get(CommRank(rank)) {
                Some(peer) => Ok(Channel { comm: index, peer, tag, purpose: Purpose::Collective, length: 0 }),
                None => Err(Problem::Peer { comm: comm.0, size: group.count(), rank }),
            }
        };
        if let Some(notes) = &mut self.notes {
            notes.as_messages();
        }
        let mut part = Lowered::collective();
        for step in moves {
            self.count_further()?;
            match step {
                Move::Send(to, bytes) => {
                    let channel = self.task.sends.channel(channel(to)?);
                    let record = self.next_record();
                    let (_, body) = self.add_message(channel, Bytes(bytes));
                    self.timeline.record(&mut self.task, event, event.start, &mut chain, body, After::Sent);
                    if let Some(notes) = &mut self.notes {
                        notes.detached(record);
                        part.sends.push(record);
                    }
                }
                Move::Receive(from) => {
                    let channel = self.task.receives.channel(channel(from)?);
                    part.receives.push(self.add_receive(event, channel, Fate::Unawaited, Bytes::ZERO));
                }
                Move::Wait if request.is_none() => {
                    let receives = std::mem::take(&mut part.receives);
                    self.complete_lowered(event, &Lowered { receives, ..Lowered::collective() }, &mut chain);
                }
                Move::Wait => {}
            }
        }
        match request {
            Some(_) => self.start_lowered(request, part)?,
            None => self.complete_lowered(event, &part, &mut chain),
        }
        self.timeline.end(event, &chain);
        Ok(())
    }
}
