//! The result: the nodes of a job and the place of each rank.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Problem};

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Host name, unique in a placement.
    pub name: String,
    /// Processes without oversubscription, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Processes with oversubscription; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_slots: Option<u32>,
    /// Cores per slot, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
}

impl Node {
    /// A node of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Node { name: name.into(), slots: None, max_slots: None, cores: None }
    }
}

/// The place of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Index into [`Placement::nodes`].
    pub node: u32,
    /// Slot on the node, from 0, if the launcher has slots.
    pub slot: Option<u32>,
    /// Core, from 0, if known: of the slot in GetInfo's model; of the socket if a rankfile names one (`slot`
    /// is then the socket); otherwise of the node.
    pub core: Option<u32>,
    /// Whether the rank shares its slot because the node has no free one.
    pub oversubscribed: bool,
}

impl Place {
    /// A place of which only the node is known.
    pub fn on(node: u32) -> Self {
        Place { node, slot: None, core: None, oversubscribed: false }
    }
}

/// The nodes of a job and the place of each rank.
///
/// Each `ranks[r].node` is a valid index into `nodes`; constructors and readers ensure this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The nodes in the launcher's order; some may be empty.
    pub nodes: Vec<Node>,
    /// Places by rank.
    pub ranks: Vec<Place>,
}

impl Placement {
    /// Places `per_node` consecutive ranks on each node: rank `r` on node `r / per_node`. The nodes are named
    /// `node0`, `node1`, ….
    ///
    /// # Errors
    /// There are no ranks, or more than `nodes × per_node`.
    pub fn block(ranks: u32, nodes: u32, per_node: u32) -> Result<Self, Error> {
        let capacity = u64::from(nodes) * u64::from(per_node);
        if nodes == 0 || per_node == 0 {
            return Err(Problem::NoNodes.into());
        }
        if u64::from(ranks) > capacity {
            return Err(Problem::TooFewNodes {
                ranks: ranks.into(),
                per_node: per_node.into(),
                needed: ranks.div_ceil(per_node).into(),
                nodes: nodes.into(),
            }
            .into());
        }
        Self::from_rule(ranks, nodes, |rank| Place {
            slot: Some(rank % per_node),
            ..Place::on(rank / per_node)
        })
    }

    /// Deals ranks to nodes in turn: rank `r` on node `r % nodes`. The nodes are named `node0`, `node1`, ….
    ///
    /// # Errors
    /// There are no ranks or no nodes.
    pub fn round_robin(ranks: u32, nodes: u32) -> Result<Self, Error> {
        if nodes == 0 {
            return Err(Problem::NoNodes.into());
        }
        Self::from_rule(ranks, nodes, |rank| Place { slot: Some(rank / nodes), ..Place::on(rank % nodes) })
    }

    fn from_rule(ranks: u32, nodes: u32, rule: impl Fn(u32) -> Place) -> Result<Self, Error> {
        if ranks == 0 {
            return Err(Problem::NoRanks.into());
        }
        Ok(Placement {
            nodes: (0..nodes).map(|n| Node::named(format!("node{n}"))).collect(),
            ranks: (0..ranks).map(rule).collect(),
        })
    }

    /// The node of a rank; `None` if there is no such rank.
    pub fn node_of(&self, rank: u32) -> Option<u32> {
        self.ranks.get(rank as usize).map(|place| place.node)
    }

    /// The node of each rank, as replay takes it.
    pub fn nodes_of_ranks(&self) -> Vec<u32> {
        self.ranks.iter().map(|place| place.node).collect()
    }

    /// The host name of a rank's node; `None` if there is no such rank.
    pub fn host_of(&self, rank: u32) -> Option<&str> {
        self.node_of(rank).and_then(|node| self.nodes.get(node as usize)).map(|node| node.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_fills_a_node_before_the_next() {
        let placement = Placement::block(5, 3, 2).unwrap();
        assert_eq!(placement.nodes_of_ranks(), [0, 0, 1, 1, 2]);
        assert_eq!(placement.ranks[3].slot, Some(1));
        assert_eq!(placement.host_of(4), Some("node2"));
        assert_eq!(placement.node_of(5), None);
    }

    #[test]
    fn round_robin_deals() {
        let placement = Placement::round_robin(5, 3).unwrap();
        assert_eq!(placement.nodes_of_ranks(), [0, 1, 2, 0, 1]);
        assert_eq!(placement.ranks[3].slot, Some(1));
    }

    #[test]
    fn impossible_rules_are_refused() {
        assert!(Placement::block(0, 3, 2).is_err());
        assert!(Placement::round_robin(1, 0).is_err());
        let error = Placement::block(7, 3, 2).unwrap_err();
        assert_eq!(error.to_string(), "7 ranks at 2 per node need 4 nodes, but there are 3");
    }
}
