//! Settings of the packet model, and the buffer sizes that follow from them.

use std::str::FromStr;

use vef_format::units::{Bytes, Picos};

use super::classes::TrafficClasses;
use super::congestion::settings::Congestion;
use super::parts::ClassSpeed;
use crate::model::ModelError;
use crate::quantity::{parse_bytes, parse_time};
use crate::routing::{ChannelClasses, Router};

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
    /// Buffer of a virtual channel; with auto what the bandwidth of its link needs
    #[arg(long, default_value = "auto", value_name = "SIZE", value_parser = |text: &str| unless("auto", text, parse_bytes))]
    pub buffer: std::option::Option<Bytes>,
    /// Virtual channels per link; with auto what the routing needs, at least 2
    #[arg(long, default_value = "auto", value_name = "N", value_parser = |text: &str| unless("auto", text, str::parse::<u32>))]
    pub vcs: std::option::Option<u32>,
    /// What the class of a packet's virtual channels follows from
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub channel_classes: ChannelClasses,
    /// Packets that may request a link
    #[arg(long, value_enum, default_value_t, value_name = "WHERE")]
    pub buffers: Buffers,
    /// Speed of a switch's inside relative to its links, with one connection per input; with none one connection per channel, as
    /// fast as its link
    #[arg(long, default_value = "none", value_name = "TIMES", value_parser = unless_none::<f64>)]
    pub speedup: std::option::Option<f64>,
    /// Which of the requests for a link is served
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub arbiter: Arbiter,
    /// Time of a switch for a credit, besides the latency of the link
    #[arg(long, default_value = "0ns", value_name = "TIME", value_parser = parse_time)]
    pub credit_delay: Picos,
    /// How senders react to congestion: dctcp, dctcp:K=SIZE,g=G, dcqcn, dcqcn:KEY=VALUE,…, window:SIZE, window:bdp, credits or
    /// credits:SIZE; with none they send as fast as their link
    #[arg(long, default_value = "none", value_name = "HOW", value_parser = unless_none::<Congestion>)]
    pub congestion: std::option::Option<Congestion>,
    /// Drop packets for which the queue of a link has no room (with --buffers output), instead of holding them back; senders go
    /// back to the first one that is missing
    #[arg(long, default_value = "none", value_name = "SIZE", value_parser = |text: &str| unless("none", text, parse_bytes))]
    pub lossy: std::option::Option<Bytes>,
    /// Time without an acknowledgement after which a sender sends again what may be lost
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = parse_time)]
    pub retransmit: Picos,
    /// Classes of traffic, which share links by weight.
    #[arg(skip)]
    pub classes: TrafficClasses,
}

/// What `parse` makes of a text, or nothing of the `word` for it.
fn unless<T, E>(word: &str, text: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<Option<T>, E> {
    if text == word { Ok(None) } else { parse(text).map(Some) }
}

/// A value, or nothing of `none`: so a sweep can have both.
pub(crate) fn unless_none<T: FromStr>(text: &str) -> Result<Option<T>, T::Err> {
    unless("none", text, str::parse)
}

/// The default of `--retransmit`.
const RETRANSMIT: Picos = Picos(1_000_000_000);

/// The shortest time after which a sender sends again.
const LEAST_RETRANSMIT: Picos = Picos(100_000);

impl PacketSettings {
    /// Whether congestion control, loss and classes of traffic are possible with the other settings.
    pub(super) fn check_congestion(&self, router: &Router<'_>) -> Result<(), ModelError> {
        let refuse = |option, needs| Err(ModelError::Congestion { option, needs });
        if self.classes.count() > 1 && self.speedup.is_some() {
            return refuse(
                "--class",
                "a switch without --speedup, whose queue at a link is one for all classes",
            );
        }
        match self.congestion {
            Some(control) if control.marks() && self.buffers == Buffers::Input => {
                refuse("marks by --congestion dctcp or dcqcn", "--buffers output, whose queues are measured")
            }
            _ => match self.lossy {
                None if self.retransmit != RETRANSMIT => refuse("--retransmit", "--lossy"),
                None => Ok(()),
                Some(_) if self.buffers == Buffers::Input => {
                    refuse("--lossy", "--buffers output, whose queues it limits")
                }
                Some(_) if router.by_packet() || router.asks_for_load() => {
                    refuse("--lossy", "a routing on which packets of a message do not overtake each other")
                }
                Some(queue) if queue.0 < self.size.0 + self.header.0 => {
                    refuse("--lossy", "room for a packet and its header")
                }
                // Each timeout is an event: shorter ones would take for ever.
                Some(_) if self.retransmit < LEAST_RETRANSMIT => {
                    refuse("--lossy", "a --retransmit of 100ns or more")
                }
                Some(_) => Ok(()),
            },
        }
    }

    /// Most bytes that wait for a link, and the time after which a sender goes back.
    pub(super) fn lossy_queue(&self) -> Option<(Bytes, Picos)> {
        self.lossy.map(|queue| (queue, self.retransmit))
    }
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
            channel_classes: ChannelClasses::Routing,
            buffers: Buffers::Input,
            speedup: None,
            arbiter: Arbiter::RoundRobin,
            credit_delay: Picos::ZERO,
            congestion: None,
            lossy: None,
            retransmit: Picos(1_000_000_000),
            classes: TrafficClasses::default(),
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
        // Nothing is held back; all that can be under way fits.
        _ if settings.lossy.is_some() => u64::from(u32::MAX) >> 2,
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
