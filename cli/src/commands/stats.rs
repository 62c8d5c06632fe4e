//! `vef stats`: statistics of a trace, read once, without a replay.

use crate::args::Stats as Arguments;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use reports::report::{Report, Shown};
use reports::stats::Stats;
use std::io::IsTerminal;
use vef_format::operation::OpCodes;

pub fn execute(arguments: &Arguments) -> Result<(), Failure> {
    let trace = Input::of(&arguments.trace)?;
    let codes = super::check::op_codes(&trace, arguments.op_codes.as_deref())?;
    let stats = read(&trace, arguments.jobs, codes.as_ref())?;
    if let Some(wanted) = &arguments.csv {
        let tables = stats.tables();
        let Some(table) = tables.iter().find(|table| table.name == wanted) else {
            let with_rows = tables.iter().filter(|table| !table.is_empty());
            let names: Vec<&str> = with_rows.map(|table| table.name).collect();
            return Err(format!("--csv {wanted}: no such table; this trace has {}", names.join(", ")).into());
        };
        if table.is_empty() {
            output::remark(format_args!("{}: has no rows in the table {wanted}", trace.shown()));
        }
        return output::result(table.to_csv().trim_end());
    }
    if arguments.json {
        return output::result(named(&trace, Report::new(&trace.path, &stats)).to_json());
    }
    let terminal = std::io::stdout().is_terminal();
    let plain = std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
    let shown = Shown { top: arguments.top as usize, bars: terminal && !plain, more: "--top, --csv" };
    let report = named(&trace, Report::with_top(&trace.path, &stats, shown.top));
    let text = report.to_text(arguments.by, &shown);
    match arguments.by {
        Some(section) if text.is_empty() => {
            output::remark(format_args!("{}: has nothing by {}", trace.shown(), section.name()));
            Ok(())
        }
        _ => output::result(text.trim_matches('\n')),
    }
}

/// A report under the name that the user gave to the trace.
pub fn named(trace: &Input, mut report: Report) -> Report {
    report.head.file = trace.shown();
    report
}

/// Reads a trace with this number of threads, by default one per core.
pub fn read(trace: &Input, jobs: Option<u16>, codes: Option<&OpCodes>) -> Result<Stats, Failure> {
    let bar = Bar::new("reading the trace");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.map_or(0, usize::from)).build()?;
    let mut stats = pool
        .install(|| Stats::of_trace(&trace.path, &|records| bar.count(records, "records")))
        .map_err(|error| trace.error(error))?;
    if let Some(codes) = codes {
        stats.about.op_codes = codes.clone();
    }
    Ok(stats)
}
