//! `vef gen`: generates traces of known communication patterns.

use crate::groups::TraceOutput;
use crate::output::{self, Failure};
use crate::progress::Bar;
use crate::repeated::given;
use clap::Args;
use sim_example::quantity::{parse_bytes, parse_time};
use std::io::{BufWriter, Write};
use vef_format::format::named_container;
use vef_format::new_file::NewFile;
use vef_format::units::{Bytes, Count, Picos, Ticks};
use workloads::{Layout, Model, PATTERNS, Pattern, Workload, pattern};

/// Generate a trace of a known communication pattern
#[derive(clap::Args)]
#[command(after_help = "\
Patterns, per iteration: ring (to the next), halo2d and halo3d (exchange with 4 or 6 neighbours), alltoall, allreduce, \
random (to a random other rank), incast (all to rank 0, which releases them), sweep (a wavefront from each corner in \
turn), fft (Alltoall in rows, then in columns), training (micro-batches through a pipeline and back, an Allreduce of each \
in the tensor group, an Allreduce of the gradients among the replicas), llm (a training step of a language model, by the formulas of docs/interchange.md).

Examples:
  vef gen halo3d -n 4096 -o halo.vefx --bytes 64KiB --compute 200us --imbalance 0.1
  vef gen training --parallel 4,8,2 -o step.vefx --bytes 16MiB --gradient 512MiB --micro-batches 8
  vef gen llm --parallel 8,4,2 --zero 1 --micro-batches 8 --iterations 1 -o llm.vefx
  vef gen random -n 64 -o - | vef sim - --topology fattree:k=8")]
pub struct Arguments {
    /// Communication pattern
    #[arg(value_name = "PATTERN", value_hint = clap::ValueHint::Other)]
    pub pattern: String,
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", visible_alias = "np", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,
    #[command(flatten)]
    pub to: TraceOutput,
    /// Size of a message, or of each rank's block in a collective
    #[arg(long, default_value = "8KiB", value_name = "SIZE", value_parser = parse_bytes)]
    pub bytes: Bytes,
    /// Number of iterations
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub iterations: u32,
    /// Computing time of a rank per iteration
    #[arg(long, default_value = "10us", value_name = "TIME", value_parser = nanoseconds)]
    pub compute: Ticks,
    /// Largest deviation of computing times between ranks, as a share
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub imbalance: f64,
    /// Largest deviation of computing times between iterations, as a share
    #[arg(long, default_value_t = 0.0, value_name = "SHARE")]
    pub noise: f64,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// halo2d, halo3d, sweep, fft: ranks per dimension, AxB or AxBxC [default: the squarest grid]
    #[arg(long, value_name = "AxB", conflicts_with = "ranks", value_delimiter = 'x', value_parser = clap::value_parser!(u32).range(1..))]
    pub grid: Vec<u32>,
    /// training, llm: replicas, ranks per tensor group, pipeline stages [default: RANKS,1,1]
    #[arg(long, value_name = "D,T,P", conflicts_with_all = ["ranks", "grid"], value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub parallel: Vec<u32>,
    /// training, llm: micro-batches per step
    #[arg(long, default_value_t = 4, value_name = "N")]
    pub micro_batches: u32,
    /// training: gradients per rank
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = parse_bytes)]
    pub gradient: Bytes,
    #[command(flatten, next_help_heading = "A language model (llm)")]
    pub model: ModelOptions,
}

/// A language model; the defaults are one of 7 billion parameters.
#[derive(clap::Args)]
pub struct ModelOptions {
    /// Transformer layers
    #[arg(long, default_value_t = Model::default().layers, value_name = "L")]
    pub layers: u32,
    /// Size of a token's vector
    #[arg(long, default_value_t = Model::default().hidden, value_name = "H")]
    pub hidden: u64,
    /// Size of the inner vector of the feed-forward part
    #[arg(long, default_value_t = Model::default().inner, value_name = "F")]
    pub inner: u64,
    /// Matrices of the feed-forward part: 3 if it is gated, else 2
    #[arg(long, default_value_t = Model::default().matrices, value_name = "M")]
    pub matrices: u64,
    /// Size of the vocabulary
    #[arg(long, default_value_t = Model::default().vocabulary, value_name = "V")]
    pub vocabulary: u64,
    /// Tokens of a sequence
    #[arg(long, default_value_t = Model::default().sequence, value_name = "S")]
    pub sequence: u64,
    /// Sequences of a micro-batch
    #[arg(long, default_value_t = Model::default().micro_batch, value_name = "B")]
    pub micro_batch: u64,
    /// Bytes of an element
    #[arg(long, default_value_t = Model::default().element, value_name = "E")]
    pub element: u64,
    /// Experts of a layer; 1: the model is dense
    #[arg(long, default_value_t = Model::default().experts, value_name = "N")]
    pub experts: u64,
    /// Experts that each token uses
    #[arg(long, default_value_t = Model::default().used_experts, value_name = "K")]
    pub used_experts: u64,
    /// Ranks that share the experts of a layer; they divide the replicas
    #[arg(long, default_value_t = Model::default().expert_ranks, value_name = "N")]
    pub expert_ranks: u32,
    /// Stage of ZeRO: 0 to 3
    #[arg(long, default_value_t = Model::default().zero, value_name = "STAGE")]
    pub zero: u32,
    /// Flop that a rank carries out in a second
    #[arg(long, default_value_t = Model::default().flops, value_name = "N")]
    pub flops: f64,
    /// Exchange gradients when the computing in front is done, not during the computing that follows
    #[arg(long)]
    pub no_overlap: bool,
}

impl ModelOptions {
    fn model(&self) -> Model {
        Model {
            layers: self.layers,
            hidden: self.hidden,
            inner: self.inner,
            matrices: self.matrices,
            vocabulary: self.vocabulary,
            sequence: self.sequence,
            micro_batch: self.micro_batch,
            element: self.element,
            experts: self.experts,
            used_experts: self.used_experts,
            expert_ranks: self.expert_ranks,
            zero: self.zero,
            flops: self.flops,
            overlap: !self.no_overlap,
        }
    }
}

/// Whether a pattern uses an option.
fn uses(pattern: &str, option: &str) -> bool {
    let of_model = || ModelOptions::augment_args(clap::Command::new("model"));
    match option {
        "bytes" | "compute" => pattern != "llm",
        "micro-batches" => ["training", "llm"].contains(&pattern),
        "gradient" => pattern == "training",
        _ => pattern == "llm" || of_model().get_arguments().all(|known| known.get_long() != Some(option)),
    }
}

/// Refuses options that the pattern does not use.
fn all_are_used(name: &str, given: &[String]) -> Result<(), String> {
    let unused: Vec<String> =
        given.iter().filter(|option| !uses(name, option)).map(|option| format!("--{option}")).collect();
    let Some(first) = unused.first() else { return Ok(()) };
    let patterns: Vec<&str> =
        PATTERNS.iter().map(|pattern| pattern.name).filter(|pattern| uses(pattern, &first[2..])).collect();
    Err(format!(
        "{}: no effect with the pattern {name}; {first} is for {}",
        unused.join(", "),
        patterns.join(", ")
    ))
}

pub fn run(options: &Arguments) -> Result<(), Failure> {
    let workload = workload(options)?;
    all_are_used(workload.pattern.name, &given::<Arguments>()?)?;
    let TraceOutput { output: to, compressed } = &options.to;
    let settings = compressed.settings(to)?;
    let bar = Bar::new("writing");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", to.display());
    // Report invalid parameters before a file is created.
    workload.header()?;
    let new = NewFile::create(to).map_err(|error| failed(&error))?;
    let mut out = BufWriter::with_capacity(1 << 20, new.file());
    let header = match named_container(to) {
        true => workload.write_container(&mut out, settings),
        false => workload.write_text(&mut out),
    };
    let header = header.map_err(|error| failed(&error))?;
    out.flush().map_err(|error| failed(&error))?;
    drop(out);
    new.finish().map_err(|error| failed(&error))?;
    drop(bar);
    let text = format!(
        "{}: {}, {} of {}: {}, {}",
        to.display(),
        Count(header.tasks, "rank"),
        Count(workload.iterations, "iteration"),
        workload,
        Count(header.messages, "point-to-point record"),
        Count(header.collectives, "collective")
    );
    output::about(to, text)
}

/// Parses a time in whole nanoseconds, as traces count them.
fn nanoseconds(text: &str) -> Result<Ticks, String> {
    match parse_time(text).map_err(|error| error.to_string())? {
        Picos(time) if time % 1000 != 0 => Err("a trace counts in whole nanoseconds".into()),
        Picos(time) => Ok(Ticks(time / 1000)),
    }
}

fn workload(options: &Arguments) -> Result<Workload, Failure> {
    let mut workload = Workload::new(pattern(&options.pattern)?, options.ranks.unwrap_or(1));
    let Pattern { name, layout, .. } = *workload.pattern;
    if options.ranks.is_none() && options.grid.is_empty() && options.parallel.is_empty() {
        let how = match layout {
            Layout::Row => "--ranks N",
            Layout::Grid2d | Layout::Grid3d => "--ranks N or --grid",
            Layout::Model => "--ranks N or --parallel D,T,P",
        };
        return Err(format!("{name}: how many ranks? ({how})").into());
    }
    if !options.grid.is_empty() {
        let form = match layout {
            Layout::Grid2d => "AxB",
            Layout::Grid3d => "AxBxC",
            Layout::Row | Layout::Model => return Err(format!("--grid: {name} has no grid").into()),
        };
        if options.grid.len() != layout.dimensions() {
            return Err(format!("--grid: write {form} for {name}").into());
        }
        workload.sizes.clone_from(&options.grid);
    }
    if layout == Layout::Model {
        if !options.parallel.is_empty() {
            if options.parallel.len() != layout.dimensions() {
                return Err("--parallel: write replicas, ranks of a tensor group, stages: 4,8,2".into());
            }
            workload.sizes.clone_from(&options.parallel);
        }
        (workload.micro_batches, workload.gradient) = (options.micro_batches, options.gradient);
        workload.model = options.model.model();
    } else if !options.parallel.is_empty() {
        return Err(format!("--parallel is for training and llm, not for {name}").into());
    }
    Ok(Workload {
        bytes: options.bytes,
        iterations: options.iterations,
        compute: options.compute,
        imbalance: options.imbalance,
        noise: options.noise,
        seed: options.seed,
        ..workload
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_other_patterns_are_refused() {
        let given = |options: &[&str]| options.iter().map(|&option| option.to_owned()).collect::<Vec<_>>();
        let refused = |name: &str, options: &[&str]| all_are_used(name, &given(options)).unwrap_err();
        assert_eq!(
            refused("ring", &["iterations", "layers", "gradient"]),
            "--layers, --gradient: no effect with the pattern ring; --layers is for llm"
        );
        assert!(
            refused("llm", &["bytes"])
                .starts_with("--bytes: no effect with the pattern llm; --bytes is for ring, ")
        );
        assert!(refused("llm", &["gradient"]).ends_with("is for training"));
        assert_eq!(
            all_are_used("training", &given(&["gradient", "micro-batches", "bytes", "compute"])),
            Ok(())
        );
        assert_eq!(all_are_used("llm", &given(&["no-overlap", "experts", "micro-batches", "noise"])), Ok(()));
    }
}
