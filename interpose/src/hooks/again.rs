//! The short way, in front of the hooks: for calls like earlier ones, and for the end of requests that were made one after the
//! other. It records what the hooks would, in the same words.
//!
//! Only the thread that initialised MPI takes it, while no other can be in MPI and ticks are cycles: so there is no lock and
//! no choice of clocks, and the lane and the tracer are at addresses that the code knows. And whether a call goes this way
//! is known before it is made, while its arguments are at hand anyway: across the call little has to be kept, and what is
//! out of the ordinary is not in the same function.

use crate::clock::cycles;
use crate::hooks::{after_error, collective_key, exchange_key, receive_key, send_key};
use crate::lane::{self, Lane};
use crate::pending::Run;
use crate::shapes::{AnyKey, Function};
use crate::tracer::Tracer;
use crate::wrap::{Args, Done, Language, Row, SUCCESS, came_in_spite_of, find, pend_like};
use mpi_abi::arguments::Kind;
use mpi_abi::prototypes::{Call, Category};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use vef_format::capture::word::Head;

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
    if unsafe { (*lane.as_ptr()).inside } {
        return None;
    }
    // SAFETY: this thread is alone.
    let abi = unsafe { Tracer::alone() }.mpi.abi();
    let args = Args::<R, L>::new(&words, abi);
    match const { R::CALL.category() } {
        Send => like::<R, L, N, false>(lane, words, &send_key(&args), next),
        SendImmediate => like::<R, L, N, true>(lane, words, &send_key(&args), next),
        Recv => like::<R, L, N, false>(lane, words, &receive_key(&args), next),
        RecvImmediate => like::<R, L, N, true>(lane, words, &receive_key(&args), next),
        SendRecv => like::<R, L, N, false>(lane, words, &exchange_key(&args), next),
        Collective => like::<R, L, N, false>(lane, words, &collective_key(&args), next),
        CollectiveImmediate => like::<R, L, N, true>(lane, words, &collective_key(&args), next),
        _ => end::<R, L, N>(lane, words, count(&args), next),
    }
}

const fn has_short_way(call: Call, names: &[&str]) -> bool {
    use Category::*;
    match call.category() {
        // What is received by a message handle is told by that.
        Send | SendImmediate | Recv | RecvImmediate | SendRecv | Collective | CollectiveImmediate => {
            find(names, &["message"]).is_none()
        }
        Wait | Test => {
            matches!(call, Call::MPI_Wait | Call::MPI_Waitall | Call::MPI_Test | Call::MPI_Testall)
        }
        _ => false,
    }
}

/// A call of a known shape.
#[inline(always)]
fn like<R: Row, L: Language, const N: usize, const REQUEST: bool>(
    lane: NonNull<Lane>,
    words: [usize; N],
    key: &impl AnyKey,
    next: impl FnOnce([usize; N]) -> i32,
) -> Option<i32> {
    // SAFETY: see `again`; nested calls, which make references of their own, leave at the test of `inside`.
    let shape = unsafe {
        let lane = &mut *lane.as_ptr();
        let shape = lane.shapes.find(Function::of::<R, L>(), key)?;
        // What has a shape was counted before.
        add_one(Tracer::alone().counted(R::CALL).unwrap_unchecked());
        lane.inside = true;
        shape
    };
    let start = cycles();
    let code = next(words);
    if code != SUCCESS {
        return Some(failed_like::<R>(lane, start, code, shape.head()));
    }
    let end = cycles();
    // SAFETY: as above; the nested calls are over.
    let lane = unsafe { &mut *lane.as_ptr() };
    lane.inside = false;
    lane.put_head(start, end, shape.head());
    lane.tracer.note(R::CALL, end.wrapping_sub(start), SUCCESS);
    if REQUEST {
        // SAFETY: this lane is alone.
        let (shared, abi) = unsafe { (Tracer::alone().shared_alone(), Tracer::alone().mpi.abi()) };
        pend_like(lane, shared, &Args::<R, L>::new(&words, abi), shape);
    }
    Some(SUCCESS)
}

/// A call of a known shape has failed, with `code`, which is given back.
#[cold]
#[inline(never)]
fn failed_like<R: Row>(lane: NonNull<Lane>, start: u64, code: i32, head: Head) -> i32 {
    let end = cycles();
    // SAFETY: as in `like`.
    let lane = unsafe { &mut *lane.as_ptr() };
    lane.inside = false;
    if came_in_spite_of::<R>(&lane.tracer.mpi, code) {
        lane.put_head(start, end, head);
    }
    code
}

/// Of a thread that is alone.
#[inline(always)]
fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// How many requests a call looks at; more than there are if it gives a negative number.
#[inline(always)]
fn count<R: Row, L: Language>(args: &Args<'_, R, L>) -> usize {
    match const { find(R::NAMES, &["count", "incount"]) } {
        Some(_) => args.length() as u32 as usize,
        None => 1,
    }
}

/// The end of `count` requests, if they were made by this thread one after the other, lately, with nothing special about them.
#[inline(always)]
fn end<R: Row, L: Language, const N: usize>(
    lane: NonNull<Lane>,
    words: [usize; N],
    count: usize,
    next: impl FnOnce([usize; N]) -> i32,
) -> Option<i32> {
    // The list of requests stays as it is until they are over, because nested calls are not recorded.
    // SAFETY: see `again` and `like`; the thread is alone; the program passed as many handles as it says.
    unsafe {
        let lane = &mut *lane.as_ptr();
        let args = Args::<R, L>::new(&words, Tracer::alone().mpi.abi());
        let handle = |i| args.handle_at(Kind::RequestArray, args.requests(), i);
        let requests = &Tracer::alone().shared_alone().requests;
        if !requests.are_all(count, lane.next_request(), handle) {
            return end_some::<R, L, N>(lane.into(), words, count, next);
        }
        add_one(Tracer::alone().counted(R::CALL)?);
        lane.inside = true;
    }
    let start = cycles();
    let code = next(words);
    if code != SUCCESS {
        // SAFETY: as above.
        let all = unsafe { Tracer::alone().shared_alone() }.requests.all();
        failed::<R, L, N>(lane, words, all, start, code);
        return Some(code);
    }
    let end = cycles();
    // SAFETY: as above; the nested calls are over.
    let (lane, requests) = unsafe { (&mut *lane.as_ptr(), &mut Tracer::alone().shared_alone().requests) };
    lane.inside = false;
    if is_over::<R, L, N>(words) {
        let count = requests.take_all();
        lane.put_run(start, end, R::CALL, count as u64, 0);
        lane.tracer.note(R::CALL, end.wrapping_sub(start), SUCCESS);
    }
    Some(SUCCESS)
}

/// As [`end`], of the first or the last of those that were made lately.
#[inline(never)]
fn end_some<R: Row, L: Language, const N: usize>(
    lane: NonNull<Lane>,
    words: [usize; N],
    count: usize,
    next: impl FnOnce([usize; N]) -> i32,
) -> Option<i32> {
    // SAFETY: as in `end`.
    let run = unsafe {
        let lane = &mut *lane.as_ptr();
        let args = Args::<R, L>::new(&words, Tracer::alone().mpi.abi());
        let handle = |i| args.handle_at(Kind::RequestArray, args.requests(), i);
        let run = Tracer::alone().shared_alone().requests.find_run(count, lane.next_request(), handle)?;
        add_one(Tracer::alone().counted(R::CALL)?);
        lane.inside = true;
        run
    };
    let start = cycles();
    let code = next(words);
    if code != SUCCESS {
        failed::<R, L, N>(lane, words, run, start, code);
        return Some(code);
    }
    let end = cycles();
    // SAFETY: as in `end`.
    let (lane, requests) = unsafe { (&mut *lane.as_ptr(), &mut Tracer::alone().shared_alone().requests) };
    lane.inside = false;
    if is_over::<R, L, N>(words) {
        let after = requests.take_run(run, lane.next_request());
        lane.put_run(start, end, R::CALL, count as u64, after);
        lane.tracer.note(R::CALL, end.wrapping_sub(start), SUCCESS);
    }
    Some(SUCCESS)
}

/// Whether a successful call has completed what it looked at: a test says so.
#[inline(always)]
fn is_over<R: Row, L: Language, const N: usize>(words: [usize; N]) -> bool {
    // SAFETY: as in `end`.
    let args = Args::<R, L>::new(&words, unsafe { Tracer::alone() }.mpi.abi());
    !const { find(R::NAMES, &["flag"]).is_some() } || args.int_at(args.flag(), 0) != 0
}

/// A wait has failed: some of its requests may be complete.
#[cold]
#[inline(never)]
fn failed<R: Row, L: Language, const N: usize>(
    lane: NonNull<Lane>,
    words: [usize; N],
    run: Run,
    start: u64,
    code: i32,
) {
    let end = cycles();
    // SAFETY: as in `end`.
    let (lane, requests) = unsafe { (&mut *lane.as_ptr(), &Tracer::alone().shared_alone().requests) };
    lane.inside = false;
    lane.scratch.handles.clear();
    lane.scratch.handles.extend(requests.handles_of(run));
    let (shared, abi) = (lane.tracer.shared(), lane.tracer.mpi.abi());
    after_error(&mut Done { lane, shared, call: R::CALL, start, end }, &Args::<R, L>::new(&words, abi), code);
}
