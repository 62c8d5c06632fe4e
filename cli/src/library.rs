//! Where the preload library is.

use std::path::PathBuf;

/// The library's file name.
pub const FILE: &str = "libvef_interpose.so";

/// The environment variable that names it outright.
pub const VARIABLE: &str = "VEF_INTERPOSE";

/// The preload library: what `VEF_INTERPOSE` names, else beside this program, else in `../lib` of it.
///
/// # Errors
/// A sentence that says where it was looked for.
pub fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(named);
        return match path.is_file() {
            true => absolute(path),
            false => Err(format!("{VARIABLE} names {}, which is no file", path.display())),
        };
    }
    let program = std::env::current_exe().map_err(|error| format!("cannot tell where vef is: {error}"))?;
    let beside = program.with_file_name(FILE);
    let installed = program.parent().and_then(|bin| bin.parent()).map(|top| top.join("lib").join(FILE));
    let places = [Some(beside), installed];
    match places.iter().flatten().find(|path| path.is_file()) {
        Some(path) => absolute(path.clone()),
        None => {
            let tried: Vec<_> = places.iter().flatten().map(|path| path.display().to_string()).collect();
            Err(format!(
                "the preload library is neither at {}; build it (cargo build --release -p interpose) or name it in {VARIABLE}",
                tried.join(" nor at ")
            ))
        }
    }
}

/// Ranks start in directories of their own: only an absolute path is the same file for all of them.
fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}
