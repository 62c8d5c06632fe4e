//! Captures that an application of given size would leave behind, made up reproducibly: the tasks stand in a torus
//! of three dimensions, exchange halos with their six neighbours (Irecv, Isend, Waitall), compute, and combine a
//! few numbers every so many iterations. This is the traffic of the codes whose traces are largest: molecular
//! dynamics and stencils.

use std::path::Path;
use vef_format::capture::event::{
    Action, Collective, Communicator, Completion, Completions, DatatypeId, Event, Members, Origin, Outcome,
    PostReceive, Remote, RequestId, Send, SendMode,
};
use vef_format::capture::{CaptureError, RankInfo, RankWriter};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::{Amounts, Operation};
use vef_format::units::{Bytes, Nanos};

/// How large a capture to make, and how even.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Number of tasks, at least 2.
    pub tasks: u32,
    /// About how many records the trace will have.
    pub records: u64,
    /// How far task 0 is ahead: it sends this many iterations' messages to task 1 before anybody receives any, so
    /// that matching events lie that far apart. 0: nobody is ahead.
    pub ahead: u64,
}

/// Iterations between two collectives.
const COMBINE: u64 = 4;

impl Workload {
    /// Neighbours of a task in each direction, on the most cubic torus of this many tasks; itself is none.
    fn neighbours(&self, rank: u32) -> Vec<u32> {
        let sides = sides(self.tasks);
        let (x, rest) = (rank % sides[0], rank / sides[0]);
        let at = [x, rest % sides[1], rest / sides[1]];
        let mut found = Vec::new();
        for axis in 0..3 {
            for step in [1, sides[axis] - 1] {
                let mut to = at;
                to[axis] = (at[axis] + step) % sides[axis];
                found.push(to[0] + sides[0] * (to[1] + sides[1] * to[2]));
            }
        }
        found.retain(|&other| other != rank);
        found
    }

    /// Records of one task in one iteration, on average.
    fn records_each(&self) -> f64 {
        2.0 * self.neighbours(0).len() as f64 + 1.0 / COMBINE as f64
    }

    /// Writes the capture into the directory `dir`; says how many bytes it has.
    pub fn write(&self, dir: &Path) -> Result<u64, CaptureError> {
        let iterations = (self.records as f64 / self.records_each() / f64::from(self.tasks)).ceil() as u64;
        let mut bytes = 0;
        for rank in 0..self.tasks {
            self.write_rank(dir, rank, iterations.max(1))?;
            let path = vef_format::capture::rank_path(dir, Rank(rank));
            bytes += std::fs::metadata(path).map_or(0, |file| file.len());
        }
        Ok(bytes)
    }

    fn write_rank(&self, dir: &Path, rank: u32, iterations: u64) -> Result<(), CaptureError> {
        let info = RankInfo {
            rank: Rank(rank),
            tasks: self.tasks,
            host: format!("node{}", rank / 64),
            program: vec!["halo".into()],
            ..RankInfo::default()
        };
        let mut author = Author {
            writer: RankWriter::create(dir, &info)?,
            // Reproducible, and different for each task.
            random: u64::from(rank).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: 1_000_000,
            requests: 0,
        };
        author.call(2_000_000, Action::Init)?;
        author.call(
            0,
            Action::Communicator(Communicator {
                id: CommId(0),
                origin: Origin::World,
                split: None,
                members: Members::All,
                remote: Remote::None,
                foreign: false,
            }),
        )?;
        let neighbours = self.neighbours(rank);
        if self.ahead > 0 && rank == 0 {
            for _ in 0..self.ahead {
                author.send(1, 7, None)?;
            }
        }
        for iteration in 0..iterations {
            let base = iteration * 100_000;
            author.now = author.now.max(3_000_000 + base) + author.chance(20_000);
            let mut open = Vec::with_capacity(2 * neighbours.len());
            for (axis, &from) in neighbours.iter().enumerate() {
                let request = author.request();
                author.post(from, (axis ^ 1) as i32, request)?;
                open.push(Completion { request, outcome: Outcome::Done });
            }
            for (axis, &to) in neighbours.iter().enumerate() {
                let request = author.request();
                author.send(to, axis as i32, Some(request))?;
                open.push(Completion { request, outcome: Outcome::Done });
            }
            let wait = 60_000 - author.chance(4_000);
            author.call(wait, Action::Complete(Completions::List(&open)))?;
            if iteration % COMBINE == COMBINE - 1 {
                author.combine()?;
            }
        }
        if self.ahead > 0 && rank == 1 {
            for _ in 0..self.ahead {
                let request = author.request();
                author.post(0, 7, request)?;
                author.call(
                    300,
                    Action::Complete(Completions::List(&[Completion { request, outcome: Outcome::Done }])),
                )?;
            }
        }
        author.call(100_000, Action::Finalize)?;
        author.writer.finish()
    }
}

/// The sides of the most cubic box with room for exactly `tasks`.
fn sides(tasks: u32) -> [u32; 3] {
    let mut best = [tasks, 1, 1];
    let spread = |sides: &[u32; 3]| sides.iter().max().zip(sides.iter().min()).map(|(a, b)| a - b);
    for a in (1..=tasks).take_while(|a| a * a <= tasks).filter(|a| tasks.is_multiple_of(*a)) {
        let rest = tasks / a;
        for b in (1..=rest).take_while(|b| b * b <= rest).filter(|b| rest.is_multiple_of(*b)) {
            let sides = [a, b, rest / b];
            if spread(&sides) < spread(&best) {
                best = sides;
            }
        }
    }
    best
}

/// Writes the events of one task, one after the other.
struct Author {
    writer: RankWriter,
    random: u64,
    now: u64,
    requests: u64,
}

impl Author {
    /// Below `limit`, by a xorshift generator.
    fn chance(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    fn request(&mut self) -> RequestId {
        self.requests += 1;
        RequestId { thread: 0, number: self.requests - 1 }
    }

    /// A call of `duration` nanoseconds, a little after the one before.
    fn call(&mut self, duration: u64, action: Action<'_>) -> Result<(), CaptureError> {
        let start = self.now + 50 + self.chance(400);
        self.now = start + duration;
        let call = self.writer.function(match action {
            Action::Send(_) => "MPI_Isend",
            Action::PostReceive(_) => "MPI_Irecv",
            Action::Complete(_) => "MPI_Waitall",
            Action::Collective(_) => "MPI_Allreduce",
            Action::Finalize => "MPI_Finalize",
            _ => "MPI_Init",
        })?;
        self.writer.event(&Event { start: Nanos(start), end: Nanos(self.now), thread: 0, call, action })
    }

    fn send(&mut self, to: u32, tag: i32, request: Option<RequestId>) -> Result<(), CaptureError> {
        let duration = 200 + self.chance(300);
        let bytes = Bytes(512 + 8 * self.chance(4000));
        let (comm, datatype) = (CommId(0), DatatypeId(0));
        let (dest, mode) = (CommRank(to), SendMode::Standard);
        self.call(duration, Action::Send(Send { comm, dest, tag, bytes, datatype, mode, request }))
    }

    fn post(&mut self, from: u32, tag: i32, request: RequestId) -> Result<(), CaptureError> {
        let duration = 100 + self.chance(100);
        let (comm, datatype, bytes) = (CommId(0), DatatypeId(0), Bytes(40_000));
        let (source, tag) = (Some(CommRank(from)), Some(tag));
        self.call(duration, Action::PostReceive(PostReceive { comm, source, tag, bytes, datatype, request }))
    }

    fn combine(&mut self) -> Result<(), CaptureError> {
        let amounts = Amounts { send: Bytes(48), recv: Bytes(48) };
        self.call(
            12_000,
            Action::Collective(Collective {
                operation: Operation::Allreduce,
                comm: CommId(0),
                root: None,
                amounts,
                count: 0,
                datatype: DatatypeId(0),
                recv_datatype: None,
                request: None,
                send_counts: &[],
                recv_counts: &[],
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_as_cubic_as_can_be() {
        let sorted = |tasks| {
            let mut sides = sides(tasks);
            sides.sort_unstable();
            sides
        };
        assert_eq!(sorted(64), [4, 4, 4]);
        assert_eq!(sorted(240), [5, 6, 8]);
        assert_eq!(sorted(7), [1, 1, 7]);
    }

    #[test]
    fn captures_mix_to_the_size_asked_for() {
        for ahead in [0, 300] {
            let dir = tempfile::tempdir().expect("a directory");
            let workload = Workload { tasks: 12, records: 10_000, ahead };
            workload.write(&dir.path().join("capture")).expect("written");
            let (trace, options) = (dir.path().join("t.vef"), mixer::Options::default());
            let summary =
                mixer::mix(&dir.path().join("capture"), &trace, &options, &mixer::Quiet).expect("mixed");
            assert_eq!(summary.matched, summary.messages);
            let beside = summary.records - 2 * ahead;
            assert!((10_000..10_800).contains(&beside), "{beside} records");
        }
    }
}
