//! The border between C and Rust: what is handed in is checked and becomes references, what goes wrong becomes a
//! code and a text, and panics stop here.

use crate::status::*;
use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

/// Why a call fails: the code and what its handle says about it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: c_int,
    text: CString,
}

impl Failure {
    pub(crate) fn new(status: c_int, text: impl std::fmt::Display) -> Self {
        Self { status, text: owned_text(text) }
    }

    pub(crate) fn text(&self) -> &CStr {
        &self.text
    }

    /// A failure of which the code says all.
    pub(crate) fn plain(status: c_int) -> Self {
        Self { status, text: words(status).to_owned() }
    }
}

/// Text for C, as far as its first NUL.
pub(crate) fn owned_text(text: impl std::fmt::Display) -> CString {
    let mut bytes = text.to_string().into_bytes();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

/// Text that C may read for as long as `text` lives where it is.
pub(crate) fn text(text: &CStr) -> *const c_char {
    text.as_ptr()
}

/// What functions return: a number from 0, or a code.
pub(crate) trait Returned {
    fn of(status: c_int) -> Self;
}

impl Returned for c_int {
    fn of(status: c_int) -> Self {
        status
    }
}

impl Returned for isize {
    fn of(status: c_int) -> Self {
        // An int fits wherever a C library like this one can be used.
        status as Self
    }
}

/// What every handle begins with.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Head {
    /// [`Handle::TAG`], or [`BROKEN`].
    tag: u64,
    /// What the last call that failed says.
    error: CString,
}

/// Tag of a handle in which a panic may have left anything.
const BROKEN: u64 = u64::from_ne_bytes(*b"vef brok");

impl Head {
    pub(crate) fn new<H: Handle>() -> Self {
        Self { tag: H::TAG, error: CString::default() }
    }
}

/// Something that C holds by pointer. Implementors are `repr(C)` and begin with their [`Head`].
pub(crate) trait Handle: Sized + Send {
    /// Eight bytes that no other kind of handle begins with.
    const TAG: u64;

    fn head(&mut self) -> &mut Head;

    /// The handle for C, which gives it back to [`free`].
    fn into_handle(self) -> *mut Self {
        Box::into_raw(Box::new(self))
    }
}

/// Checks a handle, runs `call` on what it stands for and turns a failure into its code, a panic into
/// [`VEF_ERROR_INTERNAL`].
///
/// # Safety
/// `handle` is null, or points to eight aligned readable bytes that are no handle of this kind, or is one
/// of [`Handle::into_handle`] that is not freed and that nobody else uses meanwhile.
#[inline(always)]
pub(crate) unsafe fn with<H: Handle, N: Returned>(
    handle: *mut H,
    call: impl FnOnce(&mut H) -> Result<N, Failure>,
) -> N {
    // SAFETY: by this function's own contract.
    if let Err(status) = unsafe { check(handle) } {
        return N::of(status);
    }
    // SAFETY: the tag says that it is a handle of this kind, and by contract nobody else uses it.
    let handle = unsafe { &mut *handle };
    match catch_unwind(AssertUnwindSafe(|| call(handle))) {
        Ok(Ok(returned)) => returned,
        Ok(Err(failure)) => fail(handle, failure),
        Err(_) => broken(handle),
    }
}

/// # Safety
/// As [`with`].
#[inline(always)]
unsafe fn check<H: Handle>(handle: *mut H) -> Result<(), c_int> {
    if handle.is_null() {
        return Err(VEF_ERROR_NULL);
    }
    // SAFETY: by contract eight bytes can be read, and a handle begins with its tag.
    match unsafe { handle.cast::<u64>().read() } {
        tag if tag == H::TAG => Ok(()),
        BROKEN => Err(VEF_ERROR_INTERNAL),
        _ => Err(VEF_ERROR_HANDLE),
    }
}

#[cold]
fn fail<H: Handle, N: Returned>(handle: &mut H, failure: Failure) -> N {
    handle.head().error = failure.text;
    N::of(failure.status)
}

#[cold]
fn broken<H: Handle, N: Returned>(handle: &mut H) -> N {
    let head = handle.head();
    head.tag = BROKEN;
    head.error = match FAULT.take() {
        Some(panic) => owned_text(format_args!("{}: {panic}", words(VEF_ERROR_INTERNAL).to_string_lossy())),
        None => words(VEF_ERROR_INTERNAL).to_owned(),
    };
    N::of(VEF_ERROR_INTERNAL)
}

thread_local! {
    /// What the last panic of this thread said.
    static FAULT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on panics of this library print nothing: what they say becomes the error of their handle. A Rust program that has linked the
/// library keeps the panics of its own tests.
pub(crate) fn catch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if cfg!(test) {
            return;
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            match panic.location().is_some_and(|place| place.file().contains("tests/")) {
                true => before(panic),
                false => FAULT.set(Some(panic.to_string().replace('\n', " "))),
            }
        }));
    });
}

/// What the last failed call on a handle said: never null, "" if none failed.
///
/// # Safety
/// As [`with`]. The text lives until the next call on the handle.
pub(crate) unsafe fn error<H: Handle>(handle: *mut H) -> *const c_char {
    // SAFETY: by this function's own contract.
    match unsafe { check(handle) } {
        Err(status) if status != VEF_ERROR_INTERNAL => text(words(status)),
        // SAFETY: the tag says that it is a handle of this kind, also a broken one, and by contract nobody else uses it.
        _ => text(unsafe { &mut *handle }.head().error.as_c_str()),
    }
}

/// Runs `call`, which cannot panic, on a handle that may be broken; not on what is no handle.
///
/// # Safety
/// As [`with`].
pub(crate) unsafe fn even_broken<H: Handle, T>(handle: *mut H, call: impl FnOnce(&mut H) -> T) -> Option<T> {
    // SAFETY: by this function's own contract.
    match unsafe { check(handle) } {
        // SAFETY: the tag says that it is a handle of this kind, and by contract nobody else uses it.
        Ok(()) | Err(VEF_ERROR_INTERNAL) => Some(call(unsafe { &mut *handle })),
        Err(_) => None,
    }
}

/// Frees a handle, broken or not; null is fine, and what is no handle is left alone.
///
/// # Safety
/// As [`with`].
pub(crate) unsafe fn free<H: Handle>(handle: *mut H) {
    // SAFETY: by this function's own contract.
    if unsafe { even_broken(handle, |handle| handle.head().tag = 0) }.is_some() {
        // SAFETY: the tag said that it came from `into_handle` and was not freed since.
        let handle = unsafe { Box::from_raw(handle) };
        let _ = catch_unwind(AssertUnwindSafe(move || drop(handle)));
    }
}

/// Writes what a call gives back.
///
/// # Safety
/// `out` is null, or something of that type can be written there.
#[inline(always)]
pub(crate) unsafe fn write<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: by this function's own contract, and not null.
        unsafe { out.write(value) }
    }
}

/// The elements that a call gives back, each as large as the caller's header has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out<T> {
    first: *mut T,
    size: usize,
}

/// A struct that is written for C.
pub(crate) trait Versioned: Copy {
    /// Its size in the first version of the header: fields are only ever added at its end.
    const FIRST: usize = size_of::<Self>();
}

impl<T: Versioned> Out<T> {
    /// Refuses null, and a size that no version of the header has had.
    ///
    /// # Safety
    /// `first` is null, or as many elements of `size` bytes as are written later can be written there.
    #[inline(always)]
    pub(crate) unsafe fn new(first: *mut T, size: usize, name: &str) -> Result<Self, Failure> {
        present(first, name)?;
        match size >= T::FIRST && size.is_multiple_of(align_of::<T>()) {
            true => Ok(Self { first, size }),
            false => Err(wrong_size(name, size)),
        }
    }

    /// One element of this library's own.
    pub(crate) fn one(element: &mut MaybeUninit<T>) -> Self {
        Self { first: element.as_mut_ptr(), size: size_of::<T>() }
    }

    /// Writes an element; what a later header has behind its end becomes 0, what an earlier one has not is left out.
    ///
    /// # Safety
    /// The promise of [`Out::new`] holds for this one.
    #[inline(always)]
    pub(crate) unsafe fn write(self, at: usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe {
            let element = self.first.byte_add(at * self.size);
            if self.size < size_of::<T>() {
                // Of a copy, so that `value` itself needs no place in memory.
                let copy = value;
                element.cast::<u8>().copy_from_nonoverlapping((&raw const copy).cast(), self.size);
                return;
            }
            element.write(value);
            if self.size > size_of::<T>() {
                element.add(1).cast::<u8>().write_bytes(0, self.size - size_of::<T>());
            }
        }
    }
}

/// Refuses null.
#[inline(always)]
pub(crate) fn present<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    match pointer.is_null() {
        false => Ok(()),
        true => Err(null(name)),
    }
}

#[cold]
fn null(name: &str) -> Failure {
    Failure::new(VEF_ERROR_NULL, format_args!("{name} is null"))
}

#[cold]
fn wrong_size(name: &str, size: usize) -> Failure {
    Failure::new(VEF_ERROR_ARGUMENT, format_args!("{name}: no element has {size} bytes"))
}

/// An array that is handed in; null is an array of nothing.
///
/// # Safety
/// `first` is null, or `count` elements can be read there for as long as the result is used.
pub(crate) unsafe fn array<'a, T>(first: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    present(first, name)?;
    if count > isize::MAX as usize / size_of::<T>() {
        return Err(Failure::new(VEF_ERROR_ARGUMENT, format_args!("{name} cannot have {count} elements")));
    }
    // SAFETY: by this function's own contract; it is neither null nor longer than memory.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// A path that is handed in: any bytes but NUL.
///
/// # Safety
/// `path` is null or a NUL-terminated string for as long as the result is used.
pub(crate) unsafe fn path<'a>(path: *const c_char, name: &str) -> Result<&'a Path, Failure> {
    present(path, name)?;
    // SAFETY: by this function's own contract, and not null.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Reads a text file that is not longer than `most` bytes.
pub(crate) fn read_text(path: &Path, most: u64) -> std::io::Result<String> {
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(most + 1).read_to_string(&mut text)?;
    match read as u64 > most {
        true => Err(std::io::Error::other(format!("longer than {most} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    struct Thing {
        head: Head,
        value: i32,
    }

    impl Handle for Thing {
        const TAG: u64 = 77;
        fn head(&mut self) -> &mut Head {
            &mut self.head
        }
    }

    #[repr(C)]
    struct Other(Head);

    impl Handle for Other {
        const TAG: u64 = 78;
        fn head(&mut self) -> &mut Head {
            &mut self.0
        }
    }

    fn thing() -> *mut Thing {
        Thing { head: Head::new::<Thing>(), value: 5 }.into_handle()
    }

    fn said<H: Handle>(handle: *mut H) -> String {
        // SAFETY: a handle that is alive, and text that C could read.
        unsafe { CStr::from_ptr(error(handle)) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_failure_leaves_its_text_and_a_panic_breaks_the_handle() {
        let handle = thing();
        // SAFETY: `handle` is alive throughout, and nobody else has it.
        unsafe {
            assert_eq!(with(handle, |thing| Ok::<i32, _>(thing.value)), 5);
            assert_eq!(said(handle), "");
            let refused = |_: &mut Thing| Err(Failure::new(VEF_ERROR_ARGUMENT, "a\0b"));
            assert_eq!(with::<_, i32>(handle, refused), VEF_ERROR_ARGUMENT);
            assert_eq!(said(handle), "a");
            assert_eq!(with::<_, i32>(handle, |_| panic!("on purpose")), VEF_ERROR_INTERNAL);
            assert_eq!(with(handle, |thing| Ok::<i32, _>(thing.value)), VEF_ERROR_INTERNAL);
            assert_eq!(said(handle), "a fault in vef_replay");
            free(handle);
        }
    }

    #[test]
    fn null_and_other_handles_are_refused() {
        let handle = thing();
        let null = std::ptr::null_mut::<Thing>();
        // SAFETY: null, a handle of another kind that is alive, and one that is.
        unsafe {
            assert_eq!(with(null, |thing| Ok::<i32, _>(thing.value)), VEF_ERROR_NULL);
            assert_eq!(with(handle.cast::<Other>(), |_| Ok::<i32, _>(1)), VEF_ERROR_HANDLE);
            assert_eq!(said(handle.cast::<Other>()), "no such handle");
            free(null);
            free(handle.cast::<Other>());
            free(handle);
        }
    }
}
