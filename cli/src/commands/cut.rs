//! `vef cut`: writes a part of a trace.

use crate::groups::{CapturedTime, OfRun, OpCodesFile, RankList, TraceOutput};
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use std::path::PathBuf;
use vef_format::ids::Rank;
use vef_format::trace::Trace;
use vef_format::units::Count;
use workloads::{Cut, LeftOut, Stretch, cut};

/// Write a part of a trace: some ranks, a phase, iterations, or a time of the run
#[derive(clap::Args)]
#[command(mut_arg("from_launch", |option| option.hide(true)))]
#[command(after_help = "\
The part waits for nothing outside: messages from there are not waited for, messages to ranks outside and collectives that not all
members enter in the part become local marks; all these are counted. Ranks are numbered anew.

Examples:
  vef cut app.vefx --iterations -o loop.vefx
  vef cut app.vefx --phase solve:2 --ranks 0-63 -o solve.vef")]
pub struct Arguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    #[command(flatten)]
    pub to: TraceOutput,
    /// Only these ranks, which are numbered anew from 0 in their order
    #[arg(long, value_name = "LIST")]
    pub ranks: Option<RankList>,
    #[command(flatten)]
    pub of_run: OfRun,
    #[command(flatten)]
    pub captured_time: CapturedTime,
    #[command(flatten)]
    pub codes: OpCodesFile,
}

pub fn run(options: &Arguments) -> Result<(), Failure> {
    let TraceOutput { output: to, compressed } = &options.to;
    let settings = compressed.settings(to)?;
    let trace = Input::of(&options.trace)?;
    let codes = options.codes.read(&trace)?;
    let extent = options.of_run.extent(&options.captured_time, &trace, codes.as_ref())?;
    if extent.from_launch {
        return Err(
            "--from-launch: start-up stays as the trace has it; of a part of the run it is left out".into()
        );
    }
    let tasks = Trace::open(&trace.path).map_err(|error| trace.error(error))?.header().tasks;
    let records = extent.part.map(|part| {
        let stretches = |task| {
            part.stretches(Rank(task)).iter().map(|stretch| Stretch {
                records: stretch.records.clone(),
                before: stretch.before,
                behind: stretch.behind,
                awaits: stretch.awaits,
            })
        };
        (0..tasks).map(|task| stretches(task).collect()).collect()
    });
    let ranks = options.ranks.as_ref().map(RankList::to_set).transpose()?;
    if ranks.is_some() {
        trace.warn_of_plain_tasks();
    }
    let kept: Option<Vec<Rank>> = ranks.map(|ranks| ranks.into_iter().map(Rank).collect());
    if kept.is_none() && records.is_none() {
        return Err("name a part: --ranks, --phase, --iterations, --from or --to".into());
    }
    let what = Cut { tasks: kept, records };
    let bar = Bar::new("cutting");
    let (header, left_out) = cut(&trace.path, &codes.unwrap_or_default(), &what, to, settings)
        .map_err(|error| trace.named_error(error))?;
    drop(bar);
    let LeftOut { records, messages, receptions, collectives } = left_out;
    let mut lines = vec![format!(
        "{} → {}: {}, {}, {}; {} left out",
        trace.shown(),
        to.display(),
        Count(header.tasks, "rank"),
        Count(header.messages, "point-to-point record"),
        Count(header.collectives, "collective"),
        Count(records, "record")
    )];
    for (count, one, what) in [
        (messages, "message", "to ranks outside: now local marks"),
        (receptions, "reception", "of messages from outside: not waited for"),
        (collectives, "collective", "that not all members enter in the part: now local marks"),
    ] {
        if count > 0 {
            lines.push(format!("  {} {what}", Count(count, one)));
        }
    }
    output::about(to, lines.join("\n"))
}
