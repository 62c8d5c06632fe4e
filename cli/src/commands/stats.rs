//! `vef stats`: statistics of a trace, read once, without a replay.

use crate::groups::{CapturedTime, OpCodesFile, Threads, Yardstick, table_of};
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use replay::Extent;
use reports::report::{Report, Section};
use reports::stats::Stats;
use reports::yardstick;
use results::table::TextStyle;
use std::path::PathBuf;
use vef_format::format::Format;
use vef_format::nearest::did_you_mean;
use vef_format::operation::OpCodes;

/// Show statistics of a trace: sizes, pairs, collectives, ranks, phases
#[derive(clap::Args)]
#[command(after_help = "\
The trace is read once and not replayed, and no figure depends on a network, but for --by wait and wait-pair, --csv wait-causes and \
wait-pairs: who waits for whom in a replay on a network of --latency + bytes / --bandwidth, in which nobody waits for a send (vef sim --waits \
--send-completion has these waits). docs/reports.md lists the keys of --json and the
columns of --csv, and which bytes each collective contributes and obtains: those of all members, without a root's block for itself.

Examples:
  vef stats app.vef
  vef stats app.vefx --by pair --top 50
  vef stats app.vefx --by wait-pair --latency 2us
  vef stats app.vefx --csv ranks > ranks.csv")]
pub struct Arguments {
    /// Trace, or the directory of a capture; - is standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// Show only this table
    #[arg(long, value_name = "WHAT", value_parser = table_of(Section::ALL.map(|(section, name)| (name, section))), conflicts_with_all = ["json", "csv"])]
    pub by: Option<Section>,
    /// Maximum number of rows per table
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["json", "csv"])]
    pub top: u32,
    #[command(flatten)]
    pub codes: OpCodesFile,
    #[command(flatten)]
    pub yardstick: Yardstick,
    #[command(flatten)]
    pub captured_time: CapturedTime,
    #[command(flatten)]
    pub threads: Threads,
    /// Print everything as JSON, as in a report
    #[arg(long)]
    pub json: bool,
    /// Print one complete table as CSV: ranks, pairs, sizes, distances, collectives, phases, calls, times, functions, function-ranks,
    /// files, file-ranks, wait-causes, wait-pairs
    #[arg(long, value_name = "TABLE", conflicts_with = "json")]
    pub csv: Option<String>,
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let trace = Input::of(&arguments.trace)?;
    let codes = arguments.codes.read(&trace)?;
    let extent = arguments.yardstick.of_run.extent(&arguments.captured_time, &trace, codes.as_ref())?;
    let stats = read(&trace, &arguments.threads, codes.as_ref(), &extent)?;
    let waits_table = |name: &str| ["wait-causes", "wait-pairs"].contains(&name);
    let replays =
        arguments.by.is_some_and(Section::is_replayed) || arguments.csv.as_deref().is_some_and(waits_table);
    let Yardstick { latency, bandwidth, .. } = arguments.yardstick;
    if !replays && (latency.is_some() || bandwidth.is_some()) {
        return Err("--latency, --bandwidth: no effect without --by wait or wait-pair, --csv wait-causes or wait-pairs".into());
    }
    let replayed = match replays {
        true => {
            let bar = Bar::new("replaying");
            let link = arguments.yardstick.link()?;
            let mut progress = |messages| bar.count(messages, "messages");
            let replayed =
                yardstick::replay(&trace.path, &stats, codes.as_ref(), &link, &extent, &mut progress);
            Some(replayed.map_err(|error| trace.error(error))?)
        }
        false => None,
    };
    if let Some(wanted) = &arguments.csv {
        let mut tables = stats.tables();
        tables.extend(replayed.iter().flat_map(|replayed| replayed.waits.tables()));
        // --by names them in the singular.
        let is_wanted = |name: &str| name == wanted || name.strip_suffix('s') == Some(wanted);
        let Some(table) = tables.iter().find(|table| is_wanted(table.name)) else {
            let with_rows = tables.iter().filter(|table| !table.is_empty());
            let names: Vec<&str> = with_rows.map(|table| table.name).collect();
            let meant = did_you_mean(wanted, names.iter().copied());
            let names = names.join(", ");
            return Err(format!("--csv {wanted}: no such table; {meant}this trace has {names}").into());
        };
        if table.is_empty() {
            output::remark(format_args!("{}: has no rows in the table {wanted}", trace.shown()));
        }
        return output::result(table.to_csv().trim_end());
    }
    if arguments.json {
        return output::result(named(&trace, Report::new(&trace.path, &stats)).to_json());
    }
    // Without a section, the report has these warnings.
    if arguments.by.is_some() {
        trace.warn();
    }
    let top = arguments.top as usize;
    let style = TextStyle { top, bars: output::shows_bars(), more: "--top, --csv", indent: "  " };
    let mut report = named(&trace, Report::with_top(&trace.path, &stats, top));
    report.data.replayed = replayed;
    let text = report.to_text(arguments.by, &style);
    match arguments.by {
        Some(section) if text.is_empty() => {
            let why = match (&extent.part, Format::is_container(&trace.path)) {
                (Some(_), _) => ": what was captured is known of the whole run, not of a part",
                (None, Ok(false)) if section.is_of_containers() => {
                    ": a text trace has no room for that; vef mix -o FILE.vefx writes a container, which has it"
                }
                _ => "",
            };
            output::remark(format_args!("{}: has nothing by {}{why}", trace.shown(), section.name()));
            Ok(())
        }
        _ => output::result(text.trim_matches('\n')),
    }
}

/// A report under the name that the user gave to the trace.
pub fn named(trace: &Input, mut report: Report) -> Report {
    report.data.head.file = trace.shown();
    if let Some(kind) = trace.made_of() {
        report.data.head.kind = kind.to_owned();
        let there = std::fs::read_dir(trace.name()).into_iter().flatten().flatten();
        let files = there.map(|file| file.metadata()).chain([std::fs::metadata(trace.name())]);
        let files = files.flatten().filter(|about| about.is_file());
        report.data.head.file_bytes = files.map(|file| file.len()).sum::<u64>().into();
    }
    report
}

/// Reads a trace with this number of threads, by default one per core.
pub fn read(
    trace: &Input,
    threads: &Threads,
    codes: Option<&OpCodes>,
    extent: &Extent,
) -> Result<Stats, Failure> {
    let bar = Bar::new("reading the trace");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.number()).build()?;
    let mut stats = pool
        .install(|| Stats::of_trace(&trace.path, extent, &|records| bar.count(records, "records")))
        .map_err(|error| trace.error(error))?;
    if let Some(codes) = codes {
        stats.about.op_codes = codes.clone();
    }
    Ok(stats)
}
