//! `vef sim --tune`: the fastest algorithm of each collective by message size, and the files by which libraries use it.

use super::setup::{calibration, settings};
use crate::input::Input;
use crate::output::{self, Failure};
use crate::progress::Bar;
use crate::simulation_args::{Sim, Table};
use results::table::TextStyle;
use sim_example::tune::{OwnRules, tune};
use std::fs;
use std::path::Path;
use vef_format::operation::OpCodes;

/// What says how a trace runs and matters here, too.
const USED: [&str; 7] =
    ["--topology", "--placement", "--calibration", "--send-completion", "--same-node", "--csv", "--tune"];

pub fn execute(sim: &Sim, trace: &Input, codes: Option<&OpCodes>) -> Result<(), Failure> {
    let unused: Vec<&str> = sim.of_traces().into_iter().filter(|option| !USED.contains(option)).collect();
    if !unused.is_empty() {
        return Err(format!("{}: no effect with --tune", unused.join(", ")).into());
    }
    if let Some(table) = sim.csv.filter(|table| *table != Table::Points) {
        return Err(format!("--csv {}: --tune has one table; write --csv alone", table.name()).into());
    }
    let calibration = calibration(sim)?;
    let settings = settings(sim, trace, &[], codes, calibration.as_ref())?;
    let mpich = sim.mpich_library.as_deref().map(own_rules).transpose()?;
    let bar = Bar::new("simulating");
    let mut operations = sim.tune.clone();
    operations.sort_unstable();
    operations.dedup();
    let tuned = tune(&settings, &operations, &mut |done, all| bar.set(done, all))
        .map_err(|error| trace.error(error))?;
    drop(bar);
    if let Some(directory) = &sim.tuned {
        let directory = directory.as_path();
        fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut files = vec![
            (directory.join("openmpi.rules"), tuned.openmpi_rules()),
            (directory.join("nccl.csv"), tuned.nccl_csv()),
        ];
        files.extend(mpich.map(|own| (directory.join("mpich.json"), tuned.mpich_rules(&own))));
        output::files(&files)?;
        let names: Vec<String> = files.iter().map(|(path, _)| path.display().to_string()).collect();
        output::remark(format_args!("{} written", names.join(", ")));
    }
    let table = tuned.table();
    match sim.csv {
        Some(_) => output::result(table.to_csv().trim_end()),
        None => output::result(table.to_text(&TextStyle::WHOLE).trim_end()),
    }
}

/// The rules that a library of MPICH has.
fn own_rules(path: &Path) -> Result<OwnRules, Failure> {
    let none =
        || format!("{}: no rules for collectives in it; not a library of MPICH 4.0 or later", path.display());
    Ok(OwnRules::find(&library(path)?).ok_or_else(none)?)
}

/// Bytes of a library, at most: those of MPICH have some 30 MB.
const MOST: u64 = 1 << 30;

/// The bytes of a library.
fn library(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() || about.len() > MOST {
        return Err(format!("{}: no library of MPICH", path.display()).into());
    }
    Ok(fs::read(path).map_err(failed)?)
}
