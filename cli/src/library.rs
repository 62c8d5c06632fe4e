//! Finds the preload library, and checks that it is of this version of `vef`. One that is part of the command (feature `embed`) is written
//! to the user's cache first.

use memchr::memmem;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The library's file name.
pub const FILE: &str = "libvef_interpose.so";

/// The file name of the tool that substitutes collectives.
const COLLECTIVES: &str = "libvef_collectives.so";

/// Environment variable with its path.
pub const VARIABLE: &str = "VEF_INTERPOSE";

/// How its exported version begins (`vef_interpose_version` in `interpose/src/lib.rs`); the version and a null byte follow.
const VERSION: &[u8] = b"vef_interpose_version=";

/// The libraries that are part of the command: names and contents.
#[cfg(feature = "embed")]
const EMBEDDED: &[(&str, &[u8])] = &[
    (FILE, include_bytes!(concat!(env!("OUT_DIR"), "/libvef_interpose.so"))),
    (COLLECTIVES, include_bytes!(concat!(env!("OUT_DIR"), "/libvef_collectives.so"))),
];
#[cfg(not(feature = "embed"))]
const EMBEDDED: &[(&str, &[u8])] = &[];

/// The preload library: `VEF_INTERPOSE`, else the first of [`places`] that exists, else the one that is part of the command.
///
/// # Errors
/// A message with the places searched, or that the library is of another version.
pub fn find() -> Result<PathBuf, String> {
    let library = match std::env::var_os(VARIABLE) {
        Some(named) => {
            let path = PathBuf::from(named);
            match path.is_file() {
                true => path,
                false => return Err(format!("{VARIABLE}: {} is not a file", path.display())),
            }
        }
        None => {
            let program = std::env::current_exe()
                .map_err(|error| format!("cannot find the directory of vef: {error}"))?;
            let places = places(program.parent().unwrap_or(Path::new("/")));
            match places.iter().find(|path| path.is_file()) {
                Some(path) => path.clone(),
                None if EMBEDDED.is_empty() => return Err(not_found(&places)),
                None => unpack(&cache()?, EMBEDDED)?.join(FILE),
            }
        }
    };
    check_version(&library)?;
    absolute(library)
}

/// Where the library of a `vef` in the directory `bin` may be, the first to be preferred: beside it, as built; in a directory that
/// the loader does not search, as installed and packaged; in `lib`, as older versions installed it.
fn places(bin: &Path) -> Vec<PathBuf> {
    let mut directories = vec![bin.to_path_buf()];
    if let Some(prefix) = bin.parent() {
        let lib = prefix.join("lib");
        directories.extend([lib.join("vef"), prefix.join("lib64/vef")]);
        let entries = fs::read_dir(&lib).into_iter().flatten().flatten();
        let is_multiarch = |name: &str| name.contains("-linux-gnu");
        let multiarch = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_multiarch));
        let mut multiarch: Vec<_> = multiarch.map(|entry| entry.path().join("vef")).collect();
        multiarch.sort();
        directories.extend(multiarch);
        directories.push(lib);
    }
    directories.into_iter().map(|directory| directory.join(FILE)).collect()
}

fn not_found(places: &[PathBuf]) -> String {
    let tried: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
    format!(
        "the preload library is at none of {}; install vef with it (scripts/install in vef's source, or cargo install --features embed), or \
         name it in {VARIABLE}. A vef on a network file system: is the directory mounted here?",
        tried.join(", ")
    )
}

/// The user's cache of this version, as the XDG Base Directory Specification has it.
fn cache() -> Result<PathBuf, String> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let base = base.ok_or(format!(
        "neither XDG_CACHE_HOME nor HOME is a directory for the preload library; name an installed one in {VARIABLE}"
    ))?;
    Ok(base.join("vef").join(env!("CARGO_PKG_VERSION")))
}

/// Writes libraries to a directory, unless they are there already. Programs run what is in it: it must be the user's alone.
fn unpack(directory: &Path, libraries: &[(&str, &[u8])]) -> Result<PathBuf, String> {
    let failed = |error: io::Error| {
        format!(
            "{}: the preload library cannot be written there: {error}; set XDG_CACHE_HOME to a directory that can be written and that all \
             nodes see, or name an installed library in {VARIABLE}",
            directory.display()
        )
    };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let user = rustix::process::geteuid().as_raw();
    let is_safe = |(depth, directory): (usize, &Path)| {
        let about = fs::metadata(directory)?;
        Ok(match depth {
            // The version, and `vef`.
            0 | 1 => about.uid() == user && about.mode() & 0o022 == 0,
            // In one for all, as /tmp, others cannot rename what is the user's.
            _ => {
                [0, user].contains(&about.uid()) && (about.mode() & 0o022 == 0 || about.mode() & 0o1000 != 0)
            }
        })
    };
    for directory in directory.ancestors().enumerate().take(3) {
        if !is_safe(directory).map_err(failed)? {
            let problem = format!("others may change what is in {}", directory.1.display());
            return Err(failed(io::Error::other(problem)));
        }
    }
    let mount = statvfs(directory).map_err(|error| failed(error.into()))?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(failed(io::Error::other("programs in it cannot be run (it is mounted with noexec)")));
    }
    for &(name, content) in libraries {
        let path = directory.join(name);
        if fs::read(&path).is_ok_and(|there| there == content) {
            continue;
        }
        // Another run may load it at this moment, or write it, too.
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(content)?;
            file.as_file().set_permissions(Permissions::from_mode(0o644))?;
            file.persist(&path).map_err(|error| error.error).map(drop)
        };
        write().map_err(failed)?;
    }
    Ok(directory.to_path_buf())
}

/// Refuses a library of another version, whose captures this `vef` may misread. Reads the file; its code does not run.
fn check_version(library: &Path) -> Result<(), String> {
    let content = fs::read(library).map_err(|error| format!("{}: {error}", library.display()))?;
    let own = env!("CARGO_PKG_VERSION");
    match version(&content) {
        Some(version) if version == own => Ok(()),
        Some(version) => Err(format!(
            "{}: the preload library of vef {version}, but this is vef {own}: install both together",
            library.display()
        )),
        None => Err(format!(
            "{}: not the preload library of vef {own}: the file has no version",
            library.display()
        )),
    }
}

/// The version in the content of a library.
fn version(content: &[u8]) -> Option<String> {
    let after = &content[memmem::find(content, VERSION)? + VERSION.len()..];
    let end = after.iter().take(64).position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&after[..end]).into_owned())
}

/// The tool that substitutes collectives, next to the preload library.
///
/// # Errors
/// A message with the path that does not exist.
pub fn collectives() -> Result<PathBuf, String> {
    let path = find()?.with_file_name(COLLECTIVES);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "{}: there is no such file; it is built by cargo build --release -p substitute in vef's source",
            path.display()
        )),
    }
}

/// Ranks may have other working directories, so the path must be absolute.
fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_searched_in_their_order() {
        let prefix = tempfile::tempdir().expect("a directory");
        let expected =
            ["bin", "lib/vef", "lib64/vef", "lib/aarch64-linux-gnu/vef", "lib/x86_64-linux-gnu/vef", "lib"];
        for directory in expected {
            fs::create_dir_all(prefix.path().join(directory)).expect("created");
        }
        fs::create_dir(prefix.path().join("lib/python3")).expect("created");
        let expected: Vec<_> = expected.iter().map(|name| prefix.path().join(name).join(FILE)).collect();
        assert_eq!(places(&prefix.path().join("bin")), expected);
        let said = not_found(&expected);
        assert!(expected.iter().all(|path| said.contains(path.to_str().expect("a path"))), "{said}");
    }

    #[test]
    fn what_is_unpacked_is_the_users_alone() {
        let cache = tempfile::tempdir().expect("a directory");
        let directory = cache.path().join("vef/1");
        let libraries: [(&str, &[u8]); 2] = [("a.so", b"first"), ("b.so", b"second")];
        let there = || libraries.map(|(name, _)| fs::read(directory.join(name)).expect("unpacked"));
        let inode = || fs::metadata(directory.join("a.so")).expect("unpacked").ino();
        assert_eq!(unpack(&directory, &libraries), Ok(directory.clone()));
        let first = inode();
        // What is there already stays; what is not that is replaced.
        fs::write(directory.join("b.so"), "changed").expect("written");
        unpack(&directory, &libraries).expect("unpacked again");
        assert_eq!((there(), inode()), ([b"first".to_vec(), b"second".to_vec()], first));
        assert_eq!(fs::read_dir(&directory).expect("there").count(), 2, "nothing else is left");
        for (changed, mode, is_safe) in [
            (&directory, 0o777, false),
            (&cache.path().join("vef"), 0o770, false),
            (&cache.path().to_path_buf(), 0o777, false),
            (&cache.path().to_path_buf(), 0o1777, true),
        ] {
            fs::set_permissions(changed, Permissions::from_mode(mode)).expect("changed");
            match unpack(&directory, &libraries) {
                Ok(_) => assert!(is_safe, "{mode:o} of {}", changed.display()),
                Err(said) => {
                    let told = format!("others may change what is in {};", changed.display());
                    assert!(!is_safe && said.contains(&told) && said.contains(VARIABLE), "{said}");
                }
            }
            fs::set_permissions(changed, Permissions::from_mode(0o700)).expect("changed back");
        }
        let said = unpack(Path::new("/proc/vef"), &libraries).expect_err("no such directory");
        assert!(said.starts_with("/proc/vef: ") && said.contains("XDG_CACHE_HOME"), "{said}");
    }

    #[test]
    fn a_library_has_its_version() {
        assert_eq!(version(b"..vef_interpose_version\0vef_interpose_version=1.2.3\0x"), Some("1.2.3".into()));
        assert_eq!(version(b"..vef_interpose_version\0"), None);
        assert_eq!(version(&[VERSION, &[b'1'; 100], b"\0"].concat()), None);
    }
}
