//! From names to tools.

use mpi_abi::tool::{ABI, Descriptor, EXPORTED_AS, TABLE};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The names in `a.so:b.so:a.so`.
pub(super) fn split(names: &str) -> impl Iterator<Item = &str> {
    names.split(':').map(str::trim).filter(|name| !name.is_empty())
}

/// The tool that a name stands for.
pub(super) fn find(name: &str) -> Result<&'static Descriptor, String> {
    open(name).map_err(|why| format!("tool {name}: {why}"))
}

fn open(name: &str) -> Result<&'static Descriptor, String> {
    if !name.contains('/') && !name.contains(".so") {
        return Err(
            "not a built-in tool (capture, profile, text), and a file's name has a / or ends in .so".into()
        );
    }
    // The loader searches its path for a bare name, but a file that is here is what was meant.
    let path = match Path::new(name) {
        path if path.exists() && !name.contains('/') => Path::new(".").join(path),
        path => path.to_owned(),
    };
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: a C string; the user asks for this library's initialisers to run.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(loader_says());
    }
    // SAFETY: an open library and a C string.
    let descriptor: *const Descriptor = unsafe { libc::dlsym(library, EXPORTED_AS.as_ptr()) }.cast();
    if descriptor.is_null() {
        return Err(format!("not a tool: it does not define {}", EXPORTED_AS.to_string_lossy()));
    }
    // SAFETY: what is exported under this name begins with these two words in every version; the library stays open.
    let (abi, size) = unsafe { ((*descriptor).abi, (*descriptor).size) };
    if abi != ABI || size as usize != size_of::<Descriptor>() {
        return Err(format!(
            "made for version {abi} of the tools' interface, this is version {ABI}: compile it anew"
        ));
    }
    // SAFETY: the right version, so the right layout.
    let descriptor = unsafe { &*descriptor };
    if descriptor.table != TABLE {
        return Err("made with another vef_tool.h (other numbers of functions): compile it anew".into());
    }
    Ok(descriptor)
}

fn loader_says() -> String {
    // SAFETY: null, or a string that is valid until the next call of the loader in this thread.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { c"cannot be opened" } else { CStr::from_ptr(text) }
    };
    text.to_string_lossy().into_owned()
}

/// Whether this process speaks for all: the launchers number their ranks before there is an MPI to ask.
pub(super) fn speaks() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let rank = ranks.iter().find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_and_told_apart() {
        assert_eq!(split("a.so:b.so: a.so :").collect::<Vec<_>>(), ["a.so", "b.so", "a.so"]);
        for (name, part) in [
            ("profiler", "not a built-in tool"),
            ("./none/such.so", "cannot open shared object"),
            ("libc.so.6", "not a tool"),
        ] {
            let Err(said) = find(name) else { panic!("{name} is a tool") };
            assert!(said.contains(part) && said.starts_with(&format!("tool {name}: ")), "{said}");
        }
    }
}
