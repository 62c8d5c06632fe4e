//! Finds tools by name.

use mpi_abi::tool::{ABI, Descriptor, EXPORTED_AS, TABLE};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The tool with this name.
pub(super) fn find(name: &str) -> Result<&'static Descriptor, String> {
    open(name).map_err(|why| format!("tool {name}: {why}"))
}

fn open(name: &str) -> Result<&'static Descriptor, String> {
    if !name.contains('/') && !name.contains(".so") {
        return Err(
            "neither a built-in tool (capture, profile, text) nor a file (with a / or ending in .so)".into(),
        );
    }
    // The loader would search a bare name in its path only; prefer a file in the current directory.
    let path = match Path::new(name) {
        path if path.exists() && !name.contains('/') => Path::new(".").join(path),
        path => path.to_owned(),
    };
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: a C string; the user has asked to load this library, including its initialisers.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        return Err(loader_says());
    }
    // SAFETY: an open library and a C string.
    let descriptor: *const Descriptor = unsafe { libc::dlsym(library, EXPORTED_AS.as_ptr()) }.cast();
    if descriptor.is_null() {
        return Err(format!("not a tool: it does not define {}", EXPORTED_AS.to_string_lossy()));
    }
    // SAFETY: in every version the descriptor begins with these two words; the library stays open.
    let (abi, size) = unsafe { ((*descriptor).abi, (*descriptor).size) };
    if abi != ABI || size as usize != size_of::<Descriptor>() {
        return Err(format!(
            "made for version {abi} of the tools' interface, this library has version {ABI}: recompile the tool"
        ));
    }
    // SAFETY: the right version, so the right layout.
    let descriptor = unsafe { &*descriptor };
    if descriptor.table != TABLE {
        return Err("made with another vef_tool.h (functions have other numbers): recompile the tool".into());
    }
    Ok(descriptor)
}

fn loader_says() -> String {
    // SAFETY: null, or a string that is valid until this thread's next call of the loader.
    let text = unsafe {
        let text = libc::dlerror();
        if text.is_null() { c"cannot be opened" } else { CStr::from_ptr(text) }
    };
    text.to_string_lossy().into_owned()
}

/// Whether this process reports errors for all ranks. MPI is not initialised yet, so the rank is taken from the
/// launcher's variables.
pub(super) fn is_reporting_process() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let rank = ranks.iter().find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank == "0")
}
