//! The files of the tool `profile`, added up: by function, by rank and by pair of ranks.

use crate::rank_files::{self, Found};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use vef_format::units::Grouped;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The directory holds no profile.
    #[error("{0}: no profile (`vef run --tool profile` writes <rank>.json files)")]
    Nothing(PathBuf),
    /// A rank's file is not there.
    #[error("{0} is missing: the rank ended without MPI_Finalize, or the profile is of several runs")]
    Missing(PathBuf),
    /// It cannot be read.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not what the tool writes.
    #[error("{path}: {error}")]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong, with its place.
        error: serde_json::Error,
    },
    /// Its ranks and tasks do not fit the others'.
    #[error("{0}: this file is of another run than the first")]
    OtherRun(PathBuf),
}

/// What one rank wrote.
#[derive(Debug, Deserialize)]
struct RankFile {
    rank: u32,
    tasks: u32,
    wall_ns: u64,
    mpi_ns: u64,
    calls: Vec<RankCall>,
    peers: Vec<RankPeer>,
}

#[derive(Debug, Deserialize)]
struct RankCall {
    name: String,
    calls: u64,
    ns: u64,
    bytes: u64,
    errors: u64,
    representable: bool,
}

#[derive(Debug, Deserialize)]
struct RankPeer {
    rank: u32,
    messages: u64,
    bytes: u64,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Number of ranks.
    pub tasks: u32,
    /// Time in MPI of all ranks together, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time between `MPI_Init` and `MPI_Finalize` of all ranks together, ns.
    pub wall_ns: u64,
    /// By function, the one that took longest first.
    pub calls: Vec<Function>,
    /// By rank, in order.
    pub ranks: Vec<Rank>,
    /// Messages by sender and receiver, the pair with most bytes first.
    pub pairs: Vec<Pair>,
}

/// A function in all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Its C name.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// Time of all calls, ns.
    pub ns: u64,
    /// Time of the rank that it took longest, ns.
    pub longest_rank_ns: u64,
    /// What the calls gave (receives: asked for), bytes.
    pub bytes: u64,
    /// How many returned an error.
    pub errors: u64,
    /// Whether a VEF trace has records for it.
    pub representable: bool,
}

/// One rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// Its calls of MPI.
    pub calls: u64,
    /// Time in them, without `MPI_Init` and `MPI_Finalize`, ns.
    pub mpi_ns: u64,
    /// Time between `MPI_Init` and `MPI_Finalize`, ns.
    pub wall_ns: u64,
    /// Messages that it sent.
    pub messages: u64,
    /// Bytes that it sent in them.
    pub bytes: u64,
}

/// Messages from one rank to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// The sender's rank in `MPI_COMM_WORLD`.
    pub from: u32,
    /// The receiver's.
    pub to: u32,
    /// How many.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Profile {
    /// Reads the profile in `directory`, or in its sub-directory `profile`.
    ///
    /// # Errors
    /// See [`ProfileError`].
    pub fn read(directory: &Path) -> Result<Self, ProfileError> {
        let below = directory.join("profile");
        let directory = if below.is_dir() { &below } else { directory };
        let found = rank_files::find(directory, "", ".json");
        let files = match found.map_err(|error| ProfileError::Io { path: directory.into(), error })? {
            Found::All(files) => files,
            Found::Nothing => return Err(ProfileError::Nothing(directory.into())),
            Found::Missing(path) => return Err(ProfileError::Missing(path)),
        };
        let mut profile = Self {
            tasks: files.len() as u32,
            mpi_ns: 0,
            wall_ns: 0,
            calls: vec![],
            ranks: vec![],
            pairs: vec![],
        };
        let mut calls = BTreeMap::<String, Function>::new();
        for (rank, path) in (0u32..).zip(&files) {
            let text = std::fs::read(path).map_err(|error| ProfileError::Io { path: path.clone(), error })?;
            let file: RankFile = serde_json::from_slice(&text)
                .map_err(|error| ProfileError::Format { path: path.clone(), error })?;
            if (file.rank, file.tasks) != (rank, profile.tasks) {
                // One whose tasks are more lacks files of its run.
                return Err(match file.tasks > profile.tasks && file.rank == rank {
                    true => ProfileError::Missing(path.with_file_name(format!("{}.json", profile.tasks))),
                    false => ProfileError::OtherRun(path.clone()),
                });
            }
            profile.add(file, &mut calls);
        }
        profile.calls = calls.into_values().collect();
        profile.calls.sort_by_key(|call| std::cmp::Reverse(call.ns));
        profile.pairs.sort_by_key(|pair| std::cmp::Reverse((pair.bytes, pair.messages)));
        Ok(profile)
    }

    fn add(&mut self, file: RankFile, calls: &mut BTreeMap<String, Function>) {
        let sum = |numbers: &mut dyn Iterator<Item = u64>| numbers.fold(0u64, u64::saturating_add);
        self.ranks.push(Rank {
            calls: sum(&mut file.calls.iter().map(|call| call.calls)),
            mpi_ns: file.mpi_ns,
            wall_ns: file.wall_ns,
            messages: sum(&mut file.peers.iter().map(|peer| peer.messages)),
            bytes: sum(&mut file.peers.iter().map(|peer| peer.bytes)),
        });
        self.mpi_ns = self.mpi_ns.saturating_add(file.mpi_ns);
        self.wall_ns = self.wall_ns.saturating_add(file.wall_ns);
        for call in file.calls {
            let entry = calls.entry(call.name.clone()).or_insert_with(|| Function {
                name: call.name,
                representable: call.representable,
                ..Function::default()
            });
            entry.calls = entry.calls.saturating_add(call.calls);
            entry.ns = entry.ns.saturating_add(call.ns);
            entry.longest_rank_ns = entry.longest_rank_ns.max(call.ns);
            entry.bytes = entry.bytes.saturating_add(call.bytes);
            entry.errors = entry.errors.saturating_add(call.errors);
        }
        let pair = |peer: RankPeer| Pair {
            from: file.rank,
            to: peer.rank,
            messages: peer.messages,
            bytes: peer.bytes,
        };
        self.pairs.extend(file.peers.into_iter().map(pair));
    }
}

/// As many pairs and ranks are shown to people.
const SHOWN: usize = 16;

impl fmt::Display for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns as f64 / 1e6;
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        writeln!(
            out,
            "{} ranks, {:.3} ms in all, {:.3} ms of them ({:.1} %) in MPI (without MPI_Init and MPI_Finalize)",
            self.tasks,
            ms(self.wall_ns),
            ms(self.mpi_ns),
            share(self.mpi_ns, self.wall_ns)
        )?;
        writeln!(
            out,
            "\n{:<28}{:>12}{:>14}{:>14}{:>18}{:>8}",
            "function", "calls", "ms", "longest rank", "bytes", "errors"
        )?;
        for call in &self.calls {
            let mark = if call.representable { "" } else { " *" };
            writeln!(
                out,
                "{:<28}{:>12}{:>14.3}{:>14.3}{:>18}{:>8}",
                format!("{}{mark}", call.name),
                Grouped(call.calls),
                ms(call.ns),
                ms(call.longest_rank_ns),
                Grouped(call.bytes),
                Grouped(call.errors)
            )?;
        }
        let beyond: Vec<String> = (self.calls.iter().filter(|call| !call.representable))
            .map(|call| format!("{} × {}", Grouped(call.calls), call.name))
            .collect();
        match beyond.is_empty() {
            true => writeln!(out, "\nAll of it can be represented in a VEF trace.")?,
            false => writeln!(out, "\n* A VEF trace cannot represent: {}.", beyond.join(", "))?,
        }
        writeln!(
            out,
            "\n{:>8}{:>12}{:>14}{:>10}{:>12}{:>18}",
            "rank", "calls", "MPI ms", "%", "messages", "bytes sent"
        )?;
        for (number, rank) in self.ranks.iter().enumerate().take(SHOWN) {
            writeln!(
                out,
                "{number:>8}{:>12}{:>14.3}{:>10.1}{:>12}{:>18}",
                Grouped(rank.calls),
                ms(rank.mpi_ns),
                share(rank.mpi_ns, rank.wall_ns),
                Grouped(rank.messages),
                Grouped(rank.bytes)
            )?;
        }
        more(out, self.ranks.len())?;
        writeln!(out, "\n{:>8}{:>8}{:>12}{:>18}", "from", "to", "messages", "bytes")?;
        for pair in self.pairs.iter().take(SHOWN) {
            writeln!(
                out,
                "{:>8}{:>8}{:>12}{:>18}",
                pair.from,
                pair.to,
                Grouped(pair.messages),
                Grouped(pair.bytes)
            )?;
        }
        more(out, self.pairs.len())
    }
}

fn more(out: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    match all.checked_sub(SHOWN) {
        Some(rest @ 1..) => writeln!(out, "     … and {rest} more (--json has all)"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32, tasks: u32, calls: u64) -> String {
        format!(
            r#"{{"version": 1, "rank": {rank}, "tasks": {tasks}, "wall_ns": 100, "mpi_ns": 40, "calls": [
            {{"name": "MPI_Send", "calls": {calls}, "ns": 30, "bytes": 8, "errors": 0, "representable": true}},
            {{"name": "MPI_Put", "calls": 1, "ns": 10, "bytes": 4, "errors": 0, "representable": false}}],
            "peers": [{{"rank": {}, "messages": {calls}, "bytes": 8}}]}}"#,
            (rank + 1) % tasks
        )
    }

    #[test]
    fn ranks_add_up() {
        let work = tempfile::tempdir().unwrap();
        for (number, calls) in [(0, 3), (1, 5)] {
            std::fs::write(work.path().join(format!("{number}.json")), rank(number, 2, calls)).unwrap();
        }
        let profile = Profile::read(work.path()).unwrap();
        assert_eq!((profile.tasks, profile.mpi_ns, profile.wall_ns), (2, 80, 200));
        let send = &profile.calls[0];
        assert_eq!((send.name.as_str(), send.calls, send.ns, send.longest_rank_ns), ("MPI_Send", 8, 60, 30));
        assert_eq!(profile.pairs[0], Pair { from: 1, to: 0, messages: 5, bytes: 8 });
        let text = profile.to_string();
        assert!(text.contains("cannot represent: 2 × MPI_Put"), "{text}");
    }

    #[test]
    fn what_is_not_a_profile_is_said() {
        let work = tempfile::tempdir().unwrap();
        let said = || Profile::read(work.path()).unwrap_err();
        assert!(matches!(said(), ProfileError::Nothing(_)));
        let path = |number: u32| work.path().join(format!("{number}.json"));
        std::fs::write(path(1), rank(1, 2, 1)).unwrap();
        assert!(matches!(said(), ProfileError::Missing(missing) if missing == path(0)));
        std::fs::write(path(0), rank(0, 3, 1)).unwrap();
        assert!(matches!(said(), ProfileError::Missing(missing) if missing == path(2)));
        std::fs::write(path(0), rank(5, 2, 1)).unwrap();
        assert!(matches!(said(), ProfileError::OtherRun(_)));
        std::fs::write(path(0), "{").unwrap();
        assert!(said().to_string().contains("line 1 column 1"), "{}", said());
    }
}
