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
    let (mode, constants) = (args.int(MODE), &call.abi().constants);
    // A file with sequential access has no pointer that can be asked for.
    let is_at_end = mode & constants.mode_append != 0 && mode & constants.mode_sequential == 0;
    // SAFETY: the handle of a file that has been opened.
    let position = is_at_end.then(|| unsafe { call.tracer.mpi.file_position(handle) }.ok()).flatten();
    let detail = match position {
        None => Detail::FileOpen { id, comm, mode, name: &name },
        Some(position) => Detail::FileOpenAt { id, comm, mode, position, name: &name },
    };
    put(call, Bytes::ZERO, detail);
});

/// `MPI_File_set_view`, `MPI_File_set_size` and other collective operations, and `MPI_File_seek`.
pub(super) const COLLECTIVE: Hook = Hook {
    after_failure: |call, _| {
        if !matches!(call.args.call, Call::MPI_File_delete | Call::MPI_File_seek) {
            agreed(call)
        }
    },
    ..Hook::after(collective)
};

fn collective(call: &mut Recorded) {
    const DISPLACEMENT: usize = Call::MPI_File_set_view.place(Name::Disp);
    const UNIT: usize = Call::MPI_File_set_view.place(Name::Etype);
    const TILE: usize = Call::MPI_File_set_view.place(Name::Filetype);
    const FILE: usize = Call::MPI_File_set_view.place(Name::Fh);
    let args = call.args;
    match args.call {
        Call::MPI_File_delete => put(call, Bytes::ZERO, Detail::None),
        Call::MPI_File_seek => {
            let handle = args.file(FILE);
            // SAFETY: the program has passed the handle to a call that succeeded.
            let position = unsafe { call.tracer.mpi.file_position(handle) };
            let sought = call.file(handle).zip(position.ok());
            let detail = sought.map_or(Detail::None, |(file, position)| Detail::FileSeek { file, position });
            put(call, Bytes::ZERO, detail);
        }
        Call::MPI_File_set_view => {
            let file = call.file(args.file(FILE));
            let (displacement, unit) = (args.number(DISPLACEMENT), call.datatype(args.handle(UNIT)).bytes(1));
            let detail = match (file, call.tracer.ask_tile(args.handle(TILE))) {
                (None, _) => Detail::None,
                (Some(file), None) => Detail::FileView { file, displacement, unit },
                (Some(file), Some(tile)) => Detail::FileViewTiled { file, displacement, unit, tile },
            };
            put(call, Bytes::ZERO, detail);
        }
        _ => agreed(call),
    }
}

/// Writes a record; one place for all calls on files keeps the library small.
#[inline(never)]
fn put(call: &mut Recorded, bytes: Bytes, detail: Detail<'_>) {
    call.put_other(bytes, detail);
}

/// All members came to a collective call, for whichever of them it then failed.
fn agreed(call: &mut Recorded) {
    const FILE: usize = Call::MPI_File_read.place(Name::Fh);
    let file = call.file(call.args.file(FILE));
    let agreed = |file| Detail::Io(Io { file, offset: None, write: true, collective: true, request: None });
    put(call, Bytes::ZERO, file.map_or(Detail::None, agreed));
}

/// Reads and writes. The end of a split collective moves no data.
pub(super) const ACCESS: Hook = Hook {
    after_failure: |call, _| {
        let args = call.args;
        if matches!(args.call.detail(), CallDetail::ReadAll | CallDetail::WriteAll)
            && args.find(Name::Request).is_none()
        {
            agreed(call);
        }
    },
    ..Hook::after(access)
};

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
        return put(call, bytes, Detail::None);
    };
    let io = Io {
        file,
        offset: args.find(Name::Offset).map(|place| args.number(place)),
        write: matches!(way, CallDetail::Write | CallDetail::WriteAll),
        collective: matches!(way, CallDetail::ReadAll | CallDetail::WriteAll),
        request: args.find(Name::Request).map(|_| request),
    };
    put(call, bytes, Detail::Io(io));
}
