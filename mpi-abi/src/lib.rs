//! MPI without linking MPI: prototypes, ABI tables, run-time look-up.
