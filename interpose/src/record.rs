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
#[cfg(debug_assertions)]
use crate::guard::panic_if_asked;
use crate::hooks::{self, WaitPlaces, output};
use crate::machine::{self, Frame, trampoline};
use crate::objects;
use crate::pending::Run;
use crate::requests::Waiting;
use crate::shapes::Shape;
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
    /// The real function, if it is called in C and with at most [`DIRECT`] words.
    direct: Option<NonNull<c_void>>,
    hook: &'static dyn Hook,
    way: Way,
    /// Where the address of the request is that such a call makes: the argument, and its slot.
    request: Option<(u8, u8)>,
    /// How requests are read.
    handles: Handles,
    request_null: usize,
    /// Whether a message that does not fit is an error and received.
    receives: bool,
    abi: &'static Abi,
}

/// How calls are recorded.
#[repr(u8)]
enum Way {
    /// By shapes where they are like earlier ones, else by the hook; their keys are simple.
    SimpleShapes(KeyPlan),
    /// As that, with any keys.
    Shapes(KeyPlan),
    /// By what they wait for where the lane knows that without a list, else by the hook.
    WaitForAll(WaitPlan),
    Hook,
}

/// What a wait for all that it is given needs before the call: slots of its arguments.
struct WaitPlan {
    count: Option<usize>,
    requests: usize,
    flag: Option<usize>,
    completer: u8,
}

/// How a call has requests.
#[derive(Clone, Copy)]
enum Handles {
    Ints,
    Words,
    Fortran,
}

/// By number of a name.
static PLANS: [AtomicPtr<Plan>; Export::COUNT] = [const { AtomicPtr::new(null_mut()) }; Export::COUNT];

impl Plan {
    /// That of a name; `None`: nothing is recorded of its calls.
    #[inline(always)]
    pub(crate) fn of(number: usize, abi: &'static Abi) -> Option<&'static Self> {
        Self::known(number).or_else(|| Self::make(number, abi))
    }

    /// As [`Plan::of`], where there has been a call.
    #[inline(always)]
    fn known(number: usize) -> Option<&'static Self> {
        debug_assert!(number < PLANS.len());
        // SAFETY: a trampoline has got the number from a stub; a leaked box, or null.
        unsafe { PLANS.get_unchecked(number).load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn make(number: usize, abi: &'static Abi) -> Option<&'static Self> {
        let export = Export::get(number);
        let call = export.call();
        let wait = (call.category() == Category::Wait).then(|| WaitPlaces::find(call));
        let wait = wait.filter(WaitPlaces::is_of_all).map(|places| WaitPlan {
            count: places.count.map(Frame::slot),
            requests: Frame::slot(places.requests),
            flag: places.flag.map(Frame::slot),
            completer: completer(call).unwrap_or(0),
        });
        let way = match (KeyPlan::new(number, abi), wait) {
            (Some(keys), _) if keys.are_simple() => Way::SimpleShapes(keys),
            (Some(keys), _) => Way::Shapes(keys),
            (None, Some(wait)) => Way::WaitForAll(wait),
            (None, None) => Way::Hook,
        };
        let (words, real) = (words_of(export), machine::real(number));
        let plan: &'static Self = Box::leak(Box::new(Self {
            export,
            call,
            words,
            real,
            direct: real.filter(|_| export.form == Form::C && words <= DIRECT),
            hook: hooks::of(call)?,
            way,
            request: makes_request(call)
                .then(|| call.position(Name::Request))
                .flatten()
                .map(|place| (place as u8, Frame::slot(place) as u8)),
            handles: match export.form {
                Form::C if abi.has_int_handles() => Handles::Ints,
                Form::C => Handles::Words,
                _ => Handles::Fortran,
            },
            request_null: abi.predefined.request_null,
            receives: matches!(call.category(), Category::Recv | Category::SendRecv)
                && call.timing() == Timing::Blocking,
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
            match self.handles {
                Handles::Ints => *(address as *const u32).add(index) as usize,
                Handles::Words => *(address as *const usize).add(index),
                Handles::Fortran => {
                    fortran::c_handle(self.abi, Kind::Request, *(address as *const i32).add(index))
                }
            }
        }
    }
}

/// Whether a function makes a request of which a call completes or frees the handle.
fn makes_request(call: Call) -> bool {
    let is_one = matches!(call.category(), Category::Wait | Category::Start | Category::RequestFree);
    !is_one && call.timing() != Timing::Persistent && output(call, Kind::RequestPtr).is_some()
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

/// Words that are passed whether there are as many or not.
const DIRECT: usize = 7;

/// To MPI itself.
#[derive(Clone, Copy)]
struct ToMpi(&'static Plan);

impl Next for ToMpi {
    #[inline(always)]
    unsafe fn call(self, frame: Frame) -> i32 {
        // SAFETY: the contract; words behind the arguments are the caller's.
        unsafe {
            match self.0.direct {
                Some(function) => frame.pass_to(function, DIRECT),
                None => call_real(self.0.export, self.0.words, self.0.real, frame),
            }
        }
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
#[inline(never)]
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
    // SAFETY: the calling thread's lane, which lives for ever, and the program's arguments.
    unsafe {
        match (NonNull::new(lane.cast()), Plan::known(number)) {
            (Some(lane), Some(plan)) => record(plan, frame, lane, ToMpi(plan)),
            _ => entered_first(number, frame),
        }
    }
}

/// The first call by a name, or of a thread.
#[cold]
#[inline(never)]
unsafe fn entered_first(number: usize, frame: Frame) -> i32 {
    let found = || {
        let tracer = Tracer::at(0)?;
        tracer.lane().zip(Plan::of(number, tracer.abi()))
    };
    // SAFETY: as in `entered`.
    unsafe {
        match found() {
            Some((lane, plan)) if (*lane.as_ptr()).frame != 0 => {
                record_nested(plan, frame, lane, ToMpi(plan))
            }
            Some((lane, plan)) => record_by_hook(plan, frame, lane, ToMpi(plan)),
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
        match &plan.way {
            Way::SimpleShapes(keys) => {
                if let Some(shape) = keys.find_simple(frame, (*lane.as_ptr()).shapes) {
                    return record_by_shape(plan, frame, lane, shape, next);
                }
            }
            Way::Shapes(keys) => {
                if let Some(shape) = keys.find(frame, (*lane.as_ptr()).shapes) {
                    return record_by_shape(plan, frame, lane, shape, next);
                }
            }
            Way::WaitForAll(wait) => {
                if !(*lane.as_ptr()).tracer.multiple
                    && let Some(run) = find_run(plan, wait, frame, lane)
                {
                    return record_run(plan, wait, frame, lane, run, next);
                }
            }
            Way::Hook => {}
        }
        record_by_hook(plan, frame, lane, next)
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
        record_by_hook(plan, frame, lane, next)
    }
}

/// A call that is recorded by its hook.
#[inline(never)]
unsafe fn record_by_hook<N: Next>(
    plan: &'static Plan,
    frame: Frame,
    lane: NonNull<ThreadLane>,
    next: N,
) -> i32 {
    // SAFETY: as in `record`; what is made here is used by this call alone.
    unsafe {
        let args = Args::new(frame, plan.export, plan.abi);
        let key = match &plan.way {
            Way::SimpleShapes(keys) | Way::Shapes(keys) => Some(keys.key(frame)),
            Way::WaitForAll(_) | Way::Hook => None,
        };
        let mut call = UnderWay::begin(plan, frame, lane, Recorded::new(lane, args, frame, key));
        let before = || {
            #[cfg(debug_assertions)]
            panic_if_asked(plan.call.name());
            plan.hook.before(&mut call.recorded);
        };
        call.broken = guarded(before).is_none();
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
        let plan = self.plan;
        let after = || {
            plan.hook.after(recorded, ended);
            if let Some((place, _)) = plan.request.filter(|_| ended.is_well()) {
                recorded.pend_unknown(place.into());
            }
        };
        self.broken = self.broken || guarded(after).is_none();
        self.recorded.give_back();
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
    #[inline(always)]
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
        if code != SUCCESS {
            put_failed(own, plan, (start, end), shape, code);
            return code;
        }
        put_head(own, plan.call, (start, end), shape.head());
        if let Some((_, slot)) = plan.request {
            let handle = plan.request_at(frame.at(slot.into()), 0);
            let request = match shape.flags() {
                Waiting::UNKNOWN => own.writer.unknown_request(),
                flags => own.writer.take_request().with(flags),
            };
            if handle != plan.request_null {
                own.tracer.known().requests.insert(handle, request);
            } else if !request.has(Waiting::UNKNOWN) {
                put_done(own, plan.call, end, request);
            }
        }
        own.tracer.count(plan.call, end.wrapping_sub(start), false);
        code
    }
}

/// As the end of [`record_by_shape`], of a call that has failed: it has made no request, but may have received a message.
#[cold]
#[inline(never)]
fn put_failed(lane: &mut ThreadLane, plan: &Plan, times: (u64, u64), shape: Shape, code: i32) {
    if plan.receives && has_received(lane.tracer, code) {
        put_head(lane, plan.call, times, shape.head());
    }
    lane.tracer.count(plan.call, times.1.wrapping_sub(times.0), true);
}

/// Writes a record of one word, or ends tracing where that is not possible.
#[inline(always)]
fn put_head(lane: &mut ThreadLane, call: Call, (start, end): (u64, u64), head: Head) {
    #[cold]
    #[inline(never)]
    fn put_long(lane: &mut ThreadLane, call: Call, times: (u64, u64), head: Head) {
        lane.writer.put_head(times.0, times.1, head, || lane.tracer.slot(call));
        lane.check();
    }
    if !lane.writer.put_word(start, end, head) {
        put_long(lane, call, (start, end), head);
    }
}

/// Records that a request is over which a call has just made.
#[cold]
#[inline(never)]
fn put_done(lane: &mut ThreadLane, call: Call, end: u64, request: Waiting) {
    let done = Completion { request: request.request(), outcome: Outcome::Done };
    lane.writer.put_completed((end, end), None, lane.tracer.slot(call), &[done]);
    lane.check();
}

/// Whether a wait is for requests of this thread that were made one after the other, lately, with nothing special about them; then
/// the lane knows which.
#[inline(always)]
unsafe fn find_run(plan: &Plan, wait: &WaitPlan, frame: Frame, lane: NonNull<ThreadLane>) -> Option<Run> {
    // SAFETY: as in `record`; the program passed as many handles as it says.
    unsafe {
        let count = wait.count.map_or(1, |slot| frame.at(slot) as u32 as usize);
        let address = frame.at(wait.requests);
        let own = lane.as_ref();
        let next = own.writer.next_request();
        own.tracer.known().requests.find_run(count, next, |i| plan.request_at(address, i))
    }
}

/// The end of such requests.
#[inline(always)]
unsafe fn record_run<N: Next>(
    plan: &'static Plan,
    wait: &WaitPlan,
    frame: Frame,
    mut lane: NonNull<ThreadLane>,
    run: Run,
    next: N,
) -> i32 {
    // SAFETY: as in `record_by_shape`.
    unsafe {
        (*lane.as_ptr()).frame = frame.address();
        (*lane.as_ptr()).run = Some(run);
        let start = clock::now();
        let leaving = Leaving(plan, frame, lane, start);
        let code = next.call(frame);
        let end = clock::now();
        std::mem::forget(leaving);
        let own = lane.as_mut();
        let is_over = wait.flag.is_none_or(|slot| *(frame.at(slot) as *const i32) != 0);
        if code != SUCCESS || own.run.take().is_none() {
            left(plan, frame, lane, Ended::with(code), (start, end));
            return code;
        }
        own.frame = 0;
        if is_over {
            let count = run.len() as u64;
            let after = own.tracer.known().requests.take_run(run, own.writer.next_request());
            match Head::run(wait.completer, count, after) {
                Some(head) => put_head(own, plan.call, (start, end), head),
                None => {
                    own.writer.put_run((start, end), own.tracer.slot(plan.call), count, after);
                    own.check();
                }
            }
        } else if own.tracer.state() == State::Recording {
            own.writer.poll(start, end, || own.tracer.slot(plan.call));
            own.check();
        }
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
