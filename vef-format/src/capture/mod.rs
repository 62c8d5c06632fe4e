//! Captures: what tracing left behind, one stream of calls a rank.
//!
//! [`event`] is the meaning of a capture, shared by every layout. Layouts: our own (written by the
//! interposer) and the older one of VEF-Prospector (read only).

pub mod event;
pub mod legacy;
