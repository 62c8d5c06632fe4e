//! What each record means: a call of the rank.

use super::record::{Record, Version, label, request};
use crate::calls::arguments::Status;
use crate::calls::creations::{Combine, Handle, How, Lists, Op, ranges};
use crate::calls::process::{At, Envelope, Parts, Process};
use crate::error::Problem;
use vef_format::capture::event::SendMode;
use vef_format::operation::Operation;

/// Communicator ids.
pub(super) const WORLD: Handle = 2;
pub(super) const ITSELF: Handle = 3;
const NO_COMM: i64 = 1;
/// The empty group.
pub(super) const EMPTY_GROUP: Handle = 2;
/// The null request; 0 is an error.
const NO_REQUEST: u64 = 1;
/// Types that have no size: `MPI_LB`, `MPI_UB`.
const BOUNDS: [Handle; 2] = [20, 21];

fn handle(value: i64) -> Handle {
    value as Handle
}

fn new_comm(value: i64) -> Option<Handle> {
    (value > NO_COMM).then_some(handle(value))
}

/// The call on groups or communicators that a record of a run of `tasks` ranks is.
pub(super) fn creation(record: &Record, tasks: u32, lists: &mut Lists) -> Option<Op> {
    let value = |at: usize| record.values[at];
    let of = |at: usize| handle(value(at));
    let create = |parent: usize, how: How, new: usize| Op::Create {
        parent: of(parent),
        how,
        new: new_comm(value(new)),
    };
    let combine = |how| Op::Combine { how, first: of(0), second: of(1), new: of(2) };
    let mut pick = |ranks: Option<&[i32]>, keep| {
        // A rank that no group has makes the members unknown.
        Op::Pick { group: of(0), ranks: lists.share(ranks.unwrap_or(&[-1])), keep, new: of(3) }
    };
    let ranges = || ranges(record.list(2), tasks);
    Some(match record.label {
        72 => Op::GroupOf { comm: of(0), new: of(1) },
        73 => combine(Combine::Union),
        74 => combine(Combine::Intersection),
        75 => combine(Combine::Difference),
        76 => pick(Some(record.list(2)), true),
        77 => pick(Some(record.list(2)), false),
        78 => pick(ranges().as_deref(), true),
        79 => pick(ranges().as_deref(), false),
        84 => create(0, How::Same, 1),
        85 => create(0, How::Group(of(1)), 2),
        86 => create(0, How::Split { color: value(1) as i32, key: value(2) as i32 }, 3),
        91 => create(0, How::Foreign, 5),
        92 => create(0, How::Foreign, 2),
        99 => create(0, How::Grid(record.list(2).to_vec()), 5),
        101 => create(1, How::First(u32::try_from(value(2)).unwrap_or(u32::MAX)), 6),
        111 => create(1, How::Sub(record.list(2).to_vec()), 3),
        130 | 131 => create(3, How::Foreign, 4),
        135 => create(2, How::Foreign, 3),
        136 => create(3, How::Foreign, 4),
        _ => return None,
    })
}

/// The highest rank of the world that a record names: peers of its messages, members of groups.
pub(super) fn peer(record: &Record) -> Option<u32> {
    let in_world = |peer: usize, comm: usize| {
        let rank = u32::try_from(record.values[peer]).ok()?;
        (handle(record.values[comm]) == WORLD).then_some(rank)
    };
    match record.label {
        0 | 1 | 3..=5 | 8..=12 | 26..=30 => in_world(2, 4),
        33 => in_world(2, 8).max(in_world(6, 8)),
        34 => in_world(2, 6).max(in_world(4, 6)),
        76 => record.list(2).iter().filter_map(|&rank| rank.try_into().ok()).max(),
        _ => None,
    }
}

/// Sets the sizes of the built-in types.
pub(super) fn set_sizes(process: &mut Process, sizes: &[i32]) {
    for (id, &size) in sizes.iter().enumerate() {
        process.set_size(id as Handle, u64::try_from(size).ok());
    }
    for id in BOUNDS {
        process.set_size(id, Some(0));
    }
}

/// A record that is being carried out.
struct Call<'a> {
    record: &'a Record,
    version: Version,
    at: At,
}

/// Carries out a record.
pub(super) fn apply(process: &mut Process, record: &Record, version: Version, at: At) -> Result<(), Problem> {
    let call = Call { record, version, at };
    let (span, called) = at;
    let value = |at: usize| record.values[at];
    let request = |at: usize| request(value(at), version);
    let status = || record.status();
    match record.label {
        label::INIT | label::INIT_THREAD => process.recorder().init(span, called),
        125 => process.recorder().finalize(span, called),
        0 | 3..=5 => process.send(at, call.envelope(0), mode(record.label.saturating_sub(2)), None),
        8..=11 => process.send(at, call.envelope(0), mode(record.label - 8), Some(request(5))),
        1 => process.receive(at, call.envelope(0), status()),
        12 => process.post(at, call.envelope(0), request(5)),
        26..=29 => {
            process.send_init(call.envelope(0), mode(record.label - 26), request(5));
            Ok(())
        }
        30 => {
            process.receive_init(call.envelope(0), request(5));
            Ok(())
        }
        31 => process.start(at, request(0)),
        32 => record.list(1).iter().try_for_each(|&one| process.start(at, call.request_of(one))),
        33 => process.exchange(at, call.envelope(0), call.envelope_at([4, 5, 6, 7, 8]), status()),
        34 => process.exchange(
            at,
            call.envelope_at([0, 1, 2, 3, 6]),
            call.envelope_at([0, 1, 4, 5, 6]),
            status(),
        ),
        13 | 283 => call.completed(process, [(request(0), status())]),
        14 | 282 if value(1) != 0 => call.completed(process, [(request(0), status())]),
        16 | 287 => call.completed(process, call.indexed(value(2), status())),
        17 if value(3) != 0 => call.completed(process, call.indexed(value(2), status())),
        286 if value(2) != 0 => call.completed(process, call.indexed(value(3), status())),
        18 | 285 => call.completed(process, call.all()),
        19 | 284 if value(2) != 0 => call.completed(process, call.all()),
        20 | 288 => call.completed(process, call.some()),
        21 | 289 if value(2) > 0 => call.completed(process, call.some()),
        14 | 282 | 17 | 286 | 19 | 284 | 21 | 289 => process.recorder().poll(span, called),
        15 => process.free_request(at, request(0)),
        24 => {
            process.recorder().cancel(request(0));
            Ok(())
        }
        22 if value(3) == 0 => process.recorder().poll(span, called),
        22 | 23 => process.probe(at, handle(value(2)), value(0), value(1) as i32, status()),
        35..=40 | 43 | 178 | 217..=223 => {
            call.datatype(process);
            Ok(())
        }
        52..=62 | 65..=67 | 155 | 156 => call.collective(process),
        87 | 132 => process.free_comm(at, handle(value(0))),
        84..=86 | 91 | 92 | 99 | 101 | 111 | 130 | 131 | 135 | 136 => {
            match creation(record, 0, &mut Lists::default()) {
                Some(Op::Create { parent, new, .. }) => process.create(at, parent, new),
                _ => Ok(()),
            }
        }
        141..=143 => {
            let bytes = process.bytes(value(0), handle(value(1))).unwrap_or(0);
            process.recorder().other(span, called, bytes)
        }
        133 | 134 | 144..=154 | 230..=232 | 265..=276 | 281 => process.recorder().other(span, called, 0),
        242..=253 | 257..=262 => call.file(process),
        170 => {
            process.recorder().open_nothing(request(0));
            Ok(())
        }
        // Calls that neither communicate nor wait.
        _ => Ok(()),
    }
}

/// The mode of a send, in the order of the labels of each group.
fn mode(at: u16) -> SendMode {
    match at {
        3 => SendMode::Ready,
        1 => SendMode::Buffered,
        2 => SendMode::Synchronous,
        _ => SendMode::Standard,
    }
}

impl Call<'_> {
    fn value(&self, at: usize) -> i64 {
        self.record.values[at]
    }

    /// Count, datatype, peer, tag and communicator from argument `at` on.
    fn envelope(&self, at: usize) -> Envelope {
        let comm = if self.record.label == 33 { 8 } else { at + 4 };
        self.envelope_at([at, at + 1, at + 2, at + 3, comm])
    }

    fn envelope_at(&self, [count, datatype, peer, tag, comm]: [usize; 5]) -> Envelope {
        Envelope {
            count: self.value(count),
            datatype: handle(self.value(datatype)),
            peer: self.value(peer),
            tag: self.value(tag) as i32,
            comm: handle(self.value(comm)),
        }
    }

    fn request_of(&self, value: i32) -> u64 {
        request(value.into(), self.version)
    }

    /// The request at `index` of the array of an "any" call.
    fn indexed(&self, index: i64, status: Option<Status>) -> Option<(u64, Option<Status>)> {
        let list = self.record.list(1);
        let one = usize::try_from(index).ok().and_then(|index| list.get(index))?;
        Some((self.request_of(*one), status))
    }

    fn all(&self) -> impl Iterator<Item = (u64, Option<Status>)> {
        let statuses = self.record.statuses.iter().copied().map(Some).chain(std::iter::repeat(None));
        self.record.list(1).iter().map(|&one| self.request_of(one)).zip(statuses)
    }

    fn some(&self) -> impl Iterator<Item = (u64, Option<Status>)> {
        let statuses = self.record.statuses.iter().copied().map(Some).chain(std::iter::repeat(None));
        let count = usize::try_from(self.value(2)).unwrap_or(0);
        let indices = self.record.list(3).iter().take(count).zip(statuses);
        indices.filter_map(|(&index, status)| self.indexed(index.into(), status))
    }

    fn completed(
        &self,
        process: &mut Process,
        requests: impl IntoIterator<Item = (u64, Option<Status>)>,
    ) -> Result<(), Problem> {
        process.complete(self.at, requests.into_iter().filter(|&(request, _)| request > NO_REQUEST))
    }

    /// A call that makes a datatype, or tells its size.
    fn datatype(&self, process: &mut Process) {
        let value = |at: usize| self.value(at);
        let old = |at: usize| process.known_size(handle(value(at)));
        let times = |count: Option<u64>, old: Option<u64>| count?.checked_mul(old?);
        let number = |at: usize| u64::try_from(value(at)).ok();
        let sum = |at: usize| {
            let mut lengths = self.record.list(at).iter().map(|&length| u64::try_from(length));
            lengths.try_fold(0u64, |sum, length| sum.checked_add(length.ok()?))
        };
        let blocks = |a: usize, b: usize| times(number(a), number(b));
        let (new, size) = match self.record.label {
            43 => (0, number(1)),
            35 => (2, times(number(0), old(1))),
            36 | 37 => (4, times(blocks(0, 1), old(3))),
            219 => (4, times(blocks(0, 1), old(3))),
            220 => (4, times(blocks(0, 1), old(3))),
            38 | 39 | 218 => (4, times(sum(1), old(3))),
            40 | 222 => {
                let parts = self.record.list(1).iter().zip(self.record.list(3));
                let size = parts.map(|(&length, &kind)| {
                    times(u64::try_from(length).ok(), process.known_size(kind as u16 as Handle))
                });
                (4, size.into_iter().try_fold(0u64, |sum, part| sum.checked_add(part?)))
            }
            178 => (1, old(0)),
            221 => (3, old(0)),
            223 => {
                let mut extents = self.record.list(2).iter().map(|&extent| u64::try_from(extent));
                let elements = extents.try_fold(1u64, |product, extent| product.checked_mul(extent.ok()?));
                (6, times(elements, old(5)))
            }
            // `MPI_Type_create_darray`: what this rank has of it depends on the distribution.
            _ => (9, None),
        };
        process.set_size(handle(self.value(new)), size);
    }

    fn collective(&self, process: &mut Process) -> Result<(), Problem> {
        let value = |at: usize| self.value(at);
        let comm = |at: usize| handle(value(at));
        let at = self.at;
        let block = |count: usize, datatype: usize| {
            let (count, datatype) = (value(count), handle(value(datatype)));
            move |process: &Process| process.bytes(count, datatype)
        };
        // One vector at every member.
        let vector = |count: usize, datatype: usize| {
            let block = block(count, datatype);
            move |process: &Process, _: u32, _: u32| Ok(Parts { own: block(process)?, ..Parts::default() })
        };
        // A block for each member, of one size.
        let equal = |own: (usize, usize), all: Option<(usize, usize)>| {
            let (own, all) = (block(own.0, own.1), all.map(|all| block(all.0, all.1)));
            move |process: &Process, _: u32, size: u32| {
                let block = all.map_or_else(|| own(process), |all| all(process))?;
                let sum = block.checked_mul(size.into());
                Ok(Parts { own: block, sum: sum.ok_or_else(too_large)?, ..Parts::default() })
            }
        };
        let bytes_of = |list: usize, datatype: usize| {
            let datatype = handle(value(datatype));
            move |process: &Process| -> Result<Vec<u64>, Problem> {
                self.record.list(list).iter().map(|&count| process.bytes(count.into(), datatype)).collect()
            }
        };
        // Whether this rank is the root: its arguments say so.
        let is_root = |root: usize| value(0) == value(root);
        match self.record.label {
            52 => process.collective(at, Operation::Barrier, comm(0), None, |_, _, _| Ok(Parts::default())),
            53 => process.collective(at, Operation::Bcast, comm(3), Some(value(2)), vector(0, 1)),
            54 => {
                let all = is_root(3).then_some((5, 6));
                process.collective(at, Operation::Gather, comm(4), Some(value(3)), equal((1, 2), all))
            }
            56 => {
                let all = is_root(3).then_some((5, 6));
                process.collective(at, Operation::Scatter, comm(4), Some(value(3)), equal((1, 2), all))
            }
            55 => {
                let (own, all) = (block(2, 3), bytes_of(6, 8));
                process.collective(at, Operation::Gatherv, comm(5), Some(value(4)), |process, me, _| {
                    if is_root(4) { of_list(all(process)?, me, false) } else { own_only(own(process)?) }
                })
            }
            57 => {
                let (own, all) = (block(3, 4), bytes_of(7, 2));
                process.collective(at, Operation::Scatterv, comm(6), Some(value(5)), |process, me, _| {
                    if is_root(5) { of_list(all(process)?, me, true) } else { own_only(own(process)?) }
                })
            }
            // `MPI_IN_PLACE` leaves no trace, but it cannot spoil the side of the receives.
            58 => process.collective(at, Operation::Allgather, comm(4), None, equal((2, 3), None)),
            59 => {
                let all = bytes_of(3, 5);
                process.collective(at, Operation::Allgatherv, comm(6), None, |process, me, _| {
                    of_list(all(process)?, me, false)
                })
            }
            60 => process.collective(at, Operation::Alltoall, comm(4), None, equal((2, 3), None)),
            61 => {
                let (send, recv) = (bytes_of(1, 3), bytes_of(4, 6));
                process.collective(at, Operation::Alltoallv, comm(7), None, |process, _, _| {
                    of_pairs(send(process)?, recv(process)?)
                })
            }
            62 => process.collective(at, Operation::Reduce, comm(4), Some(value(3)), vector(0, 1)),
            65 => process.collective(at, Operation::Allreduce, comm(3), None, vector(0, 1)),
            66 => {
                let all = bytes_of(1, 2);
                process.collective(at, Operation::ReduceScatter, comm(4), None, |process, me, _| {
                    of_list(all(process)?, me, false)
                })
            }
            67 => process.collective(at, Operation::Scan, comm(3), None, vector(0, 1)),
            155 => {
                let typed = |counts: usize, types: usize| {
                    let pairs = self.record.list(counts).iter().zip(self.record.list(types));
                    move |process: &Process| -> Result<Vec<u64>, Problem> {
                        let bytes = |(&count, &kind): (&i32, &i32)| {
                            process.bytes(count.into(), kind as u16 as Handle)
                        };
                        pairs.map(bytes).collect()
                    }
                };
                let (send, recv) = (typed(1, 3), typed(4, 6));
                process.collective(at, Operation::Alltoallw, comm(7), None, |process, _, _| {
                    of_pairs(send(process)?, recv(process)?)
                })
            }
            _ => process.collective(at, Operation::Exscan, comm(3), None, vector(0, 1)),
        }
    }

    /// A read or write of a file.
    fn file(&self, process: &mut Process) -> Result<(), Problem> {
        let count = if self.record.label <= 247 { 2 } else { 1 };
        let bytes = process.bytes(self.value(count), handle(self.value(count + 1))).unwrap_or(0);
        if matches!(self.record.label, 246 | 247 | 252 | 253 | 259 | 260) {
            process.recorder().open_nothing(request(self.value(count + 2), self.version));
        }
        process.recorder().other(self.at.0, self.at.1, bytes)
    }
}

fn too_large() -> Problem {
    Problem::TooLarge("the sum of the blocks of a collective".to_owned())
}

fn total(list: &[u64]) -> Result<u64, Problem> {
    list.iter().try_fold(0u64, |sum, &bytes| sum.checked_add(bytes)).ok_or_else(too_large)
}

/// The part of a rank that knows the blocks of all.
fn of_list(blocks: Vec<u64>, me: u32, sends: bool) -> Result<Parts, Problem> {
    let (own, sum) = (blocks.get(me as usize).copied().unwrap_or(0), total(&blocks)?);
    let (send, recv) = if sends { (blocks, Vec::new()) } else { (Vec::new(), blocks) };
    Ok(Parts { own, sum, amounts: None, send, recv })
}

fn own_only(own: u64) -> Result<Parts, Problem> {
    Ok(Parts { own, sum: own, ..Parts::default() })
}

fn of_pairs(send: Vec<u64>, recv: Vec<u64>) -> Result<Parts, Problem> {
    Ok(Parts { amounts: Some((total(&send)?, total(&recv)?)), send, recv, ..Parts::default() })
}
