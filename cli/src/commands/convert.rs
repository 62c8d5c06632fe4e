//! `vef convert`: converts a trace between text and container, by the names of the files.

use crate::args::Convert;
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Busy;
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
    let size = |path: &std::path::Path| std::fs::metadata(path).map(|file| file.len()).unwrap_or_default();
    let text = format!(
        "{} ({} bytes) → {} ({} bytes)",
        convert.from.display(),
        Grouped(size(&from.path)),
        convert.to.display(),
        Grouped(size(&convert.to))
    );
    output::about(&convert.to, text)
}
