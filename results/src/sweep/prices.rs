//! What a network costs.

use crate::simulation::NetworkReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Prices of the parts of a network, in any currency; those that are not given are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Prices {
    /// A switch, without its ports.
    pub switch: f64,
    /// A port of a switch.
    pub port: f64,
    /// A cable between two switches.
    pub cable: f64,
    /// A cable between a node and its switch.
    pub node_cable: f64,
    /// A node's interface.
    pub interface: f64,
}

impl Prices {
    /// Whether all are finite and none is negative.
    pub fn are_valid(&self) -> bool {
        let Self { switch, port, cable, node_cable, interface } = *self;
        [switch, port, cable, node_cable, interface].iter().all(|price| (0.0..f64::INFINITY).contains(price))
    }

    /// What a network costs.
    pub fn of(&self, network: &NetworkReport) -> f64 {
        let nodes = f64::from(network.nodes);
        self.switch * f64::from(network.switches)
            + self.port * f64::from(network.switch_ports())
            + self.cable * f64::from(network.switch_cables())
            + (self.node_cable + self.interface) * nodes
    }
}
