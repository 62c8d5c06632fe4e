//! Files.

use super::{Mpi, pmpi};
use crate::error::Result;

impl Mpi {
    /// `MPI_File_get_position`: where the rank reads or writes next by its own pointer, in units of the view.
    ///
    /// # Safety
    /// `file` is the C handle of an open file.
    pub unsafe fn file_position(&self, file: usize) -> Result<i64> {
        self.count(|position| pmpi!(self, MPI_File_get_position(file, position)))
    }
}
