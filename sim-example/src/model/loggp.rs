//! Processors and interfaces of ranks are busy with messages; there are no links ([`crate::loggp`]).

use super::kind::{Carrier, ModelInfo};
use crate::loggp::HEADING;

pub(super) const INFO: ModelInfo = ModelInfo {
    name: "loggp",
    help: "processors and interfaces of ranks; there are no links",
    options: &[HEADING],
    is_bounded_by_latency: false,
    has_packets: false,
    shares_bandwidth: false,
    carrier: Carrier::Ranks,
};
