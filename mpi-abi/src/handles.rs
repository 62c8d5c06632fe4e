//! MPI handles as plain values: one word each, comparable and hashable, whatever their width in the ABI.
//!
//! A handle is trusted: the calls in [`api`](crate::api) hand it to an MPI that may follow it as a pointer. So
//! making one from a word is `unsafe`, and so is whatever frees the object behind one. The program can free
//! objects, too: do not pass a handle that came from it to MPI after it did.

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $handle(usize);

        impl $handle {
            /// The handle that is this word.
            ///
            /// # Safety
            /// The word must be a handle of this type of the MPI in this process, with the bits beyond the ABI's
            /// handle width zero.
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
    )* };
}

handles! {
    /// A communicator.
    Comm,
    /// A datatype.
    Datatype,
    /// A request.
    Request,
    /// A matched message.
    Message,
    /// A reduction operation.
    Op,
    /// A group.
    Group,
    /// A window.
    Win,
    /// A file.
    File,
    /// An info object.
    Info,
    /// An error handler.
    Errhandler,
    /// A session.
    Session,
}
