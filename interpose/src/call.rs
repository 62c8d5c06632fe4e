//! A call that is recorded, as the hook of its category sees it.

use crate::arguments::Args;
use crate::comms::{Comm, CommOrigin};
use crate::known::Type;
use crate::machine::Frame;
use crate::requests::{Template, Waiting};
use crate::shapes::{Key, PARTS, Part};
use crate::tracer::{Scratch, State, ThreadLane, Tracer};
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::Call;
use std::ptr::NonNull;
use vef_format::capture::encode::{can_be_shape, makes_request};
use vef_format::capture::event::{
    Action, Completion, Datatype, Detail, FileId, Outcome, RequestId, Split, WindowId,
};
use vef_format::units::Bytes;

/// What is recorded of the calls of a category.
pub(crate) trait Hook: Sync {
    /// Whether its calls are looked at also outside the phase that alone is recorded: they say what handles mean, or complete what
    /// began within it.
    fn even_paused(&self, _call: Call) -> bool {
        false
    }

    /// Whether its calls are counted.
    fn counts(&self) -> bool {
        true
    }

    /// Before the call: reads what will not be there any more, and may change what is passed on.
    fn before(&self, _call: &mut Recorded) {}

    /// After the call.
    fn after(&self, call: &mut Recorded, ended: Ended);
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    /// With this error code.
    Failed(i32),
    /// It has not returned: an error handler threw an exception.
    Thrown,
}

impl Ended {
    /// That of a call which has returned.
    pub(crate) fn with(code: i32) -> Self {
        if code == SUCCESS { Self::Well } else { Self::Failed(code) }
    }

    /// Whether it succeeded.
    pub(crate) fn is_well(self) -> bool {
        self == Self::Well
    }

    /// Whether a call that receives has taken a message: also one that did not fit.
    pub(crate) fn has_received(self, tracer: &'static Tracer) -> bool {
        match self {
            Self::Well => true,
            Self::Failed(code) => has_received(tracer, code),
            Self::Thrown => false,
        }
    }
}

/// Which of the functions that complete requests a word names.
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

/// Whether a receive that ended with `code` has taken its message: also one that did not fit.
#[cold]
pub(crate) fn has_received(tracer: &'static Tracer, code: i32) -> bool {
    let too_long = tracer.abi().constants.err_truncate;
    code == SUCCESS || tracer.mpi.error_class(code).is_ok_and(|class| class == too_long)
}

/// `MPI_SUCCESS`: 0 in every ABI.
pub(crate) const SUCCESS: i32 = 0;

/// A call that is recorded.
pub(crate) struct Recorded {
    /// Of this thread; nobody else has a reference while one made here lives.
    lane: NonNull<ThreadLane>,
    pub(crate) tracer: &'static Tracer,
    pub(crate) args: Args,
    frame: Frame,
    /// What tells it from others, if calls of this function are alike.
    key: Option<Key>,
    /// What it is made of.
    parts: [Option<Part>; PARTS],
    pub(crate) scratch: Box<Scratch>,
    /// What a hook remembers from before the call: a handle, and whether something holds of it.
    pub(crate) kept: usize,
    pub(crate) noted: bool,
    /// What was known of a request that the call frees.
    pub(crate) freed: (Option<Waiting>, Option<Template>),
    /// Whether it is known what the request is that the call has made.
    request_is_known: bool,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Recorded {
    /// # Safety
    /// The lane must be the calling thread's, and the arguments be those in the frame.
    pub(crate) unsafe fn new(
        mut lane: NonNull<ThreadLane>,
        args: Args,
        frame: Frame,
        key: Option<Key>,
    ) -> Self {
        // SAFETY: the contract.
        let own = unsafe { lane.as_mut() };
        let (tracer, scratch) = (own.tracer, own.scratch.take().unwrap_or_default());
        Self {
            lane,
            tracer,
            args,
            frame,
            key,
            parts: [None; PARTS],
            scratch,
            kept: 0,
            noted: false,
            freed: (None, None),
            request_is_known: false,
            start: 0,
            end: 0,
        }
    }

    /// The thread's lane.
    #[inline(always)]
    pub(crate) fn lane(&mut self) -> &mut ThreadLane {
        // SAFETY: see the field; calls made from within this one are over.
        unsafe { self.lane.as_mut() }
    }

    /// The function.
    pub(crate) fn call(&self) -> Call {
        self.args.call()
    }

    /// The constants of this MPI.
    pub(crate) fn abi(&self) -> &'static Abi {
        self.args.abi()
    }

    /// Before the call: lets it write `count` statuses to our room, if the program wants none.
    pub(crate) fn want_statuses(&mut self, place: usize, count: usize) {
        if !self.args.ignores_status(place) {
            return;
        }
        let words = (count.max(1) * self.abi().status.size).div_ceil(size_of::<u64>());
        if self.scratch.statuses.len() < words {
            self.scratch.statuses.resize(words, 0);
        }
        let room = self.scratch.statuses.as_mut_ptr() as usize;
        // SAFETY: the arguments are those of the frame.
        unsafe { self.args.replace(self.frame, place, room) };
    }

    /// Records what the call did.
    pub(crate) fn put(&mut self, action: &Action<'_>) {
        self.put_as(self.call(), action);
    }

    /// As [`Recorded::put`], under the name of another function that this call stands for.
    pub(crate) fn put_as(&mut self, call: Call, action: &Action<'_>) {
        let (times, slot) = ((self.start, self.end), self.tracer.slot(call));
        self.lane().writer.put(times, action, slot);
        // A call of several records took its time once.
        self.start = self.end;
    }

    /// As [`Recorded::put`]; later calls with such arguments are known to be like this one, and make requests with `flags`.
    pub(crate) fn put_first(&mut self, action: &Action<'_>, flags: u8) {
        let flags = if makes_request(action).is_some() { flags } else { Waiting::UNKNOWN };
        let Some(key) = self.key.take().filter(|_| can_be_shape(action)) else { return self.put(action) };
        let (times, slot, parts) = ((self.start, self.end), self.tracer.slot(self.call()), self.parts);
        let lane = self.lane();
        let shape = lane.shapes.choose(&key);
        if lane.writer.put_shape(times, action, slot, shape) {
            lane.shapes.keep(shape, &key, parts, flags);
        }
        self.start = self.end;
    }

    /// The same call again will not be known to be like this one.
    pub(crate) fn is_unlike_others(&mut self) {
        self.key = None;
    }

    /// Records a call that a trace cannot represent.
    pub(crate) fn put_other(&mut self, bytes: Bytes, detail: Detail<'_>) {
        self.put_first(&Action::Other { bytes, detail }, 0);
    }

    /// Notes what the call is made of.
    fn note(&mut self, part: Part) {
        match self.parts.iter_mut().find(|known| known.is_none_or(|known| known == part)) {
            Some(place) => *place = Some(part),
            None => self.key = None,
        }
    }

    /// The communicator behind a handle.
    pub(crate) fn comm(&mut self, handle: usize) -> Comm {
        let known = self.tracer.known().comms.get(handle);
        let comm = known.unwrap_or_else(|| {
            let is_self = handle == self.abi().predefined.comm_self;
            let origin = if is_self { CommOrigin::SelfOnly } else { CommOrigin::Unseen };
            self.describe_comm(handle, handle, origin, None, false)
        });
        self.note(Part::Comm(comm.id.0));
        comm
    }

    /// Numbers and describes the communicator behind `handle`. `asked`: one with the same members, where the new one must not be
    /// used yet. `made`: whether this call made it.
    #[cold]
    pub(crate) fn describe_comm(
        &mut self,
        handle: usize,
        asked: usize,
        origin: CommOrigin,
        split: Option<Split>,
        made: bool,
    ) -> Comm {
        let members = self.tracer.membership(asked);
        let mut known = self.tracer.known();
        // Another thread may have come first.
        if let Some(comm) = known.comms.get(handle) {
            return comm;
        }
        let (comm, origin) = known.comms.add(handle, &members, origin);
        drop(known);
        let described = members.describe(comm.id, origin, split, self.tracer.tasks);
        match made {
            true => self.put(&Action::Communicator(described)),
            false => self.lane().writer.define(&Action::Communicator(described)),
        }
        comm
    }

    /// The datatype behind a handle.
    pub(crate) fn datatype(&mut self, handle: usize) -> Type {
        let known = self.tracer.known().types.get(handle);
        let found = known.unwrap_or_else(|| self.describe_datatype(handle));
        self.note(Part::Datatype(found.id.0));
        found
    }

    #[cold]
    fn describe_datatype(&mut self, handle: usize) -> Type {
        let described = self.tracer.ask_datatype(handle);
        let mut known = self.tracer.known();
        if let Some(found) = known.types.get(handle) {
            return found;
        }
        let found = known.types.add(handle, &described);
        drop(known);
        self.lane().writer.define(&Action::Datatype(Datatype { id: found.id, ..described }));
        found
    }

    /// The window behind a handle; `None`: nobody saw it made.
    pub(crate) fn window(&mut self, handle: usize) -> Option<WindowId> {
        let number = self.tracer.known().windows.get(handle)?;
        self.note(Part::Window(number));
        Some(WindowId(number))
    }

    /// The file behind a handle; `None`: nobody saw it opened.
    pub(crate) fn file(&mut self, handle: usize) -> Option<FileId> {
        let number = self.tracer.known().files.get(handle)?;
        self.note(Part::File(number));
        Some(FileId(number))
    }

    /// A handle means, or will mean, something else: what was known of it is forgotten.
    pub(crate) fn forget_comm(&mut self, handle: usize) -> Option<Comm> {
        let forgotten = self.tracer.known().comms.forget(handle)?;
        self.tracer.forget_shapes(Part::Comm(forgotten.id.0));
        Some(forgotten)
    }

    /// As [`Recorded::forget_comm`], of a datatype.
    pub(crate) fn forget_datatype(&mut self, handle: usize) {
        let forgotten = self.tracer.known().types.forget(handle);
        if let Some(forgotten) = forgotten {
            self.tracer.forget_shapes(Part::Datatype(forgotten.id.0));
        }
    }

    /// As [`Recorded::forget_comm`], of a window.
    pub(crate) fn forget_window(&mut self, handle: usize) -> Option<WindowId> {
        let number = self.tracer.known().windows.forget(handle)?;
        self.tracer.forget_shapes(Part::Window(number));
        Some(WindowId(number))
    }

    /// As [`Recorded::forget_comm`], of a file.
    pub(crate) fn forget_file(&mut self, handle: usize) -> Option<FileId> {
        let number = self.tracer.known().files.forget(handle)?;
        self.tracer.forget_shapes(Part::File(number));
        Some(FileId(number))
    }

    /// The identity of a request that the next record makes.
    pub(crate) fn next_request(&mut self) -> RequestId {
        self.lane().writer.next_request().request()
    }

    /// Remembers a request behind a handle as under way.
    pub(crate) fn pend(&mut self, handle: usize, request: RequestId, flags: u8) {
        self.request_is_known = true;
        self.tracer.known().requests.insert(handle, Waiting::new(request, flags));
    }

    /// Remembers the request that the call has made as under way, unless it is over already.
    pub(crate) fn pend_made(&mut self, place: usize, request: RequestId, flags: u8) {
        // SAFETY: the call has succeeded, and so has set it.
        let handle = unsafe { self.args.handle_at(place, 0) };
        if handle == self.abi().predefined.request_null {
            self.request_is_known = true;
            self.put_completed(&[Completion { request, outcome: Outcome::Done }]);
        } else {
            self.pend(handle, request, flags);
        }
    }

    /// Remembers that there is the request which the call has made, if no more is known of it: when it is completed, another thread
    /// may have been given its handle already, which then has both.
    pub(crate) fn pend_unknown(&mut self, place: usize) {
        // SAFETY: the call has succeeded, and so has set it.
        let handle = unsafe { self.args.handle_at(place, 0) };
        if !self.request_is_known && handle != self.abi().predefined.request_null {
            let request = self.lane().writer.unknown_request();
            self.tracer.known().requests.insert(handle, request);
        }
    }

    /// Records that requests have been completed.
    pub(crate) fn put_completed(&mut self, list: &[Completion]) {
        let (call, times) = (self.call(), (self.start, self.end));
        let slot = self.tracer.slot(call);
        self.lane().writer.put_completed(times, completer(call), slot, list);
        self.start = self.end;
    }

    /// The call was a poll that found nothing.
    pub(crate) fn found_nothing(&mut self) {
        let (call, tracer, (start, end)) = (self.call(), self.tracer, (self.start, self.end));
        if tracer.state() == State::Recording {
            self.lane().writer.poll(start, end, || tracer.slot(call));
        }
    }

    /// As the call is over: the room goes back to the thread.
    pub(crate) fn give_back(&mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        self.lane().scratch = Some(scratch);
    }
}
