//! DCTCP (M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010; RFC 8257).
//!
//! A switch marks a packet that finds more than K bytes in the queue of its link. A sender counts the share F of marked bytes in each
//! window of data, and at its end
//!
//! ```text
//! α ← (1 − g)·α + g·F
//! ```
//!
//! At the first mark of a window W ← W·(1 − α/2), and W does not grow until the window's end; else it grows as TCP's: by the bytes
//! acknowledged in slow start, by a packet a round trip afterwards.

use std::fmt;

use vef_format::units::Bytes;

use super::parameters::{CongestionError, parameters, share, size, write_given};
use crate::quantity::Bandwidth;

/// Packets of a new flow's window (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpSettings {
    /// Queue above which packets are marked; `None` is the paper's 65 packets of 1500 bytes at 10 Gbit/s, in proportion to bandwidth.
    pub threshold: Option<Bytes>,
    /// Weight of the last window in α.
    pub gain: f64,
}

impl DctcpSettings {
    const DEFAULT: Self = Self { threshold: None, gain: 1.0 / 16.0 };

    pub(super) fn parse(text: &str) -> Result<Self, CongestionError> {
        let mut settings = Self::DEFAULT;
        parameters(text, |key, value| {
            match key {
                "K" => settings.threshold = Some(size(value)?),
                "g" => settings.gain = share(value)?,
                _ => return Err("write K or g".to_owned()),
            }
            Ok(())
        })?;
        Ok(settings)
    }

    /// The threshold of a link.
    pub(super) fn threshold(&self, bandwidth: Bandwidth) -> u64 {
        let of_paper = 65.0 * 1500.0 * bandwidth.bits_per_second() as f64 / 10e9;
        self.threshold.map_or(of_paper as u64, |threshold| threshold.0)
    }
}

impl fmt::Display for DctcpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threshold = self.threshold.map(|threshold| ("K", format!("{}B", threshold.0)));
        let gain = (self.gain != Self::DEFAULT.gain).then(|| ("g", self.gain.to_string()));
        write_given(f, "dctcp", threshold.into_iter().chain(gain))
    }
}

/// The window of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dctcp {
    /// In bytes.
    pub(in super::super) window: f64,
    /// End of slow start.
    threshold: f64,
    alpha: f64,
    gain: f64,
    /// A packet.
    packet: f64,
    /// Bytes acknowledged in this window of data, and those of marked packets.
    acked: f64,
    marked: f64,
    /// Bytes acknowledged in all when this window of data ends.
    end: u64,
    /// Whether the window was reduced in this window of data.
    reduced: bool,
}

impl Dctcp {
    pub(super) fn new(settings: &DctcpSettings, packet: u64) -> Self {
        let packet = packet as f64;
        Self {
            window: FIRST_WINDOW * packet,
            threshold: f64::INFINITY,
            alpha: 1.0,
            gain: settings.gain,
            packet,
            acked: 0.0,
            marked: 0.0,
            end: 0,
            reduced: false,
        }
    }

    /// An acknowledgement of `bytes`; `acked` and `sent` are the flow's bytes so far.
    pub(in super::super) fn acknowledged(&mut self, bytes: u64, marked: bool, acked: u64, sent: u64) {
        let bytes = bytes as f64;
        self.acked += bytes;
        if marked {
            self.marked += bytes;
            if !self.reduced {
                self.reduced = true;
                self.shrink(1.0 - self.alpha / 2.0);
            }
        } else if self.window < self.threshold {
            self.window += bytes;
        } else if !self.reduced {
            self.window += self.packet * bytes / self.window;
        }
        if acked >= self.end {
            if self.acked > 0.0 {
                self.alpha += self.gain * (self.marked / self.acked - self.alpha);
            }
            (self.acked, self.marked, self.reduced) = (0.0, 0.0, false);
            self.end = sent;
        }
    }

    /// A packet was lost (RFC 5681): half the window, or after a timeout one packet.
    pub(in super::super) fn lost(&mut self, timeout: bool) {
        self.shrink(0.5);
        if timeout {
            self.window = self.packet;
        }
    }

    fn shrink(&mut self, factor: f64) {
        self.window = (self.window * factor).max(self.packet);
        self.threshold = self.window;
    }
}
