//! Waits, tests, starts and ends of requests.
//!
//! A wait sets the handles of what it completed to null, so they are read before it. Some libraries give the same handle
//! to several requests under way, or handles that were never seen (generalized requests, I/O): the tables allow for both.

use crate::lane::{Lane, Scratch};
use crate::requests::{Template, Waiting};
use crate::wrap::{Args, Done, Language, Row, SUCCESS, around, around_even_paused, find};
use mpi_abi::arguments::Kind;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::Call;
use mpi_abi::status::Status;
use vef_format::capture::event::{Action, Completion, Completions, Outcome, RequestId};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

impl Done<'_> {
    /// Takes what was under way behind `handle`, if anything, onto the list of completions.
    fn complete(&mut self, handle: usize, status: Option<Status<'_>>) {
        // Threads that share a handle (small sends that finish at once) each complete what they made.
        let own = self.lane.thread;
        while let Some(waiting) = self.shared.requests.take_of(handle, own) {
            let outcome =
                if !waiting.curious() { Outcome::Done } else { self.unusual_outcome(waiting, status) };
            self.lane.scratch.completions.push(Completion { request: waiting.request(), outcome });
            if !waiting.has(Waiting::TWIN) {
                break;
            }
        }
    }

    /// How a receive with a wildcard, or a cancelled request, ended.
    #[cold]
    fn unusual_outcome(&mut self, waiting: Waiting, status: Option<Status<'_>>) -> Outcome {
        let Some(status) = status else { return Outcome::Done };
        let mpi = &self.lane.tracer.mpi;
        if waiting.has(Waiting::CANCELLED) && mpi.status_cancelled(&status).unwrap_or(false) {
            return Outcome::Cancelled;
        }
        if !waiting.has(Waiting::WILDCARD) {
            return Outcome::Done;
        }
        Outcome::Received {
            source: CommRank(status.source() as u32),
            tag: status.tag(),
            bytes: status.bytes().map(Bytes),
        }
    }

    /// Records the list of completions.
    fn put_completions(&mut self) {
        if self.lane.scratch.completions.is_empty() {
            return;
        }
        let list = std::mem::take(&mut self.lane.scratch.completions);
        self.put(&Action::Complete(Completions::List(&list)));
        self.lane.scratch.completions = list;
        self.lane.scratch.completions.clear();
    }

    /// Leaves only those of `scratch.handles` that these are the indices of.
    #[inline(always)]
    fn choose(&mut self, indices: impl Iterator<Item = i32>) {
        let Scratch { handles, chosen, .. } = &mut self.lane.scratch;
        chosen.clear();
        chosen.extend(indices.filter_map(|index| handles.get(index as usize)));
        std::mem::swap(handles, chosen);
    }

    /// Completes the requests behind all `scratch.handles` and records that, if each is the oldest of its handle, this thread's
    /// and of the ordinary kind. Else takes those in front of the first that is not onto the list of completions, and gives
    /// how many handles are done with. Puts numbers of requests in the place of handles.
    fn complete_ordinary(&mut self, null: usize) -> usize {
        let own = self.lane.next_request();
        let handles = &mut self.lane.scratch.handles[..];
        let mut taken = 0;
        let mut in_order = true;
        for i in 0..handles.len() {
            let handle = handles[i];
            if handle == null {
                continue;
            }
            let Some(waiting) = self.shared.requests.take_ordinary(handle, own) else {
                self.list_ordinary(taken);
                return i;
            };
            handles[taken] = waiting.number() as usize;
            in_order = in_order && (taken == 0 || handles[taken] == handles[taken - 1] + 1);
            taken += 1;
        }
        let looked_at = handles.len();
        if taken > 0 && in_order {
            let after = own.number() - handles[taken - 1] as u64 - 1;
            self.lane.put_run(self.start, self.end, self.call, taken as u64, after);
        } else if taken > 0 {
            self.lane.put_completed(self.start, self.end, self.lane.tracer.slot(self.call), taken);
        }
        looked_at
    }

    /// The first `taken` own requests, whose numbers are in the place of their handles, go onto the list of completions.
    #[cold]
    #[inline(never)]
    fn list_ordinary(&mut self, taken: usize) {
        let thread = self.lane.thread;
        let Scratch { handles, completions, .. } = &mut self.lane.scratch;
        completions.extend(handles[..taken].iter().map(|&number| Completion {
            request: RequestId { thread, number: number as u64 },
            outcome: Outcome::Done,
        }));
    }
}

/// How many requests a call looks at: one, or as many as it says.
#[inline(always)]
pub(crate) fn length<R: Row, L: Language>(args: &Args<'_, R, L>) -> usize {
    match const { find(R::NAMES, &["count", "incount"]) } {
        Some(_) => usize::try_from(args.length()).unwrap_or(0),
        None => 1,
    }
}

/// Reads the handles, and offers our own statuses where the program wants none and the recorder does.
#[inline(always)]
fn before<R: Row, L: Language, const N: usize>(lane: &mut Lane, words: &mut [usize; N], abi: &'static Abi) {
    let args = Args::<R, L>::new(words, abi);
    let count = length(&args);
    let handles = &mut lane.scratch.handles;
    handles.clear();
    // Of a million no more than are needed.
    handles.reserve_exact(count);
    // SAFETY: the program passed that many.
    unsafe { L::handles(abi, Kind::RequestArray, args.requests(), count, handles) };
    let index = const { find(R::NAMES, &["status", "array_of_statuses"]) };
    if let Some(index) = index
        && lane.tracer.shared().requests.is_curious()
        && (words[index] == 0 || L::ignores_statuses(abi, words[index]))
    {
        let array = const { find(R::NAMES, &["array_of_statuses"]).is_some() };
        words[index] = lane.own_statuses(abi, if array { count } else { 1 });
    }
}

/// `MPI_Wait`, `MPI_Waitall`, `MPI_Waitany`, `MPI_Waitsome`.
#[allow(non_snake_case)]
pub(crate) fn Wait<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    around_even_paused::<R, L, N, ()>(words, next, before::<R, L, N>, |done, args, (), code| {
        if code == SUCCESS {
            after(done, args);
        } else {
            after_error(done, args, code);
        }
    })
}

/// `MPI_Test`, `MPI_Testall`, `MPI_Testany`, `MPI_Testsome`.
#[allow(non_snake_case)]
pub(crate) fn Test<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    Wait::<R, L, N>(words, next)
}

/// What a successful call has completed.
#[inline(always)]
fn after<R: Row, L: Language>(done: &mut Done<'_>, args: &Args<'_, R, L>) {
    use Call::*;
    let flag = const { find(R::NAMES, &["flag"]).is_some() };
    if flag && args.int_at(args.flag(), 0) == 0 {
        return;
    }
    let undefined = args.abi.constants.undefined;
    match R::CALL {
        MPI_Waitany | MPI_Testany => {
            let index = args.int_at(args.index(), 0);
            if index == undefined {
                return;
            }
            done.choose([index - L::FIRST_INDEX].into_iter());
        }
        MPI_Waitsome | MPI_Testsome => {
            let count = args.int_at(args.index(), 0);
            if count == undefined {
                return;
            }
            done.choose((0..count as usize).map(|i| args.int_at(args.indices(), i) - L::FIRST_INDEX));
        }
        _ => {}
    }
    let ordinary = done.complete_ordinary(args.abi.predefined.request_null);
    if ordinary < done.lane.scratch.handles.len() {
        after_each(done, args, ordinary);
    }
}

/// From handle number `from` on, one by one.
fn after_each<R: Row, L: Language>(done: &mut Done<'_>, args: &Args<'_, R, L>, from: usize) {
    let handles = std::mem::take(&mut done.lane.scratch.handles);
    for (i, &handle) in handles.iter().enumerate().skip(from) {
        done.complete(handle, args.status_at(args.status(), i));
    }
    done.lane.scratch.handles = handles;
    done.put_completions();
}

/// After an error some requests may be complete: their handles are null now. Those whose own status says success are
/// recorded, and those whose message was too long, for it was received; the others are only no longer under way.
#[cold]
#[inline(never)]
pub(crate) fn after_error<R: Row, L: Language>(done: &mut Done<'_>, args: &Args<'_, R, L>, code: i32) {
    let null = args.abi.predefined.request_null;
    let mpi = &done.lane.tracer.mpi;
    let several = const { find(R::NAMES, &["array_of_statuses"]).is_some() };
    let each_says = several
        && !matches!(R::CALL, Call::MPI_Waitsome | Call::MPI_Testsome)
        && mpi.error_class(code).is_ok_and(|class| class == args.abi.constants.err_in_status);
    let handles = std::mem::take(&mut done.lane.scratch.handles);
    for (i, &handle) in handles.iter().enumerate() {
        if handle == null || args.handle_at(Kind::RequestArray, args.requests(), i) != null {
            continue;
        }
        let status = args.status_at(args.status(), if several { i } else { 0 });
        let came = match each_says {
            true => status.as_ref().is_some_and(|status| message_came(mpi, status.error())),
            false => !several && message_came(mpi, code),
        };
        if came {
            done.complete(handle, status);
        } else {
            done.shared.requests.take(handle);
        }
    }
    done.lane.scratch.handles = handles;
    done.put_completions();
}

/// Whether a receive that ended with `code` has taken its message: also one that did not fit.
#[cold]
pub(crate) fn message_came(mpi: &mpi_abi::api::Mpi, code: i32) -> bool {
    let too_long = mpi.abi().constants.err_truncate;
    code == SUCCESS || mpi.error_class(code).is_ok_and(|class| class == too_long)
}

/// `MPI_Start`, `MPI_Startall`.
#[allow(non_snake_case)]
pub(crate) fn Start<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    around::<R, L, N, ()>(
        words,
        next,
        |_, _, _| (),
        |done, args, (), code| {
            if code != SUCCESS {
                return;
            }
            for i in 0..length(args) {
                let handle = args.handle_at(Kind::RequestArray, args.requests(), i);
                done.start(handle);
            }
        },
    )
}

impl Done<'_> {
    /// The persistent request `handle` has been started.
    fn start(&mut self, handle: usize) {
        let Some(&place) = self.shared.templates.get(handle) else { return };
        let request = self.next_request();
        // Taken out and put back: recording needs the rest of the shared state.
        let template = self.shared.template_list.get_mut(place as usize).and_then(Option::take);
        let mut waiting = 0;
        match &template {
            Some(Template::Send(send)) => {
                let mut send = *send;
                send.request = Some(request);
                self.put(&Action::Send(send));
            }
            Some(Template::Receive(post)) => {
                let mut post = *post;
                post.request = request;
                waiting = super::flags(&post);
                self.put(&Action::PostReceive(post));
            }
            Some(Template::Collective(part)) => self.put(&Action::Collective(part.started(request))),
            Some(Template::Other(call, bytes)) => self.put_other_as(*call, *bytes),
            None => return,
        }
        let translated = !matches!(template, Some(Template::Other(..)));
        self.shared.template_list[place as usize] = template;
        if !translated {
            return;
        }
        self.pend_handle(handle, request, waiting);
    }
}

/// `MPI_Request_free`, `MPI_Cancel`.
#[allow(non_snake_case)]
pub(crate) fn RequestFree<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    around_even_paused::<R, L, N, usize>(
        words,
        next,
        |_, words, abi| {
            let args = Args::<R, L>::new(words, abi);
            args.handle_at(Kind::RequestPtr, args.request(), 0)
        },
        |done, _, handle, code| {
            if code != SUCCESS {
                return;
            }
            if R::CALL == Call::MPI_Cancel {
                done.cancel(handle);
            } else {
                done.free(handle);
            }
        },
    )
}

impl Done<'_> {
    /// From now on the request's status is of interest.
    fn cancel(&mut self, handle: usize) {
        self.shared.requests.mark(handle, Waiting::CANCELLED);
    }

    /// Nobody will wait for it.
    fn free(&mut self, handle: usize) {
        while let Some(waiting) = self.shared.requests.take(handle) {
            self.put(&Action::Forget(waiting.request()));
            if !waiting.has(Waiting::TWIN) {
                break;
            }
        }
        if let Some(place) = self.shared.templates.remove(handle) {
            self.shared.template_list[place as usize] = None;
            self.shared.free_templates.push(place);
        }
    }
}
