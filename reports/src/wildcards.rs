//! Sources and tags of receives with wildcards: needed where they are posted, known where they complete.

use std::collections::HashMap;
use vef_format::capture::event::{Action, Completions, Outcome, PostReceive, RequestId};
use vef_format::capture::{Capture, CaptureError};
use vef_format::ids::{CommRank, Rank};

/// Source and tag of the messages that a rank's receives with wildcards matched; `None`: cancelled.
#[derive(Debug, Default)]
pub(crate) struct Matched(HashMap<RequestId, Option<(CommRank, i32)>>);

impl Matched {
    /// Reads the events of a rank.
    pub(crate) fn of_rank(capture: &Capture, rank: Rank) -> Result<Self, CaptureError> {
        let mut matched = HashMap::new();
        capture.events(rank)?.each(|event| {
            if let Action::Complete(Completions::List(list)) = &event.action {
                for completion in *list {
                    match completion.outcome {
                        Outcome::Done => {}
                        Outcome::Received { source, tag, .. } => {
                            matched.insert(completion.request, Some((source, tag)));
                        }
                        Outcome::Cancelled => {
                            matched.insert(completion.request, None);
                        }
                    }
                }
            }
            Ok::<_, CaptureError>(())
        })?;
        Ok(Self(matched))
    }

    /// Source and tag of the message of a receive, if it has one.
    pub(crate) fn of(&self, posted: &PostReceive) -> Option<(CommRank, i32)> {
        match self.0.get(&posted.request) {
            Some(matched) => *matched,
            None => posted.source.zip(posted.tag),
        }
    }

    /// The source of the message of a request, if its receive had a wildcard.
    pub(crate) fn source(&self, request: RequestId) -> Option<CommRank> {
        self.0.get(&request).copied().flatten().map(|(source, _)| source)
    }
}
