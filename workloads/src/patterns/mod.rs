//! The communication patterns: the list of all, and a file for each kind.
//!
//! A new pattern is a file that describes it and a line in the list. `vef gen` and the tests find it from there.

mod exchange;
mod fft;
mod incast;
mod llm;
mod random;
mod sweep;
mod together;
mod training;

use crate::workload::Pattern;
use vef_format::nearest::did_you_mean;

/// All patterns.
pub static PATTERNS: [Pattern; 11] = [
    exchange::RING,
    exchange::HALO2D,
    exchange::HALO3D,
    together::ALLTOALL,
    together::ALLREDUCE,
    random::RANDOM,
    incast::INCAST,
    sweep::SWEEP,
    fft::FFT,
    training::TRAINING,
    llm::LLM,
];

/// No pattern has the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown pattern {0:?}; {meant}write {names}", meant = did_you_mean(.0, PATTERNS.iter().map(|pattern| pattern.name)), names = names())]
pub struct UnknownPattern(pub String);

/// `a, b or c`.
fn names() -> String {
    let [first @ .., last] = PATTERNS.each_ref().map(|pattern| pattern.name);
    format!("{} or {last}", first.join(", "))
}

/// The pattern of that name.
pub fn pattern(name: &str) -> Result<&'static Pattern, UnknownPattern> {
    PATTERNS.iter().find(|pattern| pattern.name == name).ok_or_else(|| UnknownPattern(name.to_owned()))
}
