//! UGAL-L: shortest or over a random intermediate switch, by the load at the source.

use vef_format::units::Bytes;

use super::form::Form;
use super::interface::{Alternatives, Detours, Routing, Spread};
use crate::quantity::parse_bytes;

pub(super) const FORM: Form = Form {
    form: "ugal[:BYTES]",
    help: "shortest or Valiant, by the load of the first link times the length of the route (UGAL-L); BYTES by which the shortest may exceed the other",
    parse: |text| {
        let threshold = match text.strip_prefix("ugal")? {
            "" => Bytes::ZERO,
            bytes => parse_bytes(bytes.strip_prefix(':')?).ok()?,
        };
        Form::parsed(Ugal { threshold })
    },
};

#[derive(Debug)]
struct Ugal {
    threshold: Bytes,
}

impl Routing for Ugal {
    fn name(&self) -> String {
        match self.threshold {
            Bytes::ZERO => "ugal".to_owned(),
            Bytes(threshold) => format!("ugal:{threshold}"),
        }
    }

    fn spread(&self) -> Option<Spread> {
        Some(Spread::Packet)
    }

    fn detours(&self) -> Detours {
        Detours::ByLoad
    }

    fn takes(&self, ways: &Alternatives<'_>) -> bool {
        ways.detour_costs_less(self.threshold)
    }
}
