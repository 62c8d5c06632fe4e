//! The rule for probes: a probe waits for the message that it finds, as a receive does.

use super::builder::{Builder, SideOf};
use super::called::Probes;
use super::timeline::Chain;
use crate::error::Problem;
use crate::index::{ChannelIndex, ReceiveIndex};
use crate::records::{After, Body};
use crate::task::{Fate, Found};
use hashbrown::HashSet;
use vef_format::capture::event::Event;
use vef_format::ids::{CommId, CommRank};
use vef_format::units::Bytes;

impl Builder<'_> {
    /// Rule 10: a mark at the start of the call, and one at its end that depends on the message. If another thread receives the
    /// message, its records are behind the second mark.
    #[cold]
    pub(super) fn probe(
        &mut self,
        event: &Event<'_>,
        comm: CommId,
        source: CommRank,
        tag: i32,
    ) -> Result<(), Problem> {
        // Without communicators, channels differ by the length of messages, which a probe does not have.
        if self.options.by_length {
            return Ok(());
        }
        let Some(channel) = self.channel(SideOf::Receives, (comm, source, tag), Bytes::ZERO)? else {
            return Ok(());
        };
        // The same message again: it has been waited for.
        let next = self.task.receives.len() as u32;
        if let (None, Some(&(last, of))) = (&self.task.postings, self.probes.made.last())
            && (last.0 + 1, of) == (next, channel)
        {
            return Ok(());
        }
        self.count_further()?;
        let found = self.add_receive(event, ChannelIndex::NONE, Fate::Unawaited, Bytes::ZERO);
        self.probes.made.push((found, channel));
        let mut chain = Chain::default();
        for after in [After::Received(found), After::Sent] {
            self.timeline.record(&mut self.task, event, event.end, &mut chain, Body::Mark, after);
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// Finds the receive of each probe's message: the next one on its channel that was not posted before the probe returned. Of several
    /// probes of a message the first one to return waits for it.
    pub(super) fn resolve_probes(&mut self) {
        let Self { probes: Probes { made, .. }, task, .. } = self;
        if made.is_empty() {
            return;
        }
        let returned = |receive: ReceiveIndex| match &task.postings {
            Some(postings) => postings[receive.index()].end,
            // In the order of the calls.
            None => 0,
        };
        made.sort_by_key(|&(probe, _)| returned(probe));
        let grouped = task.receives.group();
        let channels: Vec<&[u32]> = grouped.all().collect();
        let mut known = HashSet::new();
        for &(probe, channel) in &*made {
            let receives = channels[channel.index()];
            let later = receives[receives.partition_point(|&receive| receive < probe.0)..].iter();
            // The receive of a matched probe is posted by the probe itself.
            let is_behind = |receive| returned(receive) >= returned(probe);
            match later.copied().map(ReceiveIndex).find(|&receive| is_behind(receive)) {
                None => task.counts.found_only += 1,
                Some(receive) if known.insert(receive) => {
                    task.fates[receive.index()] = Fate::HasDependent;
                    task.found.push(Found { probe, receive });
                }
                Some(_) => {}
            }
        }
    }
}
