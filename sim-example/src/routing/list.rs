//! The list of routings, and their parsing.

use std::str::FromStr;

use vef_format::nearest::did_you_mean;

use super::form::{Form, RoutingSpec};
use super::minimal::Minimal;
use super::{adaptive, ecmp, minimal, par, table, ugal, valiant};

/// All routings, in the order of the documentation.
pub const FORMS: &[Form] =
    &[minimal::FORM, ecmp::FORM, adaptive::FORM, valiant::FORM, ugal::FORM, par::FORM, table::FORM];

impl Default for RoutingSpec {
    /// `minimal`.
    fn default() -> Self {
        Minimal::default().into()
    }
}

/// An unknown routing, or a known one with parameters that it does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{unknown}write {forms}")]
pub struct UnknownRouting {
    /// That the name is unknown, with the one that is like it; empty, if it is known.
    unknown: String,
    /// What can be written, all of it or with this name.
    forms: String,
}

impl UnknownRouting {
    fn new(text: &str) -> Self {
        let has_name = |form: &&str| form.split(['[', ':']).next() == text.split(':').next();
        let named: Vec<&str> = FORMS.iter().flat_map(|form| form.form.split(", ")).filter(has_name).collect();
        let all = || FORMS.iter().map(|form| form.form).collect::<Vec<_>>();
        if !named.is_empty() {
            return Self { unknown: String::new(), forms: named.join(", ") };
        }
        let names = FORMS.iter().flat_map(|form| form.form.split(", "));
        let names = names.filter_map(|form| form.split(['[', ':']).next());
        let meant = did_you_mean(text.split(':').next().unwrap_or_default(), names);
        Self { unknown: format!("unknown routing; {meant}"), forms: all().join(", ") }
    }
}

impl FromStr for RoutingSpec {
    type Err = UnknownRouting;

    fn from_str(text: &str) -> Result<Self, UnknownRouting> {
        FORMS.iter().find_map(|form| (form.parse)(text)).ok_or_else(|| UnknownRouting::new(text))
    }
}
