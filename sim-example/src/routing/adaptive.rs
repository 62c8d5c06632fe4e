//! Minimal adaptive: one of the shortest routes, over the least loaded link.

use super::form::Form;
use super::interface::{Routing, Spread, Ways};
use crate::topology::Adaptivity;

pub(super) const FORM: Form = Form {
    form: "adaptive",
    help: "one of the shortest, over the least loaded link",
    parse: |text| if text == "adaptive" { Form::parsed(Adaptive) } else { None },
};

#[derive(Debug)]
struct Adaptive;

impl Routing for Adaptive {
    fn name(&self) -> String {
        "adaptive".to_owned()
    }

    fn adaptivity(&self) -> Adaptivity {
        Adaptivity::Adaptive
    }

    fn spread(&self) -> Option<Spread> {
        Some(Spread::Packet)
    }

    /// Ties are broken at random: starts at a random way, and keeps the first minimum.
    fn among(&self, ways: &Ways<'_>) -> u32 {
        let mut best = ways.draw();
        let mut least = ways.load(best);
        let mut way = best;
        for _ in 1..ways.count() {
            if least == 0 {
                break;
            }
            way = if way + 1 == ways.count() { 0 } else { way + 1 };
            let load = ways.load(way);
            if load < least {
                (best, least) = (way, load);
            }
        }
        best
    }
}
