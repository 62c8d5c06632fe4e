//! The LogGOPS model: processors and network interfaces that are busy, and a network that only takes time.
//!
//! L is the latency, o what a processor is busy with a message, O with each of its bytes after the first, g the gap between messages of a
//! network interface, G between bytes, S the largest message that is sent eagerly. Every rank has processors (`cpu`) and
//! interfaces, which send (`out`) and receive (`in`); each is free from some moment on. A message of s bytes that is sent at t, `max(cpu, out) ≤ t`:
//!
//! ```text
//! sender      cpu = t + o + (s−1)·O                    out = t + g + (s−1)·G
//! arrival     a   = t + o + L
//! receiver    at the first u ≥ a with max(cpu, in) ≤ u:
//!             cpu = u + o + (s−1)·max(O, G)            in  = u + g + (s−1)·G
//! ```
//!
//! A send is done at t if `s ≤ S`, else when its message is matched, at which moment the sender's processor and interface are free at the earliest.
//! With [`Rendezvous::Handshake`] a message of more than S bytes is announced and asked for before it is sent, each of which
//! takes o of the processor of that side and L: one round trip more. What wants a processor or interface that is
//! busy is tried again when it is free; of what is tried at one moment, that comes first which was ready first.
//!
//! [`Schedule`] is a GOAL file, run as such ([`run_schedule`]); a trace is run by `replay` with the same machine. Both are LogGOPSim's
//! equations (Hoefler, Schneider, Lumsdaine 2010), and give its finishing times.

mod goal;
mod machine;
mod schedule;
mod stuck;
mod trace;

use std::fmt;
use std::str::FromStr;

use vef_format::units::{Bytes, Picos};

use crate::quantity::{parse_bytes, parse_time};

pub use goal::{GoalError, GoalProblem, Schedule};
pub use schedule::{ScheduleReport, run_schedule};
pub use stuck::{StuckSchedule, Waiting};
pub(crate) use trace::run_trace;

/// The model's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Latency (L).
    pub latency: Picos,
    /// What a processor is busy with a message (o).
    pub overhead: Picos,
    /// From one message of an interface to the next (g).
    pub gap: Picos,
    /// From one byte to the next (G).
    pub gap_per_byte: Picos,
    /// What a processor is busy with each byte after the first (O).
    pub overhead_per_byte: Picos,
    /// The largest message that is sent without asking (S).
    pub eager: Bytes,
}

impl Default for Parameters {
    /// Those of LogGOPSim, in nanoseconds: `L=2500,o=1500,g=1000,G=6,O=0,S=65535`.
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

/// A text that is no set of parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "LogGP parameters {text:?}: {problem}; write L=2500,o=1500,g=1000,G=6,O=0,S=65535 (nanoseconds, nanoseconds a byte, S in bytes)"
)]
pub struct UnknownParameters {
    text: String,
    problem: String,
}

impl FromStr for Parameters {
    type Err = UnknownParameters;

    /// `L=2500,o=1500,g=1000,G=6,O=0,S=65535`; what is not given is as LogGOPSim has it.
    fn from_str(text: &str) -> Result<Self, UnknownParameters> {
        let mut parameters = Self::default();
        let unknown = |problem: String| UnknownParameters { text: text.to_owned(), problem };
        for part in text.split(',') {
            let (name, value) =
                part.trim().split_once('=').ok_or_else(|| unknown(format!("{part:?} is no NAME=NUMBER")))?;
            let time = || parse_time(&format!("{}ns", value.trim()));
            let time = || time().map_err(|_| unknown(format!("{value:?} is no number of nanoseconds")));
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
    /// As it is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = |time: Picos| time.0 as f64 / 1000.0;
        let Self { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager } = *self;
        let (latency, overhead, gap) = (ns(latency), ns(overhead), ns(gap));
        let (gap_per_byte, overhead_per_byte) = (ns(gap_per_byte), ns(overhead_per_byte));
        write!(f, "L={latency},o={overhead},g={gap},G={gap_per_byte},O={overhead_per_byte},S={}", eager.0)
    }
}

/// What comes before a message of more than S bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rendezvous {
    /// Nothing: it is sent at once, only its send is done later. So does LogGOPSim.
    #[default]
    Late,
    /// It is announced and asked for: one round trip.
    Handshake,
}

/// The model as it is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogGp {
    /// The numbers.
    pub parameters: Parameters,
    /// What comes before large messages.
    pub rendezvous: Rendezvous,
    /// As LogGOPSim also where that makes no sense: a message of 0 bytes counts as one of −1, and computing is done at once for
    /// what follows on another processor.
    pub compat: bool,
}

#[cfg(test)]
mod tests;
