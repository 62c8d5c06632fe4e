//! A switch forwards a message after its last byte; messages queue for links.

use super::kind::{Carrier, ModelInfo};
use super::links;
use super::message::{Messages, Rule, Waits};

pub(super) const INFO: ModelInfo = ModelInfo {
    name: "store-and-forward",
    help: "the same, but a switch receives the whole message before it sends",
    options: &[links::HEADING, links::GROUPS_HEADING],
    is_bounded_by_latency: true,
    has_packets: false,
    shares_bandwidth: false,
    carrier: Carrier::Links(|setup| {
        Ok(Box::new(Messages::new(&setup, Rule { waits: Waits::Everywhere, whole: true })))
    }),
};
