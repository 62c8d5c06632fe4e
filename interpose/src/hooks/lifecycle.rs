//! The beginning and the end.

use crate::clock;
use crate::lane::{self, Lane};
use crate::settings::Settings;
use crate::tracer::{Tracer, World};
use crate::wrap::{Args, Language, Row, SUCCESS, around, find};
use mpi_abi::api::Mpi;
use mpi_abi::arguments::Kind;
use mpi_abi::handles;
use mpi_abi::prototypes::Call;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use vef_format::capture::event::{Action, CallSlot};

/// `MPI_Init`, `MPI_Init_thread`: tracing starts when they have succeeded.
pub(crate) fn initialize(call: Call, next: impl FnOnce() -> i32) -> i32 {
    initialize_in(call, next, World::loaded)
}

/// Tracing starts when `next` has succeeded, among the processes of `world`.
fn initialize_in(
    call: Call,
    next: impl FnOnce() -> i32,
    world: impl FnOnce() -> mpi_abi::Result<World>,
) -> i32 {
    // Fortran's calls C's; only the outer one counts.
    if INSIDE.with(|inside| inside.replace(true)) {
        return next();
    }
    let settings = Settings::from_env();
    clock::choose(settings.cycles);
    let before = clock::pair();
    let start = clock::now();
    let code = next();
    let end = clock::now();
    INSIDE.with(|inside| inside.set(false));
    if code != SUCCESS || !settings.enabled || Tracer::active().is_some() {
        return code;
    }
    // What follows is ours alone: whatever goes wrong there must not reach the program.
    let started = catch_unwind(AssertUnwindSafe(|| Tracer::start(&settings, before, world))).ok().flatten();
    if let Some(lane) = started {
        // SAFETY: this thread's own, and no call is under way.
        let lane = unsafe { &mut *lane.as_ptr() };
        lane.begin_at(start);
        lane.tracer.count(call);
        lane.put(start, end, &Action::Init, lane.tracer.slot(call));
        lane.tracer.note(call, end.wrapping_sub(start), code);
        lane.tracer.shared().comms.describe_world(lane);
        forget_in_children();
        if settings.ranks.is_some_and(|ranks| !ranks.has(lane.tracer.rank.0)) {
            lane.tracer.stop_quietly(lane, "not among the ranks to be recorded");
        } else if lane.tracer.phase.is_some() {
            lane::pause();
        }
    }
    code
}

thread_local!(static INSIDE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) });

/// A child of `fork` shares the mapping and must not write to it.
fn forget_in_children() {
    extern "C" fn in_child() {
        let _ = lane::end();
    }
    // SAFETY: a function that is there for ever and only stores to atomics.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

/// `MPI_Finalize`, `MPI_Abort`, and the ends of sessions; the others are answered by MPI alone.
#[allow(non_snake_case)]
pub(crate) fn Lifecycle<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    match R::CALL {
        Call::MPI_Finalize => finalize::<R, L, N>(words, next),
        Call::MPI_Abort => abort::<R, L, N>(words, next),
        Call::MPI_Session_init => begin_session::<R, L, N>(words, next),
        Call::MPI_Session_finalize => end_session::<R, L, N>(words, next),
        _ => next(words),
    }
}

fn finalize<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    let Some(lane) = own_lane() else { return next(words) };
    // SAFETY: see `around`.
    unsafe {
        let lane = &mut *lane.as_ptr();
        lane.inside = true;
        lane.tracer.count(R::CALL);
    }
    let start = clock::now();
    let code = next(words);
    let end = clock::now();
    // SAFETY: as above.
    let lane = unsafe { &mut *lane.as_ptr() };
    lane.inside = false;
    lane.put(start, end, &Action::Finalize, lane.tracer.slot(R::CALL));
    lane.tracer.note(R::CALL, end.wrapping_sub(start), code);
    let tracer = lane.tracer;
    if Tracer::active().is_some() {
        let _ = catch_unwind(AssertUnwindSafe(|| tracer.finish()));
    }
    code
}

/// The first session of a program that has not called `MPI_Init` starts tracing, as that does; but tools wait for `MPI_Init`.
fn begin_session<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    if let Some(tracer) = Tracer::active() {
        let code = next(words);
        if code == SUCCESS {
            tracer.sessions.begin();
        }
        return code;
    }
    let Some(place) = (const { find(R::NAMES, &["session"]) }) else { return next(words) };
    if Settings::from_env().tools.is_some() {
        return next(words);
    }
    initialize_in(
        R::CALL,
        || next(words),
        || {
            let mpi = Mpi::loaded()?;
            // SAFETY: the call has succeeded and written this session to where the program wants it.
            let session = unsafe {
                handles::Session::from_word(L::handle_at(mpi.abi(), Kind::SessionPtr, words[place], 0))
            };
            World::of_session(mpi, session)
        },
    )
}

/// The last session of a program without `MPI_Init` ends tracing, as `MPI_Finalize` does.
fn end_session<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    match Tracer::active().is_some_and(|tracer| tracer.sessions.end()) {
        true => finalize::<R, L, N>(words, next),
        false => next(words),
    }
}

/// This thread's lane, unless it is inside a recorded call.
fn own_lane() -> Option<NonNull<Lane>> {
    // SAFETY: a lane lives for ever, and only its own thread looks at it.
    lane::current().or_else(lane::paused).filter(|lane| unsafe { !(*lane.as_ptr()).inside })
}

/// Recorded before the call, which does not return.
fn abort<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    around::<R, L, N, ()>(
        words,
        next,
        |lane, words, abi| {
            let code = Args::<R, L>::new(words, abi).error_code();
            let now = clock::now();
            lane.put(now, now, &Action::Abort { code }, lane.tracer.slot(R::CALL));
        },
        |_, _, (), _| {},
    )
}

/// A phase of the program, which it names itself.
pub(crate) fn phase(begin: bool, name: &str) {
    let Some(lane) = own_lane() else { return };
    // SAFETY: this thread's own, and no call is under way.
    let lane = unsafe { &mut *lane.as_ptr() };
    let only = lane.tracer.phase.as_ref();
    if let Some(only) = only.filter(|_| begin) {
        only.begin(name);
    }
    if lane::current().is_some() {
        let now = clock::now();
        lane.put(now, now, &Action::Phase { begin, name }, CallSlot::NONE);
    }
    if let Some(only) = only.filter(|_| !begin) {
        only.end(name);
    }
}
