//! Persistent requests: a template stored when the request is made says what each start does.

use crate::call::{Ended, Hook, Recorded};
use crate::requests::Template;
use mpi_abi::prototypes::{Call, Name};
use vef_format::capture::event::{Action, Collective, Detail};

/// Stores the template of the persistent request that a call has made.
pub(super) fn keep_template(call: &mut Recorded, template: Template) {
    let Some(place) = call.args.find(Name::Request) else { return };
    // SAFETY: the call has succeeded, and so has set it.
    let handle = unsafe { call.args.handle_at(place, 0) };
    call.tracer.known().templates.insert(handle, Some(template));
}

/// `MPI_Start`, `MPI_Startall`.
pub(super) struct Start;

const COUNT: usize = Call::MPI_Startall.place(Name::Count);
const REQUESTS: usize = Call::MPI_Startall.place(Name::ArrayOfRequests);
const REQUEST: usize = Call::MPI_Start.place(Name::Request);

impl Start {
    /// The current handles of the requests.
    fn handles(call: &Recorded) -> impl Iterator<Item = usize> + use<> {
        let args = call.args;
        let (place, count) = match args.call() {
            Call::MPI_Start => (REQUEST, 1),
            _ => (REQUESTS, usize::try_from(args.int(COUNT)).unwrap_or(0)),
        };
        // SAFETY: the program passed that many.
        (0..count).map(move |i| unsafe { args.handle_at(place, i) })
    }
}

impl Hook for Start {
    fn before(&self, call: &mut Recorded) {
        call.scratch.handles.clear();
        let handles = Self::handles(call);
        call.scratch.handles.extend(handles);
    }

    fn after(&self, call: &mut Recorded, ended: Ended) {
        if !ended.is_success() {
            return;
        }
        let before = std::mem::take(&mut call.scratch.handles);
        for (before, now) in before.iter().zip(Self::handles(call)) {
            start(call, *before, now);
        }
        call.scratch.handles = before;
    }
}

/// Records a start of the persistent request `handle`. Some libraries change the handle to `now`.
fn start(call: &mut Recorded, handle: usize, now: usize) {
    let Some(template) = call.tracer.known().templates.remove(handle).flatten() else { return };
    let request = call.next_request();
    match &template {
        Template::Send(send) => {
            call.put(&Action::Send(vef_format::capture::event::Send { request: Some(request), ..*send }));
        }
        Template::Receive(post) => {
            call.put(&Action::PostReceive(vef_format::capture::event::PostReceive { request, ..*post }));
        }
        Template::Collective(part) => {
            let (part, [send_counts, recv_counts]) = &**part;
            let part = Collective { request: Some(request), send_counts, recv_counts, ..part.clone() };
            call.put(&Action::Collective(part));
        }
        Template::Other(made_by, bytes) => {
            call.put_as(*made_by, &Action::Other { bytes: *bytes, detail: Detail::None });
        }
        Template::Unrecorded => {}
    }
    // A thread that finds no request of its own under a handle would complete another thread's.
    let made = call.made.take().unwrap_or_else(|| call.lane().writer.unrecorded_request());
    let mut known = call.tracer.known();
    known.requests.insert(now, made);
    known.templates.insert(now, Some(template));
}
