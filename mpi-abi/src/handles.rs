//! MPI handles as plain values: one word each, comparable and hashable, whatever their width in the ABI.

macro_rules! handles {
    ($($(#[$doc:meta])* $handle:ident),* $(,)?) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        pub struct $handle(usize);

        impl $handle {
            /// The handle that is this word; bits beyond the ABI's handle width must be zero.
            #[inline(always)]
            pub const fn from_word(word: usize) -> Self {
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
