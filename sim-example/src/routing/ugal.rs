//! UGAL: shortest or over a random intermediate switch, by the load at the source (UGAL-L), or of both routes (UGAL-G).

use vef_format::units::Bytes;

use super::form::Form;
use super::interface::{Alternatives, Detours, Routing, Spread};
use crate::quantity::parse_bytes;
use crate::topology::Topology;

pub(super) const FORM: Form = Form {
    form: "ugal[:global][:router][:BYTES]",
    help: "shortest or Valiant, by the load of the first link times the length of the route (UGAL-L), or with global by the load of all links of both routes (UGAL-G); router as in valiant:router; BYTES by which the shortest may exceed the other",
    parse,
};

fn parse(text: &str) -> Option<super::form::RoutingSpec> {
    let mut rest = text.strip_prefix("ugal")?;
    let mut has = |word: &str| match rest.strip_prefix(word) {
        Some(behind) if behind.is_empty() || behind.starts_with(':') => {
            rest = behind;
            true
        }
        _ => false,
    };
    let (global, router) = (has(":global"), has(":router"));
    let threshold = match rest {
        "" => Bytes::ZERO,
        bytes => parse_bytes(bytes.strip_prefix(':')?).ok()?,
    };
    Form::parsed(Ugal { global, router, threshold })
}

#[derive(Debug)]
struct Ugal {
    global: bool,
    router: bool,
    threshold: Bytes,
}

impl Routing for Ugal {
    fn name(&self) -> String {
        let global = if self.global { ":global" } else { "" };
        let router = if self.router { ":router" } else { "" };
        match self.threshold {
            Bytes::ZERO => format!("ugal{global}{router}"),
            Bytes(threshold) => format!("ugal{global}{router}:{threshold}"),
        }
    }

    fn spread(&self) -> Option<Spread> {
        Some(Spread::Packet)
    }

    fn detours(&self) -> Detours {
        Detours::ByLoad
    }

    fn via_switch(&self) -> bool {
        self.router
    }

    fn looks_at_whole_routes(&self) -> bool {
        self.global
    }

    fn takes(&self, ways: &Alternatives<'_>) -> bool {
        ways.detour_costs_less(self.threshold)
    }

    fn counts_bytes(&self) -> bool {
        self.threshold != Bytes::ZERO
    }

    fn is_only_for(&self, topology: &dyn Topology) -> Option<&'static str> {
        (self.router && topology.switches_per_group().is_none()).then_some("dragonflies")
    }
}
