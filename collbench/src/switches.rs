//! Sizes at which the time of an operation bends or jumps: there an MPI takes another algorithm or protocol.
//!
//! Times by size are divided into as few straight pieces as describe them, by dynamic programming. Two pieces meet where the
//! size changes from one to the other; what the noise explains is no such place.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::{divide, line};

/// A change between the size before a row's and the row's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Switch {
    /// The largest measured size before the change.
    pub after_bytes: u64,
    /// Time at the row's size over what the line of the smaller sizes gives there.
    pub ratio: f64,
    /// Slopes of the lines before and behind, ns per byte.
    pub ns_per_byte: [f64; 2],
}

/// The time of an operation at a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedSize {
    /// The size.
    pub bytes: u64,
    /// The time, ns.
    pub ns: f64,
    /// Half of its interval, ns.
    pub half_width: f64,
}

/// Fewest sizes of a piece: fewer cannot tell a piece from a disturbed measurement.
const FEWEST: usize = 3;
/// Least uncertainty of a time, as a share: sizes are measured one after the other, which their intervals do not cover.
const LEAST_NOISE: f64 = 0.03;
/// Price of a further piece, in squared residuals over noise.
const PRICE: f64 = 20.0;

/// A straight piece of points `from..to`.
#[derive(Clone, Copy)]
struct CurvePiece {
    from: usize,
    base: f64,
    slope: f64,
}

impl Switch {
    /// The changes in the times of one operation, in ascending order of sizes: for each the number of the point behind it. Needs
    /// at least three sizes on each side of a change.
    pub fn find(points: &[TimedSize]) -> Vec<(usize, Self)> {
        let pieces = pieces(points);
        let meet = |two: &[CurvePiece]| {
            let (old, new) = (two[0], two[1]);
            let at = points[new.from].bytes as f64;
            let time = |piece: CurvePiece| piece.base + piece.slope * at;
            let switch = Self {
                after_bytes: points[new.from - 1].bytes,
                ratio: time(new) / time(old),
                ns_per_byte: [old.slope, new.slope],
            };
            (new.from, switch)
        };
        pieces.windows(2).map(meet).collect()
    }

    /// Marks the rows of a result behind changes; rows of one key are one operation, whatever their order.
    pub(crate) fn mark<R, K: Ord>(
        rows: &mut [R],
        of: impl Fn(&R) -> (K, TimedSize),
        set: impl Fn(&mut R, Option<Self>),
    ) {
        let mut operations: BTreeMap<K, Vec<(TimedSize, usize)>> = BTreeMap::new();
        for (number, row) in rows.iter_mut().enumerate() {
            let (key, point) = of(row);
            operations.entry(key).or_default().push((point, number));
            set(row, None);
        }
        for mut sizes in operations.into_values() {
            sizes.sort_by_key(|(point, _)| point.bytes);
            let points: Vec<TimedSize> = sizes.iter().map(|(point, _)| *point).collect();
            for (at, switch) in Self::find(&points) {
                set(&mut rows[sizes[at].1], Some(switch));
            }
        }
    }
}

impl std::fmt::Display for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [before, behind] = self.ns_per_byte;
        let change = 100.0 * (self.ratio - 1.0);
        write!(f, "changes above {} B: {change:+.0} %, {before:.3} → {behind:.3} ns a byte", self.after_bytes)
    }
}

/// The fewest straight pieces that describe the points.
fn pieces(points: &[TimedSize]) -> Vec<CurvePiece> {
    divide(points.len(), |from, to| if to - from < FEWEST { None } else { fit(points, from, to) })
}

/// The line through the points `from..to`, and its cost; a time that falls with the size is taken as constant.
fn fit(points: &[TimedSize], from: usize, to: usize) -> Option<(f64, CurvePiece)> {
    let part = &points[from..to];
    let coordinates: Vec<(f64, f64)> = part.iter().map(|point| (point.bytes as f64, point.ns)).collect();
    let (base, slope) = match line(&coordinates)? {
        (_, slope) if slope < 0.0 => {
            // Weighted as in `line`.
            let weights: f64 = part.iter().map(|point| point.ns.powi(-2)).sum();
            (part.iter().map(|point| point.ns.recip()).sum::<f64>() / weights, 0.0)
        }
        fitted => fitted,
    };
    let cost = part.iter().map(|point| {
        let noise = point.half_width.max(LEAST_NOISE * point.ns);
        ((base + slope * point.bytes as f64 - point.ns) / noise).powi(2)
    });
    Some((PRICE + cost.sum::<f64>(), CurvePiece { from, base, slope }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use rand::SeedableRng;
    use rand::rngs::SmallRng;
    use rand_distr::{Distribution, Normal};

    /// Three sizes an octave, times with 2 % of noise.
    fn points(seed: u64, time: impl Fn(f64) -> f64) -> Vec<TimedSize> {
        let mut random = SmallRng::seed_from_u64(seed);
        let noise = Normal::new(1.0, 0.02).unwrap();
        let sizes = (0..52).map(|third| (8.0 * 2f64.powf(f64::from(third) / 3.0)) as u64);
        sizes
            .map(|bytes| TimedSize {
                bytes,
                ns: time(bytes as f64) * noise.sample(&mut random),
                half_width: 0.0,
            })
            .collect()
    }

    #[test]
    fn jumps_and_bends_are_found() {
        // 2 µs and 0.5 ns a byte; from 10 000 B on 6 µs more; from 200 000 B on only 0.1 ns a further byte.
        let found = Switch::find(&points(1, |bytes| match bytes {
            ..10_000.0 => 2000.0 + 0.5 * bytes,
            ..200_000.0 => 8000.0 + 0.5 * bytes,
            _ => 108_000.0 + 0.1 * (bytes - 200_000.0),
        }));
        let places: Vec<u64> = found.iter().map(|(_, switch)| switch.after_bytes).collect();
        assert_eq!(places.len(), 2, "{found:?}");
        // The sizes are 8192 and 10321; 165140 and 208063. A bend is known to one size.
        assert_eq!(places[0], 8192);
        assert!((131_072..=262_144).contains(&places[1]), "{places:?}");
        let (jump, bend) = (found[0].1, found[1].1);
        // From 7160 to 13160 ns.
        assert!((jump.ratio / (13_160.0 / 7160.0) - 1.0).abs() < 0.05, "{jump:?}");
        assert!(
            (bend.ns_per_byte[0] / 0.5 - 1.0).abs() < 0.1 && (bend.ns_per_byte[1] / 0.1 - 1.0).abs() < 0.3
        );
        assert!((0.85..1.15).contains(&bend.ratio), "{bend:?}");
        assert!(jump.to_string().starts_with("changes above 8192 B: +8"), "{jump}");
    }

    #[test]
    fn few_points_and_single_outliers_are_no_change() {
        let linear = |bytes: f64| 2000.0 + 0.5 * bytes;
        let mut disturbed = points(2, linear);
        disturbed[20].ns *= 1.15;
        assert_eq!(Switch::find(&disturbed), []);
        let step = |bytes: f64| if bytes < 100.0 { 1000.0 } else { 9000.0 };
        assert_eq!(Switch::find(&points(3, step)[8..13]), []);
        assert_eq!(Switch::find(&[]), []);
        assert_eq!(Switch::find(&points(3, step)[..15]).len(), 1);
    }

    #[test]
    fn rows_are_marked_by_operation() {
        let step = |at: f64| move |bytes: f64| if bytes < at { 1000.0 } else { 5000.0 };
        let of = |name: &'static str, at: f64| {
            points(4, step(at)).into_iter().map(move |point| (name, point, None::<Switch>))
        };
        let mut rows: Vec<_> = of("b", 100.0).chain(of("a", 3000.0)).rev().collect();
        Switch::mark(&mut rows, |row| (row.0, row.1), |row, switch| row.2 = switch);
        let marked: Vec<_> =
            rows.iter().filter_map(|row| Some((row.0, row.1.bytes, row.2?.after_bytes))).collect();
        assert_eq!(marked, [("a", 3250, 2580), ("b", 101, 80)]);
    }

    proptest! {
        /// 2 % of noise on a straight line are no change, whatever the line.
        #[test]
        fn noise_is_no_change(seed: u64, base in 100.0f64..1e6, slope in 0.0f64..100.0) {
            prop_assert_eq!(Switch::find(&points(seed, |bytes| base + slope * bytes)), []);
        }

        /// A jump by half is found where it is.
        #[test]
        fn a_jump_is_found(seed: u64, base in 100.0f64..1e5, slope in 0.0f64..1.0, third in 5usize..47) {
            let sizes = points(seed, |bytes| bytes);
            let at = sizes[third].bytes;
            let found = Switch::find(&points(seed, |bytes| (base + slope * bytes) * if bytes < at as f64 { 1.0 } else { 1.5 }));
            prop_assert!(found.iter().any(|(behind, _)| *behind == third), "{at} {found:?}");
        }
    }
}
