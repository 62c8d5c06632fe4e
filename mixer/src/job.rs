//! The processes of an MPI job that mix one capture together: `mpirun -n P vef mix …`. A process that was not started by a
//! launcher is a job of one.
//!
//! Each process reads its share of the ranks, in parts if necessary. Each pair of processes exchanges the ends of the
//! channels between them. Rank 0 requests the records of the others window by window, merges them and writes. MPI is
//! loaded at run time. A process that waits sleeps, so there may be more processes than cores.

use crate::error::{JobError, MixError, SeenCapture};
use crate::parts::Parts;
use crate::window::Window;
use crate::wire;
use mpi_abi::api::{Envelope, Mpi};
use mpi_abi::handles::Comm;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ops::Range;
use std::path::Path;
use vef_format::capture::Capture;

/// The processes that share a mix, and the rank of this one.
#[derive(Debug)]
pub struct Job {
    /// `None`: this process is alone, and sends nothing.
    mpi: Option<(Mpi, Comm)>,
    rank: u32,
    size: u32,
}

/// Maximum bytes of one transfer: MPI counts are C `int`s.
const CHUNK: usize = 256 << 20;
/// How many windows rank 0 requests ahead.
const AHEAD: usize = 2;
/// Requests a window.
const GO: u8 = 1;
/// Ends the requests.
const STOP: u8 = 0;
/// Sent instead of a window after an error, which the process reports later. No encoded window has one byte.
pub(crate) const FAILED: &[u8] = &[0];

type Outcome<T> = Result<T, MixError>;

impl Job {
    /// The job of this process alone.
    pub fn alone() -> Self {
        Self { mpi: None, rank: 0, size: 1 }
    }

    /// The job of the processes that the launcher of this one started; initialises MPI if there are several.
    ///
    /// # Errors
    /// [`MixError::Job`].
    pub fn of_launcher() -> Outcome<Self> {
        match launched(|variable| std::env::var(variable).ok()) {
            promised @ 2.. => Ok(Self::start(promised)?),
            _ => Ok(Self::alone()),
        }
    }

    fn start(promised: u32) -> Result<Self, JobError> {
        let mpi = Mpi::open(None)?;
        mpi.init_thread(mpi.abi().constants.thread_serialized)?;
        let comm = mpi.abi().comm_world();
        let (rank, size) = (mpi.comm_rank(comm)? as u32, mpi.comm_size(comm)? as u32);
        if size != promised {
            let library = mpi.abi().version.lines().next().unwrap_or_default().to_owned();
            return Err(JobError::OtherMpi { promised, found: size, library });
        }
        Ok(Self { mpi: Some((mpi, comm)), rank, size })
    }

    /// Rank of this process. Rank 0 talks to the user.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of processes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Finalises MPI when all processes have called this function.
    ///
    /// # Errors
    /// [`MixError::Job`].
    pub fn finish(self) -> Outcome<()> {
        // Sleeps until all processes are here; MPI_Finalize may poll.
        self.agree(Ok(())).ok();
        Ok(self.mpi.map_or(Ok(()), |(mpi, _)| mpi.finalize()).map_err(JobError::from)?)
    }

    /// The ranks of the capture that this process reads.
    pub(crate) fn share(&self, tasks: u32) -> Range<u32> {
        share(tasks, self.rank, self.size)
    }

    /// The name of this node. Without one each process counts as alone on its node.
    fn node(&self) -> String {
        let nameless = || format!("process {}", self.rank);
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .map_or_else(|_| nameless(), |name| name.trim().to_owned())
    }

    /// Checks in rank 0 that all processes have opened one capture.
    pub(crate) fn have_one_capture(&self, path: &Path, opened: &Capture) -> Outcome<()> {
        let own = SeenCapture {
            path: path.canonicalize().unwrap_or_else(|_| path.to_path_buf()).display().to_string(),
            tasks: opened.tasks(),
            identity: opened.identity(),
            process: self.rank,
            host: self.node(),
        };
        let mut all = self.gather(own)?.into_iter();
        let Some(first) = all.next() else { return Ok(()) };
        match all.find(|other| other.identity != first.identity) {
            Some(other) => Err(JobError::OtherCapture(Box::new([first, other])).into()),
            None => Ok(()),
        }
    }

    /// Number of processes on this node, including this one.
    pub(crate) fn on_this_node(&self) -> Outcome<u64> {
        let node = self.node();
        Ok(self.all(node.clone())?.into_iter().filter(|other| *other == node).count() as u64)
    }

    /// Collects the parts of all processes; `own` are those of this one.
    pub(crate) fn all_parts(&self, own: &[Range<u32>], tasks: u32) -> Outcome<Parts> {
        let ends: Vec<u32> = own.iter().map(|part| part.end).collect();
        let of = |(rank, ends): (u32, Vec<u32>)| {
            let mut begin = share(tasks, rank, self.size).start;
            ends.into_iter().map(|end| std::mem::replace(&mut begin, end)..end).collect()
        };
        Ok(Parts::new((0..).zip(self.all(ends)?).map(of), self.rank))
    }

    /// Returns `outcome` if the step succeeded in all processes. Otherwise rank 0 returns the error of the lowest rank.
    pub(crate) fn agree<T>(&self, outcome: Outcome<T>) -> Outcome<T> {
        let text = match &outcome {
            // `ReportedByPeer` means that another process has the error.
            Ok(_) | Err(MixError::ReportedByPeer) => None,
            Err(error) => Some(complete_text(error)),
        };
        let texts = self.gather(text)?;
        let first = (0..).zip(texts).find_map(|(from, text)| Some((from, text?)));
        match (self.spread(first.is_none())?, first, outcome) {
            (true, _, outcome) => outcome,
            // Rank 0's own error keeps its type.
            (false, Some((0, _)), Err(own)) => Err(own),
            (false, Some((_, text)), _) => Err(MixError::PeerError(text)),
            (false, None, _) => Err(MixError::ReportedByPeer),
        }
    }

    /// Exchanges data between processes: `export(part)` returns the data for another process's part, `import(part, data)` takes
    /// the data for an own part. After an error a process continues to communicate, so that no other blocks.
    pub(crate) fn exchange(
        &self,
        parts: &Parts,
        export: impl Fn(usize) -> Outcome<Vec<u8>>,
        mut import: impl FnMut(usize, Vec<u8>) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut outcome = Ok(());
        for step in 1..self.size {
            let to = (self.rank + step) % self.size;
            let from = (self.rank + self.size - step) % self.size;
            let (mut theirs, mut own) = (parts.of(to), parts.own());
            loop {
                let (about, mine) = (theirs.next(), own.next());
                if about.is_none() && mine.is_none() {
                    break;
                }
                let mut exported = Vec::new();
                if let (Some(part), Ok(())) = (about, &outcome) {
                    match export(part) {
                        Ok(bytes) => exported = bytes,
                        Err(error) => outcome = Err(error),
                    }
                }
                let imported = self.swap(about.map(|_| (&exported[..], to)), mine.map(|_| from))?;
                drop(exported);
                if let (Some(part), Ok(())) = (mine, &outcome) {
                    outcome = import(part, imported);
                }
            }
        }
        outcome
    }

    /// Passes the data of all processes, by ascending rank, to `each` in rank 0. After an error a process continues to
    /// communicate, so that no other blocks.
    pub(crate) fn collect(
        &self,
        own: impl Iterator<Item = Outcome<Vec<u8>>>,
        mut each: impl FnMut(&[u8]) -> Outcome<()>,
    ) -> Outcome<()> {
        let mut outcome = Ok(());
        for bytes in own {
            match (bytes, self.rank) {
                (Ok(bytes), 0) => outcome = each(&bytes),
                (Ok(bytes), _) if bytes.is_empty() => {}
                (Ok(bytes), _) => self.send(&bytes, 0)?,
                (Err(error), _) => outcome = Err(error),
            }
            if outcome.is_err() {
                break;
            }
        }
        if self.rank > 0 {
            // An empty message ends the list.
            self.send(&[], 0)?;
            return outcome;
        }
        for from in 1..self.size {
            loop {
                let bytes = self.receive(from)?;
                if bytes.is_empty() {
                    break;
                }
                outcome = outcome.and_then(|()| each(&bytes));
            }
        }
        outcome
    }

    /// The values of all processes, by rank.
    pub(crate) fn all<T: Serialize + DeserializeOwned>(&self, own: T) -> Outcome<Vec<T>> {
        self.spread(self.gather(own)?)
    }

    /// The values of all processes, by rank, in rank 0; none in the others.
    pub(crate) fn gather<T: Serialize + DeserializeOwned>(&self, own: T) -> Outcome<Vec<T>> {
        if self.rank > 0 {
            self.send(&encoded(&own)?, 0)?;
            return Ok(Vec::new());
        }
        // Receive from all processes even after an error, so that none blocks.
        let received: Vec<Outcome<T>> =
            (1..self.size).map(|from| self.receive(from).and_then(|data| decoded(&data))).collect();
        std::iter::once(Ok(own)).chain(received).collect()
    }

    /// Rank 0's value, which is passed down a binary tree.
    pub(crate) fn spread<T: Serialize + DeserializeOwned>(&self, own: T) -> Outcome<T> {
        if self.size == 1 {
            return Ok(own);
        }
        let data = match self.rank {
            0 => encoded(&own)?,
            rank => self.receive((rank - 1) / 2)?,
        };
        for child in [2 * self.rank + 1, 2 * self.rank + 2] {
            if child < self.size {
                self.send(&data, child)?;
            }
        }
        decoded(&data)
    }

    /// Waits for rank 0's request and sends it `block`; returns `false` if rank 0 requests no more.
    pub(crate) fn answer(&self, block: &[u8]) -> Outcome<bool> {
        let mut word = [STOP];
        self.transfer(None, Some((&mut word, 0)))?;
        if word == [GO] {
            self.send(block, 0)?;
        }
        Ok(word == [GO])
    }

    fn send(&self, bytes: &[u8], to: u32) -> Outcome<()> {
        self.swap(Some((bytes, to)), None).map(drop)
    }

    fn receive(&self, from: u32) -> Outcome<Vec<u8>> {
        self.swap(None, Some(from))
    }

    /// Sends to one process, receives from another, or both at once.
    fn swap(&self, data: Option<(&[u8], u32)>, from: Option<u32>) -> Outcome<Vec<u8>> {
        let (bytes, to) = data.unwrap_or_default();
        let (ours, mut theirs) = ((bytes.len() as u64).to_le_bytes(), [0; 8]);
        self.transfer(data.map(|_| (&ours[..], to)), from.map(|from| (&mut theirs[..], from)))?;
        let mut received = vec![0; u64::from_le_bytes(theirs) as usize];
        let (mut out, mut into) = (bytes.chunks(CHUNK), received.chunks_mut(CHUNK));
        loop {
            match (out.next(), into.next()) {
                (None, None) => return Ok(received),
                (out, into) => self.transfer(out.map(|out| (out, to)), into.zip(from))?,
            }
        }
    }

    fn transfer(&self, out: Option<(&[u8], u32)>, into: Option<(&mut [u8], u32)>) -> Outcome<()> {
        const TAG: i32 = 1;
        let Some((mpi, comm)) = &self.mpi else { return Ok(()) };
        let with = |rank: u32| Envelope::new(rank as i32, TAG, *comm);
        let out = out.map(|(bytes, to)| (bytes, with(to)));
        let into = into.map(|(bytes, from)| (bytes, with(from)));
        Ok(mpi.transfer_asleep(out, into).map_err(JobError::from)?)
    }
}

fn encoded<T: Serialize>(value: &T) -> Outcome<Vec<u8>> {
    postcard::to_allocvec(value).map_err(|_| MixError::Garbled)
}

fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Outcome<T> {
    postcard::from_bytes(bytes).map_err(|_| MixError::Garbled)
}

/// Rank 0's requests for windows of the other processes: a few at a time, to bound memory.
pub(crate) struct WindowRequests<'a> {
    job: &'a Job,
    windows: usize,
    /// Windows requested from each process, and windows received.
    asked: usize,
    came: usize,
}

impl<'a> WindowRequests<'a> {
    /// For `windows` windows.
    pub(crate) fn new(job: &'a Job, windows: usize) -> Self {
        Self { job, windows, asked: 0, came: 0 }
    }

    /// Adds the next window of all other processes.
    pub(crate) fn fill(&mut self, window: &mut Window) -> Outcome<()> {
        while self.asked < self.windows.min(self.came + AHEAD) {
            self.ask(GO)?;
        }
        self.came += 1;
        let mut outcome = Ok(());
        for from in 1..self.job.size {
            let block = self.job.receive(from)?;
            outcome = outcome.and_then(|()| match &block[..] {
                FAILED => Err(MixError::ReportedByPeer),
                records => Ok(wire::decode(records, window)?),
            });
        }
        outcome
    }

    fn ask(&mut self, what: u8) -> Outcome<()> {
        self.asked += 1;
        (1..self.job.size).try_for_each(|to| self.job.transfer(Some((&[what], to)), None))
    }

    /// Ends the requests; `whole`: all windows were received.
    pub(crate) fn finish(&mut self, whole: bool) -> Outcome<()> {
        if whole {
            return Ok(());
        }
        for _ in self.came..self.asked {
            for from in 1..self.job.size {
                self.job.receive(from)?;
            }
        }
        if self.asked < self.windows { self.ask(STOP) } else { Ok(()) }
    }
}

/// The share of process `rank` of `size`: consecutive ranks of the capture, as even as possible.
fn share(tasks: u32, rank: u32, size: u32) -> Range<u32> {
    let begin = |rank: u32| (u64::from(tasks) * u64::from(rank) / u64::from(size)) as u32;
    begin(rank)..begin(rank + 1)
}

/// Number of processes that the launcher started. Variables that batch systems also set outside of their launchers are
/// ignored.
fn launched(variable: impl Fn(&str) -> Option<String>) -> u32 {
    ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"]
        .iter()
        .find_map(|name| variable(name)?.trim().parse().ok())
        .unwrap_or(1)
}

/// An error and its causes in one line.
fn complete_text(error: &MixError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_whole() {
        for (tasks, size) in [(0, 3), (1, 3), (10, 3), (4096, 8), (7, 7)] {
            let mut at = 0;
            for rank in 0..size {
                let share = share(tasks, rank, size);
                assert_eq!(share.start, at);
                assert!(share.len() as u32 <= tasks / size + 1);
                at = share.end;
            }
            assert_eq!(at, tasks);
        }
    }

    #[test]
    fn launchers_say_how_many_they_started() {
        let of = |name: &'static str, value: &'static str| {
            launched(move |variable| (variable == name).then(|| value.to_owned()))
        };
        assert_eq!(of("OMPI_COMM_WORLD_SIZE", "4"), 4);
        assert_eq!(of("PMI_SIZE", "3"), 3);
        assert_eq!(of("SLURM_STEP_NUM_TASKS", "8"), 8);
        assert_eq!(of("SLURM_NTASKS", "8"), 1);
        assert_eq!(of("PMI_SIZE", "many"), 1);
    }
}
