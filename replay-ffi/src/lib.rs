//! The C ABI of the replay library: not begun, so this library exports nothing yet. A simulator in Rust uses the
//! crate `replay` directly, as `sim-example` does.
