//! The stubs and trampolines for AArch64, on any machine: their instructions are taken from the sources, assembled, linked with a
//! program in assembly that calls them, and run by an emulator.

use skipping::{have, skipped};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program without libraries that exits with the number of the first check that fails, else with 0.
const PROGRAM: &str = r#"
.section .tbss,"awT",@nobits
    .balign 16
vef_thread: .zero 96
.bss
    .balign 16
NEXT: .zero 8 * 32
thread_data: .zero 256
firsts: .zero 8
.text
.macro check number
    b.eq 9f
    mov x0, \number
    b leave
9:
.endm
.macro call name
    mov x0, 1
    mov x1, 2
    mov x2, 3
    mov x3, 4
    mov x4, 5
    mov x5, 6
    mov x6, 7
    mov x7, 8
    mov x8, 9
    fmov d0, 2.0
    str x8, [sp]
    bl \name
.endm
.globl _start
_start:
    adrp x20, thread_data
    add x20, x20, :lo12:thread_data
    msr tpidr_el0, x20
    mov x8, 0x77
    str x8, [x20, 16]
    sub sp, sp, 16
    mov x21, sp
    // With the first destination, then with the one that it sets.
    adr x9, first
    adrp x8, NEXT + 8 * 17
    str x9, [x8, :lo12:NEXT + 8 * 17]
    call stub
    cmp x0, 42
    check 1
    call stub
    cmp x0, 42
    check 2
    adrp x8, firsts
    ldr x8, [x8, :lo12:firsts]
    cmp x8, 1
    check 3
    mov x8, sp
    cmp x8, x21
    check 4
    call optional_stub
    cmp x0, 42
    check 5
    // The resolver of an optional stub returns the stub or null.
    adr x22, optional_stub
    ldr w8, [x22, 4]
    add x23, x22, x8
    mov w24, 1
    blr x23
    cmp x0, x22
    check 6
    mov w24, 0
    blr x23
    cmp x0, 0
    check 7
    bl thread
    add x8, x20, 16
    cmp x9, x8
    check 8
    adr x0, add_one
    mov x1, 30
    bl call_catching
    cmp x0, 31
    check 9
    mov x0, 0
leave:
    mov x8, 93
    svc 0
add_one:
    add x0, x0, 1
    ret
resolve:
    cmp w24, 0
    csel x0, x1, xzr, ne
    ret
// The first destination: sets another one.
first:
    adrp x8, firsts
    ldr x9, [x8, :lo12:firsts]
    add x9, x9, 1
    str x9, [x8, :lo12:firsts]
    adr x9, trampoline
    adrp x8, NEXT + 8 * 17
    str x9, [x8, :lo12:NEXT + 8 * 17]
    b trampoline
// Gets the number, the frame and the lane.
entered:
    cmp w0, 17
    check 21
    cmp x2, 0x77
    check 22
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    ldr x8, [x1, 8 * \n]
    cmp x8, \n + 1
    check 23
    .endr
    ldr x8, [x1, 8 * 10]
    cmp x8, 9
    check 24
    fmov d1, 2.0
    fcmp d0, d1
    check 25
    mov x0, 42
    ret
personality:
    ret
"#;

/// The name that a line defines: of a macro or a function.
fn defined(line: &str) -> Option<String> {
    let rest = line.split("macro_rules! ").nth(1).or(line.split("fn ").nth(1))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (end > 0).then(|| rest[..end].to_owned())
}

/// The instructions of a source file that are for AArch64 only, with operands in braces: those of a string, or those of a block or
/// function. With the name of the macro or function that they are in.
fn items(source: &str) -> Vec<(String, Vec<String>)> {
    let mut lines = source.lines();
    let mut items = Vec::new();
    let mut name = "file".to_owned();
    while let Some(line) = lines.next() {
        name = defined(line).unwrap_or(name);
        let Some(indent) = line.strip_suffix("#[cfg(target_arch = \"aarch64\")]") else { continue };
        let mut code = Vec::new();
        let mut keep = |text: &str| code.push(text.trim_matches([',', '"']).to_owned());
        let first = lines.next().unwrap_or_default().trim();
        if first.starts_with('"') {
            keep(first);
            let mut last = first;
            while !last.ends_with("\",") {
                last = lines.next().unwrap_or("\",").trim();
                keep(last);
            }
        } else if !first.ends_with(';') {
            let inner = lines.by_ref().take_while(|line| line.strip_prefix(indent) != Some("}"));
            inner.map(str::trim).filter(|text| text.starts_with('"')).for_each(&mut keep);
        }
        items.push((name.clone(), code));
    }
    items.retain(|(_, code)| !code.is_empty());
    items
}

/// The program with the items of all sources.
fn program() -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut text = PROGRAM.to_owned();
    let mut names = Vec::new();
    for file in ["machine.rs", "entry.rs", "chain/catch.rs"] {
        let source = std::fs::read_to_string(sources.join(file)).expect("a source");
        for (name, code) in items(&source) {
            let operands = [
                ("next", "NEXT"),
                ("number", "17"),
                ("function", "entered"),
                ("resolve", "resolve"),
                ("personality", "personality"),
                ("early", "resolve"),
                ("place", "x9"),
                ("thread", "x8"),
            ];
            let code = operands.iter().fold(code.join("\n"), |code, (operand, value)| {
                code.replace(&format!("{{{operand}}}"), value)
            });
            assert!(!code.contains('{'), "an operand without a value: {code}");
            let frame =
                if code.contains(".cfi_startproc") { ["", ""] } else { [".cfi_startproc", ".cfi_endproc"] };
            write!(text, "\n{name}:\n{}\n{code}\nret\n{}\n", frame[0], frame[1]).expect("a string");
            names.push(name);
        }
    }
    for expected in ["stub", "optional_stub", "trampoline", "thread", "call_catching"] {
        assert!(names.iter().any(|name| name == expected), "{expected} is not among {names:?}");
    }
    text
}

fn run(command: &mut Command) -> Option<i32> {
    let ended = command.output().expect("starts");
    let code = ended.status.code();
    assert!(ended.stderr.is_empty(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
    code
}

#[test]
fn stubs_and_trampolines_for_aarch64_pass_arguments_on() {
    let (assembler, linker, emulator) = ("aarch64-linux-gnu-as", "aarch64-linux-gnu-ld", "qemu-aarch64");
    if !have(assembler) || !have(linker) {
        return skipped(format_args!("no {assembler} (scripts/deps)"));
    }
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| -> PathBuf { work.path().join(name) };
    std::fs::write(path("program.s"), program()).expect("a file");
    assert_eq!(run(Command::new(assembler).arg("-o").arg(path("program.o")).arg(path("program.s"))), Some(0));
    assert_eq!(run(Command::new(linker).arg("-o").arg(path("program")).arg(path("program.o"))), Some(0));
    if !have(emulator) {
        return skipped(format_args!("assembled, but no {emulator} (scripts/deps)"));
    }
    assert_eq!(run(Command::new(emulator).arg(path("program"))), Some(0), "the number of the failed check");
}
