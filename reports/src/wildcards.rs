//! Sources and tags of receives with wildcards: needed where they are posted, known where they complete.

use std::collections::HashMap;
use vef_format::capture::event::{Action, Completions, Outcome, RequestId};
use vef_format::capture::{Capture, CaptureError};
use vef_format::ids::{CommRank, Rank};

/// The messages that a rank's receives matched, by request: from one pass over its events.
pub(crate) fn matched(
    capture: &Capture,
    rank: Rank,
) -> Result<HashMap<RequestId, (CommRank, i32)>, CaptureError> {
    let mut matched = HashMap::new();
    capture.events(rank)?.each(|event| {
        if let Action::Complete(Completions::List(list)) = &event.action {
            for completion in *list {
                if let Outcome::Received { source, tag, .. } = completion.outcome {
                    matched.insert(completion.request, (source, tag));
                }
            }
        }
        Ok::<_, CaptureError>(())
    })?;
    Ok(matched)
}
