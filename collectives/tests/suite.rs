//! The tests of this crate in one program: linking each file alone takes longer than running it.

mod proofs;
mod recorded;
mod refused;
mod sums;
