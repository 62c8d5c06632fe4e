//! What the MPI functions look like: one table, and what is derived from it.
//!
//! [`for_each_mpi_function!`](crate::for_each_mpi_function) hands its rows to a macro of the caller's, in four groups:
//!
//! | group | a row | Fortran |
//! |---|---|---|
//! | `calls` | `MPI_Send "mpi_send" Send (buf: Buffer, …) [];` | the same arguments, each by reference, then `ierror`, then the hidden lengths in `[]` |
//! | `large` | `MPI_Send_c "mpi_send" Send (buf: Buffer, count: BigCount, …) [];` | as above, but only as `mpi_send_f08_large_` and `mpi_send_f08ts_large_` |
//! | `c_only` | `MPI_Init Lifecycle (argc: IntPtr, argv: StrArray);` | other arguments than in C, or none; write those by hand |
//! | `others` | `MPI_Wtime Local Double ();` | they return no error code; not meant to be wrapped |
//!
//! The columns are the C name, the stem of the Fortran names, the [`Category`], for `others` the [`Returns`],
//! and the parameters as `name: kind`. A kind names both a variant of [`Kind`] and a type in
//! [`arguments`](crate::arguments); the functions of the first three groups return `int`.
//!
//! A wrapper takes every argument as a `usize`, hands them on as they came, and looks at them only through the
//! typed views, so an `int` whose register has garbage in its upper half can not be misread:
//!
//! ```
//! # mod wrappers {
//! macro_rules! wrap {
//!     (calls { $($name:ident $stem:literal $category:ident ($($a:ident : $kind:ident),*) [$($length:ident)*];)* }
//!      large { $($rest:tt)* } c_only { $($c_only:tt)* } others { $($others:tt)* }) => {
//!         $(
//!             // a preload library adds: #[unsafe(no_mangle)]
//!             pub unsafe extern "C" fn $name($($a: usize),*) -> i32 {
//!                 static NEXT: mpi_abi::symbols::Function = mpi_abi::symbols::Function::named(
//!                     unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) });
//!                 // typed views for a hook: unsafe { mpi_abi::arguments::$kind::from_raw($a) }
//!                 unsafe { NEXT.call_or([$($a),*], mpi_abi::ERR_NO_SUCH_FUNCTION) }
//!             }
//!             // and for Fortran: #[unsafe(export_name = concat!($stem, "_"))] fn (… , ierror: usize, $length: usize …)
//!         )*
//!     };
//! }
//! mpi_abi::for_each_mpi_function!(wrap);
//! # }
//! ```

#[macro_use]
mod table;

use crate::arguments::Kind;

/// What a call does, as far as somebody who records it needs to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Category {
    /// Blocking send: `Send`, `Bsend`, `Ssend`, `Rsend`.
    Send,
    /// Non-blocking send.
    SendImmediate,
    /// Makes a persistent send.
    SendPersistent,
    /// Blocking receive: `Recv`, `Mrecv`.
    Recv,
    /// Non-blocking receive: `Irecv`, `Imrecv`.
    RecvImmediate,
    /// Makes a persistent receive.
    RecvPersistent,
    /// `Sendrecv`, `Sendrecv_replace`.
    SendRecv,
    /// `Isendrecv`, `Isendrecv_replace`.
    SendRecvImmediate,
    /// `Psend_init` … `Parrived`.
    Partitioned,
    /// `Probe`, `Iprobe`, `Mprobe`, `Improbe`.
    Probe,
    /// `Wait`, `Waitall`, `Waitany`, `Waitsome`.
    Wait,
    /// `Test`, `Testall`, `Testany`, `Testsome`.
    Test,
    /// `Start`, `Startall`.
    Start,
    /// `Request_free`, `Cancel`: a request may end without a completion.
    RequestFree,
    /// Other calls on requests: `Request_get_status`, generalized requests.
    Request,
    /// Calls that look into or fill a status.
    Status,
    /// Blocking collective with one count for all.
    Collective,
    /// Non-blocking collective with one count for all.
    CollectiveImmediate,
    /// Makes a persistent collective with one count for all.
    CollectivePersistent,
    /// Blocking collective with a count a peer (`Reduce_scatter` among them).
    VectorCollective,
    /// Non-blocking collective with a count a peer.
    VectorCollectiveImmediate,
    /// Makes a persistent collective with a count a peer.
    VectorCollectivePersistent,
    /// Blocking neighbourhood collective, vector forms included.
    NeighborCollective,
    /// Non-blocking neighbourhood collective.
    NeighborCollectiveImmediate,
    /// Makes a persistent neighbourhood collective.
    NeighborCollectivePersistent,
    /// Makes a communicator (also with a topology, also an intercommunicator).
    CommCreate,
    /// `Comm_free`, `Comm_disconnect`.
    CommFree,
    /// Asks or names a communicator.
    CommQuery,
    /// Asks about a topology.
    Topology,
    /// Groups.
    Group,
    /// `Put`, `Get`, `Accumulate` and the other one-sided transfers.
    Rma,
    /// One-sided transfers that give a request.
    RmaRequest,
    /// Fences, locks, flushes, post/start/complete/wait.
    RmaSync,
    /// Makes a window.
    WinCreate,
    /// `Win_free`.
    WinFree,
    /// Asks or names a window, attaches memory.
    WinQuery,
    /// Opens, closes, deletes a file, and what else of a file takes all its processes: its view, its size, `File_sync`.
    FileOpen,
    /// Reads and writes, split collective ones included.
    Io,
    /// Reads and writes that give a request.
    IoImmediate,
    /// Other calls on files.
    FileQuery,
    /// Datatype constructors.
    TypeCreate,
    /// `Type_commit`.
    TypeCommit,
    /// `Type_free`.
    TypeFree,
    /// Asks or names a datatype.
    TypeQuery,
    /// `Init`, `Init_thread`, `Initialized`, `Finalize`, `Finalized`, `Abort`.
    Lifecycle,
    /// The sessions model.
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
    /// C handle to Fortran handle and back.
    Conversion,
    /// What stays in the process: packing, memory, timers, versions.
    Local,
}

/// What a function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Returns {
    /// An error code, C `int`.
    Error,
    /// C `double`.
    Double,
    /// An `MPI_Aint`, a Fortran `INTEGER` or a handle: what that kind is as an argument.
    Value(Kind),
}

/// One parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in the standard.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
}

/// Which group of the table a function is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// Returns `int`, Fortran arguments follow from the C ones.
    Calls,
    /// The large-count form of a function of [`Group::Calls`].
    Large,
    /// Returns `int`; the Fortran form, if any, has other arguments.
    COnly,
    /// Returns no error code.
    Others,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Prototype {
    /// The function.
    pub call: Call,
    /// Its C name, `MPI_Send`.
    pub name: &'static str,
    /// The stem of its Fortran names, `mpi_send`; `None` where those are not formed by rule.
    pub fortran: Option<&'static str>,
    /// The group of the table it is in.
    pub group: Group,
    /// What it does.
    pub category: Category,
    /// What it returns.
    pub returns: Returns,
    /// What it takes, in order.
    pub parameters: &'static [Parameter],
    /// How many hidden character lengths follow `ierror` in Fortran.
    pub hidden_lengths: usize,
}

macro_rules! returned {
    (Double) => {
        Returns::Double
    };
    ($kind:ident) => {
        Returns::Value(Kind::$kind)
    };
}

macro_rules! derive {
    (calls { $($call:ident $call_stem:literal $call_cat:ident ($($call_p:ident : $call_k:ident),*) [$($call_l:ident)*];)* }
     large { $($large:ident $large_stem:literal $large_cat:ident ($($large_p:ident : $large_k:ident),*) [$($large_l:ident)*];)* }
     c_only { $($c:ident $c_cat:ident ($($c_p:ident : $c_k:ident),*);)* }
     others { $($other:ident $other_cat:ident $other_r:ident ($($other_p:ident : $other_k:ident),*);)* }) => {
        /// An MPI function; a small number that stands for its name.
        #[allow(non_camel_case_types, missing_docs)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Call { $($call,)* $($large,)* $($c,)* $($other,)* }

        impl Call {
            /// The functions' C names, in the order of their numbers.
            pub const NAMES: &'static [&'static str] =
                &[$(stringify!($call),)* $(stringify!($large),)* $(stringify!($c),)* $(stringify!($other),)*];
        }

        const PROTOTYPES: &[Prototype] = &[
            $(Prototype {
                call: Call::$call, name: stringify!($call), fortran: Some($call_stem), group: Group::Calls,
                category: Category::$call_cat, returns: Returns::Error,
                parameters: &[$(Parameter { name: stringify!($call_p), kind: Kind::$call_k }),*],
                hidden_lengths: { let lengths: &[&str] = &[$(stringify!($call_l)),*]; lengths.len() },
            },)*
            $(Prototype {
                call: Call::$large, name: stringify!($large), fortran: Some($large_stem), group: Group::Large,
                category: Category::$large_cat, returns: Returns::Error,
                parameters: &[$(Parameter { name: stringify!($large_p), kind: Kind::$large_k }),*],
                hidden_lengths: { let lengths: &[&str] = &[$(stringify!($large_l)),*]; lengths.len() },
            },)*
            $(Prototype {
                call: Call::$c, name: stringify!($c), fortran: None, group: Group::COnly,
                category: Category::$c_cat, returns: Returns::Error,
                parameters: &[$(Parameter { name: stringify!($c_p), kind: Kind::$c_k }),*],
                hidden_lengths: 0,
            },)*
            $(Prototype {
                call: Call::$other, name: stringify!($other), fortran: None, group: Group::Others,
                category: Category::$other_cat, returns: returned!($other_r),
                parameters: &[$(Parameter { name: stringify!($other_p), kind: Kind::$other_k }),*],
                hidden_lengths: 0,
            },)*
        ];
    };
}
for_each_mpi_function!(derive);

impl Call {
    /// How many functions the table has; `call as usize` is below it.
    pub const COUNT: usize = PROTOTYPES.len();

    /// All functions, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Call> {
        PROTOTYPES.iter().map(|prototype| prototype.call)
    }

    /// The function's row of the table.
    pub const fn prototype(self) -> &'static Prototype {
        &PROTOTYPES[self as usize]
    }

    /// The function's C name, `MPI_Send`.
    pub const fn name(self) -> &'static str {
        self.prototype().name
    }

    /// What the function does.
    pub const fn category(self) -> Category {
        self.prototype().category
    }

    /// The function with this number, as `call as u16` gave it.
    pub fn from_number(number: u16) -> Option<Call> {
        PROTOTYPES.get(usize::from(number)).map(|prototype| prototype.call)
    }

    /// The function with this number, which must be that of one.
    ///
    /// # Safety
    /// `number` must be below [`Call::COUNT`].
    #[inline(always)]
    pub unsafe fn from_number_unchecked(number: u16) -> Call {
        debug_assert!(usize::from(number) < Call::COUNT);
        // SAFETY: the variants are numbered from 0 without a gap, and this is one of them.
        unsafe { std::mem::transmute(number) }
    }

    /// The function of this C name.
    pub fn from_name(name: &str) -> Option<Call> {
        PROTOTYPES.iter().find(|prototype| prototype.name == name).map(|prototype| prototype.call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_index_the_table() {
        for (index, call) in Call::all().enumerate() {
            assert_eq!(call as usize, index);
            assert_eq!(Call::from_number(index as u16), Some(call));
            assert_eq!(Call::from_name(call.name()), Some(call));
        }
        assert_eq!(Call::from_number(Call::COUNT as u16), None);
        assert_eq!(Call::from_name("MPI_Sendd"), None);
    }

    #[test]
    fn names_are_unique_and_rows_follow_the_rules() {
        let mut names = HashSet::new();
        for prototype in PROTOTYPES {
            assert!(names.insert(prototype.name), "{} twice", prototype.name);
            let parameters: HashSet<_> =
                prototype.parameters.iter().map(|parameter| parameter.name).collect();
            assert_eq!(parameters.len(), prototype.parameters.len(), "{}", prototype.name);
            let stem = prototype.name.to_lowercase();
            match prototype.group {
                Group::Calls => assert_eq!(prototype.fortran, Some(stem.as_str())),
                Group::Large => assert_eq!(prototype.fortran, stem.strip_suffix("_c")),
                Group::COnly | Group::Others => assert_eq!(prototype.fortran, None),
            }
            if prototype.group != Group::Others {
                assert_eq!(prototype.returns, Returns::Error);
            }
            let strings = prototype
                .parameters
                .iter()
                .filter(|parameter| matches!(parameter.kind, Kind::Str | Kind::StrOut | Kind::StrArray));
            if matches!(prototype.group, Group::Calls | Group::Large) {
                assert_eq!(prototype.hidden_lengths, strings.count(), "{}", prototype.name);
            }
        }
    }

    #[test]
    fn large_count_forms_differ_from_the_plain_ones_in_widths_alone() {
        for large in PROTOTYPES.iter().filter(|prototype| prototype.group == Group::Large) {
            let plain = Call::from_name(large.name.strip_suffix("_c").unwrap()).unwrap().prototype();
            assert_eq!(large.category, plain.category, "{}", large.name);
            // These two have one array more than the plain form.
            if matches!(large.call, Call::MPI_Type_get_contents_c | Call::MPI_Type_get_envelope_c) {
                continue;
            }
            let names =
                |prototype: &Prototype| prototype.parameters.iter().map(|p| p.name).collect::<Vec<_>>();
            assert_eq!(names(large), names(plain), "{}", large.name);
        }
    }
}
