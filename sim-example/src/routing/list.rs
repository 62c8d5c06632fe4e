//! The list of routings, and their parsing.

use std::str::FromStr;

use super::form::{Form, RoutingSpec};
use super::minimal::Minimal;
use super::{adaptive, ecmp, minimal, par, ugal, valiant};

/// All routings, in the order of the documentation.
pub const FORMS: &[Form] = &[minimal::FORM, ecmp::FORM, adaptive::FORM, valiant::FORM, ugal::FORM, par::FORM];

impl Default for RoutingSpec {
    /// `minimal`.
    fn default() -> Self {
        Minimal::default().into()
    }
}

/// An unknown routing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown routing; write {}", forms())]
pub struct UnknownRouting;

fn forms() -> String {
    FORMS.iter().map(|form| form.form).collect::<Vec<_>>().join(", ")
}

impl FromStr for RoutingSpec {
    type Err = UnknownRouting;

    fn from_str(text: &str) -> Result<Self, UnknownRouting> {
        FORMS.iter().find_map(|form| (form.parse)(text)).ok_or(UnknownRouting)
    }
}
