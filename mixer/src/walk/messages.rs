//! The rules for messages: sends, receives that are posted, and blocking receives.

use super::builder::{Builder, Pending, SideOf, Wildcard};
use super::timeline::Chain;
use crate::channels::{Channel, Purpose};
use crate::error::Problem;
use crate::index::{ChannelIndex, ReceiveIndex};
use crate::records::{After, Body};
use crate::task::Fate;
use vef_format::account::TimePart;
use vef_format::capture::event::{Event, Outcome, PostReceive, Receive, RequestId, Send};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

impl Builder<'_> {
    /// Rule 2.
    #[inline(always)]
    pub(super) fn post(&mut self, event: &Event<'_>, posted: &PostReceive) -> Result<(), Problem> {
        if self.probes.are_by(event.call)
            && let (Some(source), Some(tag)) = (posted.source, posted.tag)
        {
            self.probe(event, posted.comm, source, tag)?;
        }
        let pending = match (posted.source, posted.tag) {
            (Some(source), Some(tag)) if !self.options.by_length => {
                match self.channel(SideOf::Receives, (posted.comm, source, tag), posted.bytes)? {
                    Some(channel) => {
                        Pending::Receive(self.add_receive(event, channel, Fate::Unawaited, posted.bytes))
                    }
                    None => self.post_outside(event, posted),
                }
            }
            _ => self.post_wildcard(event, posted)?,
        };
        self.start(Some(posted.request), pending)
    }

    /// Posts a receive whose channel its completion determines.
    #[inline(never)]
    fn post_wildcard(&mut self, event: &Event<'_>, posted: &PostReceive) -> Result<Pending, Problem> {
        let PostReceive { comm, source, tag, bytes, .. } = *posted;
        let anybody = CommRank(0);
        let Some((_, peer)) = self.comms.peer(comm, source.unwrap_or(anybody))? else {
            return Ok(self.post_outside(event, posted));
        };
        let receive = self.add_receive(event, ChannelIndex::NONE, Fate::Unawaited, bytes);
        let source = source.map(|_| peer);
        self.wildcards.insert(receive, Wildcard { comm, source, tag, room: bytes });
        Ok(Pending::Receive(receive))
    }

    /// Posts a receive on a communicator that the trace cannot represent.
    #[cold]
    fn post_outside(&mut self, event: &Event<'_>, posted: &PostReceive) -> Pending {
        self.not_representable(event.call, posted.bytes);
        Pending::Outside(TimePart::Message)
    }

    /// Rule 3.
    #[inline(always)]
    pub(super) fn send(&mut self, event: &Event<'_>, send: &Send) -> Result<(), Problem> {
        if let Some(body) = self.message(event, send)? {
            self.record(event, body, After::Sent);
        }
        Ok(())
    }

    /// Adds the message of a send; returns the body of its record, if the trace can represent it.
    #[inline(always)]
    fn message(&mut self, event: &Event<'_>, send: &Send) -> Result<Option<Body>, Problem> {
        let Some(channel) = self.channel(SideOf::Sends, (send.comm, send.dest, send.tag), send.bytes)? else {
            self.not_representable(event.call, send.bytes);
            self.start(send.request, Pending::Outside(TimePart::Send))?;
            return Ok(None);
        };
        let record = self.next_record();
        let (message, body) = self.add_message(channel, send.bytes);
        self.start(send.request, Pending::Send { message, record })?;
        Ok(Some(body))
    }

    /// Rule 4: a blocking receive.
    pub(super) fn receive(&mut self, event: &Event<'_>, receive: &Receive) -> Result<(), Problem> {
        match self.received(event, receive)? {
            Some(receive) => self.record(event, Body::Mark, After::Received(receive)),
            None => self.not_representable(event.call, receive.bytes),
        }
        Ok(())
    }

    /// Adds a blocking receive; returns `None` if the trace cannot represent it.
    fn received(&mut self, event: &Event<'_>, receive: &Receive) -> Result<Option<ReceiveIndex>, Problem> {
        let Receive { comm, source, tag, bytes, .. } = *receive;
        let Some(channel) = self.channel(SideOf::Receives, (comm, source, tag), bytes)? else {
            return Ok(None);
        };
        let receive = self.add_receive(event, channel, Fate::Awaited, bytes);
        self.completed_receive(event, receive);
        Ok(Some(receive))
    }

    /// Rule 8. Send and receive begin at the same time, so the receive is posted here.
    pub(super) fn exchange(
        &mut self,
        event: &Event<'_>,
        send: &Send,
        receive: &Receive,
    ) -> Result<(), Problem> {
        let mut chain = Chain::default();
        if let Some(body) = self.message(event, send)? {
            self.timeline.record(&mut self.task, event, event.start, &mut chain, body, After::Sent);
        }
        if let Some(receive) = self.received(event, receive)? {
            let after = After::Received(receive);
            self.timeline.record(&mut self.task, event, event.start, &mut chain, Body::Mark, after);
        }
        self.timeline.end(event, &chain);
        Ok(())
    }

    /// Sets the channel of a completed receive, if posting could not.
    #[inline(always)]
    pub(super) fn resolve(&mut self, receive: ReceiveIndex, outcome: Outcome) -> Result<(), Problem> {
        match outcome {
            Outcome::Received { source, tag, bytes } => self.matched(receive, source, tag, bytes),
            _ if self.task.receives.channel_of(receive.0) == ChannelIndex::NONE => Err(Problem::Unresolved),
            _ => Ok(()),
        }
    }

    /// Sets or checks the channel of a receive that matched a message from `source` with `tag`.
    fn matched(
        &mut self,
        receive: ReceiveIndex,
        source: CommRank,
        tag: i32,
        bytes: Option<Bytes>,
    ) -> Result<(), Problem> {
        if let Some(channel) = self.task.receives.get(receive.0) {
            let same = self.comms.rank_of(channel.comm, source) == Some(channel.peer) && tag == channel.tag;
            return if same { Ok(()) } else { Err(Problem::OtherMessage) };
        }
        let posted = self.wildcards.remove(&receive).ok_or(Problem::Unresolved)?;
        let Some((_, peer)) = self.comms.peer(posted.comm, source)? else { return Ok(()) };
        if posted.source.is_some_and(|asked| asked != peer) || posted.tag.is_some_and(|asked| asked != tag) {
            return Err(Problem::OtherMessage);
        }
        let bytes = bytes.unwrap_or_default();
        if let Some(channel) = self.channel(SideOf::Receives, (posted.comm, source, tag), bytes)? {
            self.task.receives.assign(receive.0, channel);
        }
        Ok(())
    }

    /// A request that no call will wait for.
    pub(super) fn forget(&mut self, request: RequestId) {
        match self.take_request(request) {
            Some(Pending::Receive(receive)) => self.abandon(receive),
            // Its number was known when it was started.
            Some(Pending::Partitioned(id)) => _ = self.end_transfer(id),
            Some(_) => {}
            None => self.task.counts.unknown_requests += 1,
        }
    }

    /// The requests that are pending at the end.
    pub(super) fn abandon_open_receives(&mut self) {
        let open: Vec<_> = self.requests.drain().collect();
        self.task.counts.never_completed = open.len() as u64;
        let receive = |pending| match pending {
            Pending::Receive(receive) => Some(receive),
            Pending::Partitioned(id) => {
                _ = self.end_transfer(id);
                None
            }
            _ => None,
        };
        let mut open: Vec<_> = open.into_iter().filter_map(receive).collect();
        open.sort_unstable();
        open.into_iter().for_each(|receive| self.abandon(receive));
    }

    /// A receive that no call will wait for. Without its source or tag the channel stays unknown.
    fn abandon(&mut self, receive: ReceiveIndex) {
        let Some(Wildcard { comm, source, tag, room }) = self.wildcards.remove(&receive) else { return };
        if let (Some(peer), Some(tag), Ok(local)) = (source, tag, self.comms.get(comm)) {
            let channel =
                Channel { comm: local.index, peer, tag, purpose: Purpose::PointToPoint, length: room.0 };
            let channel = self.task.receives.channel(channel);
            self.task.receives.assign(receive.0, channel);
        }
    }
}
