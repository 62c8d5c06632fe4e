//! Benchmarks: criterion and whole programs, and the workloads they run on.

pub mod limit;
pub mod memory;
pub mod preload;
pub mod processor;
pub mod traces;
pub mod workload;
