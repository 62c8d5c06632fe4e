//! Timelines of ranks, as files for trace viewers.
//!
//! The times are those of the calls in a capture ([`Source::Capture`]) or, as a trace has none, those of its replay on the yardstick
//! network ([`Source::Trace`]). Both become slices on a track for each rank, and arrows between the
//! slices of a message's sender and of its receiver. The file is written while its source is read, rank after rank or in the
//! order of the replay: viewers sort. Memory depends on the number of ranks, not of calls. The result of a simulation gives curves of its links
//! ([`Source::Simulation`]).

mod capture;
mod chrome;
mod drawing;
mod encoder;
mod followed;
mod perfetto;
mod ranks;
mod replayed;
mod settings;
mod simulated;

pub use followed::{Run, SimulatedJob};
pub use settings::{Format, Settings, Summary, TimelineError};

use drawing::Drawing;
use replay::{Extent, Link, OpCodes, Stuck};
use std::fs::File;
use std::io;
use std::path::Path;
use vef_format::capture::Capture;

/// Where slices come from.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A capture: the times of the calls.
    Capture(&'a Capture),
    /// A trace: the times of a replay on the yardstick.
    Trace {
        /// Text or container.
        path: &'a Path,
        /// The operations of a text's codes, if not the default ones.
        op_codes: Option<&'a OpCodes>,
        /// The link that each message takes.
        link: &'a Link,
        /// What of the run is drawn.
        extent: &'a Extent,
    },
    /// The result of a simulation: its links.
    Simulation(&'a Path),
    /// A simulation that runs meanwhile: its ranks.
    Simulated {
        /// Its traces.
        jobs: &'a [SimulatedJob<'a>],
        /// Runs it; a second time if the file would be too large.
        run: Run<'a>,
    },
}

/// Draws `source` into the file `out`. If the first attempt exceeds the limit, the file is truncated and written again. A pipe cannot
/// be: if `out` is one (`is_pipe`), a first pass over the source only measures. `progress` receives the number of slices drawn.
///
/// # Errors
/// See [`TimelineError`].
pub fn draw(
    source: Source<'_>,
    settings: &Settings,
    out: &File,
    is_pipe: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Summary, TimelineError> {
    let mut drawing = Drawing::new(settings, (!is_pipe).then_some(out), None, &mut *progress);
    let stuck = fill(source, settings, &mut drawing)?;
    let shorter_than = drawing.shorter_than()?;
    if !is_pipe && shorter_than.is_none() {
        return Ok(Summary { stuck: stuck.map(Box::new), ..drawing.finish()? });
    }
    drop(drawing);
    if !is_pipe {
        out.set_len(0)?;
        io::Seek::rewind(&mut &*out)?;
    }
    let mut drawing = Drawing::new(settings, Some(out), shorter_than, progress);
    let stuck = fill(source, settings, &mut drawing)?;
    Ok(Summary { stuck: stuck.map(Box::new), ..drawing.finish()? })
}

fn fill(
    source: Source<'_>,
    settings: &Settings,
    drawing: &mut Drawing<'_>,
) -> Result<Option<Stuck>, TimelineError> {
    match source {
        Source::Capture(capture) => capture::draw(capture, settings, drawing).map(|()| None),
        Source::Simulation(path) => simulated::draw(path, settings, drawing).map(|()| None),
        Source::Simulated { jobs, run } => followed::draw(jobs, run, settings, drawing).map(|()| None),
        Source::Trace { path, op_codes, link, extent } => {
            replayed::draw(path, op_codes, link, extent, settings, drawing)
        }
    }
}
