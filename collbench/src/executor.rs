//! A schedule of `collectives`, carried out by one rank with real messages.
//!
//! The steps are compiled once: addresses in one block of memory, scratch for what arrives to be combined or falls in
//! several pieces. A run then is a walk through a list of non-blocking calls, copies, reductions and waits.

use std::ops::Range;

use collectives::{Buffer, Choice, Combine, Cursor, Data, Member, Sizes, Step};
use mpi_abi::api::{Envelope, Mpi};
use mpi_abi::handles::{Comm, Datatype, Op, Request};

use crate::error::Result;
use crate::subject::Subject;

const TAG: i32 = 11;

/// One rank's part of a collective, ready to run any number of times.
pub struct PreparedSchedule {
    mpi: Mpi,
    comm: Comm,
    acts: Vec<Act>,
    /// All buffers, one after the other, then scratch.
    memory: Box<[u64]>,
    places: [Range<usize>; 4],
    unit: usize,
    /// Elements are of this type and are combined so.
    datatype: Datatype,
    op: Op,
    requests: Vec<Request>,
}

enum Act {
    Send {
        to: i32,
        from: Range<usize>,
    },
    Recv {
        from: i32,
        into: Range<usize>,
    },
    Wait,
    /// Bytes into others, stored or combined; pieces in order, of the same total length.
    Move {
        from: Vec<Range<usize>>,
        into: Vec<Range<usize>>,
        combine: Combine,
    },
}

const BUFFERS: [Buffer; 4] = [Buffer::Input, Buffer::Output, Buffer::Work, Buffer::Arrival];

impl PreparedSchedule {
    /// Compiles the steps of this rank; elements are as wide as `member.unit`.
    ///
    /// # Errors
    /// Where there is no such schedule.
    pub fn new(
        (mpi, comm): (&Mpi, Comm),
        member: Member,
        choice: Choice,
        sizes: Sizes<'_>,
        (datatype, op): (Datatype, Op),
    ) -> Result<PreparedSchedule> {
        let mut end = 0usize;
        let mut take = |bytes: u64| {
            let start = end;
            end = (start + bytes as usize).next_multiple_of(64);
            start..start + bytes as usize
        };
        let places = BUFFERS.map(|buffer| take(member.buffer_bytes(buffer, sizes)));
        let size_of = |buffer: Buffer| member.buffer_bytes(buffer, sizes);
        let ranges = |data: Data| -> Vec<Range<usize>> {
            let start = places[data.buffer as usize].start;
            data.pieces(size_of(data.buffer))
                .map(|(at, len)| start + at as usize..start + (at + len) as usize)
                .collect()
        };
        let mut acts = Vec::new();
        let mut after_wait = Vec::new();
        let mut cursor = Cursor::new(member, choice, sizes)?;
        while let Some(step) = cursor.next(sizes) {
            match step {
                Step::Send { to, data } => {
                    let mut pieces = ranges(data);
                    let from = match pieces.len() {
                        0 | 1 => pieces.pop().unwrap_or(0..0),
                        _ => {
                            let scratch = take(data.len);
                            let into = vec![scratch.clone()];
                            acts.push(Act::Move { from: pieces, into, combine: Combine::Store });
                            scratch
                        }
                    };
                    acts.push(Act::Send { to: to as i32, from });
                }
                Step::Recv { from, data, combine } => {
                    let mut pieces = ranges(data);
                    let into = match (pieces.len(), combine) {
                        (0 | 1, Combine::Store) => pieces.pop().unwrap_or(0..0),
                        _ => {
                            let scratch = take(data.len);
                            after_wait.push(Act::Move { from: vec![scratch.clone()], into: pieces, combine });
                            scratch
                        }
                    };
                    acts.push(Act::Recv { from: from as i32, into });
                }
                Step::Wait => {
                    acts.push(Act::Wait);
                    acts.append(&mut after_wait);
                }
                Step::Local { from, into, combine } => {
                    acts.push(Act::Move { from: ranges(from), into: ranges(into), combine });
                }
            }
        }
        Ok(PreparedSchedule {
            mpi: mpi.clone(),
            comm,
            acts,
            memory: vec![0; end.div_ceil(8)].into_boxed_slice(),
            places,
            unit: member.unit as usize,
            datatype,
            op,
            requests: Vec::new(),
        })
    }

    /// One of the four buffers.
    pub fn buffer(&mut self, buffer: Buffer) -> &mut [u8] {
        let place = self.places[buffer as usize].clone();
        &mut self.bytes()[place]
    }

    fn bytes(&mut self) -> &mut [u8] {
        let len = self.memory.len() * 8;
        // SAFETY: any bytes are valid `u64`s, and the slice is borrowed as long as `self`.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), len) }
    }
}

impl Subject for PreparedSchedule {
    fn run(&mut self) -> Result<()> {
        let base = self.memory.as_mut_ptr().cast::<u8>();
        for act in &self.acts {
            match act {
                Act::Send { to, from } => {
                    let envelope = Envelope::new(*to, TAG, self.comm);
                    // SAFETY: a range of `memory`, which lives until the wait that every schedule has behind its
                    // sends, and which by the schedule's proof nothing changes until then.
                    self.requests.push(unsafe {
                        let data = std::slice::from_raw_parts(base.add(from.start), from.len());
                        self.mpi.isend(data, envelope)?
                    });
                }
                Act::Recv { from, into } => {
                    let envelope = Envelope::new(*from, TAG, self.comm);
                    // SAFETY: as above; nothing reads or writes the range until the wait.
                    self.requests.push(unsafe {
                        let data = std::slice::from_raw_parts_mut(base.add(into.start), into.len());
                        self.mpi.irecv(data, envelope)?
                    });
                }
                Act::Wait => {
                    // SAFETY: each request was made above and is waited for once.
                    unsafe { self.mpi.wait_all(&self.requests)? };
                    self.requests.clear();
                }
                Act::Move { from, into, combine } => {
                    let mut into = into.iter().cloned();
                    let mut room = into.next().unwrap_or(0..0);
                    for piece in from {
                        let mut at = piece.start;
                        while at < piece.end {
                            if room.is_empty() {
                                room = into.next().unwrap_or(0..0);
                            }
                            let len = room.len().min(piece.end - at);
                            if len == 0 {
                                break;
                            }
                            // SAFETY: both ranges lie in `memory` and no request is pending that uses them.
                            unsafe {
                                let (from, to) = (base.add(at), base.add(room.start));
                                if *combine == Combine::Store {
                                    std::ptr::copy(from, to, len);
                                } else {
                                    let types = (self.datatype, self.op);
                                    let count = len / self.unit;
                                    match combine {
                                        // arriving ⊕ present, into present: what MPI does.
                                        Combine::Before => self.mpi.reduce_local(from, to, count, types)?,
                                        // present ⊕ arriving comes out where the arriving was.
                                        _ => {
                                            self.mpi.reduce_local(to, from, count, types)?;
                                            std::ptr::copy(from, to, len);
                                        }
                                    }
                                }
                            }
                            at += len;
                            room.start += len;
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
