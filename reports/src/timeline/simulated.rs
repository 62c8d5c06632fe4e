//! The load of a simulation's links over time, from its result (`vef sim --json --links`).
//!
//! A result has sums over bins of equal width; each becomes a step of the link's curve. If not all links fit, the busiest are drawn.

use super::drawing::Drawing;
use super::encoder::Track;
use super::settings::{PICOS_PER_NANO, Settings, TimelineError};
use crate::report::read_simulation;
use std::cmp::Reverse;
use std::path::Path;

/// Draws the links of a result.
pub(super) fn draw(path: &Path, settings: &Settings, drawing: &mut Drawing<'_>) -> Result<(), TimelineError> {
    let result = read_simulation(path)?;
    let (Some(mut links), Some(width @ 1..)) = (result.links.all, result.links.bin_ps) else {
        return Err(TimelineError::NoLinks(path.into()));
    };
    drawing.begin(None)?;
    let end = result.runtime_ps.div_ceil(PICOS_PER_NANO);
    drawing.reached(end);
    if settings.window.start > end {
        return Ok(());
    }
    let process = drawing.add_process("links".to_owned());
    // The busiest first: what does not fit is left out.
    links.sort_by_key(|link| Reverse(link.busy_ps));
    for (number, link) in (0..).zip(links) {
        let track = Track { process, thread: number, name: link.link, below: None };
        let track = drawing.add_track(track);
        let mut points: Vec<(u64, f64)> = (0..)
            .map(|bin: u64| bin.saturating_mul(width) / PICOS_PER_NANO)
            .zip(link.over_time.iter().flat_map(|over_time| &over_time.busy).map(|busy| busy * 100.0))
            .collect();
        points.push((end, 0.0));
        // A value holds until the next one: repeated values are left out.
        points.dedup_by(|next, value| next.1 == value.1);
        let starts = points.partition_point(|&(at, _)| at <= settings.window.start).saturating_sub(1);
        let ends = points.partition_point(|&(at, _)| at < settings.window.end);
        drawing.counter(track, &points[starts..ends.max(starts)])?;
    }
    Ok(())
}
