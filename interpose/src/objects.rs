//! Identifies the loaded objects of MPI and of tools: their calls are not the program's.

use mpi_abi::symbols::each_loaded_object;
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// The known objects of MPI and of tools.
static OWN: RwLock<Vec<Range<usize>>> = RwLock::new(Vec::new());

/// Prefixes of the names of MPI's libraries.
const NAMES: [&str; 14] = [
    "libmpi.so",
    "libmpi_",
    "libmpich",
    "libmpicxx.so",
    "libmpifort",
    "libpmpi",
    "libfmpich",
    "libmpl.so",
    "libopa.so",
    "libopen-rte",
    "libopen-pal",
    "libprrte",
    "libromio",
    "mca_",
];

/// Whether an address is in the code of MPI or of a tool.
pub(crate) fn is_internal(address: usize) -> bool {
    let is_of_mpi = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or_default();
        NAMES.iter().any(|beginning| name.starts_with(beginning))
    };
    is_known(address) || add_object(address, is_of_mpi)
}

/// Registers the object that contains an address as MPI's or a tool's.
pub(crate) fn add_internal(address: *const c_void) {
    if !is_known(address as usize) {
        add_object(address as usize, |_| true);
    }
}

fn is_known(address: usize) -> bool {
    OWN.read().unwrap_or_else(PoisonError::into_inner).iter().any(|range| range.contains(&address))
}

/// Registers the loaded object that contains an address, if its name satisfies a condition; returns whether it does.
#[cold]
fn add_object(address: usize, condition: impl Fn(&str) -> bool) -> bool {
    let Some(range) = object_at(address, condition) else { return false };
    OWN.write().unwrap_or_else(PoisonError::into_inner).push(range);
    true
}

/// The range of the loaded object that contains an address, if its name satisfies a condition.
fn object_at(address: usize, condition: impl Fn(&str) -> bool) -> Option<Range<usize>> {
    let mut found = None;
    each_loaded_object(&mut |object| {
        let segments = object.segments(libc::PT_LOAD);
        let range =
            segments.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end)).unwrap_or_default();
        let is_it = range.contains(&address);
        found = (is_it && condition(&object.name().to_string_lossy())).then_some(range);
        is_it
    });
    found
}
