//! `vef cat`: joins the traces of several jobs into one.

use crate::groups::OpCodesFile;
use crate::input::Input;
use crate::output::{self, Failure, Written};
use crate::progress::Bar;
use std::path::PathBuf;
use vef_format::container::Settings;
use vef_format::format::named_container;
use workloads::{Joined, join};

/// Join traces of jobs that run side by side into one
#[derive(clap::Args)]
#[command(after_help = "\
The tasks of each trace follow those of the one before, and the jobs know nothing of each other. Times have the finest clock of
all. Of containers, what they note of their tasks (tags, functions, phases, hosts) is kept.

`vef sim A B` runs several traces on one network without joining them, and says what each job loses.

Examples:
  vef cat ocean.vefx ice.vefx -o climate.vefx
  vef cat solver.vef solver.vef -o two.vef")]
pub struct Arguments {
    /// Traces, in the order of their tasks
    #[arg(required = true, value_name = "TRACE", value_parser = Input::argument)]
    pub traces: Vec<PathBuf>,
    /// Trace to write, or to replace: a container if the name ends in .vefx, else text; - is standard output
    #[arg(short, long, value_name = "OUT", value_parser = Written::trace())]
    pub output: Written,
    /// Compress the blocks of the container (zstd)
    #[arg(long)]
    pub compress: bool,
    #[command(flatten)]
    pub codes: OpCodesFile,
}

pub fn run(options: &Arguments) -> Result<(), Failure> {
    if options.compress && !named_container(&options.output) {
        return Err("--compress is for containers: OUT.vefx".into());
    }
    let inputs: Vec<Input> = options.traces.iter().map(|trace| Input::of(trace)).collect::<Result<_, _>>()?;
    let mut traces = Vec::new();
    for input in &inputs {
        // Codes are of text only, and the others may be containers.
        let codes = if input.is_container()? { None } else { options.codes.read(input)? };
        traces.push(Joined { path: input.path.clone(), codes: codes.unwrap_or_default() });
        input.warn();
    }
    let bar = Bar::new("joining");
    let settings = Settings { compress: options.compress, ..Settings::default() };
    let first = join(&traces, &options.output, settings)
        .map_err(|error| inputs.iter().fold(error.into(), |error: Failure, input| input.error(error)))?;
    drop(bar);
    let from =
        inputs.iter().zip(&first).map(|(input, first)| format!("  tasks from {first} on: {}", input.shown()));
    let text = format!("{}\n{}", options.output.display(), from.collect::<Vec<_>>().join("\n"));
    output::about(&options.output, text)
}
