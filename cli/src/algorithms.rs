//! Which algorithms carry collectives out, as the options of several commands say it.

use crate::output::Failure;

/// A built-in decision table by name, else one from a file.
///
/// # Errors
/// No such table, or what is wrong with the file, placed.
pub fn table(text: &str) -> Result<replay::Table, Failure> {
    if let Some(table) = replay::Table::builtin(text) {
        return Ok(table);
    }
    let file = std::fs::read_to_string(text)
        .map_err(|error| format!("{text}: neither default, openmpi, mpich, nccl nor a file: {error}"))?;
    replay::Table::from_toml(&file).map_err(|error| format!("{text}: {error}").into())
}
