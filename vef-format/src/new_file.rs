//! An output file that gets its name only when it is complete, so that an incomplete file is never left behind. Where the
//! file system has no unnamed files, the file has a hidden name in the same directory until then; only a killed process
//! leaves that behind.
//!
//! The hidden name is unpredictable and the file is created exclusively: nothing that lies there is written to, and processes
//! of several containers or hosts, whose process ids may be equal, never share it.
//!
//! Symbolic links of the caller and of root are followed: their target is replaced or created. Those of other users are refused.
//! Pipes, devices and the standard output (`/dev/stdout`) are opened and written directly. A replaced file passes on its permissions,
//! and is replaced only if the caller may write to it; its other hard links keep the old contents.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
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
    /// Unnamed. It is linked to a hidden path, which is then renamed to this one.
    None(PathBuf),
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
        let target = led_to(path)?;
        let (target, permissions) = match fs::metadata(path) {
            Ok(there) if there.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(there) => {
                let file = File::options().write(true).open(path)?;
                if !there.is_file() {
                    return Ok(Self { file, names: Names::Its });
                }
                (path.canonicalize()?, Some(there.permissions()))
            }
            Err(_) => (target, None),
        };
        let new = match nameless_beside(&target) {
            Some(file) if target.file_name().is_some() => Self { file, names: Names::None(target) },
            _ => {
                let (hidden, file) = exclusively(&target, "part", |hidden| {
                    File::options().write(true).create_new(true).open(hidden)
                })?;
                Self { file, names: Names::Hidden(hidden, target) }
            }
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
        if let Names::None(target) = &self.names {
            let link =
                |hidden: &Path| Ok(linkat(CWD, by_number(&self.file), CWD, hidden, AtFlags::SYMLINK_FOLLOW)?);
            let (hidden, ()) = exclusively(target, "part", link)?;
            self.names = Names::Hidden(hidden, target.clone());
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

/// Follows symbolic links from `path`, the last of which may dangle. Links of other users are refused: in a directory for all, such as
/// `/tmp`, they would choose the file that is replaced.
fn led_to(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    let own = rustix::process::geteuid().as_raw();
    // The limit of Linux.
    for _ in 0..40 {
        match (fs::read_link(&path), fs::symlink_metadata(&path)) {
            (Ok(_), Ok(link)) if ![own, 0].contains(&link.uid()) => {
                let text = format!("{} is a symbolic link of another user", path.display());
                return Err(io::Error::new(ErrorKind::PermissionDenied, text));
            }
            (Ok(link), _) => path = path.parent().unwrap_or(Path::new("")).join(link),
            (Err(_), _) => return Ok(path),
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

/// A hidden path beside `path`, unpredictable, at which nothing was at this moment: create it exclusively. In the directory for
/// temporary files if `path` is a pipe or a device.
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

/// Creates something at a hidden path beside `path`; at another one if something is there.
fn exclusively<T>(
    path: &Path,
    suffix: &str,
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    loop {
        let hidden = hidden(path, suffix)?;
        match create(&hidden) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return Ok((hidden, created?)),
        }
    }
}

fn hidden(path: &Path, suffix: &str) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not the name of a file"));
    };
    // Names end at 255 bytes.
    let name = &name.as_encoded_bytes()[..name.len().min(200)];
    let mut hidden = OsString::from(".");
    hidden.push(String::from_utf8_lossy(name).trim_end_matches(char::REPLACEMENT_CHARACTER));
    // The hasher's key is from the system's random numbers.
    hidden.push(format!(".{:016x}.{suffix}", RandomState::new().hash_one(())));
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
    fn hidden_names_are_never_foreseen() {
        let names: std::collections::HashSet<_> =
            (0..1000).map(|_| hidden_beside(Path::new("t.vef"), "part").unwrap()).collect();
        assert_eq!(names.len(), 1000);
        let pid = std::process::id().to_string();
        assert!(!names.iter().all(|name| name.to_string_lossy().contains(&pid)));
    }

    /// A file, link or directory at a hidden path is left alone; the next name is tried.
    #[test]
    fn nothing_at_a_hidden_name_is_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (target, victim) = (dir.path().join("t.vef"), dir.path().join("victim"));
        fs::write(&victim, "theirs").unwrap();
        let tries = std::cell::Cell::new(0);
        let (hidden, file) = exclusively(&target, "part", |hidden| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 {
                symlink(&victim, hidden).unwrap();
            }
            File::options().write(true).create_new(true).open(hidden)
        })
        .unwrap();
        (&file).write_all(b"ours").unwrap();
        assert_eq!(
            (tries.get(), fs::read(&victim).unwrap(), fs::read(&hidden).unwrap()),
            (2, b"theirs".to_vec(), b"ours".to_vec())
        );
    }

    #[test]
    fn a_long_name_has_a_hidden_one() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("é".repeat(127));
        NewFile::create(&target).unwrap().finish().unwrap();
        assert!(target.is_file());
    }

    #[test]
    fn a_link_of_another_user_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (link, target) = (dir.path().join("link"), dir.path().join("target"));
        symlink(&target, &link).unwrap();
        // Only root can give links away.
        if std::os::unix::fs::lchown(&link, Some(54321), None).is_err() {
            return skipping::skipped("needs root");
        }
        let error = NewFile::create(&link).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        fs::write(&target, "theirs").unwrap();
        assert!(NewFile::create(&link).is_err());
        assert_eq!(fs::read(&target).unwrap(), b"theirs");
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
