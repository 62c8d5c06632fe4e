//! `vef timeline`: writes a timeline of all ranks for a trace viewer.

use crate::groups::{CapturedTime, OpCodesFile, RankList, Yardstick, one_of};
use crate::input::Input;
use crate::output::{self, EXIT_BAD_INPUT, Failure, Written};
use crate::progress::Bar;
use replay::Picos;
use reports::timeline::{self, Format, Settings, Source, Summary, TimelineError};
use sim_example::quantity::{parse_bytes, parse_time};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vef_format::capture::{Capture, legacy};
use vef_format::new_file::{NewFile, is_stdout};
use vef_format::units::{Bytes, Count, Grouped};

/// Write a timeline of all ranks for a trace viewer (Perfetto, Chrome)
#[derive(clap::Args)]
#[command(after_help = "\
A capture is shown with the times of its calls, from the first entry of MPI_Init. A trace is replayed on a network of \
--latency + bytes / --bandwidth. A result of vef sim --json --links is shown as links over time. Ranks are threads of \
their hosts; arrows lead from the sends of messages to the calls that received them; gaps are computing. If the file \
would exceed --max-size, short slices are merged; docs/timeline.md has the rule.

Examples:
  vef timeline capture -o app.pftrace
  vef timeline app.vefx -o app.pftrace --latency 2us --bandwidth 100Gbit/s
  vef sim app.vefx --topology torus:4x4 --json --links | vef timeline - -o links.pftrace
  vef timeline capture -o part.json --format json --from 1.5s --to 1.6s --ranks 0-15")]
pub struct Arguments {
    /// Directory of a capture, a trace, or the result of a simulation; - is standard input
    #[arg(value_name = "CAPTURE|TRACE|RESULT", value_parser = Input::argument)]
    pub input: PathBuf,
    /// File to write; - is standard output
    #[arg(short, long, value_name = "OUT", value_parser = Written::timeline())]
    pub output: Written,
    /// File format: perfetto (protocol buffers) or json (Chrome trace events)
    /// [default: json if the file's name ends in .json, else perfetto]
    #[arg(long, value_name = "FORMAT", value_parser = one_of([("perfetto", Format::Perfetto), ("json", Format::Json)]))]
    pub format: Option<Format>,
    /// Start of the timeline (10ms, 1.5s)
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub from: Option<Picos>,
    /// End of the timeline
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub to: Option<Picos>,
    /// Show only these ranks, such as 0-3,8
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<RankList>,
    /// Maximum size of the file; viewers need two to four times as much memory
    #[arg(long, default_value = "200MB", value_name = "SIZE", value_parser = parse_bytes)]
    pub max_size: Bytes,
    #[command(flatten)]
    pub yardstick: Yardstick,
    #[command(flatten)]
    pub codes: OpCodesFile,
}

pub fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match arguments.format {
        Some(Format::Json) => arguments.output.check_kind(&["json"], "--format json writes a .json")?,
        Some(Format::Perfetto) => {
            arguments.output.check_kind(&["pftrace"], "--format perfetto writes a .pftrace")?
        }
        None => {}
    }
    let nanos = |time: Picos| time.0 / 1000;
    let window = arguments.from.map_or(0, nanos)..arguments.to.map_or(u64::MAX, nanos);
    if window.is_empty() {
        return Err("--from must be before --to".into());
    }
    let settings = Settings {
        format: format(arguments),
        window,
        ranks: arguments.ranks.as_ref().map(RankList::to_set).transpose()?,
        most_bytes: arguments.max_size.0,
    };
    let is_capture = fs::metadata(&arguments.input).is_ok_and(|there| there.is_dir());
    let summary = match is_capture || legacy::Main::is_at(&arguments.input) {
        true => {
            is_for_traces(arguments)?;
            let capture = Capture::open(&arguments.input)?;
            let hosts = capture.hosts();
            output::oversubscribed(&arguments.input, hosts.iter().filter(|host| host.is_oversubscribed()));
            draw(Source::Capture(&capture), &settings, arguments)?
        }
        false => {
            let file = Input::file(&arguments.input)?;
            let file = if file.result().is_some() { file } else { file.converted()? };
            let drawn = match begins_like_json(&file.path) {
                true => is_for_traces(arguments)
                    .and_then(|()| draw(Source::Simulation(&file.path), &settings, arguments)),
                false => draw_trace(arguments, &file, &settings),
            };
            file.warn();
            drawn.map_err(|error| file.error(error))?
        }
    };
    let Some(summary) = summary else { return Ok(ExitCode::SUCCESS) };
    match &summary.stuck {
        None => Ok(ExitCode::SUCCESS),
        Some(stuck) => {
            output::remark(format_args!("{}: {stuck}", shown(arguments)));
            Ok(ExitCode::from(EXIT_BAD_INPUT))
        }
    }
}

/// What was asked for, or what the name of the file says.
fn format(arguments: &Arguments) -> Format {
    let by_suffix = if arguments.output.suffix() == "json" { Format::Json } else { Format::Perfetto };
    arguments.format.unwrap_or(by_suffix)
}

/// The name of the input in messages.
fn shown(arguments: &Arguments) -> String {
    Input::named(&arguments.input, &arguments.input).shown()
}

/// Refuses the options of a replay for what has its own times.
fn is_for_traces(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { yardstick, codes, .. } = arguments;
    let given = [
        ("--latency", yardstick.latency.is_some()),
        ("--bandwidth", yardstick.bandwidth.is_some()),
        ("--from-launch", yardstick.of_run.from_launch),
        ("--phase", yardstick.of_run.phase.is_some()),
        ("--iterations", yardstick.of_run.iterations.is_some()),
        ("--op-codes", codes.op_codes.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => {
            let input = shown(arguments);
            Err(format!("{option} is for traces, which are replayed; {input} has its own times").into())
        }
    }
}

fn draw_trace(arguments: &Arguments, trace: &Input, settings: &Settings) -> Result<Option<Summary>, Failure> {
    let op_codes = arguments.codes.read(trace)?;
    let link = arguments.yardstick.link()?;
    let extent = &arguments.yardstick.of_run.extent(&CapturedTime::default(), trace, op_codes.as_ref())?;
    let source = Source::Trace { path: &trace.path, op_codes: op_codes.as_ref(), link: &link, extent };
    draw(source, settings, arguments)
}

/// Draws; `None` if the reader of a pipe has closed it.
fn draw(source: Source<'_>, settings: &Settings, arguments: &Arguments) -> Result<Option<Summary>, Failure> {
    let to = &arguments.output;
    let written = |error| -> Failure { format!("{}: {error}", to.display()).into() };
    let file = NewFile::create(to).map_err(written)?;
    let is_pipe = is_stdout(to) || !file.file().metadata().map_err(written)?.is_file();
    let bar = Bar::new("drawing");
    let drawn =
        timeline::draw(source, settings, file.file(), is_pipe, &mut |slices| bar.count(slices, "slices"));
    let summary = match drawn {
        // A closed pipe (`| head`) is no error.
        Err(TimelineError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(None),
        Err(TimelineError::Write(error)) => return Err(written(error)),
        Err(error @ (TimelineError::BehindTheEnd { .. } | TimelineError::NoRank { .. })) => {
            return Err(format!("{}: {error}", shown(arguments)).into());
        }
        drawn => drawn?,
    };
    // A part is better than nothing, but no better than a whole of before.
    if summary.stuck.is_none() || is_pipe || !to.exists() {
        file.finish().map_err(written)?;
        output::about(to, told(arguments, &summary))?;
    } else {
        output::remark(format_args!("{}: was there before and stays", to.display()));
    }
    Ok(Some(summary))
}

/// Whether a file is the JSON result of a simulation; no trace begins like JSON.
fn begins_like_json(path: &Path) -> bool {
    let mut first = [0];
    fs::File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok()) && first == *b"{"
}

/// A summary of the timeline as text.
fn told(arguments: &Arguments, summary: &Summary) -> String {
    let [curves, left_out] = summary.curves;
    let what = match curves {
        0 => format!(
            "{}, {} at the senders, {} at the receivers",
            Count(summary.slices + summary.merged_slices, "slice"),
            Count(summary.arrows[0], "message"),
            Grouped(summary.arrows[1])
        ),
        _ => Count(curves, "link").to_string(),
    };
    let time = |nanos: u64| Picos(nanos.saturating_mul(1000));
    // Behind the last slice, ranks may compute.
    let run =
        if summary.reached > summary.end { format!(" of {}", time(summary.reached)) } else { String::new() };
    let mut lines = vec![format!(
        "{} → {}: {what}, up to {}{run}, {}",
        shown(arguments),
        arguments.output.display(),
        time(summary.end),
        Bytes(summary.bytes)
    )];
    if left_out > 0 {
        let most = &arguments.max_size;
        lines.push(format!(
            "  left out: {}, busy for less time; all are more than {most}",
            Count(left_out, "link")
        ));
    }
    if let Some(length) = summary.shorter_than {
        lines.push(format!(
            "  put together: {}, each shorter than {}, as {}, without their messages; the whole is more than {}. \
             --from, --to and --ranks draw a part in full",
            Count(summary.merged, "slice"),
            Picos(length.saturating_mul(1000)),
            Grouped(summary.merged_slices),
            arguments.max_size
        ));
    }
    lines.push(match format(arguments) {
        Format::Perfetto => {
            "  ui.perfetto.dev opens it, and trace_processor (pip install perfetto) queries it".into()
        }
        Format::Json => "  chrome://tracing and ui.perfetto.dev open it".into(),
    });
    lines.join("\n")
}
