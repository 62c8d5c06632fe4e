//! An output file that gets its name only when it is complete, so that an incomplete file is never left behind. Where the
//! file system has no unnamed files, the file has a hidden name in the same directory until then; only a killed process
//! leaves that behind.
//!
//! Symbolic links are followed: their target is replaced or created. Pipes, devices and the standard output
//! (`/dev/stdout`) are opened and written directly. A replaced file passes on its permissions, and is replaced only if the
//! caller may write to it.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

/// An incomplete output file.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    names: Names,
}

#[derive(Debug)]
enum Names {
    /// A pipe, device or standard output, written directly.
    Its,
    /// Unnamed. It is linked to the first path, which is then renamed to the second.
    None(PathBuf, PathBuf),
    /// Has the first path; renamed to the second.
    Hidden(PathBuf, PathBuf),
}

impl NewFile {
    /// Creates the file that becomes `path`.
    ///
    /// # Errors
    /// Those of the operating system; nothing is created then.
    pub fn create(path: &Path) -> io::Result<Self> {
        if is_stdout(path) {
            let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
            return Ok(Self { file, names: Names::Its });
        }
        let (target, permissions) = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(there) => {
                let file = File::options().write(true).open(path)?;
                if !there.is_file() {
                    return Ok(Self { file, names: Names::Its });
                }
                (path.canonicalize()?, Some(there.permissions()))
            }
            Err(_) => (led_to(path)?, None),
        };
        let hidden = hidden(&target, "part")?;
        let new = match nameless_beside(&target) {
            Some(file) => Self { file, names: Names::None(hidden, target) },
            None => Self { file: File::create(&hidden)?, names: Names::Hidden(hidden, target) },
        };
        if let Some(permissions) = permissions {
            new.file.set_permissions(permissions)?;
        }
        Ok(new)
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// Those of the operating system; the file is deleted then.
    pub fn finish(mut self) -> io::Result<()> {
        if let Names::None(hidden, target) = &self.names {
            // Left by a killed process with the same pid.
            discard(hidden);
            linkat(CWD, by_number(&self.file), CWD, hidden, AtFlags::SYMLINK_FOLLOW)?;
            self.names = Names::Hidden(hidden.clone(), target.clone());
        }
        if let Names::Hidden(hidden, target) = &self.names {
            fs::rename(hidden, target)?;
            self.names = Names::Its;
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Names::Hidden(hidden, _) = &self.names {
            discard(hidden);
        }
    }
}

/// Follows symbolic links from `path`, the last of which may dangle.
fn led_to(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    // The limit of Linux.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "too many levels of symbolic links"))
}

/// Creates an unnamed file in the directory of `target`; `None` if the file system cannot, or cannot name it later.
fn nameless_beside(target: &Path) -> Option<File> {
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(directory, flags, Mode::from_raw_mode(0o666)).ok()?);
    fs::exists(by_number(&file)).unwrap_or(false).then_some(file)
}

fn by_number(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Whether `path` is the standard output.
pub fn is_stdout(path: &Path) -> bool {
    ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

/// A hidden path beside `path`, distinct for each process; in the directory for temporary files if `path` is a pipe or a
/// device.
///
/// # Errors
/// `path` has no file name (`..`).
pub fn hidden_beside(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let hidden = hidden(path, suffix)?;
    let is_file =
        !is_stdout(path) && fs::metadata(path).map_or(true, |there| there.is_file() || there.is_dir());
    match hidden.file_name() {
        Some(name) if !is_file => Ok(std::env::temp_dir().join(name)),
        _ => Ok(hidden),
    }
}

fn hidden(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not the name of a file"));
    };
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.{suffix}", std::process::id()));
    Ok(path.with_file_name(hidden))
}

fn discard(hidden: &Path) {
    // Best effort.
    let _ = fs::remove_file(hidden);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    #[test]
    fn it_appears_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t.vef");
        let names = || fs::read_dir(dir.path()).unwrap().count();
        let new = NewFile::create(&target).unwrap();
        new.file().write_all(b"half").unwrap();
        // All that a process killed at this point leaves behind.
        assert_eq!(names(), usize::from(nameless_beside(&target).is_none()));
        drop(new);
        assert_eq!(names(), 0);
        let new = NewFile::create(&target).unwrap();
        new.file().write_all(b"whole").unwrap();
        new.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"whole");
        assert_eq!(names(), 1);
    }

    #[test]
    fn what_a_link_leads_to_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("t.vef"), dir.path().join("link"));
        fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        let new = NewFile::create(&link).unwrap();
        new.file().write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        new.finish().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_a_link_is_to_lead_to_is_made() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("scratch")).unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        symlink("second", &first).unwrap();
        symlink("scratch/t.vef", &second).unwrap();
        NewFile::create(&first).unwrap().finish().unwrap();
        assert!(first.is_symlink() && second.is_symlink() && dir.path().join("scratch/t.vef").is_file());
        symlink("circle", dir.path().join("circle")).unwrap();
        assert!(NewFile::create(&dir.path().join("circle")).is_err());
    }

    #[test]
    fn permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("t.vef");
        fs::write(&target, "private").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        NewFile::create(&target).unwrap().finish().unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o444)).unwrap();
        // Root may write to read-only files.
        let writable = File::options().write(true).open(&target).is_ok();
        assert_eq!(NewFile::create(&target).is_ok(), writable);
    }

    #[test]
    fn a_pipe_is_written_to_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                let mut text = String::new();
                File::open(pipe).unwrap().read_to_string(&mut text).unwrap();
                text
            }
        });
        let new = NewFile::create(&pipe).unwrap();
        new.file().write_all(b"through").unwrap();
        new.finish().unwrap();
        assert_eq!(reader.join().unwrap(), "through");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(NewFile::create(&dir.path().join("no/such/t.vef")).is_err());
        assert_eq!(NewFile::create(dir.path()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert!(NewFile::create(Path::new("..")).is_err() && hidden_beside(Path::new("/"), "x").is_err());
    }
}
