//! `vef export`: writes a trace in the format of another tool.

use crate::algorithms;
use crate::foreign::Progress;
use crate::groups::{OpCodesFile, one_of};
use crate::input::Input;
use crate::output::{self, Failure, Written};
use crate::progress::Bar;
use interchange::{ExportOptions, Exported, Format, export};
use replay::Table;
use results::conversion::{Export, ExportSchema};
use std::path::PathBuf;
use vef_format::units::{Bytes, Count};

/// Write a trace in the format of another tool
#[derive(clap::Args)]
#[command(after_help = "\
docs/interchange.md says for each format what is kept and what is lost.

Examples:
  vef export --to goal-bin app.vefx -o app.bin
  vef export --to goal app.vef -o - --algorithms openmpi
  vef export --to chakra step.vefx -o step.chakra --algorithms nccl
  vef export --to otf2 app.vefx -o app.otf2.d")]
pub struct Arguments {
    /// Trace; - is standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT", value_parser = one_of(formats()))]
    pub to: Format,
    /// File to write, or to replace; - is standard output. Chakra, OTF2: a directory to make
    #[arg(short, long, value_name = "OUT", value_parser = Written::result())]
    pub output: Written,
    /// GOAL, Chakra: receives are posted when their rank starts, not where it waits for them
    #[arg(long)]
    pub preposted: bool,
    /// Algorithms by which collectives become messages, where the format has none: default, openmpi, mpich, nccl, or
    /// the file of a table
    #[arg(long, value_name = "TABLE", default_value = "default", value_parser = algorithms::table)]
    pub algorithms: Table,
    #[command(flatten)]
    pub codes: OpCodesFile,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// The formats that are written, by name.
fn formats() -> impl Iterator<Item = (&'static str, Format)> {
    let written = Format::ALL.iter().filter(|format| format.info().writer.is_some());
    written.map(|&format| (format.info().name, format))
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let format = arguments.to.info();
    let advice =
        format!("--to {} writes another kind of file ({}): choose another name", format.name, format.what);
    arguments.output.check_kind(&[format.suffixes, &[format.name]].concat(), &advice)?;
    let trace = Input::of(&arguments.trace)?;
    let codes = arguments.codes.read(&trace)?.unwrap_or_default();
    trace.warn();
    trace.warn_of_plain_tasks();
    let options = ExportOptions { preposted: arguments.preposted, algorithms: arguments.algorithms.clone() };
    let progress = Progress(Bar::new("exporting"));
    let exported = export(arguments.to, &trace.path, &codes, &arguments.output, &options, &progress)
        .map_err(|error| trace.error(error))?;
    drop(progress);
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&Export { schema: ExportSchema::default(), exported })?,
        false => text(arguments, &trace, &exported),
    };
    output::about(&arguments.output, text)
}

/// The summary as text.
fn text(arguments: &Arguments, trace: &Input, exported: &Exported) -> String {
    let mut lines = vec![format!(
        "{} → {} ({}): {}, {}, {} ({})",
        trace.shown(),
        arguments.output.display(),
        arguments.to.info().what,
        Count(exported.ranks, "rank"),
        Count(exported.operations, "operation"),
        Count(exported.messages, "message"),
        Bytes(exported.bytes)
    )];
    if exported.expanded > 0 {
        lines.push(format!("  {} became messages (--algorithms)", Count(exported.expanded, "collective")));
    }
    lines.extend(exported.remarks.iter().map(|remark| format!("  {remark}")));
    lines.join("\n")
}
