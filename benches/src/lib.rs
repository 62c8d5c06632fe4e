//! Benchmarks: criterion and whole programs.
