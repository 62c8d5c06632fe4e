//! Cut-through with contention for the links from nodes to their switches alone: what a sender does to itself.

use super::kind::{Carrier, ModelInfo};
use super::links;
use super::message::{Messages, Rule, Waits};

pub(super) const INFO: ModelInfo = ModelInfo {
    name: "injection",
    help: "links from nodes to switches, one message at a time; nothing else",
    options: &[links::HEADING, links::GROUPS_HEADING],
    is_bounded_by_latency: true,
    has_packets: false,
    shares_bandwidth: false,
    carrier: Carrier::Links(|setup| {
        Ok(Box::new(Messages::new(&setup, Rule { waits: Waits::ForInjection, whole: false })))
    }),
};
