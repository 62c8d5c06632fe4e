//! The numbers by which a mix refers to messages, receives, records and the like: a type for each, so that none is taken for
//! another.

use serde::{Deserialize, Serialize};

/// Defines index types.
macro_rules! indices {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        pub(crate) struct $name(pub(crate) u32);

        #[allow(dead_code, reason = "not every type needs both")]
        impl $name {
            /// Not an index.
            pub(crate) const NONE: Self = Self(u32::MAX);

            /// The index as that of a list.
            #[inline(always)]
            pub(crate) fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

indices! {
    /// A communicator of the run. The number depends on the scheduling of threads, so the output must not depend on it.
    CommIndex
    /// One of the channels on which a task sends, or on which it receives.
    ChannelIndex
    /// A message among those that its task sends, in the order of the calls.
    MessageIndex
    /// A receive among those of its task, in posting order.
    ReceiveIndex
    /// A collective among those of its task.
    CollectiveIndex
    /// An operation among the collective operations of its communicator.
    OperationIndex
    /// A record of a task, in the order of the walk.
    RecordIndex
    /// A record in its [`Window`](crate::window::Window).
    Slot
    /// The id that a message, mark or collective operation has in the trace.
    LineId
}
