//! Compatible command lines: older tools by link name (`vmpirun`, `vef_mixer`, `traceter`), and `-np N` as in
//! mpirun.
//!
//! | called as | equals |
//! |---|---|
//! | `vmpirun [mpirun's arguments]` | `vef run -- mpirun [mpirun's arguments]`, with the launcher of the program's MPI |
//! | `vef_mixer -i VEFT.main -o out.vef` | `vef mix -i VEFT.main -o out.vef` |
//! | `traceter out.vef` | `vef check out.vef` |

use crate::args::Arguments;
use crate::launch;
use clap::{Arg, CommandFactory};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Translates the command line to that of `vef`.
pub fn translate(mut words: Vec<OsString>) -> Vec<OsString> {
    let name = words.first().and_then(|first| Path::new(first).file_name()).and_then(OsStr::to_str);
    let mut instead: Vec<OsString> = match name {
        Some("vmpirun") => ["vef", "run", "--"].map(Into::into).into(),
        Some("vef_mixer") => ["vef", "mix"].map(Into::into).into(),
        Some("traceter") => ["vef", "check"].map(Into::into).into(),
        _ => return with_np(words),
    };
    if name == Some("vmpirun") {
        instead.push(launch::mpirun_for(&words[1..]));
    }
    words.splice(..1, instead);
    words
}

/// Replaces `-np` before the program by `--np`; clap would parse `-n p`. The program begins at the first word
/// that is neither an option nor the value of one.
fn with_np(mut words: Vec<OsString>) -> Vec<OsString> {
    let arguments = Arguments::command();
    let Some(command) = words.get(1).and_then(|name| arguments.find_subcommand(name)) else { return words };
    let option = |long: &str| {
        let named =
            |option: &&Arg| option.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long));
        command.get_arguments().find(named)
    };
    if option("np").is_none() {
        return words;
    }
    let takes_value = |word: &str| {
        let found = match word.strip_prefix("--") {
            Some(long) => option(long),
            // `-o VALUE`; in `-oVALUE` the value is part of the word.
            None if word.len() == 2 => command.get_arguments().find(|option| {
                option
                    .get_short_and_visible_aliases()
                    .is_some_and(|all| all.iter().any(|&c| word.ends_with(c)))
            }),
            None => None,
        };
        found.is_some_and(|option| option.get_action().takes_values())
    };
    let mut at = 2;
    while let Some(word) =
        words.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-') && *word != "--")
    {
        if word == "-np" {
            words[at] = "--np".into();
            at += 2;
        } else {
            at += if takes_value(word) { 2 } else { 1 };
        }
    }
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
    fn np_is_spelt_as_mpirun_spells_it() {
        for (typed, read) in [
            ("vef run -np 4 -- ./app -np 3", "vef run --np 4 -- ./app -np 3"),
            ("vef run -o dir --mix=t.vef -np 4 ./app -np 3", "vef run -o dir --mix=t.vef --np 4 ./app -np 3"),
            ("vef run --compress -odir -np 4 ./app", "vef run --compress -odir --np 4 ./app"),
            ("vef run --tool -np ./app", "vef run --tool -np ./app"),
            ("vef run mpirun -np 4 ./app", "vef run mpirun -np 4 ./app"),
            ("vef run -- mpirun -np 4 ./app", "vef run -- mpirun -np 4 ./app"),
            ("vef place --hostfile h -np 4 --map-by node", "vef place --hostfile h --np 4 --map-by node"),
            ("vef mix -np 4", "vef mix -np 4"),
            ("vef -np 4", "vef -np 4"),
        ] {
            assert_eq!(translated(typed), read);
        }
    }

    #[test]
    fn the_own_name_changes_nothing() {
        assert_eq!(translated("target/release/vef mix -i a -o b"), "target/release/vef mix -i a -o b");
    }
}
