//! The list of routings, and their parsing.

use std::str::FromStr;

use super::form::{Form, RoutingSpec};
use super::minimal::Minimal;
use super::{adaptive, ecmp, minimal, ugal, valiant};

/// All routings, in the order of the documentation.
pub const FORMS: &[Form] = &[minimal::FORM, ecmp::FORM, adaptive::FORM, valiant::FORM, ugal::FORM];

impl Default for RoutingSpec {
    /// `minimal`.
    fn default() -> Self {
        Minimal::default().into()
    }
}

/// An unknown routing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown routing {:?}; write {}", .0, forms())]
pub struct UnknownRouting(pub String);

fn forms() -> String {
    FORMS.iter().map(|form| form.form).collect::<Vec<_>>().join(", ")
}

impl FromStr for RoutingSpec {
    type Err = UnknownRouting;

    fn from_str(text: &str) -> Result<Self, UnknownRouting> {
        let found = FORMS.iter().find_map(|form| (form.parse)(text));
        found.ok_or_else(|| UnknownRouting(text.to_owned()))
    }
}
