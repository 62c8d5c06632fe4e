//! The text form of a routing.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::interface::Routing;

/// The text form of a routing.
#[derive(Debug)]
pub struct Form {
    /// The form, or several.
    pub form: &'static str,
    /// The routes.
    pub help: &'static str,
    /// Parses it; `None` if the text is another.
    pub(super) parse: fn(&str) -> Option<RoutingSpec>,
}

impl Form {
    pub(super) fn parsed(routing: impl Routing + 'static) -> Option<RoutingSpec> {
        Some(routing.into())
    }
}

/// A routing as given by the user.
#[derive(Clone, Debug)]
pub struct RoutingSpec(Arc<dyn Routing>);

impl<T: Routing + 'static> From<T> for RoutingSpec {
    fn from(routing: T) -> Self {
        Self(Arc::new(routing))
    }
}

impl Deref for RoutingSpec {
    type Target = dyn Routing;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Display for RoutingSpec {
    /// In the form that is parsed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
