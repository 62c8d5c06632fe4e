//! Settings of the packet model, and the buffer sizes that follow from them.

use vef_format::units::{Bytes, Picos};

use super::parts::ClassSpeed;
use crate::model::ModelError;
use crate::quantity::{parse_bytes, parse_time};

/// The heading of its options.
pub const HEADING: &str = "Model packet";

/// Settings of the packet model.
#[derive(Clone, Copy, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = HEADING)]
#[group(skip)]
pub struct PacketSettings {
    /// Largest payload of a packet
    #[arg(long = "packet-size", default_value = "2KiB", value_name = "SIZE", value_parser = parse_bytes)]
    pub size: Bytes,
    /// Header of a packet
    #[arg(long = "packet-header", default_value = "0B", value_name = "SIZE", value_parser = parse_bytes)]
    pub header: Bytes,
    /// Buffer of a virtual channel [default: what the bandwidth of its link needs]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub buffer: Option<Bytes>,
    /// Virtual channels per link [default: what the routing needs, at least 2]
    #[arg(long, value_name = "N")]
    pub vcs: Option<u32>,
    /// Packets that may request a link
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    pub buffers: Buffers,
    /// Speed of a switch's inside relative to its links, with one connection per input
    /// [default: one connection per channel, as fast as its link]
    #[arg(long, value_name = "TIMES")]
    pub speedup: Option<f64>,
    /// Which of the requests for a link is served
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub arbiter: Arbiter,
    /// Time of a switch for a credit, besides the latency of the link
    #[arg(long, default_value = "0ns", value_name = "TIME", value_parser = parse_time)]
    pub credit_delay: Picos,
}

/// Which of the requests for a link is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Arbiter {
    /// Round-robin over the buffers
    #[default]
    RoundRobin,
    /// The packet whose message was submitted first
    Age,
}

/// Which packets may request a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Buffers {
    /// The head of each virtual channel's input buffer
    #[default]
    Input,
    /// All packets
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
