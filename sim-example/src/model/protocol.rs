//! Costs of the message library, added to the network of any model.
//!
//! A message of `m` bytes enters the network [`Protocol::delay`] later, for handshakes and copies beyond
//! latency, overhead and rate. With [`Protocol::returned`] `ρ` it also sends `ρ·m` bytes the other way,
//! without waiting for them: acknowledgements, or the other half of a half-duplex medium.

use vef_format::units::{Bytes, Picos};

use super::network::forward;
use super::{Carried, Happened, Network, OutOfTime};
use crate::watch::RETURNED;

/// Costs of the message library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Protocol {
    /// Bytes returned per byte of a message.
    pub returned: f64,
    /// Delays by size, in ascending order of size.
    pub delays: Vec<Delay>,
}

/// Delay of messages of at least `from` bytes: `base + bytes · per_byte`, at least 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// Smallest message.
    pub from: Bytes,
    /// In picoseconds.
    pub base: f64,
    /// In picoseconds.
    pub per_byte: f64,
}

impl Protocol {
    /// Whether nothing is added.
    pub fn is_nothing(&self) -> bool {
        self.returned == 0.0 && self.delays.is_empty()
    }

    /// The delay of a message before it enters the network.
    pub fn delay(&self, bytes: Bytes) -> Picos {
        let behind = self.delays.partition_point(|delay| delay.from <= bytes);
        let Some(delay) = behind.checked_sub(1).and_then(|at| self.delays.get(at)) else {
            return Picos::ZERO;
        };
        // The cast saturates.
        Picos((delay.base + delay.per_byte * bytes.0 as f64).max(0.0) as u64)
    }

    fn returned(&self, bytes: Bytes) -> Bytes {
        Bytes((bytes.0 as f64 * self.returned).round() as u64)
    }
}

/// A network with the costs of a message library.
pub(crate) struct WithProtocol<'a, N> {
    pub(crate) network: N,
    pub(crate) protocol: &'a Protocol,
}

impl<N: Network> Network for WithProtocol<'_, N> {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        let Carried { src, dst, bytes, .. } = message;
        let at = at.checked_add(self.protocol.delay(bytes)).ok_or(OutOfTime { bytes })?;
        self.network.submit(at, message)?;
        match self.protocol.returned(bytes) {
            Bytes(0) => Ok(()),
            back => {
                let origin = message.origin.back();
                self.network.submit(at, Carried { src: dst, dst: src, bytes: back, tag: RETURNED, origin })
            }
        }
    }

    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        loop {
            match self.network.run_until(limit)? {
                Some((_, Happened::Sent { tag: RETURNED } | Happened::Delivered { tag: RETURNED, .. })) => {}
                happened => return Ok(happened),
            }
        }
    }

    forward!(self => self.network);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_by_size() {
        let delay = |from, base, per_byte| Delay { from: Bytes(from), base, per_byte };
        let protocol = Protocol {
            returned: 0.0,
            delays: vec![delay(8, 100.0, 0.0), delay(1000, -1000.0, 2.0), delay(2000, -1e9, 0.0)],
        };
        let expected =
            [(0, 0), (7, 0), (8, 100), (999, 100), (1000, 1000), (1500, 2000), (2000, 0), (u64::MAX, 0)];
        for (bytes, picos) in expected {
            assert_eq!(protocol.delay(Bytes(bytes)), Picos(picos), "{bytes}");
        }
    }
}
