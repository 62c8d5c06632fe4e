//! Waits, tests and other ends of requests.
//!
//! A wait sets the handles of completed requests to null, so they are read before the call. MPI may give several
//! pending requests the same handle, and some requests have no record (generalized requests).

use crate::call::{Ended, Hook, Recorded, has_received};
use crate::requests::PendingRequest;
use mpi_abi::handles::Request;
use mpi_abi::prototypes::{Call, Name};
use mpi_abi::status::Status;
use vef_format::capture::event::{Action, Completion, Outcome};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// The positions of the arguments of a wait or test.
#[derive(Clone, Copy)]
pub(crate) struct WaitPlaces {
    /// The number of requests; `None` for functions with one request.
    pub(crate) count: Option<usize>,
    pub(crate) requests: usize,
    /// Whether any request has completed.
    pub(crate) flag: Option<usize>,
    /// The index of the completed request, or the number of completed requests.
    index: Option<usize>,
    /// The indices of the completed requests.
    indices: Option<usize>,
    status: usize,
}

impl WaitPlaces {
    const fn of(call: Call) -> Self {
        const fn either(first: Option<usize>, second: Option<usize>) -> Option<usize> {
            if first.is_some() { first } else { second }
        }
        Self {
            count: either(call.position(Name::Count), call.position(Name::Incount)),
            requests: match call.position(Name::ArrayOfRequests) {
                Some(place) => place,
                None => call.place(Name::Request),
            },
            flag: call.position(Name::Flag),
            index: either(call.position(Name::Indx), call.position(Name::Outcount)),
            indices: call.position(Name::ArrayOfIndices),
            status: match call.position(Name::ArrayOfStatuses) {
                Some(place) => place,
                None => call.place(Name::Status),
            },
        }
    }

    /// The positions for a function of the category `Wait`.
    pub(crate) const fn find(call: Call) -> Self {
        match call {
            Call::MPI_Waitall => const { Self::of(Call::MPI_Waitall) },
            Call::MPI_Waitany => const { Self::of(Call::MPI_Waitany) },
            Call::MPI_Waitsome => const { Self::of(Call::MPI_Waitsome) },
            Call::MPI_Test => const { Self::of(Call::MPI_Test) },
            Call::MPI_Testall => const { Self::of(Call::MPI_Testall) },
            Call::MPI_Testany => const { Self::of(Call::MPI_Testany) },
            Call::MPI_Testsome => const { Self::of(Call::MPI_Testsome) },
            _ => const { Self::of(Call::MPI_Wait) },
        }
    }

    /// Whether the call completes either all of its requests or none.
    pub(crate) fn is_of_all(&self) -> bool {
        self.index.is_none()
    }

    /// Whether the call takes an array of requests.
    fn has_array(&self) -> bool {
        self.count.is_some()
    }
}

/// `MPI_Wait`, `MPI_Test` and their variants.
pub(super) struct Wait;

impl Hook for Wait {
    /// Reads the handles, and supplies statuses if the program ignores them and the recorder needs them.
    fn before(&self, call: &mut Recorded) {
        let at = WaitPlaces::find(call.call());
        let args = call.args;
        let count = at.count.map_or(1, |place| usize::try_from(args.int(place)).unwrap_or(0));
        let handles = &mut call.scratch.handles;
        handles.clear();
        // Programs may wait for millions of requests: no spare capacity.
        handles.reserve_exact(count);
        // SAFETY: the program passed that many.
        handles.extend((0..count).map(|i| unsafe { args.handle_at(at.requests, i) }));
        if call.tracer.known().requests.needs_statuses() {
            call.supply_statuses(at.status, if at.has_array() { count } else { 1 });
        }
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        let at = WaitPlaces::find(call.call());
        // Calls from callbacks within this one may have used the lists.
        let handles = std::mem::take(&mut call.scratch.handles);
        match ended {
            Ended::Success => {
                if after_success(call, &at, &handles) && call.scratch.completions.is_empty() {
                    call.lane().writer.forget_polls();
                }
            }
            Ended::Failed(code) => after_error(call, &at, &handles, Some(code)),
            Ended::Thrown => after_error(call, &at, &handles, None),
        }
        call.scratch.handles = handles;
        put_completions(call);
    }
}

/// Collects what a successful call has completed. Returns false if it was a failed poll.
fn after_success(call: &mut Recorded, at: &WaitPlaces, handles: &[usize]) -> bool {
    let args = call.args;
    // SAFETY: the call has succeeded, so it has written its outputs.
    unsafe {
        if at.flag.is_some_and(|flag| args.int_at(flag, 0) == 0) {
            call.record_failed_poll();
            return false;
        }
        let undefined = call.abi().constants.undefined;
        let Some(index) = at.index else {
            (0..handles.len()).for_each(|i| complete(call, handles[i], args.status_at(at.status, i)));
            return true;
        };
        let first = args.int_at(index, 0);
        if first == undefined {
            return true;
        }
        let Some(indices) = at.indices else {
            if let Some(&handle) = handles.get((first - args.first_index()) as usize) {
                complete(call, handle, args.status_at(at.status, 0));
            }
            return true;
        };
        if first == 0 {
            // MPI_Testsome with active requests, none of which has completed.
            call.record_failed_poll();
            return false;
        }
        for i in 0..first as usize {
            if let Some(&handle) = handles.get((args.int_at(indices, i) - args.first_index()) as usize) {
                complete(call, handle, args.status_at(at.status, i));
            }
        }
        true
    }
}

/// After an error some requests may have completed: their handles are null, or they are persistent and inactive. A
/// request counts as completed if its own status reports success or truncation (the message was received); others are
/// removed. `code` is `None` after an exception.
#[cold]
fn after_error(call: &mut Recorded, at: &WaitPlaces, handles: &[usize], code: Option<i32>) {
    let (args, tracer) = (call.args, call.tracer);
    let constants = &call.abi().constants;
    let null = call.abi().predefined.request_null;
    let in_status = |code| tracer.mpi.error_class(code).is_ok_and(|class| class == constants.err_in_status);
    // The statuses of the functions that complete some requests are in another order.
    let each_says = at.has_array() && at.index.is_none() && code.is_some_and(in_status);
    for (i, &handle) in handles.iter().enumerate().filter(|(_, handle)| **handle != null) {
        // SAFETY: the array is as long as it was before the call; statuses are the program's or ours, if there are any.
        let (now, status) = unsafe {
            let place = if at.has_array() && at.index.is_none() { i } else { 0 };
            (args.handle_at(at.requests, i), args.status_at(at.status, place))
        };
        let error = status.filter(|_| each_says).map(|status| status.error());
        let is_completed = match now == null {
            true => true,
            false if tracer.known().templates.get(handle).is_none() => false,
            false => match error {
                Some(error) => error != constants.err_pending,
                // SAFETY: a persistent request that the program has not freed.
                None => unsafe { tracer.mpi.request_is_over(Request::from_word(handle)) }.unwrap_or(false),
            },
        };
        if !is_completed {
            continue;
        }
        let came = match (error, code) {
            (Some(error), _) => has_received(tracer, error),
            // MPI does not say which of several requests failed. The most frequent cause is truncation.
            (None, Some(code)) => at.has_array() || has_received(tracer, code),
            (None, None) => true,
        };
        if came {
            complete(call, handle, status);
        } else {
            tracer.known().requests.take_of(handle, call.lane().writer.thread());
        }
    }
}

/// Removes the pending request of `handle`, if any, and adds its completion to the list.
fn complete(call: &mut Recorded, handle: usize, status: Option<Status<'_>>) {
    let own = call.lane().writer.thread();
    // MPI may give threads the same handle (small sends that complete at once): a thread completes its own requests.
    let Some(waiting) = call.tracer.known().requests.take_of(handle, own) else { return };
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

/// Records the list of completions.
fn put_completions(call: &mut Recorded) {
    if call.scratch.completions.is_empty() {
        return;
    }
    let list = std::mem::take(&mut call.scratch.completions);
    call.put_completed(&list);
    call.scratch.completions = list;
    call.scratch.completions.clear();
}

const REQUEST: usize = Call::MPI_Request_free.place(Name::Request);
const _: () = assert!(REQUEST == Call::MPI_Cancel.place(Name::Request));

/// `MPI_Cancel`. Whether it succeeded is known at once, or from the status of the request's completion.
pub(super) struct Cancel;

impl Hook for Cancel {
    fn after(&self, call: &mut Recorded, ended: Ended) {
        if !ended.is_success() {
            return;
        }
        // SAFETY: the program passed one.
        let handle = unsafe { call.args.handle_at(REQUEST, 0) };
        let own = call.lane().writer.thread();
        let waiting = call.tracer.known().requests.get_of(handle, own);
        let Some(waiting) = waiting.filter(|waiting| is_cancelled(call, *waiting, handle)) else {
            return call.tracer.known().requests.mark_of(handle, own, PendingRequest::CANCELLED);
        };
        // Its wait may follow: that must not find another thread's request.
        call.tracer.known().requests.mark_of(handle, own, PendingRequest::UNRECORDED);
        call.put_completed(&[Completion { request: waiting.request(), outcome: Outcome::Cancelled }]);
    }
}

/// Whether a pending request has completed as cancelled; programs may never wait for it.
fn is_cancelled(call: &Recorded, waiting: PendingRequest, handle: usize) -> bool {
    // SAFETY: under way, so the handle is one.
    let query = || unsafe { call.tracer.mpi.request_is_cancelled(Request::from_word(handle)) };
    !waiting.has(PendingRequest::UNRECORDED) && query().unwrap_or(false)
}

/// `MPI_Request_free`.
pub(super) struct Free;

impl Hook for Free {
    /// Removes the request before the call: once it is freed, another thread may get the same handle.
    fn before(&self, call: &mut Recorded) {
        // SAFETY: the program passed one.
        call.saved = unsafe { call.args.handle_at(REQUEST, 0) };
        let own = call.lane().writer.thread();
        let waiting = call.tracer.known().requests.get_of(call.saved, own);
        // After the call the request can no longer be queried.
        call.saved_flag = waiting.is_some_and(|waiting| {
            waiting.has(PendingRequest::CANCELLED) && is_cancelled(call, waiting, call.saved)
        });
        let mut known = call.tracer.known();
        let template = known.templates.remove(call.saved).flatten();
        // An inactive persistent request may share its handle with a request that another thread's wait has just completed.
        let is_under_way = template.is_none() || known.requests.has_of(call.saved, own);
        let waiting = if is_under_way { known.requests.take_of(call.saved, own) } else { None };
        drop(known);
        call.freed = (waiting, template);
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        let (waiting, template) = std::mem::take(&mut call.freed);
        if !ended.is_success() {
            let mut known = call.tracer.known();
            waiting.into_iter().for_each(|waiting| known.requests.insert(call.saved, waiting));
            template.into_iter().for_each(|template| known.templates.insert(call.saved, Some(template)));
            return;
        }
        let Some(waiting) = waiting.filter(|waiting| !waiting.has(PendingRequest::UNRECORDED)) else {
            return;
        };
        if call.saved_flag {
            let outcome = Outcome::Cancelled;
            return call.put_completed(&[Completion { request: waiting.request(), outcome }]);
        }
        call.put(&Action::Forget(waiting.request()));
        if waiting.has(PendingRequest::TWIN) {
            call.put(&Action::Forget(waiting.next().request()));
        }
    }
}
