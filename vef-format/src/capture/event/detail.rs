//! One-sided communication and files: the arguments of calls that are neither messages nor collectives.

use super::communicator::Members;
use super::request::RequestId;
use crate::ids::{CommId, CommRank};
use crate::units::Bytes;

/// The number that one rank gave a window in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct WindowId(pub u32);

/// The number that one rank gave an open file in its capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// Arguments of a call that a trace cannot represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail<'a> {
    /// None recorded.
    None,
    /// A window was created. Precedes its first use.
    Window {
        /// This rank's number for it.
        id: WindowId,
        /// The communicator.
        comm: CommId,
        /// Bytes of memory that this rank exposes.
        size: Bytes,
        /// Displacement unit.
        unit: u32,
    },
    /// A window was freed; its number is not used again.
    WindowFree(WindowId),
    /// A one-sided transfer.
    Transfer(Transfer),
    /// A synchronisation of a window: fence, post, start, complete, wait, lock, unlock, flush, sync.
    Sync {
        /// The window.
        window: WindowId,
        /// The target, as a rank of the window's communicator, if the call has one.
        target: Option<CommRank>,
        /// Whether a lock is exclusive.
        exclusive: bool,
        /// The assertion, in the values of this MPI.
        assert: i32,
        /// The group argument of post or start.
        group: Option<Members<'a>>,
    },
    /// A file was opened. Precedes its first use.
    FileOpen {
        /// This rank's number for it.
        id: FileId,
        /// The communicator.
        comm: CommId,
        /// Access mode, in the values of this MPI.
        mode: i32,
        /// The file name argument.
        name: &'a str,
    },
    /// The same with all file pointers at the end of the file (`MPI_MODE_APPEND`).
    FileOpenAt {
        /// This rank's number for it.
        id: FileId,
        /// The communicator.
        comm: CommId,
        /// Access mode, in the values of this MPI.
        mode: i32,
        /// Where the pointers are, in bytes.
        position: i64,
        /// The file name argument.
        name: &'a str,
    },
    /// The view of a file was set.
    FileView {
        /// The file.
        file: FileId,
        /// Displacement of the view in bytes.
        displacement: i64,
        /// Bytes of the elementary datatype, which is the unit of offsets.
        unit: Bytes,
    },
    /// A view was set that has gaps.
    FileViewTiled {
        /// The file.
        file: FileId,
        /// Displacement of the view in bytes.
        displacement: i64,
        /// Bytes of the elementary datatype, which is the unit of offsets.
        unit: Bytes,
        /// What the view repeats.
        tile: Tile,
    },
    /// The rank set its own position in a file.
    FileSeek {
        /// The file.
        file: FileId,
        /// The position in units of the view.
        position: i64,
    },
    /// A file was closed; its number is not used again.
    FileClose(FileId),
    /// A file was read or written.
    Io(Io),
}

/// Whether a call of this function moves no data and waits for no other task, so that a trace lacks nothing without it.
pub fn moves_nothing(function: &str) -> bool {
    function == "MPI_File_delete"
}

impl Detail<'_> {
    /// Whether traces have the call all the same: one-sided communication, and the collectives by which all agree on a file.
    pub fn is_in_traces(&self) -> bool {
        match self {
            Self::Window { .. } | Self::WindowFree(_) | Self::Transfer(_) | Self::Sync { .. } => true,
            Self::FileOpen { .. }
            | Self::FileOpenAt { .. }
            | Self::FileView { .. }
            | Self::FileViewTiled { .. }
            | Self::FileSeek { .. }
            | Self::FileClose(_) => true,
            Self::None | Self::Io(_) => false,
        }
    }
}

/// The file type of a view, which repeats itself: which of its bytes are data is not recorded, only their number and where the first and the
/// last one are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tile {
    /// Bytes of data, at least 1.
    pub size: Bytes,
    /// Bytes from one tile to the next.
    pub extent: Bytes,
    /// Where the first byte of data is in the tile.
    pub first: Bytes,
    /// Bytes from there to behind the last byte of data.
    pub span: Bytes,
}

/// A one-sided transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The window.
    pub window: WindowId,
    /// The target: a rank of the window's communicator.
    pub target: CommRank,
    /// Displacement in the target's window, in its unit.
    pub displacement: i64,
    /// Bytes sent to the target.
    pub sent: Bytes,
    /// Bytes fetched from the target.
    pub fetched: Bytes,
    /// Bytes accessed at the target.
    pub at_target: Bytes,
    /// The request, if the call starts one.
    pub request: Option<RequestId>,
}

/// A read or write of a file; its size is the event's `bytes`. Without bytes also another call on it that all members make
/// (`MPI_File_set_size`), as a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// The file.
    pub file: FileId,
    /// The offset in units of the view; `None`: an individual or shared file pointer.
    pub offset: Option<i64>,
    /// Whether it is a write.
    pub write: bool,
    /// Whether the call is collective over the file's communicator.
    pub collective: bool,
    /// The request, if the call starts one.
    pub request: Option<RequestId>,
}
