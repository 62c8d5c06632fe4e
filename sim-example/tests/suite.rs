//! The tests of this crate in one program: linking each file alone takes longer than running it.

mod arrivals;
mod examples;
mod models;
mod options;
mod results;
