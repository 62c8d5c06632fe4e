//! Which files of a crate depend on which, by the names in their code.
//!
//! A file depends on the file that *defines* what a path names, however often that is re-exported (a `pub use` by
//! itself is no use), and on the file of a *method* that it calls where the `impl` blocks of a type are spread over
//! several files: `self.step()` in one of them, or elsewhere a method of a type that the file names, if no other type
//! of the crate has one of this name. Unit tests are left out.
//! Calls through traits are not followed, since a trait is how a dependency is turned round.

use crate::source::{attributes, for_tests};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Expr, ImplItem, Item, UseTree, Visibility};

type Path = Vec<String>;

/// A module of the crate, with a file of its own or within another's.
#[derive(Default)]
struct Module {
    file: String,
    code: Vec<Item>,
    /// Names that it defines.
    items: BTreeSet<String>,
    /// Names that it imports or re-exports, and what they stand for, as written.
    uses: BTreeMap<String, Path>,
    /// Modules whose every name it imports or re-exports.
    globs: Vec<Path>,
    /// What its imports name; re-exports are not among it.
    imports: Vec<Path>,
}

/// A definition: the module and the name of the item.
type Definition = (Path, String);

/// The modules of a crate, by their paths.
pub struct Crate {
    modules: BTreeMap<Path, Module>,
    /// The files in which a type has a method of its own.
    methods: BTreeMap<(Definition, String), BTreeSet<String>>,
    /// How many types and traits have a method of this name.
    namesakes: BTreeMap<String, BTreeSet<String>>,
}

impl Crate {
    /// Reads a crate from its root file on; `read` returns the text of a file, if there is such a file.
    pub fn load(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut this =
            Self { modules: BTreeMap::new(), methods: BTreeMap::new(), namesakes: BTreeMap::new() };
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        this.add_file(root, folder, Vec::new(), read);
        this.find_methods();
        this
    }

    fn add_file(&mut self, file: &str, folder: &str, path: Path, read: &dyn Fn(&str) -> Option<String>) {
        let text = read(file).unwrap_or_else(|| panic!("{file} cannot be read"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        self.add_module(file, folder, path, parsed.items, read);
    }

    fn add_module(
        &mut self,
        file: &str,
        folder: &str,
        path: Path,
        code: Vec<Item>,
        read: &dyn Fn(&str) -> Option<String>,
    ) {
        let mut module = Module { file: file.into(), ..Module::default() };
        for item in code {
            if for_tests(attributes(&item)) {
                continue;
            }
            let name = match &item {
                Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let below = format!("{folder}/{name}");
                    let path = [&path[..], &[name]].concat();
                    match &inner.content {
                        Some((_, code)) => self.add_module(file, &below, path, code.clone(), read),
                        None => {
                            let beside = format!("{below}.rs");
                            let within = format!("{below}/mod.rs");
                            let file = if read(&beside).is_some() { beside } else { within };
                            self.add_file(&file, &below, path, read);
                        }
                    }
                    continue;
                }
                Item::Use(item) => {
                    let exported = !matches!(item.vis, Visibility::Inherited);
                    module.add_use(&item.tree, Vec::new(), exported);
                    continue;
                }
                Item::Const(item) => Some(&item.ident),
                Item::Enum(item) => Some(&item.ident),
                Item::Fn(item) => Some(&item.sig.ident),
                Item::Macro(item) => item.ident.as_ref(),
                Item::Static(item) => Some(&item.ident),
                Item::Struct(item) => Some(&item.ident),
                Item::Trait(item) => Some(&item.ident),
                Item::Type(item) => Some(&item.ident),
                Item::Union(item) => Some(&item.ident),
                _ => None,
            };
            module.items.extend(name.map(ToString::to_string));
            module.code.push(item);
        }
        self.modules.insert(path, module);
    }

    fn find_methods(&mut self) {
        let mut methods: BTreeMap<(Definition, String), BTreeSet<String>> = BTreeMap::new();
        let mut namesakes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (path, module) in &self.modules {
            for item in &module.code {
                match item {
                    Item::Impl(block) => {
                        let Some(of) = self.self_type(path, &block.self_ty) else { continue };
                        for item in &block.items {
                            let ImplItem::Fn(function) = item else { continue };
                            let name = function.sig.ident.to_string();
                            namesakes.entry(name.clone()).or_default().insert(of.1.clone());
                            if block.trait_.is_none() {
                                let files = methods.entry((of.clone(), name)).or_default();
                                files.insert(module.file.clone());
                            }
                        }
                    }
                    Item::Trait(of) => {
                        for item in &of.items {
                            let syn::TraitItem::Fn(function) = item else { continue };
                            let named = namesakes.entry(function.sig.ident.to_string()).or_default();
                            named.insert(of.ident.to_string());
                        }
                    }
                    _ => {}
                }
            }
        }
        (self.methods, self.namesakes) = (methods, namesakes);
    }

    /// The type that an `impl` block in the module `path` is for, if it is one of the crate.
    fn self_type(&self, path: &[String], ty: &syn::Type) -> Option<Definition> {
        let syn::Type::Path(ty) = ty else { return None };
        let (found, rest) = self.resolve(path, &words(&ty.path), 16)?;
        Some((found, rest.first()?.clone()))
    }

    /// The module that defines what `path` names in the module `from`, and the rest of the path, beginning with the
    /// name of the item; `None` for what is defined elsewhere.
    fn resolve(&self, from: &[String], path: &[String], patience: u32) -> Option<(Path, Path)> {
        match path.first()?.as_str() {
            "crate" => self.find(&[], &path[1..], patience),
            "self" => self.find(from, &path[1..], patience),
            _ => self.find(from, path, patience),
        }
    }

    /// Like [`Self::resolve`], for a path whose first name is looked for in the module `from` only.
    fn find(&self, from: &[String], path: &[String], patience: u32) -> Option<(Path, Path)> {
        let patience = patience.checked_sub(1)?;
        let module = self.modules.get(from)?;
        let Some(name) = path.first() else { return Some((from.to_vec(), Vec::new())) };
        let child = [from, std::slice::from_ref(name)].concat();
        if name == "super" {
            return self.find(from.split_last()?.1, &path[1..], patience);
        } else if self.modules.contains_key(&child) {
            return self.find(&child, &path[1..], patience);
        } else if module.items.contains(name) {
            return Some((from.to_vec(), path.to_vec()));
        } else if let Some(target) = module.uses.get(name) {
            // `use other::other` names another crate.
            let rest = [target, &path[1..]].concat();
            return if target.first() == Some(name) { None } else { self.resolve(from, &rest, patience) };
        }
        module.globs.iter().find_map(|glob| {
            let (found, rest) = self.resolve(from, glob, patience)?;
            if rest.is_empty() { self.find(&found, path, patience) } else { None }
        })
    }

    /// The files that each file depends on, each with a name that is the reason.
    pub fn dependencies(&self) -> BTreeMap<String, BTreeMap<String, String>> {
        let mut files: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (path, module) in &self.modules {
            let mut uses = Uses {
                of: self,
                path,
                of_type: None,
                types: BTreeSet::new(),
                calls: BTreeSet::new(),
                found: BTreeMap::new(),
            };
            for import in &module.imports {
                uses.path(import);
            }
            for item in &module.code {
                uses.visit_item(item);
            }
            uses.methods();
            uses.found.remove(&module.file);
            files.entry(module.file.clone()).or_default().extend(uses.found);
        }
        files
    }

    /// The sets of files that depend on each other in a circle.
    pub fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let edges = self.dependencies();
        let reached: BTreeMap<&String, BTreeSet<&String>> = edges
            .keys()
            .map(|from| {
                let mut seen = BTreeSet::new();
                let mut next: Vec<&String> = edges[from].keys().collect();
                while let Some(file) = next.pop() {
                    if seen.insert(file) {
                        next.extend(edges[file].keys());
                    }
                }
                (from, seen)
            })
            .collect();
        let both_ways = |a: &&String, b: &&String| reached[*a].contains(*b) && reached[*b].contains(*a);
        let in_one = edges.keys().filter(|file| reached[*file].contains(file));
        in_one.map(|file| edges.keys().filter(|other| both_ways(&file, other)).cloned().collect()).collect()
    }
}

impl Module {
    fn add_use(&mut self, tree: &UseTree, mut prefix: Path, exported: bool) {
        let (name, known_as) = match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                return self.add_use(&path.tree, prefix, exported);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_use(tree, prefix.clone(), exported));
            }
            UseTree::Glob(_) => return self.globs.push(prefix),
            UseTree::Name(name) => (&name.ident, &name.ident),
            UseTree::Rename(rename) => (&rename.ident, &rename.rename),
        };
        let known_as = if known_as == "self" { prefix.last().cloned() } else { Some(known_as.to_string()) };
        if name != "self" || prefix.is_empty() {
            prefix.push(name.to_string());
        }
        if !exported {
            self.imports.push(prefix.clone());
        }
        self.uses.extend(known_as.map(|name| (name, prefix)));
    }
}

fn words(path: &syn::Path) -> Path {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

/// Collects the files that the code of a module uses.
struct Uses<'a> {
    of: &'a Crate,
    path: &'a Path,
    /// The type that the `impl` block around is for.
    of_type: Option<Definition>,
    /// Types of the crate that it names.
    types: BTreeSet<Definition>,
    /// Methods that it calls of anything but `self`.
    calls: BTreeSet<String>,
    /// The files, each with a name that is the reason.
    found: BTreeMap<String, String>,
}

impl Uses<'_> {
    fn path(&mut self, path: &[String]) {
        if let [first, method, ..] = path
            && first == "Self"
        {
            return self.method_of_self(method);
        }
        let Some((module, rest)) = self.of.resolve(self.path, path, 16) else { return };
        // The name of a module alone is a local variable of this name, or an import; what uses that names an item.
        let Some(name) = rest.first() else { return };
        self.found.insert(self.of.modules[&module].file.clone(), path.join("::"));
        let of = (module, name.clone());
        if let Some(method) = rest.get(1) {
            self.method_of(&(of.clone(), method.clone()));
        }
        self.types.insert(of);
    }

    fn method_of_self(&mut self, name: &str) {
        if let Some(of) = &self.of_type {
            self.method_of(&(of.clone(), name.to_owned()));
        }
    }

    fn method_of(&mut self, method: &(Definition, String)) {
        for file in self.of.methods.get(method).into_iter().flatten() {
            self.found.insert(file.clone(), format!("{}::{}", method.0.1, method.1));
        }
    }

    fn method(&mut self, name: String, of_self: bool) {
        if of_self {
            self.method_of_self(&name);
        } else {
            self.calls.insert(name);
        }
    }

    /// Adds the files of the methods in [`Self::calls`].
    fn methods(&mut self) {
        for method in self.of.methods.keys() {
            let (of, name) = method;
            if self.calls.contains(name) && self.types.contains(of) && self.of.namesakes[name].len() == 1 {
                self.method_of(method);
            }
        }
    }

    /// Names among the arguments of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Path::new();
        // The punctuation since the last name.
        let mut between = String::new();
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    let name = name.to_string();
                    match between.as_str() {
                        "::" | "$" | "::$" => path.push(name),
                        "." => {
                            let of_self = path == ["self"];
                            self.path(&std::mem::take(&mut path));
                            self.method(name, of_self);
                        }
                        _ => {
                            self.path(&path);
                            path = vec![name];
                        }
                    }
                    between.clear();
                }
                TokenTree::Punct(punct) => between.push(punct.as_char()),
                TokenTree::Group(group) => {
                    self.path(&std::mem::take(&mut path));
                    between.clear();
                    self.tokens(group.stream());
                }
                TokenTree::Literal(_) => {
                    self.path(&std::mem::take(&mut path));
                    between.clear();
                }
            }
        }
        self.path(&path);
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        self.of_type = self.of.self_type(self.path, &block.self_ty);
        visit::visit_item_impl(self, block);
        self.of_type = None;
    }

    /// `pub(crate)` uses nothing.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.path(&words(path));
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let of_self = matches!(&*call.receiver, Expr::Path(receiver) if receiver.path.is_ident("self"));
        self.method(call.method.to_string(), of_self);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = words(&call.path);
        self.path(&name);
        // Macros are in scope by the order of the text, too.
        let defines = |module: &&Module| {
            let [name] = &name[..] else { return false };
            let named = |item: &syn::ItemMacro| item.ident.as_ref().is_some_and(|ident| ident == name);
            module.code.iter().any(|item| matches!(item, Item::Macro(item) if named(item)))
        };
        if let Some(module) = self.of.modules.values().find(defines) {
            self.found.insert(module.file.clone(), name.join("::"));
        }
        self.tokens(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(files: &[(&str, &str)]) -> Crate {
        Crate::load("src/lib.rs", &|path| {
            files.iter().find(|(name, _)| format!("src/{name}") == path).map(|(_, text)| (*text).to_owned())
        })
    }

    fn uses(of: &Crate, file: &str) -> Vec<String> {
        of.dependencies()[&format!("src/{file}")].keys().map(|file| file.replace("src/", "")).collect()
    }

    #[test]
    fn a_variable_named_like_a_module_is_no_use_of_it() {
        let of = load(&[
            ("lib.rs", "mod text; pub struct Table; fn f(text: u8) -> u8 { text }"),
            ("text.rs", "use crate::Table; pub fn write(_: Table) {}"),
        ]);
        assert_eq!(uses(&of, "lib.rs"), [""; 0]);
        assert_eq!(uses(&of, "text.rs"), ["lib.rs"]);
    }

    #[test]
    fn a_re_export_is_followed_to_the_definition() {
        let of = load(&[
            ("lib.rs", "mod a; pub(crate) mod b; pub use a::{One as Uno, c::*};"),
            ("a.rs", "use crate::b::{self, Two}; pub struct One; pub mod c; fn f() { b::g(Two) }"),
            (
                "a/c.rs",
                "//! use crate::b::Nothing;\nfn f() -> crate::Uno { vec![super::super::b::h()]; loop {} }",
            ),
            (
                "b/mod.rs",
                "pub struct Two; pub fn g() {} pub fn h() {} #[cfg(test)] mod tests { use crate::Uno; }",
            ),
        ]);
        assert_eq!(uses(&of, "a.rs"), ["b/mod.rs"]);
        assert_eq!(uses(&of, "a/c.rs"), ["a.rs", "b/mod.rs"]);
        assert!(
            uses(&of, "b/mod.rs").is_empty() && uses(&of, "lib.rs").is_empty() && of.circles().is_empty()
        );
    }

    #[test]
    fn methods_of_one_type_in_several_files_make_a_circle() {
        let engine = |call: &str| {
            load(&[
                ("lib.rs", "mod engine; mod task; struct Other;"),
                ("engine.rs", &format!("pub struct Engine; impl Engine {{ fn run(&self) {{ {call} }} }}")),
                (
                    "task.rs",
                    "use crate::engine::Engine; impl Engine { pub fn step(&self) {} fn run_on(&self) {} }",
                ),
            ])
        };
        let circle = BTreeSet::from([["src/engine.rs", "src/task.rs"].map(str::to_owned).into()]);
        for call in ["self.step()", "Self::step(self)", "let e = self; e.step()", "assert!(self.step())"] {
            assert_eq!(engine(call).circles(), circle, "{call}");
        }
        assert!(engine("self.run()").circles().is_empty());
    }
}
