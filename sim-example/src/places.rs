//! Rules that map the tasks of a trace to nodes.

use std::fmt;
use std::str::FromStr;

use placement::Placement;
use vef_format::nearest::did_you_mean;

/// Where the tasks of a trace run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// Task `r` on node `r / per_node`.
    Block {
        /// Tasks per node.
        per_node: u32,
    },
    /// Task `r` on node `r mod nodes`.
    RoundRobin {
        /// Number of nodes.
        nodes: u32,
    },
    /// As [`Places::Block`], on nodes drawn from all that no other job has, by the seed of the simulation.
    Random {
        /// Tasks per node.
        per_node: u32,
    },
    /// As captured; hosts are numbered in the order of their first tasks.
    Captured,
    /// As in a placement, which may have more ranks than the trace has tasks.
    Given(Placement),
}

impl Default for Places {
    /// One task a node.
    fn default() -> Self {
        Self::Block { per_node: 1 }
    }
}

/// An invalid placement rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("placement rule {0:?}: {meant}write {RULES}", meant = did_you_mean(.0.split(':').next().unwrap_or_default(), NAMES))]
pub struct UnknownRule(pub String);

/// The rules of [`Places`], as help and errors show them.
pub const RULES: &str = "block, block:RANKS_PER_NODE, round-robin:NODES, random, random:RANKS_PER_NODE or captured, with numbers of at least 1";
const NAMES: [&str; 4] = ["block", "round-robin", "random", "captured"];

impl FromStr for Places {
    type Err = UnknownRule;

    /// `block` or `random` (one task a node), `block:TASKS_PER_NODE`, `random:TASKS_PER_NODE`, `round-robin:NODES` or `captured`.
    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        let unknown = || UnknownRule(text.to_owned());
        if text.trim() == "captured" {
            return Ok(Self::Captured);
        }
        let (rule, number) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let digits = number.bytes().all(|b| b.is_ascii_digit());
        let number = match (rule, number) {
            ("block" | "random", "") if !text.contains(':') => 1,
            _ if !digits => return Err(unknown()),
            _ => number.parse().ok().filter(|&number| number > 0).ok_or_else(unknown)?,
        };
        match rule {
            "block" => Ok(Self::Block { per_node: number }),
            "random" => Ok(Self::Random { per_node: number }),
            "round-robin" => Ok(Self::RoundRobin { nodes: number }),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { per_node } => write!(f, "block:{per_node}"),
            Self::Random { per_node } => write!(f, "random:{per_node}"),
            Self::RoundRobin { nodes } => write!(f, "round-robin:{nodes}"),
            Self::Captured => f.write_str("captured"),
            Self::Given(placement) => write!(f, "given for {} ranks", placement.ranks.len()),
        }
    }
}

impl Places {
    /// The node of each of `tasks` tasks; `None` for [`Places::Captured`], which only the trace knows. Those of rules are numbered
    /// from 0.
    pub(crate) fn nodes(&self, tasks: u32) -> Result<Option<Vec<u32>>, UnknownRule> {
        Ok(Some(match self {
            Self::Captured => return Ok(None),
            Self::Block { per_node: 0 } | Self::Random { per_node: 0 } | Self::RoundRobin { nodes: 0 } => {
                return Err(UnknownRule(self.to_string()));
            }
            Self::Block { per_node } | Self::Random { per_node } => {
                (0..tasks).map(|task| task / per_node).collect()
            }
            Self::RoundRobin { nodes } => (0..tasks).map(|task| task % nodes).collect(),
            // A placement with too few ranks is an error of the replay.
            Self::Given(placement) => {
                placement.ranks.iter().take(tasks as usize).map(|place| place.node).collect()
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules() {
        assert_eq!("block".parse(), Ok(Places::Block { per_node: 1 }));
        assert_eq!("block:4".parse(), Ok(Places::Block { per_node: 4 }));
        assert_eq!("captured".parse(), Ok(Places::Captured));
        assert_eq!("round-robin:3".parse(), Ok(Places::RoundRobin { nodes: 3 }));
        assert_eq!("random".parse(), Ok(Places::Random { per_node: 1 }));
        assert_eq!("random:2".parse(), Ok(Places::Random { per_node: 2 }));
        for text in [
            "",
            "block:",
            "block:0",
            "random:",
            "random:0",
            "block:+1",
            "round-robin",
            "round-robin:x",
            "cyclic:3",
            "block:99999999999",
        ] {
            assert!(text.parse::<Places>().is_err(), "{text}");
        }
        let nodes = |places: Places, tasks| places.nodes(tasks).unwrap().unwrap();
        assert_eq!(nodes(Places::Block { per_node: 2 }, 5), [0, 0, 1, 1, 2]);
        assert_eq!(nodes(Places::RoundRobin { nodes: 2 }, 5), [0, 1, 0, 1, 0]);
        assert_eq!(nodes(Places::Given(Placement::round_robin(4, 3).unwrap()), 2), [0, 1]);
    }
}
