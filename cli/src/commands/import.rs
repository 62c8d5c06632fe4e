//! `vef import`: converts a trace of another tool to a trace.

use crate::foreign::convert;
use crate::groups::{Threads, one_of};
use crate::input::Input;
use crate::output::{self, Failure, Written};
use interchange::{Files, Format, Options, Reader, Setting, Streams, Summary};
use results::conversion::{Import, ImportSchema};
use std::path::{Path, PathBuf};
use vef_format::units::{Bytes, Count, Grouped};

/// Convert a trace of another tool to a trace
#[derive(clap::Args)]
#[command(after_help = "\
docs/interchange.md says for each format what is kept and what is lost.

Examples:
  vef import dumpi-2019.05.22.11.54.43-*.bin -o app.vefx
  vef import scorep-run -o app.vefx
  vef import llama.bin -o llama.vefx
  vef import microbench.*.et --groups groups.json -o microbench.vefx")]
pub struct Arguments {
    /// Files of the trace, or the directory with them
    #[arg(required = true, value_name = "IN", value_parser = Input::argument)]
    pub files: Vec<PathBuf>,
    /// Trace to write, or to replace: a container if the name ends in .vefx, else text; - is standard output
    #[arg(short, long, value_name = "OUT", value_parser = Written::trace())]
    pub output: Written,
    /// Format of the files [default: recognised by their content]
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats()))]
    pub from: Option<Format>,
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    pub threads: Threads,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// How foreign traces are read.
#[derive(clap::Args, Default)]
pub struct Settings {
    /// Import what is there if ranks are missing or files are truncated; leave out messages without a partner
    #[arg(long, conflicts_with = "strict")]
    pub partial: bool,
    /// Refuse what is otherwise left out and counted
    #[arg(long)]
    pub strict: bool,
    /// GOAL, Chakra: make a task of each stream of a rank, told apart by cpu (GOAL; Chakra: tid) or by nic (GOAL)
    #[arg(long, value_name = "WHAT", value_parser = one_of([("cpu", Streams::Cpu), ("nic", Streams::Nic)]))]
    pub streams: Option<Streams>,
    /// Chakra: kernels of one stream follow each other in the order of their starts
    #[arg(long)]
    pub stream_order: bool,
    /// Chakra: JSON file with the members of each group
    #[arg(long, value_name = "FILE")]
    pub groups: Option<PathBuf>,
    /// DUMPI: where recording was switched off, count the time as computing
    #[arg(long)]
    pub keep_gaps: bool,
    /// OTF2: correct times by the measured offsets of the clocks
    #[arg(long)]
    pub global_clock: bool,
    /// SimGrid, and Chakra's num_ops without a duration: speed by which flops become times
    #[arg(long, value_name = "N")]
    pub flops_per_second: Option<f64>,
    /// SimGrid: read traces of versions before 3.20, whose waits name no request
    #[arg(long)]
    pub old_ti: bool,
}

/// The formats that are read, by name.
fn formats() -> impl Iterator<Item = (&'static str, Format)> {
    let read = Format::ALL.iter().filter(|format| !matches!(format.info().reader, Reader::Refused(_)));
    read.map(|&format| (format.info().name, format))
}

impl Settings {
    /// The settings of the library for files of a format; `None`: of none of other tools.
    pub fn options(&self, format: Option<Format>) -> Result<Options, Failure> {
        if let Some(speed) = self.flops_per_second.filter(|speed| !(speed.is_normal() && *speed > 0.0)) {
            return Err(format!("--flops-per-second: {speed} is no speed").into());
        }
        let options = Options {
            partial: self.partial,
            strict: self.strict,
            streams: self.streams,
            stream_order: self.stream_order,
            groups: self.groups.clone(),
            keep_gaps: self.keep_gaps,
            global_clock: self.global_clock,
            flops_per_second: self.flops_per_second,
            old_ti: self.old_ti,
        };
        let Some(format) = format else {
            let of_all = [("--partial", self.partial), ("--strict", self.strict)];
            let given = of_all.into_iter().filter_map(|(name, given)| given.then_some(name));
            return match given.chain(options.given().map(Setting::name)).next() {
                Some(name) => {
                    Err(format!("{name}: only for traces of other tools, and this is not recognised as one")
                        .into())
                }
                None => Ok(options),
            };
        };
        match format.unused(&options) {
            Some(setting) => {
                let formats: Vec<&str> = Format::with(setting).map(|format| format.info().name).collect();
                let (name, is) = (setting.name(), format.info().name);
                Err(format!("{name}: only for {}; this is {is}", formats.join(", ")).into())
            }
            None => Ok(options),
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    // What a pipe delivers is read more than once.
    let inputs = arguments.files.iter().map(|file| Input::file(file)).collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<PathBuf> = inputs.iter().map(|input| input.path.clone()).collect();
    let import = || -> Result<_, Failure> {
        let files = Files::of(&paths)?;
        let format = arguments.from.map_or_else(|| Format::of(&files), Ok)?;
        let options = arguments.settings.options(Some(format))?;
        let (summary, mixed) =
            convert(format, &files, &arguments.output, &options, arguments.threads.number())?;
        Ok((format, summary, mixed))
    };
    let named = |error| inputs.iter().fold(error, |error, input| input.error(error));
    let (format, summary, mixed) = import().map_err(named)?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&Import {
            schema: ImportSchema::default(),
            format: format.info().name.to_owned(),
            import: summary,
            mix: mixed,
        })?,
        false => text(format, &summary, mixed.as_ref(), &arguments.output),
    };
    output::about(&arguments.output, text)
}

/// The summary as text: what was imported, and what the trace lacks.
fn text(format: Format, summary: &Summary, mixed: Option<&mixer::Summary>, output: &Path) -> String {
    let what = format.info().what;
    let mut lines = vec![format!(
        "{what}: {}, {} ({}) → {}",
        Count(summary.ranks, "rank"),
        Count(summary.messages, "message"),
        Bytes(summary.bytes),
        output.display()
    )];
    let calls: Vec<String> =
        summary.calls.iter().map(|(name, count)| format!("{} {name}", Grouped(*count))).collect();
    if !calls.is_empty() {
        lines.push(format!("  {}", calls.join(", ")));
    }
    lines.extend(mixed.map(|mixed| {
        format!(
            "  in the trace: {}, {}, {}, {}",
            Count(mixed.messages, "message"),
            Count(mixed.marks, "mark"),
            Count(mixed.collectives, "collective"),
            Count(mixed.communicators, "communicator")
        )
    }));
    if !summary.missing_ranks.is_empty() {
        let ranks: Vec<String> = summary.missing_ranks.iter().take(5).map(ToString::to_string).collect();
        let more = if summary.missing_ranks.len() > 5 { ", …" } else { "" };
        lines.push(format!(
            "  missing: {}: {}{more}",
            Count(summary.missing_ranks.len() as u64, "rank"),
            ranks.join(", ")
        ));
    }
    // The mix lists those that became events.
    let listed = |name: &&String| mixed.is_some_and(|mixed| mixed.not_representable.contains_key(*name));
    for (name, skipped) in summary.skipped.iter().filter(|(name, _)| !listed(name)) {
        let ranks: Vec<String> = skipped.ranks.iter().map(ToString::to_string).collect();
        lines.push(format!(
            "  left out: {} {name} (ranks {}{})",
            Grouped(skipped.count),
            ranks.join(", "),
            if skipped.ranks.len() < interchange::EXAMPLES { "" } else { ", …" }
        ));
    }
    let unmatched = &summary.unmatched;
    if unmatched.sends + unmatched.receives > 0 {
        lines.push(match mixed {
            // They are among what is not in the trace.
            Some(_) => "  without a partner, the first of them:".to_owned(),
            None => format!(
                "  without a partner: {}, {}",
                Count(unmatched.sends, "send"),
                Count(unmatched.receives, "receive")
            ),
        });
        lines.extend(unmatched.first.iter().map(|message| format!("    {message}")));
    }
    if let Some(early) = mixed.map(|mixed| mixed.early_receptions).filter(|&early| early > 0) {
        lines.push(format!(
            "  received before they were sent (the clocks of the ranks differ): at least {}; this does not matter",
            Count(early, "message")
        ));
    }
    lines.extend(summary.told().map(|told| format!("  {told}")));
    lines.extend(
        mixed.into_iter().flat_map(mixer::Summary::lacks).map(|lack| format!("  not in the trace: {lack}")),
    );
    lines.join("\n")
}
