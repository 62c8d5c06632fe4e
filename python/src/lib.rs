//! The native part of the Python package `vef`: traces as Arrow columns, the replay engine, and the commands of `vef`. The package's
//! Python files (`python/vef/`) are what users import; they add defaults, types and documentation.
//!
//! This crate has no logic of its own: commands run as on the command line (`vef_cli::embedded`), and return their JSON.

use pyo3::prelude::*;

mod errors;

mod columns;
mod replaying;
mod running;
mod traces;

/// The native part of vef; use the package `vef`.
#[pymodule]
mod _vef {
    #[pymodule_export]
    use super::columns::Column;
    #[pymodule_export]
    use super::replaying::{Batch, Message, Replay};
    #[pymodule_export]
    use super::running::execute;
    #[pymodule_export]
    use super::traces::{Records, Stream, Trace};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
