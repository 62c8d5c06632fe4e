//! What is timed.

use crate::error::Result;

/// Something that all ranks do together.
pub trait Subject {
    /// Does it once; this is timed.
    ///
    /// # Errors
    /// MPI's.
    fn run(&mut self) -> Result<()>;

    /// Between two runs, untimed.
    ///
    /// # Errors
    /// MPI's.
    fn prepare_next(&mut self) -> Result<()> {
        Ok(())
    }
}
