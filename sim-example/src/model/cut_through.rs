//! A switch forwards a message from its first byte; messages queue for links.

use super::kind::{Carrier, ModelInfo};
use super::links;
use super::message::{Messages, Rule, Waits};

pub(super) const INFO: ModelInfo = ModelInfo {
    name: "cut-through",
    help: "links, one message at a time; infinite buffers",
    options: &[links::HEADING, links::GROUPS_HEADING],
    is_bounded_by_latency: true,
    has_packets: false,
    shares_bandwidth: false,
    carrier: Carrier::Links(|setup| {
        Ok(Box::new(Messages::new(&setup, Rule { waits: Waits::Everywhere, whole: false })))
    }),
};
