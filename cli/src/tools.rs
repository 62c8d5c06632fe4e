//! The tools that `vef run` puts between the program and its MPI.

use crate::output::{self, Failure};
use std::ffi::{OsStr, OsString};
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
    /// A file that is not there.
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
    match path.as_os_str().as_bytes().contains(&b':') {
        true => Err(format!("--tool {}: a tool's path must not have a colon", tool.display()).into()),
        false => Ok(path.into()),
    }
}
