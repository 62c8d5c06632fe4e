//! Statistics of samples: what a launch says, what several launches say, and how sure both are.
//!
//! Two sources of variation must not be confused. Within one launch of an MPI program, repetitions differ a little; from
//! launch to launch the same benchmark differs more (memory, mapping, connections, neighbours). An interval made of one
//! launch's samples therefore does not cover what the next launch gives, however many samples it has. [`across_launches`]
//! makes an interval that does; [`Summary::within`] is that of one launch and called so.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
use statrs::statistics::Statistics;

/// An interval that is to contain the true value with a given probability.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Half its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// What samples of one launch say. All in the unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of samples.
    pub samples: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// 10 % quantile.
    pub p10: f64,
    /// 90 % quantile.
    pub p90: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
    /// Two-sided interval of the *mean* of this launch, by Student's t.
    pub within: Interval,
}

/// When a measurement has been repeated often enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Precision {
    /// Fewest repetitions
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub min_reps: usize,
    /// Most repetitions
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_reps: usize,
    /// Confidence of intervals, in (0, 1).
    #[arg(skip = 0.95)]
    pub confidence: f64,
    /// Enough when half the 95 % interval is so small a part of the mean
    #[arg(long, value_name = "PART", default_value_t = 0.025)]
    pub epsilon: f64,
    /// Seconds after which an operation of one size is not repeated any more
    #[arg(long = "budget", value_name = "S", default_value_t = 1.0)]
    pub seconds: f64,
}

impl Precision {
    /// Whether no further repetition is needed, `elapsed` seconds after the first began.
    pub fn is_met(&self, samples: &[f64], elapsed: f64) -> bool {
        let enough = samples.len() >= self.min_reps.max(2);
        if samples.len() >= self.max_reps || (elapsed >= self.seconds && samples.len() >= 2) {
            return true;
        }
        enough
            && Summary::of(samples, self.confidence)
                .is_some_and(|summary| summary.within.half_width() <= self.epsilon * summary.mean)
    }
}

/// The `q` quantile (0 to 1) of samples in ascending order, linear between them; 0 without samples.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    sorted[below] + part * (sorted[(below + 1).min(last)] - sorted[below])
}

/// The middle of samples in any order; 0 without any.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// Student's t so that a share `confidence` lies within ±t.
pub fn student_t(confidence: f64, degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees.max(1) as f64)
        .map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + confidence / 2.0))
}

impl Summary {
    /// Of samples in any order; `None` without any, or where one is no number.
    pub fn of(samples: &[f64], confidence: f64) -> Option<Summary> {
        if samples.is_empty() || !samples.iter().all(|x| x.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = samples.mean();
        let (standard_error, half) = match samples.len() {
            1 => (0.0, 0.0),
            n => {
                let error = samples.std_dev() / (n as f64).sqrt();
                (error, student_t(confidence, n - 1) * error)
            }
        };
        Some(Summary {
            samples: samples.len(),
            mean,
            median: quantile(&sorted, 0.5),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            p10: quantile(&sorted, 0.1),
            p90: quantile(&sorted, 0.9),
            standard_error,
            within: Interval { low: mean - half, high: mean + half },
        })
    }
}

/// What several launches say of the median.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Launches {
    /// Launches.
    pub launches: usize,
    /// Median of the launches' medians.
    pub median: f64,
    /// For that median: covers what further launches would settle at. `None` for one launch, and for few that differ so much that it
    /// would not be above zero, as times are.
    pub interval: Option<Interval>,
    /// Standard error of the launches' medians relative to their mean.
    pub relative_standard_error: f64,
}

/// Fewest launches of which a bootstrap can give a 95 % interval.
const FEWEST_RESAMPLED: usize = 6;

/// The interval of the median over launches, at `confidence`.
///
/// With six launches or more: a bootstrap that draws launches, then samples of each drawn launch, with percentiles expanded
/// for the few launches there are (Hesterberg, "What teachers should know about the bootstrap", 2015). With
/// fewer, Student's t of the launches' medians, since no resampling of five values reaches 95 %.
pub fn across_launches(launches: &[Vec<f64>], confidence: f64, seed: u64) -> Option<Launches> {
    let launches: Vec<&Vec<f64>> = launches.iter().filter(|samples| !samples.is_empty()).collect();
    let medians: Vec<f64> = launches.iter().map(|samples| median(samples)).collect();
    if medians.is_empty() {
        return None;
    }
    let count = medians.len();
    let mean = medians.as_slice().mean();
    let error = if count > 1 { medians.as_slice().std_dev() / (count as f64).sqrt() } else { 0.0 };
    let interval = match count {
        1 => None,
        _ if count < FEWEST_RESAMPLED => {
            let half = student_t(confidence, count - 1) * error;
            let interval = Interval { low: mean - half, high: mean + half };
            Some(interval).filter(|interval| interval.low > 0.0)
        }
        _ => Some(bootstrap(&launches, confidence, seed)),
    };
    Some(Launches {
        launches: count,
        median: median(&medians),
        interval,
        relative_standard_error: error / mean,
    })
}

fn bootstrap(launches: &[&Vec<f64>], confidence: f64, seed: u64) -> Interval {
    const RESAMPLES: usize = 1000;
    let count = launches.len();
    let mut random = SmallRng::seed_from_u64(seed);
    let mut drawn_medians = vec![0.0; count];
    let mut drawn = Vec::new();
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for place in &mut drawn_medians {
                let samples = launches[random.random_range(0..count)];
                drawn.clear();
                drawn.extend((0..samples.len()).map(|_| samples[random.random_range(0..samples.len())]));
                drawn.sort_by(f64::total_cmp);
                *place = quantile(&drawn, 0.5);
            }
            median(&drawn_medians)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    // The plain percentiles are too narrow by √(n/(n−1)) and by t over z.
    let wide = (count as f64 / (count - 1) as f64).sqrt() * student_t(confidence, count - 1);
    let tail = Normal::standard().cdf(-wide);
    Interval { low: quantile(&medians, tail), high: quantile(&medians, 1.0 - tail) }
}

/// The line through points by least squares, each weighted by 1/y² so that relative errors count: (intercept, slope).
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let weighted = points.iter().map(|&(x, y)| (x, y, 1.0 / (y * y).max(f64::MIN_POSITIVE)));
    let ((x, y), slope) = weighted_line(weighted)?;
    Some((y - slope * x, slope))
}

/// The line through points (x, y, weight) by least squares: the mean of the points, and the slope. `None` if all x are equal.
pub(crate) fn weighted_line(
    points: impl Iterator<Item = (f64, f64, f64)> + Clone,
) -> Option<((f64, f64), f64)> {
    let sum = |f: &dyn Fn(f64, f64) -> f64| points.clone().map(|(x, y, w)| w * f(x, y)).sum::<f64>();
    let weight = sum(&|_, _| 1.0);
    let (mean_x, mean_y) = (sum(&|x, _| x) / weight, sum(&|_, y| y) / weight);
    let spread = sum(&|x, _| (x - mean_x).powi(2));
    let along = sum(&|x, y| (x - mean_x) * (y - mean_y));
    (spread > 1e-12 * sum(&|x, _| x * x)).then(|| ((mean_x, mean_y), along / spread))
}

/// Divides `0..count` into the consecutive parts with the least sum of costs, by dynamic programming. `part` gives the cost and the
/// value of `from..to`, or `None` if that cannot be a part. Returns the values, none if no division is possible.
pub(crate) fn divide<T>(count: usize, part: impl Fn(usize, usize) -> Option<(f64, T)>) -> Vec<T> {
    // least[to]: of the first `to`, the least cost, and where their last part begins.
    let mut least: Vec<Option<(f64, usize)>> = vec![Some((0.0, 0))];
    for to in 1..=count {
        let choices = (0..to).filter_map(|from| Some((least[from]?.0 + part(from, to)?.0, from)));
        least.push(choices.min_by(|a, b| a.0.total_cmp(&b.0)));
    }
    let (mut parts, mut to) = (Vec::new(), count);
    while to > 0
        && let Some((_, from)) = least[to]
    {
        parts.extend(part(from, to).map(|(_, part)| part));
        to = from;
    }
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};
    use rand_distr::{Distribution, LogNormal, Normal as Gauss};

    #[test]
    fn student_t_is_two_sided() {
        // Tables of t: 95 % two-sided with 4 and 29 degrees of freedom.
        assert!((student_t(0.95, 4) - 2.776).abs() < 1e-3, "{}", student_t(0.95, 4));
        assert!((student_t(0.95, 29) - 2.045).abs() < 1e-3);
        assert!((student_t(0.90, 4) - 2.132).abs() < 1e-3);
    }

    #[test]
    fn a_summary_of_known_samples() {
        let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 0.95).unwrap();
        assert_eq!((summary.mean, summary.median, summary.min, summary.max), (5.0, 4.5, 2.0, 9.0));
        assert!((summary.standard_error - (32.0f64 / 7.0).sqrt() / 8f64.sqrt()).abs() < 1e-12);
        assert!(Summary::of(&[], 0.95).is_none() && Summary::of(&[f64::NAN], 0.95).is_none());
    }

    proptest! {
        #[test]
        fn quantiles_are_among_the_samples_and_in_order(
            mut samples in prop::collection::vec(-1e9f64..1e9, 1..60), q in 0.0f64..1.0
        ) {
            samples.sort_by(f64::total_cmp);
            let (low, high) = (quantile(&samples, q * 0.9), quantile(&samples, q));
            prop_assert!(samples[0] <= low && low <= high && high <= samples[samples.len() - 1]);
            let below = samples.iter().filter(|&&x| x <= high).count() as f64;
            prop_assert!(below >= (q * (samples.len() - 1) as f64).floor());
        }

        #[test]
        fn scaling_samples_scales_everything(
            samples in prop::collection::vec(1.0f64..1e6, 2..40), factor in 0.5f64..8.0
        ) {
            let scaled: Vec<f64> = samples.iter().map(|x| x * factor).collect();
            let (one, other) = (Summary::of(&samples, 0.95).unwrap(), Summary::of(&scaled, 0.95).unwrap());
            for (a, b) in [(one.mean, other.mean), (one.median, other.median), (one.within.high, other.within.high)] {
                prop_assert!((a * factor - b).abs() <= 1e-9 * b.abs().max(1.0));
            }
        }

        #[test]
        fn a_line_is_found_again(a in 1.0f64..1e6, b in 0.001f64..100.0) {
            let points: Vec<_> = [1.0, 8.0, 64.0, 512.0, 4096.0].map(|x| (x, a + b * x)).to_vec();
            let (intercept, slope) = line(&points).unwrap();
            prop_assert!((intercept / a - 1.0).abs() < 1e-6 && (slope / b - 1.0).abs() < 1e-4);
        }
    }

    /// Launches as measured ones look: each has its own level, its samples a long upper tail and rare interruptions.
    fn launches(random: &mut SmallRng, count: usize, samples: usize, bimodal: bool) -> Vec<Vec<f64>> {
        let level = LogNormal::new(0.0, 0.08).unwrap();
        let tail = LogNormal::new(-3.0, 1.0).unwrap();
        let noise = Gauss::new(0.0, 0.01).unwrap();
        (0..count)
            .map(|_| {
                let mut own = 10.0 * level.sample(random);
                if bimodal && random.random_bool(0.4) {
                    own *= 1.3;
                }
                (0..samples)
                    .map(|_| {
                        let interrupted = if random.random_bool(0.02) { 200.0 } else { 0.0 };
                        own * (1.0 + noise.sample(random) + tail.sample(random)) + interrupted
                    })
                    .collect()
            })
            .collect()
    }

    /// What endless launches settle at: the median of the launches' own medians.
    fn truth(bimodal: bool) -> f64 {
        let mut random = SmallRng::seed_from_u64(99);
        median(&launches(&mut random, 4000, 101, bimodal).iter().map(|s| median(s)).collect::<Vec<_>>())
    }

    fn coverage(count: usize, bimodal: bool) -> f64 {
        const REPEATS: usize = 250;
        let (truth, mut random) = (truth(bimodal), SmallRng::seed_from_u64(count as u64));
        let covered = (0..REPEATS).filter(|&repeat| {
            let launches = launches(&mut random, count, 30, bimodal);
            across_launches(&launches, 0.95, repeat as u64)
                .unwrap()
                .interval
                .is_some_and(|i| i.low <= truth && truth <= i.high)
        });
        covered.count() as f64 / REPEATS as f64
    }

    #[test]
    fn intervals_over_launches_cover_what_they_say() {
        for count in [3, 6, 10] {
            let covered = coverage(count, false);
            assert!(covered >= 0.92, "{count} launches: {covered}");
        }
        // A second mode makes the median itself jump: still covered as the mission asks.
        for count in [6, 10] {
            let covered = coverage(count, true);
            assert!(covered >= 0.90, "{count} bimodal launches: {covered}");
        }
    }

    #[test]
    fn one_launch_claims_nothing_about_others() {
        let one = across_launches(&[vec![1.0, 2.0, 3.0]], 0.95, 1).unwrap();
        assert_eq!((one.median, one.interval), (2.0, None));
        // What goes wrong otherwise: the interval of one launch seldom covers the truth.
        let (truth, mut random) = (truth(false), SmallRng::seed_from_u64(5));
        let covered = (0..200)
            .filter(|_| {
                let samples = launches(&mut random, 1, 30, false).remove(0);
                let quiet: Vec<f64> = samples.into_iter().filter(|x| *x < 100.0).collect();
                let Interval { low, high } = Summary::of(&quiet, 0.95).unwrap().within;
                low <= truth && truth <= high
            })
            .count();
        assert!(covered < 100, "{covered} of 200");
    }

    #[test]
    fn few_launches_that_differ_claim_nothing() {
        let of = |medians: &[f64]| {
            across_launches(&medians.iter().map(|&ns| vec![ns]).collect::<Vec<_>>(), 0.95, 1)
                .unwrap()
                .interval
        };
        // Student's t gives -23.1 to 39.4 µs.
        assert_eq!(of(&[1.0, 1.25, 22.2]), None);
        assert!(of(&[10.0, 10.1, 10.2]).is_some_and(|interval| interval.low > 9.0 && interval.high < 11.0));
    }

    #[test]
    fn the_precision_rule_stops() {
        let rule: Precision = crate::options::defaults();
        assert!(!rule.is_met(&[1.0; 9], 0.0) && rule.is_met(&[1.0; 10], 0.0));
        let wild: Vec<f64> = (0..60).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 }).collect();
        assert!(!rule.is_met(&wild, 0.0) && rule.is_met(&wild, 2.0));
        assert!(rule.is_met(&vec![1.0; 100], 0.0));
    }
}
