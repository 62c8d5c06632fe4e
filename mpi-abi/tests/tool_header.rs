//! Compares the functions in the C header for tools with the table of prototypes. `VEF_WRITE_HEADER=1 cargo test -p
//! mpi-abi --test tool_header` rewrites the header.

use mpi_abi::prototypes::{Call, Category, Group, Kind};
use mpi_abi::tool::TABLE;
use std::fmt::Write;
use std::path::Path;

/// The C type of a parameter.
fn c_type(call: Call, name: &str, kind: Kind) -> &'static str {
    let writes = call.name().contains("write");
    let sends = call.category() == Category::Send || writes;
    let read_only = matches!(name, "sendbuf" | "inbuf" | "compare_addr")
        || name == "buf" && sends
        || name == "buf" && call.name().starts_with("MPI_Psend")
        || name == "origin_addr" && !call.name().trim_end_matches("_c").ends_with("get");
    match kind {
        Kind::Count | Kind::Rank | Kind::Root | Kind::Tag | Kind::Int => "int ",
        Kind::BigCount => "MPI_Count ",
        Kind::Aint => "MPI_Aint ",
        Kind::Offset => "MPI_Offset ",
        Kind::Buffer if read_only => "const void *",
        Kind::Buffer | Kind::Pointer => "void *",
        Kind::CountArray | Kind::DisplArray => "const int *",
        Kind::IntPtr | Kind::IntArray => "int *",
        Kind::AintDisplArray => "const MPI_Aint *",
        Kind::AintPtr | Kind::AintArray => "MPI_Aint *",
        Kind::BigCountPtr => "MPI_Count *",
        Kind::BigCountArray => "const MPI_Count *",
        Kind::OffsetPtr => "MPI_Offset *",
        Kind::StatusPtr | Kind::StatusArray => "MPI_Status *",
        Kind::Str => "const char *",
        Kind::StrOut => "char *",
        Kind::StrArray => "char **",
        Kind::Function => "vef_function ",
        Kind::Vararg => "void *",
        Kind::Comm => "MPI_Comm ",
        Kind::CommPtr => "MPI_Comm *",
        Kind::Datatype => "MPI_Datatype ",
        Kind::DatatypePtr | Kind::DatatypeArray => "MPI_Datatype *",
        Kind::Request => "MPI_Request ",
        Kind::RequestPtr | Kind::RequestArray => "MPI_Request *",
        Kind::Message => "MPI_Message ",
        Kind::MessagePtr => "MPI_Message *",
        Kind::Op => "MPI_Op ",
        Kind::OpPtr => "MPI_Op *",
        Kind::Group => "MPI_Group ",
        Kind::GroupPtr => "MPI_Group *",
        Kind::Win => "MPI_Win ",
        Kind::WinPtr => "MPI_Win *",
        Kind::File => "MPI_File ",
        Kind::FilePtr => "MPI_File *",
        Kind::Info => "MPI_Info ",
        Kind::InfoPtr | Kind::InfoArray => "MPI_Info *",
        Kind::Errhandler => "MPI_Errhandler ",
        Kind::ErrhandlerPtr => "MPI_Errhandler *",
        Kind::Session => "MPI_Session ",
        Kind::SessionPtr => "MPI_Session *",
    }
}

fn row(call: Call) -> String {
    // MPI_Init's argv is a char ***.
    let parameter = |name: &str, kind| match (call, name) {
        (Call::MPI_Init | Call::MPI_Init_thread, "argv") => "char ***argv".to_owned(),
        _ => format!("{}{name}", c_type(call, name, kind)),
    };
    let list = |first: &str, one: &dyn Fn(&str, Kind) -> String| {
        let all = call.parameters().iter();
        all.fold(first.to_owned(), |text, p| text + ", " + &one(p.name.text(), p.kind))
    };
    let parameters = list("vef_layer *layer", &parameter);
    let arguments = list("vef_to.layer", &|name, _| name.to_owned());
    format!("VEF_FUNCTION({}, {}, ({parameters}), ({arguments}))\n", call as u16, call.name())
}

fn header() -> String {
    let mut text = String::from(
        "/* Generated from the table of prototypes (mpi-abi/tests/tool_header.rs); for vef_tool.h alone. */\n",
    );
    writeln!(text, "#define VEF_TOOL_TABLE UINT64_C({TABLE:#x})").unwrap();
    let asks_for_sessions =
        |call: &Call| call.parameters().iter().any(|p| matches!(p.kind, Kind::Session | Kind::SessionPtr));
    let all = || Call::all().filter(|call| call.group() != Group::Others);
    all()
        .filter(|call| !asks_for_sessions(call) && *call != Call::MPI_Pcontrol)
        .for_each(|call| text.push_str(&row(call)));
    text.push_str("#if MPI_VERSION >= 4\n");
    all().filter(asks_for_sessions).for_each(|call| text.push_str(&row(call)));
    text.push_str("#endif\n");
    text
}

#[test]
fn the_header_is_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interpose/include/vef_tool_functions.h");
    if std::env::var_os("VEF_WRITE_HEADER").is_some() {
        std::fs::write(&path, header()).expect("the header");
    }
    let written = std::fs::read_to_string(&path).expect("the header");
    assert!(
        written == header(),
        "write it anew: VEF_WRITE_HEADER=1 cargo test -p mpi-abi --test tool_header"
    );
}
