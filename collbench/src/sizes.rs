//! Which message sizes are measured: a list, a range, or as many as the curve needs.

use std::str::FromStr;

use sim_example::quantity::parse_bytes;

use crate::error::{Error, Result};

/// Sizes in bytes. Text: `8,64,1K`, `8:1M` (doubling), `8:1M:x4`, `0:100K:+10K`, `adaptive:64:1M`.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageSizes {
    /// These.
    List(Vec<u64>),
    /// From a first to a last size, more where the time bends: see [`SizeSteps::next`].
    Adaptive {
        /// First size.
        from: u64,
        /// Last size.
        to: u64,
    },
}

/// An adaptive step is never shorter.
const SHORTEST_STEP: u64 = 64;
/// Most adaptive sizes.
const MOST_SIZES: usize = 100;
/// A point is on the line if |1 − T/T_line| is below this.
const MOST_DIFFERENCE: f64 = 0.1;

impl FromStr for MessageSizes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |reason: &str| Error::Invalid(reason.to_owned());
        let number = |text: &str| {
            parse_bytes(text).map(|bytes| bytes.0).map_err(|_| wrong("sizes are like 8, 64K or 1M"))
        };
        if let Some(range) = text.strip_prefix("adaptive:") {
            let (from, to) = range.split_once(':').ok_or_else(|| wrong("write adaptive:FROM:TO"))?;
            let (from, to) = (number(from)?, number(to)?);
            if from >= to {
                return Err(wrong("the first size is not below the last"));
            }
            return Ok(MessageSizes::Adaptive { from, to });
        }
        let parts: Vec<&str> = text.split(':').collect();
        let list = match parts[..] {
            [list] => list.split(',').map(number).collect::<Result<Vec<_>>>()?,
            [from, to] => by_factor(number(from)?, number(to)?, 2),
            [from, to, step] => {
                let (from, to) = (number(from)?, number(to)?);
                match (step.strip_prefix('x'), step.strip_prefix('+')) {
                    (Some(factor), _) => match factor.parse() {
                        Ok(factor) if factor >= 2 => by_factor(from, to, factor),
                        _ => return Err(wrong("a factor is a whole number from 2 on")),
                    },
                    (_, Some(stride)) => match number(stride)? {
                        0 => return Err(wrong("a stride of 0 goes nowhere")),
                        stride if (to.saturating_sub(from)) / stride > 100_000 => {
                            return Err(wrong("more than 100000 sizes"));
                        }
                        stride => (from..=to).step_by(stride as usize).collect(),
                    },
                    _ => return Err(wrong("a step is xFACTOR or +STRIDE")),
                }
            }
            _ => return Err(wrong("write a list, FROM:TO, FROM:TO:xFACTOR or FROM:TO:+STRIDE")),
        };
        if list.is_empty() {
            return Err(wrong("no size lies between these"));
        }
        Ok(MessageSizes::List(list))
    }
}

fn by_factor(from: u64, to: u64, factor: u64) -> Vec<u64> {
    // From 0 the next size is 1: no factor leads out of it.
    let start = if from == 0 { 1 } else { from };
    let rest =
        std::iter::successors(Some(start), |size| size.checked_mul(factor)).take_while(|&size| size <= to);
    (from == 0).then_some(0).into_iter().chain(rest).collect()
}

impl MessageSizes {
    /// The sizes as they are asked for, each answered with its time.
    pub fn steps(&self) -> SizeSteps {
        match self {
            MessageSizes::List(list) => SizeSteps::List(list.clone().into_iter()),
            MessageSizes::Adaptive { from, to } => {
                SizeSteps::Adaptive { from: *from, to: *to, points: Vec::new(), stride: SHORTEST_STEP }
            }
        }
    }
}

/// The sizes that are still to be measured.
#[derive(Clone, Debug)]
pub enum SizeSteps {
    /// Of a list.
    List(std::vec::IntoIter<u64>),
    /// As the times say.
    Adaptive {
        /// First size.
        from: u64,
        /// Last size.
        to: u64,
        /// Sizes accepted, with their times.
        points: Vec<(u64, f64)>,
        /// Bytes to the next one.
        stride: u64,
    },
}

impl SizeSteps {
    /// The next size; `last` is the one measured before and its time. An adaptive step doubles while each point
    /// is on the line through the two points before it, else it is taken again, half as long.
    pub fn next(&mut self, last: Option<(u64, f64)>) -> Option<u64> {
        match self {
            SizeSteps::List(list) => list.next(),
            SizeSteps::Adaptive { from, to, points, stride } => {
                if let Some(point) = last {
                    let on_line = match points[..] {
                        [.., (x0, t0), (x1, t1)] if x1 > x0 => {
                            let slope = (t1 - t0) / (x1 - x0) as f64;
                            let line = t1 + slope * (point.0 - x1) as f64;
                            (1.0 - point.1 / line).abs() < MOST_DIFFERENCE
                        }
                        _ => true,
                    };
                    if on_line || *stride <= SHORTEST_STEP {
                        if on_line && points.len() >= 2 {
                            *stride = stride.saturating_mul(2);
                        }
                        points.push(point);
                    } else {
                        *stride = (*stride / 2).max(SHORTEST_STEP);
                    }
                }
                match points.last() {
                    None => Some(*from),
                    Some((at, _)) if at >= to || points.len() >= MOST_SIZES => None,
                    Some((at, _)) => Some(at.saturating_add(*stride).min(*to)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<u64> {
        match text.parse() {
            Ok(MessageSizes::List(list)) => list,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn texts() {
        assert_eq!(list("8,64,1K"), [8, 64, 1024]);
        assert_eq!(list("8:64"), [8, 16, 32, 64]);
        assert_eq!(list("0:16:x4"), [0, 1, 4, 16]);
        assert_eq!(list("0:30:+10"), [0, 10, 20, 30]);
        for text in [
            "",
            "8:",
            "8:64:4",
            "8:64:x1",
            "0:9:+0",
            "64:8",
            "-1",
            "8:1Z",
            "1:2:3:4",
            "adaptive:8:8",
            "0:99G:+1",
        ] {
            assert!(text.parse::<MessageSizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn adaptive_sizes_gather_where_the_time_bends() {
        let time =
            |size: u64| if size < 65_536 { 1000.0 + size as f64 } else { 90_000.0 + 2.0 * size as f64 };
        let Ok(sizes) = "adaptive:64:1M".parse::<MessageSizes>() else { panic!() };
        let mut steps = sizes.steps();
        let (mut last, mut measured) = (None, Vec::new());
        while let Some(size) = steps.next(last) {
            assert!(measured.len() < 1000, "it ends");
            measured.push(size);
            last = Some((size, time(size)));
        }
        assert_eq!((measured[0], measured[measured.len() - 1]), (64, 1 << 20));
        let near = measured.iter().filter(|&&size| size.abs_diff(65_536) <= 4096).count();
        assert!(near >= 5, "{near} of {measured:?}");
        assert!(measured.len() <= 60, "{}", measured.len());
    }

    #[test]
    fn a_straight_line_needs_few_sizes() {
        let Ok(sizes) = "adaptive:64:1M".parse::<MessageSizes>() else { panic!() };
        let mut steps = sizes.steps();
        let (mut last, mut count) = (None, 0);
        while let Some(size) = steps.next(last) {
            count += 1;
            last = Some((size, 500.0 + 3.0 * size as f64));
        }
        assert!(count <= 18, "{count}");
    }
}
