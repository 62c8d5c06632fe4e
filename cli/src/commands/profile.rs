//! `vef profile`: the sums of all ranks' profiles.

use crate::args::Profile;
use crate::output::{self, Failure};

pub fn execute(profile: &Profile) -> Result<(), Failure> {
    let report = reports::profile::Profile::read(&profile.directory)?;
    if profile.json { output::json(&report) } else { output::result(report.to_string().trim_end()) }
}
