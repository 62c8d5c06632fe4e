//! Settings of the packet model, and the buffer sizes that follow from them.

use vef_format::units::{Bytes, Picos};

use super::parts::ClassSpeed;
use crate::model::ModelError;

/// Settings of the packet model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketSettings {
    /// Largest payload of a packet (P).
    pub size: Bytes,
    /// Header of a packet.
    pub header: Bytes,
    /// Buffer of a virtual channel; by default what the bandwidth of the link needs.
    pub buffer: Option<Bytes>,
    /// Virtual channels per link; by default what the routing needs, at least 2.
    pub vcs: Option<u32>,
    /// Which packets may request a link.
    pub buffers: Buffers,
    /// Speed of a switch's inside relative to its links, with one connection per input. By default each
    /// virtual channel has a connection of its own, as fast as its link.
    pub speedup: Option<f64>,
    /// Which of the requests for a link is served.
    pub arbiter: Arbiter,
    /// Time of a switch for a credit, besides the latency of the link.
    pub credit_delay: Picos,
}

/// Which of the requests for a link is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arbiter {
    /// Round-robin over the buffers.
    #[default]
    RoundRobin,
    /// The packet whose message was submitted first.
    Age,
}

/// Which packets may request a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// The head of each virtual channel's input buffer.
    #[default]
    Input,
    /// All packets.
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

/// The size of the buffers behind links of a class.
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
            // Bandwidth times (λ + credit λ + credit delay + σ), and one packet; in whole packets.
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
