//! Messages between pairs of ranks.

use mpi_abi::api::Envelope;

use crate::benchmark::Synthetic;
use crate::error::{Error, Result};
use crate::subject::Subject;
use crate::world::World;

/// A message pattern between pairs.
pub struct MessagePattern {
    world: World,
    pattern: Synthetic,
    send: Vec<u8>,
    receive: Vec<u8>,
}

impl MessagePattern {
    /// Messages of so many bytes.
    ///
    /// # Errors
    /// There is one rank.
    pub fn new(world: &World, pattern: Synthetic, bytes: u64) -> Result<MessagePattern> {
        if world.size < 2 {
            return Err(Error::setting("operation", "messages", "needs 2 ranks at least"));
        }
        let buffer = || vec![1; bytes as usize];
        Ok(MessagePattern { world: world.clone(), pattern, send: buffer(), receive: buffer() })
    }

    fn exchange(&mut self, peer: u32) -> Result<()> {
        let envelope = Envelope::new(peer as i32, 12, self.world.comm);
        let mpi = &self.world.mpi;
        // SAFETY: both buffers are borrowed from here to the wait, and each request is waited for once.
        unsafe {
            let receive = mpi.irecv(&mut self.receive, envelope)?;
            let send = mpi.isend(&self.send, envelope)?;
            mpi.wait_all(&[receive, send])?;
        }
        Ok(())
    }
}

impl Subject for MessagePattern {
    fn run(&mut self) -> Result<()> {
        let World { rank, size, .. } = self.world;
        let with = |peer: u32| Envelope::new(peer as i32, 12, self.world.comm);
        match self.pattern {
            Synthetic::PingPong if rank == 0 => {
                self.world.mpi.send(&self.send, with(1))?;
                self.world.mpi.recv(&mut self.receive, with(1))?;
            }
            Synthetic::PingPong if rank == 1 => {
                self.world.mpi.recv(&mut self.receive, with(0))?;
                self.world.mpi.send(&self.send, with(0))?;
            }
            Synthetic::Exchange if rank < 2 => self.exchange(1 - rank)?,
            Synthetic::AllPairs => {
                for round in 0..rounds(size) {
                    if let Some(peer) = circle(size, round, rank) {
                        self.exchange(peer)?;
                    }
                }
            }
            Synthetic::PingPong | Synthetic::Exchange | Synthetic::WaitUp | Synthetic::WaitNull => {}
        }
        Ok(())
    }
}

/// Rounds in which everybody meets everybody.
fn rounds(ranks: u32) -> u32 {
    if ranks.is_multiple_of(2) { ranks.saturating_sub(1) } else { ranks }
}

/// Whom `rank` meets in a round of the circle method; `None`: it rests (odd number of ranks).
fn circle(ranks: u32, round: u32, rank: u32) -> Option<u32> {
    let turning = rounds(ranks).max(1);
    // The last place stands still where ranks are even, and is nobody where they are odd.
    if rank == turning {
        return Some(meets_fixed(turning, round));
    }
    let peer = (2 * turning + round - rank) % turning;
    if peer != rank {
        Some(peer)
    } else if ranks.is_multiple_of(2) {
        Some(turning)
    } else {
        None
    }
}

/// Who meets the place that stands still: 2·r ≡ round (mod turning), turning odd.
fn meets_fixed(turning: u32, round: u32) -> u32 {
    if round.is_multiple_of(2) { round / 2 } else { (round + turning) / 2 % turning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_meets_everybody_once_and_nobody_twice_at_a_time() {
        for ranks in 2..40u32 {
            let mut met = vec![0; (ranks * ranks) as usize];
            for round in 0..rounds(ranks) {
                for rank in 0..ranks {
                    if let Some(peer) = circle(ranks, round, rank) {
                        assert_ne!(peer, rank);
                        assert_eq!(circle(ranks, round, peer), Some(rank), "{ranks} {round} {rank}");
                        met[(rank * ranks + peer) as usize] += 1;
                    }
                }
            }
            for a in 0..ranks {
                for b in 0..ranks {
                    assert_eq!(met[(a * ranks + b) as usize], u32::from(a != b), "{ranks}: {a} {b}");
                }
            }
        }
    }
}
