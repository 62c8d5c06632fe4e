//! Errors in the command line, in one line.

use crate::args::Arguments;
use clap::CommandFactory;
use std::ffi::OsString;

/// Shortens the message of the command-line parser for `words`: the error, a suggestion, and where to find
/// help.
pub fn in_one_line(words: &[OsString], said: &str) -> String {
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (what, rest) = said.split_once("\n\n").unwrap_or((said, ""));
    let mut line = joined(what);
    for tip in rest.lines().filter_map(|line| line.trim().strip_prefix("tip: ")) {
        line += &format!("; {}", joined(tip));
    }
    // The message for an invalid value has no usage; its option may belong to any command.
    let known = |word: &&OsString| Arguments::command().find_subcommand(word).is_some();
    match words.get(1).filter(known) {
        Some(command) => format!("{line}; see 'vef {} --help'", command.display()),
        None => format!("{line}; see 'vef --help'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn a_wrong_command_line_is_told_in_one_line() {
        for (words, said) in [
            (
                &["vef", "mix", "--otput", "x"][..],
                "error: unexpected argument '--otput' found; a similar argument exists: '--output'; see 'vef mix --help'",
            ),
            (
                &["vef", "check"],
                "error: the following required arguments were not provided: <TRACE>; see 'vef check --help'",
            ),
            (
                &["vef", "chek"],
                "error: unrecognized subcommand 'chek'; a similar subcommand exists: 'check'; see 'vef --help'",
            ),
            (
                &["vef", "run", "-n", "0", "x"],
                "error: invalid value '0' for '--ranks <N>': 0 is not in 1..=4294967295; see 'vef run --help'",
            ),
            (
                &["vef", "place", "--captured", "DIR", "-n", "3"],
                "error: the argument '--captured <DIR>' cannot be used with '--np <N>'; see 'vef place --help'",
            ),
            (
                &["vef", "mix", "-i", "capture", "-o", "t.vef.gz"],
                "error: invalid value 't.vef.gz' for '--output <OUT>': .gz names a compressed file, which vef does not write: \
                 write to - and a pipe, or write a container (.vefx) and compress it with vef convert --compress; see 'vef mix --help'",
            ),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let Err(error) = Arguments::try_parse_from(&words) else { panic!("it is wrong: {words:?}") };
            assert_eq!(in_one_line(&words, &error.render().to_string()), said);
        }
    }
}
