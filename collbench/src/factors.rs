//! By how much each rank's block is larger or smaller in vector operations.

use std::hint::black_box;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::error::{Error, Result};
use crate::stats::median;
use crate::timer::Timer;
use crate::world::World;

/// Where the factors of the ranks' blocks come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Factors {
    /// One for each rank.
    Given(Vec<f64>),
    /// From 0.5 to 1.5, by a seed.
    Random(u64),
    /// The speed of a rank relative to the mean: how often it adds up some numbers in a given time, while all others do so, too.
    Speed,
}

impl Factors {
    /// The factor of each rank of `world`. Collective.
    ///
    /// # Errors
    /// [`Error::Setting`] if there are too few; MPI's.
    pub fn of(&self, world: &World, timer: &Timer) -> Result<Vec<f64>> {
        let ranks = world.size as usize;
        match self {
            Factors::Given(factors) if factors.len() < ranks => Err(Error::Setting {
                what: "factors",
                given: format!("{} of them", factors.len()),
                reason: format!("there are {ranks} ranks"),
            }),
            Factors::Given(factors) => Ok(factors[..ranks].to_vec()),
            Factors::Random(seed) => {
                let mut random = SmallRng::seed_from_u64(*seed);
                Ok((0..ranks).map(|_| random.random_range(0.5..1.5)).collect())
            }
            Factors::Speed => {
                let speeds = world.gather(&[speed(world, timer)?])?;
                let mean = crate::stats::mean(&speeds);
                // Rank 0 has all of them.
                (0..ranks)
                    .map(|rank| Ok(world.share([speeds.get(rank).map_or(0.0, |speed| speed / mean)])?[0]))
                    .collect()
            }
        }
    }
}

/// Sums in a millisecond, the median of some.
fn speed(world: &World, timer: &Timer) -> Result<f64> {
    const ROUNDS: usize = 9;
    const NS: f64 = 4e6;
    let numbers = [1.0f64; 512];
    world.barrier()?;
    let sums: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let (began, mut count) = (timer.now(), 0.0);
            let mut took = 0.0;
            while took < NS {
                black_box(black_box(&numbers).iter().sum::<f64>());
                count += 1.0;
                took = timer.now() - began;
            }
            count * 1e6 / took
        })
        .collect();
    Ok(median(&sums))
}
