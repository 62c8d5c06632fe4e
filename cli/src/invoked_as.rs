//! The older tools by link name: `vmpirun`, `vef_mixer`, `traceter` with the flags their users know.
//!
//! | called as | is |
//! |---|---|
//! | `vmpirun [mpirun's arguments]` | `vef run -- mpirun [mpirun's arguments]`, by the launcher of the program's MPI |
//! | `vef_mixer -i VEFT.main -o out.vef` | `vef mix -i VEFT.main -o out.vef` |
//! | `traceter out.vef` | `vef check out.vef` |

use crate::launch;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The command line as `vef` reads it, whatever name the program was called by.
pub fn translate(mut words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|first| Path::new(first).file_name()).and_then(OsStr::to_str);
    let mut instead: Vec<OsString> = match name {
        Some("vmpirun") => ["vef", "run", "--"].map(Into::into).into(),
        Some("vef_mixer") => ["vef", "mix"].map(Into::into).into(),
        Some("traceter") => ["vef", "check"].map(Into::into).into(),
        _ => return words,
    };
    if name == Some("vmpirun") {
        instead.push(launch::mpirun_for(&words[1..]));
    }
    words.splice(..1, instead);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(line: &str) -> String {
        let words = translate(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_str().expect("ascii")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_older_names_become_commands() {
        assert_eq!(translated("/usr/bin/vmpirun -np 4 ./app x"), "vef run -- mpirun -np 4 ./app x");
        assert_eq!(translated("vef_mixer -i VEFT.main -o out.vef"), "vef mix -i VEFT.main -o out.vef");
        assert_eq!(translated("./traceter out.vef"), "vef check out.vef");
    }

    #[test]
    fn the_own_name_changes_nothing() {
        assert_eq!(translated("target/release/vef mix -i a -o b"), "target/release/vef mix -i a -o b");
    }
}
