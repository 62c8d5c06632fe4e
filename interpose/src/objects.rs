//! Identifies the loaded objects of MPI and of tools: their calls are not the program's.

use std::ffi::{CStr, c_int, c_void};
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
    let own = object_at(address, |name| {
        let name = name.rsplit('/').next().unwrap_or_default();
        NAMES.iter().any(|beginning| name.starts_with(beginning))
    });
    match own {
        Some((range, true)) => {
            remember(range);
            true
        }
        _ => false,
    }
}

/// Registers the object that contains an address as MPI's or a tool's.
pub(crate) fn add_internal(address: *const c_void) {
    if let Some((range, _)) = object_at(address as usize, |_| true) {
        remember(range);
    }
}

fn remember(range: Range) {
    let new = Box::into_raw(Box::new(range));
    let is_taken = |place: &AtomicPtr<Range>| {
        place.compare_exchange(null_mut(), new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    // When the list is full, further objects are looked up at each call.
    let _ = OWN.iter().any(is_taken);
}

/// The range of the loaded object that contains an address, and the result of `judge` for its name.
fn object_at(address: usize, judge: impl Fn(&str) -> bool) -> Option<(Range, bool)> {
    struct Search<'a> {
        address: usize,
        judge: &'a dyn Fn(&str) -> bool,
        found: Option<(Range, bool)>,
    }
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, search: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid `info`; `search` is the one given below, used by this call only.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
        // SAFETY: as many headers as the loader says.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let start = |header: &libc::Elf64_Phdr| info.dlpi_addr as usize + header.p_vaddr as usize;
        let range = loaded.fold((usize::MAX, 0), |(first, end), header| {
            (first.min(start(header)), end.max(start(header) + header.p_memsz as usize))
        });
        if !(range.0..range.1).contains(&search.address) {
            return 0;
        }
        let name = match info.dlpi_name.is_null() {
            true => "".into(),
            // SAFETY: a C string of the loader's.
            false => unsafe { CStr::from_ptr(info.dlpi_name) }.to_string_lossy(),
        };
        search.found = Some((range, (search.judge)(&name)));
        1
    }
    let mut search = Search { address, judge: &judge, found: None };
    // SAFETY: `look` has the prototype that the loader calls, and `search` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
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
