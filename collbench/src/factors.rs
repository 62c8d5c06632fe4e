//! By how much each rank's block is larger or smaller in vector operations.

use std::hint::black_box;
use std::str::FromStr;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use statrs::statistics::Statistics;

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

impl FromStr for Factors {
    type Err = Error;

    /// `speed`, `random`, `random:SEED`, or a file of numbers.
    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':').unwrap_or((text, "1")) {
            _ if text == "speed" => return Ok(Factors::Speed),
            ("random", seed) => {
                let seed = seed.parse();
                return seed
                    .map(Factors::Random)
                    .map_err(|_| Error::Invalid("the seed is a whole number".into()));
            }
            _ => {}
        }
        let read = std::fs::read(text)
            .map_err(|error| Error::Invalid(format!("{error}; write a file, random[:SEED] or speed")))?;
        let mut factors = Vec::new();
        for (line, numbers) in (1..).zip(String::from_utf8_lossy(&read).lines()) {
            for number in numbers.split_whitespace() {
                match number.parse::<f64>() {
                    Ok(factor) if (0.0..=1e6).contains(&factor) => factors.push(factor),
                    _ => {
                        let reason = format!("line {line}: {number:?} is no factor from 0 to 1000000");
                        return Err(Error::Invalid(reason));
                    }
                }
            }
        }
        Ok(Factors::Given(factors))
    }
}

impl Factors {
    /// The factor of each rank of `world`. Collective.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are too few; MPI's.
    pub fn of(&self, world: &World, timer: &Timer) -> Result<Vec<f64>> {
        let ranks = world.size as usize;
        match self {
            Factors::Given(factors) if factors.len() < ranks => {
                let given = format!("{} of them", factors.len());
                Err(Error::setting("factors", given, format!("there are {ranks} ranks")))
            }
            Factors::Given(factors) => Ok(factors[..ranks].to_vec()),
            Factors::Random(seed) => {
                let mut random = SmallRng::seed_from_u64(*seed);
                Ok((0..ranks).map(|_| random.random_range(0.5..1.5)).collect())
            }
            Factors::Speed => {
                let speeds = world.gather(&[speed(world, timer)?])?;
                let mean = speeds.as_slice().mean();
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
