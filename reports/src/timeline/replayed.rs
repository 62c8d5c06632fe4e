//! The records of a trace, with the times of a replay on the yardstick.

use super::drawing::Drawing;
use super::ranks::{Known, Ranks, nanos};
use super::settings::{Settings, TimelineError};
use replay::{Engine, Extent, Job, Link, LoadError, OpCodes, Stream, Stuck, yardstick};
use std::path::Path;
use vef_format::container::Reader;
use vef_format::format::Format;

/// Opens a trace, and finds out what it says beside its records.
pub(super) fn open(path: &Path, op_codes: Option<&OpCodes>) -> Result<(Job, Known), TimelineError> {
    let reader =
        match Format::is_container(path).map_err(|error| TimelineError::Read { path: path.into(), error })? {
            true => Some(Reader::open(path)?),
            false => None,
        };
    let (job, op_codes) = match (&reader, op_codes) {
        (Some(reader), _) => (Job::open(path)?, reader.about().op_codes.clone()),
        (None, None) => (Job::open(path)?, OpCodes::default()),
        (None, Some(codes)) => {
            let stream = Stream::with_codes(path, codes.clone()).map_err(LoadError::from)?;
            (Job::stream(stream), codes.clone())
        }
    };
    let hosts = reader.as_ref().map(Reader::hosts).transpose()?.flatten();
    let known = Known { hosts, labels: job.labels()?, op_codes };
    Ok((job, known))
}

/// Draws a trace; returns why its replay stopped before its end, if it did.
pub(super) fn draw(
    path: &Path,
    op_codes: Option<&OpCodes>,
    link: &Link,
    extent: &Extent,
    settings: &Settings,
    drawing: &mut Drawing<'_>,
) -> Result<Option<Stuck>, TimelineError> {
    let (job, known) = open(path, op_codes)?;
    let mut engine = Engine::builder().job(job.extent(extent)?).engine()?;
    let tasks = engine.tasks(0);
    settings.check_ranks(tasks)?;
    drawing.begin(None)?;
    let mut ranks = Ranks::new(drawing);
    ranks.add("", tasks, settings, known);
    let outcome = yardstick::watch(&mut engine, link, settings.until(), &mut ranks)?;
    if outcome.stuck.is_none() {
        ranks.cut(&engine, settings.until())?;
    }
    ranks.finish()?;
    drawing.reached(nanos(outcome.runtime));
    Ok(outcome.stuck)
}
