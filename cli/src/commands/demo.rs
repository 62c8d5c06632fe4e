//! `vef demo`: runs a small capture of a real program through mix, check and sim, with explanations.
//!
//! The bundled capture was recorded from `examples/halo.c` under Open MPI. `--live` compiles and captures
//! that program first.

use super::{check, convert, mix, report, run, sim};
use crate::groups::parse;
use crate::input::Input;
use crate::launch;
use crate::output::{self, Failure};
use clap::Args;
use results::simulation::Simulation;
use results::table::{Cell, Column, Table, TextStyle};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_format::units::{Bytes, Count};

/// Run a bundled capture through mix, check and sim, with explanations
#[derive(clap::Args)]
pub struct Arguments {
    /// First capture a real program, if an MPI is installed
    #[arg(long)]
    pub live: bool,
}

/// The captured program.
const SOURCE: &str = include_str!("../../../examples/halo.c");

/// The bundled capture: 4 ranks, 12 steps, 256 points per side.
const CAPTURE: [(&str, &[u8]); 4] = [
    ("0.vefc", include_bytes!("../../demo/capture/0.vefc")),
    ("1.vefc", include_bytes!("../../demo/capture/1.vefc")),
    ("2.vefc", include_bytes!("../../demo/capture/2.vefc")),
    ("3.vefc", include_bytes!("../../demo/capture/3.vefc")),
];

/// The networks to compare: in the first, each node has a link of its own to all others; in the second, two nodes share one to the other
/// two.
const NETWORKS: [&str; 2] = ["switch:4", "fattree:2x2x1"];
/// Their bandwidth: so little that messages wait for each other.
const BANDWIDTH: &str = "200Mbit/s";

/// Compiler wrappers of MPI.
const COMPILERS: [&str; 3] = ["mpicc", "mpicc.openmpi", "mpicc.mpich"];

pub fn run(demo: &Arguments) -> Result<(), Failure> {
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

    let [container, text, page] = ["halo.vefx", "halo.vef", "report.html"].map(|name| directory.join(name));
    let trace = container.as_os_str();
    mix::run(&step(
        "Mix: which send met which receive? Absolute times become computing times and dependencies.",
        &["mix".as_ref(), capture.as_os_str(), "-o".as_ref(), trace],
    )?)?;
    output::result("")?;
    convert::run(&step(
        "Convert: a trace is a container, or text with a line for each record.",
        &["convert".as_ref(), trace, text.as_os_str()],
    )?)?;
    excerpt(&text)?;
    check::run(&step(
        "Check: does every record replay? The network here is a yardstick: latency + bytes / bandwidth.",
        &["check".as_ref(), trace],
    )?)?;
    let mut reports = Vec::new();
    output::result("")?;
    for topology in NETWORKS {
        let arguments = step(
            "Simulate: the same messages on slow links that they must share. The run begins at the end of MPI_Init.",
            &[
                "sim".as_ref(),
                trace,
                "--topology".as_ref(),
                topology.as_ref(),
                "--bandwidth".as_ref(),
                BANDWIDTH.as_ref(),
            ],
        )?;
        let report = sim::simulated(&arguments, &Input::of(&container)?, None)?;
        output::result(report.to_text())?;
        reports.push(report);
    }
    output::result(differences(&reports))?;
    output::result("")?;
    report::run(&step(
        "Look at it: a page with all of this in figures and tables, for any browser.",
        &["report".as_ref(), trace, "-o".as_ref(), page.as_os_str()],
    )?)?;
    output::result(format_args!(
        "\nNext: your own program. vef run -n 4 --mix app.vefx -- ./app (with --oversubscribe on fewer cores), vef report app.vefx,\n\
         and a table of networks: vef sim app.vefx --sweep bandwidth=1G,10G,100G. Everything is in {shown}/."
    ))
}

/// Shows a command, the first of `words`, and returns its arguments, the others.
fn step<T: Args>(what: &str, words: &[&OsStr]) -> Result<T, Failure> {
    show(what, &format!("vef {}", words.join(OsStr::new(" ")).display()))?;
    parse(&words[1..])
}

fn show(what: &str, command: &str) -> Result<(), Failure> {
    output::result(format_args!("{what}\n  $ {command}"))
}

/// Writes the bundled capture to a directory.
fn bundled(capture: &Path) -> Result<(), Failure> {
    show(
        "Capture: each rank's calls, recorded by a preloaded library while the program ran. This one is bundled;",
        "vef run -n 4 -o capture -- ./halo        (`vef demo --live` runs it on this machine)",
    )?;
    fs::create_dir(capture)?;
    for (name, bytes) in CAPTURE {
        fs::write(capture.join(name), bytes)?;
    }
    output::result(format_args!(
        "  {}, {}\n",
        Count(CAPTURE.len(), "file"),
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
    show(
        "Compile the program.",
        &format!("{compiler} -O2 -o {} {} -lm", program.display(), source.display()),
    )?;
    let compiled =
        Command::new(compiler).arg("-O2").arg("-o").arg(&program).arg(&source).arg("-lm").output()?;
    if !compiled.status.success() {
        return Err(format!("{compiler}: {}", String::from_utf8_lossy(&compiled.stderr)).into());
    }
    // Open MPI refuses more ranks than cores.
    let ranks = std::thread::available_parallelism().map_or(1, usize::from).min(4).to_string();
    let (ranks, capture_name) = (OsStr::new(&ranks), capture.as_os_str());
    let arguments = step(
        "Capture: each rank's calls, recorded by a library that is preloaded into the ranks only.",
        &["run", "-n"]
            .map(OsStr::new)
            .into_iter()
            .chain([ranks, "-o".as_ref(), capture_name, "--".as_ref(), program.as_os_str()])
            .collect::<Vec<_>>(),
    )?;
    match run::capture(&arguments)?.program.success() {
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
fn differences(runs: &[Simulation]) -> String {
    type Measure = (&'static str, fn(&Simulation) -> Cell);
    let measures: [Measure; 7] = [
        ("run time", |run| Cell::Time(run.runtime_ps.into())),
        ("latency of a message: mean", |run| Cell::Time(run.latency.mean_ps.into())),
        ("  nine in ten", |run| Cell::Time(run.latency.p90_ps.into())),
        ("  longest", |run| Cell::Time(run.latency.max_ps.into())),
        ("links that were used", |run| Cell::count(run.links.used)),
        ("busiest of them", |run| Cell::maybe(run.links.busiest.first(), |link| Cell::text(&link.link))),
        ("  belonged to messages for", |run| {
            Cell::maybe(run.links.busiest.first(), |link| Cell::Time(link.busy_ps.into()))
        }),
    ];
    let topology =
        |run: &Simulation| Column { head: run.network.topology.clone().into(), ..Column::new("", "") };
    let columns: Vec<Column> =
        [Column::new("measure", "")].into_iter().chain(runs.iter().map(topology)).collect();
    let mut table = Table::new("differences", "What differs", columns);
    for (name, of) in measures {
        table.row([Cell::text(name)].into_iter().chain(runs.iter().map(of)));
    }
    format!("What differs:\n{}", table.to_text(&TextStyle { indent: "  ", ..TextStyle::WHOLE }).trim_end())
}

/// Creates `vef-demo`, or the first of `vef-demo.2`, … that does not exist.
fn unused_directory() -> Result<PathBuf, Failure> {
    let directory = super::run::unused("vef-demo".into());
    fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(directory)
}
