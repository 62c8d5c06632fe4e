//! MPI's collective operations, all that the workspace knows of them ([`Operation`]): names, codes in traces, and which data
//! each member has ([`Operation::sizing`], [`Operation::root`], [`Amounts`]).
//!
//! Codes 0, 2 and 6 occur in traces of the original tools; no trace shows the others, which are this project's choice.
//! [`OpCodes`] replaces them for other traces.

use crate::error::Located;
use crate::units::Bytes;
use std::fmt;
use std::io;
use std::path::Path;

/// The code of an operation in a trace line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct OpCode(pub u16);

/// How the data of an operation is divided among the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// No data.
    None,
    /// One vector, as long at every member.
    Vector,
    /// A block for each member, all of one size.
    EqualBlocks,
    /// A block for each member, of any size.
    Blocks,
    /// A block for each pair of members, all of one size.
    EqualPairs,
    /// A block for each pair of members, of any size.
    Pairs,
}

/// The part of a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// It has the data, and the others receive.
    Sends,
    /// It receives the data of all.
    Receives,
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident, $mpi:literal, $key:literal, $code:literal $verified:literal, $sizing:ident, $root:expr, $reduces:literal;)*) => {
        /// A collective operation of MPI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Operation { $($(#[$doc])* #[serde(alias = $key)] $name,)* }

        impl Operation {
            /// All operations, in the order of their default codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name of the MPI function without `MPI_`: `Reduce_scatter`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $mpi,)* }
            }

            /// The name in options, decision tables and results of benchmarks: `reduce-scatter`.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)* }
            }

            /// The code in the default table.
            pub const fn default_code(self) -> OpCode {
                match self { $(Self::$name => OpCode($code),)* }
            }

            /// Whether a trace of the original tools confirms the default code.
            pub const fn code_verified(self) -> bool {
                match self { $(Self::$name => $verified,)* }
            }

            /// How its data is divided.
            pub const fn sizing(self) -> Sizing {
                match self { $(Self::$name => Sizing::$sizing,)* }
            }

            /// The part of its root, if it has one.
            pub const fn root(self) -> Option<Root> {
                use Root::{Receives, Sends};
                match self { $(Self::$name => $root,)* }
            }

            /// Whether it combines the members' values.
            pub const fn reduces(self) -> bool {
                match self { $(Self::$name => $reduces,)* }
            }
        }
    };
}

// Name, in MPI, key, code in traces (confirmed by one?), division of the data, part of the root, whether it reduces.
operations! {
    /// The root's data to all members.
    Bcast, "Bcast", "bcast", 0 true, Vector, Some(Sends), false;
    /// The reduction of all data, at the root.
    Reduce, "Reduce", "reduce", 1 false, Vector, Some(Receives), true;
    /// The reduction of all data, at all members.
    Allreduce, "Allreduce", "allreduce", 2 true, Vector, None, true;
    /// Equal blocks of all members, at the root.
    Gather, "Gather", "gather", 3 false, EqualBlocks, Some(Receives), false;
    /// Equal blocks from the root to all members.
    Scatter, "Scatter", "scatter", 4 false, EqualBlocks, Some(Sends), false;
    /// Equal blocks of all members, at all members.
    Allgather, "Allgather", "allgather", 5 false, EqualBlocks, None, false;
    /// No member returns before all have called.
    Barrier, "Barrier", "barrier", 6 true, None, None, false;
    /// An equal block from each member to each.
    Alltoall, "Alltoall", "alltoall", 7 false, EqualPairs, None, false;
    /// Blocks of any size of all members, at the root.
    Gatherv, "Gatherv", "gatherv", 8 false, Blocks, Some(Receives), false;
    /// Blocks of any size from the root to all members.
    Scatterv, "Scatterv", "scatterv", 9 false, Blocks, Some(Sends), false;
    /// Blocks of any size of all members, at all members.
    Allgatherv, "Allgatherv", "allgatherv", 10 false, Blocks, None, false;
    /// A block of any size from each member to each.
    Alltoallv, "Alltoallv", "alltoallv", 11 false, Pairs, None, false;
    /// Like `Alltoallv`, with a datatype for each peer.
    Alltoallw, "Alltoallw", "alltoallw", 12 false, Pairs, None, false;
    /// The reduction of all data, scattered in blocks of any size.
    ReduceScatter, "Reduce_scatter", "reduce-scatter", 13 false, Blocks, None, true;
    /// The reduction of all data, scattered in equal blocks.
    ReduceScatterBlock, "Reduce_scatter_block", "reduce-scatter-block", 14 false, EqualBlocks, None, true;
    /// The reduction of the data of ranks 0…i, at rank i.
    Scan, "Scan", "scan", 15 false, Vector, None, true;
    /// The reduction of the data of ranks 0…i−1, at rank i.
    Exscan, "Exscan", "exscan", 16 false, Vector, None, true;
}

impl Operation {
    /// The operation with that name or key, in any case: `Reduce_scatter`, `reduce-scatter`.
    pub fn named(text: &str) -> Option<Self> {
        let text = text.replace('-', "_");
        Self::ALL.iter().find(|operation| operation.name().eq_ignore_ascii_case(&text)).copied()
    }

    /// The amounts of a member with a block (or vector) of `own` bytes, where all blocks have `sum` bytes together: in a rooted
    /// operation those of the root, else those of the member.
    #[inline]
    pub fn amounts(self, is_root: bool, own: Bytes, sum: Bytes) -> Amounts {
        let none = Bytes::ZERO;
        let (send, recv) = match (self.sizing(), self.root()) {
            (Sizing::None, _) => (none, none),
            (Sizing::Vector, None) => (own, own),
            (Sizing::EqualPairs | Sizing::Pairs, _) => (sum, sum),
            (_, None) if self.reduces() => (sum, own),
            (_, None) => (own, sum),
            (_, Some(Root::Sends)) if !is_root => (none, own),
            (_, Some(Root::Receives)) if !is_root => (own, none),
            (Sizing::Vector, Some(Root::Sends)) => (own, none),
            (Sizing::Vector, Some(Root::Receives)) => (none, own),
            (_, Some(Root::Sends)) => (sum - own, none),
            (_, Some(Root::Receives)) => (none, sum - own),
        };
        Amounts { send, recv }
    }

    /// Whether the operation has a root.
    pub const fn is_rooted(self) -> bool {
        self.root().is_some()
    }

    /// Whether a member with these amounts is the root of this rooted operation. If no member moves data, this is `false` for
    /// all members.
    pub const fn is_root(self, amounts: Amounts) -> bool {
        match self.root() {
            Some(Root::Sends) => amounts.send.0 > 0,
            Some(Root::Receives) => amounts.recv.0 > 0,
            None => false,
        }
    }

    /// The block of a member with these amounts, for operations in which each member gives only its own block: Gatherv,
    /// Scatterv, Allgatherv and Reduce_scatter. The root's own block counts as 0, because no data moves.
    pub const fn own_block(self, amounts: Amounts) -> Option<Bytes> {
        match (self.sizing(), self.root()) {
            (Sizing::Blocks, Some(Root::Sends)) => Some(amounts.recv),
            (Sizing::Blocks, _) if self.reduces() => Some(amounts.recv),
            (Sizing::Blocks, _) => Some(amounts.send),
            _ => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Bytes of data (count × type size) that one task's part of a collective moves; the same numbers in a capture and in a
/// trace line. Only what MPI defines as significant at the task counts:
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
/// `MPI_IN_PLACE` makes no difference: the amounts are those of the equivalent call with separate buffers. The root of a
/// rooted operation is the task whose amounts show it; if none do (zero bytes), text assumes communicator rank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Bytes sent.
    pub send: Bytes,
    /// Bytes received.
    pub recv: Bytes,
}

/// The table of operation codes of a trace: [`OpCodes::default`], a user's table, or that of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpCodes {
    codes: Vec<(OpCode, Operation)>,
    /// Operations unknown to this version, by name, so that converting a container keeps them.
    unknown: Vec<(OpCode, String)>,
}

impl Default for OpCodes {
    fn default() -> Self {
        let codes = Operation::ALL.iter().map(|&op| (op.default_code(), op)).collect();
        Self { codes, unknown: Vec::new() }
    }
}

/// Why a table of codes cannot be read.
pub type OpCodesError = Located<OpCodesProblem>;

/// What is wrong with a table of codes.
#[derive(Debug, thiserror::Error)]
pub enum OpCodesProblem {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The table is not one: which line, and why.
    #[error("{0}")]
    Table(String),
}

impl OpCodes {
    /// The part of the default table that traces of the original tools confirm.
    pub fn verified() -> Self {
        let mut table = Self::default();
        table.codes.retain(|(_, operation)| operation.code_verified());
        table
    }

    /// Reads a user's table from the file `path`. It replaces the whole default table.
    ///
    /// Each line is `code name`, where the name is that of the MPI function in any case, with or without `MPI_`. Empty lines
    /// and text from `#` on are ignored.
    pub fn open(path: &Path) -> Result<Self, OpCodesError> {
        match std::fs::read(path) {
            Ok(text) => Self::parse(&String::from_utf8_lossy(&text), path),
            Err(error) => Err(OpCodesError::file(path, error)),
        }
    }

    /// Parses a table; `path` is used in errors only.
    pub fn parse(text: &str, path: &Path) -> Result<Self, OpCodesError> {
        let mut codes: Vec<(OpCode, Operation)> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let row = table_row(text).and_then(|(code, operation)| {
                match codes.iter().find(|&&(other, named)| other == code || named == operation) {
                    Some((other, _)) if *other == code => {
                        Err(format!("code {} is in the table already", code.0))
                    }
                    Some(_) => Err(format!("{operation} is in the table already")),
                    None => Ok((code, operation)),
                }
            });
            let wrong = |text| OpCodesError::line(path, line, OpCodesProblem::Table(text));
            codes.push(row.map_err(wrong)?);
        }
        if codes.is_empty() {
            return Err(OpCodesError::file(path, OpCodesProblem::Table("the table is empty".to_owned())));
        }
        Ok(Self { codes, unknown: Vec::new() })
    }

    /// An empty table.
    pub(crate) fn none() -> Self {
        Self { codes: Vec::new(), unknown: Vec::new() }
    }

    /// The name of the operation with `code`, known or not.
    pub fn name(&self, code: OpCode) -> Option<&str> {
        self.names().find(|&(known, _)| known == code).map(|(_, name)| name)
    }

    /// Adds the operation `name`, known or not.
    pub(crate) fn push(&mut self, code: OpCode, name: String) {
        match Operation::ALL.iter().find(|operation| operation.name() == name) {
            Some(&operation) => self.codes.push((code, operation)),
            None => self.unknown.push((code, name)),
        }
    }

    /// All codes and names; unknown operations last.
    pub fn names(&self) -> impl Iterator<Item = (OpCode, &str)> {
        let known = self.codes.iter().map(|&(code, operation)| (code, operation.name()));
        known.chain(self.unknown.iter().map(|(code, name)| (*code, name.as_str())))
    }

    /// The known operations and their codes.
    pub fn rows(&self) -> &[(OpCode, Operation)] {
        &self.codes
    }

    /// The operation with `code`.
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

/// Parses a row of a user's table.
fn table_row(text: &str) -> Result<(OpCode, Operation), String> {
    let quoted = |text: &str| text.chars().take(40).flat_map(char::escape_debug).collect::<String>();
    let mut words = text.split_whitespace();
    let (Some(digits), Some(name), None) = (words.next(), words.next(), words.next()) else {
        return Err(format!("`{}` is not a line of the form `code name`", quoted(text)));
    };
    let code = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().ok().map(OpCode),
        false => None,
    };
    let code = code.ok_or_else(|| format!("code `{}` is not a number from 0 to 65535", quoted(digits)))?;
    let prefix = name.get(..4).filter(|prefix| prefix.eq_ignore_ascii_case("MPI_"));
    let bare = &name[prefix.map_or(0, str::len)..];
    let operation = Operation::named(bare);
    let operation =
        operation.ok_or_else(|| format!("no collective operation is called `{}`", quoted(name)))?;
    Ok((code, operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        OpCodes::parse(text, Path::new("codes")).unwrap_err().to_string()
    }

    #[test]
    fn a_users_table_replaces_the_default() {
        let table = OpCodes::parse(
            "# mine\n\n17 MPI_BCAST\n 2\tallreduce # as ever\r\n9 Barrier\n",
            Path::new("codes"),
        );
        let table = table.unwrap();
        assert_eq!(table.operation(OpCode(17)), Some(Operation::Bcast));
        assert_eq!(table.operation(OpCode(2)), Some(Operation::Allreduce));
        assert_eq!((table.code(Operation::Barrier), table.code(Operation::Scan)), (Some(OpCode(9)), None));
        assert_eq!(table.operation(OpCode(0)), None);
        assert_eq!(table.rows().len(), 3);
    }

    #[test]
    fn operations_by_their_names() {
        for &operation in Operation::ALL {
            assert_eq!(Operation::named(operation.key()), Some(operation));
            assert_eq!(Operation::named(&operation.name().to_uppercase()), Some(operation));
            assert_eq!(operation.key(), operation.name().to_lowercase().replace('_', "-"));
        }
        assert_eq!((Operation::named("Allgatherw"), Operation::named("")), (None, None));
    }

    #[test]
    fn the_default_table_goes_both_ways() {
        let table = OpCodes::default();
        for &operation in Operation::ALL {
            let code = table.code(operation).unwrap();
            assert_eq!((code, table.operation(code)), (operation.default_code(), Some(operation)));
        }
        let verified = OpCodes::verified();
        assert_eq!(verified.rows().iter().map(|(code, _)| code.0).collect::<Vec<_>>(), [0, 2, 6]);
        assert_eq!(verified.operation(OpCode(1)), None);
    }

    #[test]
    fn a_bad_line_is_named() {
        assert_eq!(said("0 Bcast\n1"), "codes:2: `1` is not a line of the form `code name`");
        assert_eq!(said("0 Bcast x"), "codes:1: `0 Bcast x` is not a line of the form `code name`");
        assert_eq!(said("65536 Bcast"), "codes:1: code `65536` is not a number from 0 to 65535");
        assert_eq!(said("+1 Bcast"), "codes:1: code `+1` is not a number from 0 to 65535");
        assert_eq!(said("1 Broadcast"), "codes:1: no collective operation is called `Broadcast`");
        assert_eq!(said("1 MPI_"), "codes:1: no collective operation is called `MPI_`");
        assert_eq!(said("1 Bcast\n\n1 Scan"), "codes:3: code 1 is in the table already");
        assert_eq!(said("1 Bcast\n2 bcast"), "codes:2: Bcast is in the table already");
        assert_eq!(said("\n# nothing\n"), "codes: the table is empty");
        let absent = OpCodes::open(Path::new("/nowhere/codes")).unwrap_err().to_string();
        assert!(absent.starts_with("/nowhere/codes: No such file"), "{absent}");
    }
}
