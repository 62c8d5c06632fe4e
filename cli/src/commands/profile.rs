//! `vef profile`: the profiles of all ranks, added up.

use crate::args::Profile;
use crate::output::{self, Failure};

pub fn execute(profile: &Profile) -> Result<(), Failure> {
    let report = reports::profile::Profile::read(&profile.directory)?;
    if profile.json { output::json(&report) } else { output::result(report.to_string().trim_end()) }
}
