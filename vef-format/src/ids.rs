//! Identifiers of tasks, communicators, messages and collectives. The formats have plain integers; distinct types prevent
//! confusing, for example, a communicator rank with a world rank.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The id as an index into tables.
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
    /// The rank of a task within a communicator, 0-based.
    CommRank(u32), "");

impl CommRank {
    /// In place of a root's rank: `MPI_ROOT`, of the root of a collective between groups.
    pub const ROOT: Self = Self(u32::MAX);
    /// In place of a root's rank: `MPI_PROC_NULL`, of the other ranks in the root's group.
    pub const BESIDE_ROOT: Self = Self(u32::MAX - 1);
}

id!(
    /// A communicator: `C<id>` in a trace; in a capture, the number that one rank gave it.
    CommId(u32), "C");
id!(
    /// A point-to-point line of a trace; messages and local marks share the number space.
    MessageId(u64), "");
id!(
    /// A collective operation of a trace, `G<id>`; the same for all members.
    CollectiveId(u64), "G");
