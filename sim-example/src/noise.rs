//! Noise of computing times: removed, or drawn again, from the repetitions that a trace has.
//!
//! A *place* of a task is a record together with the records before it, by kind, partner, operation and size class: what a
//! loop repeats. A place is the longest context, of the last eight, four or two records, seen ten times or more. The
//! times of a place vary because the machine disturbs the program, or because the work differs; a trace cannot
//! tell the two apart, but for kinds of work that come in a regular order (`modes.rs`). `docs/simulator.md` states what is assumed.
//!
//! All arithmetic is of integers, and the draw for a record depends on seed, job, task and record alone.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use replay::{Computing, Job, Raw, SendCompletion};
use results::classes::{fine, power};
use results::simulation::{Deviations, NoiseReport};
use vef_format::ids::Rank;
use vef_format::units::{Picos, Ticks};

use crate::error::SimError;
use crate::modes::{Candidate, Modes, Times};
use crate::random::{Random, combine};

/// Fewer repetitions do not tell what is typical: such a place keeps its times.
const FEWEST: u64 = 10;
/// Most contexts that are counted; records of further ones keep their times.
const CONTEXTS: usize = 1 << 23;
/// Numbers of last records, the record itself included, by which a place may be known.
const DEPTHS: [usize; 3] = [8, 4, 2];
/// A deviation of 1.
const ONE: u64 = 1 << 32;
/// Keeps its draws apart from those of other purposes.
const PURPOSE: u64 = 0x6e_6f69_7365;

/// What becomes of the noise in a trace's computing times.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ComputeNoise {
    /// It stays as captured.
    #[default]
    Captured,
    /// Every repetition of a place takes the same time.
    Removed {
        /// The quantile of the place's times that this is, from 0 to 1.
        quantile: f64,
    },
    /// Every repetition takes the median of its place, times a deviation drawn from those of all places of similar length.
    Resampled {
        /// The trace that has the deviations; the simulated one if `None`.
        of: Option<PathBuf>,
    },
}

/// An invalid noise model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "compute noise {0:?}: write captured, removed, removed:QUANTILE (from 0 to 1), resampled or resampled:TRACE"
)]
pub struct UnknownNoise(String);

impl FromStr for ComputeNoise {
    type Err = UnknownNoise;

    fn from_str(text: &str) -> Result<Self, UnknownNoise> {
        let unknown = || UnknownNoise(text.to_owned());
        match text.split_once(':') {
            None if text == "captured" => Ok(Self::Captured),
            None if text == "removed" => Ok(Self::Removed { quantile: 0.5 }),
            None if text == "resampled" => Ok(Self::Resampled { of: None }),
            Some(("removed", quantile)) => {
                let quantile = quantile.parse().ok().filter(|quantile| (0.0..=1.0).contains(quantile));
                Ok(Self::Removed { quantile: quantile.ok_or_else(unknown)? })
            }
            Some(("resampled", of)) if !of.is_empty() => Ok(Self::Resampled { of: Some(of.into()) }),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for ComputeNoise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Captured => f.write_str("captured"),
            Self::Removed { quantile } => write!(f, "removed:{quantile}"),
            Self::Resampled { of: None } => f.write_str("resampled"),
            Self::Resampled { of: Some(of) } => write!(f, "resampled:{}", of.display()),
        }
    }
}

/// Computing times of a job under a noise model.
#[derive(Debug)]
pub(crate) struct Noise {
    model: Arc<Model>,
    histories: Histories,
}

#[derive(Debug)]
struct Model {
    places: Typical,
    /// Deviations by class; empty if every repetition takes the typical time.
    pools: Vec<Pool>,
    /// Of seed and job.
    seed: u64,
}

/// Typical time and class of each kind of work at each place; `None` for one that keeps its times.
type Typical = HashMap<u64, Modes<Option<(u64, usize)>>>;

impl Noise {
    /// The noise of a job, number `number` of the simulation; `None` if times stay as captured.
    pub(crate) fn new(
        model: &ComputeNoise,
        job: &Job,
        number: u32,
        seed: u64,
        sends: SendCompletion,
    ) -> Result<Option<(Self, NoiseReport)>, SimError> {
        let quantile = match model {
            ComputeNoise::Captured => return Ok(None),
            ComputeNoise::Removed { quantile } => *quantile,
            ComputeNoise::Resampled { .. } => 0.5,
        };
        let survey = Survey::new(job, sends)?;
        let places = survey.typical(quantile);
        let used = || survey.kinds(&places).map(|(times, ..)| times.count);
        let replaced = used().sum();
        let pools = match model {
            ComputeNoise::Resampled { of: Some(of) } => {
                let survey = Survey::new(&Job::open(of)?, sends)?;
                survey.pools(&survey.typical(quantile))
            }
            _ => survey.pools(&places),
        };
        if pools.is_empty() {
            return Err(SimError::NoRepetition(model.to_string()));
        }
        let report = NoiseReport {
            model: model.to_string(),
            places: used().count() as u64,
            divided: places.values().filter(|modes| modes.iter().len() > 1).count() as u64,
            replaced,
            kept: survey.records - replaced,
            deviations: pools.iter().map(Pool::report).collect(),
        };
        let pools = if matches!(model, ComputeNoise::Removed { .. }) { Vec::new() } else { pools };
        let seed = combine(combine(seed, PURPOSE), u64::from(number));
        let model = Arc::new(Model { places, pools, seed });
        Ok(Some((Self { model, histories: Histories::default() }, report)))
    }
}

impl Computing for Noise {
    fn time(&mut self, task: Rank, number: u64, record: &Raw) -> Ticks {
        let Model { places, pools, seed } = &*self.model;
        let contexts = self.histories.next(task, record);
        let place = contexts.iter().find_map(|context| places.get(context));
        let Some((typical, class)) = place.and_then(|modes| *modes.at(record.time)) else {
            return Ticks(record.time);
        };
        // Of the nearest class; on a tie, the shorter class.
        let Some(pool) = pools.iter().min_by_key(|pool| pool.class.abs_diff(class)) else {
            return Ticks(typical);
        };
        let task = combine(*seed, u64::from(task.0));
        // A wait in front of a record has the record's number, and another tag.
        let bits = Random::new(combine(task, number), u64::from(record.tag)).bits();
        Ticks(times(typical, pool.draw(bits)))
    }

    fn again(&self) -> Box<dyn Computing> {
        Box::new(Self { model: self.model.clone(), histories: Histories::default() })
    }
}

/// The times of a trace by place.
struct Survey {
    places: HashMap<u64, Modes<Times>>,
    records: u64,
    clock: Picos,
}

impl Survey {
    fn new(job: &Job, sends: SendCompletion) -> Result<Self, SimError> {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let mut histories = Histories::default();
        job.survey(sends, &mut |task, record| {
            for context in histories.next(task, record) {
                if counts.len() < CONTEXTS || counts.contains_key(&context) {
                    *counts.entry(context).or_default() += 1;
                }
            }
        })?;
        counts.retain(|_, count| *count >= FEWEST);
        let mut records = 0;
        let mut places: HashMap<u64, Times> = HashMap::new();
        let mut histories = Histories::default();
        job.survey(sends, &mut |task, record| {
            records += 1;
            let contexts = histories.next(task, record);
            if let Some(place) = contexts.into_iter().find(|context| counts.contains_key(context)) {
                places.entry(place).or_default().add(record.time);
            }
        })?;
        let candidates = |(place, times): (&u64, &Times)| (*place, times.candidates(FEWEST));
        let mut divisible: HashMap<u64, Vec<Candidate>> = places.iter().map(candidates).collect();
        divisible.retain(|_, candidates| !candidates.is_empty());
        if !divisible.is_empty() {
            let mut histories = Histories::default();
            job.survey(sends, &mut |task, record| {
                let contexts = histories.next(task, record);
                let place = contexts.iter().find(|context| places.contains_key(context));
                for candidate in place.and_then(|place| divisible.get_mut(place)).into_iter().flatten() {
                    candidate.follow(record.time);
                }
            })?;
        }
        let divided = |(place, times): (u64, Times)| {
            (place, times.divided(divisible.get(&place).map_or(&[], Vec::as_slice)))
        };
        let places = places.into_iter().map(divided).collect();
        Ok(Self { places, records, clock: job.clock() })
    }

    /// The typical time and its class of each place. A place whose other records have longer contexts may have few left, and
    /// relative to a time of 0 there is no deviation: such places keep their times.
    fn typical(&self, quantile: f64) -> Typical {
        let typical = |times: &Times| {
            let time = times.quantile(quantile);
            (times.count >= FEWEST && time > 0).then(|| (time, self.class(time)))
        };
        self.places.iter().map(|(place, modes)| (*place, modes.map(typical))).collect()
    }

    /// Times that are replaced, with what is typical of them and its class.
    fn kinds<'a>(&'a self, typical: &'a Typical) -> impl Iterator<Item = (&'a Times, u64, usize)> {
        let pairs = self.places.iter().flat_map(|(place, modes)| modes.iter().zip(typical[place].iter()));
        pairs.filter_map(|(times, typical)| typical.map(|(typical, class)| (times, typical, class)))
    }

    /// The order of magnitude of a time in picoseconds.
    fn class(&self, time: u64) -> usize {
        (u128::from(time) * u128::from(self.clock.0)).max(1).ilog10() as usize
    }

    /// The deviations from typical times by class; none without deviations.
    fn pools(&self, typical: &Typical) -> Vec<Pool> {
        let mut classes: BTreeMap<usize, BTreeMap<usize, (u64, u128)>> = BTreeMap::new();
        for (times, typical, class) in self.kinds(typical) {
            let pool = classes.entry(class).or_default();
            for times in &times.buckets {
                let deviation = over(times.sum / times.count, typical);
                let cell = pool.entry(fine(deviation)).or_default();
                cell.0 += times.count;
                cell.1 += u128::from(times.sum) * u128::from(ONE) / u128::from(typical);
            }
        }
        classes.into_iter().map(|(class, cells)| Pool::new(class, cells)).collect()
    }
}

/// Deviations of one class, as multiples of 1/[`ONE`].
#[derive(Debug)]
struct Pool {
    class: usize,
    /// Ascending deviations, each with the number of records up to it.
    deviations: Vec<(u64, u64)>,
    mean: f64,
}

impl Pool {
    /// From count and sum by bucket.
    fn new(class: usize, cells: BTreeMap<usize, (u64, u128)>) -> Self {
        let (mut records, mut total) = (0, 0);
        let deviations = cells.into_values().map(|(count, sum)| {
            records += count;
            total += sum;
            (u64::try_from(sum / u128::from(count)).unwrap_or(u64::MAX), records)
        });
        let deviations = deviations.collect();
        Self { class, deviations, mean: total as f64 / ONE as f64 / records.max(1) as f64 }
    }

    fn records(&self) -> u64 {
        self.deviations.last().map_or(0, |&(_, records)| records)
    }

    /// The deviation of a record, each with the same probability.
    fn draw(&self, bits: u64) -> u64 {
        self.of_record(((u128::from(bits) * u128::from(self.records())) >> 64) as u64)
    }

    /// The deviation of a record, counted from 0 in ascending order.
    fn of_record(&self, record: u64) -> u64 {
        let at = self.deviations.partition_point(|&(_, records)| records <= record);
        self.deviations.get(at).or(self.deviations.last()).map_or(ONE, |&(deviation, _)| deviation)
    }

    fn report(&self) -> Deviations {
        let percentile = |percent: u128| {
            let rank = (u128::from(self.records()) * percent).div_ceil(100).max(1);
            self.of_record(rank as u64 - 1) as f64 / ONE as f64
        };
        Deviations {
            from_ps: 10u64.saturating_pow(self.class as u32),
            records: self.records(),
            mean: self.mean,
            p10: percentile(10),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: percentile(100),
        }
    }
}

/// `time / typical` as a multiple of 1/[`ONE`].
fn over(time: u64, typical: u64) -> u64 {
    let deviation = u128::from(time) * u128::from(ONE) / u128::from(typical);
    u64::try_from(deviation).unwrap_or(u64::MAX)
}

/// `typical · deviation`, to nearest.
fn times(typical: u64, deviation: u64) -> u64 {
    let time = (u128::from(typical) * u128::from(deviation) + u128::from(ONE / 2)) / u128::from(ONE);
    u64::try_from(time).unwrap_or(u64::MAX)
}

/// The shapes of each task's last records, the latest first; 0 before the first record.
#[derive(Debug, Default)]
struct Histories(Vec<[u64; DEPTHS[0]]>);

impl Histories {
    /// The contexts of a task's next record, of [`DEPTHS`].
    fn next(&mut self, task: Rank, record: &Raw) -> [u64; DEPTHS.len()] {
        if task.index() >= self.0.len() {
            self.0.resize(task.index() + 1, Default::default());
        }
        let last = &mut self.0[task.index()];
        last.rotate_right(1);
        last[0] = shape(record);
        let own = u64::from(task.0);
        DEPTHS
            .map(|depth| last[..depth].iter().fold(combine(own, depth as u64), |all, &one| combine(all, one)))
    }
}

/// What a record does, but for ids and times.
fn shape(record: &Raw) -> u64 {
    let kind = u64::from(record.tag) | u64::from(record.op) << 8;
    combine(
        kind | u64::from(power(record.bytes)) << 24 | u64::from(power(record.recv)) << 32,
        u64::from(record.to),
    )
}

#[cfg(test)]
mod tests;
