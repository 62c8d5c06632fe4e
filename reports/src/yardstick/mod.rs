//! Statistics that need a replay on the yardstick network: traffic over time, waits, efficiency.
//!
//! The clock is that of the replay: every message takes the latency and its bytes over the bandwidth, without contention.

mod bins;
mod operations;
mod senders;
mod under_way;
mod watcher;

use crate::stats::Stats;
use replay::{
    BuildError, Engine, Extent, Job, Link, LoadError, OpCodes, Picos, ReplayError, Stream, WaitSums,
    yardstick,
};
use results::report::Replayed;
use std::io;
use std::path::Path;
use vef_format::format::Format;
use watcher::Watcher;

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayedError {
    /// It cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// It is not sound.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It cannot be set up.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It fails on its way.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// It does not come to its end.
    #[error("the trace does not replay to its end: {0}")]
    Stuck(Box<replay::Stuck>),
}

/// Replays the trace in the file `path`, whose statistics are `stats`, on a network of that `link`, and on an ideal one. The time before
/// each rank's end of `MPI_Init` is left out where the trace records it, unless the extent begins with the launch.
///
/// # Errors
/// The trace is not sound, or does not replay to its end.
pub fn replay(
    path: &Path,
    stats: &Stats,
    op_codes: Option<&OpCodes>,
    link: &Link,
    extent: &Extent,
    progress: &mut dyn FnMut(u64),
) -> Result<Replayed, ReplayedError> {
    let mut engine = Engine::builder().job(job(path, op_codes, extent)?).engine()?;
    let ideal_runtime = yardstick::run(&mut engine, &Link::ideal())?.runtime;
    let job = job(path, op_codes, extent)?;
    let labels = job.labels()?;
    let mut engine = Engine::builder().job(job).engine()?;
    let waits = WaitSums::new(&engine, vec![labels]);
    let mut watcher = Watcher::new(stats, *link, extent.from_launch, waits, progress);
    let outcome = yardstick::watch(&mut engine, link, Picos::MAX, &mut watcher)?;
    match outcome.stuck {
        Some(stuck) => Err(ReplayedError::Stuck(Box::new(stuck))),
        None => Ok(watcher.finish(&engine, outcome.runtime, ideal_runtime)),
    }
}

fn job(path: &Path, op_codes: Option<&OpCodes>, extent: &Extent) -> Result<Job, ReplayedError> {
    let job = match op_codes {
        Some(codes) if !Format::is_container(path)? => {
            let stream = Stream::with_codes(path, codes.clone()).map_err(LoadError::from)?;
            Job::stream(stream)
        }
        _ => Job::open(path)?,
    };
    Ok(job.extent(extent)?)
}
