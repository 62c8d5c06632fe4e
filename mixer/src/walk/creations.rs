//! The rule for calls that create communicators, and that open, view and close files: the collectives by which MPI agrees on them.

use super::builder::{Builder, Pending};
use super::timeline::Chain;
use crate::error::Problem;
use ::collectives::creations::{OPENMPI_ACCESS, Part};
use vef_format::account::TimePart;
use vef_format::capture::event::{Collective, DatatypeId, Event, RequestId};
use vef_format::ids::{CommId, CommRank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::Bytes;

impl Builder<'_> {
    /// Rule 11: the collectives of the agreement, over `comm`. A non-blocking call has the first one alone, because the program
    /// may do anything before it completes.
    #[cold]
    pub(super) fn creation(
        &mut self,
        event: &Event<'_>,
        comm: CommId,
        request: Option<RequestId>,
    ) -> Result<(), Problem> {
        let mut chain = Chain::default();
        if !self.agree(event, comm, request, &mut chain)? {
            if self.comms.get(comm)?.foreign {
                self.not_representable(event.call, Bytes::ZERO);
            }
            return self.start(request, Pending::Outside(TimePart::Communicator));
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// Rule 11, of a call that frees a communicator, in which its members may wait for each other.
    pub(super) fn communicator_freed(&mut self, event: &Event<'_>, comm: CommId) -> Result<(), Problem> {
        match self.agreements.of(event.call) {
            &[(operation, _)] if self.comms.is_between_groups(comm)? => {
                self.between(event, &collective(operation, comm))
            }
            [] => Ok(()),
            _ => self.creation(event, comm, None),
        }
    }

    /// The records of the agreement; `false`: there is none.
    pub(super) fn agree(
        &mut self,
        event: &Event<'_>,
        comm: CommId,
        request: Option<RequestId>,
        chain: &mut Chain,
    ) -> Result<bool, Problem> {
        let parts = self.agreements.of(event.call);
        let parts = if request.is_some() { parts.get(..1).unwrap_or_default() } else { parts };
        let local = self.comms.get(comm)?;
        if local.foreign || local.inter {
            return Ok(false);
        }
        let size = local.group.count();
        let mut parts = parts.iter().filter(|&&part| part != OPENMPI_ACCESS || size > 2).peekable();
        if parts.peek().is_none() {
            return Ok(false);
        }
        self.add_agreement(event, comm, parts, request, chain)?;
        Ok(true)
    }

    /// Adds collectives over `comm`; the root is its first rank.
    pub(super) fn add_agreement<'p>(
        &mut self,
        event: &Event<'_>,
        comm: CommId,
        parts: impl IntoIterator<Item = &'p Part>,
        request: Option<RequestId>,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let rank = self.rank;
        let local = self.comms.get(comm)?;
        let (size, is_first) = (local.group.count(), local.group.get(CommRank(0)) == Some(rank));
        for &(operation, bytes) in parts {
            let is_root = operation.is_rooted() && is_first;
            let sum = Bytes(bytes.saturating_mul(size.into()));
            let call = Collective {
                root: operation.is_rooted().then_some(CommRank(0)),
                amounts: operation.amounts(is_root, Bytes(bytes), sum),
                request,
                ..collective(operation, comm)
            };
            self.add_collective(event, &call, chain)?;
            self.task.counts.agreements += 1;
        }
        Ok(())
    }
}

/// A collective that blocks, without data.
pub(super) fn collective(operation: Operation, comm: CommId) -> Collective<'static> {
    Collective {
        operation,
        comm,
        root: None,
        amounts: Amounts::default(),
        count: 0,
        datatype: DatatypeId::default(),
        recv_datatype: None,
        request: None,
        send_counts: &[],
        recv_counts: &[],
    }
}
