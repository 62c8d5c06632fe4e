//! Prototypes and properties of the MPI functions: tables that `build.rs` generates from `functions.txt`, which
//! explains its columns.
//!
//! A wrapper takes every argument as a `usize`, the whole register, and passes it on unchanged. An `int` occupies the
//! lower half; the upper half is undefined. A handle is an `int` under MPICH and a pointer under Open MPI.
//! [`Kind::width`] gives the significant part of a word.

use std::ffi::CStr;
use std::ops::Deref;
use vef_format::capture::event::SendMode;
use vef_format::operation::Operation;

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

/// What a call does, as far as recorders need to distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Category {
    /// `Send`, `Bsend`, `Ssend`, `Rsend`.
    Send,
    /// `Recv`, `Mrecv`.
    Recv,
    /// `Sendrecv`, `Sendrecv_replace`.
    SendRecv,
    /// `Probe`, `Iprobe`, `Mprobe`, `Improbe`.
    Probe,
    /// `Psend_init` … `Parrived`.
    Partitioned,
    /// `Wait`, `Test` and their variants.
    Wait,
    /// `Start`, `Startall`.
    Start,
    /// `Request_free`, `Cancel`: a request may end without a completion.
    RequestFree,
    /// Other calls on requests: `Request_get_status`, generalized requests.
    Request,
    /// Calls that query or set a status.
    Status,
    /// Collectives, vector forms included.
    Collective,
    /// Neighbourhood collectives.
    NeighborCollective,
    /// Creation of a communicator, also with a topology, also of an inter-communicator.
    CommCreate,
    /// `Comm_free`, `Comm_disconnect`.
    CommFree,
    /// Queries and names of communicators.
    CommQuery,
    /// Queries of topologies.
    Topology,
    /// Groups.
    Group,
    /// `Put`, `Get`, `Accumulate` and the other one-sided transfers.
    Rma,
    /// Fences, locks, flushes, post/start/complete/wait.
    RmaSync,
    /// Creation of a window.
    WinCreate,
    /// `Win_free`.
    WinFree,
    /// Queries and names of windows, attached memory.
    WinQuery,
    /// `File_open`.
    FileOpen,
    /// Other collective calls on a file: `File_set_view`, `File_set_size`, `File_sync`; also `File_delete` and `File_seek`.
    FileSync,
    /// `File_close`.
    FileClose,
    /// Reads and writes, split collective ones included.
    Io,
    /// Other calls on files.
    FileQuery,
    /// Datatype constructors.
    TypeCreate,
    /// `Type_commit`.
    TypeCommit,
    /// `Type_free`.
    TypeFree,
    /// Queries and names of datatypes.
    TypeQuery,
    /// `Init`, `Init_thread`, `Initialized`, `Finalize`, `Finalized`, `Abort`, `Session_finalize`.
    Lifecycle,
    /// Other functions of the sessions model.
    Session,
    /// Spawning and connecting processes.
    Process,
    /// Attributes and their keys.
    Attribute,
    /// Error handlers, classes and strings.
    ErrorHandling,
    /// `MPI_Info`.
    Info,
    /// Reduction operations.
    Op,
    /// `Pcontrol`.
    Pcontrol,
    /// Local operations: packing, memory, timers, versions.
    Local,
    /// Conversion of handles between C and Fortran.
    Conversion,
}

/// When an operation takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Timing {
    /// During the call.
    Blocking,
    /// From the call to the completion of its request.
    Immediate,
    /// Each time the request made by the call is started.
    Persistent,
}

/// Distinguishes functions of a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallDetail {
    /// No further distinction.
    None,
    /// The mode of a send.
    Send(SendMode),
    /// The operation of a collective.
    Collective(Operation),
    /// A one-sided transfer to the target.
    Put,
    /// A one-sided transfer from the target.
    Get,
    /// A one-sided transfer in both directions.
    Both,
    /// A read from a file.
    Read,
    /// A collective read.
    ReadAll,
    /// A write to a file.
    Write,
    /// A collective write.
    WriteAll,
}

/// The width of an argument in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// A C `int`: the lower 32 bits of the word.
    Int,
    /// 64 bits: `MPI_Aint`, `MPI_Offset`, `MPI_Count`, pointers.
    Word,
    /// A handle; the ABI defines the width.
    Handle,
}

/// A kind a row: its name, the width of an argument, the C type (with the blank before a name), the kind of handle to which an
/// address or an array refers, and what it is.
macro_rules! kinds {
    ($($kind:ident $width:ident $c_type:literal $(-> $target:ident)? $doc:literal;)*) => {
        /// The kind of a parameter of an MPI function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $(#[doc = $doc] $kind),*
        }

        impl Kind {
            /// The width of arguments of this kind in C.
            pub const fn width(self) -> Width {
                match self {
                    $(Kind::$kind => Width::$width),*
                }
            }

            /// The type in C, with the blank before the name of a parameter. MPI's pointers to what it only reads are `const`; of
            /// a buffer the function decides that.
            pub const fn c_type(self) -> &'static str {
                match self {
                    $(Kind::$kind => $c_type),*
                }
            }

            /// The kind of handle to which an address or an array of handles refers.
            pub const fn target(self) -> Option<Kind> {
                match self {
                    $($(Kind::$kind => Some(Kind::$target),)?)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    Count          Int    "int "              "Number of elements, C `int`.";
    BigCount       Word   "MPI_Count "        "Number of elements, `MPI_Count`.";
    Rank           Int    "int "              "Rank of a peer, `MPI_PROC_NULL` or `MPI_ANY_SOURCE`.";
    Root           Int    "int "              "Rank of the root of a collective, `MPI_ROOT` or `MPI_PROC_NULL`.";
    Tag            Int    "int "              "Message tag, or `MPI_ANY_TAG`.";
    Int            Int    "int "              "Any other C `int`.";
    Aint           Word   "MPI_Aint "         "`MPI_Aint`: an address, displacement or size in bytes.";
    Offset         Word   "MPI_Offset "       "`MPI_Offset`: a place in a file.";
    Buffer         Word   "void *"            "Address of communicated or packed data; may be `MPI_BOTTOM` or `MPI_IN_PLACE`.";
    CountArray     Word   "const int *"       "Array of counts, C `int`.";
    BigCountArray  Word   "const MPI_Count *" "Array of counts (of displacements in datatype constructors), `MPI_Count`.";
    DisplArray     Word   "const int *"       "Array of displacements, C `int`.";
    AintDisplArray Word   "const MPI_Aint *"  "Array of displacements, `MPI_Aint`.";
    IntPtr         Word   "int *"             "Address of one C `int`, mostly an output.";
    IntArray       Word   "int *"             "Array of C `int`s, input or output.";
    AintPtr        Word   "MPI_Aint *"        "Address of one `MPI_Aint`, an output.";
    AintArray      Word   "MPI_Aint *"        "Array of `MPI_Aint`s.";
    BigCountPtr    Word   "MPI_Count *"       "Address of one `MPI_Count`, mostly an output.";
    OffsetPtr      Word   "MPI_Offset *"      "Address of one `MPI_Offset`, an output.";
    StatusPtr      Word   "MPI_Status *"      "Address of a status, or `MPI_STATUS_IGNORE`.";
    StatusArray    Word   "MPI_Status *"      "Array of statuses, or `MPI_STATUSES_IGNORE`.";
    Str            Word   "const char *"      "An input string.";
    StrOut         Word   "char *"            "Room for a string.";
    StrArray       Word   "char **"           "An array of strings, or an address of one.";
    Function       Word   "vef_function "     "A callback.";
    Pointer        Word   "void *"            "Any other address.";
    Vararg         Word   "void *"            "The word after the fixed parameters of a variadic function; it may be undefined.";
    Comm           Handle "MPI_Comm "         "A communicator.";
    CommPtr        Word   "MPI_Comm *"        -> Comm "Address of a communicator.";
    Datatype       Handle "MPI_Datatype "     "A datatype.";
    DatatypePtr    Word   "MPI_Datatype *"    -> Datatype "Address of a datatype.";
    DatatypeArray  Word   "MPI_Datatype *"    -> Datatype "Array of datatypes.";
    Request        Handle "MPI_Request "      "A request.";
    RequestPtr     Word   "MPI_Request *"     -> Request "Address of a request.";
    RequestArray   Word   "MPI_Request *"     -> Request "Array of requests.";
    Message        Handle "MPI_Message "      "A matched message.";
    MessagePtr     Word   "MPI_Message *"     -> Message "Address of a matched message.";
    Op             Handle "MPI_Op "           "A reduction operation.";
    OpPtr          Word   "MPI_Op *"          -> Op "Address of a reduction operation.";
    Group          Handle "MPI_Group "        "A group.";
    GroupPtr       Word   "MPI_Group *"       -> Group "Address of a group.";
    Win            Handle "MPI_Win "          "A window.";
    WinPtr         Word   "MPI_Win *"         -> Win "Address of a window.";
    File           Word   "MPI_File "         "A file; a pointer in every ABI.";
    FilePtr        Word   "MPI_File *"        -> File "Address of a file.";
    Info           Handle "MPI_Info "         "An info object.";
    InfoPtr        Word   "MPI_Info *"        -> Info "Address of an info object.";
    InfoArray      Word   "MPI_Info *"        -> Info "Array of info objects.";
    Errhandler     Handle "MPI_Errhandler "   "An error handler.";
    ErrhandlerPtr  Word   "MPI_Errhandler *"  -> Errhandler "Address of an error handler.";
    Session        Handle "MPI_Session "      "A session.";
    SessionPtr     Word   "MPI_Session *"     -> Session "Address of a session.";
}

impl Kind {
    /// Whether arguments are handles, passed by value.
    pub const fn is_handle(self) -> bool {
        matches!(self.width(), Width::Handle) || matches!(self, Kind::File)
    }

    /// Whether arguments are strings, whose lengths are hidden arguments in Fortran.
    pub const fn is_string(self) -> bool {
        matches!(self, Kind::Str | Kind::StrOut | Kind::StrArray)
    }

    /// Whether arguments are arrays of handles.
    pub const fn is_handle_array(self) -> bool {
        matches!(self, Kind::RequestArray | Kind::DatatypeArray | Kind::InfoArray)
    }
}

/// The return type of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Returns {
    /// An error code, C `int`.
    Error,
    /// C `double`.
    Double,
    /// An `MPI_Aint`, a Fortran `INTEGER` or a handle, given as the kind of parameter.
    Value(Kind),
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the standard.
    pub name: Name,
    /// Its kind.
    pub kind: Kind,
}

/// The relation of a function to its Fortran forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Returns an error code; the Fortran arguments follow from those in C.
    Plain,
    /// The large-count form of a function; in Fortran only in `mpi_f08`.
    Large,
    /// Returns an error code; the Fortran form, if any, has other arguments.
    COnly,
    /// Does not return an error code.
    Others,
}

/// A convention for passing arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convention {
    /// C's.
    C,
    /// Fortran's: all arguments by reference, then the error code, then the lengths of strings.
    Fortran,
    /// Fortran's, with descriptors for buffers.
    Descriptors,
}

/// A name under which programs call an MPI function.
#[derive(Clone, Copy, Debug)]
pub struct Export {
    call: u16,
    /// The convention for its arguments.
    pub form: Convention,
    /// Index of the symbol's text with a star for the function's name.
    style: u8,
}

/// The symbol of a name under which programs call an MPI function.
#[derive(Clone, Copy, Debug)]
pub struct Symbol([u8; LONGEST + 1]);

impl Deref for Symbol {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

struct FunctionRow {
    category: Category,
    timing: Timing,
    group: Group,
    returns: Returns,
    detail: CallDetail,
    /// The end of its parameters; they begin at the end of the previous row's.
    end: u16,
}

/// Concatenated texts, and the end of each.
struct Texts<const N: usize> {
    text: &'static str,
    ends: [u16; N],
}

impl<const N: usize> Texts<N> {
    const fn get(&self, index: usize) -> &'static str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        let (_, rest) = self.text.split_at(start);
        rest.split_at(self.ends[index] as usize - start).0
    }

    fn find(&self, text: &str) -> Option<usize> {
        (0..N).find(|&index| self.get(index) == text)
    }
}

impl Call {
    /// The number of functions; `call as usize` is less.
    pub const COUNT: usize = ROWS.len();

    /// All functions, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Call> {
        (0..Self::COUNT as u16).filter_map(Self::from_number)
    }

    const fn row(self) -> &'static FunctionRow {
        &ROWS[self as usize]
    }

    /// The C name, `MPI_Send`.
    pub const fn name(self) -> &'static str {
        CALL_NAMES.get(self as usize)
    }

    /// The function's category.
    pub const fn category(self) -> Category {
        self.row().category
    }

    /// When the operation takes place.
    pub const fn timing(self) -> Timing {
        self.row().timing
    }

    /// The relation to the Fortran forms.
    pub const fn group(self) -> Group {
        self.row().group
    }

    /// The return type.
    pub const fn returns(self) -> Returns {
        self.row().returns
    }

    /// Distinguishes the function from others of its category.
    pub const fn detail(self) -> CallDetail {
        self.row().detail
    }

    /// The parameters in order.
    pub const fn parameters(self) -> &'static [Parameter] {
        let start = match self as usize {
            0 => 0,
            number => ROWS[number - 1].end,
        };
        let (_, rest) = PARAMETERS.split_at(start as usize);
        rest.split_at((self.row().end - start) as usize).0
    }

    /// The position of a parameter.
    pub const fn position(self, name: Name) -> Option<usize> {
        let parameters = self.parameters();
        let mut i = 0;
        while i < parameters.len() {
            if parameters[i].name as u16 == name as u16 {
                return Some(i);
            }
            i += 1;
        }
        None
    }

    /// The position of a parameter that the function has. Evaluated at compile time, where a wrong name is an error.
    pub const fn place(self, name: Name) -> usize {
        match self.position(name) {
            Some(place) => place,
            None => panic!("the function has no parameter of this name"),
        }
    }

    /// The number of hidden lengths of strings after `ierror` in Fortran.
    pub fn hidden_lengths(self) -> usize {
        self.parameters().iter().filter(|parameter| parameter.kind.is_string()).count()
    }

    /// The function with this number (`call as u16`).
    pub const fn from_number(number: u16) -> Option<Call> {
        if number as usize >= Self::COUNT {
            return None;
        }
        // SAFETY: variants are numbered from 0 without gaps, and the number is in range.
        Some(unsafe { std::mem::transmute::<u16, Call>(number) })
    }

    /// The function with this C name.
    pub fn from_name(name: &str) -> Option<Call> {
        Self::from_number(CALL_NAMES.find(name)? as u16)
    }
}

impl Name {
    /// The name in the standard: `origin_count`.
    pub fn text(self) -> &'static str {
        PARAMETER_NAMES.get(self as usize)
    }
}

impl Export {
    /// The number of names.
    pub const COUNT: usize = EXPORTS.len();

    /// The name at `index`, which must be below [`Export::COUNT`].
    #[inline(always)]
    pub const fn get(index: usize) -> Self {
        EXPORTS[index]
    }

    /// The function.
    #[inline(always)]
    pub const fn call(self) -> Call {
        // SAFETY: the table has numbers of functions alone.
        unsafe { std::mem::transmute(self.call) }
    }

    /// The symbol at `index`. Does not allocate.
    pub fn symbol(index: usize) -> Symbol {
        let export = Self::get(index);
        let (call, is_c) = (export.call(), export.form == Convention::C);
        let (prefix, suffix) = STYLES.get(export.style.into()).split_once('*').unwrap_or_default();
        let stem = call.name().strip_prefix("MPI_").unwrap_or_default();
        let large = if call.group() == Group::Large && !is_c { "_c" } else { "" };
        let stem = stem.strip_suffix(large).unwrap_or(stem).bytes();
        let stem = stem.map(|byte| if is_c { byte } else { byte.to_ascii_lowercase() });
        let mut symbol = [0; LONGEST + 1];
        let text = prefix.bytes().chain(stem).chain(suffix.bytes());
        symbol.iter_mut().zip(text).for_each(|(byte, of)| *byte = of);
        Symbol(symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn functions_and_symbols_are_found_by_number_and_name() {
        for (index, call) in Call::all().enumerate() {
            assert_eq!((call as usize, Call::from_name(call.name())), (index, Some(call)));
            let parameters: HashSet<_> = call.parameters().iter().map(|parameter| parameter.name).collect();
            assert_eq!(parameters.len(), call.parameters().len(), "{}", call.name());
        }
        assert_eq!((Call::from_number(Call::COUNT as u16), Call::from_name("MPI_Sendd")), (None, None));
    }

    #[test]
    fn symbols_are_the_names_of_the_stubs() {
        let mut names = Vec::new();
        macro_rules! name {
            ($symbol:literal $number:literal $($optional:ident)?) => {
                names.push(($number, $symbol))
            };
        }
        for_each_export!(name);
        assert_eq!(names.len(), Export::COUNT);
        for (number, name) in &names {
            assert_eq!(Export::symbol(*number).to_str(), Ok(*name));
        }
        let distinct: HashSet<&str> = names.iter().map(|(_, name)| *name).collect();
        assert_eq!(distinct.len(), names.len());
        for name in ["mpi_send_", "mpi_send_f08ts_large_", "MPIX_Bcast_init", "mpi_init_thread_f08_"] {
            assert!(distinct.contains(name), "{name}");
        }
    }
}
