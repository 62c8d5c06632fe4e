//! Identifies the loaded objects of MPI and of tools: their calls are not the program's.

use mpi_abi::symbols::each_loaded_object;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The start and end address of a loaded object.
type Range = (usize, usize);

/// The known objects of MPI and of tools, in the order of discovery; null: end of the list.
static OWN: [AtomicPtr<Range>; 64] = [const { AtomicPtr::new(null_mut()) }; 64];

/// Prefixes of the names of MPI's libraries.
const NAMES: [&str; 14] = [
    "libmpi.so",
    "libmpi_",
    "libmpich",
    "libmpicxx.so",
    "libmpifort.so",
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
#[inline]
pub(crate) fn is_internal(address: usize) -> bool {
    // SAFETY: leaked boxes, or null.
    let known = OWN.iter().map_while(|place| unsafe { place.load(Ordering::Acquire).as_ref() });
    known.into_iter().any(|range| (range.0..range.1).contains(&address)) || is_newly_internal(address)
}

#[cold]
fn is_newly_internal(address: usize) -> bool {
    let is_internal = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or_default();
        NAMES.iter().any(|beginning| name.starts_with(beginning))
    };
    let own = object_at(address, is_internal);
    own.into_iter().for_each(remember);
    own.is_some()
}

/// Registers the object that contains an address as MPI's or a tool's.
pub(crate) fn add_internal(address: *const c_void) {
    object_at(address as usize, |_| true).into_iter().for_each(remember);
}

fn remember(range: Range) {
    let new = Box::into_raw(Box::new(range));
    let is_taken = |place: &AtomicPtr<Range>| {
        place.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    // When the list is full, further objects are looked up at each call.
    let _ = OWN.iter().any(is_taken);
}

/// The range of the loaded object that contains an address, if its name satisfies a condition.
fn object_at(address: usize, condition: impl Fn(&str) -> bool) -> Option<Range> {
    let mut found = None;
    each_loaded_object(&mut |object| {
        let range = object
            .segments(libc::PT_LOAD)
            .fold((usize::MAX, 0), |(first, end), segment| (first.min(segment.start), end.max(segment.end)));
        let is_it = (range.0..range.1).contains(&address);
        found = (is_it && condition(&object.name().to_string_lossy())).then_some(range);
        is_it
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_own() {
        let here = what_is_added_is_own as fn() as *const c_void;
        assert!(!is_internal(here as usize));
        add_internal(here);
        assert!(is_internal(here as usize) && !is_internal(libc::getpid as *const c_void as usize));
    }
}
