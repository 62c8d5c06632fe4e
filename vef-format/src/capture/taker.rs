//! What the events of a capture are given to.

use super::error::CaptureError;
use super::event::Event;

/// Takes events.
pub trait Taker {
    /// Why it takes no more.
    type Error: From<CaptureError>;

    /// Takes the next event.
    ///
    /// # Errors
    /// Whatever ends the reading.
    fn take(&mut self, event: &Event<'_>) -> Result<(), Self::Error>;
}
