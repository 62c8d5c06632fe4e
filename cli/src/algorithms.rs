//! Which algorithms carry collectives out, as the options of several commands say it.

use replay::Table;

/// A built-in decision table by name, else one from a file. The caller names it in an error.
///
/// # Errors
/// There is no such table, or the file is invalid; with the position.
pub fn table(text: &str) -> Result<Table, String> {
    if let Some(table) = Table::builtin(text) {
        return Ok(table);
    }
    let file = std::fs::read_to_string(text)
        .map_err(|error| format!("neither default, openmpi, mpich, nccl nor a file: {error}"))?;
    Table::from_toml(&file).map_err(|error| error.to_string())
}
