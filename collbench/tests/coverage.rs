//! Launches in a row are alike: what an interval over them is worth when they follow each other at once, and after the pause that
//! `vef bench launch` makes.

use collbench::stats::{across_launches, median};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, LogNormal, Normal};

/// Launches whose levels (logarithms) follow the one before by `rho`, as measured on two MPIs: spread of 8 %, samples with a long upper tail.
fn launches(random: &mut SmallRng, count: usize, rho: f64) -> Vec<Vec<f64>> {
    let (unit, tail) =
        (Normal::new(0.0, 1.0).expect("a distribution"), LogNormal::new(-3.0, 1.0).expect("a distribution"));
    let mut level: f64 = unit.sample(random);
    (0..count)
        .map(|_| {
            level = rho * level + (1.0 - rho * rho).sqrt() * unit.sample(random);
            let own = 10.0 * (0.08 * level).exp();
            (0..30).map(|_| own * (1.0 + tail.sample(random))).collect()
        })
        .collect()
}

fn coverage(count: usize, rho: f64) -> f64 {
    const REPEATS: usize = 400;
    let mut random = SmallRng::seed_from_u64(count as u64);
    let all: Vec<f64> = launches(&mut random, 20_000, 0.0).iter().map(|samples| median(samples)).collect();
    let truth = median(&all);
    let covered = (0..REPEATS).filter(|&repeat| {
        let set = launches(&mut random, count, rho);
        let interval = across_launches(&set, 0.95, repeat as u64).and_then(|over| over.interval);
        interval.is_some_and(|interval| interval.low <= truth && truth <= interval.high)
    });
    covered.count() as f64 / REPEATS as f64
}

#[test]
fn a_pause_between_launches_makes_intervals_cover() {
    // Measured: launches up to 3 s apart correlate by 0.2 to 0.45, those 3 to 10 s apart by 0 to 0.2.
    for count in [6, 10] {
        let (at_once, paused) = (coverage(count, 0.35), coverage(count, 0.1));
        assert!(paused >= 0.9, "{count} launches with a pause: {paused}");
        assert!(at_once < paused, "{count} launches: {at_once} at once, {paused} with a pause");
    }
}
