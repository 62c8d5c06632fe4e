//! Generates the data that the tests compare: a C file with the values of all constants, compiled by `$MPICC`, and a
//! Rust file with the types of the functions declared by its `mpi.h`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use mpi_abi::prototypes::Call;
use mpi_abi::tables::{Flavour, Table};

/// The private fields of `MPI_Status` have different names in each MPI.
const STATUS: &str = r#"
#ifdef OPEN_MPI
    {"status.hidden", offsetof(MPI_Status, _cancelled)}, {"status.hidden", offsetof(MPI_Status, _ucount)},
#else
    {"status.hidden", offsetof(MPI_Status, count_lo)}, {"status.hidden", offsetof(MPI_Status, count_hi_and_cancelled)},
#endif
    {"status.size", sizeof(MPI_Status)},
    {"status.source", offsetof(MPI_Status, MPI_SOURCE)},
    {"status.tag", offsetof(MPI_Status, MPI_TAG)},
    {"status.error", offsetof(MPI_Status, MPI_ERROR)},
    {"handle.size", sizeof(MPI_Request)},
"#;

fn main() {
    println!("cargo:rerun-if-env-changed=MPICC");
    println!("cargo:rerun-if-changed=build.rs");
    let mpicc = env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));

    let constants = out.join("constants.c");
    fs::write(&constants, constants_c()).expect("OUT_DIR is writable");
    cc::Build::new().compiler(&mpicc).warnings(false).file(&constants).compile("constants");

    let declared = declared_functions(&mpicc, &out);
    fs::write(out.join("signatures.rs"), signatures_rs(&declared)).expect("OUT_DIR is writable");
}

/// A C table of all constants' names and values; the names are the same in every ABI table.
fn constants_c() -> String {
    let table = Table::of(Flavour::Mpich);
    let constants = table.constants.named().map(|(name, _)| name);
    let handles = table.handles.named().map(|(name, _)| name);
    let datatypes = table.datatypes.named().map(|(name, _)| name);
    let mut text = String::from("#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n");
    text.push_str("typedef struct { const char *name; int64_t value; } oracle_constant;\n");
    text.push_str("const oracle_constant oracle_layout[] = {\n");
    text.push_str(STATUS);
    text.push_str("    {0, 0}\n};\n");
    text.push_str("int64_t oracle_value(int index, const char **name) {\n    switch (index) {\n");
    for (index, name) in constants.chain(handles).chain(datatypes).enumerate() {
        let _ = writeln!(text, "    case {index}: *name = \"{name}\"; return (int64_t)(intptr_t){name};");
    }
    text.push_str("    default: *name = 0; return 0;\n    }\n}\n");
    text
}

/// The `MPI_` names that `mpi.h` declares as functions.
fn declared_functions(mpicc: &str, out: &std::path::Path) -> BTreeSet<String> {
    let source = out.join("declared.c");
    fs::write(&source, "#include <mpi.h>\n").expect("OUT_DIR is writable");
    let output = Command::new(mpicc).arg("-E").arg("-P").arg(&source).output().expect("MPICC runs");
    assert!(output.status.success(), "{mpicc} -E failed: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices("MPI_")
        .filter(|(start, _)| !text[..*start].ends_with(is_name))
        .filter_map(|(start, _)| {
            let rest = &text[start..];
            let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
            rest[name.len()..].trim_start().starts_with('(').then(|| name.to_owned())
        })
        .collect()
}

/// The type of each declared function, with the number of parameters in the table; a wrong number does not compile.
fn signatures_rs(declared: &BTreeSet<String>) -> String {
    let mut text = String::from("vec![\n");
    for call in Call::all().filter(|call| declared.contains(call.name())) {
        let parameters = match call {
            Call::MPI_Pcontrol => "_, ...".to_owned(),
            _ => vec!["_"; call.parameters().len()].join(", "),
        };
        let _ = writeln!(
            text,
            "    (Call::{0}, (mpi_sys::{0} as unsafe extern \"C\" fn({parameters}) -> _).signature()),",
            call.name()
        );
    }
    text.push(']');
    text
}
