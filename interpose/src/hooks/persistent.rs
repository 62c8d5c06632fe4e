//! Persistent requests: a template stored when the request is made says what each start does.

use crate::call::{Hook, Recorded};
use crate::hooks::completion::{handles, read_handles};
use crate::requests::Template;
use crate::table::HandleMap;
use mpi_abi::prototypes::Name;
use vef_format::capture::event::{Action, Collective, Neighbourhood, Partitioned, PostReceive, Send};

/// Stores the template of the persistent request that a call has made.
pub(super) fn keep_template(call: &mut Recorded, template: Template) {
    let Some(place) = call.args.find(Name::Request) else { return };
    let handle = call.new_handle(place);
    call.tracer.known(|known| known.templates.insert(handle, template));
}

/// `MPI_Start`, `MPI_Startall`.
pub(super) const START: Hook = Hook { before: read_handles, after: starts, ..Hook::NONE };

fn starts(call: &mut Recorded) {
    let before = std::mem::take(&mut call.scratch.handles);
    let args = call.args;
    // The first event has the time of the call, which is computing if the event has no record.
    for has_record in [true, false] {
        for (before, now) in before.iter().zip(handles(&args)) {
            start(call, *before, now, has_record);
        }
    }
    call.scratch.handles = before;
}

/// Records a start of the persistent request `handle`, if the start has a record in traces, or has none. Some libraries change the handle to `now`.
fn start(call: &mut Recorded, handle: usize, now: usize, has_record: bool) {
    let take = |templates: &mut HandleMap<Template>| {
        let has = match templates.get(&handle)? {
            Template::Send(_) | Template::Collective(_) | Template::Neighbourhood(..) => true,
            Template::Receive(_) | Template::Partitioned(..) | Template::Unrecorded => false,
        };
        if has == has_record { templates.remove(&handle) } else { None }
    };
    let Some(template) = call.tracer.known(|known| take(&mut known.templates)) else { return };
    let request = call.next_request();
    match &template {
        Template::Send(send) => call.put(&Action::Send(Send { request: Some(request), ..*send })),
        Template::Receive(post) => call.put(&Action::PostReceive(PostReceive { request, ..*post })),
        Template::Collective(part) => {
            let (part, [send_counts, recv_counts]) = &**part;
            let part = Collective { request: Some(request), send_counts, recv_counts, ..part.clone() };
            call.put(&Action::Collective(part));
        }
        Template::Neighbourhood(made_by, part) => {
            let (part, [send_counts, recv_counts]) = &**part;
            let part = Neighbourhood { request: Some(request), send_counts, recv_counts, ..*part };
            call.put_as(*made_by, &Action::Neighbourhood(part));
        }
        &Template::Partitioned(id, _) => call.put(&Action::Partitioned(Partitioned::Start { id, request })),
        Template::Unrecorded => {}
    }
    // A thread that finds no request of its own under a handle would complete another thread's.
    let made = call.made.take().unwrap_or_else(|| call.lane().writer.unrecorded_request());
    call.tracer.known(|known| {
        known.requests.insert(now, made);
        known.templates.insert(now, template);
    });
}
