//! The tools that `vef run` stacks between the program and its MPI.

use crate::output::{self, Failure};
use crate::progress::Bar;
use crate::{algorithms, library};
use mpi_abi::tool::{EXPORTED_AS, recordings};
use reports::text;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use vef_format::capture::Capture;
use vef_format::nearest::did_you_mean;

/// Variable from which the library takes the tools.
const VARIABLE: &str = "VEF_TOOLS";
/// Alternative name of the variable.
const OTHER_VARIABLE: &str = "TOOLS";

/// Prefix of the argument that selects the tool that substitutes collectives; a table follows.
const COLLECTIVES: &str = "collectives=";
/// Variable from which that tool takes the table.
const TABLE_VARIABLE: &str = "VEF_COLLECTIVES";

/// The tools in order; if empty, those of the environment, else the recorder.
pub struct Tools {
    names: Vec<OsString>,
    /// The table of the tool that substitutes collectives: a built-in name or a file.
    table: Option<OsString>,
}

impl Tools {
    /// The tools from the command line, else from the environment. Paths of files become absolute, as ranks
    /// may have other working directories.
    ///
    /// # Errors
    /// A file does not exist or is not a tool: the program would run without tools, unrecorded.
    pub fn named(tools: &[PathBuf]) -> Result<Self, Failure> {
        if tools.is_empty() {
            let set = [VARIABLE, OTHER_VARIABLE].into_iter().find_map(std::env::var_os).unwrap_or_default();
            let names = set.as_bytes().split(|&byte| byte == b':').map(<[u8]>::trim_ascii);
            let names = names.filter(|name| !name.is_empty());
            let names = names.map(|name| OsStr::from_bytes(name).to_owned()).collect();
            return Ok(Self { names, table: None });
        }
        let mut table = None;
        let resolved =
            tools.iter().map(|tool| match tool.as_os_str().as_bytes().strip_prefix(COLLECTIVES.as_bytes()) {
                Some(_) if table.is_some() => {
                    Err(format!("--tool {}: collectives are substituted once", tool.display()).into())
                }
                Some(name) => {
                    table = Some(named_table(OsStr::from_bytes(name))?);
                    Ok(library::collectives()?.into())
                }
                None => resolve(tool),
            });
        Ok(Self { names: resolved.collect::<Result<_, Failure>>()?, table })
    }

    /// Whether the run produces a capture.
    pub fn record(&self) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == "capture")
    }

    /// The environment variables for the ranks.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let names = (!self.names.is_empty()).then(|| (VARIABLE, self.names.join(OsStr::new(":"))));
        names.into_iter().chain(self.table.clone().map(|table| (TABLE_VARIABLE, table)))
    }

    /// Writes the results of `text` and `profile` for the captures below `directory`, and prints a line about
    /// each.
    pub fn report(&self, directory: &Path) {
        if self.table.is_some() {
            let file = directory.join("collectives.txt");
            match file.exists() {
                true => output::remark(format_args!("collectives: {}", file.display())),
                false => output::remark("collectives: none was substituted"),
            }
        }
        let names: Vec<_> = self.names.iter().map(|name| name.to_string_lossy()).collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        for recording in recordings(&names) {
            let captured = match recording.directory() {
                "" => directory.to_owned(),
                below => directory.join(below),
            };
            for (name, output) in names[recording.places].iter().zip(recording.outputs) {
                match *name {
                    "profile" => output::remark(format_args!("profile: vef profile {}", captured.display())),
                    "text" => text(&captured, &directory.join(output)),
                    _ => {}
                }
            }
        }
    }
}

/// Writes the text traces of a capture to the directory `to`.
fn text(captured: &Path, to: &Path) {
    let bar = Bar::new("writing text traces");
    let written =
        Capture::open(captured).map_err(Into::into).and_then(|capture| text::write(&capture, to, false));
    drop(bar);
    match written {
        Ok(()) => output::remark(format_args!("text: vef text {}", to.display())),
        // The exit code is that of the program.
        Err(error) => output::error(&error.into()),
    }
}

/// The table of algorithms for the ranks: a built-in name, or the absolute path of a file.
fn named_table(name: &OsStr) -> Result<OsString, Failure> {
    let told = |error: &dyn std::fmt::Display| format!("--tool {COLLECTIVES}{}: {error}", name.display());
    // What is wrong with it is said here, not by every rank.
    algorithms::table(&name.to_string_lossy()).map_err(|error| told(&error))?;
    match replay::Table::BUILTIN.iter().any(|known| name == *known) {
        true => Ok(name.to_owned()),
        false => Ok(fs::canonicalize(name).map_err(|error| told(&error))?.into()),
    }
}

fn resolve(tool: &Path) -> Result<OsString, Failure> {
    const BUILTIN: [&str; 3] = ["capture", "profile", "text"];
    if BUILTIN.iter().any(|name| tool == Path::new(name)) {
        return Ok(tool.into());
    }
    let path = tool.canonicalize().map_err(|error| {
        let meant = did_you_mean(&tool.to_string_lossy(), BUILTIN);
        format!(
            "--tool {}: {meant}neither a built-in tool (capture, profile, text, collectives=TABLE) nor a file: {error}",
            tool.display()
        )
    })?;
    if path.as_os_str().as_bytes().contains(&b':') {
        return Err(format!("--tool {}: a tool's path must not have a colon", tool.display()).into());
    }
    match not_a_tool(&path) {
        Some(why) => Err(format!("--tool {}: {why}", tool.display()).into()),
        None => Ok(path.into()),
    }
}

/// Why the loader would reject the file `path`, without running its code.
fn not_a_tool(path: &Path) -> Option<String> {
    // Offsets in an ELF header: class and byte order, and type and machine.
    const CLASS_AND_ORDER: std::ops::Range<usize> = 4..6;
    const KIND: std::ops::Range<usize> = 16..18;
    const MACHINE: std::ops::Range<usize> = 18..20;
    const SHARED_OBJECT: u16 = 3;
    if path.is_dir() {
        return Some("a directory; a tool is a shared library".into());
    }
    let content = match fs::read(path) {
        Ok(content) => content,
        Err(error) => return Some(error.to_string()),
    };
    let own = fs::read("/proc/self/exe").unwrap_or_default();
    let kind = content.get(KIND).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    if !content.starts_with(b"\x7fELF") || kind != Some(SHARED_OBJECT) {
        return Some("not a shared library".into());
    }
    if [CLASS_AND_ORDER, MACHINE].into_iter().any(|part| content.get(part.clone()) != own.get(part)) {
        return Some("a shared library for another kind of machine".into());
    }
    let name = EXPORTED_AS.to_bytes_with_nul();
    memchr::memmem::find(&content, name)
        .is_none()
        .then(|| format!("not a tool: it does not define {}", EXPORTED_AS.to_string_lossy()))
}
