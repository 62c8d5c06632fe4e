//! Output: results on stdout, remarks and errors on stderr, JSON on request, files.
//!
//! One rule holds for the files that any command writes. An argument that names one has the type [`Written`], or [`WrittenDirectory`];
//! any other argument that names a file is an input, which [`keep_inputs`] protects before the command begins. The file is made by
//! [`NewFile`]: complete or not at all, and never through a link of another user.

use crate::session;
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, ValueHint};
use results::captured::too_few_cores;
use std::any::TypeId;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::ops::{Deref, Range};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use vef_format::nearest::did_you_mean;
use vef_format::new_file::{NewFile, is_stdout};
use vef_format::units::Printable;

/// Exit code for an invalid command line or input.
pub const EXIT_BAD_INPUT: u8 = 2;

/// An error of a command; the library has added file and position.
pub type Failure = Box<dyn Error>;

/// Prints one error on stderr.
pub fn error(error: &Failure) {
    remark(format_args!("error: {}", in_one_line(error)));
}

/// Whether an output could not be written because it is a pipe on stdout that nobody reads any more.
pub fn is_closed_stdout(error: &Failure) -> bool {
    let text = in_one_line(error);
    text.contains("stdout")
        && text.ends_with(&io::Error::from_raw_os_error(rustix::io::Errno::PIPE.raw_os_error()).to_string())
}

/// An error in one line, with its causes unless the message has them.
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

/// Prints a line with the program's name on stderr, in one write, as ranks may share the terminal. Control characters, say of a file's
/// name, are escaped; line breaks, too, unless an indented line of the message follows. A failed write is ignored.
pub fn remark(text: impl Display) {
    let text = Printable(&text.to_string()).to_string();
    let text = text.replace('\n', "\\n").replace("\\n  ", "\n  ");
    let line = shortened(text);
    if session::keep_remark(&line) {
        return;
    }
    let _ = io::stderr().write_all(format!("vef: {line}\n").as_bytes());
}

/// A text without its middle if it is longer than a screen, say of a name that is no file's.
fn shortened(text: String) -> String {
    const BEGIN: usize = 1500;
    const END: usize = 500;
    let length = text.chars().count();
    if length <= 2 * (BEGIN + END) {
        return text;
    }
    let begin: String = text.chars().take(BEGIN).collect();
    let end: String = text.chars().skip(length - END).collect();
    format!("{begin} … ({} characters) … {end}", length - BEGIN - END)
}

/// Prints an error that all ranks of a benchmark have alike, at the first rank. The others wait: a launcher may end all ranks as soon as
/// one has failed. MPI is not initialised yet.
pub fn error_of_all_ranks(text: impl Display) {
    let variables = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let rank = variables.iter().find_map(|name| std::env::var(name).ok());
    match rank.is_none_or(|rank| rank == "0") {
        true => remark(text),
        false => std::thread::sleep(Duration::from_millis(200)),
    }
}

/// Warns of hosts of the capture or trace `name` with more ranks than cores.
pub fn oversubscribed(name: &Path, hosts: impl IntoIterator<Item = impl Display>) {
    if let Some(warning) = too_few_cores(hosts) {
        remark(format_args!("warning: {}: {warning}", name.display()));
    }
}

/// Names the tasks that the program spawned, and warns of spawned worlds that are not part of the capture.
pub fn spawned(worlds: &[(String, Range<u32>)], left_out: &[(PathBuf, String)]) {
    if let [(_, first), ..] = worlds
        && let Some((_, last)) = worlds.last()
    {
        let (first, last) = (first.start, last.end - 1);
        let which =
            if first == last { format!("task {first} was") } else { format!("tasks {first} to {last} were") };
        remark(format_args!("{which} spawned by the program"));
    }
    for (directory, why) in left_out {
        remark(format_args!("warning: {} is not part of the capture: {why}", directory.display()));
    }
}

/// Warns of tasks that stand for storage servers or network interfaces in a trace that does not say so: what reads it takes them for ranks.
pub fn plain_tasks(trace: impl Display, tasks: Range<u32>) {
    let which = match tasks.len() {
        0 => return,
        1 => format!("task {} stands", tasks.start),
        _ => format!("tasks {} to {} stand", tasks.start, tasks.end - 1),
    };
    remark(format_args!(
        "warning: {trace}: {which} for storage servers or network interfaces; without a container's notes of that they count as ranks, each with a \
         node of its own unless it is placed (vef sim --placement FILE, with the node of each task; docs/mixing.md)"
    ));
}

/// Warns of what the trace lacks of the captured run.
pub fn lacks(what: impl Iterator<Item = impl Display>) {
    for what in what {
        remark(format_args!("warning: not in the trace: {what}"));
    }
}

/// Prints text about a written file: on stdout, or on stderr if that file is stdout.
///
/// # Errors
/// As [`result`].
pub fn about(written: &Path, text: impl Display) -> Result<(), Failure> {
    if is_stdout(written) && !session::is_embedded() {
        let _ = io::stderr().write_all(format!("{}\n", Printable(&text.to_string())).as_bytes());
        return Ok(());
    }
    result(text)
}

/// Prints text on stdout; control characters, say of a program's name, are escaped if that is a terminal.
///
/// # Errors
/// A failed write, so that `vef … > full-disk` fails.
pub fn result(text: impl Display) -> Result<(), Failure> {
    let text = text.to_string();
    if session::keep_result(&text) {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    let text = if out.is_terminal() { Printable(&text).to_string() } else { text };
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // A closed pipe (`| head`) is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot write to stdout: {error}").into()),
        Ok(()) => Ok(()),
    }
}

/// Whether a table on stdout has bars: a terminal shows them.
pub fn shows_bars() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    io::stdout().is_terminal() && !plain
}

/// Checks before long work that the result can be written at `path`. Leaves no file.
///
/// # Errors
/// That of the system, with the name of the file.
pub fn can_be_written(path: &Path) -> Result<(), Failure> {
    // Do not open a pipe twice: its reader would see the end of file.
    if is_stdout(path) || fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(());
    }
    match NewFile::create(path) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

/// Refuses a command line with an output that is also one of its inputs, a file of a capture that is one, or another output.
///
/// # Errors
/// The output, in one line.
pub fn keep_inputs(command: &clap::Command, matches: &ArgMatches) -> Result<(), Failure> {
    if let Some((name, below)) = matches.subcommand() {
        let command = command.find_subcommand(name).ok_or("unknown command")?;
        return keep_inputs(command, below);
    }
    let is = |argument: &Arg, kind: TypeId| argument.get_value_parser().type_id() == kind;
    // The arguments of a program that is run are its own, and names of other things are no files.
    let ours = |argument: &&Arg| {
        !argument.is_trailing_var_arg_set()
            && !argument.is_last_set()
            && argument.get_value_hint() != ValueHint::Other
    };
    let given = |argument: &Arg| {
        matches
            .get_raw(argument.get_id().as_str())
            .into_iter()
            .flatten()
            .map(OsStr::to_owned)
            .collect::<Vec<_>>()
    };
    let (mut outputs, mut inputs) = (Vec::new(), Vec::new());
    for argument in command.get_arguments().filter(ours) {
        if is(argument, TypeId::of::<Written>()) {
            outputs.extend(given(argument).into_iter().filter(|path| path != "-").map(PathBuf::from));
        } else if !is(argument, TypeId::of::<WrittenDirectory>()) && argument.get_possible_values().is_empty()
        {
            inputs.extend(given(argument).iter().flat_map(|value| paths_in(value)));
        }
    }
    for (number, output) in outputs.iter().enumerate() {
        is_no_input(output, inputs.iter().map(PathBuf::as_path))?;
        if let Some(other) = outputs[..number].iter().find(|other| is_same(other, output)) {
            return Err(twice(other));
        }
    }
    Ok(())
}

/// The paths that a value may hold: itself, and its parts, as in `file:PATH`, `placement=PATH,PATH`.
fn paths_in(value: &OsStr) -> Vec<PathBuf> {
    let bytes = value.as_bytes();
    let is_separator = |byte: &u8| b",|=: ".contains(byte);
    // A path itself may have separators: also what is behind each of the first.
    let behind = (0..bytes.len()).filter(|&at| is_separator(&bytes[at])).take(16).map(|at| &bytes[at + 1..]);
    let parts = bytes.split(is_separator).take(4096);
    let all = std::iter::once(bytes).chain(behind).chain(parts);
    all.filter(|path| !path.is_empty()).map(|path| OsStr::from_bytes(path).into()).collect()
}

fn twice(path: &Path) -> Failure {
    format!("{}: named twice; each result needs a file of its own", path.display()).into()
}

/// Checks that a result at `path` would replace none of the `inputs`, nor a file of a capture that is one.
///
/// # Errors
/// `path` is one of them, or in one.
pub fn is_no_input<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    let number = |path: &Path| {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((file.dev(), file.ino()))
    };
    let Some(there) = number(path).filter(|_| !is_stdout(path)) else { return Ok(()) };
    let is_read = |input: &Path| {
        let files = fs::read_dir(input).into_iter().flatten().flatten().map(|file| file.path());
        number(input) == Some(there)
            || files.filter(|file| number(file) == Some(there)).any(|file| !is_trace(&file))
    };
    match inputs.into_iter().any(is_read) {
        true => Err(format!("{}: the output is an input, too; choose another name", path.display()).into()),
        false => Ok(()),
    }
}

/// Whether a file begins like a trace, or is empty.
fn is_trace(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(4).read_to_end(&mut begin));
    read.is_err() || matches!(&begin[..], b"" | b"VEF2" | b"VEF3" | b"VEFX")
}

/// Checks before long work that results can be written at these paths: that none replaces an input, that no two are one file, and that
/// none is `-`, unless it is `/dev/stdout`.
///
/// # Errors
/// One of them cannot, or that of the system.
pub fn can_all_be_written(outputs: &[&Path], inputs: &[&Path]) -> Result<(), Failure> {
    for (number, output) in outputs.iter().enumerate() {
        if *output == Path::new("-") {
            return Err("-: only the result goes to the standard output; name a file".into());
        }
        is_no_input(output, inputs.iter().copied())?;
        if !is_stdout(output) && outputs[..number].iter().any(|other| is_same(other, output)) {
            return Err(twice(output));
        }
        can_be_written(output)?;
    }
    Ok(())
}

/// Whether two paths lead to one file, which need not exist.
fn is_same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        path.canonicalize().ok().or_else(|| Some(parent.canonicalize().ok()?.join(path.file_name()?)))
    };
    a == b || place(a).is_some_and(|there| place(b) == Some(there))
}

/// Writes files, each atomically; none is replaced unless all can be written.
///
/// # Errors
/// That of the system, with the name of the file.
pub fn files<P: AsRef<Path>, C: AsRef<[u8]>>(files: &[(P, C)]) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| -> Failure { format!("{}: {error}", path.display()).into() };
    let complete = |(path, contents): &(P, C)| {
        let new = NewFile::create(path.as_ref())?;
        new.file().write_all(contents.as_ref())?;
        Ok(new)
    };
    let mut all = Vec::new();
    for file in files {
        all.push((file.0.as_ref(), complete(file).map_err(|error| failed(file.0.as_ref(), error))?));
    }
    all.into_iter().try_for_each(|(path, new)| new.finish().map_err(|error| failed(path, error)))
}

/// Writes text to a file, atomically.
///
/// # Errors
/// That of the system, with the name of the file.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    files(&[(path, text)])
}

/// Prints `value` as indented JSON.
///
/// # Errors
/// As [`result`].
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    result(serde_json::to_string_pretty(value)?)
}

/// The name of a file to write, as an argument; `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written(PathBuf);

/// Suffixes of files that `vef` writes, apart from those of three letters that others have, too.
const OURS: [&str; 9] = ["vefx", "html", "pdf", "svg", "json", "csv", "toml", "pftrace", "goal"];
/// The suffixes of timelines.
pub const TIMELINE: &[&str] = &["pftrace", "json"];
/// What a timeline is.
pub const TIMELINE_ADVICE: &str =
    "a timeline is a .pftrace, or a .json, which ui.perfetto.dev shows; vef report writes a page";

/// The name of a directory to write to, as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenDirectory(PathBuf);

impl Written {
    /// Any name, as given.
    pub fn any() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|text| match text.is_empty() {
            true => Err("a file's name is not empty"),
            false => Ok(Self(text.into())),
        })
    }

    /// The result of a command: `-` is standard output. Refuses suffixes of compressed files.
    pub fn result() -> impl TypedValueParser<Value = Self> {
        Self::any().try_map(Self::uncompressed)
    }

    /// A trace.
    pub fn trace() -> impl TypedValueParser<Value = Self> {
        const ADVICE: &str = "a trace is .vefx (a container) or .vef (text); vef report and vef timeline show one, vef export writes those \
                              of other tools";
        Self::trace_of(&["vefx", "vef", "txt"], ADVICE)
    }

    /// A trace in text.
    pub fn text() -> impl TypedValueParser<Value = Self> {
        Self::trace_of(&["vef", "txt"], "--repair writes text, FILE.vef; vef convert makes a container of it")
    }

    /// Refuses a file that exists and is no trace: it is not replaced by a slip of the keyboard.
    fn trace_of(
        suffixes: &'static [&'static str],
        advice: &'static str,
    ) -> impl TypedValueParser<Value = Self> {
        Self::result().try_map(move |path| match path.is_file() && !is_stdout(&path) && !is_trace(&path) {
            true => Err("the file exists and is no trace: remove it, or choose another name".to_owned()),
            false => path.of_kind(suffixes, advice),
        })
    }

    /// A timeline; `-` is standard output.
    pub fn timeline() -> impl TypedValueParser<Value = Self> {
        Self::result().try_map(|path| path.of_kind(TIMELINE, TIMELINE_ADVICE))
    }

    /// A file with one of these suffixes, or of no known kind; `advice` says what is written.
    pub fn kind(
        suffixes: &'static [&'static str],
        advice: &'static str,
    ) -> impl TypedValueParser<Value = Self> {
        Self::any().try_map(move |path| path.of_kind(suffixes, advice))
    }

    /// The file, unless its suffix promises another kind of file than those of `suffixes`, or is one of these, or of [`OURS`], misspelt.
    ///
    /// # Errors
    /// The suffix that is meant, and `advice`, which says what is written.
    fn of_kind(self, suffixes: &[&str], advice: &str) -> Result<Self, String> {
        const KINDS: [&str; 13] =
            ["png", "jpg", "htm", "md", "txt", "yaml", "yml", "dot", "vef", "bin", "et", "otf2", "ti"];
        let suffix = &*self.suffix();
        // Any kind of file here may be called a trace.
        if suffixes.contains(&suffix) || suffix == "trace" {
            return Ok(self);
        }
        let is_kind = KINDS.iter().chain(&OURS).any(|kind| *kind == suffix);
        let mut meant = did_you_mean(suffix, suffixes.iter().copied());
        if meant.is_empty() && !is_kind {
            meant = did_you_mean(suffix, OURS);
        }
        match meant.is_empty() && !is_kind {
            true => Ok(self),
            false => Err(format!("{meant}{advice}")),
        }
    }

    /// Refuses a suffix of another kind, where other arguments say the kind.
    ///
    /// # Errors
    /// The name, with the suffix that is meant, and `advice`.
    pub fn check_kind(&self, suffixes: &[&str], advice: &str) -> Result<(), Failure> {
        let wrong = |error| format!("{}: {error}", self.display()).into();
        self.clone().of_kind(suffixes, advice).map(drop).map_err(wrong)
    }

    /// What follows the last point of the name, in lower case.
    pub fn suffix(&self) -> String {
        self.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default().to_lowercase()
    }

    fn uncompressed(self) -> Result<Self, String> {
        const COMPRESSED: [&str; 7] = ["gz", "zst", "xz", "bz2", "lz4", "zip", "Z"];
        if self.as_os_str() == "-" {
            return Ok(Self("/dev/stdout".into()));
        }
        let suffix = self.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        match COMPRESSED.contains(&suffix) && fs::metadata(&*self).map_or(true, |there| there.is_file()) {
            true => Err(format!(
                ".{suffix} names a compressed file, which vef does not write: write to - and a pipe, or write a container \
                 (.vefx) and compress it with vef convert --compress"
            )),
            false => Ok(self),
        }
    }
}

impl WrittenDirectory {
    /// Any name but that of a file.
    pub fn any() -> impl TypedValueParser<Value = Self> {
        Self::of_checked(Ok)
    }

    /// A directory that is there, or a new one without the suffix of a file; `advice` says what is written.
    pub fn of(advice: &'static str) -> impl TypedValueParser<Value = Self> {
        Self::of_checked(|path| path.of_kind(&[], advice))
    }

    /// A directory that is there, or a name that passes `check`.
    fn of_checked(
        check: impl Fn(Written) -> Result<Written, String> + Clone + Send + Sync + 'static,
    ) -> impl TypedValueParser<Value = Self> {
        Written::any().try_map(move |path| match (path.is_dir(), path.is_file()) {
            (true, _) => Ok(Self(path.0)),
            (false, true) => Err("a file of this name exists, and it must be a directory".to_owned()),
            (false, false) => check(path).map(|Written(path)| Self(path)),
        })
    }
}

impl Deref for Written {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

impl Deref for WrittenDirectory {
    type Target = PathBuf;

    fn deref(&self) -> &PathBuf {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Vef;
    use clap::builder::Resettable;
    use clap::{Command, CommandFactory, Id};
    use std::ffi::OsString;

    /// All arguments with the type `PathBuf`, by command: those that name inputs, and programs that are started. An output has the type
    /// [`Written`], and a test in `tests/tests/outputs.rs` for inputs that are not plain paths.
    const INPUTS: &[(&str, &[&str])] = &[
        ("run", &["tools"]),
        ("mix", &["capture", "input", "op_codes"]),
        ("check", &["trace", "groups", "op_codes"]),
        ("stats", &["trace", "op_codes"]),
        ("report", &["input", "sim", "against", "op_codes"]),
        (
            "sim",
            &["trace", "others", "arrivals", "calibration", "op_codes", "mpich_library", "cost", "again"],
        ),
        ("traffic", &["again"]),
        ("timeline", &["input", "op_codes"]),
        ("convert", &["from", "op_codes"]),
        ("import", &["files", "groups"]),
        ("export", &["trace", "op_codes"]),
        ("cat", &["traces", "op_codes"]),
        ("cut", &["trace", "op_codes"]),
        ("place", &["hostfile", "hwloc", "rankfile", "captured", "optimise"]),
        ("text", &["directory"]),
        ("profile", &["directory"]),
        ("bench coll", &["libraries"]),
        ("bench check", &["files", "calibration"]),
        ("bench plot", &["files", "simulated"]),
    ];

    fn each_command<'a>(path: &str, command: &'a Command, each: &mut impl FnMut(&str, &'a Command)) {
        let below: Vec<&Command> = command.get_subcommands().collect();
        for command in &below {
            each_command(&format!("{path} {}", command.get_name()), command, each);
        }
        if below.is_empty() {
            each(path.trim_start(), command);
        }
    }

    fn of_type<T: 'static>(command: &Command) -> Vec<&Arg> {
        let is = |argument: &&Arg| argument.get_value_parser().type_id() == TypeId::of::<T>();
        command.get_arguments().filter(is).collect()
    }

    #[test]
    fn every_path_is_an_input_or_written() {
        let vef = Vef::command();
        each_command("", &vef, &mut |path, command| {
            let known = INPUTS.iter().find(|(name, _)| *name == path).map_or(&[][..], |(_, inputs)| inputs);
            let found: Vec<&str> =
                of_type::<PathBuf>(command).iter().map(|argument| argument.get_id().as_str()).collect();
            assert_eq!(found, known, "{path}");
        });
    }

    /// Every output of every command against every input of it that is a path.
    #[test]
    fn no_output_of_any_command_is_an_input() {
        let file = tempfile::Builder::new().suffix(".vef").tempfile().expect("a file");
        let name = file.path().as_os_str();
        let (vef, mut pairs) = (Vef::command(), 0);
        each_command("", &vef, &mut |path, command| {
            for output in of_type::<Written>(command) {
                for input in of_type::<PathBuf>(command) {
                    let alone = |argument: &Arg| {
                        let alone = argument.clone().required(false).index(Resettable::Reset);
                        let alone =
                            alone.conflicts_with(Resettable::<Id>::Reset).requires(Resettable::<Id>::Reset);
                        let alone = alone.required_unless_present(Resettable::<Id>::Reset);
                        alone.long(argument.get_id().clone())
                    };
                    // A trace's name, which a picture has not.
                    let written = alone(output).value_parser(Written::any());
                    let only = Command::new("vef").args([written, alone(input)]);
                    let option = |argument: &Arg| OsString::from(format!("--{}", argument.get_id()));
                    let words = ["vef".into(), option(input), name.into(), option(output), name.into()];
                    let matches = only.clone().try_get_matches_from(words).expect(path);
                    let refused = keep_inputs(&only, &matches);
                    assert!(refused.is_err(), "{path}: {} and {}", output.get_id(), input.get_id());
                    pairs += 1;
                }
            }
        });
        assert!(pairs > 20, "{pairs}");
    }
}
