//! What went wrong with a replay: an engine's errors as codes, the error that has ended it, and the report of what is stuck.

use crate::border::{self, Failure, Handle, with};
use crate::status::*;
use replay::{NoInstance, ReplayError, Stuck};
use std::ffi::{CString, c_char, c_int};

/// The failures of one replay.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// What ended it: an error in the trace.
    ended: Option<Failure>,
    /// The text that [`stuck`] returned last.
    report: CString,
}

impl Faults {
    /// An error of the engine with its code; an error in the trace is every later call's too.
    #[cold]
    pub(crate) fn refusal(&mut self, error: ReplayError) -> Failure {
        if let (ReplayError::Ended, Some(ended)) = (&error, &self.ended) {
            return ended.clone();
        }
        let status = match &error {
            ReplayError::NotLive { .. } => VEF_ERROR_ID,
            ReplayError::AlreadySent { .. } => VEF_ERROR_SENT_TWICE,
            ReplayError::Backwards { .. } | ReplayError::BeforeStart { .. } => VEF_ERROR_TIME,
            ReplayError::Begun | ReplayError::NoInstance { why: NoInstance::NotBegun, .. } => VEF_ERROR_STATE,
            ReplayError::NotWaiting
            | ReplayError::NotExported { .. }
            | ReplayError::NothingToExport { .. }
            | ReplayError::NotHere
            | ReplayError::ImportedTwice
            | ReplayError::NoInstance { .. }
            | ReplayError::NoMember { .. } => VEF_ERROR_ARGUMENT,
            ReplayError::CannotBegin { error, .. } if matches!(**error, ReplayError::Overflow { .. }) => {
                VEF_ERROR_ARGUMENT
            }
            _ => VEF_ERROR_TRACE,
        };
        let failure = Failure::new(status, &error);
        if !error.is_misuse() {
            self.ended = Some(failure.clone());
        }
        failure
    }

    /// The error that has ended the replay, if one has.
    #[inline(always)]
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.ended.as_ref().map_or(Ok(()), |ended| Err(ended.clone()))
    }

    /// Why it does not go on, if it does not; null otherwise.
    pub(crate) fn explain(&mut self, stuck: Option<Stuck>) -> *const c_char {
        let report = match &self.ended {
            Some(ended) => Some(ended.text().to_owned()),
            None => stuck.map(border::owned_text),
        };
        match report {
            Some(report) => {
                self.report = report;
                border::text(&self.report)
            }
            None => std::ptr::null(),
        }
    }
}

/// What `explain` returns of a handle; the text of the code if it is not usable.
///
/// # Safety
/// As [`with`].
pub(crate) unsafe fn stuck<H: Handle>(
    handle: *mut H,
    explain: impl FnOnce(&mut H) -> *const c_char,
) -> *const c_char {
    let mut text = std::ptr::null();
    let ask = |handle: &mut H| {
        text = explain(handle);
        Ok::<c_int, _>(0)
    };
    // SAFETY: by this function's own contract.
    match unsafe { with(handle, ask) } {
        VEF_OK => text,
        status => border::text(words(status)),
    }
}
