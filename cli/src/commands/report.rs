//! `vef report`: a page about a trace, or the data behind it.

use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::{Bar, Busy};
use crate::report_args::{Format, Report as Arguments};
use mixer::Options;
use replay::Link;
use reports::report::{Report, read_simulation};
use reports::stats::Stats;
use reports::yardstick;
use sim_example::quantity::{Bandwidth, parse_time};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use vef_format::new_file::NewFile;

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
    let output = output(arguments)?;
    let tables = arguments.format == Format::Csv;
    let to_stdout = output.as_os_str() == "-";
    let inputs = [Some(&arguments.input), arguments.sim.as_ref(), arguments.against.as_ref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
    // What cannot be written is said before the work.
    if tables && to_stdout {
        return Err("-: tables are written to a directory, -o DIR".into());
    }
    let page = (!tables && !to_stdout).then_some(&output);
    let written: Vec<&Path> =
        [page, arguments.pdf.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
    output::can_all_be_written(&written, &inputs)?;
    for directory in [tables.then_some(&output), arguments.svg.as_ref()].into_iter().flatten() {
        can_be_directory(directory)?;
    }
    let chromium = arguments.pdf.as_ref().map(|_| chromium()).transpose()?;
    let simulated =
        arguments.sim.as_deref().map(|path| Ok::<_, Failure>((path, simulation(path)?))).transpose()?;

    let source = Source::of(&arguments.input)?;
    let (mut report, stats) = source.report(arguments)?;
    if let Some((path, simulated)) = simulated {
        report.add_simulation(simulated).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(other) = &arguments.against {
        let (other, _) = Source::of(other)?.report(arguments)?;
        report.compare(&other);
    }

    // Everything is made before anything is written.
    let mut files: Files = Vec::new();
    let mut directories = Vec::new();
    let mut add = |directory: &Path, suffix: &'static str, made: Vec<(String, Vec<u8>)>| {
        files.extend(made.into_iter().map(|(name, file)| (directory.join(format!("{name}.{suffix}")), file)));
        directories.push((directory.to_path_buf(), suffix));
    };
    if let Some(directory) = &arguments.svg {
        add(directory, "svg", pictures(&report)?);
    }
    let all_tables = || stats.tables().into_iter().chain(report.tables());
    let text = match arguments.format {
        Format::Html => Some(report.to_html()?),
        Format::Json => Some(report.to_json()),
        Format::Md => Some(report.to_markdown(ROWS)),
        Format::Csv => {
            let made = all_tables().map(|table| (table.name.to_owned(), table.to_csv().into_bytes()));
            add(&output, "csv", made.collect());
            None
        }
    };
    if let (Some(pdf), Some(chromium)) = (&arguments.pdf, chromium) {
        files.push((pdf.clone(), print(&report, &chromium, pdf)?));
    }
    let printed = match text {
        Some(text) if !to_stdout => {
            files.push((output, text.into_bytes()));
            None
        }
        text => text,
    };
    for (directory, _) in &directories {
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    output::can_all_be_written(&files.iter().map(|(path, _)| path.as_path()).collect::<Vec<_>>(), &inputs)?;
    output::files(&files)?;
    directories.iter().try_for_each(|(directory, suffix)| name_others(directory, suffix, &files))?;
    printed.map_or(Ok(()), |text| output::result(text.trim_end()))
}

/// Where the report is written.
fn output(arguments: &Arguments) -> Result<PathBuf, Failure> {
    match (&arguments.output, arguments.format) {
        (Some(output), _) => Ok(output.clone()),
        (None, Format::Html) => Ok(PAGE.into()),
        (None, Format::Json | Format::Md) => Ok("-".into()),
        (None, Format::Csv) => Err("csv is a directory of tables: name one with -o DIR".into()),
    }
}

/// Files to write, with their contents.
type Files = Vec<(PathBuf, Vec<u8>)>;

/// Checks that there is a directory in which files can be made, or that it can be made.
fn can_be_directory(path: &Path) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| -> Failure { format!("{}: {error}", path.display()).into() };
    let there = path.ancestors().find(|part| fs::metadata(part).is_ok()).unwrap_or(Path::new("."));
    match fs::metadata(there).map_err(|error| failed(&error))?.is_dir() {
        true => NewFile::create(&there.join(PAGE)).map(drop).map_err(|error| failed(&error)),
        false => Err(failed(&"is not a directory")),
    }
}

/// Names files of a directory with that suffix that are not of this report.
fn name_others(directory: &Path, suffix: &str, files: &Files) -> Result<(), Failure> {
    let there = fs::read_dir(directory)?.flatten().map(|file| file.path());
    let is_other = |path: &PathBuf| {
        path.extension().is_some_and(|it| it == suffix) && files.iter().all(|(ours, _)| ours != path)
    };
    let mut others: Vec<PathBuf> = there.filter(is_other).collect();
    others.sort();
    for other in others {
        output::remark(format_args!(
            "warning: {}: was there before; it is not of this report",
            other.display()
        ));
    }
    Ok(())
}

fn simulation(path: &Path) -> Result<serde_json::Value, Failure> {
    let input = Input::of(path)?;
    let file = fs::File::open(&input.path).map_err(|error| format!("{}: {error}", path.display()))?;
    read_simulation(file).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// What a report is made of.
struct Source {
    trace: Input,
    /// Where a capture was mixed to.
    mixed: Option<TempDir>,
}

impl Source {
    /// A trace; a capture is mixed first.
    fn of(path: &Path) -> Result<Self, Failure> {
        if !path.is_dir() {
            return Ok(Self { trace: Input::of(path)?, mixed: None });
        }
        let directory = tempfile::tempdir()?;
        let trace = directory.path().join("trace.vefx");
        let busy = Busy::new("mixing");
        mixer::mix(path, &trace, &Options::default(), &mixer::Quiet)
            .map_err(|error| format!("{}: cannot be mixed: {error}", path.display()))?;
        drop(busy);
        Ok(Self { trace: Input::named(&trace, path), mixed: Some(directory) })
    }

    fn report(&self, arguments: &Arguments) -> Result<(Report, Stats), Failure> {
        let bandwidth: Bandwidth = arguments.bandwidth.parse()?;
        let link = Link::new(parse_time(&arguments.latency)?, bandwidth.bits_per_second())?;
        let link = (!arguments.no_replay).then_some(link);
        let (mut report, stats) = read(&self.trace, arguments.op_codes.as_deref(), arguments.jobs, link)?;
        if self.mixed.is_some() {
            report.head.kind = "capture";
            let files = fs::read_dir(self.trace.name())?.flatten().filter_map(|file| file.metadata().ok());
            report.head.file_bytes = files.map(|file| file.len()).sum::<u64>().into();
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
    report.add_simulation(serde_json::to_value(result)?)?;
    output::file(page, &report.to_html()?)
}

#[cfg(feature = "svg")]
fn pictures(report: &Report) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let pictures = reports::report::Pictures::of(report)?.0;
    Ok(pictures.into_iter().map(|(name, svg)| (name, svg.into_bytes())).collect())
}

#[cfg(not(feature = "svg"))]
fn pictures(_: &Report) -> Result<Vec<(String, Vec<u8>)>, Failure> {
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

/// The page as a browser prints it.
fn print(report: &Report, chromium: &Path, pdf: &Path) -> Result<Vec<u8>, Failure> {
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
    fs::read(&printed).map_err(|error| {
        format!("{}: {} has not printed the page: {error}", pdf.display(), chromium.display()).into()
    })
}
