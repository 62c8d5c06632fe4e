//! A replay from its beginning again, and its state as bytes, of both handles.

use crate::border::{self, Failure, Handle, with};
use crate::status::*;
use replay::CheckpointError;
use std::ffi::{c_int, c_void};

/// A handle that can be saved.
pub(crate) trait Saved: Handle {
    /// Begins again.
    fn reset(&mut self) -> Result<(), Failure>;

    /// Its state.
    fn save(&mut self) -> Result<Vec<u8>, Failure>;

    /// Takes a state over.
    fn restore(&mut self, state: &[u8]) -> Result<(), Failure>;
}

/// An error of a checkpoint with its code.
pub(crate) fn refused(error: CheckpointError) -> Failure {
    let status = match error {
        CheckpointError::Source(_) | CheckpointError::Ended => VEF_ERROR_TRACE,
        CheckpointError::Instances => VEF_ERROR_STATE,
        CheckpointError::NoCheckpoint | CheckpointError::Damaged | CheckpointError::OtherReplay => {
            VEF_ERROR_ARGUMENT
        }
    };
    Failure::new(status, error)
}

/// # Safety
/// As [`with`].
pub(crate) unsafe fn reset(handle: *mut impl Saved) -> c_int {
    // SAFETY: by this function's own contract.
    unsafe { with(handle, |saved| saved.reset().map(|()| 0)) }
}

/// # Safety
/// As [`with`]; `state` is null or has `room` bytes that can be written.
pub(crate) unsafe fn save(handle: *mut impl Saved, state: *mut c_void, room: usize) -> isize {
    let call = |saved: &mut _| {
        let bytes = Saved::save(saved)?;
        if bytes.len() <= room {
            border::present(state, "state")?;
            // SAFETY: the caller's promise; the two do not overlap, for one is new.
            unsafe { state.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        Ok(bytes.len() as isize)
    };
    // SAFETY: by this function's own contract.
    unsafe { with(handle, call) }
}

/// # Safety
/// As [`with`]; `state` is null or has `size` bytes.
pub(crate) unsafe fn restore(handle: *mut impl Saved, state: *const c_void, size: usize) -> c_int {
    // SAFETY: by this function's own contract, here and in the closure.
    unsafe {
        with(handle, |saved| {
            let state = border::array(state.cast::<u8>(), size, "state")?;
            saved.restore(state).map(|()| 0)
        })
    }
}
