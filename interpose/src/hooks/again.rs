//! The short way, in front of the hooks: for calls like earlier ones, and for the end of requests that were made one after the
//! other. It records what the hooks would, in the same words.
//!
//! Only the thread that initialised MPI takes it, while no other can be in MPI and ticks are cycles: so there is no lock and
//! no choice of clocks. And whether a call goes this way is known before it is made, while its arguments are at hand anyway:
//! across the call little has to be kept, and what is out of the ordinary is not in the same function.

use crate::clock::cycles;
use crate::hooks::{after_error, collective_key, exchange_key, length, receive_key, send_key};
use crate::lane::{self, Lane};
use crate::requests::Waiting;
use crate::shapes::Function;
use crate::wrap::{Args, Done, Language, Row, SUCCESS, came_in_spite_of, find, pend_like};
use mpi_abi::arguments::Kind;
use mpi_abi::prototypes::{Call, Category};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use vef_format::capture::word::{Head, RUN};

/// Makes a call that may go the short way, and records it. `None`: it may not, and nothing was done.
#[inline(always)]
pub(crate) fn again<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> Option<i32> {
    use Category::*;
    if !const { has_short_way(R::CALL, R::NAMES) } {
        return None;
    }
    let lane = lane::alone()?;
    // SAFETY: the lane is this thread's, lives for ever, and no other reference to it is alive here.
    let abi = unsafe {
        let lane = &*lane.as_ptr();
        if lane.inside {
            return None;
        }
        lane.tracer.mpi.abi()
    };
    let args = Args::<R, L>::new(&words, abi);
    match const { R::CALL.category() } {
        Send => like::<R, L, N, 4, false>(lane, words, send_key(&args), next),
        SendImmediate => like::<R, L, N, 4, true>(lane, words, send_key(&args), next),
        Recv => like::<R, L, N, 4, false>(lane, words, receive_key(&args), next),
        RecvImmediate => like::<R, L, N, 4, true>(lane, words, receive_key(&args), next),
        SendRecv => like::<R, L, N, 7, false>(lane, words, exchange_key(&args), next),
        Collective => like::<R, L, N, 6, false>(lane, words, collective_key(&args), next),
        CollectiveImmediate => like::<R, L, N, 6, true>(lane, words, collective_key(&args), next),
        _ => end::<R, L, N>(lane, words, length(&args), next),
    }
}

const fn has_short_way(call: Call, names: &[&str]) -> bool {
    use Category::*;
    match call.category() {
        // What is received by a message handle is told by that.
        Send | SendImmediate | Recv | RecvImmediate | SendRecv | Collective | CollectiveImmediate => {
            find(names, &["message"]).is_none()
        }
        Wait | Test => matches!(call, Call::MPI_Wait | Call::MPI_Waitall | Call::MPI_Test),
        _ => false,
    }
}

/// A call of a known shape.
#[inline(always)]
fn like<R: Row, L: Language, const N: usize, const K: usize, const REQUEST: bool>(
    lane: NonNull<Lane>,
    words: [usize; N],
    key: [u64; K],
    next: impl FnOnce([usize; N]) -> i32,
) -> Option<i32> {
    // SAFETY: see `again`; nested calls, which make references of their own, leave at the test of `inside`.
    let shape = unsafe {
        let lane = &mut *lane.as_ptr();
        let shape = lane.shapes.find(Function::of::<R, L>(), &key)?;
        add_one(lane.tracer.counted(R::CALL)?);
        lane.inside = true;
        shape
    };
    let start = cycles();
    let code = next(words);
    let end = cycles();
    // SAFETY: as above; the nested calls are over.
    let lane = unsafe { &mut *lane.as_ptr() };
    lane.inside = false;
    if code == SUCCESS || came_in_spite_of::<R>(&lane.tracer.mpi, code) {
        lane.put_head(start, end, shape.head());
        if REQUEST {
            // SAFETY: this lane is alone.
            let shared = unsafe { lane.tracer.shared_alone() };
            pend_like(lane, shared, &Args::<R, L>::new(&words, lane.tracer.mpi.abi()), shape);
        }
    }
    Some(code)
}

/// Of a thread that is alone.
#[inline(always)]
fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// The end of `count` requests, if they were made by this thread one after the other, with nothing special about them.
#[inline(always)]
fn end<R: Row, L: Language, const N: usize>(
    lane: NonNull<Lane>,
    words: [usize; N],
    count: usize,
    next: impl FnOnce([usize; N]) -> i32,
) -> Option<i32> {
    let has_flag = const { find(R::NAMES, &["flag"]).is_some() };
    // They are over before the call ends them: nobody has to remember their handles. Until then the table of requests
    // stays as it is, because nested calls are not recorded.
    // SAFETY: see `again` and `like`; the thread is alone; the program passed as many handles as it says.
    let (place, first, head) = unsafe {
        let lane = &mut *lane.as_ptr();
        let args = Args::<R, L>::new(&words, lane.tracer.mpi.abi());
        let requests = &mut lane.tracer.shared_alone().requests;
        if count == 0 {
            return None;
        }
        let handle = args.handle_at(Kind::RequestArray, args.requests(), 0);
        let slot = requests.find(handle);
        let first = slot.1;
        if slot.0 != handle || !first.is_ordinary_like(lane.next_request()) {
            return None;
        }
        let after = lane.next_request().since(first).wrapping_sub(count as u64);
        if count as u64 > RUN || after >= RUN {
            return None;
        }
        let calls = lane.tracer.counted(R::CALL)?;
        slot.1 = first.over();
        let place = &raw mut *slot;
        let mut expected = first;
        for i in 1..count {
            expected = expected.next();
            let handle = args.handle_at(Kind::RequestArray, args.requests(), i);
            let slot = requests.find(handle);
            if slot.0 != handle || slot.1 != expected {
                restore((0..i).map(|i| args.handle_at(Kind::RequestArray, args.requests(), i)), lane, first);
                return None;
            }
            slot.1 = expected.over();
        }
        add_one(calls);
        lane.inside = true;
        (place, first, Head::run(count as u64, after))
    };
    let start = cycles();
    let code = next(words);
    let end = cycles();
    // SAFETY: as above; the nested calls are over.
    let lane = unsafe { &mut *lane.as_ptr() };
    lane.inside = false;
    if code != SUCCESS {
        failed::<R, L, N>(lane, words, (first, count), (start, end), code);
        return Some(code);
    }
    if has_flag {
        let args = Args::<R, L>::new(&words, lane.tracer.mpi.abi());
        if args.int_at(args.flag(), 0) == 0 {
            // SAFETY: its slot is still there; see above.
            unsafe { (*place).1 = first };
            return Some(code);
        }
    }
    lane.put_head(start, end, head);
    Some(code)
}

/// The requests behind these handles, from `first` on, are under way after all.
#[cold]
#[inline(never)]
fn restore(handles: impl Iterator<Item = usize>, lane: &mut Lane, first: Waiting) {
    // SAFETY: the short way is for a thread that is alone.
    let requests = unsafe { &mut lane.tracer.shared_alone().requests };
    let mut waiting = first;
    for handle in handles {
        requests.find(handle).1 = waiting;
        waiting = waiting.next();
    }
}

/// A wait has failed: some of its requests, `first` and the following, may be complete.
#[cold]
#[inline(never)]
fn failed<R: Row, L: Language, const N: usize>(
    lane: &mut Lane,
    words: [usize; N],
    (first, count): (Waiting, usize),
    (start, end): (u64, u64),
    code: i32,
) {
    // SAFETY: as in `restore`.
    let handles = unsafe { lane.tracer.shared_alone() }.requests.handles_of(first, count);
    restore(handles.iter().copied(), lane, first);
    lane.scratch.handles = handles;
    let (shared, abi) = (lane.tracer.shared(), lane.tracer.mpi.abi());
    after_error(&mut Done { lane, shared, call: R::CALL, start, end }, &Args::<R, L>::new(&words, abi), code);
}
