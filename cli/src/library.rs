//! Finds the preload library, and checks that it is of this version of `vef`.

use memchr::memmem;
use std::fs;
use std::path::{Path, PathBuf};

/// The library's file name.
pub const FILE: &str = "libvef_interpose.so";

/// The file name of the tool that substitutes collectives.
const COLLECTIVES: &str = "libvef_collectives.so";

/// Environment variable with its path.
pub const VARIABLE: &str = "VEF_INTERPOSE";

/// How its exported version begins (`vef_interpose_version` in `interpose/src/lib.rs`); the version and a null byte follow.
const VERSION: &[u8] = b"vef_interpose_version=";

/// The preload library: `VEF_INTERPOSE`, else the first of [`places`] that exists.
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
                None => return Err(not_found(&places)),
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
        "the preload library is at none of {}; install vef with it (scripts/install in vef's source), or name it in {VARIABLE}. A vef on a \
         network file system: is the directory mounted here?",
        tried.join(", ")
    )
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
    fn a_library_has_its_version() {
        assert_eq!(version(b"..vef_interpose_version\0vef_interpose_version=1.2.3\0x"), Some("1.2.3".into()));
        assert_eq!(version(b"..vef_interpose_version\0"), None);
        assert_eq!(version(&[VERSION, &[b'1'; 100], b"\0"].concat()), None);
    }
}
