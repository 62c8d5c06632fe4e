//! The text forms of topologies.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::error::TopologyProblem;
use super::interface::Topology;

/// A topology as given by the user.
#[derive(Clone, Debug, Default)]
pub enum TopologySpec {
    /// One switch with as many nodes as the placement needs.
    #[default]
    Auto,
    /// A network from a file, which is read when it is built.
    File(PathBuf),
    /// Any other topology.
    Known(Arc<dyn Topology>),
}

impl<T: Topology + 'static> From<T> for TopologySpec {
    fn from(topology: T) -> Self {
        Self::Known(Arc::new(topology))
    }
}

impl fmt::Display for TopologySpec {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Known(topology) => f.write_str(&topology.name()),
        }
    }
}

/// A text form of a topology: `KIND:REST`.
#[derive(Debug)]
pub struct Form {
    /// The word before the colon.
    pub kind: &'static str,
    /// The form, or several.
    pub form: &'static str,
    /// An example.
    pub example: &'static str,
    /// The network that it stands for.
    pub help: &'static str,
    /// Parses the text behind the colon; `None` if it does not have the form.
    pub(super) parse: fn(&str) -> Option<Parsed>,
}

/// A topology, or why its numbers are invalid.
pub(super) type Parsed = Result<TopologySpec, TopologyProblem>;

/// The numbers of a list; `None` if any is invalid.
pub(super) fn numbers(text: &str, separator: char) -> Option<Vec<u32>> {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    text.split(separator).map(digits).collect()
}

/// Exactly so many numbers, separated by `x`.
pub(super) fn exactly<const N: usize>(text: &str) -> Option<[u32; N]> {
    numbers(text, 'x')?.try_into().ok()
}

/// The numbers with a separator between.
pub(super) fn joined(numbers: &[u32], separator: &str) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
}

/// Parses `AxBx…[:NODES]`: the sizes of a grid, and nodes per router, by default 1.
pub(super) fn grid(text: &str) -> Option<(Vec<u32>, u32)> {
    let (sizes, nodes) = text.split_once(':').unwrap_or((text, "1"));
    let [nodes] = exactly(nodes)?;
    Some((numbers(sizes, 'x')?, nodes))
}

/// The name of a grid, as [`grid`] parses it.
pub(super) fn grid_name(kind: &str, sizes: &[u32], nodes: u32) -> String {
    let behind = if nodes == 1 { String::new() } else { format!(":{nodes}") };
    format!("{kind}:{}{behind}", joined(sizes, "x"))
}
