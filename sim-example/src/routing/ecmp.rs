//! Equal-cost multi-path: one of the shortest routes, by a hash.

use super::form::Form;
use super::interface::{Routing, Spread};
use crate::topology::Adaptivity;

pub(super) const FORM: Form = Form {
    form: "ecmp:pair|message|packet",
    help: "one of the shortest, by a hash of the pair, message or packet",
    parse: |text| {
        Form::parsed(Ecmp(match text {
            "ecmp" | "ecmp:pair" => Spread::Pair,
            "ecmp:message" => Spread::Message,
            "ecmp:packet" => Spread::Packet,
            _ => return None,
        }))
    },
};

#[derive(Debug)]
struct Ecmp(Spread);

impl Routing for Ecmp {
    fn name(&self) -> String {
        let spread = match self.0 {
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
        Some(self.0)
    }
}
