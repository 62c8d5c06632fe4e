//! `vef text`: writes the text traces of a capture, if there is one, and their summaries.

use crate::output::{self, Failure};
use crate::progress::Bar;
use reports::text::{aggregate, write};
use results::text::Aggregated;
use std::path::PathBuf;
use vef_format::capture::{Capture, CaptureError, Ending};
use vef_format::ids::Rank;
use vef_format::units::Count;

/// Write a capture as text traces, one call per line, with the summaries of MinI Parser
#[derive(clap::Args)]
#[command(after_help = "\
Writes DIR/ti_traces from the capture in DIR, if there is one, and ti_traces/parserOutput: communicators.txt, global.txt,
a file per phase, and overall.txt with the count of each record in the whole run. The lines are those of MinI Parser
(docs/tools.md).")]
pub struct Arguments {
    /// Capture, or the directory with ti_trace0.txt …, or its parent
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Write lines `<rank> compute <ns>` for the time between calls; needs a capture
    #[arg(long)]
    pub times: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Directory of the text traces, in the capture.
const TRACES: &str = "ti_traces";

pub fn run(text: &Arguments) -> Result<(), Failure> {
    let (traces, capture) = traces(text)?;
    let bar = Bar::new("aggregating");
    let summary = match (aggregate(&traces), capture) {
        (Ok(summary), _) => summary,
        (Err(error), Some(capture)) => return Err(of_part(&capture, error.into())?),
        (Err(error), None) => return Err(error.into()),
    };
    drop(bar);
    if summary.incomplete > 0 {
        output::remark(format_args!(
            "warning: left out: {} that not all members of the communicator show",
            Count(summary.incomplete as u64, "collective operation")
        ));
    }
    if text.json {
        return output::json(&summary);
    }
    let Aggregated { ranks, phases, messages, bytes, collectives, communicators, output, .. } = &summary;
    output::result(format_args!(
        "{}: {}, {}, {}, {} with {}, {} (barriers are not counted)",
        output.display(),
        Count(*ranks, "rank"),
        Count(*phases, "phase"),
        Count(*communicators, "communicator"),
        Count(*messages, "message"),
        Count(*bytes, "byte"),
        Count(*collectives, "collective operation")
    ))
}

/// The error of a summary, which only whole runs have.
fn of_part(capture: &Capture, error: Failure) -> Result<Failure, Failure> {
    let mut stopped = 0;
    for rank in 0..capture.tasks() {
        stopped += u64::from(capture.events(Rank(rank))?.ending() != Ending::Finished);
    }
    if stopped == 0 {
        return Ok(error);
    }
    let stopped = Count(stopped, "rank");
    Ok(format!(
        "no summary: recording ended on {stopped} before the end of the run (vef run --only-ranks, --stop-after, --max-size; a program that was killed); \
         ti_traces has the calls until then ({})",
        output::in_one_line(&error)
    )
    .into())
}

/// The directory with the text traces, written from the capture if there is one.
fn traces(text: &Arguments) -> Result<(PathBuf, Option<Capture>), Failure> {
    let below = text.directory.join(TRACES);
    let is_traces = text.directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TRACES));
    let (traces, capture) = match (Capture::open(&text.directory), Capture::open(&below)) {
        (Ok(capture), _) if is_traces => (text.directory.clone(), Some(capture)),
        (Ok(capture), _) | (_, Ok(capture)) => (below, Some(capture)),
        (Err(CaptureError::NoCapture(_)), _) => {
            (if below.is_dir() { below } else { text.directory.clone() }, None)
        }
        (Err(error), _) => return Err(error.into()),
    };
    match &capture {
        Some(capture) => write(capture, &traces, text.times)?,
        None if text.times => return Err("--times needs a capture".into()),
        None => {}
    }
    Ok((traces, capture))
}
