//! How often which function was done by which algorithm, and the file that says so.

use collectives::Choice;
use mpi_abi::prototypes::Call;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The file, in the directory of the run.
const FILE: &str = "collectives.txt";

/// Calls counted by function and by how they were done.
#[derive(Default)]
pub(crate) struct Usage(Mutex<BTreeMap<(&'static str, String), u64>>);

impl Usage {
    pub(crate) fn count(&self, call: Call, how: Result<&Choice, &str>) {
        let how = match how {
            Ok(choice) => {
                let mut how = choice.algorithm.name().to_owned();
                if choice.segment > 0 {
                    let _ = write!(how, ":{}", choice.segment);
                }
                if choice.fanout > 0 {
                    let _ = write!(how, "/{}", choice.fanout);
                }
                how
            }
            Err(why) => format!("mpi ({why})"),
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((call.name(), how)).or_default() += 1;
    }

    /// Writes a line for each: calls, function, how.
    pub(crate) fn write(&self, directory: &Path) -> std::io::Result<()> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from("# calls of rank 0, function, done by\n");
        for ((function, how), calls) in counts.iter() {
            let _ = writeln!(text, "{calls} {function} {how}");
        }
        std::fs::create_dir_all(directory)?;
        // Replaced, never written through a link that lies there.
        let path = directory.join(FILE);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => File::create_new(&path)?.write_all(text.as_bytes()),
        }
    }
}
