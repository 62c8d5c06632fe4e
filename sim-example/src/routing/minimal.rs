//! Shortest and deterministic routes: dimension order in tori, meshes and HyperX, D-mod-k in trees.

use super::form::Form;
use super::interface::Routing;
use crate::topology::Topology;

pub(super) const FORM: Form = Form {
    form: "minimal, dor, dmodk",
    help: "shortest, the same for each pair: dimension order in tori, meshes and HyperX (dor), D-mod-k in trees (dmodk)",
    parse: |text| match text {
        "minimal" => Form::parsed(Minimal::default()),
        "dor" => Form::parsed(Minimal { name: "dor", is_for: "tori, meshes and HyperX" }),
        "dmodk" => Form::parsed(Minimal { name: "dmodk", is_for: "trees" }),
        _ => None,
    },
};

/// The topology's own routes, under one of their names.
#[derive(Debug)]
pub(super) struct Minimal {
    name: &'static str,
    /// The topologies in which they have this name.
    is_for: &'static str,
}

impl Default for Minimal {
    fn default() -> Self {
        Self { name: "minimal", is_for: "all topologies" }
    }
}

impl Routing for Minimal {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn is_only_for(&self, topology: &dyn Topology) -> Option<&'static str> {
        let is_known = self.name == "minimal" || self.name == topology.minimal_routing();
        (!is_known).then_some(self.is_for)
    }
}
