//! `vef cat`: joins the traces of several jobs into one.

use crate::groups::{OpCodesFile, TraceOutput};
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use std::path::PathBuf;
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
    #[command(flatten)]
    pub to: TraceOutput,
    #[command(flatten)]
    pub codes: OpCodesFile,
}

pub fn run(options: &Arguments) -> Result<(), Failure> {
    let TraceOutput { output: to, compressed } = &options.to;
    let settings = compressed.settings(to)?;
    let inputs: Vec<Input> = options.traces.iter().map(|trace| Input::of(trace)).collect::<Result<_, _>>()?;
    let mut traces = Vec::new();
    for (at, input) in inputs.iter().enumerate() {
        // Codes are of text only, and the others may be containers.
        let codes = if input.is_container()? { None } else { options.codes.read(input)? };
        traces.push(Joined { path: input.path.clone(), codes: codes.unwrap_or_default() });
        if inputs[..at].iter().all(|before| before.name() != input.name()) {
            input.warn();
            input.warn_of_plain_tasks();
        }
    }
    let bar = Bar::new("joining");
    let first = join(&traces, to, settings)
        .map_err(|error| inputs.iter().fold(error.into(), |error: Failure, input| input.error(error)))?;
    drop(bar);
    let from =
        inputs.iter().zip(&first).map(|(input, first)| format!("  tasks from {first} on: {}", input.shown()));
    let text = format!("{}\n{}", to.display(), from.collect::<Vec<_>>().join("\n"));
    output::about(to, text)
}
