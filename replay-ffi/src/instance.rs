//! `vef_replay`: a replay in progress. Asking for messages and reporting deliveries come first, callbacks are built
//! on them.

use crate::border::{self, Failure, Handle, Head, Out, with};
use crate::checkpoint::{self, Saved};
use crate::collective::{self, CollectiveEvent, MemberOfEvent};
use crate::description::{Description, Texts};
use crate::faults::{self, Faults};
use crate::message::{self, LeftOut, Message, Progress, Stats, Tally, Times};
use crate::status::*;
use replay::{CollectiveId, LiveId, Picos, Replay, ReplayError};
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;

/// A replay in progress.
#[repr(C)]
#[derive(Debug)]
pub struct Instance {
    head: Head,
    engine: Replay,
    faults: Faults,
    texts: Texts,
    /// Whether [`vef_replay_hand_out`] is under way.
    handing_out: bool,
    /// Whether it was freed meanwhile.
    doomed: bool,
}

impl Handle for Instance {
    const TAG: u64 = u64::from_ne_bytes(*b"vefreply");

    fn head(&mut self) -> &mut Head {
        &mut self.head
    }
}

/// Takes one message, which leaves its node now. Returns 0 to continue, anything else to stop.
pub type Inject = Option<unsafe extern "C" fn(user: *mut c_void, message: *const Message) -> c_int>;

impl Instance {
    pub(crate) fn new(engine: Replay) -> Self {
        let head = Head::new::<Self>();
        let (faults, texts) = (Faults::default(), Texts::default());
        Self { head, engine, faults, texts, handing_out: false, doomed: false }
    }

    #[cold]
    fn refusal(&mut self, error: ReplayError) -> Failure {
        self.faults.refusal(error)
    }

    /// Writes the next messages that are ready at `now` to `messages`, at most so many, and returns how many. An error behind the first is kept
    /// for the next call.
    ///
    /// # Safety
    /// There is room for `room` of them.
    #[inline(always)]
    unsafe fn pop(&mut self, now: Picos, messages: Out<Message>, room: usize) -> Result<usize, Failure> {
        let mut count = 0;
        let take = |message| {
            // SAFETY: the caller's promise.
            unsafe { messages.write(count, Message::from(message)) };
            count += 1;
        };
        match self.engine.pop_ready_batch(now, room, take).map_err(|error| self.refusal(error)) {
            Err(failure) if count == 0 => Err(failure),
            Ok(()) | Err(_) => Ok(count),
        }
    }

    #[inline(always)]
    fn delivered(&mut self, id: u64, at: u64) -> Result<(), Failure> {
        self.engine.delivered(LiveId::from_raw(id), Picos(at)).map_err(|error| self.refusal(error))
    }

    #[inline(always)]
    fn next_ready(&self) -> Result<Option<Picos>, Failure> {
        self.faults.check()?;
        Ok(self.engine.next_ready())
    }
}

impl Saved for Instance {
    fn reset(&mut self) -> Result<(), Failure> {
        if self.handing_out {
            return Err(Failure::plain(VEF_ERROR_REENTRANT));
        }
        self.faults = Faults::default();
        self.engine.reset().map_err(|error| self.refusal(error))
    }

    fn save(&mut self) -> Result<Vec<u8>, Failure> {
        self.faults.check()?;
        self.engine.save().map_err(checkpoint::refused)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), Failure> {
        if self.handing_out {
            return Err(Failure::plain(VEF_ERROR_REENTRANT));
        }
        self.engine.restore(state).map_err(checkpoint::refused)?;
        self.faults = Faults::default();
        Ok(())
    }
}

/// Frees a replay, finished or not. Null is allowed. From within a callback of `vef_replay_hand_out` it takes
/// effect when that returns.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_free(replay: *mut Instance) {
    let deferred = |replay: &mut Instance| {
        replay.doomed = replay.handing_out;
        replay.doomed
    };
    // SAFETY: the caller's promise; in a callback, the loop under way frees it.
    unsafe {
        if border::even_broken(replay, deferred) == Some(false) {
            border::free(replay);
        }
    }
}

/// When to ask for messages next: returns 1 and writes the moment to `at`, or returns 0 if nothing becomes ready
/// without a delivery.
///
/// A delivery can bring the moment forward, so ask again after each. It is never before an earlier call's moment.
///
/// # Safety
/// `replay` is null or usable; `at` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_next_ready(replay: *mut Instance, at: *mut u64) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            border::present(at, "at")?;
            let next = replay.next_ready()?;
            if let Some(next) = next {
                border::write(at, next.0);
            }
            Ok(next.is_some().into())
        })
    }
}

/// Takes the next message that is ready at `now`: returns 1 and writes it to `message`, or returns 0 if there is
/// none.
///
/// # Safety
/// `replay` is null or usable; `message` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_pop_ready(
    replay: *mut Instance,
    now: u64,
    message: *mut Message,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            let message = Out::new(message, size, "message")?;
            Ok(replay.pop(Picos(now), message, 1)? as c_int)
        })
    }
}

/// Takes up to `room` messages that are ready at `now`, writes them to `messages` and returns how many. Fewer than
/// `room`: there are no more at that moment, unless an error in the trace ends the list early, which the next call
/// then returns.
///
/// # Safety
/// `replay` is null or usable; `messages` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_pop_ready_batch(
    replay: *mut Instance,
    now: u64,
    messages: *mut Message,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            let messages = Out::new(messages, size, "messages")?;
            Ok(replay.pop(Picos(now), messages, room)? as isize)
        })
    }
}

/// Reports that a message has left its source at `at`. Optional; it matters after `vef_builder_sends_when_sent`
/// alone.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_sent(replay: *mut Instance, id: u64, at: u64) -> c_int {
    let report = |replay: &mut Instance| {
        let sent = replay.engine.sent(LiveId::from_raw(id), Picos(at));
        sent.map(|()| 0).map_err(|error| replay.refusal(error))
    };
    // SAFETY: the caller's promise.
    unsafe { with(replay, report) }
}

/// Reports that a message has arrived, whole, at its destination at `at`. Its id is then invalid. Other messages may become
/// ready, at once or later.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_delivered(replay: *mut Instance, id: u64, at: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(replay, |replay| replay.delivered(id, at).map(|()| 0)) }
}

/// Reports that `count` messages have arrived at `at`, in this order, and returns how many were accepted.
/// Fewer than `count`: the next one is refused, and a call that begins with it returns the reason.
///
/// # Safety
/// `replay` is null or usable; `ids` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_delivered_batch(
    replay: *mut Instance,
    ids: *const u64,
    count: usize,
    at: u64,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            let mut looked_at = 0;
            let ids = border::array(ids, count, "ids")?.iter().map(|&id| {
                looked_at += 1;
                LiveId::from_raw(id)
            });
            let taken = match replay.engine.delivered_batch(ids, Picos(at)) {
                Ok(()) => looked_at,
                // The last is the one that is refused.
                Err(error) => {
                    let failure = replay.refusal(error);
                    if looked_at == 1 {
                        return Err(failure);
                    }
                    looked_at - 1
                }
            };
            Ok(taken)
        })
    }
}

/// Takes the next collective of `vef_builder_collective_events` that is an event at `now` or was before: returns 1 and writes it to
/// `collective`, or returns 0 if there is none. `vef_replay_next_ready` names these moments, too.
///
/// # Safety
/// `replay` is null or usable; `collective` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_pop_collective(
    replay: *mut Instance,
    now: u64,
    collective: *mut CollectiveEvent,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            let out = Out::new(collective, size, "collective")?;
            let popped = replay.engine.pop_collective(Picos(now)).map_err(|error| replay.refusal(error))?;
            if let Some(event) = &popped {
                out.write(0, event.into());
            }
            Ok(popped.is_some().into())
        })
    }
}

/// Reports that a member, by its rank of the communicator, of a collective that is an event is complete at `at`: not before it entered.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_complete_member(
    replay: *mut Instance,
    job: u32,
    id: u64,
    member: u32,
    at: u64,
) -> c_int {
    let report = |replay: &mut Instance| {
        let (of, at) = ((job, CollectiveId(id)), Picos(at));
        let reported = replay.engine.complete_member(of, member, at);
        reported.map(|()| 0).map_err(|error| replay.refusal(error))
    };
    // SAFETY: the caller's promise.
    unsafe { with(replay, report) }
}

/// Writes the members of a collective that is an event to `members`, by their ranks of the communicator, `room` of them at most, and
/// returns how many there are; with a `room` of 0 `members` may be null.
///
/// # Safety
/// `replay` is null or usable; `members` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_members(
    replay: *mut Instance,
    job: u32,
    id: u64,
    members: *mut MemberOfEvent,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            let found = replay.engine.members(job, CollectiveId(id));
            collective::write_members(found, (members, room, size))
        })
    }
}

/// Hands every message that is ready at `now` to `inject`, one after the other, and returns how many: the same as
/// `vef_replay_pop_ready` in a loop, for simulators that would rather be called. `user` is passed on.
///
/// Within `inject` every function may be called, on this replay too, but for this one on this replay
/// (`VEF_ERROR_REENTRANT`). What is reported delivered there counts at once; what that makes ready is handed out by
/// the loop under way, after `inject` has returned, never by a call within a call. If `inject` reports something
/// for a later moment than `now`, then the loop goes on at that moment. The message that `inject` is given is valid
/// until it returns; it must not throw, nor leave by `longjmp`.
///
/// # Safety
/// `replay` is null or usable; `inject` does what is said above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_hand_out(
    replay: *mut Instance,
    now: u64,
    inject: Inject,
    user: *mut c_void,
) -> isize {
    let begin = |replay: &mut Instance| match (replay.handing_out, inject) {
        (true, _) => Err(Failure::plain(VEF_ERROR_REENTRANT)),
        (false, None) => Err(Failure::new(VEF_ERROR_NULL, "inject is null")),
        (false, Some(_)) => {
            replay.handing_out = true;
            Ok(0)
        }
    };
    // SAFETY: the caller's promise.
    let begun = unsafe { with(replay, begin) };
    let (0, Some(inject)) = (begun, inject) else { return begun };
    let mut count = 0;
    let result = loop {
        let mut message = MaybeUninit::uninit();
        let take = |replay: &mut Instance| {
            let now = if count == 0 { Picos(now) } else { replay.engine.clock().max(Picos(now)) };
            // SAFETY: there is room for one.
            let taken = unsafe { replay.pop(now, Out::one(&mut message), 1)? };
            Ok(taken as isize)
        };
        // SAFETY: the caller's promise; a callback that frees the replay leaves it until the end of this function.
        let taken = unsafe { with(replay, take) };
        if taken != 1 {
            break if count > 0 { count } else { taken };
        }
        count += 1;
        // No reference to the replay is held here. SAFETY: the caller's promise on `inject`; a message was taken, and so written.
        if unsafe { inject(user, message.as_ptr()) } != 0 {
            break count;
        }
    };
    let end = |replay: &mut Instance| {
        replay.handing_out = false;
        replay.doomed
    };
    // SAFETY: as above; nothing uses the replay after its being freed.
    unsafe {
        if border::even_broken(replay, end) == Some(true) {
            border::free(replay);
        }
    }
    result
}

/// Writes everything that the trace says of a message that is under way to `description`: the record that sends it, its tag, MPI function and
/// phase, its collective, algorithm and step. A simulator that never asks pays nothing for it. A container has tags, functions and
/// phases; text has not.
///
/// # Safety
/// `replay` is null or usable; `description` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_describe(
    replay: *mut Instance,
    id: u64,
    description: *mut Description,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            let out = Out::new(description, size, "description")?;
            let described =
                replay.engine.describe(LiveId::from_raw(id)).map_err(|error| replay.refusal(error))?;
            out.write(0, replay.texts.fill(&described));
            Ok(0)
        })
    }
}

/// Returns 1 if every record is replayed and every message delivered, else 0.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_is_complete(replay: *mut Instance) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(replay, |replay| Ok(replay.engine.is_complete().into())) }
}

/// Why nothing happens any more: text of several lines, or null where there is nothing to explain (all is complete,
/// or something will become ready without a delivery). It names the tasks that wait, for what, a circle if there is one, and
/// messages that were never delivered; after an error in the trace it is that error, and without a usable handle the text of that code.
///
/// It is for the moment when the simulator has nothing under way either, as at the end of its run. The text is valid
/// until this function is called again, or the replay is freed. It may read the trace again.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_stuck(replay: *mut Instance) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { faults::stuck(replay, |replay| replay.faults.explain(replay.engine.stuck())) }
}

/// Writes what was done so far to `stats`.
///
/// # Safety
/// `replay` is null or usable; `stats` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_stats(replay: *mut Instance, stats: *mut Stats, size: usize) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            Out::new(stats, size, "stats")?.write(0, Stats::from(&replay.engine));
            Ok(0)
        })
    }
}

/// Writes how many messages of a kind have started to `tally`; `vef_kind_name` names the kinds.
///
/// # Safety
/// `replay` is null or usable; `tally` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_tally(
    replay: *mut Instance,
    kind: u32,
    tally: *mut Tally,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe { with(replay, |replay| message::write_tally(replay.engine.stats(), kind, (tally, size))) }
}

/// Writes the times of the ranks of a job by state to `times`, by rank, `room` of them at most, and returns how many ranks the job has; with a
/// `room` of 0 `times` may be null. It needs `vef_builder_keep_times`.
///
/// # Safety
/// `replay` is null or usable; `times` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_times(
    replay: *mut Instance,
    job: u32,
    times: *mut Times,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| {
            let kept = (replay.engine.engine(), replay.engine.accounts());
            message::write_times(kept, job, (times, room, size))
        })
    }
}

/// Writes how far the ranks of a job have come to `tasks`, by rank, `room` of them at most. Returns how many ranks
/// the job has, whatever `room` is: with 0 it only returns that number, and `tasks` may be null.
///
/// # Safety
/// `replay` is null or usable; `tasks` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_progress(
    replay: *mut Instance,
    job: u32,
    tasks: *mut Progress,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(replay, |replay| message::write_progress(replay.engine.engine(), job, (tasks, room, size)))
    }
}

/// Begins a replay again: as it was when it was built. Traces are not opened again; a text is read into memory, once. Ids of messages are
/// void. An error in the trace that has ended the replay is forgotten.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_reset(replay: *mut Instance) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { checkpoint::reset(replay) }
}

/// Writes the state of a replay to `state`, if that has room for it, and returns how many bytes it has: with a `room` of 0 `state` may be null.
/// From it `vef_replay_restore` goes on in a replay of the same traces, placement and options, also in another process; what a
/// builder was told is not in it, nor are the traces. The simulator saves its own state with the ids of messages, which stay valid.
///
/// # Safety
/// `replay` is null or usable; `state` is null or has `room` bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_save(replay: *mut Instance, state: *mut c_void, room: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { checkpoint::save(replay, state, room) }
}

/// Goes on from a state that was saved. Ids of messages that were under way here are void. Bytes that are no state of this replay are
/// refused (`VEF_ERROR_ARGUMENT`), and the replay is as it was. They are checked for damage, not for malice. A function of
/// `vef_builder_computing` is called for the records again that were read before.
///
/// # Safety
/// `replay` is null or usable; `state` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_restore(
    replay: *mut Instance,
    state: *const c_void,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { checkpoint::restore(replay, state, size) }
}

/// Writes what the replay of a part of a job's run (`vef_builder_phase` and its like) has left out so far to `left_out`.
///
/// # Safety
/// `replay` is null or usable; `left_out` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_left_out(
    replay: *mut Instance,
    job: u32,
    left_out: *mut LeftOut,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe { with(replay, |replay| message::write_left_out(replay.engine.engine(), job, (left_out, size))) }
}

/// The error of the last failed call on this replay, in one line; "" if no call failed. The text is valid until the next
/// call on it.
///
/// # Safety
/// `replay` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_replay_error(replay: *mut Instance) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { border::error(replay) }
}
