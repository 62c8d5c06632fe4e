//! Arguments that several commands share.

use crate::command_line::one_line;
use crate::input::Input;
use crate::output::{self, Failure, Written};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser};
use replay::{Extent, Link, Part, Picos};
use sim_example::Workload;
use sim_example::quantity::{Bandwidth, parse_time};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use vef_format::container::Settings;
use vef_format::format::named_container;
use vef_format::operation::OpCodes;

/// The trace that a command writes.
#[derive(Args)]
pub struct TraceOutput {
    /// Trace to write, or to replace: a container if the name ends in .vefx, else text; - is standard output
    #[arg(short, long, value_name = "OUT", value_parser = Written::trace())]
    pub output: Written,
    #[command(flatten)]
    pub compressed: Compressed,
}

/// Whether a container is compressed.
#[derive(Args)]
pub struct Compressed {
    /// Compress the blocks of the container (zstd)
    #[arg(long)]
    compress: bool,
}

impl Compressed {
    /// The settings of a container at `output`.
    pub fn settings(&self, output: &Path) -> Result<Settings, Failure> {
        match self.compress && !named_container(output) {
            true => Err("--compress is for containers: OUT.vefx".into()),
            false => Ok(Settings { compress: self.compress, ..Settings::default() }),
        }
    }
}

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

/// Parses the name of one of these tables, also in the plural, which --csv has.
pub fn table_of<T: Clone + Send + Sync + 'static>(
    choices: impl IntoIterator<Item = (&'static str, T)>,
) -> impl TypedValueParser<Value = T> {
    AlsoPlural(one_of(choices))
}

#[derive(Clone)]
struct AlsoPlural<P>(P);

impl<P: TypedValueParser> TypedValueParser for AlsoPlural<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        let singular = value.to_str().and_then(|value| value.strip_suffix('s'));
        let found = singular.map(|value| self.0.parse_ref(command, argument, value.as_ref()));
        found.and_then(Result::ok).map_or_else(|| self.0.parse_ref(command, argument, value), Ok)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
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
    pub of_run: OfRun,
}

/// What of the run of a trace is replayed.
#[derive(Args, Clone, Debug, Default)]
pub struct OfRun {
    /// Count each rank's MPI_Init as computing before its first record, where the trace records it (a container from
    /// vef mix)
    #[arg(long)]
    pub from_launch: bool,
    /// Only this phase of the program (vef_phase.h, MPI_Pcontrol): all times, or the K-th time that a rank enters it (from 1);
    /// only for containers
    #[arg(long, value_name = "NAME[:K]", value_parser = Part::phase)]
    pub phase: Option<Part>,
    /// Only these iterations of the program's main loop, which is found in the records; without a value 2-, all but set-up,
    /// the first and the end. An iteration is what the MPI calls repeat: several time steps if, say, every fifth has one more call
    #[arg(long, value_name = "FIRST[-[LAST]]", num_args = 0..=1, require_equals = true, default_missing_value = "2-", conflicts_with = "phase", value_parser = Part::iterations)]
    pub iterations: Option<Part>,
}

impl OfRun {
    /// The part of the run that is given, here or by the `time`.
    pub fn part(&self, time: &CapturedTime) -> Option<Part> {
        let named = self.phase.as_ref().or(self.iterations.as_ref());
        named.cloned().or_else(|| time.part())
    }

    /// What is replayed of a trace; a part is named on standard error.
    pub fn extent(
        &self,
        time: &CapturedTime,
        trace: &Input,
        codes: Option<&OpCodes>,
    ) -> Result<Extent, Failure> {
        let Some(part) = self.part(time) else {
            return Ok(Extent { from_launch: self.from_launch, part: None });
        };
        let mut workload = Workload::new(&trace.path);
        workload.op_codes = codes.cloned();
        workload.select(&part).map_err(|error| trace.named_error(error))?;
        let found = workload.part.iter();
        found.for_each(|part| output::remark(format_args!("{}: only {part}", trace.shown())));
        Ok(Extent { from_launch: self.from_launch, part: workload.part })
    }
}

/// A stretch of the captured run.
#[derive(Args, Clone, Debug, Default)]
pub struct CapturedTime {
    /// Only what was captured from this time on (10ms, 1.5s), which counts from the return of each rank's MPI_Init; only for
    /// containers
    #[arg(long, value_name = "TIME", conflicts_with_all = ["phase", "iterations"], value_parser = parse_time)]
    from: Option<Picos>,
    /// Only what was captured up to this time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["phase", "iterations"], value_parser = parse_time)]
    to: Option<Picos>,
}

impl CapturedTime {
    fn part(&self) -> Option<Part> {
        match (self.from, self.to) {
            (None, None) => None,
            (from, to) => Some(Part::Captured { from: from.unwrap_or_default(), to }),
        }
    }
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
    /// The ranks, at most 2^24, each named once and in ascending order: that is the order in which they are taken.
    pub fn to_set(&self) -> Result<BTreeSet<u32>, Failure> {
        const MOST: u64 = 1 << 24;
        let lengths = self.ranges.iter().map(|range| u64::from(range.end() - range.start()) + 1);
        if lengths.sum::<u64>() > MOST {
            return Err(format!("--ranks {}: more than {MOST} ranks", self.text).into());
        }
        if let Some(pair) = self.ranges.windows(2).find(|pair| pair[1].start() <= pair[0].end()) {
            let (rank, before) = (pair[1].start(), pair[0].end());
            return Err(format!(
                "--ranks {}: rank {rank} stands behind rank {before}; name each once, in ascending order",
                self.text
            )
            .into());
        }
        Ok(self.ranges.iter().cloned().flatten().collect())
    }
}
