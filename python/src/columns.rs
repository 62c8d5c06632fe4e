//! Columns of numbers that numpy takes without copying, by the buffer protocol.

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// The numbers of a column.
#[derive(Debug)]
pub(crate) enum Numbers {
    U8(Vec<u8>),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Numbers {
    /// Address, number, size of each, and the format as `struct` names it.
    fn parts(&self) -> (*const c_void, usize, usize, &'static CStr) {
        match self {
            Self::U8(all) => (all.as_ptr().cast(), all.len(), 1, c"B"),
            Self::U32(all) => (all.as_ptr().cast(), all.len(), 4, c"I"),
            Self::U64(all) => (all.as_ptr().cast(), all.len(), 8, c"Q"),
        }
    }
}

/// A column of numbers: `numpy.asarray(column)` and `memoryview(column)` show them without copying, to be read only.
#[pyclass(frozen, module = "vef._vef")]
#[derive(Debug)]
pub(crate) struct Column {
    numbers: Numbers,
    /// Length and stride, to which a view points.
    length: ffi::Py_ssize_t,
    stride: ffi::Py_ssize_t,
}

impl Column {
    pub(crate) fn new(numbers: Numbers) -> Self {
        let (_, length, size, _) = numbers.parts();
        Self { numbers, length: length as ffi::Py_ssize_t, stride: size as ffi::Py_ssize_t }
    }
}

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.numbers.parts().1
    }

    /// # Safety
    /// `view` must be null or point to a view to be filled in, as CPython's slot has it.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("a column is read only"));
        }
        let column = slf.get();
        let (address, length, size, format) = column.numbers.parts();
        let wanted = |flag: c_int| flags & flag == flag;
        let pointer = |part: &ffi::Py_ssize_t| ptr::from_ref(part).cast_mut();
        // SAFETY: not null, and CPython's. The view keeps the object, which is frozen, so that what it points to neither moves nor changes.
        unsafe {
            (*view).buf = address.cast_mut();
            (*view).len = (length * size) as ffi::Py_ssize_t;
            (*view).readonly = 1;
            (*view).itemsize = size as ffi::Py_ssize_t;
            (*view).format =
                if wanted(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { ptr::null_mut() };
            (*view).ndim = 1;
            (*view).shape = if wanted(ffi::PyBUF_ND) { pointer(&column.length) } else { ptr::null_mut() };
            (*view).strides =
                if wanted(ffi::PyBUF_STRIDES) { pointer(&column.stride) } else { ptr::null_mut() };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_any().into_ptr();
        }
        Ok(())
    }
}
