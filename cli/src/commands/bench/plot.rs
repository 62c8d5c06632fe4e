//! `vef bench plot` and `vef bench tree`: pictures.

use crate::bench_args::{Plot, Tree};
use crate::output::{self, Failure};
use collbench::sizes::parse_bytes;
use collbench::{Report, Task};

pub fn execute(plot: &Plot) -> Result<(), Failure> {
    let reports = plot.files.iter().map(|file| Report::read(file)).collect::<Result<Vec<_>, _>>()?;
    let cells = match &plot.simulated {
        None => Vec::new(),
        Some(file) => {
            let about = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
            let text = std::fs::read_to_string(file).map_err(|error| about(&error))?;
            serde_json::from_str(&text).map_err(|error| about(&error))?
        }
    };
    output::file(&plot.output, &collbench::plot::times(&reports, &cells)?)
}

pub fn tree(tree: &Tree) -> Result<(), Failure> {
    let Task::Schedule(operation, choice) = Task::named(&tree.op, &tree.algorithm)? else {
        return Err(format!("{}: the MPI's own algorithm is not known; name a schedule", tree.op).into());
    };
    let bytes =
        parse_bytes(&tree.bytes).ok_or_else(|| format!("--bytes {:?}: like 8, 64K or 1M", tree.bytes))?;
    let dot = collbench::plot::schedule_dot(operation, choice, tree.ranks, tree.root, bytes)?;
    match &tree.output {
        Some(file) => output::file(file, &dot),
        None => output::result(dot.trim_end()),
    }
}
