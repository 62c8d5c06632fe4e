//! Names of what can be timed: a collective of the MPI, a schedule of ours, a function of the user's, a message
//! pattern, or a known time.

use clap::ValueEnum;
use collectives::{Algorithm, Choice, Operation};
use mpi_abi::api::{CallForm, CollectiveFunction};
use sim_example::quantity::parse_bytes;
use vef_format::nearest::did_you_mean;
use vef_format::operation::Sizing;

use crate::error::{Error, Result};
use crate::library::{Libraries, OwnAlgorithm, OwnOperation};

/// An operation and how it is done.
#[derive(Clone, Debug)]
pub enum Benchmark {
    /// A function of the MPI.
    Mpi(CollectiveFunction, CallForm),
    /// A schedule of ours over its messages.
    Schedule(Operation, Choice),
    /// An operation of a library of the user's.
    Library(&'static OwnOperation),
    /// An algorithm of a library of the user's for a collective.
    LibraryAlgorithm(&'static OwnAlgorithm),
    /// No collective.
    Synthetic(Synthetic),
}

/// Message patterns, and known times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Synthetic {
    /// A round trip between ranks 0 and 1; the others are idle.
    PingPong,
    /// Ranks 0 and 1 send to each other at the same time.
    Exchange,
    /// Everybody exchanges with everybody, in n − 1 rounds of disjoint pairs (circle method).
    AllPairs,
    /// Rank i spins i + 1 µs: the true time is known, n µs.
    WaitUp,
    /// Nothing: the true time is 0.
    WaitNull,
}

impl Benchmark {
    /// The name in tables.
    pub fn name(&self) -> String {
        match self {
            Benchmark::Mpi(collective, form) => {
                let name = collective.name().to_ascii_lowercase().replace('_', "-");
                match form {
                    CallForm::Blocking => name,
                    CallForm::NonBlocking => format!("i{name}"),
                    CallForm::Persistent => format!("{name}-init"),
                }
            }
            Benchmark::Schedule(operation, _) => operation.key().to_owned(),
            Benchmark::Library(own) => own.name().to_owned(),
            Benchmark::LibraryAlgorithm(own) => own.operation().key().to_owned(),
            Benchmark::Synthetic(which) => {
                which.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
            }
        }
    }

    /// The algorithm's name in tables: `mpi` for the MPI's own choice.
    pub fn algorithm(&self) -> String {
        match self {
            Benchmark::Mpi(..) => "mpi".into(),
            Benchmark::Library(_) => "library".into(),
            Benchmark::LibraryAlgorithm(own) => own.name().to_owned(),
            Benchmark::Schedule(_, Choice { algorithm, segment, fanout, .. }) => {
                let mut name = algorithm.name().to_owned();
                if *segment > 0 {
                    name += &format!(":{segment}");
                }
                if *fanout > 0 {
                    name += &format!("/{fanout}");
                }
                name
            }
            Benchmark::Synthetic(_) => "-".into(),
        }
    }

    /// A benchmark by its name, done by an algorithm of ours or (`mpi`) the MPI's: `allreduce`, `iallreduce`,
    /// `allreduce-init`. Names that libraries have registered come first.
    ///
    /// # Errors
    /// [`Error::Invalid`] for unknown names.
    pub fn named(name: &str, algorithm: &str, libraries: &Libraries) -> Result<Benchmark> {
        let unknown = |reason: String| Error::setting("operation", name, reason);
        let collective = Operation::named(name);
        if algorithm == "mpi"
            && let Some(own) = libraries.operation(name)
        {
            return Ok(Benchmark::Library(own));
        }
        if let Some(own) = collective.and_then(|operation| libraries.algorithm(operation, algorithm)) {
            return Ok(Benchmark::LibraryAlgorithm(own));
        }
        if let Ok(which) = Synthetic::from_str(name, false) {
            return Ok(Benchmark::Synthetic(which));
        }
        if algorithm != "mpi" {
            let operation = collective.ok_or_else(|| {
                unknown("there are no schedules for it; algorithms need a collective of MPI".to_owned())
            })?;
            return Ok(Benchmark::Schedule(operation, parse_choice(operation, algorithm)?));
        }
        let known =
            |name: &str, form| CollectiveFunction::named(name).map(|known| Benchmark::Mpi(known, form));
        known(name, CallForm::Blocking)
            .or_else(|| known(name.strip_prefix(['i', 'I'])?, CallForm::NonBlocking))
            .or_else(|| known(name.strip_suffix("-init")?, CallForm::Persistent))
            .ok_or_else(|| {
                let collectives = Operation::ALL.iter().map(|operation| operation.key());
                let meant = did_you_mean(name, collectives.chain(["ping-pong", "exchange", "all-pairs"]));
                let forms = "write a collective like allreduce, iallreduce or allreduce-init, or ping-pong, exchange, all-pairs";
                unknown(format!("{meant}{forms}"))
            })
    }

    /// The MPI's blocking collectives over all ranks.
    pub fn blocking_collectives() -> Vec<Benchmark> {
        let blocking = |operation: &Operation| {
            Some(Benchmark::Mpi(CollectiveFunction::named(operation.name())?, CallForm::Blocking))
        };
        Operation::ALL.iter().filter_map(blocking).collect()
    }

    /// Whether there are sizes to choose from.
    pub fn has_sizes(&self) -> bool {
        match self {
            Benchmark::Mpi(collective, _) if collective.name() == "Comm_dup" => false,
            Benchmark::Synthetic(Synthetic::WaitUp | Synthetic::WaitNull) => false,
            _ => self.operation() != Some(Operation::Barrier),
        }
    }

    /// Whether other work can be done between its start and its end.
    pub fn can_overlap(&self) -> bool {
        matches!(self, Benchmark::Mpi(_, CallForm::NonBlocking | CallForm::Persistent))
    }

    /// Whether it can have blocks of several sizes, or has no blocks by rank.
    pub fn takes_factors(&self) -> bool {
        match self {
            Benchmark::Schedule(operation, _) => operation.sizing() != Sizing::Pairs,
            Benchmark::LibraryAlgorithm(own) => {
                !matches!(own.operation().sizing(), Sizing::Blocks | Sizing::Pairs)
            }
            Benchmark::Mpi(..) | Benchmark::Library(_) | Benchmark::Synthetic(_) => true,
        }
    }

    /// The collective operation behind it, as schedules know them.
    pub fn operation(&self) -> Option<Operation> {
        match self {
            Benchmark::Mpi(collective, _) => Operation::named(collective.name()),
            Benchmark::Schedule(operation, _) => Some(*operation),
            Benchmark::LibraryAlgorithm(own) => Some(own.operation()),
            Benchmark::Library(_) | Benchmark::Synthetic(_) => None,
        }
    }
}

fn parse_choice(operation: Operation, text: &str) -> Result<Choice> {
    let wrong = || {
        let known: Vec<_> = Algorithm::of(operation).map(Algorithm::name).collect();
        let (operation, known) = (operation.key(), known.join(", "));
        let reason = format!("{operation} has mpi, {known} (as NAME, NAME:SEGMENT_BYTES or NAME/FANOUT)");
        Error::setting("algorithm", text, reason)
    };
    let (rest, fanout) = match text.split_once('/') {
        Some((rest, fanout)) => (rest, fanout.parse().map_err(|_| wrong())?),
        None => (text, 0),
    };
    let (name, segment) = match rest.split_once(':') {
        Some((name, segment)) => (name, parse_bytes(segment).map_err(|_| wrong())?.0),
        None => (rest, 0),
    };
    let algorithm = Algorithm::from_name(name)
        .filter(|known| Algorithm::of(operation).any(|other| other == *known))
        .ok_or_else(wrong)?;
    Ok(Choice { segment, fanout, ..Choice::plain(algorithm) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmarks_by_name() {
        let name = |name, algorithm| {
            Benchmark::named(name, algorithm, &Libraries::default())
                .map(|benchmark| (benchmark.name(), benchmark.algorithm()))
        };
        let ok = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(name("allreduce", "mpi").unwrap(), ok("allreduce", "mpi"));
        assert_eq!(name("iallreduce", "mpi").unwrap(), ok("iallreduce", "mpi"));
        assert_eq!(name("Allreduce-init", "mpi").unwrap_or(ok("", "")).1, "mpi");
        assert_eq!(name("bcast", "chain:8K/4").unwrap(), ok("bcast", "chain:8192/4"));
        assert_eq!(name("reduce-scatter", "mpi").unwrap().0, "reduce-scatter");
        assert!(name("allreduce", "magic").is_err() && name("ponder", "mpi").is_err());
        assert!(name("comm-dup", "ring").is_err());
    }
}
