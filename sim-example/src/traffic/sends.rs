//! Where nodes send: patterns over one another, hotspots, and matrices from files.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use vef_format::nearest::did_you_mean;

use super::destinations::Destinations;
use super::matrix::{Matrix, MatrixError};
use super::pattern::{Pattern, PatternError, names};
use crate::topology::Fabric;

/// Where nodes send.
#[derive(Clone, Debug, PartialEq)]
pub struct Sends(Vec<Part>);

/// One of the patterns over one another.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    /// Its share of the messages; they add up to 1.
    share: f64,
    to: To,
}

#[derive(Clone, Debug, PartialEq)]
enum To {
    Pattern(Pattern),
    /// Nodes with the shares of messages that they get; the rest goes to any node with equal probability.
    Hotspot(Vec<(u32, f64)>),
    Matrix(PathBuf, Arc<Matrix>),
}

/// Text that is not a form of [`Sends`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendsError {
    /// The pattern is unknown.
    #[error(
        "unknown pattern; {}write {}, hotspot:NODE=SHARE,… or file:MATRIX, or several as 0.8*uniform+0.2*incast",
        did_you_mean(text, names()),
        names().join(", ")
    )]
    Unknown {
        /// The text.
        text: String,
    },
    /// Shares are not numbers from 0, or their sum is not possible.
    #[error("{text:?}: {problem}")]
    Shares {
        /// The text.
        text: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The matrix is invalid.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

impl From<Pattern> for Sends {
    fn from(pattern: Pattern) -> Self {
        Self(vec![Part { share: 1.0, to: To::Pattern(pattern) }])
    }
}

impl Sends {
    /// Whether all nodes send at the same rate.
    pub fn rates_are_equal(&self) -> bool {
        self.0.iter().all(|part| match part.to {
            To::Pattern(_) | To::Hotspot(_) => true,
            To::Matrix(..) => false,
        })
    }
}

impl Default for Sends {
    fn default() -> Self {
        Pattern::default().into()
    }
}

/// A share above 0 and up to 1.
fn share(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|share| *share > 0.0 && *share <= 1.0)
}

/// Sums of shares that are at most this more than 1 are 1: 0.7 + 0.2 + 0.1 is not, in floating point.
const ROUNDING: f64 = 1e-9;

impl FromStr for To {
    type Err = SendsError;

    fn from_str(text: &str) -> Result<Self, SendsError> {
        if let Some(path) = text.strip_prefix("file:") {
            return Ok(Self::Matrix(path.into(), Arc::new(Matrix::read(Path::new(path))?)));
        }
        let Some(hot) = text.strip_prefix("hotspot:") else {
            let unknown = |_| SendsError::Unknown { text: text.to_owned() };
            return text.parse().map(Self::Pattern).map_err(unknown);
        };
        let wrong = |problem| SendsError::Shares { text: text.to_owned(), problem };
        let node = |item: &str| {
            let (node, of) = item.split_once('=')?;
            Some((node.trim().parse().ok()?, share(of)?))
        };
        let nodes: Option<Vec<(u32, f64)>> = hot.split(',').map(node).collect();
        let nodes =
            nodes.ok_or_else(|| wrong("write hotspot:NODE=SHARE,…, with shares above 0 and up to 1"))?;
        let mut before = HashSet::new();
        if !nodes.iter().all(|(node, _)| before.insert(*node)) {
            return Err(wrong("a node is named twice"));
        }
        match nodes.iter().map(|(_, share)| share).sum::<f64>() > 1.0 + ROUNDING {
            true => Err(wrong("the shares of the nodes add up to more than 1")),
            false => Ok(Self::Hotspot(nodes)),
        }
    }
}

impl FromStr for Sends {
    type Err = SendsError;

    fn from_str(text: &str) -> Result<Self, SendsError> {
        let part = |item: &str| {
            let (of, to) = item.split_once('*')?;
            Some((share(of)?, to.trim().to_owned()))
        };
        let parts: Option<Vec<(f64, String)>> = text.split('+').map(part).collect();
        let Some(parts) = parts else {
            return Ok(Self(vec![Part { share: 1.0, to: text.parse()? }]));
        };
        if (parts.iter().map(|(share, _)| share).sum::<f64>() - 1.0).abs() > ROUNDING {
            let problem = "the shares of the patterns must add up to 1";
            return Err(SendsError::Shares { text: text.to_owned(), problem });
        }
        let part = |(share, to): (f64, String)| Ok(Part { share, to: to.parse()? });
        Ok(Self(parts.into_iter().map(part).collect::<Result<_, SendsError>>()?))
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => pattern.fmt(f),
            Self::Hotspot(nodes) => {
                let nodes: Vec<String> =
                    nodes.iter().map(|(node, share)| format!("{node}={share}")).collect();
                write!(f, "hotspot:{}", nodes.join(","))
            }
            Self::Matrix(path, _) => write!(f, "file:{}", path.display()),
        }
    }
}

impl fmt::Display for Sends {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Part { to, .. }] = &self.0[..] {
            return to.fmt(f);
        }
        let parts: Vec<String> = self.0.iter().map(|Part { share, to }| format!("{share}*{to}")).collect();
        f.write_str(&parts.join("+"))
    }
}

impl Sends {
    /// The destinations in a network; `seed` determines a permutation.
    pub(crate) fn destinations(&self, network: &Fabric, seed: u64) -> Result<Destinations, PatternError> {
        let nodes = network.nodes();
        let of = |Part { share, to }: &Part| {
            let to = match to {
                To::Pattern(pattern) => pattern.destinations(network, seed)?,
                To::Matrix(_, matrix) => matrix.destinations(nodes)?,
                To::Hotspot(hot) => match hot.iter().find(|(node, _)| *node >= nodes) {
                    Some(&(node, _)) => {
                        return Err(PatternError::NoNode { what: self.to_string(), node, nodes });
                    }
                    None => Destinations::Hot { hot: hot.clone(), nodes },
                },
            };
            Ok((*share, to))
        };
        let mut parts = self.0.iter().map(of).collect::<Result<Vec<_>, _>>()?;
        Ok(match parts.len() {
            1 => parts.remove(0).1,
            _ => Destinations::Mixed(parts),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::topology::tests::build;

    #[test]
    fn forms_read_back() {
        for text in
            ["uniform", "hotspot:0=0.25,7=0.5", "0.75*uniform+0.25*hotspot:3=1", "0.5*tornado+0.5*neighbor"]
        {
            assert_eq!(text.parse::<Sends>().unwrap().to_string(), text);
        }
        for (text, problem) in [
            ("random", "write uniform, transpose"),
            ("hotspot:", "write hotspot:NODE=SHARE"),
            ("hotspot:x=0.5", "write hotspot:NODE=SHARE"),
            ("hotspot:1=0", "write hotspot:NODE=SHARE"),
            ("hotspot:1=0.6,2=0.6", "add up to more than 1"),
            ("hotspot:1=0.1,2=0.2,1=0.1", "a node is named twice"),
            ("0.5*uniform+0.4*incast", "must add up to 1"),
            ("0.5*uniform+0.5*", "unknown pattern"),
            ("file:/no/such/matrix", "/no/such/matrix: "),
        ] {
            let error = text.parse::<Sends>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let far: Sends = "hotspot:4=0.5".parse().unwrap();
        let error = far.destinations(&build("switch:4"), 1).unwrap_err().to_string();
        assert_eq!(error, "hotspot:4=0.5: there is no node 4; this network has 4 nodes, from 0");
    }

    /// Nodes get the shares that are written.
    #[test]
    fn shares_are_drawn() {
        let mut random = Random::new(1, 1);
        let mut shares = |text: &str| {
            let to = text.parse::<Sends>().unwrap().destinations(&build("switch:8"), 1).unwrap();
            let mut counts = [0.0; 8];
            (0..80_000).for_each(|_| counts[to.draw(2, &mut random) as usize] += 1.0 / 80_000.0);
            counts
        };
        let close = |found: [f64; 8], expected: [f64; 8]| {
            assert!(
                found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.006),
                "{found:?}, not {expected:?}"
            );
        };
        close(shares("hotspot:0=0.2,5=0.4"), [0.25, 0.05, 0.05, 0.05, 0.05, 0.45, 0.05, 0.05]);
        close(shares("0.5*incast+0.3*neighbor+0.2*uniform"), {
            let mut expected = [0.025; 8];
            (expected[0], expected[3]) = (0.525, 0.325);
            expected
        });
    }
}
