//! Every constant, size, offset and prototype of `mpi-abi` against those of the real `mpi.h`.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{offset_of, size_of};
use std::process::Command;

use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Group, Kind, Returns};
use mpi_abi::symbols;
use mpi_abi::tables::{Flavour, HiddenStatus};
use mpi_abi_oracle::{Signature, constants, layout, signatures};

fn abi() -> Abi {
    Abi::detect().expect("the test is linked with an MPI")
}

#[test]
fn the_mpi_is_recognised() {
    let abi = abi();
    let expected = if cfg_open_mpi() { Flavour::OpenMpi } else { Flavour::Mpich };
    assert_eq!(abi.flavour, expected, "{}", abi.version);
    assert!(!abi.version.is_empty() && !abi.version.contains('\0'));
}

/// From the real header: Open MPI's communicators are pointers.
fn cfg_open_mpi() -> bool {
    size_of::<mpi_sys::MPI_Comm>() == 8
}

#[test]
fn every_constant_has_the_value_of_the_header() {
    let real = constants();
    let abi = abi();
    let mut compared = 0;
    for (name, value) in abi.constants.named() {
        assert_eq!(value, real[name], "{name}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn every_predefined_handle_has_the_value_of_the_header() {
    let real = constants();
    let abi = abi();
    let word = |name: &str| real[name] as usize & abi.handle_mask();
    for (name, value) in abi.predefined.named() {
        assert_eq!(*value, word(name), "{name}");
    }
    for (name, value) in abi.basic.named() {
        assert_eq!(*value, Some(word(name)), "{name}");
    }
}

#[test]
fn sizes_and_offsets_are_those_of_the_header() {
    let abi = abi();
    let (hidden, named): (Vec<_>, Vec<_>) =
        layout().into_iter().partition(|(name, _)| *name == "status.hidden");
    let real: BTreeMap<_, _> = named.into_iter().collect();
    assert_eq!(abi.status.size, real["status.size"]);
    assert_eq!(abi.status.source, real["status.source"]);
    assert_eq!(abi.status.tag, real["status.tag"]);
    assert_eq!(abi.status.error, real["status.error"]);
    assert_eq!(abi.handle_size, real["handle.size"]);
    let ours = match abi.status.hidden {
        HiddenStatus::Split { low, high_and_cancelled } => vec![low, high_and_cancelled],
        HiddenStatus::Plain { cancelled, bytes } => vec![cancelled, bytes],
        HiddenStatus::Opaque => vec![],
    };
    assert_eq!(ours, hidden.iter().map(|(_, offset)| *offset).collect::<Vec<_>>());

    // The sizes found by bindgen, and those of all handle types.
    assert_eq!(abi.status.size, size_of::<mpi_sys::MPI_Status>());
    assert_eq!(abi.status.source, offset_of!(mpi_sys::MPI_Status, MPI_SOURCE));
    assert_eq!(abi.status.tag, offset_of!(mpi_sys::MPI_Status, MPI_TAG));
    assert_eq!(abi.status.error, offset_of!(mpi_sys::MPI_Status, MPI_ERROR));
    let handles = [
        size_of::<mpi_sys::MPI_Comm>(),
        size_of::<mpi_sys::MPI_Datatype>(),
        size_of::<mpi_sys::MPI_Request>(),
        size_of::<mpi_sys::MPI_Message>(),
        size_of::<mpi_sys::MPI_Op>(),
        size_of::<mpi_sys::MPI_Group>(),
        size_of::<mpi_sys::MPI_Win>(),
        size_of::<mpi_sys::MPI_Info>(),
        size_of::<mpi_sys::MPI_Errhandler>(),
    ];
    assert!(handles.iter().all(|size| *size == abi.handle_size), "{handles:?}");
    assert_eq!(size_of::<mpi_sys::MPI_File>(), 8);
    assert_eq!(size_of::<mpi_sys::MPI_Count>(), 8);
    assert_eq!(size_of::<mpi_sys::MPI_Aint>(), 8);
    assert_eq!(size_of::<mpi_sys::MPI_Offset>(), 8);
}

/// Whether a parameter of this kind may have this type in the bindings.
fn fits(kind: Kind, rust: &str) -> bool {
    let handle = |name: &str| rust == format!("mpi_sys::{name}");
    let pointer = |to: &[&str]| {
        let target = rust.strip_prefix("*mut ").or_else(|| rust.strip_prefix("*const "));
        target.is_some_and(|target| to.contains(&target))
    };
    match kind {
        Kind::Count | Kind::Rank | Kind::Root | Kind::Tag | Kind::Int => rust == "i32",
        Kind::BigCount | Kind::Offset => rust == "i64",
        Kind::Aint => rust == "i64" || rust == "isize",
        Kind::Buffer => pointer(&["core::ffi::c_void"]),
        // Fortran statuses are arrays of INTEGER.
        Kind::Pointer => pointer(&["core::ffi::c_void", "i32"]),
        Kind::CountArray | Kind::DisplArray | Kind::IntPtr => pointer(&["i32"]),
        Kind::IntArray => pointer(&["i32", "[i32; 3]"]),
        Kind::BigCountArray | Kind::BigCountPtr | Kind::OffsetPtr => pointer(&["i64"]),
        Kind::AintDisplArray | Kind::AintArray | Kind::AintPtr => pointer(&["i64", "isize"]),
        Kind::StatusPtr | Kind::StatusArray => {
            pointer(&["mpi_sys::MPI_Status", "mpi_sys::ompi_status_public_t"])
        }
        Kind::Str | Kind::StrOut => pointer(&["i8", "u8"]),
        Kind::StrArray => {
            let target = rust.replace("const ", "mut ");
            ["*mut *mut i8", "*mut *mut *mut i8", "*mut *mut u8", "*mut *mut *mut u8"]
                .contains(&target.as_str())
        }
        Kind::Function => rust.starts_with("core::option::Option<unsafe extern \"C\" fn("),
        Kind::Vararg => false,
        Kind::Comm => handle("MPI_Comm"),
        Kind::CommPtr => pointer(&["mpi_sys::MPI_Comm"]),
        Kind::Datatype => handle("MPI_Datatype"),
        Kind::DatatypePtr | Kind::DatatypeArray => pointer(&["mpi_sys::MPI_Datatype"]),
        Kind::Request => handle("MPI_Request"),
        Kind::RequestPtr | Kind::RequestArray => pointer(&["mpi_sys::MPI_Request"]),
        Kind::Message => handle("MPI_Message"),
        Kind::MessagePtr => pointer(&["mpi_sys::MPI_Message"]),
        Kind::Op => handle("MPI_Op"),
        Kind::OpPtr => pointer(&["mpi_sys::MPI_Op"]),
        Kind::Group => handle("MPI_Group"),
        Kind::GroupPtr => pointer(&["mpi_sys::MPI_Group"]),
        Kind::Win => handle("MPI_Win"),
        Kind::WinPtr => pointer(&["mpi_sys::MPI_Win"]),
        Kind::File => pointer(&["mpi_sys::ADIOI_FileD", "mpi_sys::ompi_file_t"]),
        Kind::FilePtr => pointer(&["*mut mpi_sys::ADIOI_FileD", "*mut mpi_sys::ompi_file_t"]),
        Kind::Info => handle("MPI_Info"),
        Kind::InfoPtr | Kind::InfoArray => pointer(&["mpi_sys::MPI_Info"]),
        Kind::Errhandler => handle("MPI_Errhandler"),
        Kind::ErrhandlerPtr => pointer(&["mpi_sys::MPI_Errhandler"]),
        Kind::Session => handle("MPI_Session"),
        Kind::SessionPtr => pointer(&["mpi_sys::MPI_Session"]),
    }
}

#[test]
fn every_prototype_is_that_of_the_header() {
    let signatures = signatures();
    let expected = if cfg_open_mpi() { 370 } else { 560 };
    assert!(signatures.len() >= expected, "only {} functions compared", signatures.len());
    let mut wrong = Vec::new();
    for (call, Signature { parameters, returns }) in signatures {
        let fixed: Vec<_> = call.parameters().iter().filter(|p| p.kind != Kind::Vararg).collect();
        // The compiler checks the number of parameters, except of the variadic function.
        assert_eq!(fixed.len(), parameters.len(), "{}", call.name());
        for (parameter, rust) in fixed.iter().zip(&parameters) {
            if !fits(parameter.kind, rust) {
                wrong.push(format!(
                    "{}: {} is {:?} here, {rust} there",
                    call.name(),
                    parameter.name,
                    parameter.kind
                ));
            }
        }
        let returned = match call.returns() {
            Returns::Error => returns == "i32",
            Returns::Double => returns == "f64",
            Returns::Value(kind) => fits(kind, returns),
        };
        if !returned {
            wrong.push(format!("{} returns {:?} here, {returns} there", call.name(), call.returns()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Symbols with the prefix `MPI_` that are not functions of the C bindings.
fn passed_over(name: &str) -> bool {
    // The tools information interface, which does not communicate.
    name.starts_with("MPI_T_")
        // Predefined callbacks, passed by address: MPI_COMM_DUP_FN, MPI_NULL_COPY_FN, MPI_CONVERSION_FN_NULL, …
        || name.ends_with("_FN")
        || name.ends_with("_FN_NULL")
        // Fortran forms of functions without an error code.
        || name.ends_with("_F90")
        // Data: MPI_F_STATUS_IGNORE, MPI_F08_STATUSES_IGNORE, MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY.
        || ["MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE",
            "MPI_UNWEIGHTED", "MPI_WEIGHTS_EMPTY"].contains(&name)
}

#[test]
fn the_table_has_every_function_that_the_library_exports() {
    let path = library_of(c"PMPI_Init");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&path).output().expect("nm runs");
    assert!(output.status.success(), "nm {path}");
    let text = String::from_utf8(output.stdout).expect("nm writes ASCII");
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|n| n.starts_with("MPI_"))
        .collect();
    let table: BTreeSet<&str> = Call::all().map(Call::name).collect();
    let missing: Vec<_> = exported.difference(&table).filter(|name| !passed_over(name)).collect();
    assert!(missing.is_empty(), "{path} exports, the table lacks: {missing:?}");

    let known = table.intersection(&exported).count();
    assert!(known >= if cfg_open_mpi() { 370 } else { 560 }, "{known}");
    if !cfg_open_mpi() {
        // MPICH 4.0 has all of MPI-4.0, but implements the handle conversions as macros.
        let absent: Vec<_> = table.difference(&exported).collect();
        let conversion =
            |name: &&&str| Call::from_name(name).is_some_and(|c| c.group() == Group::Others);
        assert!(absent.iter().all(conversion), "{absent:?}");
    }
}

#[test]
fn every_function_of_the_table_that_is_exported_is_found_at_run_time() {
    let mut found = 0;
    for call in Call::all() {
        let name = std::ffi::CString::new(call.name()).expect("no NUL in a name");
        found += usize::from(symbols::function(&name).is_some());
    }
    assert!(found >= if cfg_open_mpi() { 370 } else { 560 }, "{found}");
}

/// The file of the library that defines a function.
fn library_of(function: &std::ffi::CStr) -> String {
    let address = symbols::function(function).expect("the test is linked with an MPI");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    let address = address.as_ptr() as usize;
    let line = maps
        .lines()
        .find(|line| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).unwrap_or(0);
            range.is_some_and(|(from, to)| (number(from)..number(to)).contains(&address))
        })
        .expect("code is mapped");
    line.split_whitespace().nth(5).expect("code comes from a file").to_owned()
}
