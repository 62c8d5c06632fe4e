//! Input traces: files, and pipes for commands that read a trace more than once.

use crate::foreign::convert;
use crate::mixing;
use crate::output::{self, Failure};
use interchange::{Files, Options, Summary};
use results::captured::{computing_times, too_few_cores};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use vef_format::capture::{Capture, CaptureError, legacy};
use vef_format::container::{About, Reader};
use vef_format::format::Format;
use vef_format::new_directory::TemporaryDirectory;
use vef_format::new_file::hidden_beside;
use vef_format::operation::OpCodes;
use vef_format::units::Count;

/// Standard input.
const STDIN: &str = "/dev/stdin";

/// An input trace that can be read more than once.
pub struct Input {
    /// The file to read.
    pub path: PathBuf,
    /// The name that the user gave.
    name: PathBuf,
    /// An unlinked copy of a pipe, open as long as this value.
    _copy: Option<File>,
    /// The directory with the trace that a foreign one, or a capture, became.
    _converted: Option<TemporaryDirectory>,
    /// What it was made of: a capture, or the format of another tool.
    made_of: Option<&'static str>,
}

impl Input {
    /// Parses the argument for an input trace; `-` is standard input.
    pub fn argument(text: &str) -> Result<PathBuf, &'static str> {
        match text {
            "" => Err("a file's name is not empty"),
            "-" => Ok(STDIN.into()),
            text => Ok(text.into()),
        }
    }

    /// The trace in the file `trace`, or in a copy of what a pipe delivers; a trace of another tool is converted.
    pub fn of(trace: &Path) -> Result<Self, Failure> {
        Self::file(trace)?.converted()
    }

    /// The file `trace`, or a copy of what a pipe delivers.
    pub fn file(trace: &Path) -> Result<Self, Failure> {
        let failed = |error| format!("{}: {error}", trace.display());
        let about = fs::metadata(trace).map_err(failed)?;
        if about.is_file() || about.is_dir() {
            return Ok(Self::named(trace, trace));
        }
        let hidden = hidden_beside(trace, "copy").map_err(failed)?;
        let no_copy =
            |error| format!("{}: cannot be copied to {}: {error}", trace.display(), hidden.display());
        let mut copy =
            File::options().read(true).write(true).create_new(true).open(&hidden).map_err(no_copy)?;
        fs::remove_file(&hidden).map_err(no_copy)?;
        let path: PathBuf = format!("/proc/self/fd/{}", copy.as_raw_fd()).into();
        let mut from = File::open(trace).map_err(failed)?;
        let mut begin = Vec::new();
        (&mut from).take(4096).read_to_end(&mut begin).map_err(failed)?;
        copy.write_all(&begin).map_err(no_copy)?;
        // An endless device would fill the disk. The beginning is enough for the error of the command.
        if begin.starts_with(b"VEF") || begin.starts_with(b"{") || foreign(&path).is_some() {
            std::io::copy(&mut from, &mut copy).map_err(no_copy)?;
        }
        Ok(Self { _copy: Some(copy), ..Self::named(&path, trace) })
    }

    /// The format of a trace of another tool.
    pub fn foreign(&self) -> Option<interchange::Format> {
        foreign(&self.path)
    }

    /// The trace that a file or directory of another tool is converted to; a trace itself.
    pub fn converted(self) -> Result<Self, Failure> {
        if let Some(schema) = self.result() {
            let name = self.name.display();
            return Err(format!(
                "{name}: the result of a command ({schema}), not a trace; vef report TRACE --sim {name} shows one of vef sim"
            )
            .into());
        }
        let Some(format) = foreign(&self.path) else {
            return if is_capture(&self.path) {
                self.mixed()
            } else if self.path.is_dir() {
                Err(format!("{}: a directory, not a trace", self.path.display()).into())
            } else if Format::of(&self.path).is_ok_and(|ours| ours == Some(Format::Gzip)) {
                // What is cut off may be too short to be recognised.
                Files::check_start(&self.path).map_err(|error| self.error(error))?;
                Ok(self)
            } else {
                Ok(self)
            };
        };
        let (converted, summary, _) = self.convert(format, &Options::default())?;
        for told in summary.told() {
            output::remark(format_args!("{}: {told}", self.name.display()));
        }
        Ok(converted)
    }

    /// The trace that a file or directory in the format of another tool becomes, and what was found in it.
    pub fn convert(
        &self,
        format: interchange::Format,
        options: &Options,
    ) -> Result<(Self, Summary, Option<mixer::Summary>), Failure> {
        let converted = || -> Result<_, Failure> {
            let directory = TemporaryDirectory::create("vef-import-")?;
            let to = directory.path().join("converted.vefx");
            let files = Files::of(std::slice::from_ref(&self.path))?;
            let (summary, mixed) = convert(format, &files, &to, options, 0)?;
            Ok((
                Self {
                    _converted: Some(directory),
                    made_of: Some(format.info().what),
                    ..Self::named(&to, &self.name)
                },
                summary,
                mixed,
            ))
        };
        converted().map_err(|error| self.error(error))
    }

    /// The trace that a capture is mixed to.
    fn mixed(self) -> Result<Self, Failure> {
        let directory = TemporaryDirectory::create("vef-mix-")?;
        let to = directory.path().join("trace.vefx");
        mixing::mix(&self.path, &to)?;
        Ok(Self { _converted: Some(directory), made_of: Some("capture"), ..Self::named(&to, &self.name) })
    }

    /// What the trace was made of, if it is not what the user named: `capture`, or the format of another tool.
    pub fn made_of(&self) -> Option<&'static str> {
        self.made_of
    }

    /// The schema of the file, if it is a result that a command wrote as JSON.
    pub fn result(&self) -> Option<String> {
        let mut begin = Vec::new();
        File::open(&self.path).ok()?.take(200).read_to_end(&mut begin).ok()?;
        let begin = String::from_utf8_lossy(&begin);
        let (_, schema) = begin.trim_start().strip_prefix('{')?.split_once("\"schema\"")?;
        let schema = schema.split('"').nth(1)?;
        schema.starts_with("vef-").then(|| schema.to_owned())
    }

    /// A file to read in place of `name`, which the user gave.
    pub fn named(path: &Path, name: &Path) -> Self {
        let (path, name) = (path.to_path_buf(), name.to_path_buf());
        Self { path, name, _copy: None, _converted: None, made_of: None }
    }

    /// The name in titles.
    pub fn shown(&self) -> String {
        if self.name == Path::new(STDIN) {
            "standard input".to_owned()
        } else {
            self.name.display().to_string()
        }
    }

    /// The name that the user gave.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Whether the trace is a container, regardless of its name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_container(&self) -> Result<bool, Failure> {
        Format::is_container(&self.path).map_err(|error| format!("{}: {error}", self.name.display()).into())
    }

    /// The codes of collectives that the user gives for a text trace; a container has its own.
    pub fn op_codes(&self, table: Option<&Path>) -> Result<Option<OpCodes>, Failure> {
        let Some(table) = table else { return Ok(None) };
        if self.is_container()? {
            let path = self.path.display();
            let error = format!("{path}: --op-codes is for text; this is a container and has its own table");
            return Err(self.error(error));
        }
        Ok(Some(OpCodes::open(table)?))
    }

    /// Repeats the warnings that a container has about its capture, and what the trace lacks.
    pub fn warn_in_full(&self) {
        output::oversubscribed(&self.name, self.facts(About::OVERSUBSCRIBED));
        output::lacks(self.lacks().iter());
    }

    /// The same in one line, for commands other than vef check, which is named if it has more.
    pub fn warn(&self) {
        let (name, check) = (self.shown(), format!(" (vef check {} has all)", self.name.display()));
        let mut has_more = false;
        let mut warnings = Vec::from_iter(too_few_cores(self.facts(About::OVERSUBSCRIBED)));
        match &self.lacks()[..] {
            [] => {}
            [only] => warnings.push(format!("not in the trace: {only}")),
            [first, more @ ..] => {
                has_more = true;
                let more = Count(more.len(), "more item");
                warnings.push(format!("not in the trace: {first}, and {more}"));
            }
        }
        if !warnings.is_empty() {
            let (warnings, check) = (warnings.join("; "), if has_more { check.as_str() } else { "" });
            output::remark(format_args!("warning: {name}: {warnings}{check}"));
        }
    }

    /// Says what the computing times of a container contain, and are without; `eager`: sends cost their sender nothing, which is said if they took
    /// much of the captured time.
    pub fn tell_time_in_mpi(&self, eager: bool) {
        if let Some(told) = computing_times(&self.about(), eager) {
            output::remark(format_args!("{}: {told}", self.shown()));
        }
        if let Some(share) = self.share_of_sending().filter(|&share| eager && share >= 0.05) {
            output::remark(format_args!(
                "{}: {:.1} % of the captured time was sending, which costs nothing here; with `vef sim --send-completion \
                 rendezvous-in-calls:SIZE` the network and the receivers decide on sends of more than SIZE (64KiB of many MPIs; vef stats has the \
                 sizes), with `sent` the network on all",
                self.shown(),
                100.0 * share
            ));
        }
    }

    /// The share of blocking sends, and of waits for sends alone, in the captured time of all tasks, if the trace is a container that says it.
    fn share_of_sending(&self) -> Option<f64> {
        let accounts = Reader::open(&self.path).and_then(|reader| reader.accounts()).ok()?;
        let (mut sending, mut running) = (0u64, 0u64);
        for times in accounts.iter().map(|(_, account)| account.by_part()) {
            sending = sending.saturating_add(times.send);
            running = running.saturating_add(times.running());
        }
        (running > 0).then(|| sending as f64 / running as f64)
    }

    /// Warns of the tasks of a container that are no ranks, and become tasks like all others in what is made of it.
    pub fn warn_of_plain_tasks(&self) {
        let Ok(reader) = Reader::open(&self.path) else { return };
        let tasks = reader.header().tasks;
        output::plain_tasks(self.shown(), reader.about().program_tasks(tasks)..tasks);
    }

    /// What a container lacks of the captured run; empty for a text trace.
    pub fn lacks(&self) -> Vec<String> {
        self.facts(About::NOT_IN_TRACE)
    }

    /// The entries of this name in a container's description of its origin.
    fn facts(&self, name: &str) -> Vec<String> {
        self.about().facts(name).cloned().collect()
    }

    /// A container's description of its origin. An invalid file is reported by the command that reads it.
    fn about(&self) -> About {
        Reader::open(&self.path).map(|reader| reader.about().clone()).unwrap_or_default()
    }

    /// An error in reading the trace, with the name that the user gave.
    pub fn error(&self, error: impl Into<Failure>) -> Failure {
        let error = error.into();
        match self.path == self.name {
            true => error,
            false => self.with_name(output::in_one_line(&error)).into(),
        }
    }

    /// The text with the name that the user gave in place of the file that is read.
    pub fn with_name(&self, text: String) -> String {
        match self.path == self.name {
            true => text,
            false => text.replace(&self.path.display().to_string(), &self.name.display().to_string()),
        }
    }

    /// An error in one line that begins with the name of the trace, whether the error does or not.
    pub fn named_error(&self, error: impl Into<Failure>) -> String {
        let (error, name) = (output::in_one_line(&self.error(error)), self.name.display().to_string());
        match error.strip_prefix(&name).is_some_and(|rest| rest.starts_with([':', ' '])) {
            true => error,
            false => format!("{name}: {error}"),
        }
    }
}

/// The format of a trace of another tool; `None` of our own files and of what is not recognised.
fn foreign(path: &Path) -> Option<interchange::Format> {
    if path.is_file() && Format::of(path).is_ok_and(|ours| ours.is_some_and(|ours| ours != Format::Gzip)) {
        return None;
    }
    interchange::Format::of(&Files::of(&[path.to_path_buf()]).ok()?).ok()
}

/// Whether there is a capture, of any rank, or the `VEFT.main` of an older one.
fn is_capture(path: &Path) -> bool {
    match path.is_dir() {
        true => !matches!(Capture::open(path), Err(CaptureError::NoCapture(_))),
        false => legacy::Main::is_at(path),
    }
}
