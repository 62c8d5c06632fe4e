//! The tests of this crate in one program: linking each file alone takes longer than running it.

mod checkpoint;
mod header;
mod parity;
mod trace_manager;
