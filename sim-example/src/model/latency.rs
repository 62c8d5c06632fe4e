//! Cut-through without contention: the bound of the other models.

use super::kind::{Carrier, ModelInfo};
use super::links;
use super::message::{Messages, Rule, Waits};

pub(super) const INFO: ModelInfo = ModelInfo {
    name: "latency",
    help: "nothing: the bound without contention",
    options: &[links::HEADING, links::GROUPS_HEADING],
    is_bounded_by_latency: false,
    has_packets: false,
    shares_bandwidth: false,
    carrier: Carrier::Links(|setup| {
        Ok(Box::new(Messages::new(&setup, Rule { waits: Waits::Nowhere, whole: false })))
    }),
};
