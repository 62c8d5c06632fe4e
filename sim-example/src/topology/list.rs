//! The list of topologies, and what is made from it: parsing and building.

use std::str::FromStr;

use vef_format::nearest::nearest;

use super::error::{TopologyError, TopologyProblem};
use super::fabric::Fabric;
use super::form::{Form, TopologySpec};
use super::given::{self, Given};
use super::tree::{self, Tree};
use super::{dragonfly, hyperx, megafly, rail, slimfly, torus};

/// All text forms but `auto`, in the order of the documentation.
pub const FORMS: &[&[Form]] = &[
    tree::FORMS,
    rail::FORMS,
    torus::FORMS,
    hyperx::FORMS,
    dragonfly::FORMS,
    megafly::FORMS,
    slimfly::FORMS,
    given::FORMS,
];

impl FromStr for TopologySpec {
    type Err = TopologyProblem;

    fn from_str(text: &str) -> Result<Self, TopologyProblem> {
        let (kind, rest) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        if text.trim() == "auto" {
            return Ok(Self::Auto);
        }
        let mut forms = FORMS.iter().copied().flatten();
        let form = forms.find(|form| form.kind == kind).ok_or_else(|| unknown(kind))?;
        (form.parse)(rest).ok_or(TopologyProblem::Form(form.form, form.example))?
    }
}

fn unknown(kind: &str) -> TopologyProblem {
    let all = || FORMS.iter().copied().flatten();
    let forms: Vec<&str> = all().map(|form| form.form).collect();
    let similar = nearest(kind, all().map(|form| form.kind).chain(["auto"]));
    TopologyProblem::Kind { similar, forms: forms.join(", ") }
}

impl TopologySpec {
    /// Builds the network; `auto` gets `needed` nodes.
    ///
    /// # Errors
    /// `auto` would have more than [`MAX_LINKS`](super::MAX_LINKS) links, or the file is invalid.
    pub fn build(&self, needed: u32) -> Result<Fabric, TopologyError> {
        let failed = |problem| TopologyError { text: self.to_string(), problem };
        match self {
            Self::Auto => Ok(Fabric::of(Tree::switch(needed).map_err(failed)?)),
            Self::File(path) => Ok(Fabric::of(Given::read(path).map_err(|error| failed(error.into()))?)),
            Self::Known(topology) => Ok(Fabric::new(topology.clone())),
        }
    }
}
