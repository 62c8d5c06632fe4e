//! Calls that a trace cannot represent: their names are recorded.

use crate::call::Hook;
use crate::hooks::handles::output;
use mpi_abi::prototypes::Kind;
use vef_format::capture::event::Detail;
use vef_format::units::Bytes;

/// Spawning, ports and names.
pub(super) const OTHER: Hook = Hook::after(|call| {
    if let Some(new) = output(call.call(), Kind::CommPtr) {
        call.forget(Kind::Comm, call.new_handle(new));
    }
    call.put_other(Bytes::ZERO, Detail::None);
});
