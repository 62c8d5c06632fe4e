//! Records calls.
//!
//! Two frequent kinds of calls are recorded without looking at their arguments in detail: calls with the same
//! arguments as an earlier one ([`shapes`](crate::shapes)) and waits for consecutive requests
//! ([`pending`](crate::pending)). The hook of its category records any other call.

use crate::arguments::{Args, KeyPlan, words_of};
use crate::call::{Ended, Hook, Recorded, SUCCESS, completer, has_received};
use crate::clock;
use crate::fortran;
use crate::guard::catching_panics;
#[cfg(debug_assertions)]
use crate::guard::panic_if_asked;
use crate::hooks::{self, output};
use crate::machine::{self, Frame, trampoline};
use crate::objects;
use crate::pending::RequestRun;
use crate::places::ArgumentPlaces;
use crate::requests::PendingRequest;
use crate::shapes::{CallShape, Key};
use crate::tracer::{Lane, ThreadLane, Tracer};
use mpi_abi::ERR_NO_SUCH_FUNCTION;
use mpi_abi::detect::Abi;
use mpi_abi::prototypes::{Call, Category, Convention, Export, Kind, Name, Timing};
use mpi_abi::tables::Flavour;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use vef_format::capture::word::Head;

/// How the calls by a name are recorded.
pub(crate) struct CallPlan {
    export: Export,
    call: Call,
    /// The number of words that the program passes.
    words: usize,
    real: Option<NonNull<c_void>>,
    /// The real function, if it is a C function of at most [`DIRECT`] words.
    direct: Option<NonNull<c_void>>,
    hook: &'static Hook,
    way: RecordingWay,
    /// The argument with the address of the request that the call makes, and its slot.
    request: Option<(u8, u8)>,
    /// The C function that MPICH's Fortran functions call first, by the name that programs use: a library in front of the recorder may get
    /// that call and pass it on.
    carried_out_by: Option<Call>,
    handles: Handles,
    request_null: usize,
    /// Whether the call is a blocking receive or collective, which has taken part in the communication even if it truncates a message.
    receives: bool,
    abi: &'static Abi,
}

/// The ways to record a call.
#[repr(u8)]
enum RecordingWay {
    /// By shape if one is found, else by the hook; keys are short.
    ShortShapes(KeyPlan),
    /// As a run if its requests are consecutive, else by the hook.
    WaitForAll(WaitPlan),
    /// By the hook; with other keys by shape if one is found.
    Hook(Option<KeyPlan>),
}

/// Slots of the arguments of a wait for all of its requests.
struct WaitPlan {
    count: Option<usize>,
    requests: usize,
    flag: Option<usize>,
    completer: u8,
}

/// The representation of request handles.
#[derive(Clone, Copy)]
enum Handles {
    Ints,
    Words,
    Fortran,
}

/// The plans by export number.
static PLANS: [AtomicPtr<CallPlan>; Export::COUNT] = [const { AtomicPtr::new(null_mut()) }; Export::COUNT];

impl CallPlan {
    /// The plan of a name; `None`: its calls are not recorded.
    #[inline(always)]
    pub(crate) fn of(number: usize, abi: &'static Abi) -> Option<&'static Self> {
        Self::known(number).or_else(|| Self::make(number, abi))
    }

    /// [`CallPlan::of`] after the first call by the name.
    #[inline(always)]
    fn known(number: usize) -> Option<&'static Self> {
        debug_assert!(number < PLANS.len());
        // SAFETY: the number is from a stub; the pointer is null or a leaked box.
        unsafe { PLANS.get_unchecked(number).load(Ordering::Acquire).as_ref() }
    }

    #[cold]
    fn make(number: usize, abi: &'static Abi) -> Option<&'static Self> {
        let export = Export::get(number);
        let call = export.call();
        if export.form != Convention::C && !fortran::has_converters(abi, call) {
            Tracer::stop_all("this MPI cannot convert the handles of Fortran");
            return None;
        }
        let at = ArgumentPlaces::of(call);
        let wait = (call.category() == Category::Wait && at.is_of_all()).then(|| WaitPlan {
            count: at.requests_count.get().map(Frame::slot),
            requests: Frame::slot(at.requests.place()),
            flag: at.flag.get().map(Frame::slot),
            completer: completer(call).unwrap_or(0),
        });
        let way = match (KeyPlan::new(number, abi), wait) {
            (Some(keys), _) if keys.are_short() => RecordingWay::ShortShapes(keys),
            (None, Some(wait)) => RecordingWay::WaitForAll(wait),
            (keys, _) => RecordingWay::Hook(keys),
        };
        let (words, real) = (words_of(export), machine::real(number));
        let plan: &'static Self = Box::leak(Box::new(Self {
            export,
            call,
            words,
            real,
            direct: real.filter(|_| export.form == Convention::C && words <= DIRECT),
            hook: hooks::of(call)?,
            way,
            request: makes_request(call)
                .then(|| call.position(Name::Request))
                .flatten()
                .map(|place| (place as u8, Frame::slot(place) as u8)),
            carried_out_by: (export.form != Convention::C && abi.flavour != Flavour::OpenMpi).then_some(call),
            handles: match export.form {
                Convention::C if abi.has_int_handles() => Handles::Ints,
                Convention::C => Handles::Words,
                _ => Handles::Fortran,
            },
            request_null: abi.predefined.request_null,
            receives: matches!(call.category(), Category::Recv | Category::SendRecv | Category::Collective)
                && call.timing() == Timing::Blocking,
            abi,
        }));
        // Threads that race here store equal plans.
        PLANS[number].store(std::ptr::from_ref(plan).cast_mut(), Ordering::Release);
        Some(plan)
    }

    /// Reads the request handle at `index` behind an address.
    ///
    /// # Safety
    /// There must be such a handle.
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

/// Whether a function makes a request that other calls complete or free.
fn makes_request(call: Call) -> bool {
    let is_one = matches!(call.category(), Category::Wait | Category::Start | Category::RequestFree);
    !is_one && call.timing() != Timing::Persistent && output(call, Kind::RequestPtr).is_some()
}

/// The next step of a call: MPI or the rest of a chain of tools.
pub(crate) trait CallTarget: Copy {
    /// Makes the call with the arguments in the frame.
    fn call(self, frame: Frame) -> i32;

    /// Whether a nested call was made by MPI itself. In a chain of tools there are no such calls.
    fn is_internal_call(self, _frame: Frame) -> bool {
        false
    }
}

/// The number of words that are always passed to direct functions.
const DIRECT: usize = 7;

/// The call goes to MPI.
#[derive(Clone, Copy)]
struct ToMpi(&'static CallPlan);

impl CallTarget for ToMpi {
    #[inline(always)]
    fn call(self, frame: Frame) -> i32 {
        match self.0.direct {
            // SAFETY: the function of the name, which has at most that many words.
            Some(function) => unsafe { frame.pass_to(function, DIRECT) },
            None => call_real(self.0.export, self.0.words, self.0.real, frame),
        }
    }

    fn is_internal_call(self, frame: Frame) -> bool {
        objects::is_internal(frame.return_address())
    }
}

/// Calls the real function of a name; returns its error code.
#[inline(never)]
fn call_real(export: Export, words: usize, real: Option<NonNull<c_void>>, frame: Frame) -> i32 {
    let Some(real) = real else { return ERR_NO_SUCH_FUNCTION };
    // SAFETY: the function of the name.
    let code = unsafe { frame.pass_to(real, words) };
    match (export.form, export.call()) {
        (Convention::C, _) => code,
        (_, Call::MPI_Pcontrol) => SUCCESS,
        _ => {
            let ierror = frame.word(words - 1 - export.call().hidden_lengths()) as *const i32;
            // SAFETY: null, or the address of an INTEGER that the call has set.
            unsafe { ierror.as_ref() }.copied().unwrap_or(SUCCESS)
        }
    }
}

/// Makes a call without recording it.
pub(crate) fn pass(number: usize, frame: Frame) -> i32 {
    let export = Export::get(number);
    call_real(export, words_of(export), machine::real(number), frame)
}

trampoline! {
    /// The entry of recorded calls.
    enter => entered
}

pub(crate) extern "C-unwind" fn entered(number: usize, frame: Frame, lane: *mut c_void) -> i32 {
    // SAFETY: trampolines pass the calling thread's lane.
    match (unsafe { Lane::of(lane) }, CallPlan::known(number)) {
        (Some(lane), Some(plan)) => record(plan, frame, lane, ToMpi(plan)),
        _ => entered_first(number, frame),
    }
}

/// The first call by a name or of a thread.
#[cold]
#[inline(never)]
fn entered_first(number: usize, frame: Frame) -> i32 {
    match Tracer::at(0).and_then(|tracer| tracer.lane().zip(CallPlan::of(number, tracer.abi()))) {
        // From now on both are known.
        Some(_) => entered(number, frame, machine::thread().lanes[0].get()),
        None => pass(number, frame),
    }
}

#[inline(always)]
pub(crate) fn record<N: CallTarget>(plan: &'static CallPlan, frame: Frame, mut lane: Lane, next: N) -> i32 {
    if lane.get().frame != 0 {
        return record_nested(plan, frame, lane, next);
    }
    let shape = match &plan.way {
        RecordingWay::ShortShapes(keys) => keys.find_short(frame, lane.get().shapes),
        RecordingWay::WaitForAll(wait) => {
            if let Some(run) = find_run(plan, wait, frame, lane.get()) {
                return record_run(plan, wait, frame, lane, run, next);
            }
            None
        }
        RecordingWay::Hook(keys) => keys.as_ref().and_then(|keys| keys.find(frame, lane.get().shapes)),
    };
    if let Some(shape) = shape {
        return record_by_shape(plan, frame, lane, shape, next);
    }
    record_by_hook(plan, frame, lane, next)
}

/// A call while another one is being recorded: an internal one of MPI, one of a callback, or the first one after a
/// `longjmp` out of the earlier call.
#[cold]
#[inline(never)]
fn record_nested<N: CallTarget>(plan: &'static CallPlan, frame: Frame, mut lane: Lane, next: N) -> i32 {
    let own = lane.get();
    if frame.address() >= own.frame {
        // `longjmp` has unwound the stack beyond the earlier call.
        (own.frame, own.run, own.parked) = (0, None, None);
        return record_by_hook(plan, frame, lane, next);
    }
    let is_part = own.carried_out_by.take() == Some(plan.call) && plan.export.form == Convention::C;
    if is_part || next.is_internal_call(frame) {
        return next.call(frame);
    }
    own.park_run();
    record_by_hook(plan, frame, lane, next)
}

#[inline(never)]
fn record_by_hook<N: CallTarget>(plan: &'static CallPlan, frame: Frame, mut lane: Lane, next: N) -> i32 {
    let key = match &plan.way {
        RecordingWay::ShortShapes(keys) | RecordingWay::Hook(Some(keys)) => Some(keys.key(frame)),
        RecordingWay::WaitForAll(_) | RecordingWay::Hook(None) => None,
    };
    let mut call = CallGuard::begin(plan, frame, lane, key);
    let before = || {
        #[cfg(debug_assertions)]
        panic_if_asked(plan.call.name());
        (plan.hook.before)(&mut call.recorded);
    };
    call.broken = catching_panics(before).is_none();
    // What is in front of a nested call is in the outer one.
    call.recorded.start = match call.outer.0 {
        0 => lane.get().begin_call(plan.call),
        _ => clock::now(),
    };
    let code = next.call(frame);
    call.recorded.end = lane.get().end_call(plan.call, call.recorded.start);
    call.ended = Ended::with(code);
    code
}

/// Records a call when it is dropped, also during unwinding.
struct CallGuard {
    recorded: Recorded,
    plan: &'static CallPlan,
    /// The lane's state of the enclosing call.
    outer: (usize, Option<Vec<usize>>),
    ended: Ended,
    /// Whether the hook has panicked.
    broken: bool,
}

impl CallGuard {
    #[inline(always)]
    fn begin(plan: &'static CallPlan, frame: Frame, mut lane: Lane, key: Option<Key>) -> Self {
        let recorded = Recorded::new(lane, Args::new(frame, plan.export, plan.abi), frame, key);
        let own = lane.get();
        own.carried_out_by = plan.carried_out_by;
        let outer = (std::mem::replace(&mut own.frame, frame.address()), own.parked.take());
        Self { recorded, plan, outer, ended: Ended::Thrown, broken: false }
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let Self { recorded, plan, ended, .. } = self;
        let (plan, ended) = (*plan, *ended);
        if ended == Ended::Thrown {
            recorded.end = clock::now();
        }
        let ticks = recorded.end.wrapping_sub(recorded.start);
        let after = || {
            let has_taken_effect = match ended {
                Ended::Success => true,
                Ended::Failed(code) => plan.receives && has_received(recorded.tracer, code),
                Ended::Thrown => false,
            };
            if !has_taken_effect {
                return (plan.hook.after_failure)(recorded, ended);
            }
            (plan.hook.after)(recorded);
            if let Some((place, _)) = plan.request {
                recorded.insert_request(place.into());
            }
        };
        let broken = self.broken || catching_panics(after).is_none();
        // SAFETY: taken once, at the end.
        let scratch = unsafe { ManuallyDrop::take(&mut self.recorded.scratch) };
        let lane = self.recorded.lane();
        lane.scratch = Some(scratch);
        (lane.frame, lane.parked) = std::mem::take(&mut self.outer);
        lane.carried_out_by = None;
        if hooks::are_counted(plan.call) {
            lane.tracer.count(plan.call, ticks, ended != Ended::Success);
        }
        lane.check();
        if broken {
            lane.tracer.stop(lane, &format!("recording {} failed", plan.call.name()));
        }
    }
}

/// Finishes a call without a hook that an exception unwinds.
struct UnwindGuard(&'static CallPlan, Frame, Lane, u64);

impl Drop for UnwindGuard {
    // So short that it is inlined, and ordinary calls need not store the guard.
    #[inline(always)]
    fn drop(&mut self) {
        finish_thrown(self.0, self.1, self.2, self.3);
    }
}

#[cold]
#[inline(never)]
fn finish_thrown(plan: &'static CallPlan, frame: Frame, lane: Lane, start: u64) {
    finish_unusual(plan, frame, lane, Ended::Thrown, (start, clock::now()));
}

/// Makes a call that is recorded without a hook. Returns its error code, its start and its end.
#[inline(always)]
fn make_call<N: CallTarget>(
    plan: &'static CallPlan,
    frame: Frame,
    mut lane: Lane,
    next: N,
) -> (i32, (u64, u64)) {
    let own = lane.get();
    (own.frame, own.carried_out_by) = (frame.address(), plan.carried_out_by);
    let start = own.begin_call(plan.call);
    let leaving = UnwindGuard(plan, frame, lane, start);
    let code = next.call(frame);
    let end = lane.get().end_call(plan.call, start);
    std::mem::forget(leaving);
    (code, (start, end))
}

#[inline(always)]
fn record_by_shape<N: CallTarget>(
    plan: &'static CallPlan,
    frame: Frame,
    mut lane: Lane,
    shape: CallShape,
    next: N,
) -> i32 {
    let (code, (start, end)) = make_call(plan, frame, lane, next);
    if code != SUCCESS {
        finish_unusual(plan, frame, lane, Ended::with(code), (start, end));
        return code;
    }
    let own = lane.get();
    own.frame = 0;
    own.put_word((start, end), shape.head(), plan.call);
    if let Some((_, slot)) = plan.request {
        // SAFETY: the call has succeeded, and so has set it.
        let handle = unsafe { plan.request_at(frame.at(slot.into()), 0) };
        let made = match shape.flags() {
            PendingRequest::UNRECORDED => own.writer.unrecorded_request(),
            flags => own.writer.take_request().with(flags),
        };
        own.insert_request(made, (handle != plan.request_null).then_some(handle), plan.call, (end, end));
    }
    own.tracer.count(plan.call, end.wrapping_sub(start), false);
    code
}

/// Finds the requests of a wait, if they are recent, consecutive and of the only thread.
#[inline(always)]
fn find_run(plan: &CallPlan, wait: &WaitPlan, frame: Frame, lane: &ThreadLane) -> Option<RequestRun> {
    // SAFETY: used in this function alone.
    let known = unsafe { lane.tracer.known_alone() }?;
    let count = wait.count.map_or(1, |slot| frame.at(slot) as u32 as usize);
    let address = frame.at(wait.requests);
    let next = lane.writer.next_request();
    // SAFETY: the program passed `count` handles.
    known.requests.find_run(count, next, |i| unsafe { plan.request_at(address, i) })
}

/// Records a wait for consecutive requests.
#[inline(always)]
fn record_run<N: CallTarget>(
    plan: &'static CallPlan,
    wait: &WaitPlan,
    frame: Frame,
    mut lane: Lane,
    run: RequestRun,
    next: N,
) -> i32 {
    lane.get().run = Some(run);
    let (code, (start, end)) = make_call(plan, frame, lane, next);
    let own = lane.get();
    // SAFETY: the program passed an address, which a call that succeeds has written.
    let is_completed = wait.flag.is_none_or(|slot| unsafe { *(frame.at(slot) as *const i32) } != 0);
    if code != SUCCESS || own.run.take().is_none() {
        finish_unusual(plan, frame, lane, Ended::with(code), (start, end));
        return code;
    }
    own.frame = 0;
    if is_completed {
        let count = run.len() as u64;
        let next = own.writer.next_request();
        let after = own.tracer.known_fast(|known| known.requests.take_run(run, next));
        match Head::run(wait.completer, count, after) {
            Some(head) => own.put_word((start, end), head, plan.call),
            None => own.put_run((start, end), count, after, plan.call),
        }
    } else {
        own.poll(plan.call, (start, end));
    }
    own.tracer.count(plan.call, end.wrapping_sub(start), false);
    code
}

/// Finishes, by its hook, a call that began without it and failed, was left by an exception, or contained another call.
#[cold]
#[inline(never)]
fn finish_unusual(plan: &'static CallPlan, frame: Frame, mut lane: Lane, ended: Ended, times: (u64, u64)) {
    let own = lane.get();
    own.frame = 0;
    own.park_run();
    let handles = own.parked.take().unwrap_or_default();
    let mut call = CallGuard::begin(plan, frame, lane, None);
    call.recorded.scratch.handles = handles;
    (call.recorded.start, call.recorded.end) = times;
    call.ended = ended;
}
