//! Finite fields of a small number of elements.
//!
//! Elements are the numbers below q = pⁿ: of a prime, themselves; of a power, polynomials over the integers modulo p, whose coefficients are
//! the digits of the number in base p.

/// A finite field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    q: u32,
    /// Sums, by both terms.
    sums: Vec<u16>,
    /// The negatives.
    negatives: Vec<u16>,
    /// Powers of a primitive element, from the 0th on, q − 1 of them.
    powers: Vec<u16>,
    /// The exponent of each element but 0.
    exponents: Vec<u16>,
}

/// p and n of q = pⁿ with p prime.
fn prime_power(q: u32) -> Option<(u32, u32)> {
    let p = (2..=q).find(|divisor| q.is_multiple_of(*divisor))?;
    let n = q.ilog(p);
    (p.pow(n) == q).then_some((p, n))
}

impl Field {
    /// The field of `q` elements, at most 2¹⁵; `None` unless that is the power of a prime.
    pub(super) fn new(q: u32) -> Option<Self> {
        let (p, n) = prime_power(q)?;
        let digits = |number: u32| (0..n).map(move |place| number / p.pow(place) % p);
        let number = |digits: &mut dyn Iterator<Item = u32>| -> u16 {
            (0..n).zip(digits).map(|(place, digit)| digit % p * p.pow(place)).sum::<u32>() as u16
        };
        let sum = |a: u32, b: u32| number(&mut digits(a).zip(digits(b)).map(|(a, b)| a + b));
        let sums = (0..q).flat_map(|a| (0..q).map(move |b| (a, b))).map(|(a, b)| sum(a, b)).collect();
        let negatives = (0..q).map(|a| number(&mut digits(a).map(|digit| p - digit))).collect();
        // Of a prime, multiples of an element; else x times a polynomial, modulo one of degree n: xⁿ = −(its other terms).
        let candidates = if n == 1 { 1..p } else { 1..q };
        let times = |candidate: u32, a: u32| -> u16 {
            if n == 1 {
                return (candidate * a % p) as u16;
            }
            let top = a / p.pow(n - 1);
            let shifted = a % p.pow(n - 1) * p;
            number(&mut digits(shifted).zip(digits(candidate)).map(|(own, of)| own + top * of))
        };
        candidates
            .into_iter()
            .find_map(|candidate| {
                let mut exponents = vec![0; q as usize];
                let (mut powers, mut power) = (Vec::new(), 1u32);
                // Primitive: all elements but 0 are powers.
                for exponent in 0..q - 1 {
                    if power == 0 || exponent > 0 && power == 1 {
                        return None;
                    }
                    exponents[power as usize] = exponent as u16;
                    powers.push(power as u16);
                    power = times(candidate, power).into();
                }
                (power == 1).then_some((powers, exponents))
            })
            .map(|(powers, exponents)| Self { q, sums, negatives, powers, exponents })
    }

    #[inline]
    pub(super) fn add(&self, a: u32, b: u32) -> u32 {
        self.sums[(a * self.q + b) as usize].into()
    }

    #[inline]
    pub(super) fn subtract(&self, a: u32, b: u32) -> u32 {
        self.add(a, self.negatives[b as usize].into())
    }

    #[inline]
    pub(super) fn multiply(&self, a: u32, b: u32) -> u32 {
        if a == 0 || b == 0 {
            return 0;
        }
        self.power(u32::from(self.exponents[a as usize]) + u32::from(self.exponents[b as usize]))
    }

    /// A power of the primitive element.
    #[inline]
    pub(super) fn power(&self, exponent: u32) -> u32 {
        self.powers[exponent as usize % self.powers.len()].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The laws of a field, and the integers modulo a prime.
    #[test]
    fn they_are_fields() {
        for q in [2, 3, 4, 5, 7, 8, 9, 16, 25, 27] {
            let field = Field::new(q).unwrap();
            for (a, b) in (0..q).flat_map(|a| (0..q).map(move |b| (a, b))) {
                assert_eq!(field.add(a, b), field.add(b, a));
                assert_eq!(field.multiply(a, b), field.multiply(b, a));
                assert_eq!(field.add(field.subtract(a, b), b), a);
                assert!(field.multiply(a, b) != 0 || a == 0 || b == 0);
                for c in 0..q {
                    let product = field.multiply(a, field.add(b, c));
                    assert_eq!(
                        product,
                        field.add(field.multiply(a, b), field.multiply(a, c)),
                        "{q}: {a} {b} {c}"
                    );
                    let product = field.multiply(a, field.multiply(b, c));
                    assert_eq!(product, field.multiply(field.multiply(a, b), c));
                }
                if [2, 3, 5, 7].contains(&q) {
                    assert_eq!((field.add(a, b), field.multiply(a, b)), ((a + b) % q, a * b % q));
                }
            }
            assert!((0..q).all(|a| field.multiply(1, a) == a && field.add(0, a) == a));
        }
        for q in [0, 1, 6, 10, 12, 100] {
            assert_eq!(Field::new(q), None);
        }
    }
}
