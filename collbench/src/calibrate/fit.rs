//! Parameters from measured trains.

use sim_example::calibration::{Class, Estimate, Segment};

use super::measure::{PairTimes, Train};
use crate::error::{Error, Result};
use crate::stats::{Summary, divide, line, median};
use vef_format::units::Bytes;

/// The parameters of one kind of pair.
///
/// # Errors
/// [`Error::Invalid`] where more bytes did not take more time.
pub(super) fn class(pair: &PairTimes) -> Result<Class> {
    let all: Vec<Train> = pair.alone.iter().chain(&pair.trains).copied().collect();
    let total = |train: &Train| (train.bytes * u64::from(train.count)) as f64;
    // The rate: from lone messages of a quarter of the largest on, where latencies and bursts are a constant.
    let largest = pair.alone.iter().map(|train| train.bytes).max().unwrap_or(0);
    let long: Vec<(f64, f64)> = pair
        .alone
        .iter()
        .filter(|train| train.bytes * 8 >= largest)
        .map(|train| (train.bytes as f64, train.ns))
        .collect();
    let (_, ns_per_byte) = line(&long).filter(|(_, slope)| *slope > 0.0).ok_or_else(|| {
        let what = "larger messages do not take longer: noise, or too few sizes; more --repetitions, a larger --largest, or ranks \
                    bound to cores of their own may help";
        Error::Invalid(format!("calibration: {what}"))
    })?;
    // After a pause processors sleep: programs in the middle of a collective meet the time without pauses.
    let small = median(&pair.small);
    // Bytes after a pause that wait for no rate: how far the line of streams lies below the latency, by trains of
    // eager messages, which no handshake delays, and that the burst alone did not carry. Where no train is that long,
    // the burst is not known: none is assumed.
    let eager = pair.eager_limit.unwrap_or(largest);
    let streams: Vec<f64> = all
        .iter()
        .filter(|train| train.bytes <= eager && train.ns > 2.0 * small)
        .map(|train| (small - (train.ns - total(train) * ns_per_byte)) / ns_per_byte)
        .collect();
    let burst = estimate(&streams).unwrap_or(Estimate::exact(0.0));
    let burst = Estimate { value: burst.value.max(0.0), low: burst.low.max(0.0), high: burst.high.max(0.0) };
    let send_overhead = median(&pair.send_overheads).min(small / 2.0);
    let receive_overhead = median(&pair.receive_overheads).min(small / 2.0);
    let latency = (small - send_overhead - receive_overhead).max(0.0);
    let around = |value: f64, samples: &[f64]| {
        let half = Summary::of(samples, 0.95).map_or(0.0, |summary| summary.within.half_width());
        Estimate { value, low: (value - half).max(0.0), high: value + half }
    };
    let slopes: Vec<f64> =
        long.windows(2).map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0)).collect();
    let (bytes, both) = pair.both_ways;
    let one = interpolate(&pair.alone, bytes);
    let mut class = Class {
        latency_ns: around(latency, &pair.small),
        send_overhead_ns: around(send_overhead, &pair.send_overheads),
        receive_overhead_ns: around(receive_overhead, &pair.receive_overheads),
        gap_ns: around(median(&pair.gaps), &pair.gaps),
        ns_per_byte: around(ns_per_byte, &slopes),
        burst_bytes: burst,
        eager_limit_bytes: pair.eager_limit,
        duplex: if one > 0.0 { both / one } else { 1.0 },
        segments: segments(&pair.alone),
        residual: [0.0; 2],
    };
    let residuals: Vec<f64> = pair
        .alone
        .iter()
        .map(|train| (class.message_ns(Bytes(train.bytes)) / train.ns - 1.0).abs())
        .collect();
    class.residual = [median(&residuals), residuals.iter().copied().fold(0.0, f64::max)];
    Ok(class)
}

fn estimate(samples: &[f64]) -> Option<Estimate> {
    let summary = Summary::of(samples, 0.95)?;
    Some(Estimate { value: summary.median, low: summary.within.low, high: summary.within.high })
}

fn interpolate(alone: &[Train], bytes: u64) -> f64 {
    let after = alone.iter().position(|train| train.bytes >= bytes).unwrap_or(alone.len().saturating_sub(1));
    let Some(upper) = alone.get(after) else { return 0.0 };
    let Some(lower) = after.checked_sub(1).and_then(|before| alone.get(before)) else { return upper.ns };
    let part = (bytes as f64 - lower.bytes as f64) / (upper.bytes as f64 - lower.bytes as f64);
    lower.ns + part * (upper.ns - lower.ns)
}

/// Price of a further segment, in squared relative residuals of 2 % each.
const PRICE: f64 = 12.0;
const EXPECTED: f64 = 0.02;

/// The time of lone messages in straight pieces: as few as describe the points, found by dynamic programming.
fn segments(points: &[Train]) -> Vec<Segment> {
    let fit = |from: usize, to: usize| -> Option<(f64, Segment)> {
        let part = &points[from..to];
        let coordinates: Vec<(f64, f64)> = part.iter().map(|p| (p.bytes as f64, p.ns)).collect();
        let (base_ns, ns_per_byte, price) = match coordinates[..] {
            [(_, only)] => (only, 0.0, 2.0 * PRICE),
            _ => line(&coordinates).map(|(base, slope)| (base, slope, PRICE))?,
        };
        let relative = |p: &Train| (base_ns + ns_per_byte * p.bytes as f64) / p.ns - 1.0;
        let cost: f64 = part.iter().map(|p| (relative(p) / EXPECTED).powi(2)).sum();
        let residual = part.iter().map(|p| relative(p).abs()).fold(0.0, f64::max);
        // A line that falls is noise; it may not be used beyond its points either.
        (ns_per_byte >= 0.0 || part.len() == 1)
            .then_some((price + cost, Segment { from_bytes: part[0].bytes, base_ns, ns_per_byte, residual }))
    };
    divide(points.len(), fit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert, proptest};

    fn sizes() -> Vec<u64> {
        (0..21).map(|power| 1u64 << power).chain((10..20).map(|power| 3 << power)).collect()
    }

    fn alone(time: impl Fn(u64) -> f64) -> Vec<Train> {
        let mut sizes = sizes();
        sizes.sort_unstable();
        sizes.into_iter().map(|bytes| Train { bytes, count: 1, ns: time(bytes), half_width: 0.0 }).collect()
    }

    #[test]
    fn a_bend_and_a_jump_are_found() {
        let time = |bytes: u64| match bytes {
            0..=4095 => 2_000.0 + 0.5 * bytes as f64,
            4096..=65535 => 3_000.0 + 1.0 * bytes as f64,
            _ => 40_000.0 + 0.7 * bytes as f64,
        };
        let found = segments(&alone(time));
        assert_eq!(found.iter().map(|s| s.from_bytes).collect::<Vec<_>>(), [1, 4096, 65_536], "{found:?}");
        assert!((found[2].ns_per_byte - 0.7).abs() < 0.01 && found.iter().all(|s| s.residual < 0.01));
    }

    proptest! {
        /// A link with a bucket, overheads and a rendezvous: the parameters come back.
        #[test]
        fn parameters_are_recovered(
            small in 5e3f64..2e5, ns_per_byte in 1.0f64..500.0, burst in 0.0f64..2e4, extra in 0.0f64..2e5, noise in 0u64..1000
        ) {
            let wobble = |n: u64| 1.0 + 0.004 * (((n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ noise) >> 33) as f64 / f64::from(u32::MAX >> 1) - 0.5);
            let limit = 65_536;
            let time = |bytes: u64, count: u64| {
                let handshake = if bytes > limit { extra } else { 0.0 };
                (small + ((bytes * count) as f64 - burst).max(0.0) * ns_per_byte + handshake) * wobble(bytes * count)
            };
            let trains = [(1024u64, 32u64), (1024, 96), (8192, 4), (8192, 12), (8192, 32)];
            let pair = PairTimes {
                alone: alone(|bytes| time(bytes, 1)),
                trains: trains.map(|(bytes, count)| Train { bytes, count: count as u32, ns: time(bytes, count), half_width: 0.0 }).to_vec(),
                send_overheads: vec![small / 10.0; 5],
                receive_overheads: vec![small / 20.0; 5],
                gaps: vec![small / 10.0; 5],
                eager_limit: Some(limit),
                small: vec![small; 9],
                both_ways: (1 << 18, time(1 << 18, 1)),
            };
            let class = class(&pair).unwrap();
            prop_assert!((class.ns_per_byte.value / ns_per_byte - 1.0).abs() < 0.02, "{class:?}");
            prop_assert!((class.latency_ns.value / (0.85 * small) - 1.0).abs() < 0.01);
            // Within what 0.4 % of the streams' times is in bytes.
            prop_assert!((class.burst_bytes.value - burst).abs() < 2_000.0 + 0.1 * burst, "{}", class.burst_bytes.value);
            prop_assert!((class.duplex - 1.0).abs() < 0.05);
            prop_assert!(class.residual[0] < 0.03, "{:?}", class.residual);
        }
    }
}
