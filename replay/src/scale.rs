//! Computing times in picoseconds.

use vef_format::ids::Rank;
use vef_format::units::{Picos, Ticks};

/// Ticks to picoseconds: the trace's clock times the job's factors.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    clock: Picos,
    /// By rank, `mantissa × 2^exponent`; the last one also holds for the ranks behind it. Empty for 1.
    factors: Box<[(u64, i32)]>,
}

impl Scale {
    /// The first of the factors that is negative or not finite is the error.
    pub(crate) fn new(clock: Picos, factors: &[f64]) -> Result<Self, f64> {
        if factors.iter().all(|&factor| factor == 1.0) {
            return Ok(Self { clock, factors: Box::default() });
        }
        let factors = factors.iter().map(|&factor| parts(factor).ok_or(factor)).collect::<Result<_, _>>()?;
        Ok(Self { clock, factors })
    }

    /// So much computing of a task later; `None` past the end of time.
    #[inline(always)]
    pub(crate) fn after(&self, at: Picos, computing: Ticks, task: Rank) -> Option<Picos> {
        let picos = computing.to_picos(self.clock)?;
        if let Some(last) = self.factors.last() {
            let (mantissa, exponent) = self.factors.get(task.index()).unwrap_or(last);
            return at.checked_add(Picos(scaled(picos.0, *mantissa, *exponent)?));
        }
        at.checked_add(picos)
    }
}

/// A factor as `mantissa × 2^exponent`; `None` if it is negative or not finite.
fn parts(factor: f64) -> Option<(u64, i32)> {
    if !(0.0..f64::INFINITY).contains(&factor) {
        return None;
    }
    // Without the sign of -0.
    let bits = factor.abs().to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    let (mantissa, exponent) = match exponent {
        0 => (fraction, -1074),
        exponent => (fraction | 1 << 52, exponent - 1075),
    };
    // 53 bits for 0.
    let zeros = mantissa.trailing_zeros().min(53);
    Some((mantissa >> zeros, exponent + zeros as i32))
}

/// `value × mantissa × 2^exponent`, to nearest, halves up.
#[inline(never)]
fn scaled(value: u64, mantissa: u64, exponent: i32) -> Option<u64> {
    // At most 64 + 53 bits.
    let product = u128::from(value) * u128::from(mantissa);
    let shift = exponent.unsigned_abs();
    if product == 0 {
        return Some(0);
    }
    let whole = if exponent >= 0 {
        if shift >= product.leading_zeros() {
            return None;
        }
        product << shift
    } else if shift > 120 {
        0
    } else {
        (product + (1 << (shift - 1))) >> shift
    };
    u64::try_from(whole).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picos(ticks: u64, clock: u64, factor: f64) -> Option<u64> {
        let scale = Scale::new(Picos(clock), &[factor]).unwrap();
        scale.after(Picos(0), Ticks(ticks), Rank(3)).map(|picos| picos.0)
    }

    #[test]
    fn scales_exactly() {
        assert_eq!(picos(5, 1000, 1.0), Some(5000));
        assert_eq!(picos(5, 1000, 0.5), Some(2500));
        assert_eq!(picos(5, 1, 0.5), Some(3));
        assert_eq!(picos(3, 1, 0.1), Some(0));
        assert_eq!(picos(15, 1, 0.1), Some(2));
        assert_eq!(picos(1 << 60, 1, 8.0), Some(1 << 63));
        assert_eq!(picos(1 << 60, 1, 16.0), None);
        assert_eq!(picos(0, 1000, 1e300), Some(0));
        assert_eq!(picos(1, 1000, 1e300), None);
        assert_eq!(picos(u64::MAX, 1, 1e-300), Some(0));
        assert_eq!(picos(u64::MAX, 1, 1.0), Some(u64::MAX));
        assert_eq!(picos(u64::MAX, 2, 0.5), None);
        assert_eq!(picos((1 << 60) + 1, 1, 3.0), Some(3 * ((1 << 60) + 1)));
        assert_eq!((picos(u64::MAX, 1, 0.0), picos(u64::MAX, 1, -0.0)), (Some(0), Some(0)));
    }

    #[test]
    fn each_rank_has_its_factor() {
        let scale = Scale::new(Picos(10), &[1.0, 0.25, 3.0]).unwrap();
        let after = |rank| scale.after(Picos(7), Ticks(4), Rank(rank)).unwrap().0;
        assert_eq!([0, 1, 2, 3, 900].map(after), [47, 17, 127, 127, 127]);
    }

    #[test]
    fn refuses_factors_that_are_negative_or_not_finite() {
        for factor in [-1.0, -1e-300, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Scale::new(Picos(1), &[1.0, factor]).unwrap_err(), factor);
        }
        assert!(Scale::new(Picos(1), &[f64::NAN]).is_err());
    }
}
