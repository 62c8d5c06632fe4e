//! End-to-end tests on real MPI runs.
