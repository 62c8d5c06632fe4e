//! What tools between a program and MPI cost, a call: 0, 1, 10, 100 and 1000 that hand everything on, and the built-in ones.
//!
//!     cargo bench -p vef-benches --bench chain [-- ROUNDS]
//!
//! The least of several runs each, because other load only adds. Needs an MPI with its C compiler (`scripts/deps`).

#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::{Path, PathBuf};
use std::process::Command;
use vef_benches::preload::{MPIS, build_library, root};

fn main() {
    let rounds = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(5);
    let library = build_library();
    let work = tempfile::tempdir().expect("a directory");
    for (compiler, launcher) in MPIS {
        let build = |name: &str, source: &str, options: &[&str]| {
            let output = work.path().join(format!("{name}.{compiler}.so"));
            let mut command = Command::new(compiler);
            command
                .current_dir(root())
                .args(["-O2", "-Iinterpose/include"])
                .args(options)
                .arg("-o")
                .arg(&output);
            command.arg(source).status().is_ok_and(|status| status.success()).then_some(output)
        };
        let tool = ["-shared", "-fPIC"];
        let Some(program) = build("micro", "benches/c/micro.c", &[]) else {
            println!("{compiler}: not here");
            continue;
        };
        let typed = build("pass", "benches/c/pass.c", &tool).expect("the tool compiles");
        let any = build("any", "benches/c/pass.c", &[tool[0], tool[1], "-DANY"]).expect("the tool compiles");
        let bench = Bench { launcher, program, library: &library, work: work.path(), rounds };
        let bare = bench.least("local", 10_000_000, None);
        println!("{launcher} MPI_Comm_rank: {bare:.1} ns without the library");
        let none = bench.least("local", 10_000_000, Some(String::new()));
        println!("{:>6} tools {:+9.1} ns a call", 0, none - bare);
        for (kind, path) in [("typed", &typed), ("any", &any)] {
            for count in [1usize, 10, 100, 1000] {
                let names = vec![path.to_str().expect("a path"); count].join(":");
                let taken = bench.least("local", 5_000_000 / count, Some(names)) - bare;
                println!(
                    "{count:>6} tools {taken:+9.1} ns a call ({kind}; {:.1} each)",
                    taken / count as f64
                );
            }
        }
        let bare = bench.least("self", 300_000, None);
        println!("{launcher} Irecv, Isend, Waitall: {bare:.1} ns without the library");
        for tool in ["profile", "text", "capture"] {
            let taken = bench.least("self", 300_000, Some(tool.to_owned())) - bare;
            println!("{tool:>12} {taken:+9.1} ns a call");
        }
    }
}

struct Bench<'a> {
    launcher: &'a str,
    program: PathBuf,
    library: &'a Path,
    work: &'a Path,
    rounds: usize,
}

impl Bench<'_> {
    /// Nanoseconds a call, the least of all rounds. `tools`: `None`: without the library; none named: it does not record either.
    fn least(&self, mode: &str, iterations: usize, tools: Option<String>) -> f64 {
        let once = || {
            let out = self.work.join("out");
            let mut command = Command::new(self.launcher);
            command
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .args(["-n", "1"]);
            if let Some(tools) = &tools {
                command.args(["env", &format!("LD_PRELOAD={}", self.library.display())]);
                command.arg(format!("VEF_DIR={}", out.display())).arg(format!("VEF_TOOLS={tools}"));
                command.arg(format!("VEF_TRACE={}", u8::from(!tools.is_empty())));
            }
            let output = command.arg(&self.program).args([mode, &iterations.to_string()]).output();
            let output = output.expect("the launcher");
            let _ = std::fs::remove_dir_all(&out);
            let text = String::from_utf8_lossy(&output.stdout);
            text.trim()
                .parse::<f64>()
                .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
        };
        (0..self.rounds).map(|_| once()).fold(f64::INFINITY, f64::min)
    }
}
