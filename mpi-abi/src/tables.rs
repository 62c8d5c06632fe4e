//! The layout of an ABI table: the constants, handles and offsets that differ between MPI libraries.
//!
//! [`mpich`](crate::mpich), [`openmpi`](crate::openmpi) and [`standard`](crate::standard) are such tables. Fields
//! carry their C names, so that tests can compare them with an `mpi.h`.

use std::ffi::CStr;

/// The binary interface of an MPI library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// MPICH and libraries of the MPICH ABI agreement: MVAPICH, Intel MPI, Cray MPICH, ParaStation MPI.
    Mpich,
    /// Open MPI and its derivatives: Spectrum MPI, HPC-X, Fujitsu MPI.
    OpenMpi,
    /// The ABI of the MPI-5.0 standard.
    Standard,
}

/// The constants of the ABI of one [`Flavour`].
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Which ABI this is.
    pub flavour: Flavour,
    /// Bytes of a handle in memory (all but `MPI_File`), hence the stride of arrays of requests and datatypes.
    pub handle_size: usize,
    /// Bytes of an `MPI_File` in memory.
    pub file_size: usize,
    /// The layout of an `MPI_Status`.
    pub status: StatusLayout,
    /// The integer and address constants.
    pub constants: Constants,
    /// The predefined handles.
    pub handles: Handles<Place>,
    /// The predefined datatypes.
    pub datatypes: Datatypes<Place>,
}

/// Byte offsets in an `MPI_Status`; the public fields are C `int`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusLayout {
    /// Bytes of a status, hence the stride of arrays of statuses.
    pub size: usize,
    /// Offset of `MPI_SOURCE`.
    pub source: usize,
    /// Offset of `MPI_TAG`.
    pub tag: usize,
    /// Offset of `MPI_ERROR`.
    pub error: usize,
    /// The private fields, read by `MPI_Get_elements` and `MPI_Test_cancelled`.
    pub hidden: HiddenStatus,
}

/// How a status holds the bytes received and the cancelled flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenStatus {
    /// `int low; int high_and_cancelled;` the flag in bit 0 of the second, the upper bits of the count above it.
    Split {
        /// Offset of the lower 32 bits of the byte count.
        low: usize,
        /// Offset of the upper bits and the flag.
        high_and_cancelled: usize,
    },
    /// `int cancelled; size_t bytes;`.
    Plain {
        /// Offset of the flag.
        cancelled: usize,
        /// Offset of the byte count.
        bytes: usize,
    },
    /// Not fixed by the ABI; only `MPI_Get_elements` and `MPI_Test_cancelled` know.
    Opaque,
}

/// How a predefined handle is given in an ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A number.
    Value(usize),
    /// The address of this data symbol.
    Symbol(&'static CStr),
}

macro_rules! named_struct {
    ($(#[$outer:meta])* $struct:ident { $($field:ident = $c_name:literal),* $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $struct<T> {
            $(#[doc = concat!("`", $c_name, "`.")] pub $field: T),*
        }

        impl<T> $struct<T> {
            /// The fields under their C names, in the order of declaration.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, &T)> {
                [$(($c_name, &self.$field)),*].into_iter()
            }

            /// Applies `change` to every field; returns the first error.
            pub fn try_map<U, E>(self, mut change: impl FnMut(T) -> Result<U, E>) -> Result<$struct<U>, E> {
                Ok($struct { $($field: change(self.$field)?),* })
            }
        }
    };
}

named_struct! {
    /// The predefined handles other than datatypes.
    Handles {
        comm_world = "MPI_COMM_WORLD", comm_self = "MPI_COMM_SELF", comm_null = "MPI_COMM_NULL",
        request_null = "MPI_REQUEST_NULL", datatype_null = "MPI_DATATYPE_NULL", info_null = "MPI_INFO_NULL",
        errors_return = "MPI_ERRORS_RETURN",
        op_max = "MPI_MAX", op_min = "MPI_MIN", op_no_op = "MPI_NO_OP", op_sum = "MPI_SUM",
    }
}

named_struct! {
    /// The predefined datatypes.
    Datatypes {
        char = "MPI_CHAR", signed_char = "MPI_SIGNED_CHAR", unsigned_char = "MPI_UNSIGNED_CHAR",
        byte = "MPI_BYTE", packed = "MPI_PACKED", wchar = "MPI_WCHAR", short = "MPI_SHORT",
        unsigned_short = "MPI_UNSIGNED_SHORT", int = "MPI_INT", unsigned = "MPI_UNSIGNED", long = "MPI_LONG",
        unsigned_long = "MPI_UNSIGNED_LONG", long_long = "MPI_LONG_LONG",
        unsigned_long_long = "MPI_UNSIGNED_LONG_LONG", float = "MPI_FLOAT", double = "MPI_DOUBLE",
        long_double = "MPI_LONG_DOUBLE", int8_t = "MPI_INT8_T", int16_t = "MPI_INT16_T", int32_t = "MPI_INT32_T",
        int64_t = "MPI_INT64_T", uint8_t = "MPI_UINT8_T", uint16_t = "MPI_UINT16_T", uint32_t = "MPI_UINT32_T",
        uint64_t = "MPI_UINT64_T", aint = "MPI_AINT", count = "MPI_COUNT", offset = "MPI_OFFSET",
        c_bool = "MPI_C_BOOL", c_float_complex = "MPI_C_FLOAT_COMPLEX", c_double_complex = "MPI_C_DOUBLE_COMPLEX",
        c_long_double_complex = "MPI_C_LONG_DOUBLE_COMPLEX", cxx_bool = "MPI_CXX_BOOL",
        cxx_float_complex = "MPI_CXX_FLOAT_COMPLEX", cxx_double_complex = "MPI_CXX_DOUBLE_COMPLEX",
        cxx_long_double_complex = "MPI_CXX_LONG_DOUBLE_COMPLEX", float_int = "MPI_FLOAT_INT",
        double_int = "MPI_DOUBLE_INT", long_int = "MPI_LONG_INT", short_int = "MPI_SHORT_INT",
        long_double_int = "MPI_LONG_DOUBLE_INT", two_int = "MPI_2INT",
        character = "MPI_CHARACTER", logical = "MPI_LOGICAL", integer = "MPI_INTEGER", real = "MPI_REAL",
        double_precision = "MPI_DOUBLE_PRECISION", complex = "MPI_COMPLEX", double_complex = "MPI_DOUBLE_COMPLEX",
        integer1 = "MPI_INTEGER1", integer2 = "MPI_INTEGER2", integer4 = "MPI_INTEGER4", integer8 = "MPI_INTEGER8",
        real4 = "MPI_REAL4", real8 = "MPI_REAL8", real16 = "MPI_REAL16", complex8 = "MPI_COMPLEX8",
        complex16 = "MPI_COMPLEX16", complex32 = "MPI_COMPLEX32", two_real = "MPI_2REAL",
        two_double_precision = "MPI_2DOUBLE_PRECISION", two_integer = "MPI_2INTEGER",
    }
}

macro_rules! constants {
    ($($field:ident: $type:ty = $c_name:literal),* $(,)?) => {
        /// Constants defined by an ABI.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Constants {
            $(#[doc = concat!("`", $c_name, "`.")] pub $field: $type),*
        }

        impl Constants {
            /// The constants with their C names; addresses as signed numbers.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, i64)> {
                [$(($c_name, self.$field as i64)),*].into_iter()
            }
        }
    };
}

constants! {
    any_source: i32 = "MPI_ANY_SOURCE", any_tag: i32 = "MPI_ANY_TAG", proc_null: i32 = "MPI_PROC_NULL",
    root: i32 = "MPI_ROOT", undefined: i32 = "MPI_UNDEFINED",
    bottom: usize = "MPI_BOTTOM", in_place: usize = "MPI_IN_PLACE",
    status_ignore: usize = "MPI_STATUS_IGNORE", statuses_ignore: usize = "MPI_STATUSES_IGNORE",
    success: i32 = "MPI_SUCCESS", err_truncate: i32 = "MPI_ERR_TRUNCATE", err_in_status: i32 = "MPI_ERR_IN_STATUS",
    err_pending: i32 = "MPI_ERR_PENDING",
    thread_single: i32 = "MPI_THREAD_SINGLE", thread_funneled: i32 = "MPI_THREAD_FUNNELED",
    thread_serialized: i32 = "MPI_THREAD_SERIALIZED", thread_multiple: i32 = "MPI_THREAD_MULTIPLE",
    graph: i32 = "MPI_GRAPH", cart: i32 = "MPI_CART", dist_graph: i32 = "MPI_DIST_GRAPH",
    comm_type_shared: i32 = "MPI_COMM_TYPE_SHARED", lock_exclusive: i32 = "MPI_LOCK_EXCLUSIVE",
    max_processor_name: usize = "MPI_MAX_PROCESSOR_NAME", max_error_string: usize = "MPI_MAX_ERROR_STRING",
}
