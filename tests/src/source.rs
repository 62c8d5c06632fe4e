//! The Rust sources of the workspace, parsed.

use std::path::PathBuf;
use syn::{Attribute, Item};

/// A source file.
pub struct Source {
    /// Its path from the repository's root.
    pub path: String,
    /// Its content.
    pub file: syn::File,
}

impl Source {
    /// Whether all of it is test code: in a folder of tests or benchmarks, or the tests of a module.
    pub fn is_test(&self) -> bool {
        let folders = ["tests/", "benches/", "examples/", "fuzz/"];
        let test_module = self.path.ends_with("/tests.rs") || self.path.ends_with("/testing.rs");
        test_module
            || folders
                .iter()
                .any(|folder| self.path.starts_with(folder) || self.path.contains(&format!("/{folder}")))
    }

    /// The first folder of its path, which is named after the package.
    pub fn package(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }
}

/// Parses the file at `path`, from the repository's root.
///
/// # Panics
/// If there is no such file, or no Rust in it.
pub fn parse(path: &str) -> Source {
    let text = std::fs::read_to_string(crate::root().join(path));
    let file = text
        .map_err(|error| error.to_string())
        .and_then(|text| syn::parse_file(&text).map_err(|error| error.to_string()));
    Source { path: path.into(), file: file.unwrap_or_else(|error| panic!("{path}: {error}")) }
}

/// All sources of the workspace and of `fuzz/`, in order of their paths.
///
/// # Panics
/// If a folder cannot be read or a file cannot be parsed.
pub fn all() -> Vec<Source> {
    let root = crate::root();
    let mut paths = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|suffix| suffix == "rs") {
                paths.push(path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().into_owned());
            }
        }
    }
    paths.sort_unstable();
    paths.iter().map(|path| parse(path)).collect()
}

/// Whether an item with these attributes is compiled for tests only.
pub fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
        let tokens = list.tokens.to_string();
        let words = || tokens.split(|c: char| !c.is_alphanumeric() && c != '_');
        list.path.is_ident("cfg") && words().any(|word| word == "test") && !words().any(|word| word == "not")
    })
}

/// The attributes of an item.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
