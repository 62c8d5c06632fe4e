//! A test that lacks something says so through `tests/skipping`: in test code, whoever turns back because a file, a program or a
//! variable is missing calls one of its functions first. Otherwise the test would pass empty, and nobody would notice.

use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Block, Expr, Item, Stmt};
use vef_tests::source::{self, attributes, for_tests};

/// What tells whether something is there, besides the functions of `tests/skipping`.
const ASKS: &[&str] = &[".exists", ".is_dir", ".is_file", ".try_exists", "have", "var", "var_os"];

/// Functions that ask and test all the same: the environment says how often, to which process of several this one belongs, or that
/// a generated file is to be written.
const FREE: &[(&str, &str)] = &[
    ("mixer/tests/job.rs", "one_process"),
    ("mixer/tests/memory.rs", "the_mix"),
    ("replay-ffi/tests/header.rs", "compare"),
    // It has no traces unless the environment names some: to be given one of the repository's.
    ("replay/tests/parallel.rs", "threads_end_when_one_engine_does_on_real_traces"),
    ("tests/skipping/src/lib.rs", "have"),
    ("tests/skipping/src/lib.rs", "skipped"),
    ("tests/src/lib.rs", "Mpi::every"),
    ("tests/src/lib.rs", "Mpi::with"),
    ("tests/src/lib.rs", "are_built"),
    ("tests/tests/abi.rs", "the_header_for_tools_is_the_table"),
    ("tests/tests/calls.rs", "the_page_of_all_calls_is_up_to_date"),
    ("tests/tests/hostile.rs", "no_message_is_lost_and_no_program_behaves_differently"),
    ("tests/tests/mpirun.rs", "compare"),
    ("tests/tests/random.rs", "the_trace_holds_the_plan"),
    ("tests/tests/threads.rs", "number"),
];

/// A function of test code.
struct Function {
    name: String,
    is_test: bool,
    body: Block,
}

/// The functions of a file, of test code only.
struct Functions {
    in_tests: bool,
    of_type: String,
    found: Vec<Function>,
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item(&mut self, item: &'ast Item) {
        let before = self.in_tests;
        self.in_tests |= for_tests(attributes(item));
        visit::visit_item(self, item);
        self.in_tests = before;
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if self.in_tests {
            self.found.push(Function {
                name: function.sig.ident.to_string(),
                is_test: function.attrs.iter().any(|attribute| attribute.path().is_ident("test")),
                body: (*function.block).clone(),
            });
        }
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        self.of_type = match &*block.self_ty {
            syn::Type::Path(of) => of.path.segments.last().map(|word| word.ident.to_string()),
            _ => None,
        }
        .unwrap_or_default();
        visit::visit_item_impl(self, block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if self.in_tests {
            self.found.push(Function {
                name: format!("{}::{}", self.of_type, function.sig.ident),
                is_test: false,
                body: function.block.clone(),
            });
        }
    }
}

/// The names of all functions and methods that are called, and whether the function is left.
#[derive(Default)]
struct Calls {
    names: BTreeSet<String>,
    leaves: bool,
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(path) = &*call.func {
            let words: Vec<String> = path.path.segments.iter().map(|word| word.ident.to_string()).collect();
            let of_type = words.len() > 1 && words[words.len() - 2].starts_with(char::is_uppercase);
            self.names.insert(words[words.len() - 1 - usize::from(of_type)..].join("::"));
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.names.insert(format!(".{}", call.method));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_return(&mut self, leaving: &'ast syn::ExprReturn) {
        self.leaves = true;
        visit::visit_expr_return(self, leaving);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        let before = self.leaves;
        visit::visit_expr_closure(self, closure);
        self.leaves = before;
    }

    fn visit_item(&mut self, _: &'ast Item) {}
}

fn calls(visit: impl FnOnce(&mut Calls)) -> Calls {
    let mut calls = Calls::default();
    visit(&mut calls);
    calls
}

/// The places of a function where it turns back, or leaves something out, without a word.
struct Guards<'a> {
    announces: &'a dyn Fn(&str) -> bool,
    is_test: bool,
    found: bool,
}

impl Guards<'_> {
    /// `asked` decides whether what is in `then` happens, which ends the function if `leaves`.
    fn guard(&mut self, asked: &Calls, then: &Calls) {
        let announced = asked.names.union(&then.names).any(|name| (self.announces)(name));
        let asks = asked.names.iter().any(|name| ASKS.contains(&name.as_str()));
        self.found |= !announced && then.leaves && (asks || self.is_test);
    }
}

impl<'ast> Visit<'ast> for Guards<'_> {
    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        let asked = calls(|calls| calls.visit_expr(&branch.cond));
        self.guard(&asked, &calls(|calls| calls.visit_block(&branch.then_branch)));
        if let Some((_, otherwise)) = &branch.else_branch {
            self.guard(&asked, &calls(|calls| calls.visit_expr(otherwise)));
        }
        visit::visit_expr_if(self, branch);
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        let asked = calls(|calls| calls.visit_expr(&choice.expr));
        for arm in &choice.arms {
            self.guard(&asked, &calls(|calls| calls.visit_arm(arm)));
        }
        visit::visit_expr_match(self, choice);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Some(init) = &local.init
            && let Some((_, otherwise)) = &init.diverge
        {
            let asked = calls(|calls| calls.visit_expr(&init.expr));
            self.guard(&asked, &calls(|calls| calls.visit_expr(otherwise)));
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        let before = std::mem::replace(&mut self.is_test, false);
        visit::visit_expr_closure(self, closure);
        self.is_test = before;
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        if !matches!(statement, Stmt::Item(_)) {
            visit::visit_stmt(self, statement);
        }
    }
}

/// Whether what is called by this name in the file at `path` says what is missing.
fn known(announcing: &BTreeSet<(String, String)>, path: &str, name: &str) -> bool {
    // The helpers of the tests beside, too.
    let known_in = |file: &str| announcing.contains(&(file.to_owned(), name.to_owned()));
    let folder = path.rfind('/').map_or("", |end| &path[..end]);
    let helpers = if folder == "tests/tests" { "tests/src/".to_owned() } else { format!("{folder}/common/") };
    ["skipped", "shared", "installed"].contains(&name)
        || known_in(path)
        || announcing.iter().any(|(file, of)| file.starts_with(&helpers) && of == name)
}

#[test]
fn tests_that_lack_something_say_so() {
    let mut functions = Vec::new();
    for source in source::all() {
        // Benchmarks and examples test nothing.
        if ["benches/", "examples/", "fuzz/"].iter().any(|folder| source.path.contains(folder)) {
            continue;
        }
        let mut of_file = Functions { in_tests: source.is_test(), of_type: String::new(), found: Vec::new() };
        of_file.visit_file(&source.file);
        functions.extend(of_file.found.into_iter().map(|function| (source.path.clone(), function)));
    }
    // By file and name.
    let mut announcing: BTreeSet<(String, String)> = BTreeSet::new();
    loop {
        let before = announcing.len();
        for (path, function) in &functions {
            let called = calls(|calls| calls.visit_block(&function.body));
            if called.names.iter().any(|name| known(&announcing, path, name)) {
                announcing.insert((path.clone(), function.name.clone()));
            }
        }
        if announcing.len() == before {
            break;
        }
    }
    let mut faults = BTreeSet::new();
    for (path, function) in &functions {
        let announces = |name: &str| known(&announcing, path, name);
        let mut guards = Guards { announces: &announces, is_test: function.is_test, found: false };
        guards.visit_block(&function.body);
        let called = calls(|calls| calls.visit_block(&function.body)).names;
        let reads = called.iter().any(|name| ["have", "var", "var_os"].contains(&name.as_str()));
        if guards.found || reads && !called.iter().any(|name| announces(name)) {
            faults.insert((path.as_str(), function.name.as_str()));
        }
    }
    let free = BTreeSet::from_iter(FREE.iter().copied());
    let (silent, gone): (Vec<_>, Vec<_>) =
        (faults.difference(&free).collect(), free.difference(&faults).collect());
    assert!(
        silent.is_empty(),
        "these turn back, or leave something out, and do not say so (tests/skipping): {silent:#?}"
    );
    assert!(gone.is_empty(), "remove from FREE: {gone:#?}");
}

#[test]
fn a_silent_return_is_seen() {
    let found = |code: &str| {
        let file: syn::ItemFn = syn::parse_str(&format!("fn test() {{ {code} }}")).expect("Rust");
        let mut guards = Guards { announces: &|name| name == "skipped", is_test: true, found: false };
        guards.visit_block(&file.block);
        guards.found
    };
    for silent in [
        "let Ok(text) = read(path) else { return };",
        "let text = match read(path) { Ok(text) => text, Err(_) => return };",
        "for path in paths { if !path.exists() { return } }",
        "let all = || { if !have(NPM) { return 0 } 1 };",
    ] {
        assert!(found(silent), "{silent}");
    }
    for fine in [
        "let Ok(text) = read(path) else { skipped(path); return };",
        "let text = match read(path) { Ok(text) => text, Err(_) => return skipped(path) };",
        "let Ok(text) = read(path) else { panic!() };",
        "let half = |n| { if n == 0 { return 1 } n / 2 };",
    ] {
        assert!(!found(fine), "{fine}");
    }
}
