//! The frame of all calls that are recorded.
//!
//! A call that is like an earlier one, and a wait for requests that were made one after the other, are recorded by what they have in
//! common with that ([`shapes`](crate::shapes), [`pending`](crate::pending)): all is known before the call is made. All others are
//! looked into by the hook of their category.

use crate::arguments::{Args, KeyPlan, words_of};
use crate::call::{Ended, Hook, Recorded, SUCCESS, completer, has_received};
use crate::clock;
use crate::fortran;
use crate::guard::guarded;
use crate::hooks::{self, WaitPlaces};
use crate::machine::{self, Frame, trampoline};
use crate::objects;
use crate::shapes::{Key, Shape};
use crate::tracer::{State, ThreadLane, Tracer};
use mpi_abi::ERR_NO_SUCH_FUNCTION;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Export, Form, Kind, Name, Timing};
use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use vef_format::capture::event::{Completion, Outcome};
use vef_format::capture::word::Head;

/// What is known of the calls by a name.
pub(crate) struct Plan {
    export: Export,
    call: Call,
    /// How many words the program passes.
    words: usize,
    real: Option<NonNull<c_void>>,
    hook: &'static dyn Hook,
    /// How calls are told apart, if they can be alike.
    key: Option<KeyPlan>,
    /// Where the address of the request is that such a call makes.
    request: Option<usize>,
    /// Whether a message that does not fit is an error and received.
    receives: bool,
    /// Of the functions that wait for all they are given.
    wait: Option<WaitPlan>,
    abi: &'static Abi,
}

/// What a wait needs that is known before the call.
struct WaitPlan {
    /// Slots of the arguments.
    count: Option<usize>,
    requests: usize,
    flag: Option<usize>,
    completer: u8,
}

/// By number of a name.
static PLANS: [AtomicPtr<Plan>; Export::COUNT] = [const { AtomicPtr::new(null_mut()) }; Export::COUNT];

impl Plan {
    /// That of a name; `None`: nothing is recorded of its calls.
    #[inline(always)]
    pub(crate) fn of(number: usize, abi: &'static Abi) -> Option<&'static Self> {
        // SAFETY: a leaked box, or null.
        unsafe { PLANS[number].load(Ordering::Acquire).as_ref() }.or_else(|| Self::make(number, abi))
    }

    #[cold]
    fn make(number: usize, abi: &'static Abi) -> Option<&'static Self> {
        let export = Export::get(number);
        let call = export.call();
        let wait = (call.category() == Category::Wait).then(|| WaitPlaces::find(call));
        let plan: &'static Self = Box::leak(Box::new(Self {
            export,
            call,
            words: words_of(export),
            real: machine::real(number),
            hook: hooks::of(call)?,
            key: KeyPlan::new(number, abi),
            request: (call.timing() == Timing::Immediate).then(|| call.position(Name::Request)).flatten(),
            receives: matches!(call.category(), Category::Recv | Category::SendRecv)
                && call.timing() == Timing::Blocking,
            wait: wait.filter(WaitPlaces::is_of_all).map(|places| WaitPlan {
                count: places.count.map(Frame::slot),
                requests: Frame::slot(places.requests),
                flag: places.flag.map(Frame::slot),
                completer: completer(call).unwrap_or(0),
            }),
            abi,
        }));
        // Of two threads that come here both make the same.
        PLANS[number].store(std::ptr::from_ref(plan).cast_mut(), Ordering::Release);
        Some(plan)
    }

    /// Reads what a Fortran or C handle behind an address is.
    ///
    /// # Safety
    /// There must be as many.
    #[inline(always)]
    unsafe fn request_at(&self, address: usize, index: usize) -> usize {
        // SAFETY: the contract.
        unsafe {
            match self.export.form {
                Form::C if self.abi.has_int_handles() => *(address as *const u32).add(index) as usize,
                Form::C => *(address as *const usize).add(index),
                _ => fortran::c_handle(self.abi, Kind::Request, *(address as *const i32).add(index)),
            }
        }
    }
}

/// How a call goes on from here.
pub(crate) trait Next: Copy {
    /// Makes the call with the arguments in the frame.
    ///
    /// # Safety
    /// They must be those that the program passed.
    unsafe fn call(self, frame: Frame) -> i32;

    /// Whether a call from within another one is MPI's own.
    ///
    /// # Safety
    /// As [`Next::call`].
    unsafe fn is_mpis_own(self, frame: Frame) -> bool;
}

/// To MPI itself.
#[derive(Clone, Copy)]
struct ToMpi(&'static Plan);

impl Next for ToMpi {
    #[inline(always)]
    unsafe fn call(self, frame: Frame) -> i32 {
        // SAFETY: the contract.
        unsafe { call_real(self.0.export, self.0.words, self.0.real, frame) }
    }

    unsafe fn is_mpis_own(self, frame: Frame) -> bool {
        // SAFETY: the frame is a trampoline's.
        objects::is_own(unsafe { frame.return_address() })
    }
}

/// Calls the real function of a name; gives its error code.
///
/// # Safety
/// The frame must have the arguments of the program.
#[inline(always)]
unsafe fn call_real(export: Export, words: usize, real: Option<NonNull<c_void>>, frame: Frame) -> i32 {
    let Some(real) = real else { return ERR_NO_SUCH_FUNCTION };
    // SAFETY: the contract.
    let code = unsafe { frame.pass_to(real, words) };
    if export.form == Form::C {
        return code;
    }
    // SAFETY: behind the parameters there is null, or an INTEGER that the call has set.
    unsafe {
        let ierror = words - 1 - export.call().hidden_lengths();
        (frame.word(ierror) as *const i32).as_ref().copied().unwrap_or(SUCCESS)
    }
}

/// Makes a call that is not recorded.
///
/// # Safety
/// The frame must have the arguments of the program.
pub(crate) unsafe fn pass(number: usize, frame: Frame) -> i32 {
    let export = Export::get(number);
    // SAFETY: the contract.
    unsafe { call_real(export, words_of(export), machine::real(number), frame) }
}

trampoline! {
    /// Where the calls that are recorded go.
    enter => entered
}

/// A call of the program's, which is recorded.
unsafe extern "C-unwind" fn entered(number: usize, frame: Frame, lane: *mut c_void) -> i32 {
    let lane = NonNull::new(lane.cast::<ThreadLane>()).or_else(|| Tracer::at(0)?.lane());
    // SAFETY: the calling thread's lane, which lives for ever, and the program's arguments.
    unsafe {
        let plan = lane.and_then(|lane| Plan::of(number, (*lane.as_ptr()).tracer.abi()));
        match lane.zip(plan) {
            Some((lane, plan)) => record(plan, frame, lane, ToMpi(plan)),
            None => pass(number, frame),
        }
    }
}

/// Records a call.
///
/// # Safety
/// The lane must be the calling thread's, and no reference to it be in use. The frame must have the arguments of the program.
#[inline(always)]
pub(crate) unsafe fn record<N: Next>(
    plan: &'static Plan,
    frame: Frame,
    lane: NonNull<ThreadLane>,
    next: N,
) -> i32 {
    // SAFETY: the contract.
    unsafe {
        if (*lane.as_ptr()).frame != 0 {
            return record_nested(plan, frame, lane, next);
        }
        if let Some(keys) = &plan.key {
            let key = keys.key(frame);
            return match (*lane.as_ptr()).shapes.find(&key) {
                Some(shape) => record_by_shape(plan, frame, lane, shape, next),
                None => record_by_hook(plan, frame, lane, Some(key), next),
            };
        }
        if let Some(wait) = &plan.wait
            && !(*lane.as_ptr()).tracer.multiple
            && find_run(plan, wait, frame, lane)
        {
            return record_run(plan, wait, frame, lane, next);
        }
        record_by_hook(plan, frame, lane, None, next)
    }
}

/// A call from within one that is recorded: MPI's own, or one of a callback of the program's; or that was left without a return.
#[cold]
#[inline(never)]
unsafe fn record_nested<N: Next>(
    plan: &'static Plan,
    frame: Frame,
    lane: NonNull<ThreadLane>,
    next: N,
) -> i32 {
    // SAFETY: as in `record`.
    unsafe {
        let own = lane.as_ptr();
        if frame.address() >= (*own).frame {
            // The stack has been unwound by longjmp to where that call was made, or beyond.
            ((*own).frame, (*own).run, (*own).parked) = (0, None, None);
            return record(plan, frame, lane, next);
        }
        if next.is_mpis_own(frame) {
            return next.call(frame);
        }
        if let Some(run) = (*own).run.take() {
            (*own).parked = Some((*own).tracer.known().requests.handles_of(run).to_vec());
        }
        let key = plan.key.as_ref().map(|keys| keys.key(frame));
        record_by_hook(plan, frame, lane, key, next)
    }
}

/// A call that is recorded by its hook.
#[inline(never)]
unsafe fn record_by_hook<N: Next>(
    plan: &'static Plan,
    frame: Frame,
    lane: NonNull<ThreadLane>,
    key: Option<Key>,
    next: N,
) -> i32 {
    // SAFETY: as in `record`; what is made here is used by this call alone.
    unsafe {
        let args = Args::new(frame, plan.export, plan.abi);
        let mut call = UnderWay::begin(plan, frame, lane, Recorded::new(lane, args, frame, key));
        if guarded(|| plan.hook.before(&mut call.recorded)).is_none() {
            call.broken = true;
        }
        call.recorded.start = clock::now();
        let code = next.call(frame);
        call.recorded.end = clock::now();
        call.code = Some(code);
        code
    }
}

/// A call that is made now; recorded when it is dropped, also by an exception.
struct UnderWay {
    recorded: Recorded,
    plan: &'static Plan,
    lane: NonNull<ThreadLane>,
    /// What the lane had of the call that this one is made from.
    outer: (usize, Option<Vec<usize>>),
    code: Option<i32>,
    /// Whether what is ours has failed.
    broken: bool,
}

impl UnderWay {
    /// # Safety
    /// As [`record`].
    unsafe fn begin(
        plan: &'static Plan,
        frame: Frame,
        mut lane: NonNull<ThreadLane>,
        recorded: Recorded,
    ) -> Self {
        // SAFETY: the contract.
        let own = unsafe { lane.as_mut() };
        let outer = (std::mem::replace(&mut own.frame, frame.address()), own.parked.take());
        Self { recorded, plan, lane, outer, code: None, broken: false }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let ended = self.code.map_or(Ended::Thrown, Ended::with);
        if ended == Ended::Thrown {
            self.recorded.end = clock::now();
        }
        let ticks = self.recorded.end.wrapping_sub(self.recorded.start);
        let recorded = &mut self.recorded;
        self.broken = self.broken || guarded(|| self.plan.hook.after(recorded, ended)).is_none();
        recorded.give_back();
        // SAFETY: the calling thread's lane; what the hook had of it is over.
        let lane = unsafe { self.lane.as_mut() };
        (lane.frame, lane.parked) = std::mem::take(&mut self.outer);
        if self.plan.hook.counts() {
            lane.tracer.count(self.plan.call, ticks, !ended.is_well());
        }
        lane.check();
        if self.broken {
            lane.tracer.stop(lane, &format!("recording {} went wrong", self.plan.call.name()));
        }
    }
}

/// Resets the frame of a call that is recorded without a hook, where an exception leaves it.
struct Leaving(&'static Plan, Frame, NonNull<ThreadLane>, u64);

impl Drop for Leaving {
    #[cold]
    fn drop(&mut self) {
        let Self(plan, frame, lane, start) = *self;
        // SAFETY: the calling thread's lane, and the arguments of its call.
        unsafe { left(plan, frame, lane, Ended::Thrown, (start, clock::now())) };
    }
}

/// A call of a known shape.
#[inline(always)]
unsafe fn record_by_shape<N: Next>(
    plan: &'static Plan,
    frame: Frame,
    mut lane: NonNull<ThreadLane>,
    shape: Shape,
    next: N,
) -> i32 {
    // SAFETY: as in `record`; calls that are made from within this one are over when the lane is used again.
    unsafe {
        (*lane.as_ptr()).frame = frame.address();
        let start = clock::now();
        let leaving = Leaving(plan, frame, lane, start);
        let code = next.call(frame);
        let end = clock::now();
        std::mem::forget(leaving);
        let own = lane.as_mut();
        own.frame = 0;
        if code != SUCCESS && !(plan.receives && has_received(own.tracer, code)) {
            own.tracer.count(plan.call, end.wrapping_sub(start), true);
            return code;
        }
        own.writer.put_head(start, end, shape.head(), || own.tracer.slot(plan.call));
        if let Some(place) = plan.request {
            let request = own.writer.take_request().with(shape.flags());
            let handle = plan.request_at(frame.word(place), 0);
            if handle == plan.abi.predefined.request_null {
                let done = Completion { request: request.request(), outcome: Outcome::Done };
                own.writer.put_completed((end, end), None, own.tracer.slot(plan.call), &[done]);
            } else {
                own.tracer.known().requests.insert(handle, request);
            }
        }
        own.tracer.count(plan.call, end.wrapping_sub(start), code != SUCCESS);
        own.check();
        code
    }
}

/// Whether a wait is for requests of this thread that were made one after the other, lately, with nothing special about them; then
/// the lane knows which.
#[inline(always)]
unsafe fn find_run(plan: &Plan, wait: &WaitPlan, frame: Frame, mut lane: NonNull<ThreadLane>) -> bool {
    // SAFETY: as in `record`; the program passed as many handles as it says.
    unsafe {
        let count = wait.count.map_or(1, |slot| frame.at(slot) as u32 as usize);
        let address = frame.at(wait.requests);
        let own = lane.as_mut();
        let next = own.writer.next_request();
        own.run = own.tracer.known().requests.find_run(count, next, |i| plan.request_at(address, i));
        own.run.is_some()
    }
}

/// The end of such requests.
#[inline(always)]
unsafe fn record_run<N: Next>(
    plan: &'static Plan,
    wait: &WaitPlan,
    frame: Frame,
    mut lane: NonNull<ThreadLane>,
    next: N,
) -> i32 {
    // SAFETY: as in `record_by_shape`.
    unsafe {
        (*lane.as_ptr()).frame = frame.address();
        let start = clock::now();
        let leaving = Leaving(plan, frame, lane, start);
        let code = next.call(frame);
        let end = clock::now();
        std::mem::forget(leaving);
        let own = lane.as_mut();
        let is_over = wait.flag.is_none_or(|slot| *(frame.at(slot) as *const i32) != 0);
        let succeeded = code == SUCCESS;
        let Some(run) = succeeded.then(|| own.run.take()).flatten() else {
            left(plan, frame, lane, Ended::with(code), (start, end));
            return code;
        };
        own.frame = 0;
        if is_over {
            let count = run.len() as u64;
            let after = own.tracer.known().requests.take_run(run, own.writer.next_request());
            let slot = || own.tracer.slot(plan.call);
            match Head::run(wait.completer, count, after) {
                Some(head) => own.writer.put_head(start, end, head, slot),
                None => own.writer.put_run((start, end), slot(), count, after),
            }
        } else if own.tracer.state() == State::Recording {
            own.writer.poll(start, end, || own.tracer.slot(plan.call));
        }
        own.check();
        own.tracer.count(plan.call, end.wrapping_sub(start), false);
        code
    }
}

/// What is left to do where a call that has no hook so far ended in another way than it does as a rule.
#[cold]
#[inline(never)]
unsafe fn left(
    plan: &'static Plan,
    frame: Frame,
    mut lane: NonNull<ThreadLane>,
    ended: Ended,
    (start, end): (u64, u64),
) {
    // SAFETY: as in `record`.
    unsafe {
        let own = lane.as_mut();
        own.frame = 0;
        let run = own.run.take().map(|run| own.tracer.known().requests.handles_of(run).to_vec());
        let Some(handles) = own.parked.take().or(run) else {
            own.tracer.count(plan.call, end.wrapping_sub(start), !ended.is_well());
            return;
        };
        let args = Args::new(frame, plan.export, plan.abi);
        let mut call = UnderWay::begin(plan, frame, lane, Recorded::new(lane, args, frame, None));
        call.recorded.scratch.handles = handles;
        (call.recorded.start, call.recorded.end) = (start, end);
        call.code = match ended {
            Ended::Well => Some(SUCCESS),
            Ended::Failed(code) => Some(code),
            Ended::Thrown => None,
        };
    }
}
