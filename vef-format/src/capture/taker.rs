//! The consumer of a capture's events.

use super::error::CaptureError;
use super::event::Event;

/// Consumes events.
pub trait Taker {
    /// The error that stops reading.
    type Error: From<CaptureError>;

    /// Takes the next event.
    ///
    /// # Errors
    /// Any error stops reading.
    fn take(&mut self, event: &Event<'_>) -> Result<(), Self::Error>;
}
