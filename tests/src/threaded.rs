//! Random programs of several threads that MPI promises to run to their end, as plans for `tests/c/threaded.c`.
//!
//! A plan is made as a sequence of interactions: a message from one thread to another, a collective of one thread of each member, or a
//! signal between threads of a rank that MPI does not see. Every thread does its part of them in that order, so nobody waits in
//! a circle, even if every send waits for its receive and all members of a collective for each other.

use rand::rngs::SmallRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, SeedableRng};
use std::fmt::Write;

/// A message of the plan; its size is that of no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planned {
    /// Its sender and its receiver.
    pub ranks: (u32, u32),
    /// Its size.
    pub bytes: u64,
}

/// What a thread sends, or takes part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A message.
    Send(Planned),
    /// A collective operation, by name, and the bytes of the call.
    Collective(&'static str, u64),
}

/// A program.
#[derive(Debug)]
pub struct Plan {
    /// How many ranks.
    pub ranks: u32,
    /// What `tests/c/threaded.c` reads.
    pub text: String,
    /// What each thread of each rank does, in its order.
    pub deeds: Vec<Vec<Vec<Deed>>>,
}

/// A communicator: its members, and which thread of each makes its calls.
struct Comm {
    members: Vec<u32>,
    threads: Vec<u16>,
}

struct Making {
    random: SmallRng,
    lines: Vec<Vec<Vec<String>>>,
    deeds: Vec<Vec<Vec<Deed>>>,
    comms: Vec<Comm>,
    /// Receives that were posted, and sends that were started, and are not waited for: rank, thread, request.
    open: Vec<(u32, u16, u32)>,
    requests: Vec<u32>,
    signals: Vec<u32>,
    messages: u64,
}

const OPERATIONS: [&str; 6] = ["Barrier", "Bcast", "Reduce", "Allreduce", "Allgather", "Alltoall"];

impl Plan {
    /// The program of this seed: 2 to 6 ranks with 1 to 3 threads each.
    pub fn of(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let ranks = random.random_range(2..=6u32);
        let threads: Vec<u16> = (0..ranks).map(|_| random.random_range(1..=3)).collect();
        let empty = |&threads: &u16| vec![Vec::new(); usize::from(threads)];
        let (lines, deeds) = (
            threads.iter().map(empty).collect(),
            threads.iter().map(|&threads| vec![Vec::new(); usize::from(threads)]).collect(),
        );
        let mut making = Making {
            random,
            lines,
            deeds,
            comms: Vec::new(),
            open: Vec::new(),
            requests: vec![0; ranks as usize],
            signals: vec![0; ranks as usize],
            messages: 0,
        };
        making.communicators(ranks);
        for _ in 0..making.random.random_range(10..120) {
            match making.random.random_range(0..100) {
                0..55 => making.message(),
                55..70 => making.collective(),
                70..80 => making.signal(),
                80..92 => making.wait(),
                _ => making.compute(),
            }
        }
        while !making.open.is_empty() {
            making.wait();
        }
        making.told(ranks)
    }
}

impl Making {
    fn communicators(&mut self, ranks: u32) {
        for number in 0..self.random.random_range(1..6) {
            let mut members: Vec<u32> = (0..ranks).collect();
            if number > 0 && self.random.random_bool(0.5) {
                members.retain(|_| self.random.random_bool(0.6));
                if members.is_empty() {
                    members.push(0);
                }
            }
            // MPI wants the calls of a rank on a communicator in one order: one thread makes them.
            let threads = members
                .iter()
                .map(|&rank| self.random.random_range(0..self.lines[rank as usize].len()) as u16);
            let threads = threads.collect();
            self.comms.push(Comm { members, threads });
        }
    }

    fn line(&mut self, rank: u32, thread: u16, text: String) {
        self.lines[rank as usize][usize::from(thread)].push(text);
    }

    fn request(&mut self, rank: u32, thread: u16) -> u32 {
        let number = self.requests[rank as usize];
        self.requests[rank as usize] += 1;
        self.open.push((rank, thread, number));
        number
    }

    fn some_thread(&mut self, rank: u32) -> u16 {
        self.random.random_range(0..self.lines[rank as usize].len()) as u16
    }

    fn message(&mut self) {
        let world: Vec<usize> =
            (0..self.comms.len()).filter(|&at| self.comms[at].members.len() > 1).collect();
        let comm = *world.choose(&mut self.random).expect("the world has two members");
        let members = self.comms[comm].members.clone();
        let pair: Vec<u32> = members.choose_multiple(&mut self.random, 2).copied().collect();
        let (src, dst) = (pair[0], pair[1]);
        let (from, to) = (self.some_thread(src), self.some_thread(dst));
        let rank_in = |rank: u32| members.iter().position(|&member| member == rank).unwrap_or(0);
        // A tag a pair of threads: nobody else asks for the message.
        let tag = (src * 3 + u32::from(from)) * 3 + u32::from(to);
        self.messages += 1;
        let bytes = match self.random.random_range(0..8) {
            0 => 40_000 + self.messages,
            _ => 1_000 + self.messages,
        };
        let (dst_in, src_in) = (rank_in(dst), rank_in(src));
        let send = match self.random.random_range(0..10) {
            0..4 => {
                let request = self.request(src, from);
                format!("i {request} {dst_in} {tag} {bytes} {comm}")
            }
            4..8 => format!("s {dst_in} {tag} {bytes} {comm}"),
            8 => format!("S {dst_in} {tag} {bytes} {comm}"),
            _ => format!("b {dst_in} {tag} {bytes} {comm}"),
        };
        let source = if self.random.random_bool(0.3) { "-1".to_owned() } else { src_in.to_string() };
        let receive = match self.random.random_bool(0.5) {
            true => format!("r {source} {tag} {comm}"),
            false => {
                let request = self.request(dst, to);
                format!("p {source} {tag} {comm} {request}")
            }
        };
        self.line(src, from, send);
        self.line(dst, to, receive);
        let planned = Planned { ranks: (src, dst), bytes };
        self.deeds[src as usize][usize::from(from)].push(Deed::Send(planned));
    }

    fn collective(&mut self) {
        let comm = self.random.random_range(0..self.comms.len());
        let name = *OPERATIONS.choose(&mut self.random).expect("some");
        let Comm { members, threads } = &self.comms[comm];
        let (members, threads) = (members.clone(), threads.clone());
        let root = self.random.random_range(0..members.len());
        let bytes = [0, 8, 4_000][self.random.random_range(0..3)];
        for (&rank, &thread) in members.iter().zip(&threads) {
            if self.random.random_bool(0.2) {
                self.line(rank, thread, format!("x {}", 50));
            }
            self.line(rank, thread, format!("c {name} {comm} {root} {bytes}"));
            if members.len() > 1 {
                self.deeds[rank as usize][usize::from(thread)].push(Deed::Collective(name, bytes));
            }
        }
    }

    /// One thread of a rank waits for another.
    fn signal(&mut self) {
        let rank = self.random.random_range(0..self.lines.len()) as u32;
        let (one, other) = (self.some_thread(rank), self.some_thread(rank));
        let number = self.signals[rank as usize];
        self.signals[rank as usize] += 1;
        self.line(rank, one, format!("u {number}"));
        self.line(rank, other, format!("d {number}"));
    }

    /// A thread waits for some of its requests, or for one of them by tests.
    fn wait(&mut self) {
        let Some(&(rank, thread, _)) = self.open.choose(&mut self.random) else { return };
        let mut own: Vec<u32> =
            self.open.iter().filter(|open| (open.0, open.1) == (rank, thread)).map(|open| open.2).collect();
        own.shuffle(&mut self.random);
        let tests = self.random.random_bool(0.3);
        own.truncate(if tests { 1 } else { self.random.random_range(1..6) });
        self.open.retain(|&(of, by, request)| (of, by) != (rank, thread) || !own.contains(&request));
        let list: Vec<String> = own.iter().map(ToString::to_string).collect();
        self.line(rank, thread, format!("{} {}", if tests { 't' } else { 'w' }, list.join(" ")));
    }

    fn compute(&mut self) {
        let rank = self.random.random_range(0..self.lines.len()) as u32;
        let thread = self.some_thread(rank);
        let microseconds = self.random.random_range(1..400);
        self.line(rank, thread, format!("x {microseconds}"));
    }

    fn told(self, ranks: u32) -> Plan {
        let mut text = String::new();
        for (number, comm) in self.comms.iter().enumerate().skip(1) {
            let members: Vec<String> = comm.members.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "COLOR {number} {}", members.join(" "));
        }
        for (rank, threads) in self.lines.iter().enumerate() {
            for (thread, lines) in threads.iter().enumerate() {
                for line in lines {
                    let _ = writeln!(text, "{rank} {thread} {line}");
                }
            }
        }
        Plan { ranks, text, deeds: self.deeds }
    }
}
