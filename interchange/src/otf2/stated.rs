//! The bytes that the two ends of each message state.
//!
//! The record of a send and that of its receive each have the message's bytes. The n-th send of a channel is for the receive that was
//! posted n-th. Where the two differ, the trace has those of the send.

use crate::findings::Findings;
use hashbrown::HashMap;
use std::collections::VecDeque;
use vef_format::ids::Rank;

/// What ends that differ are called.
const DIFFERENT: &str = "messages of which the receive states other bytes than the send";

/// The messages of which the n-th sent is the n-th received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Channel {
    /// The communicator, in the numbers of the archive.
    pub(super) comm: u64,
    pub(super) source: Rank,
    pub(super) dest: Rank,
    pub(super) tag: u64,
}

/// An end of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) channel: Channel,
    pub(super) sends: bool,
    pub(super) bytes: u64,
    /// When its call began, in the time of its rank.
    pub(super) time: u64,
    /// The number of its call in the rank, from 1.
    pub(super) call: u64,
}

/// Ends of a channel that follow each other, of the same bytes.
#[derive(Clone, Copy, Debug)]
struct Run {
    sends: bool,
    bytes: u64,
    count: u64,
}

/// Ends of which the other one has not been read yet; those of a channel are all sends, or all receives.
#[derive(Debug, Default)]
pub(super) struct Stated(HashMap<Channel, VecDeque<Run>>);

impl Stated {
    /// Compares the ends of a rank with those of the ranks before it. Each thread has its ends in the order of time.
    pub(super) fn compare(&mut self, mut ends: Vec<End>, findings: &mut Findings) {
        ends.sort_by_key(|end| end.time);
        for End { channel, sends, bytes, call, .. } in ends {
            let waiting = self.0.entry(channel).or_default();
            match waiting.front_mut() {
                Some(run) if run.sends != sends => {
                    if run.bytes != bytes {
                        let (rank, [received, sent]) = match sends {
                            true => (channel.source, [run.bytes, bytes]),
                            false => (channel.dest, [bytes, run.bytes]),
                        };
                        findings.warning(DIFFERENT, || {
                            format!("rank {rank}, call {call}: {received} received, {sent} sent")
                        });
                    }
                    run.count -= 1;
                    if run.count == 0 {
                        waiting.pop_front();
                    }
                }
                _ => match waiting.back_mut() {
                    Some(run) if run.bytes == bytes => run.count += 1,
                    _ => waiting.push_back(Run { sends, bytes, count: 1 }),
                },
            }
        }
    }
}
