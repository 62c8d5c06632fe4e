//! The tests of this crate in one program: linking each file alone takes longer than running it.

mod rewrite;
mod traces;
