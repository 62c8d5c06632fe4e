//! Where the vertices of a topology are drawn.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use super::wiring::Vertex;

/// A drawing of a network. Nodes without a place are drawn as part of their switch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Places of vertices, from the upper left corner; two are at least [`Drawing::STEP`] / 2 apart.
    pub places: BTreeMap<Vertex, (f64, f64)>,
    /// Whether cables are straight lines. Otherwise long ones are arcs, clear of the vertices between their ends.
    pub straight: bool,
}

impl Drawing {
    /// Distance of neighbouring vertices.
    pub const STEP: f64 = 26.0;

    /// Switches on a ring.
    pub fn ring(switches: u32) -> Self {
        let radius = (f64::from(switches) * Self::STEP / TAU).max(2.0 * Self::STEP);
        let place = |switch: u32| {
            let turn = TAU * f64::from(switch) / f64::from(switches);
            (Vertex::Switch(switch), (radius * (1.0 + turn.sin()), radius * (1.0 - turn.cos())))
        };
        Self { places: (0..switches).map(place).collect(), straight: false }
    }

    /// A grid of switches. The first two dimensions are a plane. The planes of the third dimension are side by side, those of
    /// further dimensions one below the other.
    pub fn grid(sizes: &[u32], switches: u32) -> Self {
        let step = 2.0 * Self::STEP;
        let size = |dimension: usize| sizes.get(dimension).copied().unwrap_or(1).max(1);
        let place = |switch: u32| {
            let (x, rest) = (switch % size(0), switch / size(0));
            let (y, rest) = (rest % size(1), rest / size(1));
            let (z, further) = (rest % size(2), rest / size(2));
            let x = f64::from(x) + f64::from(z) * (f64::from(size(0)) + 1.0);
            let y = f64::from(y) + f64::from(further) * (f64::from(size(1)) + 1.0);
            (Vertex::Switch(switch), (x * step, y * step))
        };
        Self { places: (0..switches).map(place).collect(), straight: false }
    }
}
