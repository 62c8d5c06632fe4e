//! Graphs of operations: what formats of graphs have in common on their way to a trace.
//!
//! ```text
//! Graph ─ matching ─▶ pairs ─ streams ─▶ tasks ─ yardstick ─▶ order ─ records ─▶ trace
//! ```
//!
//! A record of a trace follows the one before it, so the operations of a task must be put in one order: that in which they start on
//! a yardstick network. All dependencies, also those through messages, are satisfied in this order, so a trace cannot be stuck
//! where the graph is not.

mod model;

mod matching;
mod streams;
mod yardstick;

mod records;

mod check;
mod convert;

pub(crate) use check::check;
pub(crate) use convert::convert;
pub(crate) use matching::order_of;
pub(crate) use model::{Act, Call, Graph, Group, Node};
