//! Sources and tags of receives with wildcards, and which receives never complete: needed where they are posted, known where they complete.

use std::collections::{HashMap, HashSet};
use vef_format::capture::event::{Action, Outcome, PostReceive, RequestId};
use vef_format::capture::{Capture, CaptureError};
use vef_format::ids::{CommRank, Rank};

/// What became of a rank's receives.
#[derive(Debug, Default)]
pub(crate) struct Matched {
    /// Source and tag of the messages that receives with wildcards matched; `None`: cancelled.
    wildcards: HashMap<RequestId, Option<(CommRank, i32)>>,
    /// Receives that no recorded call completed or freed.
    pending: HashSet<RequestId>,
}

impl Matched {
    /// Reads the events of a rank.
    pub(crate) fn of_rank(capture: &Capture, rank: Rank) -> Result<Self, CaptureError> {
        let Self { mut wildcards, mut pending } = Self::default();
        capture.events(rank)?.each(|event| {
            match &event.action {
                Action::PostReceive(posted) => {
                    pending.insert(posted.request);
                }
                Action::Forget(request) => {
                    pending.remove(request);
                }
                Action::Complete(list) => {
                    for completion in list.iter() {
                        pending.remove(&completion.request);
                        match completion.outcome {
                            Outcome::Done => {}
                            Outcome::Received { source, tag, .. } => {
                                wildcards.insert(completion.request, Some((source, tag)));
                            }
                            Outcome::Cancelled => {
                                wildcards.insert(completion.request, None);
                            }
                        }
                    }
                }
                _ => {}
            }
            Ok::<_, CaptureError>(())
        })?;
        Ok(Self { wildcards, pending })
    }

    /// Source and tag of the message of a receive, if it has one.
    pub(crate) fn of(&self, posted: &PostReceive) -> Option<(CommRank, i32)> {
        match self.wildcards.get(&posted.request) {
            Some(matched) => *matched,
            None => posted.source.zip(posted.tag),
        }
    }

    /// Whether no recorded call completed the receive.
    pub(crate) fn is_pending(&self, posted: &PostReceive) -> bool {
        self.pending.contains(&posted.request)
    }

    /// The source of the message of a request, if its receive had a wildcard.
    pub(crate) fn source(&self, request: RequestId) -> Option<CommRank> {
        self.wildcards.get(&request).copied().flatten().map(|(source, _)| source)
    }
}
