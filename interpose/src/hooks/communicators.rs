//! Communicators and datatypes that come and go.

use crate::comms::Made;
use crate::wrap::{Args, Language, Row, SUCCESS, around_even_paused, find, simply_even_paused};
use mpi_abi::arguments::Kind;
use mpi_abi::prototypes::Call;
use vef_format::capture::event::{Action, Split};
use vef_format::ids::CommId;

/// All functions that make a communicator from one, or from a group.
#[allow(non_snake_case)]
pub(crate) fn CommCreate<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    use Call::*;
    simply_even_paused::<R, L, N>(words, next, |done, args| {
        let made = match R::CALL {
            // Ranks of both sides are in it, whose parents differ.
            MPI_Intercomm_merge | MPI_Comm_create_from_group | MPI_Intercomm_create_from_groups => {
                Made::Unseen
            }
            MPI_Comm_create_group => Made::Group(done.comm(args.comm()).id, args.tag()),
            _ => {
                let parent = done.comm(args.comm());
                // Also where this rank gets no communicator: the others count this call.
                Made::Child(parent.id, done.shared.comms.count_child(parent.id))
            }
        };
        let handle = args.handle_at(Kind::CommPtr, args.new_comm(), 0);
        if handle == args.abi.predefined.comm_null {
            return;
        }
        // A duplicate on its way must not be asked yet, but it will be as its parent is.
        let duplicate = matches!(R::CALL, MPI_Comm_idup | MPI_Comm_idup_with_info);
        let like = duplicate.then(|| args.comm());
        let times = (done.start, done.end);
        let split = (R::CALL == MPI_Comm_split).then(|| Split { color: args.color(), key: args.key() });
        let call = done.lane.tracer.slot(R::CALL);
        done.shared.comms.describe(done.lane, handle, like, made, split, times, call);
    })
}

/// `MPI_Comm_free`, `MPI_Comm_disconnect`.
#[allow(non_snake_case)]
pub(crate) fn CommFree<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    around_even_paused::<R, L, N, Option<CommId>>(
        words,
        next,
        // Forgotten before: another thread may be given the handle anew as soon as it is free.
        |lane, words, abi| {
            let args = Args::<R, L>::new(words, abi);
            let handle = args.handle_at(Kind::CommPtr, args.freed_comm(), 0);
            let freed = lane.tracer.shared().comms.forget(handle).map(|comm| comm.id);
            if freed.is_some() {
                lane.tracer.forget_shapes(freed, None);
            }
            freed
        },
        |done, _, freed, code| {
            if let Some(id) = freed
                && code == SUCCESS
            {
                done.put(&Action::CommunicatorFree(id));
            }
        },
    )
}

/// `MPI_Type_free`.
#[allow(non_snake_case)]
pub(crate) fn TypeFree<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    around_even_paused::<R, L, N, ()>(
        words,
        next,
        |lane, words, abi| {
            if const { find(R::NAMES, &["datatype"]).is_some() } {
                let args = Args::<R, L>::new(words, abi);
                let handle = args.handle_at(Kind::DatatypePtr, args.freed_type(), 0);
                let freed = lane.tracer.shared().types.forget(handle);
                if let Some(freed) = freed {
                    lane.tracer.forget_shapes(None, Some(freed.id));
                }
            }
        },
        |_, _, (), _| {},
    )
}
