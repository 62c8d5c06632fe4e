//! What is recorded of a call, by the category of its function.
//!
//! Positions of arguments are computed at compile time from their names in the standard: functions of a family have
//! their common arguments at the same positions.

mod collective;
mod completion;
mod files;
mod handles;
mod lifecycle;
mod neighbourhood;
mod one_sided;
mod partitioned;
mod persistent;
mod point_to_point;
mod processes;

pub(crate) use handles::output;
pub(crate) use lifecycle::begin;

use crate::call::Hook;
use crate::tracer::{State, Tracer};
use mpi_abi::prototypes::{Call, Category, Name, Timing};

/// Whether a recorder currently records the calls of a function.
pub(crate) fn record(tracer: &Tracer, call: Call) -> bool {
    use Category::*;
    // These change the meaning of handles or complete requests.
    let is_needed_later = || {
        call.timing() == Timing::Persistent
            || is_end(call)
            || call == Call::MPI_Grequest_start
            || matches!(
                call.category(),
                CommCreate
                    | CommFree
                    | WinCreate
                    | WinFree
                    | Process
                    | TypeCreate
                    | TypeFree
                    | RequestFree
                    | Wait
            )
    };
    let is_recording = match tracer.state() {
        State::Recording => true,
        State::Paused => is_needed_later(),
        State::Closed | State::Over => false,
    };
    is_recording && of(call).is_some()
}

/// Whether a call tells of requests, which it does not complete. `MPI_Request_get_status_some` tells it without a flag.
fn asks(call: Call) -> bool {
    use Call as C;
    matches!(call, C::MPI_Request_get_status | C::MPI_Request_get_status_all | C::MPI_Request_get_status_any)
}

fn is_end(call: Call) -> bool {
    matches!(call, Call::MPI_Finalize | Call::MPI_Session_finalize)
}

/// Whether [`record`](crate::record) counts the calls of a function. Hooks of the category `Lifecycle` count their own calls.
pub(crate) fn are_counted(call: Call) -> bool {
    !matches!(call.category(), Category::TypeCreate | Category::Lifecycle) && call != Call::MPI_Grequest_start
}

/// The hook of a function; `None`: its calls are not recorded.
pub(crate) fn of(call: Call) -> Option<&'static Hook> {
    use Category::*;
    Some(match (call.category(), call.timing()) {
        (Send, _) => &point_to_point::SEND,
        (Recv, _) if call.position(Name::Message).is_some() => &point_to_point::MATCHED_RECEIVE,
        (Recv, _) => &point_to_point::RECEIVE,
        (SendRecv, _) => &point_to_point::EXCHANGE,
        (Probe, _) => &point_to_point::PROBE,
        (Wait, _) => &completion::WAIT,
        (Start, _) => &persistent::START,
        (RequestFree, _) if call == Call::MPI_Cancel => &completion::CANCEL,
        (RequestFree, _) => &completion::FREE,
        // Its request has no record.
        (Request, _) if call == Call::MPI_Grequest_start => &Hook::NONE,
        (Request, _) if asks(call) => &completion::ASK,
        (Collective, _) => &collective::COLLECTIVE,
        (NeighborCollective, _) => &neighbourhood::NEIGHBOURHOOD,
        (Partitioned, Timing::Persistent) => &partitioned::INIT,
        (Partitioned, _) if call == Call::MPI_Parrived => &partitioned::ARRIVED,
        (Partitioned, _) => &partitioned::READY,
        (Process, _) => &processes::PROCESS,
        (CommCreate, _) => &handles::COMM_CREATE,
        (TypeCreate, _) => &handles::TYPE_CREATE,
        (CommFree | TypeFree | WinFree | FileClose, _) => &handles::FREE,
        (WinCreate, _) => &one_sided::CREATE,
        (Rma, _) => &one_sided::TRANSFER,
        (RmaSync, _) => &one_sided::SYNCHRONISATION,
        (FileOpen, _) => &files::OPEN,
        (FileSync, _) => &files::COLLECTIVE,
        (Io, _) => &files::ACCESS,
        (Lifecycle, _) if call == Call::MPI_Abort => &lifecycle::ABORT,
        (Lifecycle, _) if is_end(call) => &lifecycle::END,
        (
            Request | Status | CommQuery | Topology | Group | WinQuery | FileQuery | TypeCommit | TypeQuery
            | Lifecycle | Session | Attribute | ErrorHandling | Info | Op | Pcontrol | Local | Conversion,
            _,
        ) => return None,
    })
}
