//! The tools that `vef run` puts between the program and its MPI.

use crate::output::{self, Failure};
use mpi_abi::tool::EXPORTED_AS;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What the library takes the names from.
const VARIABLE: &str = "VEF_TOOLS";
/// Its name elsewhere, which the library takes too.
const OTHER_VARIABLE: &str = "TOOLS";

/// The tools, in order; none: those of the environment, else the recorder alone.
pub struct Tools(Vec<OsString>);

impl Tools {
    /// Those named on the command line, else in the environment. A file's path becomes absolute: the ranks may run elsewhere.
    ///
    /// # Errors
    /// A file that is not there, or is no tool: the run would go on without any, unrecorded.
    pub fn named(tools: &[PathBuf]) -> Result<Self, Failure> {
        if tools.is_empty() {
            let set = [VARIABLE, OTHER_VARIABLE].into_iter().find_map(std::env::var_os).unwrap_or_default();
            let names = set.as_bytes().split(|&byte| byte == b':').map(<[u8]>::trim_ascii);
            let names = names.filter(|name| !name.is_empty());
            return Ok(Self(names.map(|name| OsStr::from_bytes(name).to_owned()).collect()));
        }
        tools.iter().map(|tool| resolve(tool)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there will be a capture.
    pub fn record(&self) -> bool {
        self.0.is_empty() || self.0.iter().any(|name| name == "capture")
    }

    /// The variable for the ranks.
    pub fn variable(&self) -> Option<(&'static str, OsString)> {
        (!self.0.is_empty()).then(|| (VARIABLE, self.0.join(OsStr::new(":"))))
    }

    /// A line about what each built-in tool wrote.
    pub fn report(&self, directory: &Path) {
        for (name, written, command) in [("profile", "profile", "profile"), ("text", "ti_traces", "text")] {
            for instance in 1..=self.0.iter().filter(|tool| *tool == name).count() {
                let place = match instance {
                    1 => directory.join(written),
                    _ => directory.join(format!("{written}.{instance}")),
                };
                match place.is_dir() {
                    true => output::remark(format_args!("{name}: vef {command} {}", place.display())),
                    false => {
                        output::remark(format_args!("{name}: nothing was written into {}", place.display()))
                    }
                }
            }
        }
    }
}

fn resolve(tool: &Path) -> Result<OsString, Failure> {
    if ["capture", "profile", "text"].iter().any(|name| tool == Path::new(name)) {
        return Ok(tool.into());
    }
    let path = tool.canonicalize().map_err(|error| {
        format!(
            "--tool {}: neither a built-in tool (capture, profile, text) nor a file: {error}",
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

/// Why the loader could not take the file `path` as a tool, as far as that shows without running code of it.
fn not_a_tool(path: &Path) -> Option<String> {
    // Where an ELF header says which machine a file is for, and of which kind it is.
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
