//! Routing: the links and virtual channels of each message or packet.
//!
//! Topologies have the shortest routes ([`Topology::next`](crate::topology::Topology::next)). A routing chooses among them, and
//! whether a route leads over an intermediate switch. Each file below is a routing with its text form; [`FORMS`] lists
//! them. A [`Router`] returns one link of a route after the other.

mod adaptive;
mod ecmp;
mod minimal;
mod par;
mod table;
mod ugal;
mod valiant;

pub(crate) mod channels;
mod form;
mod interface;
mod list;
mod router;

pub use channels::ChannelClasses;
pub use form::{Form, RoutingSpec};
pub use interface::{Alternatives, Detours, Load, Routing, Spread, Ways};
pub use list::{FORMS, UnknownRouting};
pub use router::{Router, RoutingError};

#[cfg(test)]
pub(crate) mod tests;
