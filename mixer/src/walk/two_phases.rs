//! The rule for collective accesses to files in two phases ([`two_phase`](crate::two_phase)): exchanges between members and aggregators, which
//! access the servers.

use super::builder::{Builder, Lowered};
use super::creations::collective;
use super::timeline::Chain;
use crate::StorageServers;
use crate::channels::{Channel, Purpose};
use crate::error::Problem;
use crate::two_phase::{Covered, Plan};
use std::ops::Range;
use vef_format::capture::event::{Collective, Event};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::Operation;
use vef_format::units::Bytes;

/// A collective access in two phases, as one of its members.
pub(super) struct Phases<'p> {
    /// The communicator of the file.
    pub(super) of: CommId,
    /// The server of its first stripe.
    pub(super) first_server: u32,
    pub(super) write: bool,
    pub(super) plan: &'p Plan,
}

/// What an exchange has of each pair of a member and an aggregator.
enum Exchange {
    /// Where the member's bytes are: an offset and a length of eight bytes each.
    Places,
    /// The bytes of a round.
    Round(u64),
}

impl Builder<'_> {
    /// A collective access.
    pub(super) fn in_two_phases(
        &mut self,
        event: &Event<'_>,
        phases: &Phases<'_>,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let &Phases { of, write, plan, .. } = phases;
        let own = self.comms.get(of)?.group.rank_of(self.rank).ok_or(Problem::NotAMember(of.0))?;
        let aggregated = plan.aggregators().find(|&(_, member)| member == own.0).map(|(number, _)| number);
        self.count_exchanged(event, of, Operation::Alltoall, None, chain)?;
        self.gather_or_scatter(event, phases, &Exchange::Places, true, chain)?;
        self.count_exchanged(event, of, Operation::Allreduce, None, chain)?;
        for round in 0..plan.rounds {
            let piece = aggregated.map_or(0..0, |number| plan.piece(number, round));
            let covered = plan.covers(&piece);
            // The servers answer in the order of the rounds, the read of a round before its write.
            let order = |write| (plan.at(own.0), (2 * round) as u32 + u32::from(write));
            if covered == Covered::WithHoles || !write && covered == Covered::Everywhere {
                self.access(event, phases, order(false), &piece, false, chain)?;
            }
            self.count_exchanged(event, of, Operation::Alltoall, None, chain)?;
            self.gather_or_scatter(event, phases, &Exchange::Round(round), write, chain)?;
            if write && covered != Covered::Nowhere {
                self.access(event, phases, order(true), &piece, true, chain)?;
            }
        }
        if write {
            let mut aggregators = plan.aggregators();
            match (aggregators.next(), aggregators.next()) {
                (Some((_, only)), None) => {
                    self.count_exchanged(event, of, Operation::Bcast, Some(CommRank(only)), chain)
                }
                _ => self.count_exchanged(event, of, Operation::Allreduce, None, chain),
            }?;
        }
        Ok(())
    }

    /// A collective of an integer of each member, or of each pair of members.
    fn count_exchanged(
        &mut self,
        event: &Event<'_>,
        of: CommId,
        operation: Operation,
        root: Option<CommRank>,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        const INTEGER: u64 = 4;
        let group = &self.comms.get(of)?.group;
        let is_root = root.is_some_and(|root| group.get(root) == Some(self.rank));
        let all = Bytes(INTEGER * u64::from(group.count()));
        let own = if operation == Operation::Alltoall { all } else { Bytes(INTEGER) };
        let amounts = operation.amounts(is_root, own, all);
        self.add_collective(event, &Collective { root, amounts, ..collective(operation, of) }, chain)
    }

    /// The messages between members and aggregators, or back, and the wait for them.
    fn gather_or_scatter(
        &mut self,
        event: &Event<'_>,
        &Phases { of, plan, .. }: &Phases<'_>,
        what: &Exchange,
        to_aggregators: bool,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let local = self.comms.get(of)?;
        let (index, group) = (local.index, local.group.clone());
        let own = group.rank_of(self.rank).ok_or(Problem::NotAMember(of.0))?.0;
        let size = |member: u32, number: usize| match what {
            Exchange::Places if plan.share(member, &plan.domain(number)) > Bytes::ZERO => Bytes(16),
            Exchange::Places => Bytes::ZERO,
            Exchange::Round(round) => plan.share(member, &plan.piece(number, *round)),
        };
        let mut awaited = Lowered::of_window(Vec::new());
        for (number, aggregator) in plan.aggregators() {
            let members = if aggregator == own { plan.members() } else { own..own + 1 };
            for member in members.filter(|&member| member != aggregator) {
                let bytes = size(member, number);
                if bytes == Bytes::ZERO {
                    continue;
                }
                let (from, to) = if to_aggregators { (member, aggregator) } else { (aggregator, member) };
                let peer = group.get(CommRank(if from == own { to } else { from }));
                let channel =
                    Channel::of_window(index, peer.ok_or(Problem::NotAMember(of.0))?, Purpose::Buffering);
                match from == own {
                    true => _ = self.post_message(event, channel, bytes, chain)?,
                    false => awaited.receives.push(self.post_receive(event, channel)?),
                }
            }
        }
        self.complete_lowered(event, &awaited, chain);
        Ok(())
    }

    /// An aggregator accesses a piece of the file, and waits for the servers' answers.
    fn access(
        &mut self,
        event: &Event<'_>,
        &Phases { of, first_server, .. }: &Phases<'_>,
        order: (u64, u32),
        piece: &Range<u64>,
        write: bool,
        chain: &mut Chain,
    ) -> Result<(), Problem> {
        let Some(StorageServers { first: first_task, servers }) = self.options.io else { return Ok(()) };
        let index = self.comms.get(of)?.index;
        let mut awaited = Lowered::of_window(Vec::new());
        for (server, share) in servers.shares(first_server, piece.start, Bytes(piece.end - piece.start)) {
            let moved = if write { [share, Bytes::ZERO] } else { [Bytes::ZERO, share] };
            let server = Rank(first_task.0 + server);
            awaited.receives.push(self.ask(order, event, index, server, moved, chain)?);
        }
        self.complete_lowered(event, &awaited, chain);
        Ok(())
    }
}
