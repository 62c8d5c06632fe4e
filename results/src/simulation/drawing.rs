//! A simulated network as it is drawn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parts of a network at their places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Drawing {
    /// Switches and, of trees, nodes.
    pub vertices: Vec<DrawnVertex>,
    /// The cables between them.
    pub cables: Vec<DrawnCable>,
    /// Whether cables are straight lines. Otherwise long ones are arcs, clear of the vertices between their ends.
    pub straight: bool,
}

/// A switch or a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DrawnVertex {
    /// Its name.
    pub name: String,
    /// Whether it is a node.
    pub is_node: bool,
    /// Its place from the left, in pixels.
    pub x: f64,
    /// Its place from the top, in pixels.
    pub y: f64,
    /// Of a switch whose nodes are not drawn: the highest utilisation of their links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub utilisation: Option<f64>,
}

/// The links between two vertices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DrawnCable {
    /// Its ends: places in the list of vertices.
    pub ends: [u32; 2],
    /// Number of directed links.
    pub links: u32,
    /// The highest utilisation of a link.
    pub utilisation: f64,
}
