//! `vef bench tree`: the messages of a schedule.

use crate::output::{self, Failure, Written};
use collbench::{Benchmark, Libraries};
use sim_example::quantity::parse_bytes;
use vef_format::units::Bytes;

/// Write the messages of a schedule as a graph for Graphviz
#[derive(clap::Args)]
pub struct Arguments {
    /// The operation
    #[arg(long, value_name = "NAME")]
    pub op: String,
    /// The schedule: NAME, NAME:SEGMENT or NAME/FANOUT
    #[arg(long, value_name = "NAME")]
    pub algorithm: String,
    /// Ranks
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub ranks: u32,
    /// Root
    #[arg(long, value_name = "RANK", default_value_t = 0)]
    pub root: u32,
    /// Bytes of a block, or of the vector
    #[arg(long, value_name = "BYTES", default_value = "1K", value_parser = parse_bytes)]
    pub bytes: Bytes,
    /// The graph [default: standard output]
    #[arg(short, long, value_name = "FILE.dot", value_parser = Written::kind(&["dot"], "the file is a .dot"))]
    pub output: Option<Written>,
}

pub fn run(tree: &Arguments) -> Result<(), Failure> {
    let Benchmark::Schedule(operation, choice) =
        Benchmark::named(&tree.op, &tree.algorithm, &Libraries::default())?
    else {
        return Err(format!("{}: the MPI's own algorithm is not known; name a schedule", tree.op).into());
    };
    let dot = collbench::plot::schedule_dot(operation, choice, tree.ranks, tree.root, tree.bytes.0)?;
    match &tree.output {
        Some(file) => output::file(file, &dot),
        None => output::result(dot.trim_end()),
    }
}
