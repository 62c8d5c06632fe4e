//! Finds the preload library.

use std::path::PathBuf;

/// The library's file name.
pub const FILE: &str = "libvef_interpose.so";

/// The file name of the tool that substitutes collectives.
const COLLECTIVES: &str = "libvef_collectives.so";

/// Environment variable with its path.
pub const VARIABLE: &str = "VEF_INTERPOSE";

/// The preload library: `VEF_INTERPOSE`, else next to this program, else in `../lib`.
///
/// # Errors
/// A message with the places searched.
pub fn find() -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(named);
        return match path.is_file() {
            true => absolute(path),
            false => Err(format!("{VARIABLE}: {} is not a file", path.display())),
        };
    }
    let program =
        std::env::current_exe().map_err(|error| format!("cannot find the directory of vef: {error}"))?;
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

/// The tool that substitutes collectives, next to the preload library.
///
/// # Errors
/// A message with the path that does not exist.
pub fn collectives() -> Result<PathBuf, String> {
    let path = find()?.with_file_name(COLLECTIVES);
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "{}: there is no such file; build it (cargo build --release -p substitute)",
            path.display()
        )),
    }
}

/// Ranks may have other working directories, so the path must be absolute.
fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}
