//! What a user chooses of the packet model, and the room of a buffer that follows from it.

use vef_format::units::{Bytes, Picos};

use super::parts::ClassSpeed;
use crate::model::ModelError;

/// How messages become packets, and where packets wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketSettings {
    /// Most bytes of a message in a packet (P).
    pub size: Bytes,
    /// What a packet has besides.
    pub header: Bytes,
    /// The buffer of a virtual channel behind a link; without it, as much as the full rate of the link needs.
    pub buffer: Option<Bytes>,
    /// Virtual channels of a link; without it, as many as the routing needs, and at least 2.
    pub vcs: Option<u32>,
    /// Which packets may ask for a link.
    pub buffers: Buffers,
    /// How many times as fast as its links a switch is inside, with one connection for each input; without it, each virtual
    /// channel has a connection of its own, as fast as the link that it leads to.
    pub speedup: Option<f64>,
    /// Which of those that ask gets a link.
    pub arbiter: Arbiter,
    /// What a switch takes to give a credit back, besides the latency of the link.
    pub credit_delay: Picos,
}

/// Which of those that ask gets a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbiter {
    /// One after the other, from behind the last.
    #[default]
    RoundRobin,
    /// The packet whose message was handed over first.
    Age,
}

/// Which packets may ask for a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// The first of each input's virtual channel.
    #[default]
    Input,
    /// All.
    Output,
}

impl Default for PacketSettings {
    fn default() -> Self {
        Self {
            size: Bytes(2048),
            header: Bytes::ZERO,
            buffer: None,
            vcs: None,
            buffers: Buffers::Input,
            speedup: None,
            arbiter: Arbiter::RoundRobin,
            credit_delay: Picos::ZERO,
        }
    }
}

/// The room of a buffer behind a link.
pub(super) fn room(
    settings: &PacketSettings,
    class: &ClassSpeed,
    switch_delay: Picos,
) -> Result<u32, ModelError> {
    let most = settings.size.0 + settings.header.0;
    let room = match settings.buffer {
        Some(Bytes(buffer)) if buffer < most => {
            return Err(ModelError::Buffer { buffer: Bytes(buffer), packet: Bytes(most) });
        }
        Some(Bytes(buffer)) => buffer,
        None => {
            // B(λ + λ + credit delay + σ) + p bytes, in whole packets.
            let loop_time = [class.speed.latency, class.back, switch_delay]
                .iter()
                .map(|time| u128::from(time.0))
                .sum::<u128>();
            let packets = loop_time.div_ceil(u128::from(class.whole.0.max(1))) + 1;
            u64::try_from(packets * u128::from(most)).unwrap_or(u64::MAX).min(u64::from(u32::MAX) >> 1)
        }
    };
    u32::try_from(room).map_err(|_| ModelError::BufferTooLarge { buffer: Bytes(room) })
}
