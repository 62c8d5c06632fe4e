//! Output: results on stdout, remarks and errors on stderr, JSON on request.

use std::error::Error;
use std::fmt::Display;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
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
/// name, are escaped. A failed write is ignored.
pub fn remark(text: impl Display) {
    let line = Printable(&text.to_string()).to_string();
    let _ = io::stderr().write_all(format!("vef: {line}\n").as_bytes());
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

/// Warns of hosts with more ranks than cores.
pub fn oversubscribed(hosts: impl Iterator<Item = impl Display>) {
    for host in hosts {
        remark(format_args!(
            "warning: {host}: ranks waited for each other's cores, and times measure the scheduler, too"
        ));
    }
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
    if is_stdout(written) {
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
    let mut out = io::stdout().lock();
    let text = text.to_string();
    let text = if out.is_terminal() { Printable(&text).to_string() } else { text };
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // A closed pipe (`| head`) is no error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(format!("cannot write to stdout: {error}").into()),
        Ok(()) => Ok(()),
    }
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

/// Checks that a result at `path` would replace none of the `inputs`, nor a file of an input that is a directory.
///
/// # Errors
/// `path` is one of them, or in one.
pub fn is_no_input<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Failure> {
    let number = |path: &Path| {
        let file = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some((file.dev(), file.ino()))
    };
    let Some(there) = number(path) else { return Ok(()) };
    let is_read = |input: &Path| {
        let files = fs::read_dir(input).into_iter().flatten().flatten();
        number(input) == Some(there) || files.map(|file| file.path()).any(|file| number(&file) == Some(there))
    };
    match inputs.into_iter().any(is_read) {
        true => Err(format!("{}: the output is an input, too; choose another name", path.display()).into()),
        false => Ok(()),
    }
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
            return Err(
                format!("{}: named twice; each result needs a file of its own", output.display()).into()
            );
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

/// Parses the name of a trace to write, as [`written`]. Refuses a file that exists and is no trace: it is not replaced by a slip of the keyboard.
pub fn written_trace(text: &str) -> Result<PathBuf, String> {
    let path = written(text)?;
    let is_foreign = || {
        let mut begin = Vec::new();
        fs::File::open(&path)?.take(4).read_to_end(&mut begin)?;
        Ok::<_, io::Error>(!matches!(&begin[..], b"" | b"VEF2" | b"VEF3" | b"VEFX"))
    };
    match path.is_file() && !is_stdout(&path) && is_foreign().unwrap_or(false) {
        true => Err("the file exists and is no trace: remove it, or choose another name".into()),
        false => Ok(path),
    }
}

/// Parses the name of a file to write; `-` is standard output. Refuses suffixes of compressed files.
pub fn written(text: &str) -> Result<PathBuf, String> {
    const COMPRESSED: [&str; 7] = ["gz", "zst", "xz", "bz2", "lz4", "zip", "Z"];
    match text {
        "" => return Err("a file's name is not empty".into()),
        "-" => return Ok("/dev/stdout".into()),
        _ => {}
    }
    let path = PathBuf::from(text);
    let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
    match COMPRESSED.contains(&suffix) && fs::metadata(&path).map_or(true, |there| there.is_file()) {
        true => Err(format!(
            ".{suffix} names a compressed file, which vef does not write: write to - and a pipe, or write a container \
             (.vefx) and compress it with vef convert --compress"
        )),
        false => Ok(path),
    }
}
