//! Which message sizes are measured: a list, a range, or as many as the curve needs.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Sizes in bytes. Text: `8,64,1K`, `8:1M` (doubling), `8:1M:x4`, `0:100K:+10K`, `adaptive:64:1M`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// These.
    List(Vec<u64>),
    /// Adaptive: see [`Adaptive`].
    Adaptive(Adaptive),
}

/// Sizes where the time bends: each new point is compared with the line through the two before it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adaptive {
    /// First size.
    pub from: u64,
    /// Last size.
    pub to: u64,
    /// A step is never shorter.
    pub min_stride: u64,
    /// Most sizes.
    pub max_num: usize,
    /// A point is on the line if |1 − T/T_line| is below this.
    pub max_diff: f64,
}

impl FromStr for Sizes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            |reason: &str| Error::Setting { what: "sizes", given: text.into(), reason: reason.into() };
        let number = |text: &str| parse_bytes(text).ok_or_else(|| wrong("sizes are like 8, 64K or 1M"));
        if let Some(range) = text.strip_prefix("adaptive:") {
            let (from, to) = range.split_once(':').ok_or_else(|| wrong("write adaptive:FROM:TO"))?;
            let (from, to) = (number(from)?, number(to)?);
            if from >= to {
                return Err(wrong("the first size is not below the last"));
            }
            return Ok(Sizes::Adaptive(Adaptive { from, to, min_stride: 64, max_num: 100, max_diff: 0.1 }));
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
        Ok(Sizes::List(list))
    }
}

/// A number of bytes with K, M or G, which are powers of 1024; `KiB` and `k` too.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1u64 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

fn by_factor(from: u64, to: u64, factor: u64) -> Vec<u64> {
    // From 0 the next size is 1: no factor leads out of it.
    let start = if from == 0 { 1 } else { from };
    let rest =
        std::iter::successors(Some(start), |size| size.checked_mul(factor)).take_while(|&size| size <= to);
    (from == 0).then_some(0).into_iter().chain(rest).collect()
}

impl Sizes {
    /// The sizes as they are asked for, each answered with its time.
    pub fn walk(&self) -> Walk {
        match self {
            Sizes::List(list) => Walk::List(list.clone().into_iter()),
            Sizes::Adaptive(settings) => {
                Walk::Adaptive { settings: *settings, points: Vec::new(), stride: settings.min_stride }
            }
        }
    }

    /// The largest that will be asked for.
    pub fn largest(&self) -> u64 {
        match self {
            Sizes::List(list) => list.iter().copied().max().unwrap_or(0),
            Sizes::Adaptive(settings) => settings.to,
        }
    }
}

/// A walk through sizes.
#[derive(Clone, Debug)]
pub enum Walk {
    /// Through a list.
    List(std::vec::IntoIter<u64>),
    /// As the times say.
    Adaptive {
        /// The settings.
        settings: Adaptive,
        /// Sizes accepted, with their times.
        points: Vec<(u64, f64)>,
        /// Bytes to the next one.
        stride: u64,
    },
}

impl Walk {
    /// The next size; `last` is the one measured before and its time.
    pub fn next(&mut self, last: Option<(u64, f64)>) -> Option<u64> {
        match self {
            Walk::List(list) => list.next(),
            Walk::Adaptive { settings, points, stride } => {
                if let Some(point) = last {
                    let on_line = match points[..] {
                        [.., (x0, t0), (x1, t1)] if x1 > x0 => {
                            let slope = (t1 - t0) / (x1 - x0) as f64;
                            let line = t1 + slope * (point.0 - x1) as f64;
                            (1.0 - point.1 / line).abs() < settings.max_diff
                        }
                        _ => true,
                    };
                    if on_line || *stride <= settings.min_stride {
                        if on_line && points.len() >= 2 {
                            *stride = stride.saturating_mul(2);
                        }
                        points.push(point);
                    } else {
                        // Back to the last good point, with half the step.
                        *stride = (*stride / 2).max(settings.min_stride);
                    }
                }
                let at = points.last().map(|(size, _)| *size);
                match at {
                    None => Some(settings.from),
                    Some(at) if at >= settings.to || points.len() >= settings.max_num => None,
                    Some(at) => Some(at.saturating_add(*stride).min(settings.to)),
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
            Ok(Sizes::List(list)) => list,
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
            assert!(text.parse::<Sizes>().is_err(), "{text}");
        }
    }

    #[test]
    fn adaptive_sizes_gather_where_the_time_bends() {
        let time =
            |size: u64| if size < 65_536 { 1000.0 + size as f64 } else { 90_000.0 + 2.0 * size as f64 };
        let Ok(sizes) = "adaptive:64:1M".parse::<Sizes>() else { panic!() };
        let mut walk = sizes.walk();
        let (mut last, mut measured) = (None, Vec::new());
        while let Some(size) = walk.next(last) {
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
        let Ok(sizes) = "adaptive:64:1M".parse::<Sizes>() else { panic!() };
        let mut walk = sizes.walk();
        let (mut last, mut count) = (None, 0);
        while let Some(size) = walk.next(last) {
            count += 1;
            last = Some((size, 500.0 + 3.0 * size as f64));
        }
        assert!(count <= 18, "{count}");
    }
}
