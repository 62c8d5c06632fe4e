//! `vef bench launch`: the same benchmark in several launches.

use crate::output::{self, Failure, WrittenDirectory};
use collbench::{Report, merge, merged_text};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use sim_example::quantity::parse_time;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;
use vef_format::units::Picos;

/// Time collectives in several launches of mpirun, in random order, and say what they have in common
#[derive(clap::Args)]
pub struct Arguments {
    /// Number of ranks
    #[arg(short = 'n', long = "ranks", visible_alias = "np", value_name = "N")]
    pub ranks: u32,
    /// Number of launches
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub launches: u32,
    /// Pause between launches, half to one and a half times as long: launches within some seconds are more alike than others
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    pub pause: Picos,
    /// The launcher, with options if any
    #[arg(long, value_name = "CMD", default_value = "mpirun")]
    pub mpirun: String,
    /// Directory for each launch's JSON
    #[arg(short, long, value_name = "DIR", value_parser = WrittenDirectory::of("-o names the directory of the launches' results"))]
    pub output: WrittenDirectory,
    /// Seed of the order in which each launch measures the operations
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Print the merged rows as JSON
    #[arg(long)]
    pub json: bool,
    /// Options of `vef bench coll`
    #[arg(last = true, value_name = "OPTIONS")]
    pub options: Vec<OsString>,
}

pub fn run(launch: &Arguments) -> Result<(), Failure> {
    let words: Vec<&str> = launch.mpirun.split_whitespace().collect();
    let Some((launcher, options)) = words.split_first() else { return Err("--mpirun is empty".into()) };
    let unusable = |error| format!("{}: {error}", launch.output.display());
    std::fs::create_dir_all(&*launch.output).map_err(unusable)?;
    if let Some(other) = (std::fs::read_dir(&*launch.output).map_err(unusable)?.flatten())
        .find(|entry| entry.file_name().as_encoded_bytes().starts_with(b"launch-"))
    {
        let other = other.path();
        return Err(format!("{}: has results already; name another directory (-o)", other.display()).into());
    }
    let own = std::env::current_exe()?;
    let mut random = SmallRng::seed_from_u64(launch.seed);
    let mut reports = Vec::new();
    let pause = Duration::from_nanos(launch.pause.0 / 1000);
    for number in 0..launch.launches {
        if number > 0 {
            // Not in step with what disturbs the machine at regular times.
            std::thread::sleep(pause.mul_f64(random.random_range(0.5..1.5)));
        }
        let file = launch.output.join(format!("launch-{number}.json"));
        let status = Command::new(launcher)
            .args(options)
            .args(["-n", &launch.ranks.to_string()])
            .arg(&own)
            .args(["bench", "coll"])
            .args(shuffled(&launch.options, &mut random))
            .arg("-o")
            .arg(&file)
            .stdout(Stdio::null())
            .status()
            .map_err(|error| format!("{launcher}: {error}"))?;
        match Report::read(&file) {
            Ok(report) => reports.push(report),
            Err(error) => return Err(format!("launch {number} ended with {status}: {error}").into()),
        }
        if !status.success() {
            output::remark(format_args!("launch {number} ended with {status}; what it measured counts"));
        }
    }
    let rows = merge(&reports, 0.95);
    match launch.json {
        true => output::json(&rows),
        false => output::result(merged_text(&rows).trim_end()),
    }
}

/// The options with the operations in another order: what is measured first in every launch is not always the same.
fn shuffled(options: &[OsString], random: &mut SmallRng) -> Vec<OsString> {
    let mut options = options.to_vec();
    if let Some(place) = options.iter().position(|word| word == "--op")
        && let Some(names) = options.get(place + 1).and_then(|names| names.to_str())
    {
        let mut names: Vec<&str> = names.split(',').collect();
        names.shuffle(random);
        options[place + 1] = names.join(",").into();
    }
    options
}
