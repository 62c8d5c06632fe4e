//! Arguments that several commands share.

use crate::command_line::one_line;
use crate::input::Input;
use crate::output::Failure;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser};
use replay::{Link, Picos};
use sim_example::quantity::{Bandwidth, parse_time};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use vef_format::operation::OpCodes;

/// Parses one of these names to its value.
pub fn one_of<T: Clone + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    let choices: Vec<_> = choices.into_iter().collect();
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let value = move |name: String| {
        let found = choices.iter().find(|(choice, _)| *choice == name);
        found.map(|(_, value)| value.clone()).ok_or("unknown")
    };
    PossibleValuesParser::new(names).try_map(value)
}

/// Parses the arguments of a command that is run as a step of another; the last value of an option counts.
pub fn parse<T: Args>(words: &[&OsStr]) -> Result<T, Failure> {
    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct Line<T: Args> {
        #[command(flatten)]
        arguments: T,
    }
    let line = std::iter::once("vef".as_ref()).chain(words.iter().copied());
    let parsed = Line::<T>::try_parse_from(line);
    let parsed = parsed.map_err(|error| one_line(&error.render().to_string()).replacen("error: ", "", 1))?;
    Ok(parsed.arguments)
}

/// The table of collectives of a text trace.
#[derive(Args)]
pub struct OpCodesFile {
    /// File with the codes of collectives in a text trace, one `code name` per line; a container has its own
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
}

impl OpCodesFile {
    /// The codes given, which must be for a text trace.
    pub fn read(&self, trace: &Input) -> Result<Option<OpCodes>, Failure> {
        trace.op_codes(self.op_codes.as_deref())
    }
}

/// The network on which traces are replayed to see how they run.
#[derive(Args)]
pub struct Yardstick {
    /// Latency of the yardstick network [default: 1us]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub latency: Option<Picos>,
    /// Bandwidth of the yardstick network [default: 10Gbit/s]
    #[arg(long, value_name = "RATE")]
    pub bandwidth: Option<Bandwidth>,
    #[command(flatten)]
    pub beginning: Beginning,
}

/// Where the run of a trace begins.
#[derive(Args)]
pub struct Beginning {
    /// Count each rank's MPI_Init as computing before its first record, where the trace records it (a container from
    /// vef mix)
    #[arg(long)]
    pub from_launch: bool,
}

impl Yardstick {
    pub fn latency(&self) -> Picos {
        self.latency.unwrap_or(Picos(1_000_000))
    }

    pub fn bandwidth(&self) -> Bandwidth {
        const DEFAULT: Bandwidth = Bandwidth::from_bits_per_second(10_000_000_000).expect("positive");
        self.bandwidth.unwrap_or(DEFAULT)
    }

    /// Each message takes the latency plus bytes over bandwidth, without contention.
    pub fn link(&self) -> Result<Link, Failure> {
        Ok(Link::new(self.latency(), self.bandwidth().bits_per_second())?)
    }
}

/// The number of threads of a command whose result does not depend on it.
#[derive(Args)]
pub struct Threads {
    /// Number of threads [default: all cores]; the result does not depend on it
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
}

impl Threads {
    /// The number given, or 0.
    pub fn number(&self) -> usize {
        self.jobs.map_or(0, usize::from)
    }
}

/// A list of ranks such as 0-3,8, in the syntax of the preload library.
#[derive(Clone)]
pub struct RankList {
    pub text: String,
    pub ranges: Vec<RangeInclusive<u32>>,
}

impl FromStr for RankList {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let range = |part: &str| match part.split_once('-') {
            None => number(part).map(|rank| rank..=rank),
            Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| first..=last),
        };
        let ranges: Option<Vec<_>> =
            text.split(',').map(|part| range(part).filter(|range| !range.is_empty())).collect();
        let ranges = ranges.ok_or("not a list of ranks such as 0-3,8")?;
        Ok(Self { text: text.to_owned(), ranges })
    }
}

impl RankList {
    /// The ranks, at most 2^24.
    pub fn to_set(&self) -> Result<BTreeSet<u32>, Failure> {
        const MOST: u64 = 1 << 24;
        let lengths = self.ranges.iter().map(|range| u64::from(range.end() - range.start()) + 1);
        match lengths.sum::<u64>() > MOST {
            true => Err(format!("{}: more than {MOST} ranks", self.text).into()),
            false => Ok(self.ranges.iter().cloned().flatten().collect()),
        }
    }
}
