//! Generates the tables of `prototypes` from `functions.txt`. The tables hold numbers and texts but no addresses, so
//! a library that contains them needs no relocations.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A function.
#[derive(Clone)]
struct Function {
    name: String,
    category: String,
    detail: String,
    timing: &'static str,
    group: &'static str,
    /// Whether some MPIs lack it.
    optional: bool,
    returns: String,
    parameters: Vec<(String, String)>,
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=functions.txt");
    let text = std::fs::read_to_string("functions.txt").expect("functions.txt");
    let rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let functions: Vec<Function> =
        rows.flat_map(|row| forms(row).unwrap_or_else(|| panic!("{row}"))).collect();
    let directory = std::env::var_os("OUT_DIR").expect("set by cargo");
    std::fs::write(Path::new(&directory).join("functions.rs"), tables(&functions)).expect("OUT_DIR");
}

/// The functions defined by a row.
fn forms(row: &str) -> Option<Vec<Function>> {
    let (head, rest) = row.split_once(" (")?;
    let (parameters, returns) = rest.rsplit_once(')')?;
    let [name, category, detail, letters] = head.split(' ').collect::<Vec<_>>()[..] else { return None };
    let has = |letter| letters.contains(letter);
    let plain: Vec<(String, String)> = parameters
        .split(", ")
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| parameter.split_once(": ").map(|(name, kind)| (name.into(), kind.into())))
        .collect::<Option<_>>()?;
    let own = match name {
        "MPI_Iprobe" | "MPI_Improbe" | "MPI_Comm_idup" | "MPI_Comm_idup_with_info" => "Immediate",
        _ if category == "Partitioned" && name.ends_with("_init") => "Persistent",
        _ => "Blocking",
    };
    let mut timings = vec![(name.to_owned(), own, plain.clone())];
    let request = || ("request".to_owned(), "RequestPtr".to_owned());
    let without_status = || plain.iter().filter(|(name, _)| name != "status").cloned();
    if has('I') {
        let (prefix, rest) = match (name.strip_prefix("MPI_File_"), category) {
            (Some(rest), _) => ("MPI_File_i", rest.to_owned()),
            (None, "Rma") => ("MPI_R", lower_first(&name[4..])),
            (None, _) => ("MPI_I", lower_first(&name[4..])),
        };
        timings.push((format!("{prefix}{rest}"), "Immediate", without_status().chain([request()]).collect()));
    }
    if has('P') {
        let info = category.ends_with("Collective").then(|| ("info".to_owned(), "Info".to_owned()));
        let parameters = without_status().chain(info).chain([request()]).collect();
        timings.push((format!("{name}_init"), "Persistent", parameters));
    }
    let returns = returns.strip_prefix(" -> ").map_or("Error".to_owned(), |kind| match kind {
        "Double" => kind.to_owned(),
        _ => format!("Value(Kind::{kind})"),
    });
    let group = match (has('L'), has('N'), returns == "Error") {
        (true, ..) => "Large",
        (_, true, true) => "COnly",
        (_, true, false) => "Others",
        _ => "Plain",
    };
    let mut functions = Vec::new();
    for (name, timing, parameters) in timings {
        let function = Function {
            name,
            category: category.into(),
            detail: detail.into(),
            timing,
            group,
            optional: has('4')
                || timing == "Persistent" && category.ends_with("Collective")
                || timing == "Immediate" && category == "SendRecv",
            returns: returns.clone(),
            parameters: widths(&parameters, false),
        };
        if has('C') {
            let (name, parameters) = (format!("{}_c", function.name), widths(&parameters, true));
            functions.push(Function { name, group: "Large", optional: true, parameters, ..function.clone() });
        }
        functions.push(function);
    }
    Some(functions)
}

fn lower_first(text: &str) -> String {
    text[..1].to_lowercase() + &text[1..]
}

/// The kinds of parameters in the plain or the large-count form.
fn widths(parameters: &[(String, String)], large: bool) -> Vec<(String, String)> {
    let kind = |kind: &str| match (kind.split_once('/'), large, kind) {
        (Some((_, wide)), true, _) => wide.to_owned(),
        (Some((narrow, _)), false, _) => narrow.to_owned(),
        (None, true, "Count") => "BigCount".into(),
        (None, true, "CountArray") => "BigCountArray".into(),
        (None, true, "DisplArray") => "AintDisplArray".into(),
        _ => kind.to_owned(),
    };
    parameters.iter().map(|(name, of)| (name.clone(), kind(of))).collect()
}

/// The variant for a name like `origin_count`.
fn variant(name: &str) -> String {
    name.split('_').map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}

/// The tables in Rust.
fn tables(functions: &[Function]) -> String {
    let mut out = String::new();
    let list = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(", ");
    let names = &mut functions.iter().map(|function| function.name.clone());
    write!(
        out,
        "/// An MPI function; a small number that stands for its name.\n#[allow(non_camel_case_types, missing_docs)]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n#[repr(u16)]\npub enum Call {{ {} }}\n",
        list(names)
    )
    .expect("a string");
    let mut parameter_names: BTreeMap<&str, ()> = BTreeMap::new();
    for (name, _) in functions.iter().flat_map(|function| &function.parameters) {
        parameter_names.insert(name, ());
    }
    write!(
        out,
        "/// The name of a parameter in the standard.\n#[allow(missing_docs)]\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\n#[repr(u8)]\npub enum Name {{ {} }}\n",
        list(&mut parameter_names.keys().map(|name| variant(name)))
    )
    .expect("a string");
    texts(&mut out, "CALL_NAMES", &mut functions.iter().map(|function| function.name.as_str()));
    texts(&mut out, "PARAMETER_NAMES", &mut parameter_names.keys().copied());
    let parameters: Vec<String> = functions
        .iter()
        .flat_map(|function| &function.parameters)
        .map(|(name, kind)| format!("Parameter {{ name: Name::{}, kind: Kind::{kind} }}", variant(name)))
        .collect();
    writeln!(out, "static PARAMETERS: [Parameter; {}] = [{}];", parameters.len(), parameters.join(", "))
        .expect("a string");
    let mut end = 0;
    let mut row = |function: &Function| {
        end += function.parameters.len();
        let detail = match (function.category.as_str(), function.detail.as_str()) {
            (_, "-") => "None".to_owned(),
            ("Send", mode) => format!("Send(SendMode::{mode})"),
            ("Collective", operation) => format!("Collective(Operation::{operation})"),
            (_, way) => way.to_owned(),
        };
        format!(
            "Row {{ category: Category::{}, timing: Timing::{}, group: Group::{}, returns: Returns::{}, detail: \
             Detail::{detail}, end: {end} }}",
            function.category, function.timing, function.group, function.returns
        )
    };
    let rows: Vec<String> = functions.iter().map(&mut row).collect();
    writeln!(out, "static ROWS: [Row; {}] = [{}];", rows.len(), rows.join(", ")).expect("a string");
    exports(&mut out, functions);
    out
}

/// A table of concatenated texts and their ends.
fn texts(out: &mut String, name: &str, all: &mut dyn Iterator<Item = &str>) {
    let mut text = String::new();
    let ends: Vec<String> = all
        .map(|one| {
            text += one;
            text.len().to_string()
        })
        .collect();
    writeln!(
        out,
        "static {name}: Texts<{}> = Texts {{ text: {text:?}, ends: [{}] }};",
        ends.len(),
        ends.join(", ")
    )
    .expect("a string");
}

/// Programs look these names up to test whether an MPI is loaded, so this library must not export them.
const PROBES: [&str; 2] = ["MPI_Get_version", "MPI_Get_library_version"];

/// The table of exported names, and a macro that expands another one for each name.
fn exports(out: &mut String, functions: &[Function]) {
    let mut exports: Vec<(String, usize, &str)> = Vec::new();
    for (number, function) in functions.iter().enumerate() {
        let Function { name, group, category, timing, parameters, .. } = function;
        if PROBES.contains(&name.as_str()) {
            continue;
        }
        let mut add = |name: String, form| exports.push((name, number, form));
        let stem = if *group == "Large" { name.trim_end_matches("_c") } else { name }.to_lowercase();
        let has_buffer = parameters.iter().any(|(name, kind)| {
            kind == "Buffer" || kind == "Pointer" && ["base", "buffer", "location"].contains(&name.as_str())
        });
        let extension = *timing == "Persistent" && category.ends_with("Collective");
        match *group {
            "Plain" => {
                add(name.clone(), "C");
                add(format!("{stem}_"), "Fortran");
                add(format!("{stem}_f08_"), "Fortran");
                if has_buffer {
                    add(format!("{stem}_f08ts_"), "Descriptors");
                }
                if extension {
                    add(name.replace("MPI_", "MPIX_"), "C");
                    add(format!("{}_", stem.replace("mpi_", "mpix_")), "Fortran");
                    add(format!("{}_f08_", stem.replace("mpi_", "mpix_")), "Fortran");
                }
            }
            "Large" => {
                add(name.clone(), "C");
                add(format!("{stem}_f08_large_"), "Fortran");
                if has_buffer {
                    add(format!("{stem}_f08ts_large_"), "Descriptors");
                }
            }
            "COnly" if ["Lifecycle", "Pcontrol"].contains(&category.as_str()) => {
                add(name.clone(), "C");
                add(format!("{stem}_"), "Fortran");
                add(format!("{stem}_f08_"), "Fortran");
            }
            _ => {}
        }
    }
    texts(out, "EXPORT_NAMES", &mut exports.iter().map(|(name, ..)| name.as_str()));
    let rows: Vec<String> = exports
        .iter()
        .map(|(_, call, form)| format!("Export {{ call: {call}, form: Form::{form} }}"))
        .collect();
    writeln!(out, "static EXPORTS: [Export; {}] = [{}];", rows.len(), rows.join(", ")).expect("a string");
    out.push_str(
        "/// Hands every name under which programs call MPI to `$callback!`, with its number and, where some MPIs lack the C function, \
         `optional`.\n#[macro_export]\n\
         macro_rules! for_each_export {\n    ($callback:ident) => {\n",
    );
    for (number, (name, call, form)) in exports.iter().enumerate() {
        let optional = if *form == "C" && functions[*call].optional { "optional " } else { "" };
        writeln!(out, "        $callback! {{ {name:?} {number} {optional}}}").expect("a string");
    }
    out.push_str("    };\n}\n");
}
