//! Who takes calls away before they come here: a profiling library in front of the recorder, which calls `PMPI_Send`.

use std::ffi::{CStr, c_void};

/// Functions of which a profiling library has some.
const NAMES: [&CStr; 10] = [
    c"MPI_Send",
    c"MPI_Recv",
    c"MPI_Isend",
    c"MPI_Irecv",
    c"MPI_Wait",
    c"MPI_Waitall",
    c"MPI_Sendrecv",
    c"MPI_Barrier",
    c"MPI_Bcast",
    c"MPI_Allreduce",
];

/// The library that the loader finds for some functions instead of this one, and one of these functions.
pub(crate) fn hidden_by() -> Option<(String, &'static str)> {
    let own = object_of((hidden_by as *const ()).cast())?;
    // SAFETY: null names the program, in whose scope the libraries are in their order. With RTLD_DEFAULT, this one, linked with
    // `-Bsymbolic`, would be the first.
    let program = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
    if program.is_null() {
        return None;
    }
    NAMES.iter().find_map(|name| {
        // SAFETY: a handle, and a C string.
        let found = unsafe { libc::dlsym(program, name.as_ptr()) };
        let library = object_of(found).filter(|library| *library != own)?;
        // The program itself may have the address of a function for its pointers to it.
        library.contains(".so").then(|| (library, name.to_str().unwrap_or_default()))
    })
}

/// The file of the loaded object that has an address.
fn object_of(address: *const c_void) -> Option<String> {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: an address, and room for the answer.
    let found = unsafe { libc::dladdr(address, &raw mut info) } != 0 && !info.dli_fname.is_null();
    // SAFETY: the loader's name of a loaded object.
    found.then(|| unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}
