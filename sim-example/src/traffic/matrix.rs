//! A traffic matrix from a file: how much each node sends to each.
//!
//! A line is `SOURCE DESTINATION [WEIGHT]`, numbers of nodes and a weight from 0, by default 1; commas may stand between. What is behind `#` is a
//! comment. The node with the largest sum of weights sends at the full load, the others at less in proportion. A permutation is a matrix
//! with one line for each node.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::destinations::Destinations;
use super::pattern::PatternError;

/// How much each node sends to each.
#[derive(Debug, PartialEq)]
pub(super) struct Matrix {
    name: String,
    /// Destinations with their weights, by source.
    rows: BTreeMap<u32, Vec<(u32, f64)>>,
    /// The largest node, and its line.
    last: (u32, usize),
}

/// An invalid matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// The file cannot be read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// Why.
        error: String,
    },
    /// A line is invalid.
    #[error("{path}:{line}: write SOURCE DESTINATION [WEIGHT], with numbers of nodes and a weight from 0")]
    Line {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// Nobody sends.
    #[error("{path}: no node sends anything")]
    Empty {
        /// The file.
        path: String,
    },
}

/// Most bytes of a file.
const MOST_BYTES: u64 = 1 << 30;

impl Matrix {
    pub(super) fn read(path: &Path) -> Result<Self, MatrixError> {
        let name = path.display().to_string();
        let failed = |error: String| MatrixError::File { path: name.clone(), error };
        let about = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if !about.is_file() || about.len() > MOST_BYTES {
            return Err(failed("not a file of at most 1 GiB".to_owned()));
        }
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        Self::parse(name, &text)
    }

    fn parse(name: String, text: &str) -> Result<Self, MatrixError> {
        let mut rows: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
        let mut last = (0, 0);
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> =
                line.split([',', ' ', '\t', '\r']).filter(|word| !word.is_empty()).collect();
            let weight = |text: &str| text.parse().ok().filter(|weight: &f64| (0.0..=1e300).contains(weight));
            let entry = match words[..] {
                [] => continue,
                [src, dst] => src.parse().ok().zip(dst.parse().ok()).map(|ends| (ends, 1.0)),
                [src, dst, of] => src.parse().ok().zip(dst.parse().ok()).zip(weight(of)),
                _ => None,
            };
            let Some(((src, dst), weight)): Option<((u32, u32), f64)> = entry else {
                return Err(MatrixError::Line { path: name, line: number });
            };
            if src.max(dst) >= last.0 {
                last = (src.max(dst), number);
            }
            if weight > 0.0 {
                rows.entry(src).or_default().push((dst, weight));
            }
        }
        match rows.is_empty() {
            true => Err(MatrixError::Empty { path: name }),
            false => Ok(Self { name, rows, last }),
        }
    }

    pub(super) fn destinations(&self, nodes: u32) -> Result<Destinations, PatternError> {
        let (node, line) = self.last;
        if node >= nodes {
            return Err(PatternError::NoNode { what: format!("{}:{line}", self.name), node, nodes });
        }
        let mut rows = vec![Vec::new(); nodes as usize];
        let mut rates = vec![0.0; nodes as usize];
        for (&src, row) in &self.rows {
            let mut sum = 0.0;
            let cumulative = |&(dst, weight): &(u32, f64)| {
                sum += weight;
                (sum, dst)
            };
            rows[src as usize] = row.iter().map(cumulative).collect();
            rates[src as usize] = sum;
        }
        let most = rates.iter().copied().fold(0.0, f64::max);
        rates.iter_mut().for_each(|rate| *rate /= most);
        Ok(Destinations::Rows { rows, rates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Matrix, MatrixError> {
        Matrix::parse("m".to_owned(), text)
    }

    #[test]
    fn rows_have_rates() {
        let matrix = parse("# a matrix\n0 1 3\n0,2,1\n1\t0 2 # half\n3 3\n2 0 0\n").unwrap();
        let Destinations::Rows { rows, rates } = matrix.destinations(5).unwrap() else { panic!() };
        assert_eq!(rates, [1.0, 0.5, 0.0, 0.25, 0.0]);
        assert_eq!(rows[0], [(3.0, 1), (4.0, 2)]);
        assert!(rows[2].is_empty());
        let error = matrix.destinations(3).unwrap_err().to_string();
        assert_eq!(error, "m:5: there is no node 3; this network has 3 nodes, from 0");
    }

    #[test]
    fn invalid_lines_are_named() {
        for text in
            ["0 1\n0", "0 1\n0 1 2 3", "0 1\nx 1", "0 1\n0 -1", "0 1\n0 1 -2", "0 1\n0 1 nan", "0 1\n0 1 inf"]
        {
            assert_eq!(parse(text), Err(MatrixError::Line { path: "m".to_owned(), line: 2 }), "{text:?}");
        }
        assert!(parse("# nothing\n0 1 0\n").unwrap_err().to_string().contains("no node sends"));
        let error = Matrix::read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.starts_with("/dev/zero: not a file"), "{error}");
    }
}
