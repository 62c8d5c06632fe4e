//! A time that all ranks share: each rank's clock, corrected to that of rank 0.
//!
//! Two ranks compare clocks by exchanges t₀ = now, send, receive T, t₁ = now: the exchange with the shortest t₁ − t₀ says
//! most, namely that T was read at (t₀ + t₁)/2 if both ways take as long. It is kept when [`PATIENCE`] further ones bring
//! no shorter. Clocks of different machines also drift: [`Sync::Drift`] compares several times and fits a line.

use crate::error::Result;
use crate::stats::weighted_line;
use crate::timer::Timer;
use crate::world::World;

/// Exchanges without a shorter one that end a comparison.
const PATIENCE: u32 = 100;

/// How clocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Each rank with rank 0, one after the other: least error, time grows with the ranks.
    Linear,
    /// Each rank with the one below it, pairs at the same time, offsets added up: constant time, error grows with √ranks.
    Ring,
    /// As linear, and again during the run: offset and drift by a line through the comparisons.
    Drift,
}

/// A rank's clock with its correction.
#[derive(Clone, Debug)]
pub struct GlobalClock {
    timer: Timer,
    sync: Sync,
    /// Comparisons: own time, what to add there.
    points: Vec<(f64, f64)>,
    /// global = own + offset + drift · (own − origin).
    offset: f64,
    drift: f64,
    origin: f64,
}

/// Comparisons that a drift-aware clock remembers.
const REMEMBERED: usize = 8;
/// It compares again after so many ns.
const COMPARE_EVERY: f64 = 500e6;

impl GlobalClock {
    /// Compares clocks for the first time. Collective.
    ///
    /// # Errors
    /// MPI's.
    pub fn new(world: &World, timer: Timer, sync: Sync) -> Result<GlobalClock> {
        let mut clock = GlobalClock { timer, sync, points: Vec::new(), offset: 0.0, drift: 0.0, origin: 0.0 };
        clock.compare(world)?;
        if sync == Sync::Drift {
            // A second point some way off gives the first idea of the drift.
            let now = clock.timer.now();
            clock.timer.wait_until(now + 100e6);
            clock.compare(world)?;
        }
        Ok(clock)
    }

    /// Own time as all ranks' time.
    #[inline]
    pub fn global(&self, own: f64) -> f64 {
        own + self.offset + self.drift * (own - self.origin)
    }

    /// All ranks' time as own time.
    #[inline]
    pub fn own(&self, global: f64) -> f64 {
        let guess = global - self.offset;
        // The drift is far below 1, so one step suffices.
        guess - self.drift * (guess - self.origin)
    }

    /// All ranks' time now.
    #[inline]
    pub fn now(&self) -> f64 {
        self.global(self.timer.now())
    }

    /// Compares again if the kind of synchronisation does so and it is time; rank 0 decides. Collective.
    ///
    /// # Errors
    /// MPI's.
    pub fn refresh(&mut self, world: &World) -> Result<()> {
        if self.sync != Sync::Drift {
            return Ok(());
        }
        let last = self.points.last().map_or(0.0, |(at, _)| *at);
        let due = self.timer.now() - last > COMPARE_EVERY;
        if world.agree(due)? { self.compare(world) } else { Ok(()) }
    }

    fn compare(&mut self, world: &World) -> Result<()> {
        let offset = match self.sync {
            Sync::Linear | Sync::Drift => linear(world, &self.timer)?,
            Sync::Ring => ring(world, &self.timer)?,
        };
        self.points.push((self.timer.now(), offset));
        if self.points.len() > REMEMBERED {
            self.points.remove(0);
        }
        self.fit();
        Ok(())
    }

    fn fit(&mut self) {
        let points = self.points.iter().map(|&(at, offset)| (at, offset, 1.0));
        match weighted_line(points).filter(|_| self.sync == Sync::Drift) {
            Some(((origin, offset), drift)) => {
                (self.origin, self.offset, self.drift) = (origin, offset, drift);
            }
            None => self.offset = self.points.last().map_or(0.0, |&(_, offset)| offset),
        }
    }
}

/// What this rank must add to its clock to have rank 0's; the ranks one after the other.
fn linear(world: &World, timer: &Timer) -> Result<f64> {
    for rank in 1..world.size {
        if world.rank == 0 {
            serve(world, timer, rank)?;
        } else if world.rank == rank {
            return ask(world, timer, 0);
        }
    }
    Ok(0.0)
}

/// The same by neighbours; works for any number of ranks.
fn ring(world: &World, timer: &Timer) -> Result<f64> {
    let below = world.rank.checked_sub(1);
    let above = Some(world.rank + 1).filter(|&rank| rank < world.size);
    let mut offset = 0.0;
    // First the odd ranks ask the even ones below them, then the even ranks the odd ones.
    for asking in [1, 0] {
        if world.rank % 2 == asking {
            if let Some(below) = below {
                offset = ask(world, timer, below)?;
            }
        } else if let Some(above) = above {
            serve(world, timer, above)?;
        }
    }
    // To rank 0's clock: all steps down to it.
    if let Some(below) = below {
        offset += world.receive_number(below)?;
    }
    if let Some(above) = above {
        world.send_number(above, offset)?;
    }
    Ok(offset)
}

fn ask(world: &World, timer: &Timer, of: u32) -> Result<f64> {
    let (mut shortest, mut offset, mut vain) = (f64::INFINITY, 0.0, 0);
    while vain < PATIENCE {
        let before = timer.now();
        world.send_number(of, 1.0)?;
        let theirs = world.receive_number(of)?;
        let after = timer.now();
        vain += 1;
        if after - before < shortest {
            (shortest, offset, vain) = (after - before, theirs - (before + after) / 2.0, 0);
        }
    }
    world.send_number(of, 0.0)?;
    Ok(offset)
}

fn serve(world: &World, timer: &Timer, whom: u32) -> Result<()> {
    while world.receive_number(whom)? != 0.0 {
        world.send_number(whom, timer.now())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::TimerKind;

    #[test]
    fn own_and_global_time_are_inverse() {
        let timer = Timer::new(TimerKind::Monotonic, None).unwrap();
        let mut clock = GlobalClock {
            timer,
            sync: Sync::Drift,
            points: vec![(1e9, 5e6), (2e9, 5e6 + 2e4), (3e9, 5e6 + 4e4)],
            offset: 0.0,
            drift: 0.0,
            origin: 0.0,
        };
        clock.fit();
        assert!((clock.drift - 2e-5).abs() < 1e-12, "{}", clock.drift);
        for own in [0.0, 1e9, 4.5e9] {
            assert!((clock.global(own) - (own + 5e6 + 2e-5 * (own - 1e9))).abs() < 1e-3);
            assert!((clock.own(clock.global(own)) - own).abs() < 5.0, "{own}");
        }
    }
}
