//! How far the seed decides: the run times of points that differ in their seed alone.

use crate::Mean;
use crate::shown;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The option that only changes what is random.
pub(super) const SEED: &str = "seed";

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

impl OverSeeds {
    /// The means of the run times over seeds, if these vary, in the order of `points`: options with their values, and run times.
    pub(super) fn of<'a>(points: impl Iterator<Item = (&'a BTreeMap<String, String>, u64)>) -> Vec<Self> {
        let mut all: Vec<(BTreeMap<String, String>, Vec<f64>)> = Vec::new();
        let mut places = BTreeMap::new();
        for (settings, runtime_ps) in points {
            let mut settings = settings.clone();
            if settings.remove(SEED).is_none() {
                return Vec::new();
            }
            let at = *places.entry(settings.clone()).or_insert(all.len());
            if at == all.len() {
                all.push((settings, Vec::new()));
            }
            all[at].1.push(runtime_ps as f64);
        }
        let mean = |(settings, times): (BTreeMap<String, String>, Vec<f64>)| {
            Some(Self { settings, seeds: times.len() as u32, runtime_ps: Mean::of(&times)? })
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
