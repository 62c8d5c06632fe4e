//! `vef report`: a page about a trace, or the data behind it.

use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::{Bar, Busy};
use crate::report_args::{Format, Report as Arguments};
use mixer::Options;
use replay::Link;
use reports::report::{Report, Shown, read_simulation};
use reports::stats::Stats;
use reports::yardstick;
use sim_example::quantity::{Bandwidth, parse_time};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Where the page is written unless something else is said.
const PAGE: &str = "report.html";
/// What Chromium is called here and there.
const CHROMIUM: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// How long it may take to print a page.
const PRINTING: Duration = Duration::from_secs(120);
/// Rows of a table in Markdown.
const ROWS: usize = 20;

pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let output = output(arguments);
    let tables = matches!(arguments.format, Format::Csv | Format::Parquet);
    let to_stdout = output.as_os_str() == "-";
    let inputs =
        || [Some(&arguments.input), arguments.sim.as_ref(), arguments.against.as_ref()].into_iter().flatten();
    // What cannot be written is said before the work.
    match (tables, to_stdout) {
        (true, true) => return Err("-: csv and parquet are written to a directory, -o DIR".into()),
        (true, false) => directory(&output)?,
        (false, true) => {}
        (false, false) => output::can_be_written(&output)?,
    }
    for file in [Some(&output), arguments.pdf.as_ref()].into_iter().flatten().filter(|file| !file.is_dir()) {
        output::is_no_input(file, inputs().map(PathBuf::as_path))?;
    }
    arguments.svg.as_deref().map(directory).transpose()?;
    arguments.pdf.as_deref().map(output::can_be_written).transpose()?;
    let chromium = arguments.pdf.as_ref().map(|_| chromium()).transpose()?;
    let simulated = arguments.sim.as_deref().map(simulation).transpose()?;

    let source = Source::of(&arguments.input)?;
    let (mut report, stats) = source.report(arguments)?;
    if let Some(simulated) = simulated {
        report.add_simulation(simulated);
    }
    if let Some(other) = &arguments.against {
        let (other, _) = Source::of(other)?.report(arguments)?;
        report.compare(&other);
    }

    match arguments.format {
        Format::Html => write(&output, &report.to_html()?)?,
        Format::Json => write(&output, &report.to_json())?,
        Format::Md => write(&output, &report.to_markdown(&Shown { top: ROWS, bars: false }))?,
        Format::Csv => {
            for table in stats.tables().iter().chain(&report.tables()) {
                output::file(&output.join(format!("{}.csv", table.name)), &table.to_csv())?;
            }
        }
        Format::Parquet => {
            for table in stats.tables().iter().chain(&report.tables()) {
                output::bytes(&output.join(format!("{}.parquet", table.name)), &table.to_parquet()?)?;
            }
        }
    }
    if let Some(directory) = &arguments.svg {
        pictures(&report, directory)?;
    }
    if let (Some(pdf), Some(chromium)) = (&arguments.pdf, chromium) {
        print(&report, &chromium, pdf)?;
    }
    Ok(())
}

fn output(arguments: &Arguments) -> PathBuf {
    let default = if arguments.format == Format::Html { PAGE } else { "-" };
    match (&arguments.output, arguments.format) {
        (None, Format::Csv | Format::Parquet) => ".".into(),
        (output, _) => output.clone().unwrap_or_else(|| default.into()),
    }
}

/// Makes a directory, if it is not there.
fn directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => format!("{}: is not a directory", path.display()).into(),
        _ => format!("{}: {error}", path.display()).into(),
    })
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    match path.as_os_str() == "-" {
        true => output::result(text.trim_end()),
        false => output::file(path, text),
    }
}

fn simulation(path: &Path) -> Result<serde_json::Value, Failure> {
    let file = fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    read_simulation(file).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// What a report is made of.
struct Source {
    trace: Input,
    /// What the user calls it.
    name: PathBuf,
    /// Where a capture was mixed to.
    mixed: Option<TempDir>,
}

impl Source {
    /// A trace; a capture is mixed first.
    fn of(path: &Path) -> Result<Self, Failure> {
        if !path.is_dir() {
            return Ok(Self { trace: Input::of(path)?, name: path.to_path_buf(), mixed: None });
        }
        let directory = tempfile::tempdir()?;
        let trace = directory.path().join("trace.vefx");
        let busy = Busy::new("mixing");
        mixer::mix(path, &trace, &Options::default(), &mixer::Quiet)
            .map_err(|error| format!("{}: cannot be mixed: {error}", path.display()))?;
        drop(busy);
        Ok(Self { trace: Input::of(&trace)?, name: path.to_path_buf(), mixed: Some(directory) })
    }

    fn report(&self, arguments: &Arguments) -> Result<(Report, Stats), Failure> {
        let bandwidth: Bandwidth = arguments.bandwidth.parse()?;
        let link = Link::new(parse_time(&arguments.latency)?, bandwidth.bits_per_second())?;
        let link = (!arguments.no_replay).then_some(link);
        let (mut report, stats) = read(&self.trace, arguments.op_codes.as_deref(), arguments.jobs, link)?;
        report.head.file = self.name.display().to_string();
        if self.mixed.is_some() {
            report.head.kind = "capture";
        }
        Ok((report, stats))
    }
}

/// Adds a trace up, and replays it if there is a link to do so on.
fn read(
    trace: &Input,
    codes: Option<&Path>,
    jobs: Option<u16>,
    link: Option<Link>,
) -> Result<(Report, Stats), Failure> {
    let codes = super::check::op_codes(trace, codes)?;
    let stats = super::stats::read(trace, jobs, codes.as_ref())?;
    let mut report = super::stats::named(trace, Report::new(&trace.path, &stats));
    if let Some(link) = link {
        let bar = Bar::new("replaying");
        let mut progress = |messages| bar.count(messages, "messages");
        let replayed = yardstick::replay(&trace.path, &stats, codes.as_ref(), &link, &mut progress);
        report.replayed = Some(replayed.map_err(|error| {
            format!("{} (--no-replay leaves out what takes a replay)", trace.named_error(error))
        })?);
    }
    Ok((report, stats))
}

/// Writes the page about a trace and a simulation of it.
pub fn of_simulation(
    trace: &Input,
    codes: Option<&Path>,
    result: &impl serde::Serialize,
    page: &Path,
) -> Result<(), Failure> {
    let (mut report, _) = read(trace, codes, None, Some(replay::yardstick::default_link()))?;
    report.add_simulation(serde_json::to_value(result)?);
    write(page, &report.to_html()?)
}

#[cfg(feature = "svg")]
fn pictures(report: &Report, directory: &Path) -> Result<(), Failure> {
    for (name, svg) in reports::report::Pictures::of(report)?.0 {
        write(&directory.join(format!("{name}.svg")), &svg)?;
    }
    Ok(())
}

#[cfg(not(feature = "svg"))]
fn pictures(_: &Report, _: &Path) -> Result<(), Failure> {
    Err("--svg: this vef was built without it (cargo build --features svg)".into())
}

/// The Chromium of this machine.
fn chromium() -> Result<PathBuf, Failure> {
    if let Some(named) = std::env::var_os("CHROMIUM").filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .flat_map(|directory| CHROMIUM.map(|name| directory.join(name)))
        .find(|program| program.is_file());
    found.ok_or_else(|| "--pdf: there is no Chromium here; install chromium, or name one in $CHROMIUM".into())
}

/// Has a browser print the page.
fn print(report: &Report, chromium: &Path, pdf: &Path) -> Result<(), Failure> {
    let work = tempfile::tempdir()?;
    let page = work.path().join(PAGE);
    output::file(&page, &report.to_html()?)?;
    let printed = work.path().join("report.pdf");
    let mut command = Command::new(chromium);
    command.args(["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-pdf-header-footer"]);
    // Chromium has no sandbox for root; the page is our own and its policy keeps it from the network.
    // SAFETY: it only asks for a number.
    if unsafe { libc::geteuid() } == 0 {
        command.arg("--no-sandbox");
    }
    command.arg(format!("--user-data-dir={}", work.path().join("profile").display()));
    command.arg("--virtual-time-budget=60000");
    command.arg(format!("--print-to-pdf={}", printed.display()));
    command.arg(format!("file://{}#print", page.display()));
    let quiet = std::process::Stdio::null;
    let mut child = command
        .stdin(quiet())
        .stdout(quiet())
        .stderr(quiet())
        .spawn()
        .map_err(|error| format!("{}: {error}", chromium.display()))?;
    let began = Instant::now();
    while child.try_wait()?.is_none() {
        if began.elapsed() > PRINTING {
            child.kill()?;
            child.wait()?;
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let document = fs::read(&printed).map_err(|error| {
        format!("{}: {} has not printed the page: {error}", pdf.display(), chromium.display())
    })?;
    output::bytes(pdf, &document)
}
