//! `vef report`: a page about a trace, or the data behind it.

use crate::groups::{CapturedTime, OpCodesFile, Threads, Yardstick};
use crate::input::Input;
use crate::output::{self, Failure, Written, WrittenDirectory};
use crate::progress::Bar;
use crate::session;
use crate::simulation_args::Sim;
use replay::{Extent, Link};
use reports::report::{Report, Simulations, read_simulations};
use reports::stats::Stats;
use reports::yardstick;
use results::simulation::Simulation;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use vef_format::new_directory::TemporaryDirectory;
use vef_format::new_file::NewFile;
use vef_format::operation::OpCodes;

/// Where the page is written unless something else is said.
const PAGE: &str = "report.html";
/// What Chromium is called here and there.
const CHROMIUM: [&str; 5] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/// How long it may take to print a page.
const PRINTING: Duration = Duration::from_secs(120);
/// Rows of a table in Markdown.
const ROWS: usize = 20;

/// Write a page that shows what a trace holds and how it runs
#[derive(clap::Args)]
#[command(after_help = "\
The page is one file that needs no network. Its times are those of a replay on a yardstick network, unless --no-replay;
docs/reports.md tells how each number is made, and lists the keys of --format json.

Examples:
  vef report app.vefx -o app.html
  vef sim app.vefx --topology torus:4x4x4 --links --json > sim.json; vef report app.vefx --sim sim.json -o app.html
  vef report app.vefx --against before.vefx -o compared.html
  vef report app.vefx --svg figures --format csv -o tables")]
pub struct Arguments {
    /// A trace, or the directory of a capture; - is the standard input
    #[arg(value_name = "TRACE|CAPTURE", value_parser = Input::argument)]
    pub input: PathBuf,
    /// File to write, or directory for `--format csv`; - is the standard output [default: report.html; - for json and md]
    #[arg(short, long, value_name = "FILE", value_parser = Written::any())]
    pub output: Option<Written>,
    /// What to write [default: json or md if FILE ends so, else html]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// The result of a simulation of this trace: the file of vef sim --json, best with --links, or that of a sweep
    #[arg(long, value_name = "RESULT.json", value_parser = Input::argument)]
    pub sim: Option<PathBuf>,
    /// Compare with another trace or capture
    #[arg(long, value_name = "OTHER", value_parser = Input::argument)]
    pub against: Option<PathBuf>,
    /// Also write each figure as an SVG file into a directory
    #[arg(long, value_name = "DIR", value_parser = WrittenDirectory::of("--svg names a directory, which gets a file for each figure"))]
    pub svg: Option<WrittenDirectory>,
    /// Also print the page to a PDF file, by the Chromium that is installed (or that $CHROMIUM names)
    #[arg(long, value_name = "FILE", value_parser = Written::kind(&["pdf"], "--pdf writes a PDF file; name it so"))]
    pub pdf: Option<Written>,
    /// Leave out what takes a replay: everything over time, what ranks wait for, efficiency
    #[arg(long, conflicts_with_all = ["latency", "bandwidth"])]
    pub no_replay: bool,
    #[command(flatten)]
    pub yardstick: Yardstick,
    #[command(flatten)]
    pub captured_time: CapturedTime,
    #[command(flatten)]
    pub codes: OpCodesFile,
    #[command(flatten)]
    pub threads: Threads,
}

/// What a report is written as.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page for a browser
    Html,
    /// The data of the page
    Json,
    /// A directory of tables
    Csv,
    /// Text for notes and reviews
    Md,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let format = format(arguments)?;
    let output = output(arguments, format)?;
    let tables = format == Format::Csv;
    let to_stdout = output.as_os_str() == "-";
    let inputs = [Some(&arguments.input), arguments.sim.as_ref(), arguments.against.as_ref()];
    let inputs: Vec<&Path> = inputs.into_iter().flatten().map(PathBuf::as_path).collect();
    // What cannot be written is said before the work.
    if tables && to_stdout {
        return Err("-: tables are written to a directory, -o DIR".into());
    }
    let page = (!tables && !to_stdout).then_some(&output);
    let written: Vec<&Path> =
        [page, arguments.pdf.as_deref()].into_iter().flatten().map(PathBuf::as_path).collect();
    output::can_all_be_written(&written, &inputs)?;
    for directory in [tables.then_some(&output), arguments.svg.as_deref()].into_iter().flatten() {
        can_be_directory(directory)?;
    }
    let chromium = arguments.pdf.as_ref().map(|_| chromium()).transpose()?;
    let simulated =
        arguments.sim.as_deref().map(|path| Ok::<_, Failure>((path, read_simulations(path)?))).transpose()?;

    let (mut report, stats) = report_on(&arguments.input, arguments)?;
    if let Some((path, simulated)) = simulated {
        let added = match simulated {
            Simulations::One(result) => report.add_simulation(*result),
            Simulations::Sweep(sweep) => report.add_sweep(sweep),
        };
        added.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    if let Some(other) = &arguments.against {
        let (other, _) = report_on(other, arguments)?;
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
    let text = match format {
        Format::Html => Some(report.to_page()?),
        Format::Json => Some(report.to_json()),
        Format::Md => Some(report.to_markdown(ROWS)),
        Format::Csv => {
            let made = all_tables().map(|table| (table.name.to_owned(), table.to_csv().into_bytes()));
            add(&output, "csv", made.collect());
            None
        }
    };
    if let (Some(pdf), Some(chromium)) = (&arguments.pdf, chromium) {
        files.push((pdf.to_path_buf(), print(&report, &chromium, pdf)?));
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
    let written = files
        .iter()
        .map(|(path, _)| path.as_path())
        .filter(|path| !directories.iter().any(|(directory, _)| path.parent() == Some(directory.as_path())));
    let all = written.chain(directories.iter().map(|(directory, _)| directory.as_path()));
    // A program that calls this knows what it asked for.
    for path in all.filter(|_| !session::is_embedded()) {
        output::remark(format_args!("{} written", path.display()));
    }
    printed.map_or(Ok(()), |text| output::result(text.trim_end()))
}

/// What is written: what was asked for, or what the name of the file says.
fn format(arguments: &Arguments) -> Result<Format, Failure> {
    let Some(output) = &arguments.output else { return Ok(arguments.format.unwrap_or(Format::Html)) };
    match (arguments.format, &*output.suffix()) {
        (Some(format), _) => {
            let (suffixes, what): (&[&str], _) = match format {
                Format::Html => (&["html", "htm"], "an HTML page"),
                Format::Json => (&["json"], "JSON"),
                Format::Md => (&["md"], "Markdown"),
                // A directory.
                Format::Csv => return Ok(format),
            };
            output.check_kind(suffixes, &format!("--format writes {what}: choose another name"))?;
            Ok(format)
        }
        (None, "json") => Ok(Format::Json),
        (None, "md") => Ok(Format::Md),
        (None, _) => {
            let advice = "a report is an HTML page; --pdf FILE prints it, --svg DIR writes its figures, --format csv -o DIR its tables";
            output.check_kind(&["html", "htm"], advice)?;
            Ok(Format::Html)
        }
    }
}

/// Where the report is written.
fn output(arguments: &Arguments, format: Format) -> Result<PathBuf, Failure> {
    match (&arguments.output, format) {
        (Some(output), _) => Ok(output.to_path_buf()),
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

/// The report on a trace; a capture is mixed first.
fn report_on(path: &Path, arguments: &Arguments) -> Result<(Report, Stats), Failure> {
    let trace = Input::of(path)?;
    let link = (!arguments.no_replay).then(|| arguments.yardstick.link()).transpose()?;
    let codes = arguments.codes.read(&trace)?;
    let extent = arguments.yardstick.of_run.extent(&arguments.captured_time, &trace, codes.as_ref())?;
    read(&trace, codes, &arguments.threads, Replay { link, extent })
}

/// How a trace is replayed for a report.
struct Replay {
    /// The yardstick network; none for no replay.
    link: Option<Link>,
    /// What of the run.
    extent: Extent,
}

/// Adds a trace up, and replays it if there is a link to do so on.
fn read(
    trace: &Input,
    codes: Option<OpCodes>,
    threads: &Threads,
    Replay { link, extent }: Replay,
) -> Result<(Report, Stats), Failure> {
    let stats = super::stats::read(trace, threads, codes.as_ref(), &extent)?;
    let mut report = super::stats::named(trace, Report::new(&trace.path, &stats));
    if let Some(link) = link {
        let bar = Bar::new("replaying");
        let mut progress = |messages| bar.count(messages, "messages");
        let replayed = yardstick::replay(&trace.path, &stats, codes.as_ref(), &link, &extent, &mut progress);
        report.data.replayed = Some(replayed.map_err(|error| {
            format!("{} (--no-replay leaves out what takes a replay)", trace.named_error(error))
        })?);
    }
    Ok((report, stats))
}

/// Writes the page about a trace and a simulation of it.
pub fn of_simulation(
    trace: &Input,
    codes: Option<OpCodes>,
    result: &Simulation,
    sim: &Sim,
    page: &Path,
) -> Result<(), Failure> {
    let extent = sim.of_run.extent(&sim.captured_time, trace, codes.as_ref())?;
    let replay = Replay { link: Some(replay::yardstick::default_link()), extent };
    let (mut report, _) = read(trace, codes, &Threads { jobs: None }, replay)?;
    report.add_simulation(result.clone())?;
    output::file(page, &report.to_page()?)
}

/// The figures of a report, as files.
#[cfg(feature = "svg")]
fn pictures(report: &Report) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let pictures = reports::report::pictures(&report.to_json())?;
    Ok(pictures.into_iter().map(|(name, svg)| (name, svg.into_bytes())).collect())
}

/// The picture of a simulated network.
#[cfg(feature = "svg")]
pub fn network_picture(result: Simulation) -> Result<String, Failure> {
    Ok(reports::report::network_picture(result)?)
}

#[cfg(not(feature = "svg"))]
fn pictures(_: &Report) -> Result<Vec<(String, Vec<u8>)>, Failure> {
    Err("--svg: this vef was built without it (cargo build --features svg)".into())
}

#[cfg(not(feature = "svg"))]
pub fn network_picture(_: Simulation) -> Result<String, Failure> {
    Err("--draw: this vef was built without it (cargo build --features svg)".into())
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
    let work = TemporaryDirectory::create("vef-report-")?;
    let page = work.path().join(PAGE);
    output::file(&page, &report.to_page()?)?;
    let printed = work.path().join("report.pdf");
    let mut command = Command::new(chromium);
    command.args(["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-pdf-header-footer"]);
    // Chromium has no sandbox for root; the page is our own and its policy keeps it from the network.
    if rustix::process::geteuid().is_root() {
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
