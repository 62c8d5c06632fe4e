//! What is recorded of a call, by the category of its function.
//!
//! Positions of arguments are computed at compile time from their names in the standard: functions of a family have
//! their common arguments at the same positions.

mod collective;
mod completion;
mod files;
mod handles;
mod lifecycle;
mod one_sided;
mod other;
mod persistent;
mod point_to_point;

pub(crate) use handles::output;
pub(crate) use lifecycle::begin;

use crate::call::Hook;
use crate::places::Places;
use crate::tracer::{State, Tracer};
use mpi_abi::prototypes::{Call, Category, Timing};

/// Whether a recorder currently records the calls of a function.
pub(crate) fn record(tracer: &Tracer, call: Call) -> bool {
    use Category::*;
    // These change the meaning of handles or complete requests.
    let is_needed_later = || {
        call.timing() == Timing::Persistent
            || is_end(call)
            || matches!(
                call.category(),
                CommCreate | CommFree | TypeCreate | TypeFree | Request | RequestFree | Wait
            )
    };
    let is_recording = match tracer.state() {
        State::Recording => true,
        State::Paused => is_needed_later(),
        State::Closed | State::Over => false,
    };
    is_recording && of(call).is_some()
}

fn is_end(call: Call) -> bool {
    matches!(call, Call::MPI_Finalize | Call::MPI_Session_finalize)
}

/// Whether [`record`](crate::record) counts the calls of a function. Hooks of the category `Lifecycle` count their own calls.
pub(crate) fn are_counted(call: Call) -> bool {
    !matches!(call.category(), Category::TypeCreate | Category::Request | Category::Lifecycle)
}

/// The hook of a function; `None`: its calls are not recorded.
pub(crate) fn of(call: Call) -> Option<&'static dyn Hook> {
    use Category::*;
    Some(match (call.category(), call.timing()) {
        (Collective, _) => &collective::Collective,
        (Send, _) => &point_to_point::Send,
        (Recv, _) if Places::of(call).message.get().is_some() => &point_to_point::MatchedReceive,
        (Recv, _) => &point_to_point::Receive,
        (SendRecv, _) => &point_to_point::Exchange,
        (Probe, _) => &point_to_point::Probe,
        (Wait, _) => &completion::Wait,
        (Start, _) => &persistent::Start,
        (RequestFree, _) if call == Call::MPI_Cancel => &completion::Cancel,
        (RequestFree, _) => &completion::Free,
        (CommCreate, _) => &handles::CommCreate,
        (CommFree | TypeFree | WinFree | FileClose, _) => &handles::Free,
        (Rma, _) => &one_sided::Transfer,
        (RmaSync, _) => &one_sided::Synchronisation,
        (WinCreate, _) => &one_sided::Create,
        (FileOpen, _) => &files::Open,
        (FileSync, _) => &files::Collective,
        (Io, _) => &files::Access,
        (NeighborCollective | Partitioned, Timing::Persistent) => &other::Persistent,
        (NeighborCollective | Partitioned | Process, _) => &other::Other,
        (Lifecycle, _) if call == Call::MPI_Abort => &lifecycle::Abort,
        (Lifecycle, _) if is_end(call) => &lifecycle::End,
        (TypeCreate, _) => &handles::TypeCreate,
        (Request, _) if call == Call::MPI_Grequest_start => &handles::Generalized,
        _ => return None,
    })
}
