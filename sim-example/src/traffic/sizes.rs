//! Sizes of messages: one, or a distribution.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use vef_format::nearest::did_you_mean;
use vef_format::units::Bytes;

use crate::quantity::parse_bytes;
use crate::random::Random;

/// The sizes of messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All have this size.
    One(Bytes),
    /// Drawn from a distribution.
    Of(Arc<Distribution>),
}

/// A distribution of sizes: points of its cumulative distribution function, straight lines between.
#[derive(Debug, PartialEq)]
pub struct Distribution {
    /// In the form that is parsed.
    name: String,
    /// Sizes in bytes, and shares of messages up to that size; both ascend, the last share is 1.
    points: Vec<(f64, f64)>,
}

/// A distribution that has been published.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// As it is written in place of a size.
    pub name: &'static str,
    /// What it is of, and its source.
    pub help: &'static str,
    /// Sizes in bytes, and percentages of messages up to that size.
    points: &'static [(f64, f64)],
}

/// All that are known by name.
#[rustfmt::skip]
pub const PUBLISHED: [Published; 2] = [
    // M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, as tabulated with Y. Li et al., "HPCC", SIGCOMM 2019.
    Published { name: "web-search", help: "flows of a web search cluster (DCTCP, SIGCOMM 2010)", points: &[
        (0.0, 0.0), (10_000.0, 15.0), (20_000.0, 20.0), (30_000.0, 30.0), (50_000.0, 40.0), (80_000.0, 53.0), (200_000.0, 60.0),
        (1_000_000.0, 70.0), (2_000_000.0, 80.0), (5_000_000.0, 90.0), (10_000_000.0, 97.0), (30_000_000.0, 100.0),
    ] },
    // A. Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, as tabulated with HPCC.
    Published { name: "hadoop", help: "flows of a Hadoop cluster (Facebook, SIGCOMM 2015)", points: &[
        (0.0, 0.0), (100.0, 1.0), (200.0, 2.0), (300.0, 5.0), (350.0, 15.0), (400.0, 20.0), (500.0, 30.0), (600.0, 40.0), (700.0, 50.0),
        (1000.0, 60.0), (2000.0, 67.0), (7000.0, 70.0), (30_000.0, 72.0), (50_000.0, 82.0), (80_000.0, 87.0), (120_000.0, 90.0),
        (300_000.0, 95.0), (1_000_000.0, 97.5), (2_000_000.0, 99.0), (10_000_000.0, 100.0),
    ] },
];

fn published() -> [&'static str; PUBLISHED.len()] {
    PUBLISHED.map(|published| published.name)
}

/// Text that is not a size or a distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizesError {
    /// Neither.
    #[error("{}write a size such as 2KiB, {names}, or file:DISTRIBUTION", did_you_mean(.0, published()), names = published().join(", "))]
    Unknown(String),
    /// The file cannot be read.
    #[error("{0}: {1}")]
    File(String, String),
    /// A line is invalid.
    #[error(
        "{path}:{line}: write BYTES SHARE, the share of messages up to that size; both ascend, the last share is 1 or 100"
    )]
    Line {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
    },
}

impl FromStr for Sizes {
    type Err = SizesError;

    fn from_str(text: &str) -> Result<Self, SizesError> {
        if let Some(Published { name, points, .. }) = PUBLISHED.into_iter().find(|known| known.name == text) {
            let points = points.iter().map(|&(bytes, percent)| (bytes, percent / 100.0)).collect();
            return Ok(Self::Of(Arc::new(Distribution { name: name.to_owned(), points })));
        }
        match text.strip_prefix("file:") {
            Some(path) => Ok(Self::Of(Arc::new(Distribution::read(Path::new(path))?))),
            None => parse_bytes(text).map(Self::One).map_err(|_| SizesError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(bytes) => write!(f, "{}B", bytes.0),
            Self::Of(distribution) => f.write_str(&distribution.name),
        }
    }
}

impl Sizes {
    pub(super) fn draw(&self, random: &mut Random) -> Bytes {
        match self {
            Self::One(bytes) => *bytes,
            Self::Of(distribution) => distribution.at(random.unit()),
        }
    }

    /// The mean of a function of the size.
    pub(super) fn mean(&self, of: impl Fn(Bytes) -> f64) -> f64 {
        match self {
            Self::One(bytes) => of(*bytes),
            Self::Of(distribution) => distribution.mean(of),
        }
    }
}

impl Distribution {
    fn read(path: &Path) -> Result<Self, SizesError> {
        let name = path.display().to_string();
        let failed = |error: &dyn fmt::Display| SizesError::File(name.clone(), error.to_string());
        let about = fs::metadata(path).map_err(|error| failed(&error))?;
        if !about.is_file() || about.len() > 1 << 24 {
            return Err(failed(&"not a file of at most 16 MiB"));
        }
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        Self::parse(&name, &text)
    }

    fn parse(path: &str, text: &str) -> Result<Self, SizesError> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let wrong = |line| SizesError::Line { path: path.to_owned(), line };
        let mut last = 0;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> =
                line.split([',', ' ', '\t', '\r']).filter(|word| !word.is_empty()).collect();
            let point = match words[..] {
                [] => continue,
                [bytes, share] => bytes.parse().ok().zip(share.parse().ok()),
                _ => None,
            };
            let (bytes, share): (f64, f64) = point.ok_or_else(|| wrong(number))?;
            let (from, up_to) = points.last().copied().unwrap_or_default();
            if !(from..=1e15).contains(&bytes) || !(up_to..=100.0).contains(&share) {
                return Err(wrong(number));
            }
            points.push((bytes, share));
            last = number;
        }
        let whole = points.last().map_or(0.0, |point| point.1);
        if whole != 1.0 && whole != 100.0 {
            return Err(wrong(last.max(1)));
        }
        points.iter_mut().for_each(|point| point.1 /= whole);
        Ok(Self { name: format!("file:{path}"), points })
    }

    /// The size below which a share of the messages lies.
    fn at(&self, share: f64) -> Bytes {
        let behind = self.points.partition_point(|point| point.1 < share).min(self.points.len() - 1);
        let (to, high) = self.points[behind];
        let bytes = match behind.checked_sub(1).map(|before| self.points[before]) {
            Some((from, low)) if high > low => from + (to - from) * (share - low) / (high - low),
            _ => to,
        };
        Bytes(bytes.round().max(1.0) as u64)
    }

    /// By parts of which the function is taken in the middle.
    fn mean(&self, of: impl Fn(Bytes) -> f64) -> f64 {
        const PARTS: u32 = 1000;
        let mut before = 0.0;
        let mut sum = 0.0;
        for &(_, share) in &self.points {
            let part = |n: u32| before + (share - before) * (f64::from(n) + 0.5) / f64::from(PARTS);
            if share > before {
                let values = (0..PARTS).map(|n| of(self.at(part(n)))).sum::<f64>();
                sum += (share - before) * values / f64::from(PARTS);
            }
            before = share;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Sizes {
        text.parse().unwrap()
    }

    #[test]
    fn draws_have_the_mean_and_the_quantiles() {
        // By hand: the sum of shares times the middles between points.
        let middle = |points: &[(f64, f64)]| -> f64 {
            points
                .windows(2)
                .map(|ends| (ends[1].1 - ends[0].1) / 100.0 * (ends[0].0 + ends[1].0) / 2.0)
                .sum()
        };
        for Published { name, points, .. } in PUBLISHED {
            let (of, expected) = (sizes(name), middle(points));
            assert!((of.mean(|bytes| bytes.0 as f64) / expected - 1.0).abs() < 1e-3, "{name}: {expected}");
            let mut random = Random::new(1, 1);
            let drawn: Vec<u64> = (0..200_000).map(|_| of.draw(&mut random).0).collect();
            let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
            assert!((mean / expected - 1.0).abs() < 0.02, "{name}: {mean}, not {expected}");
            for &(bytes, percent) in points {
                let below =
                    drawn.iter().filter(|&&size| size as f64 <= bytes).count() as f64 / drawn.len() as f64;
                assert!((below - percent / 100.0).abs() < 0.005, "{name} {bytes}: {below}");
            }
        }
        // The means that papers give: 1.6 MB and 0.12 MB.
        assert!((1.5e6..1.8e6).contains(&middle(PUBLISHED[0].points)));
        assert!((0.1e6..0.14e6).contains(&middle(PUBLISHED[1].points)));
    }

    #[test]
    fn files_have_steps_and_slopes() {
        let two = Distribution::parse("d", "64 50 # half\n65536 50\n65536 100\n").unwrap();
        assert_eq!([0.1, 0.5, 0.500001, 1.0].map(|share| two.at(share).0), [64, 64, 65536, 65536]);
        assert!((two.mean(|bytes| bytes.0 as f64) - 32_800.0).abs() < 1.0);
        let slope = Distribution::parse("d", "0,0\n1000,1\n").unwrap();
        assert_eq!(slope.at(0.25).0, 250);
        for (text, line) in [
            ("", 1),
            ("1 0.5", 1),
            ("5 10\n4 100", 2),
            ("5 10\n6 5", 2),
            ("5", 1),
            ("5 x", 1),
            ("5 101", 1),
            ("nan 1", 1),
        ] {
            let error = Distribution::parse("d", text).unwrap_err();
            assert_eq!(error, SizesError::Line { path: "d".to_owned(), line }, "{text:?}");
        }
        assert_eq!(sizes("2KiB").to_string(), "2048B");
        assert_eq!(sizes("web-search").to_string(), "web-search");
        assert!("big".parse::<Sizes>().unwrap_err().to_string().contains("web-search, hadoop"));
    }
}
