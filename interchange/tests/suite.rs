//! The tests of this crate in one program: linking each file alone takes longer than running it.

mod bad_calls;
mod calls;
mod chakra;
mod common;
mod cut;
mod dumpi;
mod dumpi_calls;
mod export;
mod goal;
mod missing;
mod otf2_events;
mod ti_export;
