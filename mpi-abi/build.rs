//! Generates the tables of `prototypes` from `functions.txt`. The tables hold numbers and texts but no addresses, so
//! a library that contains them needs no relocations.

use std::collections::BTreeSet;
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
    let parameters = || functions.iter().flat_map(|function| &function.parameters);
    let names: BTreeSet<&str> = parameters().map(|(name, _)| name.as_str()).collect();
    let mut out = enumeration(
        "An MPI function; a small number that stands for its name.",
        "#[allow(non_camel_case_types)] #[derive(PartialOrd, Ord)] #[repr(u16)] pub enum Call",
        functions.iter().map(|function| function.name.clone()),
    );
    out += &enumeration(
        "The name of a parameter in the standard.",
        "#[repr(u16)] pub enum Name",
        names.iter().map(|name| variant(name)),
    );
    out += &texts("CALL_NAMES", functions.iter().map(|function| function.name.as_str()));
    out += &texts("PARAMETER_NAMES", names.iter().copied());
    let parameter = |(name, kind): &(String, String)| {
        format!("Parameter {{ name: Name::{}, kind: Kind::{kind} }}", variant(name))
    };
    out += &array("PARAMETERS", "Parameter", parameters().map(parameter));
    let mut end = 0;
    let row = |function: &Function| {
        let Function { category, detail, timing, group, returns, parameters, .. } = function;
        end += parameters.len();
        let detail = match (category.as_str(), detail.as_str()) {
            (_, "-") => "None".to_owned(),
            ("Send", mode) => format!("Send(SendMode::{mode})"),
            ("Collective", operation) => format!("Collective(Operation::{operation})"),
            (_, way) => way.to_owned(),
        };
        format!(
            "FunctionRow {{ category: Category::{category}, timing: Timing::{timing}, group: Group::{group}, returns: \
             Returns::{returns}, detail: CallDetail::{detail}, end: {end} }}"
        )
    };
    out += &array("ROWS", "FunctionRow", functions.iter().map(row));
    // FNV-1a over the names.
    let bytes = functions.iter().flat_map(|function| function.name.bytes().chain([0]));
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let table = bytes.fold(0xcbf2_9ce4_8422_2325, hash);
    out += &format!("/// A fingerprint of the numbers of all functions.\npub const TABLE: u64 = {table};\n");
    out + &exports(functions)
}

fn enumeration(doc: &str, head: &str, variants: impl Iterator<Item = String>) -> String {
    let variants = variants.collect::<Vec<_>>().join(", ");
    format!(
        "/// {doc}\n#[allow(missing_docs)] #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)] {head} {{ {variants} }}\n"
    )
}

fn array(name: &str, of: &str, rows: impl Iterator<Item = String>) -> String {
    let rows: Vec<String> = rows.collect();
    format!("static {name}: [{of}; {}] = [{}];\n", rows.len(), rows.join(", "))
}

/// A table of concatenated texts and their ends.
fn texts<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let end = |one: &str| {
        text += one;
        text.len().to_string()
    };
    let ends: Vec<String> = all.map(end).collect();
    format!(
        "static {name}: Texts<{}> = Texts {{ text: {text:?}, ends: [{}] }};\n",
        ends.len(),
        ends.join(", ")
    )
}

/// Programs look these names up to test whether an MPI is loaded, so this library must not export them.
const PROBES: [&str; 2] = ["MPI_Get_version", "MPI_Get_library_version"];

/// A name under which programs call a function.
struct Export {
    text: String,
    /// The number of its function.
    call: usize,
    form: &'static str,
    /// The text with a star for the function's name.
    style: &'static str,
}

/// The table of exported names, and a macro that expands another one for each name.
fn exports(functions: &[Function]) -> String {
    let mut exports: Vec<Export> = Vec::new();
    for (number, function) in functions.iter().enumerate() {
        let Function { name, group, category, timing, parameters, .. } = function;
        let in_c_only = *group == "COnly" && !["Lifecycle", "Pcontrol"].contains(&category.as_str());
        if PROBES.contains(&name.as_str()) || *group == "Others" || in_c_only {
            continue;
        }
        let has_buffer = parameters.iter().any(|(name, kind)| {
            kind == "Buffer" || kind == "Pointer" && ["base", "buffer", "location"].contains(&name.as_str())
        });
        let is_large = *group == "Large";
        let mut add = |style: &'static str, form| {
            let stem = match form {
                "C" => name["MPI_".len()..].to_owned(),
                _ if is_large => name["MPI_".len()..].trim_end_matches("_c").to_lowercase(),
                _ => name["MPI_".len()..].to_lowercase(),
            };
            exports.push(Export { text: style.replace('*', &stem), call: number, form, style });
        };
        add("MPI_*", "C");
        if is_large {
            add("mpi_*_f08_large_", "Fortran");
        } else {
            add("mpi_*_", "Fortran");
            add("mpi_*_f08_", "Fortran");
        }
        if has_buffer {
            add(if is_large { "mpi_*_f08ts_large_" } else { "mpi_*_f08ts_" }, "Descriptors");
        }
        if *group == "Plain" && *timing == "Persistent" && category.ends_with("Collective") {
            add("MPIX_*", "C");
            add("mpix_*_", "Fortran");
            add("mpix_*_f08_", "Fortran");
        }
    }
    let mut styles: Vec<_> = exports.iter().map(|export| export.style).collect();
    styles.sort_unstable();
    styles.dedup();
    let mut out = texts("STYLES", styles.iter().copied());
    let longest = exports.iter().map(|export| export.text.len()).max().unwrap_or_default();
    out += &format!("/// The length of the longest symbol.\nconst LONGEST: usize = {longest};\n");
    let row = |Export { call, form, style, .. }: &Export| {
        let style = styles.binary_search(style).expect("one of the styles");
        format!("Export {{ call: {call}, form: Convention::{form}, style: {style} }}")
    };
    out += &array("EXPORTS", "Export", exports.iter().map(row));
    out += "/// Hands every name under which programs call MPI to `$callback!`, with its number and, where some MPIs lack the C function, \
            `optional`.\n#[macro_export]\nmacro_rules! for_each_export {\n    ($callback:ident) => {\n";
    for (number, Export { text, call, form, .. }) in exports.iter().enumerate() {
        let optional = if *form == "C" && functions[*call].optional { "optional " } else { "" };
        out += &format!("        $callback! {{ {text:?} {number} {optional}}}\n");
    }
    out + "    };\n}\n"
}
