//! `VEFT.main`: the tasks, their hosts and times.

use super::{LegacyError, Problem};
use crate::error::Place;
use crate::ids::Rank;
use crate::units::Nanos;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Maximum length of a line: host names have at most 255 bytes, numbers twenty digits.
const LONGEST_LINE: u64 = 8 << 10;
const TASK_LINE: &str = "Task:<x>:Node:<host>:RI:<ns>:RF:<ns>:TI:<ns>:TF:<ns>";

/// The file `VEFT.main` of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Main {
    /// Its path; the files of the tasks are beside it.
    pub path: PathBuf,
    /// The tasks.
    pub tasks: Vec<Task>,
}

/// A task in `VEFT.main`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Its host.
    pub host: String,
    /// Wall clock at `MPI_Init`, nanoseconds since 1970.
    pub realtime_init: u64,
    /// Wall clock at `MPI_Finalize`, nanoseconds since 1970.
    pub realtime_finalize: u64,
    /// The host's monotonic clock at `MPI_Init`.
    pub init: Nanos,
    /// The host's monotonic clock at `MPI_Finalize`.
    pub finalize: Nanos,
}

impl Main {
    /// Whether `path` is a capture of the older layout: a directory with `VEFT.main`, or this file.
    pub fn is_at(path: &Path) -> bool {
        path.join("VEFT.main").is_file()
            || (path.is_file() && path.file_name().is_some_and(|name| name == "VEFT.main"))
    }

    /// Reads `VEFT.main` in the directory `path`, or the file `path` itself.
    ///
    /// Its second line names the directory in which it was written, which is ignored.
    pub fn open(path: &Path) -> Result<Self, LegacyError> {
        let path = if path.is_dir() { path.join("VEFT.main") } else { path.to_path_buf() };
        let mut lines = Lines::open(&path)?;
        let Some(count) = lines.next()? else {
            return Err(LegacyError { place: Place::file(&path), problem: Problem::Empty });
        };
        let Some(count) = number::<u32>(count.trim()).filter(|&count| count > 0) else {
            return Err(lines.wrong(&count, "the number of tasks"));
        };
        if lines.next()?.is_none() {
            return Err(lines.wrong("", "the directory of the capture"));
        }
        let mut tasks = BTreeMap::new();
        let wrong_task = |rank: u32, wrong| Problem::Task { task: rank.into(), tasks: count, wrong };
        while let Some(line) = lines.next()? {
            let Some((rank, task)) = task(&line) else { return Err(lines.wrong(&line, TASK_LINE)) };
            if rank >= count {
                return Err(lines.error(wrong_task(rank, "is out of range")));
            }
            if tasks.insert(rank, task).is_some() {
                return Err(lines.error(wrong_task(rank, "comes twice")));
            }
        }
        if let Some(missing) =
            (0..count).zip(tasks.keys().map(Some).chain([None])).find(|&(rank, key)| key != Some(&rank))
        {
            return Err(lines.error(wrong_task(missing.0, "is missing")));
        }
        let tasks = tasks.into_values().collect();
        Ok(Self { path, tasks })
    }

    /// The file `<rank>.<extension>` of a task.
    pub(super) fn beside(&self, rank: Rank, extension: &str) -> PathBuf {
        self.path.with_file_name(format!("{rank}.{extension}"))
    }
}

/// The non-empty lines of a small text file.
struct Lines<'a> {
    input: BufReader<File>,
    path: &'a Path,
    line: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self, LegacyError> {
        match File::open(path) {
            Ok(file) => Ok(Self { input: BufReader::new(file), path, line: 0 }),
            Err(error) => Err(LegacyError { place: Place::file(path), problem: Problem::Io(error) }),
        }
    }

    fn next(&mut self) -> Result<Option<String>, LegacyError> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            self.line += 1;
            match (&mut self.input).take(LONGEST_LINE).read_until(b'\n', &mut bytes) {
                Ok(0) => return Ok(None),
                Ok(_) if !bytes.trim_ascii().is_empty() => {
                    return Ok(Some(
                        String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned(),
                    ));
                }
                Ok(_) => {}
                Err(error) => return Err(self.error(Problem::Io(error))),
            }
        }
    }

    fn error(&self, problem: Problem) -> LegacyError {
        LegacyError { place: Place::line(self.path, self.line), problem }
    }

    fn wrong(&self, found: &str, expected: &'static str) -> LegacyError {
        let found = found.chars().take(80).flat_map(char::escape_debug).collect();
        self.error(Problem::Line { found, expected })
    }
}

/// Parses digits only: no sign, no blanks.
fn number<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses a task's line. Only the host name may contain colons.
fn task(line: &str) -> Option<(u32, Task)> {
    let (rank, rest) = line.strip_prefix("Task:")?.split_once(":Node:")?;
    let (host, times) = rest.rsplit_once(":RI:")?;
    let (realtime_init, times) = times.split_once(":RF:")?;
    let (realtime_finalize, times) = times.split_once(":TI:")?;
    let (init, finalize) = times.split_once(":TF:")?;
    let task = Task {
        host: host.to_owned(),
        realtime_init: number(realtime_init)?,
        realtime_finalize: number(realtime_finalize)?,
        init: Nanos(number(init)?),
        finalize: Nanos(number(finalize.trim_end())?),
    };
    Some((number(rank)?, task))
}
