//! Differences between Fortran and C arguments: handles are integers, and special addresses (`MPI_IN_PLACE`, …) are
//! those of variables.

use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Kind};
use mpi_abi::symbols::{self, Function};
use mpi_abi::tables::{Constants, Flavour};
use std::ffi::CStr;
use std::sync::OnceLock;

/// The functions that convert handles of a kind from and to Fortran's: those of MPI-2, and those of MPI-5, which are all that libraries
/// with its ABI need to have.
struct Converters {
    from: [Function; 2],
    to: [Function; 2],
}

impl Converters {
    /// That which the loaded MPI has.
    fn loaded(functions: &'static [Function; 2]) -> Option<&'static Function> {
        functions.iter().find(|function| function.get().is_some())
    }
}

macro_rules! converters {
    ($($($kind:ident)|+: $from:literal $to:literal $from_int:literal $to_int:literal;)*) => {
        fn converters(kind: Kind) -> Option<&'static Converters> {
            match kind {
                $($(Kind::$kind)|+ => {
                    static OF_KIND: Converters = Converters {
                        from: [Function::named($from), Function::named($from_int)],
                        to: [Function::named($to), Function::named($to_int)],
                    };
                    Some(&OF_KIND)
                })*
                _ => None,
            }
        }
    };
}
converters! {
    Comm | CommPtr: c"PMPI_Comm_f2c" c"PMPI_Comm_c2f" c"PMPI_Comm_fromint" c"PMPI_Comm_toint";
    Datatype | DatatypePtr | DatatypeArray: c"PMPI_Type_f2c" c"PMPI_Type_c2f" c"PMPI_Type_fromint" c"PMPI_Type_toint";
    Message | MessagePtr: c"PMPI_Message_f2c" c"PMPI_Message_c2f" c"PMPI_Message_fromint" c"PMPI_Message_toint";
    Request | RequestPtr | RequestArray: c"PMPI_Request_f2c" c"PMPI_Request_c2f" c"PMPI_Request_fromint" c"PMPI_Request_toint";
    Op | OpPtr: c"PMPI_Op_f2c" c"PMPI_Op_c2f" c"PMPI_Op_fromint" c"PMPI_Op_toint";
    Group | GroupPtr: c"PMPI_Group_f2c" c"PMPI_Group_c2f" c"PMPI_Group_fromint" c"PMPI_Group_toint";
    Win | WinPtr: c"PMPI_Win_f2c" c"PMPI_Win_c2f" c"PMPI_Win_fromint" c"PMPI_Win_toint";
    File | FilePtr: c"PMPI_File_f2c" c"PMPI_File_c2f" c"PMPI_File_fromint" c"PMPI_File_toint";
    Info | InfoPtr | InfoArray: c"PMPI_Info_f2c" c"PMPI_Info_c2f" c"PMPI_Info_fromint" c"PMPI_Info_toint";
    Errhandler | ErrhandlerPtr:
        c"PMPI_Errhandler_f2c" c"PMPI_Errhandler_c2f" c"PMPI_Errhandler_fromint" c"PMPI_Errhandler_toint";
    Session | SessionPtr: c"PMPI_Session_f2c" c"PMPI_Session_c2f" c"PMPI_Session_fromint" c"PMPI_Session_toint";
}

/// Whether the handles of Fortran and C are the same integers.
fn are_integers(abi: &Abi, kind: Kind) -> bool {
    abi.flavour == Flavour::Mpich && !matches!(kind, Kind::File | Kind::FilePtr)
}

/// Whether the loaded MPI can convert all handles that a function takes and returns.
pub(crate) fn has_converters(abi: &Abi, call: Call) -> bool {
    let kinds = call.parameters().iter().map(|parameter| parameter.kind);
    kinds.filter(|&kind| !are_integers(abi, kind)).filter_map(converters).all(|converters| {
        [&converters.from, &converters.to].into_iter().all(|way| Converters::loaded(way).is_some())
    })
}

/// The C handle of a Fortran handle.
///
/// # Panics
/// If this MPI cannot convert it ([`has_converters`]).
pub(crate) fn c_handle(abi: &Abi, kind: Kind, handle: i32) -> usize {
    if are_integers(abi, kind) {
        return handle as u32 as usize;
    }
    let from = converters(kind).and_then(|converters| Converters::loaded(&converters.from));
    // SAFETY: these take an int and return a handle, which is a pointer in the ABIs other than MPICH's.
    from.and_then(|from| unsafe { from.call([handle as usize]) }).expect(CHECKED)
}

/// The Fortran handle of a C handle.
///
/// # Panics
/// As [`c_handle`].
pub(crate) fn fortran_handle(abi: &Abi, kind: Kind, handle: usize) -> i32 {
    if are_integers(abi, kind) {
        return handle as u32 as i32;
    }
    let to = converters(kind).and_then(|converters| Converters::loaded(&converters.to));
    // SAFETY: these take a handle and return an int.
    to.and_then(|to| unsafe { to.call([handle]) }).expect(CHECKED)
}

const CHECKED: &str = "calls with handles that cannot be converted are passed on unseen";

type Constant = fn(&Constants) -> usize;
const IN_PLACE: Constant = |constants| constants.in_place;
const BOTTOM: Constant = |constants| constants.bottom;
const IGNORE: Constant = |constants| constants.status_ignore;

/// The variables of the MPI libraries whose addresses are special, and the C constants that they stand for; each Fortran
/// interface has its own. `true`: the special address is the value of the variable, set when Fortran is initialised.
const SPECIAL: [(&CStr, Constant, bool); 12] = [
    (c"mpi_fortran_in_place_", IN_PLACE, false),
    (c"MPIR_F08_MPI_IN_PLACE", IN_PLACE, false),
    (c"MPIR_F_MPI_IN_PLACE", IN_PLACE, true),
    (c"mpi_fortran_bottom_", BOTTOM, false),
    (c"MPIR_F08_MPI_BOTTOM", BOTTOM, false),
    (c"MPIR_F_MPI_BOTTOM", BOTTOM, true),
    (c"mpi_fortran_status_ignore_", IGNORE, false),
    (c"mpi_fortran_statuses_ignore_", IGNORE, false),
    (c"MPIR_F08_MPI_STATUS_IGNORE_OBJ", IGNORE, false),
    (c"MPIR_F08_MPI_STATUSES_IGNORE_OBJ", IGNORE, false),
    (c"MPI_F_STATUS_IGNORE", IGNORE, true),
    (c"MPI_F_STATUSES_IGNORE", IGNORE, true),
];

/// The C address of a buffer or status that Fortran passes: special addresses are translated. The variables are looked up at
/// the first call from Fortran, when the Fortran library is loaded.
pub(crate) fn c_address(abi: &Abi, address: usize) -> usize {
    static FOUND: OnceLock<Vec<(usize, Constant, bool)>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        // In a program with a C `main`, MPICH's Fortran library may not have stored the addresses of its variables yet.
        static INITIALIZE: Function = Function::named(c"mpirinitf_");
        // SAFETY: a Fortran subroutine without arguments, which may be called several times.
        unsafe { INITIALIZE.call::<(), 0>([]) };
        let find =
            |(name, constant, behind)| Some((symbols::data(name)?.as_ptr() as usize, constant, behind));
        SPECIAL.into_iter().filter_map(find).collect()
    });
    let is = |&&(place, _, behind): &&(usize, Constant, bool)| match behind {
        // SAFETY: a pointer variable of the MPI library.
        true => address != 0 && address == unsafe { *(place as *const usize) },
        false => address == place,
    };
    found.iter().find(is).map_or(address, |(_, constant, _)| constant(&abi.constants))
}

/// The head of an array descriptor as gfortran 9 and later pass it. Descriptors of other compilers have only the
/// first word in common.
#[repr(C)]
struct Descriptor {
    base: usize,
    offset: isize,
    element: usize,
    version: i32,
    rank: i8,
    kind: i8,
    attribute: i16,
    span: isize,
}

/// A dimension of an array descriptor; strides are in units of `span`.
#[repr(C)]
struct Dimension {
    stride: isize,
    lower: isize,
    upper: isize,
}

/// The address of the data of a described buffer.
///
/// # Safety
/// `word` must be the address of a descriptor.
pub(crate) unsafe fn base(word: usize) -> usize {
    // SAFETY: the contract.
    unsafe { (*(word as *const Descriptor)).base }
}

/// The address of the data of a described buffer, if the data is known to be contiguous.
///
/// # Safety
/// `word` must be the address of a descriptor.
pub(crate) unsafe fn contiguous(word: usize) -> Option<usize> {
    static IS_GFORTRAN: OnceLock<bool> = OnceLock::new();
    if !IS_GFORTRAN.get_or_init(|| symbols::function(c"_gfortran_set_options").is_some()) {
        return None;
    }
    // SAFETY: the contract; the dimensions follow.
    let (this, dimensions) = unsafe {
        let this = &*(word as *const Descriptor);
        let first = (word as *const Descriptor).add(1).cast::<Dimension>();
        (this, std::slice::from_raw_parts(first, usize::try_from(this.rank).unwrap_or(0)))
    };
    if !dimensions.is_empty() && this.span != this.element as isize {
        return None;
    }
    let mut expected = 1;
    for dimension in dimensions {
        let extent = dimension.upper.wrapping_sub(dimension.lower).wrapping_add(1).max(0);
        if extent > 1 && dimension.stride != expected {
            return None;
        }
        // The extent of the last dimension may be unknown; it is not used.
        expected = expected.wrapping_mul(extent);
    }
    Some(this.base)
}

/// A Fortran string without trailing blanks.
///
/// # Safety
/// `length` bytes must be readable.
pub(crate) unsafe fn text<'a>(address: usize, length: usize) -> &'a [u8] {
    // SAFETY: the contract.
    let text = unsafe { std::slice::from_raw_parts(address as *const u8, length) };
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}
