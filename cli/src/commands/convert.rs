//! `vef convert`: converts a trace between text and container, by the names of the files.

use crate::args::Convert;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Busy;
use std::path::Path;
use vef_format::container::{self, About, Settings};
use vef_format::units::Grouped;

pub fn execute(convert: &Convert) -> Result<(), Failure> {
    if convert.compress && !convert.to.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("vefx")) {
        return Err("--compress is for containers: OUT.vefx".into());
    }
    let settings = Settings { compress: convert.compress, ..Settings::default() };
    let busy = Busy::new("converting");
    let from = Input::of(&convert.from)?;
    let op_codes = super::check::op_codes(&from, convert.op_codes.as_deref())?.unwrap_or_default();
    let about = About { op_codes, ..About::default() };
    container::convert(&from.path, &convert.to, &about, settings).map_err(|error| from.error(error))?;
    drop(busy);
    // Of a pipe the size is not known.
    let size = |path: &Path| match std::fs::metadata(path) {
        Ok(file) if file.is_file() => format!(" ({} bytes)", Grouped(file.len())),
        _ => String::new(),
    };
    let (of_input, of_output) = (size(&from.path), size(&convert.to));
    let text = format!("{}{of_input} → {}{of_output}", convert.from.display(), convert.to.display());
    output::about(&convert.to, text)
}
