//! The result: the nodes of a job and the location of each rank.

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Most nodes and ranks of a placement by a rule: do not allocate memory on a mistyped number's word.
pub(crate) const MOST_NODES: u32 = 1 << 22;
pub(crate) const MOST_RANKS: u32 = 1 << 24;

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

    /// `node0`, `node1`, ….
    pub(crate) fn numbered(count: u32) -> Result<Vec<Self>, Error> {
        if count > MOST_NODES {
            return Err(Error::new(format!("{count} nodes; at most {MOST_NODES} are possible")));
        }
        Ok((0..count).map(|number| Node::named(format!("node{number}"))).collect())
    }
}

/// The node of a rank, and its slot and core there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Location {
    /// Index into [`Placement::nodes`].
    pub node: u32,
    /// Slot on the node, from 0, if the launcher has slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<u32>,
    /// Core, from 0, if known: of the slot in GetInfo's model; of the socket if a rankfile names one (`slot`
    /// is then the socket); otherwise of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Whether the rank shares its slot because the node has no free one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oversubscribed: bool,
}

impl Location {
    /// A location of which only the node is known.
    pub fn on(node: u32) -> Self {
        Location { node, slot: None, core: None, oversubscribed: false }
    }

    /// The location of the `nth` process on a node with `slots` slots: its `nth` slot, modulo their number.
    pub(crate) fn nth(node: u32, nth: u32, slots: u32) -> Self {
        Location { slot: Some(nth % slots.max(1)), oversubscribed: nth >= slots, ..Location::on(node) }
    }

    /// The locations of ranks on these nodes, which have so many slots.
    pub(crate) fn in_slots(nodes: impl Iterator<Item = u32>, slots: &[u32]) -> Vec<Self> {
        let mut taken = vec![0u32; slots.len()];
        nodes
            .map(|node| {
                let nth = taken[node as usize];
                taken[node as usize] += 1;
                Self::nth(node, nth, slots[node as usize])
            })
            .collect()
    }
}

/// The nodes of a job and the location of each rank.
///
/// Each `ranks[r].node` is a valid index into `nodes`; constructors and readers ensure this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Placement {
    /// The nodes in the launcher's order; some may be empty.
    pub nodes: Vec<Node>,
    /// Locations by rank.
    pub ranks: Vec<Location>,
}

impl Placement {
    /// Places `per_node` consecutive ranks on each node: rank `r` on node `r / per_node`. The nodes are named
    /// `node0`, `node1`, ….
    ///
    /// # Errors
    /// There are no ranks, or more than `nodes × per_node`.
    pub fn block(ranks: u32, nodes: u32, per_node: u32) -> Result<Self, Error> {
        if per_node == 0 {
            return Err(Error::no_nodes());
        }
        let needed = ranks.div_ceil(per_node);
        if nodes > 0 && needed > nodes {
            return Err(Error::new(format!(
                "{ranks} ranks at {per_node} per node need {needed} nodes, but there are {nodes}"
            )));
        }
        Self::from_rule(ranks, nodes, |rank| (rank / per_node, rank % per_node))
    }

    /// Deals ranks to nodes in turn: rank `r` on node `r % nodes`. The nodes are named `node0`, `node1`, ….
    ///
    /// # Errors
    /// There are no ranks or no nodes.
    pub fn round_robin(ranks: u32, nodes: u32) -> Result<Self, Error> {
        Self::from_rule(ranks, nodes, |rank| (rank % nodes, rank / nodes))
    }

    /// The rule gives the node and slot of each rank.
    fn from_rule(ranks: u32, nodes: u32, rule: impl Fn(u32) -> (u32, u32)) -> Result<Self, Error> {
        if nodes == 0 {
            return Err(Error::no_nodes());
        }
        if ranks == 0 {
            return Err(Error::no_ranks());
        }
        if ranks > MOST_RANKS {
            return Err(Error::too_many_ranks(ranks, MOST_RANKS));
        }
        let location = |(node, slot)| Location { slot: Some(slot), ..Location::on(node) };
        Ok(Placement {
            nodes: Node::numbered(nodes)?,
            ranks: (0..ranks).map(|rank| location(rule(rank))).collect(),
        })
    }

    /// The node of each rank, as replay takes it.
    pub fn nodes_of_ranks(&self) -> Vec<u32> {
        self.ranks.iter().map(|location| location.node).collect()
    }

    /// The host name of each rank's node.
    pub fn hosts_of_ranks(&self) -> impl Iterator<Item = &str> {
        self.ranks.iter().map(|location| self.nodes[location.node as usize].name.as_str())
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
        assert_eq!(placement.hosts_of_ranks().last(), Some("node2"));
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
