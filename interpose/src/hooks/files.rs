//! Files: opening, reading and writing, and other collective operations.

use crate::call::{Hook, Recorded};
use mpi_abi::prototypes::{Call, CallDetail, Kind, Name};
use vef_format::capture::event::{Detail, FileId, Io};
use vef_format::units::Bytes;

/// `MPI_File_open`.
pub(super) const OPEN: Hook = Hook::after(|call| {
    const COMM: usize = Call::MPI_File_open.place(Name::Comm);
    const NAME: usize = Call::MPI_File_open.place(Name::Filename);
    const MODE: usize = Call::MPI_File_open.place(Name::Amode);
    const FILE: usize = Call::MPI_File_open.place(Name::Fh);
    let args = call.args;
    let comm = call.comm(args.handle(COMM)).id;
    // SAFETY: the call has succeeded, so its name is a string.
    let (handle, name) = (call.new_handle(FILE), unsafe { args.text(NAME) });
    call.forget(Kind::File, handle);
    let id = FileId(call.tracer.known(|known| known.files.add(handle, |id| id)));
    call.put_other(Bytes::ZERO, Detail::FileOpen { id, comm, mode: args.int(MODE), name: &name });
});

/// `MPI_File_set_view`, `MPI_File_set_size` and other collective operations.
pub(super) const COLLECTIVE: Hook = Hook::after(|call| {
    const DISPLACEMENT: usize = Call::MPI_File_set_view.place(Name::Disp);
    const UNIT: usize = Call::MPI_File_set_view.place(Name::Etype);
    const FILE: usize = Call::MPI_File_set_view.place(Name::Fh);
    let args = call.args;
    let file = (args.call == Call::MPI_File_set_view).then(|| call.file(args.file(FILE))).flatten();
    let detail = file.map_or(Detail::None, |file| Detail::FileView {
        file,
        displacement: args.number(DISPLACEMENT),
        unit: call.datatype(args.handle(UNIT)).bytes(1),
    });
    call.put_other(Bytes::ZERO, detail);
});

/// Reads and writes. The end of a split collective moves no data.
pub(super) const ACCESS: Hook = Hook::after(access);

fn access(call: &mut Recorded) {
    const FILE: usize = Call::MPI_File_read.place(Name::Fh);
    let args = call.args;
    let way = args.call.detail();
    let bytes = match args.find(Name::Count).zip(args.find(Name::Datatype)) {
        Some((count, datatype)) => call.bytes(args.number(count), args.handle(datatype)),
        None => Bytes::ZERO,
    };
    let request = call.next_request();
    let Some(file) = call.file(args.file(FILE)).filter(|_| way != CallDetail::None) else {
        return call.put_other(bytes, Detail::None);
    };
    let io = Io {
        file,
        offset: args.find(Name::Offset).map(|place| args.number(place)),
        write: matches!(way, CallDetail::Write | CallDetail::WriteAll),
        collective: matches!(way, CallDetail::ReadAll | CallDetail::WriteAll),
        request: args.find(Name::Request).map(|_| request),
    };
    call.put_other(bytes, Detail::Io(io));
}
