//! Inside a crate the modules depend one way, too: no circles of files.
//!
//! The test reads paths in the source text (`use` trees, and paths that begin with `crate`, `super`, `self` or a child's
//! name). A name that a module re-exports counts as a use of the file that defines it, and a re-export itself as none;
//! unit tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crates whose files must not form circles.
const HELD: &[&str] = &[
    "cli",
    "collbench",
    "collectives",
    "interpose",
    "mixer",
    "mpi-abi",
    "placement",
    "replay",
    "replay-ffi",
    "reports",
    "sim-example",
    "substitute",
    "workloads",
    "vef-format",
];

type Module = Vec<String>;

/// What the text of a file says of modules.
#[derive(Default)]
struct File {
    children: BTreeSet<String>,
    /// Names that it re-exports, and what they stand for.
    exports: BTreeMap<String, Module>,
    /// Modules whose every name it re-exports.
    globs: Vec<Module>,
    /// What it uses.
    paths: BTreeSet<Module>,
}

/// The files of a crate, unit tests left out, by module.
fn files(src: &Path) -> BTreeMap<Module, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![(src.to_path_buf(), Module::new())];
    while let Some((folder, module)) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            let below = |name: &str| [module.clone(), vec![name.to_owned()]].concat();
            if path.is_dir() {
                folders.push((path, below(&stem)));
            } else if path.extension().is_some_and(|suffix| suffix == "rs") && !stem.ends_with("tests") {
                let module = match stem.as_str() {
                    "lib" | "main" | "mod" => module.clone(),
                    name => below(name),
                };
                found.insert(module, std::fs::read_to_string(&path).expect("a source"));
            }
        }
    }
    found
}

/// Without comments, and without what follows `#[cfg(test)]`: unit tests end their file.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The paths of a `use` tree, with the name that each is known by (`*` for a glob).
fn tree(text: &str, prefix: &[String], out: &mut Vec<(Module, String)>) {
    let mut depth = 0;
    let mut starts = 0;
    let mut parts = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => parts.push(&text[std::mem::replace(&mut starts, at + 1)..at]),
            _ => {}
        }
    }
    parts.push(&text[starts..]);
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        let (path, inner) =
            part.split_once('{').map_or((part, None), |(path, rest)| (path, rest.rsplit_once('}')));
        let (path, name) =
            path.split_once(" as ").map_or((path, None), |(path, name)| (path, Some(name.trim())));
        let words = path
            .split("::")
            .map(str::trim)
            .filter(|word| !word.is_empty() && *word != "self" || path == "self");
        let full: Module = prefix.iter().cloned().chain(words.map(str::to_owned)).collect();
        match inner {
            Some((inner, _)) => tree(inner, &full, out),
            None => {
                let last = full.last().cloned().unwrap_or_default();
                out.push((full, name.map_or(last, str::to_owned)));
            }
        }
    }
}

/// `path`, as written in `module`, from the crate's root; `None` for what lies outside the crate.
fn absolute(path: &[String], module: &Module, children: &BTreeSet<String>) -> Option<Module> {
    let mut base = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" => module.clone(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        name if children.contains(name) => return Some([module.clone(), path.to_vec()].concat()),
        _ => return None,
    };
    let mut rest = &path[1..];
    while rest.first().is_some_and(|word| word == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    Some([base, rest.to_vec()].concat())
}

fn parse(text: &str, module: &Module) -> File {
    let code = code(text);
    let mut file = File::default();
    for line in code.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [.., "mod", name] = words[..]
            && let Some(name) = name.strip_suffix(';')
        {
            file.children.insert(name.to_owned());
        }
    }
    let mut rest = String::new();
    let mut uses = Vec::new();
    for statement in code.split_inclusive(';') {
        let begin = statement.rfind("use ").filter(|&at| {
            let before = statement[..at].trim_end();
            before.is_empty() || before.ends_with([';', '}', '{', ']', ')', 'b'])
        });
        match begin {
            Some(at) if !statement[at..].contains("fn ") => {
                let exported =
                    statement[..at].trim_end().rsplit('\n').next().is_some_and(|line| line.contains("pub"));
                uses.push((exported, statement[at + 4..].trim_end_matches(';').to_owned()));
                rest += &statement[..at];
            }
            _ => rest += statement,
        }
    }
    let mut names: BTreeMap<String, Module> = BTreeMap::new();
    for (exported, text) in uses {
        let mut leaves = Vec::new();
        tree(&text, &[], &mut leaves);
        for (path, name) in leaves {
            let Some(path) = absolute(&path, module, &file.children) else { continue };
            match (exported, name.as_str()) {
                (false, _) => {
                    names.insert(name, path.clone());
                    file.paths.insert(path);
                }
                (true, "*") => file.globs.push(path[..path.len() - 1].to_vec()),
                (true, _) => drop(file.exports.insert(name, path)),
            }
        }
    }
    // Paths in the code: words joined by `::`.
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for path in rest.split(|c: char| !is_word(c)).filter(|path| path.contains("::") && !path.starts_with(':'))
    {
        let words: Module = path.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let path = match names.get(&words[0]) {
            Some(used) => Some([used.clone(), words[1..].to_vec()].concat()),
            None => absolute(&words, module, &file.children),
        };
        file.paths.extend(path);
    }
    file
}

/// The file in which what `path` names is defined.
fn definition(path: &[String], files: &BTreeMap<Module, File>, patience: u32) -> Option<Module> {
    let depth = (0..=path.len()).rev().find(|&depth| files.contains_key(&path[..depth]))?;
    let (module, rest) = path.split_at(depth);
    let (Some(name), true) = (rest.first(), patience > 0) else { return Some(module.to_vec()) };
    if let Some(target) = files[module].exports.get(name) {
        return definition(&[target.clone(), rest[1..].to_vec()].concat(), files, patience - 1);
    }
    Some(module.to_vec())
}

/// The files of `package` that depend on each other in a circle, circle by circle.
fn circles(package: &str) -> Vec<Vec<String>> {
    let texts = files(&vef_tests::root().join(package).join("src"));
    let files: BTreeMap<Module, File> =
        texts.iter().map(|(module, text)| (module.clone(), parse(text, module))).collect();
    let uses = |module: &Module| {
        let targets = files[module].paths.iter().filter_map(|path| definition(path, &files, 8));
        targets.filter(|target| target != module).collect::<BTreeSet<Module>>()
    };
    let edges: BTreeMap<&Module, BTreeSet<Module>> =
        files.keys().map(|module| (module, uses(module))).collect();
    let reachable = |from: &Module| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Module> = edges[from].iter().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module.clone()) {
                next.extend(&edges[module]);
            }
        }
        seen
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        files.keys().map(|module| (module, reachable(module))).collect();
    let mut circles: Vec<Vec<String>> = Vec::new();
    let mut placed = BTreeSet::new();
    for module in files.keys().filter(|module| reach[module].contains(*module)) {
        if placed.insert(module.clone()) {
            let others =
                files.keys().filter(|other| reach[module].contains(*other) && reach[other].contains(module));
            let circle: Vec<Module> = others.cloned().collect();
            placed.extend(circle.iter().cloned());
            circles.push(
                circle
                    .iter()
                    .map(|module| {
                        ["crate".to_owned()].iter().chain(module).cloned().collect::<Vec<_>>().join("::")
                    })
                    .collect(),
            );
        }
    }
    circles
}

#[test]
fn files_depend_one_way() {
    for package in HELD {
        let circles = circles(package);
        assert!(circles.is_empty(), "{package}: circles of files: {circles:#?}");
    }
}

#[test]
fn a_circle_is_seen() {
    let files = |texts: &[(&str, &str)]| -> BTreeMap<Module, File> {
        let module =
            |path: &str| path.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect();
        texts.iter().map(|(path, text)| (module(path), parse(text, &module(path)))).collect()
    };
    let files = files(&[
        ("", "mod a;\npub(crate) mod b;\npub use a::{One as Uno, c::*};\n"),
        ("a", "use crate::b::{self, Two};\nmod c;\nfn f() { b::g(Two) }"),
        ("a::c", "//! use crate::b::Nothing;\nfn f() -> crate::Uno { super::super::b::h() }"),
        ("b", "#[cfg(test)]\nmod tests {\n use crate::a::X; }"),
    ]);
    let paths = |module: &[&str]| {
        let module: Module = module.iter().map(ToString::to_string).collect();
        files[&module]
            .paths
            .iter()
            .map(|path| definition(path, &files, 8).unwrap_or_default().join("::"))
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(paths(&["a"]), ["b".to_owned()].into());
    assert_eq!(paths(&["a", "c"]), ["a".to_owned(), "b".to_owned()].into());
    assert!(paths(&["b"]).is_empty() && paths(&[]).is_empty());
}
