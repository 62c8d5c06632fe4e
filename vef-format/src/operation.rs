//! Collective operations: their codes in a trace and the meaning of `sendBytes`/`recvBytes` for each ([`Amounts`]).
//!
//! Codes 0, 2 and 6 were seen in traces of the original tools; the others are this project's choice, because
//! no trace at hand shows them. A user whose traces differ replaces the table ([`OpCodes`]).

use crate::units::Bytes;
use std::fmt;

/// The code of an operation as a trace line holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpCode(pub u16);

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal $verified:literal;)*) => {
        /// A collective operation of MPI that a trace can hold.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Operation { $($(#[$doc])* $name,)* }

        impl Operation {
            /// Every operation, in the order of the default codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code of the default table.
            pub const fn default_code(self) -> OpCode {
                match self { $(Self::$name => OpCode($code),)* }
            }

            /// Whether a trace of the original tools confirms the default code.
            pub const fn code_verified(self) -> bool {
                match self { $(Self::$name => $verified,)* }
            }

            /// The name of the MPI function, without `MPI_`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

operations! {
    /// The root's data to all.
    Bcast = 0 "Bcast" true;
    /// All data combined at the root.
    Reduce = 1 "Reduce" false;
    /// All data combined, everywhere.
    Allreduce = 2 "Allreduce" true;
    /// Equal blocks to the root.
    Gather = 3 "Gather" false;
    /// Equal blocks from the root.
    Scatter = 4 "Scatter" false;
    /// Equal blocks to everybody.
    Allgather = 5 "Allgather" false;
    /// Nobody leaves before all have come.
    Barrier = 6 "Barrier" true;
    /// An equal block from each to each.
    Alltoall = 7 "Alltoall" false;
    /// Blocks of any size to the root.
    Gatherv = 8 "Gatherv" false;
    /// Blocks of any size from the root.
    Scatterv = 9 "Scatterv" false;
    /// Blocks of any size to everybody.
    Allgatherv = 10 "Allgatherv" false;
    /// Blocks of any size from each to each.
    Alltoallv = 11 "Alltoallv" false;
    /// As `Alltoallv`, with a datatype a peer.
    Alltoallw = 12 "Alltoallw" false;
    /// All data combined, scattered in blocks of any size.
    ReduceScatter = 13 "Reduce_scatter" false;
    /// All data combined, scattered in equal blocks.
    ReduceScatterBlock = 14 "Reduce_scatter_block" false;
    /// Combined data of ranks 0…i at rank i.
    Scan = 15 "Scan" false;
    /// Combined data of ranks 0…i−1 at rank i.
    Exscan = 16 "Exscan" false;
}

impl Operation {
    /// Whether one task, the root, is special.
    pub const fn is_rooted(self) -> bool {
        matches!(
            self,
            Self::Bcast | Self::Reduce | Self::Gather | Self::Scatter | Self::Gatherv | Self::Scatterv
        )
    }

    /// Whether the root of a rooted operation is the one that sends (Bcast, Scatter, Scatterv).
    pub const fn root_sends(self) -> bool {
        matches!(self, Self::Bcast | Self::Scatter | Self::Scatterv)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What one task's part of a collective operation moves, in bytes of data (count × type size); the same two
/// numbers in a capture and in a trace line. Only what is significant at that task counts:
///
/// | operation | `send` | `recv` |
/// |---|---|---|
/// | Bcast of n | root n, others 0 | root 0, others n |
/// | Reduce of n | root 0, others n | root n, others 0 |
/// | Gather(v) | root 0, others their block | root all blocks but its own, others 0 |
/// | Scatter(v) | root all blocks but its own, others 0 | root 0, others their block |
/// | Allreduce, Scan, Exscan of n | n | n |
/// | Allgather(v) | own block | sum of all blocks |
/// | Alltoall(v,w) | sum of the blocks sent | sum of the blocks received |
/// | Reduce_scatter(_block) | sum of all blocks | own block |
/// | Barrier | 0 | 0 |
///
/// `MPI_IN_PLACE` changes nothing: the amounts are those of the equal call with separate buffers. The root of a
/// rooted operation is the task whose sizes say so; where they cannot (zero bytes), text says communicator
/// rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Data contributed.
    pub send: Bytes,
    /// Data obtained.
    pub recv: Bytes,
}

/// The codes that stand for the operations in a trace: [`OpCodes::default`], or a user's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpCodes {
    codes: Vec<(OpCode, Operation)>,
}

impl Default for OpCodes {
    fn default() -> Self {
        Self { codes: Operation::ALL.iter().map(|&op| (op.default_code(), op)).collect() }
    }
}

impl OpCodes {
    /// The operation that `code` stands for.
    #[inline]
    pub fn operation(&self, code: OpCode) -> Option<Operation> {
        match self.codes.get(code.0 as usize) {
            Some(&(at, op)) if at == code => Some(op),
            _ => self.codes.iter().find(|(at, _)| *at == code).map(|&(_, op)| op),
        }
    }

    /// The code of `op`, if the table has one.
    pub fn code(&self, op: Operation) -> Option<OpCode> {
        self.codes.iter().find(|(_, named)| *named == op).map(|&(code, _)| code)
    }
}
