//! Names of things: tasks, communicators, messages, collectives. All are plain integers in the formats and
//! distinct types here, so that a rank of a communicator is never taken for a rank of the world.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The id as an index into per-item tables.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id!(
    /// A task: its rank in `MPI_COMM_WORLD`, 0-based.
    Rank(u32), "");
id!(
    /// The rank of a task within one communicator, 0-based.
    CommRank(u32), "");
id!(
    /// A communicator: `C<id>` of a trace, or the number one rank gave it in its capture.
    CommId(u32), "C");
id!(
    /// A point-to-point line of a trace (messages and local marks share the space).
    MessageId(u64), "");
id!(
    /// A collective operation of a trace, `G<id>`: the same for all its members.
    CollectiveId(u64), "G");
