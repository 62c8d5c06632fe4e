//! What can be wrong with a request for a schedule.

use crate::Operation;

/// Why there is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The communicator has no rank, or more than [`crate::MAX_RANKS`].
    #[error("a communicator of {ranks} ranks: 1 to {max} can be scheduled", max = crate::MAX_RANKS)]
    Ranks {
        /// Its size.
        ranks: u64,
    },
    /// The rank or the root is not of the communicator.
    #[error("rank {rank} is outside a communicator of {ranks} ranks")]
    RankOutside {
        /// The offender.
        rank: u32,
        /// The communicator's size.
        ranks: u32,
    },
    /// The operation has no such algorithm.
    #[error("{} has no algorithm '{algorithm}'", .operation.key())]
    NoSuchAlgorithm {
        /// What was to be done.
        operation: Operation,
        /// How.
        algorithm: &'static str,
    },
    /// The algorithm needs an even number of ranks.
    #[error("'{algorithm}' needs an even number of ranks, not {ranks}")]
    OddRanks {
        /// The algorithm.
        algorithm: &'static str,
        /// The communicator's size.
        ranks: u32,
    },
    /// The algorithm cannot do without every rank's size, or their order.
    #[error("{} by '{algorithm}' needs {needs}", .operation.key())]
    NeedsCounts {
        /// What was to be done.
        operation: Operation,
        /// How.
        algorithm: &'static str,
        /// What it needs.
        needs: &'static str,
    },
    /// These sizes make no sense for the operation.
    #[error("{} cannot be given its sizes as {sizes}", .operation.key())]
    WrongSizes {
        /// The operation.
        operation: Operation,
        /// The form of the sizes.
        sizes: &'static str,
    },
    /// Counts for another number of ranks.
    #[error("sizes of {counts} ranks for a communicator of {ranks}")]
    CountsMismatch {
        /// Sizes given.
        counts: u32,
        /// The communicator's size.
        ranks: u32,
    },
    /// `unit` is 0 or does not divide the sizes.
    #[error("{bytes} bytes are no multiple of the element's {unit} bytes")]
    Unit {
        /// The size.
        bytes: u64,
        /// The unit.
        unit: u32,
    },
    /// A sum of sizes beyond 2⁶⁴ − 1 bytes.
    #[error("the sizes add up to more than 2^64 - 1 bytes")]
    TooLarge,
    /// More than 2³⁰ segments.
    #[error("{bytes} bytes in segments of {segment} are more segments than 2^30")]
    TooManySegments {
        /// Bytes to be segmented.
        bytes: u64,
        /// Segment, bytes.
        segment: u64,
    },
    /// More channels than [`crate::MAX_CHANNELS`].
    #[error("{channels} channels: libraries have at most {max}", max = crate::MAX_CHANNELS)]
    TooManyChannels {
        /// The number asked for.
        channels: u32,
    },
}
