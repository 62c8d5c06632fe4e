//! Factors of computing times, by rank.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use vef_format::units::Count;

/// Largest factor.
const MOST: f64 = 1e6;

/// Factors by which the computing times of tasks are multiplied.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputeScale {
    /// Of tasks that are not in `ranks`.
    others: f64,
    /// Of ranges of tasks; a later range takes precedence.
    ranks: Vec<(RangeInclusive<u32>, f64)>,
}

/// Invalid factors.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// The text is not a list of factors.
    #[error(
        "compute scale {item:?}: write FACTOR, or a list of RANKS=FACTOR such as 0-3=0.5,7=2, in which a FACTOR alone is that \
         of all other ranks; factors are from 0 to 1000000"
    )]
    Text {
        /// The line of the item, from 1 on.
        line: usize,
        /// The item, shortened.
        item: String,
    },
    /// A rank that the trace does not have.
    #[error("compute scale {scale}: the trace has {}, no rank {rank}", Count(*.tasks, "task"))]
    Rank {
        /// The factors.
        scale: String,
        /// The rank.
        rank: u32,
        /// Tasks of the trace.
        tasks: u32,
    },
}

impl Default for ComputeScale {
    fn default() -> Self {
        Self::all(1.0)
    }
}

impl ComputeScale {
    /// One factor for all tasks.
    pub fn all(factor: f64) -> Self {
        Self { others: factor, ranks: Vec::new() }
    }

    /// By rank, for [`replay::Job::time_factors`].
    pub(crate) fn factors(&self, tasks: u32) -> Result<Vec<f64>, ScaleError> {
        let last = self.ranks.iter().map(|(ranks, _)| *ranks.end()).max();
        if let Some(rank) = last.filter(|&rank| rank >= tasks) {
            return Err(ScaleError::Rank { scale: self.to_string(), rank, tasks });
        }
        // The last factor is that of the ranks behind.
        let mut factors = vec![self.others; last.map_or(1, |last| last as usize + 2)];
        for (ranks, factor) in &self.ranks {
            factors[*ranks.start() as usize..=*ranks.end() as usize].fill(*factor);
        }
        Ok(factors)
    }
}

impl FromStr for ComputeScale {
    type Err = ScaleError;

    /// Items are separated by commas or lines, whose rest from `#` on is a comment.
    fn from_str(text: &str) -> Result<Self, ScaleError> {
        const SHOWN: usize = 40;
        let wrong = |line, item: &str| ScaleError::Text { line, item: item.chars().take(SHOWN).collect() };
        let lines =
            (1..).zip(text.lines()).map(|(line, text)| (line, text.split('#').next().unwrap_or_default()));
        let items = lines.flat_map(|(line, text)| text.split(',').map(move |item| (line, item.trim())));
        let items = items.filter(|(_, item)| !item.is_empty());
        let (mut others, mut ranks) = (None, Vec::new());
        let mut add = |item: &str| {
            let (of, factor) = item.split_once('=').map_or((None, item), |(of, factor)| (Some(of), factor));
            let factor = factor.trim().parse().ok().filter(|factor| (0.0..=MOST).contains(factor))?;
            match of {
                None => others.replace(factor).is_none().then_some(()),
                Some(of) => {
                    let (first, last) = of.split_once('-').unwrap_or((of, of));
                    let rank = |text: &str| text.trim().parse::<u32>().ok();
                    let range = rank(first)?..=rank(last)?;
                    (!range.is_empty()).then(|| ranks.push((range, factor)))
                }
            }
        };
        let mut count = 0;
        for (line, item) in items {
            add(item).ok_or_else(|| wrong(line, item))?;
            count += 1;
        }
        match count {
            0 => Err(wrong(1, text.trim())),
            _ => Ok(Self { others: others.unwrap_or(1.0), ranks }),
        }
    }
}

impl fmt::Display for ComputeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ranks.is_empty() || self.others != 1.0 {
            write!(f, "{}", self.others)?;
        }
        for (number, (ranks, factor)) in self.ranks.iter().enumerate() {
            let comma = if number > 0 || self.others != 1.0 { "," } else { "" };
            match ranks.start() == ranks.end() {
                true => write!(f, "{comma}{}={factor}", ranks.start())?,
                false => write!(f, "{comma}{}-{}={factor}", ranks.start(), ranks.end())?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_by_rank() {
        let factors = |text: &str| text.parse::<ComputeScale>().unwrap().factors(8).unwrap();
        assert_eq!(factors("0.5"), [0.5]);
        assert_eq!(factors("0"), [0.0]);
        assert_eq!(factors("1-2=0.5, 4=2"), [1.0, 0.5, 0.5, 1.0, 2.0, 1.0]);
        assert_eq!(factors("0-7=3,1.5,2=1"), [3.0, 3.0, 1.0, 3.0, 3.0, 3.0, 3.0, 3.0, 1.5]);
        assert_eq!(factors("# slow node\n0-1=1.25 # two ranks\n\n0.9\n"), [1.25, 1.25, 0.9]);
    }

    #[test]
    fn wrong_factors_are_refused() {
        for text in [
            "",
            "# nothing",
            "x",
            "-1",
            "nan",
            "inf",
            "1e7",
            "1,2",
            "3=",
            "=2",
            "5-3=1",
            "0-1",
            "a=1",
            "+1=x",
        ] {
            assert!(matches!(text.parse::<ComputeScale>(), Err(ScaleError::Text { .. })), "{text}");
        }
        let second = "0=1 # slow\n\n1=2,1=fast\n".parse::<ComputeScale>().unwrap_err();
        assert_eq!(second, ScaleError::Text { line: 3, item: "1=fast".into() });
        let scale: ComputeScale = "0-8=2".parse().unwrap();
        let refused = scale.factors(8).unwrap_err();
        assert_eq!(refused, ScaleError::Rank { scale: "0-8=2".into(), rank: 8, tasks: 8 });
        let scale: ComputeScale = "0-4294967295=2".parse().unwrap();
        assert!(scale.factors(8).is_err());
    }

    #[test]
    fn what_is_shown_can_be_given_again() {
        for text in ["1", "0.5", "0-3=0.5,7=2", "1.5,0=2"] {
            assert_eq!(text.parse::<ComputeScale>().unwrap().to_string(), text);
        }
    }
}
