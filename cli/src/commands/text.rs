//! `vef text`: the text traces of all ranks, aggregated.

use crate::args::Text;
use crate::output::{self, Failure};
use crate::progress::Busy;
use reports::text::{Summary, aggregate};
use vef_format::units::Grouped;

pub fn execute(text: &Text) -> Result<(), Failure> {
    let busy = Busy::new("aggregating");
    let summary = aggregate(&text.directory)?;
    drop(busy);
    let Summary { ranks, phases, messages, bytes, collectives, communicators, incomplete, output } = &summary;
    if *incomplete > 0 {
        output::remark(format_args!(
            "warning: {} collective operations are left out: not all members of the communicator show them",
            Grouped(*incomplete as u64)
        ));
    }
    if text.json {
        return output::json(&serde_json::json!({
            "ranks": ranks, "phases": phases, "messages": messages, "bytes": bytes, "collectives": collectives,
            "communicators": communicators, "incomplete": incomplete, "output": output,
        }));
    }
    output::result(format_args!(
        "{}: {ranks} ranks, {phases} phases, {communicators} communicators, {} messages with {} bytes, {} collective operations",
        output.display(),
        Grouped(*messages),
        Grouped(*bytes),
        Grouped(*collectives)
    ))
}
