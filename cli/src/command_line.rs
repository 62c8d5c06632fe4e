//! The command line as words: names of older tools, `-np N` as in mpirun, and errors in one line.
//!
//! | called as | equals |
//! |---|---|
//! | `vmpirun [mpirun's arguments]` | `vef run -- mpirun [mpirun's arguments]`, with the launcher of the program's MPI |
//! | `vef_mixer -i VEFT.main -o out.vef` | `vef mix -i VEFT.main -o out.vef` |
//! | `traceter out.vef` | `vef check out.vef` |

use crate::commands::{Command, Vef};
use crate::launch;
use crate::output;
use crate::repeated;
use crate::session;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches};
use replay::Part;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use vef_format::nearest::nearest;

/// Parses the words of the command line. Prints help and version, on request or without a command, and exits.
///
/// # Errors
/// The error in one line.
pub fn parse(words: Vec<OsString>) -> Result<Command, String> {
    let words = repeated::expanded(translate(words), |name| Vef::command().find_subcommand(name).cloned())?;
    if let Some(apart) = value_apart(&words) {
        return Err(in_one_line(&words, &apart));
    }
    let wrong = |error: clap::Error| {
        let is_help =
            !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
        if is_help && !session::is_embedded() {
            error.exit();
        }
        in_one_line(&words, &rendered(&words, &error))
    };
    let vef = Vef::in_paragraphs();
    let matches = vef.clone().try_get_matches_from(&words).map_err(wrong)?;
    output::keep_inputs(&vef, &matches).map_err(|error| format!("error: {error}"))?;
    Vef::from_arg_matches(&matches).map(|vef| vef.command).map_err(wrong)
}

/// Translates the command line to that of `vef`.
fn translate(mut words: Vec<OsString>) -> Vec<OsString> {
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

/// Replaces `-np` before the program by `--np`; clap would parse `-n p`. Divides `-n4` into `-n 4`, which clap would take for the program
/// of `vef run`. The program begins at the first word that is neither an option nor the value of one.
fn with_np(mut words: Vec<OsString>) -> Vec<OsString> {
    let arguments = Vef::command();
    let Some(command) = words.get(1).and_then(|name| arguments.find_subcommand(name)) else { return words };
    let option = |long: &str| {
        let named =
            |option: &&Arg| option.get_long_and_visible_aliases().is_some_and(|all| all.contains(&long));
        command.get_arguments().find(named)
    };
    if option("np").is_none() {
        return words;
    }
    let takes_value = |option: &Arg| option.get_action().takes_values();
    let is_short = |option: &&Arg, letter: char| {
        option.get_short_and_visible_aliases().is_some_and(|all| all.contains(&letter))
    };
    let mut at = 2;
    while let Some(word) =
        words.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-') && *word != "--")
    {
        if word == "-np" {
            words[at] = "--np".into();
            at += 2;
            continue;
        }
        if let Some(long) = word.strip_prefix("--") {
            at += if option(long).is_some_and(takes_value) { 2 } else { 1 };
            continue;
        }
        let letter = word.chars().nth(1);
        let found = letter.and_then(|letter| command.get_arguments().find(|option| is_short(option, letter)));
        let Some(letter) = letter.filter(|_| found.is_some_and(takes_value)) else {
            at += 1;
            continue;
        };
        let value = word[1 + letter.len_utf8()..].to_owned();
        if !value.is_empty() {
            words[at] = format!("-{letter}").into();
            words.insert(at + 1, value.trim_start_matches('=').into());
        }
        at += 2;
    }
    words
}

/// What the command-line parser says, with the nearest name as a tip where it knows none.
fn rendered(words: &[OsString], error: &clap::Error) -> String {
    let said = error.render().to_string();
    let strings = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => vec![one.clone()],
        Some(ContextValue::Strings(all)) => all.clone(),
        _ => Vec::new(),
    };
    let (what, given, known) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let mut command = Vef::command();
            for word in words.iter().skip(1) {
                let Some(below) = command.find_subcommand(word) else { break };
                command = below.clone();
            }
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            let known: Vec<String> = shown.map(|command| command.get_name().to_owned()).collect();
            ("subcommand", strings(ContextKind::InvalidSubcommand), known)
        }
        ErrorKind::InvalidValue => {
            ("value", strings(ContextKind::InvalidValue), strings(ContextKind::ValidValue))
        }
        _ => return said,
    };
    let meant = given.first().and_then(|given| nearest(given, known.iter().map(String::as_str)));
    match meant.filter(|_| !said.contains("tip: ")) {
        Some(meant) => format!("{said}\n\n  tip: a similar {what} exists: '{meant}'"),
        None => said,
    }
}

/// Shortens the message of the command-line parser for `words`: the error, a suggestion, and where to find
/// help.
fn in_one_line(words: &[OsString], said: &str) -> String {
    let is_unexpected = said.contains("unexpected argument '-");
    let line = match negative_value(words).filter(|_| is_unexpected) {
        Some((option, value)) => {
            format!("error: invalid value '{value}' for '{option}': must not be negative")
        }
        None => one_line(said),
    };
    let line = match line.strip_suffix("required arguments were not provided: --sweep <OPTION=VALUES>") {
        Some(_) => {
            format!("{line} (without it, --report FILE.html writes a page, and --json prints the result)")
        }
        None => line,
    };
    // The message for an invalid value has no usage; its option may belong to any command.
    let known = |word: &&OsString| Vef::command().find_subcommand(word).is_some();
    match words.get(1).filter(known) {
        Some(command) => format!("{line}; see 'vef {} --help'", command.display()),
        None => format!("{line}; see 'vef --help'"),
    }
}

/// An option and the word behind it, if that begins like a negative number: to the parser it is an option, too.
fn negative_value(words: &[OsString]) -> Option<(&str, &str)> {
    let words: Vec<&str> = words.iter().map_while(|word| word.to_str()).collect();
    let is_negative = |word: &str| {
        word.strip_prefix('-').is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
    };
    let pair = words.windows(2).find(|pair| {
        pair[0].len() > 2 && pair[0].starts_with("--") && !pair[0].contains('=') && is_negative(pair[1])
    })?;
    Some((pair[0], pair[1]))
}

/// What is wrong with a value behind a blank of an option that may be without one, and takes it behind = alone: to the parser it is an
/// argument of its own. A file of that name is meant as such.
fn value_apart(words: &[OsString]) -> Option<String> {
    let vef = Vef::command();
    let command = vef.find_subcommand(words.get(1)?)?;
    let behind = words.iter().take_while(|word| *word != "--").collect::<Vec<_>>();
    behind.windows(2).find_map(|pair| {
        let name = pair[0].to_str()?.strip_prefix("--")?;
        let option = command.get_arguments().find(|option| option.get_long() == Some(name))?;
        let is_value = name == "iterations" && Part::iterations(pair[1].to_str()?).is_ok();
        let apart = option.is_require_equals_set() && is_value && !Path::new(pair[1]).exists();
        let value = pair[1].display();
        apart.then(|| format!("error: --{name} takes its value behind =: write --{name}={value}"))
    })
}

/// What Rust's library says of a number that it cannot read, and what is said instead.
const NUMBERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "not a whole number"),
    ("cannot parse integer from empty string", "not a whole number"),
    ("number too large to fit in target type", "too large"),
    ("number would be zero for non-zero type", "must be at least 1"),
    ("invalid float literal", "not a number"),
];

/// What clap says, with its tips, without the usage.
pub fn one_line(said: &str) -> String {
    let joined = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = NUMBERS.iter().fold(text, |text, (said, instead)| text.replace(said, instead));
        range_in_words(&text).unwrap_or(text)
    };
    let (what, rest) = said.split_once("\n\n").unwrap_or((said, ""));
    let mut line = joined(what);
    for tip in rest.lines().filter_map(|line| line.trim().strip_prefix("tip: ")) {
        line += &format!("; {}", joined(tip));
    }
    line
}

/// What clap says of a number that is out of range, such as `0 is not in 1..=65535`, of which the end may be that of the type alone.
fn range_in_words(said: &str) -> Option<String> {
    let (before, range) = said.split_once(" is not in ")?;
    let (before, _) = before.rsplit_once(' ')?;
    let (least, most) = range.split_once("..=")?;
    let most: u64 = most.parse().ok()?;
    Some(match [u16::MAX.into(), u32::MAX.into(), i64::MAX as u64, u64::MAX].contains(&most) {
        true => format!("{before} must be at least {least}"),
        false => format!("{before} must be from {least} to {most}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

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
            ("vef run --compress -odir -np 4 ./app", "vef run --compress -o dir --np 4 ./app"),
            ("vef run -n4 ./app -n5", "vef run -n 4 ./app -n5"),
            ("vef run -n=4 -- ./app", "vef run -n 4 -- ./app"),
            ("vef run -- mpirun -n4 ./app", "vef run -- mpirun -n4 ./app"),
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
    fn numbers_are_refused_in_words() {
        for (words, why) in [
            ("vef gen ring -n 4x -o t", "'4x' for '--ranks <N>': not a whole number; see 'vef gen --help'"),
            ("vef sim t --vcs 99999999999", "too large; see 'vef sim --help'"),
            ("vef mix -i t -o u -j 1.5", "not a whole number; see 'vef mix --help'"),
        ] {
            let words = words.split(' ').map(OsString::from).collect();
            let error = parse(words).err().expect("a number that is none");
            assert!(error.ends_with(why), "{error}");
        }
    }

    #[test]
    fn the_own_name_changes_nothing() {
        assert_eq!(translated("target/release/vef mix -i a -o b"), "target/release/vef mix -i a -o b");
    }

    /// What is said of an invalid value.
    fn invalid_value(words: &[&str]) -> Option<String> {
        let error = Vef::try_parse_from(["vef"].iter().chain(words)).err()?;
        let is_value = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
        is_value.then(|| error.to_string())
    }

    #[test]
    fn an_invalid_value_is_named_once() {
        const WRONG: &str = "wr%ong";
        let mut refused_values = 0;
        let mut commands: Vec<(Vec<String>, clap::Command)> = vec![(Vec::new(), Vef::command())];
        while let Some((words, command)) = commands.pop() {
            for option in command.get_opts().filter_map(|option| option.get_long()) {
                let option = format!("--{option}={WRONG}");
                let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
                words.push(&option);
                let Some(error) = invalid_value(&words) else { continue };
                refused_values += 1;
                assert_eq!(error.matches(WRONG).count(), 1, "{error}");
            }
            let below = |inner: &clap::Command| {
                let name = std::iter::once(inner.get_name().to_owned());
                (words.iter().cloned().chain(name).collect(), inner.clone())
            };
            commands.extend(command.get_subcommands().map(below));
        }
        assert!(refused_values > 100, "{refused_values} options with values that are checked");
        // Wrong behind a right beginning.
        for words in [
            "sim t --topology=torus:4xW",
            "sim t --topology=dragonfly:2x4x2x8",
            "sim t --bandwidth=10W",
            "sim t --bandwidth=0G",
            "sim t --latency=0.1ps",
            "sim t --loggp=L=W",
            "sim t --send-completion=rendezvous:W",
            "sim t --same-node=1us,W",
            "place --map-by=ppr:0:node",
            "place --map-by=ppr:W",
            "place --map-by=ppr:1:W",
            "place --map-by=node:W",
            "place --rank-by=core:W",
            "place --nodelist=a[1-W]",
            "place --slots=4,W",
            "place --distribution=plane=0",
            "bench coll --sizes=8:64:W",
            "bench coll --method=window:W",
            "bench coll --factors=random:W",
            "run --max-size=1W x",
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            let value =
                words.iter().find_map(|word| word.strip_prefix("--")?.split_once('=')).expect("a value").1;
            let error = invalid_value(&words).unwrap_or_else(|| panic!("it is wrong: {words:?}"));
            assert_eq!(error.matches(value).count(), 1, "{error}");
        }
    }

    #[test]
    fn iterations_behind_a_blank_are_told_apart_from_traces() {
        let told = |line: &str| value_apart(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let says = "error: --iterations takes its value behind =: write --iterations=2-4";
        for line in [
            "vef sim t.vefx --iterations 2-4",
            "vef sim --iterations 2-4 t.vefx",
            "vef stats --iterations 2-4 t",
        ] {
            assert_eq!(told(line).as_deref(), Some(says), "{line}");
        }
        for line in [
            "vef sim t --iterations=2-4",
            "vef sim --iterations t",
            "vef gen ring --iterations 20",
            "vef sim t --iterations",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_told_in_one_line() {
        for (words, said) in [
            (
                &["vef", "mix", "--otput", "x"][..],
                "error: unexpected argument '--otput' found; a similar argument exists: '--output'; see 'vef mix --help'",
            ),
            (
                &["vef", "sim", "t.vef", "--latency", "-1us"],
                "error: invalid value '-1us' for '--latency': must not be negative; see 'vef sim --help'",
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
                &["vef", "smi", "t.vef"],
                "error: unrecognized subcommand 'smi'; a similar subcommand exists: 'sim'; see 'vef --help'",
            ),
            (
                &["vef", "bench", "tere"],
                "error: unrecognized subcommand 'tere'; a similar subcommand exists: 'tree'; see 'vef bench --help'",
            ),
            (
                &["vef", "export", "t.vef", "--to", "GOAL", "-o", "t"],
                "error: invalid value 'GOAL' for '--to <FORMAT>' [possible values: goal, goal-bin, otf2, ti, chakra]; a similar value exists: \
                 'goal'; see 'vef export --help'",
            ),
            (
                &["vef", "run", "-n", "0", "x"],
                "error: invalid value '0' for '--ranks <N>': must be at least 1; see 'vef run --help'",
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
            let Err(error) = Vef::try_parse_from(&words) else { panic!("it is wrong: {words:?}") };
            assert_eq!(in_one_line(&words, &rendered(&words, &error)), said);
        }
    }
}
