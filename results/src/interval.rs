//! The mean of independent values, with its confidence interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over runs that differ in their seed alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mean {
    /// The mean.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval, by Student's t-distribution; absent of fewer than two runs.
    pub half_width: Option<f64>,
}

impl Mean {
    /// That of some values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let half_width = (n > 1).then(|| student_t(n - 1) * (variance / n as f64).sqrt());
        Some(Self { mean, half_width })
    }
}

/// Student's t so that 95 % lie within ±t.
fn student_t(degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::INFINITY, |student| student.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of printed tables.
    #[test]
    fn intervals_are_those_of_students_t() {
        for (degrees, quantile) in [(1, 12.706), (4, 2.776), (9, 2.262), (30, 2.042), (1000, 1.962)] {
            assert!((student_t(degrees) - quantile).abs() < 5e-4, "{degrees}: {}", student_t(degrees));
        }
        // Standard deviation 1, of three: 4.303 / √3.
        let mean = Mean::of(&[4.0, 5.0, 6.0]).unwrap();
        assert_eq!(mean.mean, 5.0);
        assert!((mean.half_width.unwrap() - 4.303 / 3f64.sqrt()).abs() < 5e-4, "{mean:?}");
        assert_eq!(Mean::of(&[7.0]), Some(Mean { mean: 7.0, half_width: None }));
        assert_eq!(Mean::of(&[]), None);
    }
}
