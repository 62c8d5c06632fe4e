//! Which algorithms carry collectives out, as the options of several commands say it.

use replay::Table;
use std::io::Read;
use vef_format::nearest::did_you_mean;

/// Longest table.
const LONGEST: u64 = 16 << 20;

/// A built-in decision table by name, else one from a file. The caller names it in an error.
///
/// # Errors
/// There is no such table, or the file is invalid; with the position.
pub fn table(text: &str) -> Result<Table, String> {
    if let Some(table) = Table::builtin(text) {
        return Ok(table);
    }
    let mut file = String::new();
    let read = std::fs::File::open(text).and_then(|table| table.take(LONGEST + 1).read_to_string(&mut file));
    let read = read.map_err(|error| {
        let meant = did_you_mean(text, Table::BUILTIN.iter().copied());
        format!("{meant}neither default, openmpi, mpich, nccl nor a file: {error}")
    })?;
    if read as u64 > LONGEST {
        return Err(format!("longer than {LONGEST} bytes"));
    }
    Table::from_toml(&file).map_err(|error| error.to_string())
}
