//! MPI handles as plain values: one word each, comparable and hashable, of any width in the ABI.
//!
//! Handles are trusted: the calls in [`api`](crate::api) pass them to MPI, which may dereference them. Therefore the
//! conversion from a word is `unsafe`, and so are functions that free an object. The program may free objects, too: a
//! handle that came from the program must not be used afterwards.

/// A handle of any type.
pub(crate) trait Handle {
    /// As [`Comm::from_word`].
    unsafe fn of(word: usize) -> Self;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $handle(usize);

        impl $handle {
            /// Converts a word to a handle.
            ///
            /// # Safety
            /// The word must be a handle of this type of the MPI in this process; bits beyond the ABI's handle width must be zero.
            #[inline(always)]
            pub const unsafe fn from_word(word: usize) -> Self {
                $handle(word)
            }

            /// The handle as a word: a key, or an argument to pass on.
            #[inline(always)]
            pub const fn word(self) -> usize {
                self.0
            }
        }

        impl Handle for $handle {
            unsafe fn of(word: usize) -> Self {
                $handle(word)
            }
        }
    )* };
}

handles! {
    /// A communicator.
    Comm,
    /// A datatype.
    Datatype,
    /// A request.
    Request,
    /// A reduction operation.
    Op,
    /// A group.
    Group,
    /// A session.
    Session,
}
