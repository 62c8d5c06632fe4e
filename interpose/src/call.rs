//! A recorded call, as its hook sees it.

use crate::arguments::Args;
use crate::comms::Comm;
use crate::known::KnownType;
use crate::machine::Frame;
use crate::requests::{PendingRequest, Template};
use crate::shapes::{Key, PARTS, UsedObject};
use crate::tracer::{Lane, Scratch, ThreadLane, Tracer};
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Kind};
use std::mem::ManuallyDrop;
use vef_format::capture::encode::{Content, can_be_shape, makes_request};
use vef_format::capture::event::{
    Action, CallSlot, Completion, Datatype, DatatypeId, Detail, FileId, Origin, RequestId, WindowId,
};
use vef_format::ids::CommId;
use vef_format::units::Bytes;

/// How the calls of a category are recorded.
pub(crate) struct Hook {
    /// Runs before the call: reads arguments that the call overwrites, and may replace arguments.
    pub(crate) before: fn(&mut Recorded),
    /// Runs after a call that has succeeded, and after a blocking receive or collective that has truncated a message.
    pub(crate) after: fn(&mut Recorded),
    /// Runs after any other call.
    pub(crate) after_failure: fn(&mut Recorded, Ended),
}

impl Hook {
    pub(crate) const NONE: Self = Self { before: |_| (), after: |_| (), after_failure: |_, _| () };

    pub(crate) const fn after(after: fn(&mut Recorded)) -> Self {
        Self { after, ..Self::NONE }
    }
}

/// What a hook notes before the call for after it.
#[derive(Default)]
pub(crate) enum Noted {
    #[default]
    Nothing,
    /// The handle of a matched message, and the receive that takes it.
    Message(usize, PendingRequest),
    /// A request that the call frees: the handle, the operation if it is under way, the template if it is persistent, and whether it
    /// has been cancelled.
    Request { handle: usize, waiting: Option<PendingRequest>, template: Option<Template>, is_cancelled: bool },
    /// An object that the call frees.
    Object(UsedObject),
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Success,
    /// It returned this error code.
    Failed(i32),
    /// It did not return: an error handler threw an exception.
    Thrown,
}

impl Ended {
    /// The outcome for a returned code.
    pub(crate) fn with(code: i32) -> Self {
        if code == SUCCESS { Self::Success } else { Self::Failed(code) }
    }
}

/// The code of a completing function in records of one word.
pub(crate) fn completer(call: Call) -> Option<u8> {
    Some(match call {
        Call::MPI_Wait => 0,
        Call::MPI_Waitall => 1,
        Call::MPI_Waitany => 2,
        Call::MPI_Waitsome => 3,
        Call::MPI_Test => 4,
        Call::MPI_Testall => 5,
        Call::MPI_Testany => 6,
        Call::MPI_Testsome => 7,
        _ => return None,
    })
}

/// Whether a receive that returned `code` has received a message; a truncated message counts.
#[cold]
pub(crate) fn has_received(tracer: &'static Tracer, code: i32) -> bool {
    let too_long = tracer.abi().constants.err_truncate;
    code == SUCCESS || tracer.mpi.error_class(code).is_ok_and(|class| class == too_long)
}

/// `MPI_SUCCESS`: 0 in every ABI.
pub(crate) const SUCCESS: i32 = 0;

/// A call that is being recorded.
pub(crate) struct Recorded {
    pub(crate) lane: Lane,
    pub(crate) tracer: &'static Tracer,
    pub(crate) args: Args,
    frame: Frame,
    /// The key of the shape that the call may define.
    pub(crate) key: Option<Key>,
    /// The objects that the call uses.
    parts: [Option<UsedObject>; PARTS],
    /// The end of the call returns it to the lane.
    pub(crate) scratch: ManuallyDrop<Box<Scratch>>,
    pub(crate) noted: Noted,
    /// The recorded request that the call has made. Its handle is registered when the call ends.
    pub(crate) made: Option<PendingRequest>,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Recorded {
    pub(crate) fn new(mut lane: Lane, args: Args, frame: Frame, key: Option<Key>) -> Self {
        let own = lane.get();
        let (tracer, scratch) = (own.tracer, ManuallyDrop::new(own.scratch.take().unwrap_or_default()));
        Self {
            lane,
            tracer,
            args,
            frame,
            key,
            parts: [None; PARTS],
            scratch,
            noted: Noted::Nothing,
            made: None,
            start: 0,
            end: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn lane(&mut self) -> &mut ThreadLane {
        self.lane.get()
    }

    pub(crate) fn call(&self) -> Call {
        self.args.call
    }

    pub(crate) fn abi(&self) -> &'static Abi {
        self.args.abi
    }

    /// Before the call: passes room for `count` statuses to MPI if the program ignores statuses.
    pub(crate) fn supply_statuses(&mut self, count: usize) {
        if !self.args.ignores_status() {
            return;
        }
        let words = (count.max(1) * self.abi().status.size).div_ceil(size_of::<u64>());
        if self.scratch.statuses.len() < words {
            self.scratch.statuses.resize(words, 0);
        }
        let room = self.scratch.statuses.as_mut_ptr() as usize;
        self.args.replace(self.frame, self.args.at.status.place(), room);
    }

    /// Whether a test or probe that has succeeded has found nothing.
    pub(crate) fn is_failed_poll(&self) -> bool {
        // SAFETY: a call that has succeeded has set its flag.
        self.args.at.flag.get().is_some_and(|flag| unsafe { self.args.number_at(flag, 0) } == 0)
    }

    /// Records a poll that has found nothing.
    pub(crate) fn record_failed_poll(&mut self) {
        let (call, times) = (self.call(), (self.start, self.end));
        self.lane().poll(call, times);
    }

    /// The handle that a call has set which has succeeded.
    pub(crate) fn new_handle(&self, place: usize) -> usize {
        // SAFETY: it has set it.
        unsafe { self.args.handle_at(place, 0) }
    }

    /// Writes a record of the call.
    pub(crate) fn put(&mut self, action: &Action<'_>) {
        self.put_as(self.call(), action);
    }

    /// [`Recorded::put`] under the name of another function.
    pub(crate) fn put_as(&mut self, call: Call, action: &Action<'_>) {
        let (times, slot) = ((self.start, self.end), self.tracer.slot(call));
        self.note_request(action);
        self.lane().writer.put(times, Content::Action(action), slot);
        // Only the first of several records has the call's duration.
        self.start = self.end;
    }

    /// Notes the request that a record makes; returns its flags.
    fn note_request(&mut self, action: &Action<'_>) -> u8 {
        let Some(request) = makes_request(action) else { return PendingRequest::UNRECORDED };
        let flags = match action {
            Action::PostReceive(post) => PendingRequest::flags_of(post),
            _ => 0,
        };
        self.made = Some(PendingRequest::new(request, flags));
        flags
    }

    /// [`Recorded::put`], and defines a shape: later calls with these arguments are recorded by it.
    pub(crate) fn put_shaped(&mut self, action: &Action<'_>) {
        let flags = self.note_request(action);
        let Some(key) = self.key.take().filter(|_| can_be_shape(action)) else { return self.put(action) };
        let (times, slot, parts) = ((self.start, self.end), self.tracer.slot(self.call()), self.parts);
        let lane = self.lane();
        let shape = lane.shapes.choose(&key);
        if lane.writer.put(times, Content::Definition(action, shape), slot) {
            lane.shapes.keep(shape, &key, parts, flags);
        }
        self.start = self.end;
    }

    /// Writes a record of a call that a trace cannot represent.
    pub(crate) fn put_other(&mut self, bytes: Bytes, detail: Detail<'_>) {
        self.put_shaped(&Action::Other { bytes, detail });
    }

    /// Adds an object that the call uses.
    fn note(&mut self, part: UsedObject) {
        match self.parts.iter_mut().find(|known| known.is_none_or(|known| known == part)) {
            Some(place) => *place = Some(part),
            None => self.key = None,
        }
    }

    /// The communicator of a handle.
    pub(crate) fn comm(&mut self, handle: usize) -> Comm {
        let known = self.tracer.known(|known| known.comms.known.get(handle));
        let comm = known.unwrap_or_else(|| {
            let is_self = handle == self.abi().predefined.comm_self;
            let origin = if is_self { Origin::SelfOnly } else { Origin::Unseen { ordinal: 0 } };
            self.lane().describe_comm((handle, handle), origin, None, CallSlot::NONE, None)
        });
        self.note(UsedObject::Comm(comm.id.0));
        comm
    }

    /// The communicator on which the starts of a persistent collective are recorded that is made on `comm`, the communicator of
    /// `handle`.
    #[cold]
    pub(crate) fn comm_of_persistent(&mut self, handle: usize, comm: Comm) -> CommId {
        let tracer = self.tracer;
        let Some((id, origin)) = tracer.known(|known| known.comms.add_persistent(comm.id)) else {
            return comm.id;
        };
        let members = tracer.membership(handle, false);
        members.describe(id, origin, None, tracer.tasks, &mut |described| {
            self.lane().writer.define(described, CallSlot::NONE);
        });
        id
    }

    /// The datatype of a handle.
    pub(crate) fn datatype(&mut self, handle: usize) -> KnownType {
        let known = self.tracer.known(|known| known.types.get(handle));
        let found = known.unwrap_or_else(|| self.describe_datatype(handle));
        self.note(UsedObject::Datatype(found.id.0));
        found
    }

    /// The bytes of `count` elements of a datatype, which may be invalid if the count is 0.
    pub(crate) fn bytes(&mut self, count: i64, datatype: usize) -> Bytes {
        if count == 0 { Bytes::ZERO } else { self.datatype(datatype).bytes(count) }
    }

    #[cold]
    fn describe_datatype(&mut self, handle: usize) -> KnownType {
        let described = self.tracer.ask_datatype(handle);
        let (sparse, size) = (!described.contiguous, described.size.0);
        let (found, is_new) = self.tracer.known(|known| match known.types.get(handle) {
            // Another thread has added it meanwhile.
            Some(found) => (found, false),
            None => (known.types.add(handle, |id| KnownType { id: DatatypeId(id), sparse, size }), true),
        });
        if is_new {
            self.lane()
                .writer
                .define(&Action::Datatype(Datatype { id: found.id, ..described }), CallSlot::NONE);
        }
        found
    }

    /// The window of a handle; `None`: its creation was not recorded.
    pub(crate) fn window(&mut self, handle: usize) -> Option<WindowId> {
        let number = self.tracer.known(|known| known.windows.get(handle))?;
        self.note(UsedObject::Window(number));
        Some(WindowId(number))
    }

    /// The file of a handle; `None`: its opening was not recorded.
    pub(crate) fn file(&mut self, handle: usize) -> Option<FileId> {
        let number = self.tracer.known(|known| known.files.get(handle))?;
        self.note(UsedObject::File(number));
        Some(FileId(number))
    }

    /// Forgets a handle of a kind that is freed or made anew; returns its object.
    pub(crate) fn forget(&mut self, kind: Kind, handle: usize) -> Option<UsedObject> {
        let part = self.tracer.known(|known| {
            Some(match kind {
                Kind::Comm => UsedObject::Comm(known.comms.known.forget(handle)?.id.0),
                Kind::Datatype => UsedObject::Datatype(known.types.forget(handle)?.id.0),
                Kind::Win => UsedObject::Window(known.windows.forget(handle)?),
                _ => UsedObject::File(known.files.forget(handle)?),
            })
        })?;
        self.tracer.forget_shapes(part);
        Some(part)
    }

    /// The identity of the request that the next record makes.
    pub(crate) fn next_request(&mut self) -> RequestId {
        self.lane().writer.next_request().request()
    }

    /// Registers the request that the call has made.
    pub(crate) fn insert_request(&mut self, place: usize) {
        let handle = self.new_handle(place);
        let handle = (handle != self.abi().predefined.request_null).then_some(handle);
        let made = self.made.take().unwrap_or_else(|| self.lane().writer.unrecorded_request());
        let (call, times) = (self.call(), (self.start, self.end));
        self.lane().insert_request(made, handle, call, times);
    }

    pub(crate) fn put_completed(&mut self, list: &[Completion]) {
        let (call, times) = (self.call(), (self.start, self.end));
        self.lane().put_completed(times, list, completer(call), call);
        self.start = self.end;
    }
}
