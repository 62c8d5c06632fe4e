//! Waits, tests and other ends of requests.
//!
//! A wait sets the handles of completed requests to null, so they are read before the call. MPI may give several
//! pending requests the same handle, and some requests have no record (generalized requests).

use crate::arguments::Args;
use crate::call::{Ended, Hook, Noted, Recorded, has_received};
use crate::requests::PendingRequest;
use mpi_abi::handles::Request;
use mpi_abi::status::Status;
use vef_format::capture::event::{Action, Completion, Outcome};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// `MPI_Wait`, `MPI_Test` and their variants.
pub(super) const WAIT: Hook =
    Hook { before: prepare_wait, after: |call| waited(call, Ended::Success), after_failure: waited };

/// `MPI_Request_get_status` and its variants.
pub(super) const ASK: Hook = Hook::after(|call| {
    if call.is_failed_poll() {
        call.record_failed_poll();
    }
});

/// Reads the handles, and supplies statuses if the program ignores them and the recorder needs them.
fn prepare_wait(call: &mut Recorded) {
    read_handles(call);
    if call.tracer.known(|known| known.requests.needs_statuses()) {
        call.supply_statuses(call.scratch.handles.len());
    }
}

/// Keeps the handles that a call may change.
pub(super) fn read_handles(call: &mut Recorded) {
    let handles = handles(&call.args);
    let list = &mut call.scratch.handles;
    list.clear();
    // Programs may wait for millions of requests: no spare capacity.
    list.reserve_exact(handles.len());
    list.extend(handles);
}

fn waited(call: &mut Recorded, ended: Ended) {
    let handles = std::mem::take(&mut call.scratch.handles);
    let has_waited = match ended {
        Ended::Success => after_success(call, &handles),
        _ => after_error(call, &handles, ended),
    };
    call.scratch.handles = handles;
    let mut list = std::mem::take(&mut call.scratch.completions);
    if !list.is_empty() {
        call.put_completed(&list);
        list.clear();
    } else if has_waited {
        call.lane().writer.forget_polls();
    }
    call.scratch.completions = list;
}

pub(super) fn handles(args: &Args) -> impl ExactSizeIterator<Item = usize> {
    let at = args.at;
    let count = at.requests_count.get().map_or(1, |place| usize::try_from(args.int(place)).unwrap_or(0));
    // SAFETY: the program passed that many.
    (0..count).map(move |i| unsafe { args.handle_at(at.requests.place(), i) })
}

/// Collects what a successful call has completed. Returns false if it was a failed poll.
fn after_success(call: &mut Recorded, handles: &[usize]) -> bool {
    let (args, at) = (call.args, call.args.at);
    if call.is_failed_poll() {
        call.record_failed_poll();
        return false;
    }
    // SAFETY: the call has succeeded, so it has written its outputs.
    unsafe {
        let undefined = call.abi().constants.undefined;
        let Some(index) = at.index.get() else {
            (0..handles.len()).for_each(|i| complete(call, handles[i], args.status_at(i)));
            return true;
        };
        let first = args.number_at(index, 0) as i32;
        if first == undefined {
            return true;
        }
        let Some(indices) = at.indices.get() else {
            if let Some(&handle) = handles.get((first - args.first_index()) as usize) {
                complete(call, handle, args.status_at(0));
            }
            return true;
        };
        if first == 0 {
            // MPI_Testsome with active requests, none of which has completed.
            call.record_failed_poll();
            return false;
        }
        for i in 0..first as usize {
            if let Some(&handle) =
                handles.get((args.number_at(indices, i) as i32 - args.first_index()) as usize)
            {
                complete(call, handle, args.status_at(i));
            }
        }
        true
    }
}

/// After an error some requests may have completed: their handles are null, or they are persistent and inactive. A
/// request counts as completed if its own status reports success or truncation (the message was received); others are
/// removed. Returns false.
#[cold]
fn after_error(call: &mut Recorded, handles: &[usize], ended: Ended) -> bool {
    let (args, at, tracer) = (call.args, call.args.at, call.tracer);
    let constants = &call.abi().constants;
    let null = call.abi().predefined.request_null;
    let in_status = |code| tracer.mpi.error_class(code).is_ok_and(|class| class == constants.err_in_status);
    // The statuses of the functions that complete some requests are in another order.
    let of_many = at.requests_count.get().is_some();
    let each_says = of_many && at.is_of_all() && matches!(ended, Ended::Failed(code) if in_status(code));
    for (i, &handle) in handles.iter().enumerate().filter(|(_, handle)| **handle != null) {
        // SAFETY: the array is as long as it was before the call; statuses are the program's or ours, if there are any.
        let (now, status) = unsafe {
            let place = if of_many && at.is_of_all() { i } else { 0 };
            (args.handle_at(at.requests.place(), i), args.status_at(place))
        };
        let error = status.filter(|_| each_says).map(|status| status.error());
        let is_completed = match now == null {
            true => true,
            false if !tracer.known(|known| known.templates.contains_key(&handle)) => false,
            false => match error {
                Some(error) => error != constants.err_pending,
                // SAFETY: a persistent request that the program has not freed.
                None => unsafe { tracer.mpi.request_is_cancelled(Request::from_word(handle)) }
                    .is_ok_and(|cancelled| cancelled.is_some()),
            },
        };
        if !is_completed {
            continue;
        }
        let came = match (error, ended) {
            (Some(error), _) => has_received(tracer, error),
            // MPI does not say which of several requests failed. The most frequent cause is truncation.
            (None, Ended::Failed(code)) => of_many || has_received(tracer, code),
            _ => true,
        };
        if came {
            complete(call, handle, status);
        } else {
            let own = call.lane().writer.thread();
            tracer.known(|known| known.requests.take_of(handle, own));
        }
    }
    false
}

/// Removes the pending request of `handle`, if any, and adds its completion to the list.
fn complete(call: &mut Recorded, handle: usize, status: Option<Status<'_>>) {
    let own = call.lane().writer.thread();
    // MPI may give threads the same handle (small sends that complete at once): a thread completes its own requests.
    let Some(waiting) = call.tracer.known(|known| known.requests.take_of(handle, own)) else { return };
    if waiting.has(PendingRequest::UNRECORDED) {
        return;
    }
    let completions = &mut call.scratch.completions;
    let done = |request, outcome| Completion { request, outcome };
    let received = if waiting.has(PendingRequest::TWIN) {
        completions.push(done(waiting.request(), Outcome::Done));
        waiting.next()
    } else {
        waiting
    };
    let outcome = match status {
        Some(status) if waiting.needs_status() => unusual_outcome(call, waiting, status),
        _ => Outcome::Done,
    };
    call.scratch.completions.push(done(received.request(), outcome));
}

/// The outcome of a wildcard receive or of a cancelled request.
#[cold]
fn unusual_outcome(call: &Recorded, waiting: PendingRequest, status: Status<'_>) -> Outcome {
    let mpi = &call.tracer.mpi;
    if waiting.has(PendingRequest::CANCELLED) && mpi.status_cancelled(&status).unwrap_or(false) {
        return Outcome::Cancelled;
    }
    if !waiting.has(PendingRequest::WILDCARD) {
        return Outcome::Done;
    }
    Outcome::Received {
        source: CommRank(status.source() as u32),
        tag: status.tag(),
        bytes: mpi.status_bytes(&status).ok().map(Bytes),
    }
}

/// `MPI_Cancel`. Whether it succeeded is known at once, or from the status of the request's completion.
pub(super) const CANCEL: Hook = Hook::after(cancel);

fn cancel(call: &mut Recorded) {
    let Some(handle) = handles(&call.args).next() else { return };
    let own = call.lane().writer.thread();
    let waiting = call.tracer.known(|known| known.requests.get_of(handle, own));
    let cancelled = waiting.filter(|waiting| is_cancelled(call, *waiting, handle));
    // The wait for a cancelled one may follow: that must not find another thread's request.
    let flag = if cancelled.is_some() { PendingRequest::UNRECORDED } else { PendingRequest::CANCELLED };
    call.tracer.known(|known| known.requests.mark_of(handle, own, flag));
    if let Some(waiting) = cancelled {
        call.put_completed(&[Completion { request: waiting.request(), outcome: Outcome::Cancelled }]);
    }
}

/// Whether a pending request has completed as cancelled; programs may never wait for it.
fn is_cancelled(call: &Recorded, waiting: PendingRequest, handle: usize) -> bool {
    // SAFETY: under way, so the handle is one.
    let query = || unsafe { call.tracer.mpi.request_is_cancelled(Request::from_word(handle)) };
    !waiting.has(PendingRequest::UNRECORDED) && query() == Ok(Some(true))
}

/// `MPI_Request_free`.
pub(super) const FREE: Hook = Hook { before: take_request, after: freed, after_failure: keep_request };

/// Removes the request before the call: once it is freed, another thread may get the same handle.
fn take_request(call: &mut Recorded) {
    let Some(handle) = handles(&call.args).next() else { return };
    let (tracer, own) = (call.tracer, call.lane().writer.thread());
    let waiting = tracer.known(|known| known.requests.get_of(handle, own));
    // After the call the request can no longer be queried.
    let is_cancelled = waiting
        .is_some_and(|waiting| waiting.has(PendingRequest::CANCELLED) && is_cancelled(call, waiting, handle));
    call.noted = tracer.known(|known| {
        let template = known.templates.remove(&handle);
        // An inactive persistent request may share its handle with a request that another thread's wait has just completed.
        let is_under_way = template.is_none() || waiting.is_some_and(|waiting| waiting.thread() == own);
        let waiting = if is_under_way { known.requests.take_of(handle, own) } else { None };
        Noted::Request { handle, waiting, template, is_cancelled }
    });
}

fn freed(call: &mut Recorded) {
    let Noted::Request { waiting: Some(waiting), is_cancelled, .. } = call.noted else { return };
    let request = waiting.request();
    if waiting.has(PendingRequest::UNRECORDED) {
        return;
    }
    if is_cancelled {
        return call.put_completed(&[Completion { request, outcome: Outcome::Cancelled }]);
    }
    call.put(&Action::Forget(request));
    if waiting.has(PendingRequest::TWIN) {
        call.put(&Action::Forget(waiting.next().request()));
    }
}

fn keep_request(call: &mut Recorded, _ended: Ended) {
    let Noted::Request { handle, waiting, template, .. } = std::mem::take(&mut call.noted) else { return };
    call.tracer.known(|known| {
        waiting.into_iter().for_each(|waiting| known.requests.insert(handle, waiting));
        known.templates.extend(template.map(|template| (handle, template)));
    });
}
