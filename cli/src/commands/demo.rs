//! `vef demo`: runs a small capture of a real program through mix, check and sim, with explanations.
//!
//! The bundled capture was recorded from `examples/halo.c` under Open MPI. `--live` compiles and captures
//! that program first.

use crate::args::{Check, Convert, Demo, Mix, Run};
use crate::input::Input;
use crate::launch;
use crate::output::{self, Failure};
use crate::simulation_args::Sim;
use clap::Parser;
use sim_example::Report;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_format::units::{Bytes, Grouped};

/// The captured program.
const SOURCE: &str = include_str!("../../../examples/halo.c");

/// The bundled capture: 4 ranks, 12 steps, 256 points per side.
const CAPTURE: [(&str, &[u8]); 4] = [
    ("0.vefc", include_bytes!("../../demo/capture/0.vefc")),
    ("1.vefc", include_bytes!("../../demo/capture/1.vefc")),
    ("2.vefc", include_bytes!("../../demo/capture/2.vefc")),
    ("3.vefc", include_bytes!("../../demo/capture/3.vefc")),
];

/// The networks to compare: in the first, messages cross two links; in the second, neighbours share a link.
const NETWORKS: [&str; 2] = ["switch:4", "torus:4"];

/// Compiler wrappers of MPI.
const COMPILERS: [&str; 3] = ["mpicc", "mpicc.openmpi", "mpicc.mpich"];

pub fn execute(demo: &Demo) -> Result<(), Failure> {
    let directory = unused_directory()?;
    let shown = directory.display();
    output::result(format_args!(
        "A stencil code on 4 ranks, from its MPI calls to a simulated network. All files go to {shown}/.\n"
    ))?;
    let capture = directory.join("capture");
    match demo.live {
        true => live(&directory, &capture)?,
        false => bundled(&capture)?,
    }

    let trace = directory.join("halo.vefx");
    step(
        "Mix: which send met which receive? Absolute times become computing times and dependencies.",
        &format!("vef mix -i {} -o {}", capture.display(), trace.display()),
    )?;
    super::mix::execute(&parsed::<Mix>(&[
        "-i".as_ref(),
        capture.as_os_str(),
        "-o".as_ref(),
        trace.as_os_str(),
    ])?)?;
    let text = directory.join("halo.vef");
    output::result("")?;
    step(
        "Convert: a trace is a container, or text with a line for each record.",
        &format!("vef convert {} {}", trace.display(), text.display()),
    )?;
    super::convert::execute(&parsed::<Convert>(&[trace.as_os_str(), text.as_os_str()])?)?;
    excerpt(&text)?;

    step(
        "Check: does every record replay? The network here is a yardstick: latency + bytes / bandwidth.",
        &format!("vef check {}", trace.display()),
    )?;
    super::check::execute(&parsed::<Check>(&[trace.as_os_str()])?)?;

    let mut reports = Vec::new();
    output::result("")?;
    for topology in NETWORKS {
        step(
            "Simulate: the same messages on links that they must share, without the start-up in MPI_Init.",
            &format!("vef sim {} --from-init --topology {topology}", trace.display()),
        )?;
        let words = [trace.as_os_str(), "--from-init".as_ref(), "--topology".as_ref(), topology.as_ref()];
        let report = super::sim::simulated(&parsed::<Sim>(&words)?, &Input::of(&trace)?)?;
        output::result(report.to_text())?;
        reports.push(report);
    }
    output::result(differences(&reports))?;
    let page = directory.join("report.html");
    output::result("")?;
    step(
        "Look at it: a page with all of this in figures and tables, for any browser.",
        &format!("vef report {} -o {}", trace.display(), page.display()),
    )?;
    super::report::execute(&parsed(&[trace.as_os_str(), "-o".as_ref(), page.as_os_str()])?)?;
    output::result(format_args!(
        "\nNext: your own program. cargo build --release --workspace, then vef run -n 4 -o capture -- ./app, and the steps\n\
         above. Everything is in {shown}/."
    ))
}

/// Parses the arguments of a command.
fn parsed<T: clap::Args + clap::FromArgMatches>(words: &[&std::ffi::OsStr]) -> Result<T, Failure> {
    #[derive(Parser)]
    struct Words<T: clap::Args> {
        #[command(flatten)]
        inner: T,
    }
    let line = std::iter::once("vef".as_ref()).chain(words.iter().copied());
    Ok(Words::<T>::try_parse_from(line)?.inner)
}

fn step(what: &str, command: &str) -> Result<(), Failure> {
    output::result(format_args!("{what}\n  $ {command}"))
}

/// Writes the bundled capture to a directory.
fn bundled(capture: &Path) -> Result<(), Failure> {
    step(
        "Capture: each rank's calls, recorded by a preloaded library while the program ran. This one is bundled;",
        "vef run -n 4 -o capture -- ./halo        (`vef demo --live` runs it on this machine)",
    )?;
    fs::create_dir(capture)?;
    for (name, bytes) in CAPTURE {
        fs::write(capture.join(name), bytes)?;
    }
    output::result(format_args!(
        "  {} files, {}\n",
        CAPTURE.len(),
        Bytes(CAPTURE.iter().map(|(_, bytes)| bytes.len() as u64).sum())
    ))
}

/// Compiles and captures the program; falls back to the bundled capture without an MPI.
fn live(directory: &Path, capture: &Path) -> Result<(), Failure> {
    let Some(compiler) = COMPILERS.iter().find(|name| launch::which(Path::new(name)).is_some()) else {
        output::result("No MPI found (no mpicc in PATH; on Debian, scripts/deps installs one).")?;
        return bundled(capture);
    };
    let (source, program) = (directory.join("halo.c"), directory.join("halo"));
    fs::write(&source, SOURCE)?;
    step(
        "Compile the program.",
        &format!("{compiler} -O2 -o {} {} -lm", program.display(), source.display()),
    )?;
    let compiled =
        Command::new(compiler).arg("-O2").arg("-o").arg(&program).arg(&source).arg("-lm").output()?;
    if !compiled.status.success() {
        return Err(format!("{compiler}: {}", String::from_utf8_lossy(&compiled.stderr)).into());
    }
    // Open MPI refuses more ranks than cores.
    let ranks = std::thread::available_parallelism().map_or(1, usize::from).min(4) as u32;
    step(
        "Capture: each rank's calls, recorded by a library that is preloaded into the ranks only.",
        &format!("vef run -n {ranks} -o {} -- {}", capture.display(), program.display()),
    )?;
    let run = Run {
        ranks: Some(ranks),
        output: Some(capture.to_path_buf()),
        program: vec![program.into_os_string()],
        ..Run::default()
    };
    match super::run::capture(&run)?.program.success() {
        true => output::result(""),
        false => {
            output::result("The program did not run here (see above); on with the bundled capture.")?;
            // Remove an incomplete capture.
            let _ = fs::remove_dir_all(capture);
            bundled(capture)
        }
    }
}

/// Prints lines of the trace with messages, from the first one that a task waits for.
fn excerpt(trace: &Path) -> Result<(), Failure> {
    let text = fs::read_to_string(trace)?;
    output::result(
        "  Message records (id, source, destination, bytes, dependency, computing time in ticks, id of the dependency):",
    )?;
    let message = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        let is_message = line.starts_with(|first: char| first.is_ascii_digit()) && fields.len() == 7;
        is_message && fields[1] != fields[2]
    };
    for line in text.lines().filter(|line| message(line)).take(4) {
        output::result(format_args!("    {line}"))?;
    }
    output::result("")
}

/// Compares the results of two networks.
fn differences(reports: &[Report]) -> String {
    type Measure = (&'static str, fn(&Report) -> String);
    let measures: [Measure; 7] = [
        ("run time", |report| report.runtime_ps.to_string()),
        ("latency of a message: mean", |report| report.latency_ps.mean.to_string()),
        ("  nine in ten", |report| report.latency_ps.p90.to_string()),
        ("  longest", |report| report.latency_ps.max.to_string()),
        ("links that were used", |report| Grouped(u64::from(report.links.used)).to_string()),
        ("busiest of them", |report| {
            report.links.busiest.first().map_or_else(String::new, |busiest| busiest.link.clone())
        }),
        ("  belonged to messages for", |report| {
            report.links.busiest.first().map_or_else(String::new, |busiest| busiest.busy_ps.to_string())
        }),
    ];
    let row = |name: &str, of: &dyn Fn(&Report) -> String| {
        let cells: String = reports.iter().map(|report| format!("{:>18}", of(report))).collect();
        format!("  {name:<28}{cells}\n")
    };
    let head = row("", &|report| report.network.topology.clone());
    let rows: String = measures.iter().map(|(name, of)| row(name, of)).collect();
    format!("What differs:\n{head}{}", rows.trim_end())
}

/// Creates `vef-demo`, or the first of `vef-demo.2`, … that does not exist.
fn unused_directory() -> Result<PathBuf, Failure> {
    let directory = super::run::unused("vef-demo".into());
    fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(directory)
}
