//! The LogGOPS model: processors and network interfaces are busy with messages; the network only has latency.
//!
//! L is the latency, o the time of a processor per message, O per byte after the first, g the gap between
//! messages of a network interface, G between bytes, S the largest eager message. Each rank has processors
//! (`cpu`) and interfaces that send (`out`) and receive (`in`); each has a time from which it is free. A
//! message of s bytes sent at t, `max(cpu, out) ≤ t`, has the times
//!
//! ```text
//! sender      cpu = t + o + (s−1)·O                    out = t + g + (s−1)·G
//! arrival     a   = t + o + L
//! receiver    at the first u ≥ a with max(cpu, in) ≤ u:
//!             cpu = u + o + (s−1)·max(O, G)            in  = u + g + (s−1)·G
//! ```
//!
//! A send completes at t if `s ≤ S`, else when its message is matched; processor and interface of the sender
//! are then busy at least until that time. With [`Rendezvous::Handshake`], a message of more than S bytes is
//! announced and requested before it is sent; each of these takes o on its sender's processor, and L. An
//! operation that needs a busy processor or interface is tried again when that is free; operations tried at
//! the same time are served in the order in which they became ready.
//!
//! [`Schedule`] is a GOAL file, executed by [`run_schedule`]; `replay` drives traces on the same machine. The
//! equations are those of LogGOPSim (Hoefler, Schneider, Lumsdaine 2010), and so are the finishing times.

mod machine;
mod schedule;
mod stuck;
mod trace;

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use vef_format::units::{Bytes, Picos};

use crate::quantity::{parse_bytes, parse_time};

pub use interchange::goal::Schedule;
pub use schedule::run_schedule;
pub use stuck::{StuckSchedule, Waiting};
pub(crate) use trace::run_trace;

/// The parameters of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Latency (L).
    pub latency: Picos,
    /// Time of a processor per message (o).
    pub overhead: Picos,
    /// Gap between messages of an interface (g).
    pub gap: Picos,
    /// Gap between bytes (G).
    pub gap_per_byte: Picos,
    /// Time of a processor per byte after the first (O).
    pub overhead_per_byte: Picos,
    /// Largest eager message (S).
    pub eager: Bytes,
}

impl Default for Parameters {
    /// The defaults of LogGOPSim, in nanoseconds: `L=2500,o=1500,g=1000,G=6,O=0,S=65535`.
    fn default() -> Self {
        let ns = |n: u64| Picos(1000 * n);
        Self {
            latency: ns(2500),
            overhead: ns(1500),
            gap: ns(1000),
            gap_per_byte: ns(6),
            overhead_per_byte: ns(0),
            eager: Bytes(65535),
        }
    }
}

/// Invalid LogGP parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{problem}; write L=2500,o=1500,g=1000,G=6,O=0,S=65535 (nanoseconds, nanoseconds a byte, S in bytes)"
)]
pub struct UnknownParameters {
    problem: String,
}

impl FromStr for Parameters {
    type Err = UnknownParameters;

    /// `L=2500,o=1500,g=1000,G=6,O=0,S=65535`; omitted parameters have LogGOPSim's defaults.
    fn from_str(text: &str) -> Result<Self, UnknownParameters> {
        let mut parameters = Self::default();
        let unknown = |problem: String| UnknownParameters { problem };
        let mut before = HashSet::new();
        for part in text.split(',') {
            let named = part.trim().split_once('=');
            let (name, value) = named.ok_or_else(|| unknown("a part is no NAME=NUMBER".to_owned()))?;
            let time = || parse_time(&format!("{}ns", value.trim()));
            let time = || time().map_err(|_| unknown(format!("{value:?} is no number of nanoseconds")));
            if !before.insert(name.trim()) {
                return Err(unknown(format!("{} is given a second time", name.trim())));
            }
            match name.trim() {
                "L" => parameters.latency = time()?,
                "o" => parameters.overhead = time()?,
                "g" => parameters.gap = time()?,
                "G" => parameters.gap_per_byte = time()?,
                "O" => parameters.overhead_per_byte = time()?,
                "S" => {
                    let size = parse_bytes(value);
                    parameters.eager =
                        size.map_err(|_| unknown(format!("{value:?} is no number of bytes")))?;
                }
                other => return Err(unknown(format!("there is no {other:?}"))),
            }
        }
        Ok(parameters)
    }
}

impl fmt::Display for Parameters {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |time: Picos| time.0 as f64 / 1000.0;
        let Self { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager } = *self;
        let (latency, overhead, gap) = (ns(latency), ns(overhead), ns(gap));
        let (gap_per_byte, overhead_per_byte) = (ns(gap_per_byte), ns(overhead_per_byte));
        write!(f, "L={latency},o={overhead},g={gap},G={gap_per_byte},O={overhead_per_byte},S={}", eager.0)
    }
}

/// The protocol of messages of more than S bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Rendezvous {
    /// No handshake: the message is sent at once, but its send completes later, as in LogGOPSim
    #[default]
    Late,
    /// Announcement and request: one round trip
    Handshake,
}

/// The heading of the options of the model.
pub const HEADING: &str = "Model loggp";

/// Settings of the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = HEADING)]
#[group(skip)]
pub struct LogGp {
    /// Parameters in ns, ns per byte, and bytes (S)
    #[arg(long = "loggp", default_value_t, value_name = "L=…,o=…")]
    pub parameters: Parameters,
    /// Protocol of messages over S bytes
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub rendezvous: Rendezvous,
    /// Reproduce defects of LogGOPSim: a message of 0 bytes counts as -1 bytes, and computing does not delay operations on other
    /// processors that depend on it
    #[arg(long)]
    pub compat: bool,
}

#[cfg(test)]
mod tests;
