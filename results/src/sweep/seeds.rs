//! How far the seed decides: the run times of points that differ in their seed alone.

use super::Sweep;
use super::answers::SEED;
use crate::Mean;
use crate::shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Points that differ in their seed alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverSeeds {
    /// The other options and their values.
    pub settings: BTreeMap<String, String>,
    /// Seeds with a result.
    pub seeds: u32,
    /// Run time in picoseconds.
    pub runtime_ps: Mean,
}

impl Sweep {
    /// The means of the run times over seeds, if these vary, in the order of the sweep.
    pub(super) fn means_over_seeds(&self) -> Vec<OverSeeds> {
        let mut all: Vec<(BTreeMap<String, String>, Vec<f64>)> = Vec::new();
        if !self.options.iter().any(|option| option == SEED) {
            return Vec::new();
        }
        let mut places = BTreeMap::new();
        for point in &self.points {
            let Some(report) = &point.report else { continue };
            let mut settings = point.settings.clone();
            settings.remove(SEED);
            let at = *places.entry(settings.clone()).or_insert(all.len());
            if at == all.len() {
                all.push((settings, Vec::new()));
            }
            all[at].1.push(report.runtime_ps as f64);
        }
        let mean = |(settings, times): (BTreeMap<String, String>, Vec<f64>)| {
            Some(OverSeeds { settings, seeds: times.len() as u32, runtime_ps: Mean::of(&times)? })
        };
        all.into_iter().filter_map(mean).collect()
    }
}

impl fmt::Display for OverSeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (option, value) in &self.settings {
            write!(f, "{option}={value} ")?;
        }
        let time = |time: f64| shown::time(time.round() as u128);
        write!(f, "over {} seeds: run time {}", self.seeds, time(self.runtime_ps.mean))?;
        match self.runtime_ps.half_width {
            Some(width) => write!(f, " ± {} (95 %)", time(width)),
            None => Ok(()),
        }
    }
}
