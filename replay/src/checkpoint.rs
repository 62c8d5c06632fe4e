//! A replay from its beginning again, and the state of a replay as bytes.
//!
//! A checkpoint has all that a replay has come to: tasks, messages under way, collectives in progress, the queue. It does not have the traces,
//! nor what a builder was told: these are those of the replay that takes it, which must be the same. Of each task it has how often that has
//! read; its records are read again up to there, without anything else being done with them.
//!
//! Layout: [`MAGIC`], the digest of what the replay is made of, the state as `postcard` has it, a checksum of all that.

use crate::engine::Engine;
use crate::error::ReplayError;
use crate::in_calls::InCalls;
use crate::lines::Lines;
use crate::live::Flight;
use crate::options::SendCompletion;
use crate::parcels::Imported;
use crate::running::{Reading, Running};
use crate::sequence::{Sequence, Wait};
use crate::source::SourceError;
use crate::states::States;
use crate::stats::Stats;
use hashbrown::HashMap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slotmap::{DefaultKey, SlotMap};
use std::fmt::{self, Write};
use vef_format::ids::{CollectiveId, CommId, Rank};
use vef_format::raw::{KIND, NOTHING, Raw};
use vef_format::units::Picos;

/// How a checkpoint begins.
const MAGIC: &[u8; 8] = b"VEFSTATE";
/// Number of the layout of the state within a version of the library, in the digest.
const LAYOUT: u32 = 4;

/// Why a replay cannot be saved, or does not take a checkpoint; the replay is as it was.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// These are other bytes.
    #[error("not a checkpoint of a replay")]
    NoCheckpoint,
    /// Some bytes are missing, or others than were saved.
    #[error("the checkpoint is cut or damaged")]
    Damaged,
    /// It was saved by a replay of other traces, on other nodes or with other options, or by another version of this library.
    #[error("the checkpoint is of another replay: traces, placement, options or version differ")]
    OtherReplay,
    /// An error in the trace has ended the replay.
    #[error("a replay that ended with an error cannot be saved")]
    Ended,
    /// Jobs are open that the replay was not built with.
    #[error("a replay cannot be saved while instances of jobs are open; close them when they are over")]
    Instances,
    /// The trace cannot be read again.
    #[error(transparent)]
    Source(SourceError),
}

/// What a checkpoint has of a job: lines, collectives entered, groups, open collectives, early messages, and how often tasks have read.
type SavedJob = (
    Lines,
    States,
    HashMap<CommId, u32>,
    HashMap<CollectiveId, u32>,
    HashMap<CollectiveId, Vec<(u32, u32)>>,
    Vec<u64>,
);

/// The numbers and texts of an engine beside its tables.
#[derive(Serialize, Deserialize)]
struct Counters {
    unfinished: u64,
    begun: bool,
    refused: u64,
    first_refusal: Option<String>,
    parts_unfinished: u64,
    instances_finish: Picos,
}

/// Bytes that are written to be digested.
struct Digest(crc32fast::Hasher);

impl Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

impl Engine {
    /// The same replay before its beginning: [`Engine::begin`] starts it again, and ids of messages that were under way are void. Traces are
    /// not opened again; a text is read into memory, once. Instances of jobs are gone.
    ///
    /// # Errors
    /// The trace cannot be read again; the replay is as it was.
    pub fn reset(&mut self) -> Result<(), ReplayError> {
        self.drop_instances();
        let again = self.again().map_err(ReplayError::Source)?;
        for (job, again) in self.jobs.iter_mut().zip(again) {
            job.restart(again);
            job.groups.clear();
            job.open.clear();
            job.early.clear();
            (job.unfinished, job.under_way) = (if job.on_call { 0 } else { job.tasks }, 0);
        }
        let jobs = &self.jobs;
        self.unfinished = 0;
        for sequence in &mut self.sequences {
            let is_elsewhere = sequence.wait == Wait::Elsewhere;
            let job = &jobs[sequence.job as usize];
            *sequence = Sequence::new(sequence.job, sequence.rank, job.start);
            match (is_elsewhere, job.on_call) {
                (true, _) => sequence.wait = Wait::Elsewhere,
                (false, true) => sequence.wait = Wait::Finished,
                (false, false) => self.unfinished += 1,
            }
        }
        self.collectives.reset();
        self.live.flights.clear();
        self.live.stats = Stats::default();
        if let Some(in_calls) = &mut self.live.in_calls {
            in_calls.reset();
        }
        if let Some(partition) = &mut self.partition {
            partition.exported.clear();
            partition.imported.clear();
        }
        (self.begun, self.ended, self.refused, self.first_refusal) = (false, false, 0, None);
        Ok(())
    }

    /// The state of the replay. The simulator saves what it has of its own: its events with the ids of messages ([`LiveId::to_raw`](crate::LiveId::to_raw)) and
    /// wake-ups ([`Wake::to_raw`](crate::Wake::to_raw)), which stay valid.
    ///
    /// # Errors
    /// [`CheckpointError::Ended`], [`CheckpointError::Instances`].
    pub fn save(&self) -> Result<Vec<u8>, CheckpointError> {
        self.save_with(&())
    }

    /// Takes over the state of a replay of the same traces, placement and options, saved by this or another process. Ids of messages that were
    /// under way here are void, as are instances of jobs. A text is read into memory for it.
    ///
    /// # Errors
    /// The bytes are no checkpoint of this replay, or the trace cannot be read again.
    pub fn restore(&mut self, checkpoint: &[u8]) -> Result<(), CheckpointError> {
        self.restore_with(checkpoint)
    }

    /// As [`Engine::save`], with what the simulator has beside it.
    ///
    /// # Errors
    /// As [`Engine::save`]; [`CheckpointError::Damaged`] if `beside` has no length that is known beforehand.
    pub fn save_with(&self, beside: &impl Serialize) -> Result<Vec<u8>, CheckpointError> {
        if self.ended {
            return Err(CheckpointError::Ended);
        }
        if self.has_instances() {
            return Err(CheckpointError::Instances);
        }
        let jobs: Vec<_> = self
            .jobs
            .iter()
            .map(|job| {
                let Running { lines, collectives, groups, open, early, .. } = job;
                let first = job.first_task as usize;
                let sequences = &self.sequences[first..first + job.tasks as usize];
                let reads = |sequence: &Sequence| match self.begun && sequence.wait != Wait::Elsewhere {
                    true => job.reads(sequence),
                    false => 0,
                };
                (lines, collectives, groups, open, early, sequences.iter().map(reads).collect::<Vec<u64>>())
            })
            .collect();
        let counters = Counters {
            unfinished: self.unfinished,
            begun: self.begun,
            refused: self.refused,
            first_refusal: self.first_refusal.clone(),
            parts_unfinished: self.collectives.unfinished,
            instances_finish: self.instances.finish,
        };
        let collectives = (&self.collectives.open, &self.collectives.parts, &self.collectives.groups);
        let live = (&self.live.flights, &self.live.stats, &self.live.in_calls);
        let partition = self.partition.as_ref().map(|partition| (&partition.exported, &partition.imported));
        let state =
            (jobs, &self.sequences, collectives, self.collectives.positions(), live, partition, counters);
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.digest().to_le_bytes());
        bytes = postcard::to_extend(&(state, beside), bytes).map_err(|_| CheckpointError::Damaged)?;
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        Ok(bytes)
    }

    /// As [`Engine::restore`], of what [`Engine::save_with`] has saved: returns what was beside it.
    ///
    /// # Errors
    /// As [`Engine::restore`].
    pub fn restore_with<T: DeserializeOwned>(&mut self, checkpoint: &[u8]) -> Result<T, CheckpointError> {
        let rest = checkpoint.strip_prefix(MAGIC).ok_or(CheckpointError::NoCheckpoint)?;
        let (rest, checksum) = rest.split_last_chunk::<4>().ok_or(CheckpointError::Damaged)?;
        let checked = &checkpoint[..checkpoint.len() - checksum.len()];
        if crc32fast::hash(checked).to_le_bytes() != *checksum {
            return Err(CheckpointError::Damaged);
        }
        let (digest, state) = rest.split_first_chunk::<4>().ok_or(CheckpointError::Damaged)?;
        if self.digest().to_le_bytes() != *digest {
            return Err(CheckpointError::OtherReplay);
        }
        let damaged = |_| CheckpointError::Damaged;
        #[rustfmt::skip]
        let (state, beside) = postcard::from_bytes::<(
            (
                Vec<SavedJob>, Vec<Sequence>, (_, _, _), Vec<(u32, [u32; 4])>, (SlotMap<DefaultKey, Flight>, Stats, Option<Box<InCalls>>),
                Option<(HashMap<u32, u32>, HashMap<u32, Imported>)>, Counters,
            ),
            T,
        )>(state).map_err(damaged)?;
        let (
            jobs,
            sequences,
            (open, parts, groups),
            positions,
            (flights, stats, in_calls),
            partition,
            counters,
        ) = state;
        let tasks = |in_calls: &Option<Box<InCalls>>| in_calls.as_ref().map(|in_calls| in_calls.tasks());
        if jobs.len() != self.jobs.len()
            || sequences.len() != self.sequences.len()
            || tasks(&in_calls) != tasks(&self.live.in_calls)
        {
            return Err(CheckpointError::Damaged);
        }
        let mut again = self.again().map_err(CheckpointError::Source)?;
        for (again, (.., reads)) in again.iter_mut().zip(&jobs) {
            skip(again, reads).map_err(CheckpointError::Source)?;
        }
        // From here on nothing fails but what contradicts itself in spite of its checksum: that ends the replay.
        self.ended = true;
        for ((job, again), (lines, collectives, groups, open, early, _)) in
            self.jobs.iter_mut().zip(again).zip(jobs)
        {
            job.restart(again);
            (job.lines, job.collectives) = (lines, collectives);
            (job.groups, job.open, job.early) = (groups, open, early);
        }
        self.sequences = sequences;
        self.count_unfinished(&flights).ok_or(CheckpointError::Damaged)?;
        let tables = (open, parts, groups, counters.parts_unfinished);
        self.collectives.restore(tables, &positions).ok_or(CheckpointError::Damaged)?;
        (self.live.flights, self.live.stats, self.live.in_calls) = (flights, stats, in_calls);
        if let (Some(here), Some((exported, imported))) = (&mut self.partition, partition) {
            (here.exported, here.imported) = (exported, imported);
        }
        let Counters { unfinished, begun, refused, first_refusal, instances_finish, .. } = counters;
        self.instances.finish = instances_finish;
        (self.unfinished, self.begun, self.refused, self.first_refusal) =
            (unfinished, begun, refused, first_refusal);
        self.ended = false;
        Ok(beside)
    }

    /// Counts what is left of each job, of which these messages are under way; `None` if one of them has no receiver.
    fn count_unfinished(&mut self, flights: &SlotMap<DefaultKey, Flight>) -> Option<()> {
        let Self { jobs, sequences, .. } = self;
        jobs.iter_mut().for_each(|job| (job.unfinished, job.under_way) = (0, 0));
        for sequence in &*sequences {
            jobs.get_mut(sequence.job as usize)?.unfinished += u32::from(sequence.wait != Wait::Finished);
        }
        for flight in flights.values() {
            let receiver = sequences.get(flight.receiver as usize)?;
            jobs.get_mut(receiver.job as usize)?.under_way += 1;
        }
        Some(())
    }

    /// Another reading of each job, from the start.
    fn again(&self) -> Result<Vec<Reading>, SourceError> {
        let tell_sends = self.send_completion() != SendCompletion::Eager;
        self.jobs.iter().map(|job| job.again(tell_sends)).collect()
    }

    /// Of all that decides how the replay goes on, but for the records of the traces.
    fn digest(&self) -> u32 {
        let mut digest = Digest(crc32fast::Hasher::new());
        let live = &self.live;
        let _ = write!(digest, "{} {LAYOUT} {:?} ", env!("CARGO_PKG_VERSION"), live.nodes);
        let _ = write!(digest, "{:?} {:?} {} ", live.send_completion, live.same_node, live.run_ahead);
        let _ = write!(digest, "{:?} {:?} ", self.collectives.table, self.collectives.events);
        let _ = write!(digest, "{:?} ", self.partition.as_ref().map(|partition| partition.number));
        for job in &self.jobs {
            let Running { source, scale, table, start, skipped, spans, from_launch, changes, .. } = job;
            let changes =
                changes.as_ref().map(|changes| (changes.computing.is_some(), changes.part.is_some()));
            let _ = write!(digest, "{:?} {scale:?} {table:?} {start:?} {changes:?} ", source.header());
            let _ = write!(digest, "{skipped:?} {spans:?} {from_launch} ");
        }
        digest.0.finalize()
    }
}

/// Reads the records that tasks have read, so often each.
fn skip((source, changes): &mut Reading, reads: &[u64]) -> Result<(), SourceError> {
    for (task, &reads) in (0..).map(Rank).zip(reads) {
        let (mut record, mut number) = (Raw::NOTHING, 0);
        for _ in 0..reads {
            match changes {
                Some(changes) => changes.next(source, task, &mut number, &mut record)?,
                None => source.next(task, &mut record)?,
            }
            // Nothing comes behind the end.
            if record.tag & KIND == NOTHING {
                break;
            }
        }
    }
    Ok(())
}
