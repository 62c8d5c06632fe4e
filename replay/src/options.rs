//! What a user can decide about a replay: when sends are complete, and what happens between tasks of one node.

use crate::error::BuildError;
use vef_format::units::{Bytes, Picos};

/// When a send is complete for its sender, so that records that depend on it may start. A synchronous send
/// ([`Note::Synchronous`](vef_format::container::Note::Synchronous)) counts as a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SendCompletion {
    /// When it is handed to the simulator.
    #[default]
    Eager,
    /// When the simulator reports it sent, or delivered if it never does.
    WhenSent,
    /// Up to `above` bytes when it is handed to the simulator; larger ones when the simulator reports them sent, or delivered if it
    /// never does.
    LargeWhenSent {
        /// Largest message whose report is not needed.
        above: Bytes,
    },
    /// Up to `above` bytes when it is handed to the simulator; larger ones when they are delivered.
    Rendezvous {
        /// Largest message that is still sent eagerly.
        above: Bytes,
    },
    /// As `Rendezvous`, and a larger message leaves only when its receiver is in a call of MPI: at the start of a record of its task or
    /// while that waits, not while it computes. So MPI libraries work that have no thread or hardware to make progress beside the program.
    RendezvousInCalls {
        /// Largest message that is still sent eagerly.
        above: Bytes,
    },
}

/// What happens to messages between tasks on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameNode {
    /// They are handed to the simulator like all others.
    ViaNetwork,
    /// The engine completes them itself, without contention: the simulator never sees them.
    Inside(Memory),
}

impl SameNode {
    /// Whether messages between two tasks stay within their node; `nodes` are those of all tasks.
    #[inline(always)]
    pub(crate) fn keeps(&self, nodes: &[u32], src: u32, dst: u32) -> bool {
        *self != Self::ViaNetwork && nodes[src as usize] == nodes[dst as usize]
    }
}

impl Default for SameNode {
    /// Through memory, as MPIs do.
    fn default() -> Self {
        Self::Inside(Memory::default())
    }
}

/// How long messages take that do not leave their node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// A task's message to itself: one copy.
    pub itself: Link,
    /// A message to another task of the node: a copy into memory that both share, and one out of it.
    pub shared: Link,
}

impl Default for Memory {
    /// 100 ns and 20 GB/s to itself, 300 ns and 10 GB/s to others: what MPICH 4 and Open MPI 4 take on a server of
    /// 2023, in round numbers (`docs/accuracy.md` has the measurement).
    fn default() -> Self {
        Self { itself: Link::whole(Picos(100_000), 50), shared: Link::whole(Picos(300_000), 100) }
    }
}

impl From<Link> for Memory {
    /// The same for both.
    fn from(link: Link) -> Self {
        Self { itself: link, shared: link }
    }
}

/// Latency and bandwidth: a message of n bytes takes `latency + 8 n / bandwidth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    latency: Picos,
    bits_per_second: u64,
    /// Picoseconds a byte, if that is a whole number: then no division is needed.
    picos_per_byte: Option<u64>,
}

/// Picoseconds that a bit takes at 1 bit/s.
const BIT_PICOS: u64 = 1_000_000_000_000;

impl Link {
    /// A link of that latency and bandwidth; a bandwidth of 0 is refused.
    pub fn new(latency: Picos, bits_per_second: u64) -> Result<Self, BuildError> {
        if bits_per_second == 0 {
            return Err(BuildError::NoBandwidth);
        }
        let whole = (8 * BIT_PICOS).is_multiple_of(bits_per_second);
        let picos_per_byte = whole.then(|| 8 * BIT_PICOS / bits_per_second);
        Ok(Self { latency, bits_per_second, picos_per_byte })
    }

    /// A link that takes no time.
    pub const fn ideal() -> Self {
        Self { latency: Picos::ZERO, bits_per_second: u64::MAX, picos_per_byte: Some(0) }
    }

    /// A link on which a byte takes a whole number of picoseconds, at least one and at most [`BIT_PICOS`].
    pub(crate) const fn whole(latency: Picos, picos_per_byte: u64) -> Self {
        Self {
            latency,
            bits_per_second: 8 * BIT_PICOS / picos_per_byte,
            picos_per_byte: Some(picos_per_byte),
        }
    }

    /// The latency.
    pub fn latency(&self) -> Picos {
        self.latency
    }

    /// The bandwidth.
    pub fn bits_per_second(&self) -> u64 {
        self.bits_per_second
    }

    /// How long a message takes, rounded up to whole picoseconds; `None` past the end of time.
    #[inline]
    pub fn time(&self, bytes: Bytes) -> Option<Picos> {
        let transfer = match self.picos_per_byte {
            Some(picos) => bytes.0.checked_mul(picos)?,
            None => {
                let bit_picos = u128::from(bytes.0) * u128::from(8 * BIT_PICOS);
                u64::try_from(bit_picos.div_ceil(self.bits_per_second.into())).ok()?
            }
        };
        self.latency.checked_add(Picos(transfer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_rounds_up() {
        let link = |bits| Link::new(Picos(100), bits).unwrap();
        assert_eq!(link(10_000_000_000).time(Bytes(3)), Some(Picos(100 + 2400)));
        assert_eq!(link(3_000_000_000_000).time(Bytes(1)), Some(Picos(100 + 3)));
        assert_eq!(link(1).time(Bytes(2_000_000)), Some(Picos(100 + 16_000_000 * BIT_PICOS)));
        assert_eq!(link(1).time(Bytes(3_000_000)), None);
        assert_eq!(link(7).time(Bytes(u64::MAX)), None);
        assert_eq!(Link::ideal().time(Bytes(u64::MAX)), Some(Picos::ZERO));
        assert_eq!(Link::whole(Picos(1), 800), Link::new(Picos(1), 10_000_000_000).unwrap());
        assert!(matches!(Link::new(Picos(0), 0), Err(BuildError::NoBandwidth)));
    }
}
