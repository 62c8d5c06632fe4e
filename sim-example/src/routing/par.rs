//! Progressive adaptive routing: UGAL, whose choice of the shortest way is made again at the next router of the source's group.
//!
//! Source: N. Jiang, J. Kim, W. J. Dally, "Indirect adaptive routing on large scale interconnection networks", ISCA 2009.

use vef_format::units::Bytes;

use super::form::Form;
use super::interface::{Alternatives, Detours, Routing, Spread};
use crate::quantity::parse_bytes;
use crate::topology::Topology;

pub(super) const FORM: Form = Form {
    form: "par[:BYTES]",
    help: "as ugal, but a shortest route is decided again at the next router of its source's group (progressive adaptive routing); for dragonflies",
    parse: |text| match text.strip_prefix("par")? {
        "" => Form::parsed(Par { threshold: Bytes::ZERO }),
        bytes => Form::parsed(Par { threshold: parse_bytes(bytes.strip_prefix(':')?).ok()? }),
    },
};

#[derive(Debug)]
struct Par {
    threshold: Bytes,
}

impl Routing for Par {
    fn name(&self) -> String {
        match self.threshold {
            Bytes::ZERO => "par".to_owned(),
            Bytes(threshold) => format!("par:{threshold}"),
        }
    }

    fn spread(&self) -> Option<Spread> {
        Some(Spread::Packet)
    }

    fn detours(&self) -> Detours {
        Detours::ByLoad
    }

    fn decides_again(&self) -> bool {
        true
    }

    fn takes(&self, ways: &Alternatives<'_>) -> bool {
        ways.detour_costs_less(self.threshold)
    }

    fn counts_bytes(&self) -> bool {
        self.threshold != Bytes::ZERO
    }

    fn is_only_for(&self, topology: &dyn Topology) -> Option<&'static str> {
        (!topology.can_decide_again()).then_some("dragonflies in which no link has failed")
    }
}
