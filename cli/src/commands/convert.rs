//! `vef convert`: converts a trace between text and container, by the names of the files.

use crate::groups::{Compressed, OpCodesFile};
use crate::input::Input;
use crate::output::{self, Failure, Written};
use crate::progress::Bar;
use std::path::{Path, PathBuf};
use vef_format::container::About;
use vef_format::convert::{convert, convert_from_init};
use vef_format::format::named_container;
use vef_format::units::Count;

/// Convert a trace: text (.vef) to container (.vefx), or back
#[derive(clap::Args)]
#[command(after_help = "\
A container is smaller and checksummed, and the records of a task can be read without those of others. All commands that
read traces read both forms.")]
pub struct Arguments {
    /// Trace; - is standard input
    #[arg(value_name = "FROM", value_parser = Input::argument)]
    pub from: PathBuf,
    /// File to write: a container if the name ends in .vefx, else text; - is standard output, as text
    #[arg(value_name = "TO", value_parser = Written::trace())]
    pub to: Written,
    #[command(flatten)]
    pub compressed: Compressed,
    /// Leave out the time before the end of each rank's MPI_Init, which older containers and those of vef mix --keep-init have in their first
    /// records: for tools that read text alone
    #[arg(long)]
    pub from_init: bool,
    #[command(flatten)]
    pub codes: OpCodesFile,
}

pub fn run(options: &Arguments) -> Result<(), Failure> {
    let settings = options.compressed.settings(&options.to)?;
    let bar = Bar::new("converting");
    let from = Input::of(&options.from)?;
    let op_codes = options.codes.read(&from)?.unwrap_or_default();
    let about = About { op_codes, ..About::default() };
    let convert = if options.from_init { convert_from_init } else { convert };
    if !named_container(&options.to) {
        from.warn_of_plain_tasks();
    }
    convert(&from.path, &options.to, &about, settings).map_err(|error| from.error(error))?;
    drop(bar);
    // Of a pipe the size is not known, and a directory is no trace.
    let size = |path: &Path| match std::fs::metadata(path) {
        Ok(file) if file.is_file() => format!(" ({})", Count(file.len(), "byte")),
        _ => String::new(),
    };
    let (of_input, of_output) = (size(&options.from), size(&options.to));
    let text = format!("{}{of_input} → {}{of_output}", options.from.display(), options.to.display());
    output::about(&options.to, text)
}
