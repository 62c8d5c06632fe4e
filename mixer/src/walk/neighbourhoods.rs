//! The rules for neighbourhood collectives: messages to the destinations, and receives from the sources.

use super::builder::{Builder, Lowered, Pending};
use super::locals::Neighbours;
use super::timeline::Chain;
use crate::channels::{Channel, Purpose};
use crate::error::Problem;
use crate::records::After;
use crate::task::Fate;
use std::sync::Arc;
use vef_format::account::TimePart;
use vef_format::capture::event::{Event, Neighbourhood, Topology};
use vef_format::ids::{CommRank, Rank};
use vef_format::units::Bytes;

impl Builder<'_> {
    /// Keeps the neighbours in the topology of a communicator.
    #[cold]
    pub(super) fn topology(&mut self, described: &Topology<'_>) -> Result<(), Problem> {
        let comm = described.comm;
        let local = self.comms.get(comm)?;
        if local.foreign {
            return Ok(());
        }
        let size = local.group.count();
        let task = |rank: &Option<CommRank>| match rank.map(|rank| (rank, local.group.get(rank))) {
            None => Ok(None),
            Some((_, Some(task))) => Ok(Some(task)),
            Some((rank, None)) => Err(Problem::Peer { comm: comm.0, size, rank: rank.0 }),
        };
        let tasks = |list: &[Option<CommRank>]| list.iter().map(task).collect::<Result<Vec<_>, _>>();
        let (sources, destinations) = (tasks(described.sources)?, tasks(described.destinations)?);
        local.neighbours = Some(Arc::new(Neighbours { sources, destinations }));
        Ok(())
    }

    /// Rule 12. The n-th call on a communicator is one operation of all its members, and a task sends as many messages to
    /// another one in it as that one receives, so these match in order.
    pub(super) fn neighbourhood(
        &mut self,
        event: &Event<'_>,
        call: &Neighbourhood<'_>,
    ) -> Result<(), Problem> {
        let comm = call.comm;
        let local = self.comms.get(comm)?;
        let index = local.index;
        if local.foreign {
            self.not_representable(event.call, call.block.send);
            return self.start(call.request, Pending::Outside(TimePart::Collective));
        }
        let Some(neighbours) = local.neighbours.clone() else { return Err(Problem::NoTopology(comm.0)) };
        let channel =
            |peer| Channel { comm: index, peer, tag: 0, purpose: Purpose::Neighbourhood, length: 0 };
        let mut chain = Chain::default();
        let mut part = Lowered { marks_at_end: true, ..Lowered::collective() };
        for (peer, bytes) in blocks(&neighbours.destinations, call.send_counts, call.block.send)? {
            self.count_further()?;
            let channel = self.task.sends.channel(channel(peer));
            part.sends.push(self.next_record());
            let (_, body) = self.add_message(channel, bytes);
            self.timeline.record(&mut self.task, event, event.start, &mut chain, body, After::Sent);
        }
        for (peer, bytes) in blocks(&neighbours.sources, call.recv_counts, call.block.recv)? {
            self.count_further()?;
            let channel = self.task.receives.channel(channel(peer));
            part.receives.push(self.add_receive(event, channel, Fate::Unawaited, bytes));
        }
        if let Some(notes) = &mut self.notes {
            part.sends.iter().for_each(|&send| notes.detached(send));
        }
        match call.request {
            Some(_) => self.start_lowered(call.request, part)?,
            None => self.complete_lowered(event, &part, &mut chain),
        }
        self.timeline.end(event, &chain);
        Ok(())
    }
}

/// The neighbours other than `MPI_PROC_NULL`, each with the bytes of its block.
fn blocks<'a>(
    neighbours: &'a [Option<Rank>],
    counts: &'a [u64],
    block: Bytes,
) -> Result<impl Iterator<Item = (Rank, Bytes)> + 'a, Problem> {
    if !counts.is_empty() && counts.len() != neighbours.len() {
        return Err(Problem::Neighbours { given: counts.len() as u64, expected: neighbours.len() as u64 });
    }
    let bytes = move |at: usize| counts.get(at).map_or(block, |&bytes| Bytes(bytes));
    let block = move |(at, peer): (usize, &Option<Rank>)| Some(((*peer)?, bytes(at)));
    Ok(neighbours.iter().enumerate().filter_map(block))
}
