//! An event-driven network simulator that replays VEF traces.

#![forbid(unsafe_code)]

pub mod quantity;
pub mod routing;
pub mod topology;

pub mod model;

mod histogram;
mod queue;
