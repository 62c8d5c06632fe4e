//! One-sided communication: windows, transfers and synchronisation.

use crate::call::{Hook, Recorded};
use crate::comms::compact;
use mpi_abi::prototypes::{Call, CallDetail, Kind, Name};
use vef_format::capture::event::{Detail, Transfer, WindowId};
use vef_format::ids::CommRank;
use vef_format::units::Bytes;

/// `MPI_Win_create` and its variants.
pub(super) const CREATE: Hook = Hook::after(|call| {
    let args = call.args;
    let (Some(comm), Some(window)) = (args.find(Name::Comm), args.find(Name::Win)) else { return };
    let comm = call.comm(args.handle(comm)).id;
    let handle = call.new_handle(window);
    call.forget(Kind::Win, handle);
    let number = |name| args.find(name).map_or(0, |place| args.number(place));
    let size = Bytes(u64::try_from(number(Name::Size)).unwrap_or(0));
    let unit = u32::try_from(number(Name::DispUnit)).unwrap_or(0);
    let id = WindowId(call.tracer.known(|known| known.windows.add(handle, |id| id)));
    call.put_other(Bytes::ZERO, Detail::Window { id, comm, size, unit });
});

/// `MPI_Put`, `MPI_Get`, `MPI_Accumulate` and their variants.
pub(super) const TRANSFER: Hook = Hook::after(transfer);

fn transfer(call: &mut Recorded) {
    let args = call.args;
    let (Some(target), Some(displacement), Some(window)) =
        (args.find(Name::TargetRank), args.find(Name::TargetDisp), args.find(Name::Win))
    else {
        return;
    };
    let rank = args.int(target);
    if rank == call.abi().constants.proc_null {
        return;
    }
    // With MPI_NO_OP the origin data is not sent.
    let op = args.find(Name::Op).map(|place| args.handle(place));
    let sends = op != Some(call.abi().predefined.op_no_op);
    let origin = if sends { bytes(call, Name::OriginCount, Name::OriginDatatype) } else { Bytes::ZERO };
    let (sent, fetched) = match args.call.detail() {
        CallDetail::Put => (origin, Bytes::ZERO),
        CallDetail::Get => (Bytes::ZERO, origin),
        // Both operands are sent: the new value and the one compared with.
        _ if args.call == Call::MPI_Compare_and_swap => {
            (Bytes(origin.0.saturating_mul(2)), bytes(call, Name::ResultCount, Name::ResultDatatype))
        }
        _ => (origin, bytes(call, Name::ResultCount, Name::ResultDatatype)),
    };
    let at_target = bytes(call, Name::TargetCount, Name::TargetDatatype);
    let request = call.next_request();
    let moved = Bytes(sent.0.wrapping_add(fetched.0));
    let Some(window) = call.window(args.handle(window)) else {
        return call.put_other(moved, Detail::None);
    };
    let transfer = Transfer {
        window,
        target: CommRank(rank as u32),
        displacement: args.number(displacement),
        sent,
        fetched,
        at_target,
        request: args.find(Name::Request).map(|_| request),
    };
    call.put_other(moved, Detail::Transfer(transfer));
}

/// The bytes of `count` elements of `datatype`; one element for functions without a count.
fn bytes(call: &mut Recorded, count: Name, datatype: Name) -> Bytes {
    let args = call.args;
    let Some(datatype) = args.find(datatype).or_else(|| args.find(Name::Datatype)) else {
        return Bytes::ZERO;
    };
    call.bytes(args.find(count).map_or(1, |place| args.number(place)), args.handle(datatype))
}

/// Fences, locks, flushes, post/start/complete/wait.
pub(super) const SYNCHRONISATION: Hook = Hook::after(|call| {
    let args = call.args;
    // Failed polls are counted, not recorded.
    if call.is_failed_poll() {
        return;
    }
    let Some(window) = args.find(Name::Win).and_then(|place| call.window(args.handle(place))) else {
        return call.put_other(Bytes::ZERO, Detail::None);
    };
    let int = |name| args.find(name).map(|place| args.int(place));
    let group = args.find(Name::Group).map(|place| call.tracer.group_members(args.handle(place)));
    let sync = Detail::Sync {
        window,
        target: int(Name::Rank).map(|rank| CommRank(rank as u32)),
        exclusive: int(Name::LockType) == Some(call.abi().constants.lock_exclusive),
        assert: int(Name::Assert).unwrap_or(0),
        group: group.as_ref().map(|ranks| compact(ranks, call.tracer.tasks)),
    };
    call.put_other(Bytes::ZERO, sync);
});
