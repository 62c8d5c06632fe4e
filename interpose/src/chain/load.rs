//! Finds tools by name.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use mpi_abi::tool::{ABI, Descriptor, EXPORTED_AS, TABLE};
use std::mem::ManuallyDrop;
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
    // SAFETY: the user has asked to load this library, including its initialisers. It stays open.
    let library =
        unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| error.to_string())?;
    let library = ManuallyDrop::new(library);
    // SAFETY: the symbol of a tool is its descriptor.
    let descriptor = unsafe { library.get::<*const Descriptor>(EXPORTED_AS.to_bytes_with_nul()) };
    let descriptor = *descriptor
        .map_err(|_| format!("not a tool: it does not define {}", EXPORTED_AS.to_string_lossy()))?;
    // SAFETY: in every version the descriptor begins with these two words.
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

/// Whether this process reports errors for all ranks. MPI is not initialised yet, so the rank is taken from the
/// launcher's variables.
pub(super) fn is_reporting_process() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let rank = ranks.iter().find_map(|name| std::env::var(name).ok());
    rank.is_none_or(|rank| rank == "0")
}
