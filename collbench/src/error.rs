//! What can go wrong while measuring.

use std::path::PathBuf;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// MPI itself.
    #[error(transparent)]
    Mpi(#[from] mpi_abi::Error),
    /// A schedule cannot be made.
    #[error(transparent)]
    Schedule(#[from] collectives::Error),
    /// A setting that makes no sense.
    #[error("{what} {given:?}: {reason}")]
    Setting {
        /// Which one.
        what: &'static str,
        /// As given.
        given: String,
        /// What would be right.
        reason: String,
    },
    /// A timer that must not be used.
    #[error("timer {timer}: {reason}")]
    Timer {
        /// Its name.
        timer: &'static str,
        /// Why not.
        reason: String,
    },
    /// A timer that did not keep time during a measurement.
    #[error(
        "timer {timer} jumped by {jump_ms:+.3} ms against CLOCK_MONOTONIC during the measurement: its times are thrown away"
    )]
    Jumped {
        /// Its name.
        timer: &'static str,
        /// The largest jump of a rank.
        jump_ms: f64,
    },
    /// The self-test of timer and method failed.
    #[error(
        "self-test {test}: measured {measured_us:.3} µs instead of {truth_us:.3} µs; results of this method would be wrong by as much"
    )]
    SelfTest {
        /// Its name.
        test: &'static str,
        /// What came out.
        measured_us: f64,
        /// What should have.
        truth_us: f64,
    },
    /// A collective that gave a wrong result.
    #[error(
        "{subject}: rank {rank}, element {element} of the result is {found} instead of {expected}: not timed"
    )]
    Wrong {
        /// Operation and algorithm.
        subject: String,
        /// Where.
        rank: u32,
        /// Which element.
        element: usize,
        /// What was there.
        found: f64,
        /// What should have been.
        expected: f64,
    },
    /// The window method has next to no runs that started and ended in time.
    #[error("the window method collapsed: {good} of {runs} runs started and ended in time ({why})")]
    Collapsed {
        /// Runs that can be used.
        good: usize,
        /// Runs made.
        runs: usize,
        /// The likely reason.
        why: String,
    },
    /// More memory than there is.
    #[error("{bytes} bytes of buffers on this host, {available} bytes are free")]
    Memory {
        /// What the buffers would take.
        bytes: u64,
        /// What there is.
        available: u64,
    },
    /// A library of the user's.
    #[error("{}: {reason}", path.display())]
    Library {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A function of a library of the user's failed, perhaps at this rank only.
    #[error("{}: {reason}", path.display())]
    LibraryCall {
        /// The file.
        path: PathBuf,
        /// Which function, and what it returned.
        reason: String,
    },
    /// An operation of the user's that found its own result wrong.
    #[error("{subject}: rank {rank}: {reason}: not timed")]
    Check {
        /// Its name.
        subject: String,
        /// Where.
        rank: usize,
        /// What it says.
        reason: String,
    },
    /// A file.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Measurements from which no parameter can be had.
    #[error("calibration: {0}")]
    Calibration(String),
    /// A picture.
    #[error("plot: {0}")]
    Plot(String),
    /// The simulation.
    #[error("simulation: {0}")]
    Simulation(String),
}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
