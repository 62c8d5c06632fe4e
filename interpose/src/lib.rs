//! The preload library that records the MPI calls of unmodified programs.
