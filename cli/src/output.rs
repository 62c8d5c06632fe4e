//! What `vef` says: results on stdout, remarks and errors on stderr, JSON where asked.

use crate::args::Arguments;
use clap::CommandFactory;
use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use vef_format::new_file::{NewFile, is_stdout};

/// The exit code for a command line or an input that is wrong.
pub const EXIT_BAD_INPUT: u8 = 2;

/// Any error of a command, already placed by the library that found it.
pub type Failure = Box<dyn Error>;

/// One error on stderr.
pub fn error(error: &Failure) {
    remark(format_args!("error: {}", in_one_line(error)));
}

/// An error in one line: what it is and, where the message itself does not say so, why.
pub fn in_one_line(error: &Failure) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

/// What is wrong with a command line of these words, as its parser says it in several paragraphs: what, what may be
/// meant, and where to read more.
pub fn usage_in_one_line(words: &[OsString], said: &str) -> String {
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (what, rest) = said.split_once("\n\n").unwrap_or((said, ""));
    let mut line = joined(what);
    for tip in rest.lines().filter_map(|line| line.trim().strip_prefix("tip: ")) {
        line += &format!("; {}", joined(tip));
    }
    // A value that is wrong comes without a usage, and its option may be of any command.
    let known = |word: &&OsString| Arguments::command().find_subcommand(word).is_some();
    match words.get(1).filter(known) {
        Some(command) => format!("{line}; see 'vef {} --help'", command.display()),
        None => format!("{line}; see 'vef --help'"),
    }
}

/// A line on stderr that begins with the program's name, in one write: ranks may share the terminal. Nobody may be
/// reading: a failed write is no reason to stop.
pub fn remark(text: impl Display) {
    let _ = io::stderr().write_all(format!("vef: {text}\n").as_bytes());
}

/// Text about a file that was written: on stdout, or on stderr where that file is stdout.
///
/// # Errors
/// As [`result`].
pub fn about(written: &Path, text: impl Display) -> Result<(), Failure> {
    if is_stdout(written) {
        let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
        return Ok(());
    }
    result(text)
}

/// Text on stdout.
///
/// # Errors
/// The write's, so that `vef … > full-disk` does not look like success.
pub fn result(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // A reader that has seen enough (`| head`) is content.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot write to stdout: {error}").into()),
        Ok(()) => Ok(()),
    }
}

/// Text in a file, which is there when it is whole.
///
/// # Errors
/// The system's, with the file's name.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        let new = NewFile::create(path)?;
        new.file().write_all(text.as_bytes())?;
        new.finish()
    };
    write().map_err(|error| format!("{}: {error}", path.display()).into())
}

/// `value` as indented JSON on stdout.
///
/// # Errors
/// As [`result`].
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    result(serde_json::to_string_pretty(value)?)
}

/// `count` with thin groups: `12 345 678`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
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
                "error: invalid value 't.vef.gz' for '--output <OUT>': .gz is of compressed files: write to -, through a pipe, \
                 or a container (.vefx) that vef convert --compress made; see 'vef mix --help'",
            ),
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let Err(error) = Arguments::try_parse_from(&words) else { panic!("it is wrong: {words:?}") };
            assert_eq!(usage_in_one_line(&words, &error.render().to_string()), said);
        }
    }

    #[test]
    fn groups_of_three() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (12_345_678, "12 345 678")] {
            assert_eq!(grouped(count), text);
        }
    }
}
