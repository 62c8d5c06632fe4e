//! Calls that a trace cannot represent: their name and bytes are recorded.

use crate::call::{Hook, Recorded};
use crate::hooks::collective::blocks;
use crate::hooks::handles::output;
use crate::hooks::persistent::keep_template;
use crate::requests::Template;
use mpi_abi::prototypes::{Kind, Name};
use vef_format::capture::event::Detail;
use vef_format::units::Bytes;

/// Spawning, `MPI_Pready` and its variants.
pub(super) const OTHER: Hook = Hook::after(|call| {
    // Failed polls are counted, not recorded.
    if call.is_failed_poll() {
        return;
    }
    if let Some(new) = output(call.call(), Kind::CommPtr) {
        call.forget(Kind::Comm, call.new_handle(new));
    }
    call.put_other(Bytes::ZERO, Detail::None);
});

/// Partitioned transfers: each start is recorded under the name of the function that made the request.
pub(super) const PERSISTENT: Hook = Hook::after(|call| {
    let bytes = moved(call);
    keep_template(call, Template::Other(call.call(), bytes));
});

/// The bytes of a partitioned transfer.
fn moved(call: &mut Recorded) -> Bytes {
    let partitions = call.args.find(Name::Partitions).map_or(0, |place| call.args.int(place) as u32);
    blocks(call, (0, partitions), &call.args.at.send, &mut Vec::new()).1
}
