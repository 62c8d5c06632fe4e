//! Collective operations: their codes in a trace, and the meaning of `sendBytes` and `recvBytes` of each ([`Amounts`]).
//!
//! Codes 0, 2 and 6 occur in traces of the original tools; no trace shows the others, which are this project's choice.
//! [`OpCodes`] replaces the table for other traces.

use crate::error::{Located, Place};
use crate::units::Bytes;
use std::fmt;
use std::io;
use std::path::Path;

/// The code of an operation in a trace line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpCode(pub u16);

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal $verified:literal;)*) => {
        /// A collective operation of MPI that a trace can represent.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Operation { $($(#[$doc])* $name,)* }

        impl Operation {
            /// All operations, in the order of their default codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code in the default table.
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
    /// The root's data to all members.
    Bcast = 0 "Bcast" true;
    /// The reduction of all data, at the root.
    Reduce = 1 "Reduce" false;
    /// The reduction of all data, at all members.
    Allreduce = 2 "Allreduce" true;
    /// Equal blocks of all members, at the root.
    Gather = 3 "Gather" false;
    /// Equal blocks from the root to all members.
    Scatter = 4 "Scatter" false;
    /// Equal blocks of all members, at all members.
    Allgather = 5 "Allgather" false;
    /// No member returns before all have called.
    Barrier = 6 "Barrier" true;
    /// An equal block from each member to each.
    Alltoall = 7 "Alltoall" false;
    /// Blocks of any size of all members, at the root.
    Gatherv = 8 "Gatherv" false;
    /// Blocks of any size from the root to all members.
    Scatterv = 9 "Scatterv" false;
    /// Blocks of any size of all members, at all members.
    Allgatherv = 10 "Allgatherv" false;
    /// A block of any size from each member to each.
    Alltoallv = 11 "Alltoallv" false;
    /// Like `Alltoallv`, with a datatype for each peer.
    Alltoallw = 12 "Alltoallw" false;
    /// The reduction of all data, scattered in blocks of any size.
    ReduceScatter = 13 "Reduce_scatter" false;
    /// The reduction of all data, scattered in equal blocks.
    ReduceScatterBlock = 14 "Reduce_scatter_block" false;
    /// The reduction of the data of ranks 0…i, at rank i.
    Scan = 15 "Scan" false;
    /// The reduction of the data of ranks 0…i−1, at rank i.
    Exscan = 16 "Exscan" false;
}

impl Operation {
    /// Whether the operation has a root.
    pub const fn is_rooted(self) -> bool {
        matches!(
            self,
            Self::Bcast | Self::Reduce | Self::Gather | Self::Scatter | Self::Gatherv | Self::Scatterv
        )
    }

    /// Whether a member with these amounts is the root of this rooted operation. If no member moves data, this is `false` for
    /// all members.
    pub const fn is_root(self, amounts: Amounts) -> bool {
        let of_root = if self.root_sends() { amounts.send } else { amounts.recv };
        self.is_rooted() && of_root.0 > 0
    }

    /// The block of a member with these amounts, for operations in which each member gives only its own block: Gatherv,
    /// Scatterv, Allgatherv and Reduce_scatter. The root's own block counts as 0, because no data moves.
    pub const fn own_block(self, amounts: Amounts) -> Option<Bytes> {
        match self {
            Self::Gatherv | Self::Allgatherv => Some(amounts.send),
            Self::Scatterv | Self::ReduceScatter => Some(amounts.recv),
            _ => None,
        }
    }

    /// Whether the root of a rooted operation sends (Bcast, Scatter, Scatterv).
    pub const fn root_sends(self) -> bool {
        matches!(self, Self::Bcast | Self::Scatter | Self::Scatterv)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
    /// A line is not a code and a name.
    #[error("`{0}` is not a line of the form `code name`")]
    Line(String),
    /// A code is not a number from 0 to 65535.
    #[error("code `{0}` is not a number from 0 to 65535")]
    Code(String),
    /// No operation has the name.
    #[error("no collective operation is called `{0}`")]
    Name(String),
    /// An earlier line has the code or the operation.
    #[error("{0} is in the table already")]
    Twice(String),
    /// The table has no lines.
    #[error("the table is empty")]
    Empty,
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
            Err(error) => Err(OpCodesError { place: Place::file(path), problem: OpCodesProblem::Io(error) }),
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
                        Err(OpCodesProblem::Twice(format!("code {}", code.0)))
                    }
                    Some(_) => Err(OpCodesProblem::Twice(operation.name().to_owned())),
                    None => Ok((code, operation)),
                }
            });
            codes.push(row.map_err(|problem| OpCodesError { place: Place::line(path, line), problem })?);
        }
        if codes.is_empty() {
            return Err(OpCodesError { place: Place::file(path), problem: OpCodesProblem::Empty });
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
fn table_row(text: &str) -> Result<(OpCode, Operation), OpCodesProblem> {
    let quoted = |text: &str| text.chars().take(40).flat_map(char::escape_debug).collect::<String>();
    let mut words = text.split_whitespace();
    let (Some(code), Some(name), None) = (words.next(), words.next(), words.next()) else {
        return Err(OpCodesProblem::Line(quoted(text)));
    };
    if !code.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(OpCodesProblem::Code(quoted(code)));
    }
    let code = code.parse().map(OpCode).map_err(|_| OpCodesProblem::Code(quoted(code)))?;
    let prefix = name.get(..4).filter(|prefix| prefix.eq_ignore_ascii_case("MPI_"));
    let bare = &name[prefix.map_or(0, str::len)..];
    let operation = Operation::ALL.iter().find(|operation| operation.name().eq_ignore_ascii_case(bare));
    operation.map(|&operation| (code, operation)).ok_or_else(|| OpCodesProblem::Name(quoted(name)))
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
