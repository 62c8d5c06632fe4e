//! The tests of this crate in one program: linking each file alone takes longer than running it.

mod accounts;
mod collectives;
mod describe;
mod events;
mod instances;
mod iterations;
mod order;
mod parallel;
mod partitions;
mod parts;
mod properties;
mod proven;
mod stuck;
mod told;
mod traces;
mod waits;
