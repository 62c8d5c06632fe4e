//! MPI without linking MPI.
pub mod api;
pub mod arguments;
pub mod detect;
mod error;
pub mod handles;
pub mod mpich;
pub mod openmpi;
pub mod prototypes;
pub mod standard;
pub mod status;
pub mod symbols;
pub mod tables;

pub use error::{Error, Result};

/// What a wrapper returns for a function that the real MPI does not have: an error of the most general kind
/// (`MPI_ERR_OTHER`, under MPICH `MPI_ERR_INTERN`).
pub const ERR_NO_SUCH_FUNCTION: i32 = 16;
