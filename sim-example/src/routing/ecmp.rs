//! Equal-cost multi-path: one of the shortest routes, by a hash. In tori these differ in ties of a dimension alone, so `dor:random`
//! is another name of `ecmp:packet` there: dimension order, ties at random for each packet, as in BookSim.

use super::form::Form;
use super::interface::{Routing, Spread};
use crate::topology::{Adaptivity, Topology};

pub(super) const FORM: Form = Form {
    form: "ecmp:pair|message|packet, dor:random",
    help: "one of the shortest, by a hash of the pair, message or packet; in tori, dimension order with random ties (dor:random)",
    parse: |text| {
        let (spread, in_order) = match text {
            "ecmp" | "ecmp:pair" => (Spread::Pair, false),
            "ecmp:message" => (Spread::Message, false),
            "ecmp:packet" => (Spread::Packet, false),
            "dor:random" => (Spread::Packet, true),
            _ => return None,
        };
        Form::parsed(Ecmp { spread, in_order })
    },
};

#[derive(Debug)]
struct Ecmp {
    spread: Spread,
    /// Whether it must be dimension order.
    in_order: bool,
}

impl Routing for Ecmp {
    fn name(&self) -> String {
        if self.in_order {
            return "dor:random".to_owned();
        }
        let spread = match self.spread {
            Spread::Pair => "pair",
            Spread::Message => "message",
            Spread::Packet => "packet",
        };
        format!("ecmp:{spread}")
    }

    fn adaptivity(&self) -> Adaptivity {
        Adaptivity::Oblivious
    }

    fn spread(&self) -> Option<Spread> {
        Some(self.spread)
    }

    fn is_only_for(&self, topology: &dyn Topology) -> Option<&'static str> {
        (self.in_order && !topology.ties_alone_differ()).then_some("tori")
    }
}
