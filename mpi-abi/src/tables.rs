//! The binary interfaces of MPI libraries: the constants, handles and offsets in which they differ.
//!
//! Fields carry their C names, so that tests can compare them with an `mpi.h`. The values are those of
//! - MPICH 4.0.2, which MVAPICH, Intel MPI, Cray MPICH and ParaStation MPI follow by the MPICH ABI agreement. Handles are 32-bit
//!   numbers.
//! - Open MPI 4.1.4. Handles are pointers, predefined ones addresses of data symbols.
//! - the ABI of the MPI-5.0 standard, from the header published by the MPI Forum (github.com/mpi-forum/mpi-abi-stubs, `mpi.h`,
//!   ABI version 1.0), and of MPICH 5.0.2. Handles are pointers, predefined ones small numbers.

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
    /// The layout of an `MPI_Status`.
    pub status: StatusLayout,
    /// The integer and address constants.
    pub constants: Constants,
    /// The predefined handles.
    pub handles: Handles<PredefinedHandle>,
    /// The predefined datatypes.
    pub datatypes: Datatypes<PredefinedHandle>,
}

impl Table {
    /// The ABI of a flavour.
    pub const fn of(flavour: Flavour) -> Self {
        let (size, [source, tag, error], hidden) = match flavour {
            Flavour::Mpich => (20, [8, 12, 16], HiddenStatus::Split { low: 0, high_and_cancelled: 4 }),
            Flavour::OpenMpi => (24, [0, 4, 8], HiddenStatus::Plain { cancelled: 12, bytes: 16 }),
            Flavour::Standard => (32, [0, 4, 8], HiddenStatus::Opaque),
        };
        Self {
            flavour,
            handle_size: if matches!(flavour, Flavour::Mpich) { 4 } else { 8 },
            status: StatusLayout { size, source, tag, error, hidden },
            constants: Constants::of(flavour),
            handles: Handles::of(flavour),
            datatypes: Datatypes::of(flavour),
        }
    }
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
pub enum PredefinedHandle {
    /// A number.
    Value(usize),
    /// The address of this data symbol.
    Symbol(&'static CStr),
}

/// A structure with a field for each row, and its contents for each flavour: the columns list the values of MPICH, Open MPI and the
/// standard ABI.
macro_rules! by_flavour {
    ($(#[$outer:meta])* $struct:ident {
        $($field:ident $c_name:literal $mpich:literal $open_mpi:literal $standard:literal;)*
    }) => {
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
                // Not inlined for each field.
                let change: &mut dyn FnMut(T) -> Result<U, E> = &mut change;
                Ok($struct { $($field: change(self.$field)?),* })
            }
        }

        impl $struct<PredefinedHandle> {
            const fn of(flavour: Flavour) -> Self {
                match flavour {
                    Flavour::Mpich => Self { $($field: PredefinedHandle::Value($mpich)),* },
                    Flavour::OpenMpi => Self { $($field: PredefinedHandle::Symbol($open_mpi)),* },
                    Flavour::Standard => Self { $($field: PredefinedHandle::Value($standard)),* },
                }
            }
        }
    };
    ($(#[$outer:meta])* constants $struct:ident {
        $($field:ident: $type:ident $c_name:literal $mpich:literal $open_mpi:literal $standard:literal;)*
    }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $struct {
            $(#[doc = concat!("`", $c_name, "`.")] pub $field: $type),*
        }

        impl $struct {
            /// The constants with their C names; addresses as signed numbers.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, i64)> {
                [$(($c_name, self.$field as i64)),*].into_iter()
            }

            const fn of(flavour: Flavour) -> Self {
                match flavour {
                    Flavour::Mpich => Self { $($field: $mpich),* },
                    Flavour::OpenMpi => Self { $($field: $open_mpi),* },
                    Flavour::Standard => Self { $($field: $standard),* },
                }
            }
        }
    };
}

by_flavour! {
    /// Constants defined by an ABI.
    constants Constants {
        any_source:        i32   "MPI_ANY_SOURCE"        -2                    -1     -1;
        any_tag:           i32   "MPI_ANY_TAG"           -1                    -1     -2;
        proc_null:         i32   "MPI_PROC_NULL"         -1                    -2     -3;
        root:              i32   "MPI_ROOT"              -3                    -4     -4;
        undefined:         i32   "MPI_UNDEFINED"         -32766                -32766 -32766;
        bottom:            usize "MPI_BOTTOM"            0                     0      0;
        in_place:          usize "MPI_IN_PLACE"          0xffff_ffff_ffff_ffff 1      1;
        status_ignore:     usize "MPI_STATUS_IGNORE"     1                     0      0;
        statuses_ignore:   usize "MPI_STATUSES_IGNORE"   1                     0      0;
        success:           i32   "MPI_SUCCESS"           0                     0      0;
        err_truncate:      i32   "MPI_ERR_TRUNCATE"      14                    15     15;
        err_in_status:     i32   "MPI_ERR_IN_STATUS"     17                    18     19;
        err_pending:       i32   "MPI_ERR_PENDING"       18                    19     18;
        thread_single:     i32   "MPI_THREAD_SINGLE"     0                     0      0;
        thread_serialized: i32   "MPI_THREAD_SERIALIZED" 2                     2      2048;
        thread_multiple:   i32   "MPI_THREAD_MULTIPLE"   3                     3      4096;
        graph:             i32   "MPI_GRAPH"             1                     2      212;
        cart:              i32   "MPI_CART"              2                     1      211;
        dist_graph:        i32   "MPI_DIST_GRAPH"        3                     3      213;
        lock_exclusive:    i32   "MPI_LOCK_EXCLUSIVE"    234                   1      301;
        mode_append:       i32   "MPI_MODE_APPEND"       128                   128    1;
        mode_sequential:   i32   "MPI_MODE_SEQUENTIAL"   256                   256    64;
        max_error_string:  usize "MPI_MAX_ERROR_STRING"  512                   256    512;
    }
}

by_flavour! {
    /// The predefined handles other than datatypes.
    Handles {
        comm_world    "MPI_COMM_WORLD"    0x44000000 c"ompi_mpi_comm_world"    0x101;
        comm_self     "MPI_COMM_SELF"     0x44000001 c"ompi_mpi_comm_self"     0x102;
        comm_null     "MPI_COMM_NULL"     0x04000000 c"ompi_mpi_comm_null"     0x100;
        request_null  "MPI_REQUEST_NULL"  0x2c000000 c"ompi_request_null"      0x180;
        datatype_null "MPI_DATATYPE_NULL" 0x0c000000 c"ompi_mpi_datatype_null" 0x200;
        info_null     "MPI_INFO_NULL"     0x1c000000 c"ompi_mpi_info_null"     0x130;
        errors_return "MPI_ERRORS_RETURN" 0x54000001 c"ompi_mpi_errors_return" 0x143;
        op_max        "MPI_MAX"           0x58000001 c"ompi_mpi_op_max"        0x023;
        op_no_op      "MPI_NO_OP"         0x5800000e c"ompi_mpi_op_no_op"      0x03d;
        op_sum        "MPI_SUM"           0x58000003 c"ompi_mpi_op_sum"        0x021;
    }
}

by_flavour! {
    /// The predefined datatypes.
    Datatypes {
        char                    "MPI_CHAR"                    0x4c000101 c"ompi_mpi_char"                  0x243;
        signed_char             "MPI_SIGNED_CHAR"             0x4c000118 c"ompi_mpi_signed_char"           0x244;
        unsigned_char           "MPI_UNSIGNED_CHAR"           0x4c000102 c"ompi_mpi_unsigned_char"         0x245;
        byte                    "MPI_BYTE"                    0x4c00010d c"ompi_mpi_byte"                  0x247;
        packed                  "MPI_PACKED"                  0x4c00010f c"ompi_mpi_packed"                0x207;
        wchar                   "MPI_WCHAR"                   0x4c00040e c"ompi_mpi_wchar"                 0x23c;
        short                   "MPI_SHORT"                   0x4c000203 c"ompi_mpi_short"                 0x208;
        unsigned_short          "MPI_UNSIGNED_SHORT"          0x4c000204 c"ompi_mpi_unsigned_short"        0x20c;
        int                     "MPI_INT"                     0x4c000405 c"ompi_mpi_int"                   0x209;
        unsigned                "MPI_UNSIGNED"                0x4c000406 c"ompi_mpi_unsigned"              0x20d;
        long                    "MPI_LONG"                    0x4c000807 c"ompi_mpi_long"                  0x20a;
        unsigned_long           "MPI_UNSIGNED_LONG"           0x4c000808 c"ompi_mpi_unsigned_long"         0x20e;
        long_long               "MPI_LONG_LONG"               0x4c000809 c"ompi_mpi_long_long_int"         0x20b;
        unsigned_long_long      "MPI_UNSIGNED_LONG_LONG"      0x4c000819 c"ompi_mpi_unsigned_long_long"    0x20f;
        float                   "MPI_FLOAT"                   0x4c00040a c"ompi_mpi_float"                 0x210;
        double                  "MPI_DOUBLE"                  0x4c00080b c"ompi_mpi_double"                0x214;
        long_double             "MPI_LONG_DOUBLE"             0x4c00100c c"ompi_mpi_long_double"           0x220;
        int8_t                  "MPI_INT8_T"                  0x4c000137 c"ompi_mpi_int8_t"                0x240;
        int16_t                 "MPI_INT16_T"                 0x4c000238 c"ompi_mpi_int16_t"               0x248;
        int32_t                 "MPI_INT32_T"                 0x4c000439 c"ompi_mpi_int32_t"               0x250;
        int64_t                 "MPI_INT64_T"                 0x4c00083a c"ompi_mpi_int64_t"               0x258;
        uint8_t                 "MPI_UINT8_T"                 0x4c00013b c"ompi_mpi_uint8_t"               0x241;
        uint16_t                "MPI_UINT16_T"                0x4c00023c c"ompi_mpi_uint16_t"              0x249;
        uint32_t                "MPI_UINT32_T"                0x4c00043d c"ompi_mpi_uint32_t"              0x251;
        uint64_t                "MPI_UINT64_T"                0x4c00083e c"ompi_mpi_uint64_t"              0x259;
        aint                    "MPI_AINT"                    0x4c000843 c"ompi_mpi_aint"                  0x201;
        count                   "MPI_COUNT"                   0x4c000845 c"ompi_mpi_count"                 0x202;
        offset                  "MPI_OFFSET"                  0x4c000844 c"ompi_mpi_offset"                0x203;
        c_bool                  "MPI_C_BOOL"                  0x4c00013f c"ompi_mpi_c_bool"                0x238;
        c_float_complex         "MPI_C_FLOAT_COMPLEX"         0x4c000840 c"ompi_mpi_c_float_complex"       0x212;
        c_double_complex        "MPI_C_DOUBLE_COMPLEX"        0x4c001041 c"ompi_mpi_c_double_complex"      0x216;
        c_long_double_complex   "MPI_C_LONG_DOUBLE_COMPLEX"   0x4c002042 c"ompi_mpi_c_long_double_complex" 0x224;
        cxx_bool                "MPI_CXX_BOOL"                0x4c000133 c"ompi_mpi_cxx_bool"              0x239;
        cxx_float_complex       "MPI_CXX_FLOAT_COMPLEX"       0x4c000834 c"ompi_mpi_cxx_cplex"             0x213;
        cxx_double_complex      "MPI_CXX_DOUBLE_COMPLEX"      0x4c001035 c"ompi_mpi_cxx_dblcplex"          0x217;
        cxx_long_double_complex "MPI_CXX_LONG_DOUBLE_COMPLEX" 0x4c002036 c"ompi_mpi_cxx_ldblcplex"         0x225;
        float_int               "MPI_FLOAT_INT"               0x8c000000 c"ompi_mpi_float_int"             0x228;
        double_int              "MPI_DOUBLE_INT"              0x8c000001 c"ompi_mpi_double_int"            0x229;
        long_int                "MPI_LONG_INT"                0x8c000002 c"ompi_mpi_long_int"              0x22a;
        short_int               "MPI_SHORT_INT"               0x8c000003 c"ompi_mpi_short_int"             0x22c;
        long_double_int         "MPI_LONG_DOUBLE_INT"         0x8c000004 c"ompi_mpi_longdbl_int"           0x22d;
        two_int                 "MPI_2INT"                    0x4c000816 c"ompi_mpi_2int"                  0x22b;
        character               "MPI_CHARACTER"               0x4c00011a c"ompi_mpi_character"             0x21e;
        logical                 "MPI_LOGICAL"                 0x4c00041d c"ompi_mpi_logical"               0x218;
        integer                 "MPI_INTEGER"                 0x4c00041b c"ompi_mpi_integer"               0x219;
        real                    "MPI_REAL"                    0x4c00041c c"ompi_mpi_real"                  0x21a;
        double_precision        "MPI_DOUBLE_PRECISION"        0x4c00081f c"ompi_mpi_dblprec"               0x21c;
        complex                 "MPI_COMPLEX"                 0x4c00081e c"ompi_mpi_cplex"                 0x21b;
        double_complex          "MPI_DOUBLE_COMPLEX"          0x4c001022 c"ompi_mpi_dblcplex"              0x21d;
        integer1                "MPI_INTEGER1"                0x4c00012d c"ompi_mpi_integer1"              0x2c1;
        integer2                "MPI_INTEGER2"                0x4c00022f c"ompi_mpi_integer2"              0x2c9;
        integer4                "MPI_INTEGER4"                0x4c000430 c"ompi_mpi_integer4"              0x2d1;
        integer8                "MPI_INTEGER8"                0x4c000831 c"ompi_mpi_integer8"              0x2d9;
        real4                   "MPI_REAL4"                   0x4c000427 c"ompi_mpi_real4"                 0x2d2;
        real8                   "MPI_REAL8"                   0x4c000829 c"ompi_mpi_real8"                 0x2da;
        real16                  "MPI_REAL16"                  0x4c00102b c"ompi_mpi_real16"                0x2e2;
        complex8                "MPI_COMPLEX8"                0x4c000828 c"ompi_mpi_complex8"              0x2db;
        complex16               "MPI_COMPLEX16"               0x4c00102a c"ompi_mpi_complex16"             0x2e3;
        complex32               "MPI_COMPLEX32"               0x4c00202c c"ompi_mpi_complex32"             0x2eb;
        two_real                "MPI_2REAL"                   0x4c000821 c"ompi_mpi_2real"                 0x230;
        two_double_precision    "MPI_2DOUBLE_PRECISION"       0x4c001023 c"ompi_mpi_2dblprec"              0x231;
        two_integer             "MPI_2INTEGER"                0x4c000820 c"ompi_mpi_2integer"              0x232;
    }
}
