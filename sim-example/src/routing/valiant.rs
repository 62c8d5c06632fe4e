//! Valiant: every route leads over a random intermediate switch.

use super::form::Form;
use super::interface::{Detours, Routing, Spread};
use crate::topology::Topology;

pub(super) const FORM: Form = Form {
    form: "valiant[:router]",
    help: "over a random intermediate switch (in trees, of the highest level; in dragonflies, a random group, or with valiant:router a router)",
    parse: |text| match text {
        "valiant" => Form::parsed(Valiant { via_router: false }),
        "valiant:router" => Form::parsed(Valiant { via_router: true }),
        _ => None,
    },
};

#[derive(Debug)]
struct Valiant {
    via_router: bool,
}

impl Routing for Valiant {
    fn name(&self) -> String {
        if self.via_router { "valiant:router" } else { "valiant" }.to_owned()
    }

    fn spread(&self) -> Option<Spread> {
        Some(Spread::Packet)
    }

    fn detours(&self) -> Detours {
        Detours::Always
    }

    fn via_switch(&self) -> bool {
        self.via_router
    }

    fn is_only_for(&self, topology: &dyn Topology) -> Option<&'static str> {
        (self.via_router && topology.switches_per_group().is_none()).then_some("dragonflies")
    }
}
