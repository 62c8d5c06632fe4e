//! What functions return: the codes, their names, and which version of the library speaks.

use std::ffi::{CStr, c_char, c_int};

/// Success.
pub const VEF_OK: c_int = 0;
/// A pointer is null where there must be something.
pub const VEF_ERROR_NULL: c_int = -1;
/// The handle is of another kind, or was freed (which is detected often, but not always).
pub const VEF_ERROR_HANDLE: c_int = -2;
/// An invalid value: a job that does not exist, a negative factor.
pub const VEF_ERROR_ARGUMENT: c_int = -3;
/// A call out of order: a builder without jobs, or one that has been built.
pub const VEF_ERROR_STATE: c_int = -4;
/// The trace cannot be read or replayed. It ends a replay: every later call returns the same code.
pub const VEF_ERROR_TRACE: c_int = -5;
/// The placement cannot be read, or has too few nodes.
pub const VEF_ERROR_PLACEMENT: c_int = -6;
/// The decision table cannot be read.
pub const VEF_ERROR_ALGORITHMS: c_int = -7;
/// The id is not that of a live message: it was made up, or its message has been delivered. The call had no effect.
pub const VEF_ERROR_ID: c_int = -8;
/// The message was reported sent before. The call had no effect.
pub const VEF_ERROR_SENT_TWICE: c_int = -9;
/// The time is before that of an earlier call, or before the message starts. The call had no effect.
pub const VEF_ERROR_TIME: c_int = -10;
/// The function was called from within a callback that may not call it.
pub const VEF_ERROR_REENTRANT: c_int = -11;
/// An error in this library; the handle can only be freed.
pub const VEF_ERROR_INTERNAL: c_int = -12;

const WORDS: [(c_int, &CStr); 13] = [
    (VEF_OK, c"ok"),
    (VEF_ERROR_NULL, c"a null pointer"),
    (VEF_ERROR_HANDLE, c"no such handle"),
    (VEF_ERROR_ARGUMENT, c"an impossible value"),
    (VEF_ERROR_STATE, c"a call out of order"),
    (VEF_ERROR_TRACE, c"the trace cannot be read or replayed"),
    (VEF_ERROR_PLACEMENT, c"the placement cannot be used"),
    (VEF_ERROR_ALGORITHMS, c"the decision table cannot be used"),
    (VEF_ERROR_ID, c"no message on its way has this id"),
    (VEF_ERROR_SENT_TWICE, c"the message was already reported sent"),
    (VEF_ERROR_TIME, c"time goes backwards"),
    (VEF_ERROR_REENTRANT, c"not from within a callback"),
    (VEF_ERROR_INTERNAL, c"a fault in vef_replay"),
];

/// A few words on a code.
pub(crate) fn words(status: c_int) -> &'static CStr {
    let known = WORDS.iter().find(|(known, _)| *known == status);
    known.map_or(if status > 0 { c"ok" } else { c"an unknown code" }, |(_, words)| words)
}

/// The version of this header; while the major number is 0, another minor number is another interface.
pub const VEF_REPLAY_VERSION_MAJOR: u32 = 0;
/// The minor number of the version.
pub const VEF_REPLAY_VERSION_MINOR: u32 = 2;
/// The patch number of the version: versions that differ in it alone have the same interface.
pub const VEF_REPLAY_VERSION_PATCH: u32 = 0;
/// The three in one number: major << 16 | minor << 8 | patch.
pub const VEF_REPLAY_VERSION: u32 =
    VEF_REPLAY_VERSION_MAJOR << 16 | VEF_REPLAY_VERSION_MINOR << 8 | VEF_REPLAY_VERSION_PATCH;

/// The version of the library that is running, laid out like `VEF_REPLAY_VERSION`. While its major number is 0, the
/// minor one must be that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn vef_replay_version() -> u32 {
    VEF_REPLAY_VERSION
}

/// A few words on a code: static text, never null. `vef_builder_error`, `vef_replay_error` and
/// `vef_engine_error` say what exactly happened.
#[unsafe(no_mangle)]
pub extern "C" fn vef_status_text(status: c_int) -> *const c_char {
    words(status).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_crate() {
        let number = |text: &str| text.parse::<u32>().unwrap();
        let crate_version = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
            | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
            | number(env!("CARGO_PKG_VERSION_PATCH"));
        assert_eq!(vef_replay_version(), crate_version);
    }

    #[test]
    fn codes_have_words() {
        for (at, (status, words)) in WORDS.iter().enumerate() {
            assert_eq!(*status, -(at as c_int));
            assert_eq!(vef_status_text(*status), words.as_ptr());
        }
        assert_eq!(vef_status_text(-99), c"an unknown code".as_ptr());
        assert_eq!(vef_status_text(3), c"ok".as_ptr());
    }
}
