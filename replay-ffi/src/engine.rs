//! `vef_engine`: a replay for simulators that have an event queue. Calls report what happens; what follows, with the moments at which
//! it happens, is then taken in batches.

use crate::border::{self, Failure, Handle, Head, Out, with};
use crate::checkpoint::{self, Saved};
use crate::collective::{self, MemberOfEvent};
use crate::description::{Description, Texts};
use crate::faults::{self, Faults};
use crate::message::{
    self, Event, Follows, LeftOut, Parcel, Progress, Stats, Tally, Times, VEF_EVENT_DELIVERED,
    VEF_EVENT_SENT, VEF_EVENT_WAKE,
};
use crate::status::*;
use replay::{
    Accounts, Collective, CollectiveId, Engine, LiveId, Next, Picos, ReplayError, Sink, Started, Wake,
};
use std::ffi::{c_char, c_int, c_void};
use std::ops::Range;

/// A replay, or one partition of it, without a queue and without a clock.
#[repr(C)]
#[derive(Debug)]
pub struct Core {
    head: Head,
    engine: Engine,
    faults: Faults,
    texts: Texts,
    taken_in: TakenIn,
    /// So many of what has followed from calls were taken.
    taken: usize,
    /// The latest moment of any call.
    clock: Picos,
}

/// What follows from calls.
#[derive(Debug)]
struct TakenIn {
    follows: Vec<Follows>,
    /// Set if the ranks' times are kept.
    accounts: Option<Box<Accounts>>,
}

impl Sink for TakenIn {
    #[inline(always)]
    fn take(&mut self, next: Next) {
        self.follows.push(next.into());
    }

    fn collective(&mut self, collective: &Collective) {
        self.follows.push(collective.into());
    }

    #[inline(always)]
    fn watches(&self) -> bool {
        self.accounts.is_some()
    }

    fn opened(&mut self, job: u32, _: u32, tasks: Range<u32>, start: Picos) {
        if let Some(accounts) = &mut self.accounts {
            accounts.opened(job, tasks, start);
        }
    }

    fn started(&mut self, started: &Started) {
        if let Some(accounts) = &mut self.accounts {
            accounts.started(accounts.number(started.job, started.task.0), started);
        }
    }
}

impl Handle for Core {
    const TAG: u64 = u64::from_ne_bytes(*b"vefengin");

    fn head(&mut self) -> &mut Head {
        &mut self.head
    }
}

impl Core {
    pub(crate) fn new(engine: Engine, keep_times: bool) -> Self {
        let accounts = keep_times.then(|| Box::new(Accounts::new(&engine)));
        let (head, faults, texts) = (Head::new::<Self>(), Faults::default(), Texts::default());
        let taken_in = TakenIn { follows: Vec::new(), accounts };
        Self { head, engine, faults, texts, taken_in, taken: 0, clock: Picos::ZERO }
    }

    #[inline(always)]
    fn report(&mut self, Event { at, id, what }: Event) -> Result<(), Failure> {
        let Self { engine, taken_in, .. } = self;
        let at = Picos(at);
        let reported = match what {
            VEF_EVENT_DELIVERED => engine.delivered(LiveId::from_raw(id), at, taken_in),
            VEF_EVENT_WAKE => engine.wake(Wake::from_raw(at, id), at, taken_in),
            VEF_EVENT_SENT => engine.sent(LiveId::from_raw(id), at, taken_in),
            _ => return Err(Failure::new(VEF_ERROR_ARGUMENT, format_args!("there is no event {what}"))),
        };
        self.clock = self.clock.max(at);
        reported.map_err(|error| self.refusal(error))
    }

    #[cold]
    fn refusal(&mut self, error: ReplayError) -> Failure {
        self.faults.refusal(error)
    }
}

impl Saved for Core {
    fn reset(&mut self) -> Result<(), Failure> {
        self.faults = Faults::default();
        self.engine.reset().map_err(|error| self.refusal(error))?;
        let accounts = self.taken_in.accounts.is_some().then(|| Box::new(Accounts::new(&self.engine)));
        self.taken_in = TakenIn { follows: Vec::new(), accounts };
        (self.taken, self.clock) = (0, Picos::ZERO);
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>, Failure> {
        self.faults.check()?;
        if !self.taken_in.follows.is_empty() {
            let text = "what has followed must be taken first (vef_engine_next)";
            return Err(Failure::new(VEF_ERROR_STATE, text));
        }
        let beside = (self.taken_in.accounts.as_deref(), self.clock);
        self.engine.save_with(&beside).map_err(checkpoint::refused)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), Failure> {
        let restored = self.engine.restore_with(state).map_err(checkpoint::refused)?;
        let (accounts, clock): (Option<Accounts>, Picos) = restored;
        let keeps_times = self.taken_in.accounts.is_some();
        let accounts = accounts.filter(|_| keeps_times).map(Box::new);
        self.taken_in = TakenIn { follows: Vec::new(), accounts };
        (self.taken, self.clock, self.faults) = (0, clock, Faults::default());
        Ok(())
    }
}

/// Frees an engine. Null is allowed.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_free(engine: *mut Core) {
    // SAFETY: the caller's promise.
    unsafe { border::free(engine) }
}

/// Starts all ranks: once, before all other calls. What follows from it, as from every call below, is taken by `vef_engine_next`.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_begin(engine: *mut Core) -> c_int {
    let begin = |core: &mut Core| {
        let begun = core.engine.begin(&mut core.taken_in);
        begun.map_err(|error| core.refusal(error)).map(|()| 0)
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, begin) }
}

/// Reports that a message has arrived, whole, at its destination at `at`. Its id is then invalid.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_delivered(engine: *mut Core, id: u64, at: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(engine, |core| core.report(Event { at, id, what: VEF_EVENT_DELIVERED }).map(|()| 0)) }
}

/// Reports that a message has left its source at `at`. Optional; it matters after `vef_builder_sends_when_sent`
/// alone.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_sent(engine: *mut Core, id: u64, at: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(engine, |core| core.report(Event { at, id, what: VEF_EVENT_SENT }).map(|()| 0)) }
}

/// Wakes a rank, as a `VEF_NEXT_WAKE` asked: at the moment that it named, or later. What it was to start then starts at `at`.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_wake(engine: *mut Core, id: u64, at: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(engine, |core| core.report(Event { at, id, what: VEF_EVENT_WAKE }).map(|()| 0)) }
}

/// Reports `count` events in this order, and returns how many were accepted: the same as the three calls above for each, in less time.
/// Fewer than `count`: the next one is refused, and a call that begins with it returns the reason. What follows from one event
/// is none of the others: report those events together that happen before anything that can follow from them.
///
/// # Safety
/// `engine` is null or usable; `events` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_report(engine: *mut Core, events: *const Event, count: usize) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            for (at, event) in border::array(events, count, "events")?.iter().enumerate() {
                match core.report(*event) {
                    Ok(()) => {}
                    Err(failure) if at == 0 => return Err(failure),
                    Err(_) => return Ok(at as isize),
                }
            }
            Ok(count as isize)
        })
    }
}

/// Takes up to `room` of the things that have followed from calls, in the order in which they followed, which is not that of their
/// moments; writes them to `next` and returns how many. Those that are not taken are kept. `size` is `sizeof(vef_next)`.
///
/// # Safety
/// `engine` is null or usable; `next` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_next(
    engine: *mut Core,
    next: *mut Follows,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            let next = Out::new(next, size, "next")?;
            let ready = core.taken_in.follows.get(core.taken..).unwrap_or_default();
            let count = ready.len().min(room);
            for (at, &follows) in ready[..count].iter().enumerate() {
                next.write(at, follows);
            }
            core.taken += count;
            if core.taken == core.taken_in.follows.len() {
                core.taken_in.follows.clear();
                core.taken = 0;
            }
            Ok(count as isize)
        })
    }
}

/// As `vef_replay_describe`; of a message that goes to another partition, before it is exported.
///
/// # Safety
/// `engine` is null or usable; `description` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_describe(
    engine: *mut Core,
    id: u64,
    description: *mut Description,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            let out = Out::new(description, size, "description")?;
            let described =
                core.engine.describe(LiveId::from_raw(id)).map_err(|error| core.refusal(error))?;
            out.write(0, core.texts.fill(&described));
            Ok(0)
        })
    }
}

/// Reports that a member, by its rank of the communicator, of a collective that is an event is complete at `at`: not before it entered.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_complete_member(
    engine: *mut Core,
    job: u32,
    id: u64,
    member: u32,
    at: u64,
) -> c_int {
    let report = |engine: &mut Core| {
        let (of, at) = ((job, CollectiveId(id)), Picos(at));
        let Core { engine: replayed, taken_in, clock, .. } = engine;
        let reported = replayed.complete_member(of, member, at, taken_in);
        *clock = (*clock).max(at);
        reported.map(|()| 0).map_err(|error| engine.refusal(error))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, report) }
}

/// Writes the members of a collective that is an event to `members`, by their ranks of the communicator, `room` of them at most, and
/// returns how many there are; with a `room` of 0 `members` may be null.
///
/// # Safety
/// `engine` is null or usable; `members` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_members(
    engine: *mut Core,
    job: u32,
    id: u64,
    members: *mut MemberOfEvent,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |engine| {
            let found = engine.engine.members(job, CollectiveId(id));
            collective::write_members(found, (members, room, size))
        })
    }
}

/// Takes a message out of this partition whose receiver is in another one, and writes to `parcel` what that partition needs of it:
/// `vef_engine_import` takes it in there. Returns 0, and the id is then invalid; or 1 if the sender still waits for the message
/// (not under `vef_builder_sends_eager`): report it sent or delivered here, too, under this id.
///
/// # Safety
/// `engine` is null or usable; `parcel` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_export(engine: *mut Core, id: u64, parcel: *mut Parcel) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            border::present(parcel, "parcel")?;
            let exported = core.engine.export(LiveId::from_raw(id)).map_err(|error| core.refusal(error))?;
            border::write(parcel, Parcel { words: exported.to_raw() });
            Ok(exported.is_incomplete().into())
        })
    }
}

/// Takes a message in that another partition has exported to a rank of this one, and writes the id by which it is reported delivered here.
///
/// # Safety
/// `engine` is null or usable; `parcel` is null or a parcel, `id` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_import(engine: *mut Core, parcel: *const Parcel, id: *mut u64) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            border::present(id, "id")?;
            let [parcel] = border::array(parcel, 1, "parcel")? else { return Ok(0) };
            let parcel = replay::Parcel::from_raw(parcel.words);
            let imported = core.engine.import(parcel).map_err(|error| core.refusal(error))?;
            border::write(id, imported.to_raw());
            Ok(0)
        })
    }
}

/// Returns 1 if every record is replayed and every message delivered, else 0; of a partition, every record of its own ranks and every
/// message that stays in it or came to it.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_is_complete(engine: *mut Core) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(engine, |core| Ok(core.engine.is_complete().into())) }
}

/// Why not everything is complete, for the moment when the simulator has no event left; otherwise as `vef_replay_stuck`.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_stuck(engine: *mut Core) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { faults::stuck(engine, |core| core.faults.explain(core.engine.stuck())) }
}

/// Writes what was done so far to `stats`; `size` is `sizeof(vef_stats)`.
///
/// # Safety
/// `engine` is null or usable; `stats` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_stats(engine: *mut Core, stats: *mut Stats, size: usize) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            Out::new(stats, size, "stats")?.write(0, Stats::of(&core.engine, core.clock));
            Ok(0)
        })
    }
}

/// As `vef_replay_tally`.
///
/// # Safety
/// `engine` is null or usable; `tally` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_tally(
    engine: *mut Core,
    kind: u32,
    tally: *mut Tally,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe { with(engine, |core| message::write_tally(core.engine.stats(), kind, (tally, size))) }
}

/// As `vef_replay_times`; of ranks in other partitions nothing is known.
///
/// # Safety
/// `engine` is null or usable; `times` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_times(
    engine: *mut Core,
    job: u32,
    times: *mut Times,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            let kept = (&core.engine, core.taken_in.accounts.as_deref());
            message::write_times(kept, job, (times, room, size))
        })
    }
}

/// As `vef_replay_progress`. Of a rank in another partition nothing is known: it has no records and never finishes.
///
/// # Safety
/// `engine` is null or usable; `tasks` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_progress(
    engine: *mut Core,
    job: u32,
    tasks: *mut Progress,
    room: usize,
    size: usize,
) -> isize {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe { with(engine, |core| message::write_progress(&core.engine, job, (tasks, room, size))) }
}

/// As `vef_replay_reset`; then `vef_engine_begin` starts all ranks again. What has followed and was not taken is dropped.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_reset(engine: *mut Core) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { checkpoint::reset(engine) }
}

/// As `vef_replay_save`. What has followed must have been taken (`VEF_ERROR_STATE`): it is the simulator's, which saves its events with their
/// ids.
///
/// # Safety
/// `engine` is null or usable; `state` is null or has `room` bytes that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_save(engine: *mut Core, state: *mut c_void, room: usize) -> isize {
    // SAFETY: the caller's promise.
    unsafe { checkpoint::save(engine, state, room) }
}

/// As `vef_replay_restore`. What has followed and was not taken is dropped.
///
/// # Safety
/// `engine` is null or usable; `state` is null or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_restore(engine: *mut Core, state: *const c_void, size: usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { checkpoint::restore(engine, state, size) }
}

/// As `vef_replay_left_out`.
///
/// # Safety
/// `engine` is null or usable; `left_out` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_left_out(
    engine: *mut Core,
    job: u32,
    left_out: *mut LeftOut,
    size: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe { with(engine, |core| message::write_left_out(&core.engine, job, (left_out, size))) }
}

/// Returns 1 if all ranks of a job are done and none of its messages is under way, else 0.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_is_over(engine: *mut Core, job: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(engine, |core| Ok(core.engine.is_over(job).into())) }
}

/// Starts the ranks of a job again, at `start`, with their first records; returns 1, or 0 and nothing happens unless the job is over
/// (`vef_engine_is_over`). Counts go on. An error leaves the replay as it was: `VEF_ERROR_ARGUMENT` for a `start` so late that the ranks would begin
/// past the end of time, `VEF_ERROR_TRACE` if the trace cannot be read again.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_repeat(engine: *mut Core, job: u32, start: u64) -> c_int {
    let repeat = |core: &mut Core| {
        let Core { engine, taken_in, .. } = core;
        if !engine.is_over(job) {
            return Ok(0);
        }
        let accounts = taken_in.accounts.clone();
        if let Some(accounts) = &mut taken_in.accounts {
            accounts.restart(job, Picos(start));
        }
        let repeated = engine.repeat(job, Picos(start), taken_in);
        if repeated.is_err() {
            taken_in.accounts = accounts;
        }
        repeated.map(c_int::from).map_err(|error| core.refusal(error))
    };
    // SAFETY: the caller's promise.
    unsafe { with(engine, repeat) }
}

/// Opens another instance of `job`, one of those that the builder had: its ranks start at `start`, rank r on node `nodes[r]`, with all that was said of
/// the job, beside it and other instances. Returns its number, that of a job; it may have been that of an instance which is closed. `count` is
/// at least the number of ranks; the array is copied. The builder's job is most often one on call (`vef_builder_on_call`): then only its
/// instances run. `VEF_ERROR_STATE` before `vef_engine_begin`; partitions have none. An error leaves the replay as it was, also `VEF_ERROR_ARGUMENT` for a
/// `start` so late that its ranks would begin past the end of time, and `VEF_ERROR_TRACE` if the trace cannot be read again.
///
/// # Safety
/// `engine` is null or usable; `nodes` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_open(
    engine: *mut Core,
    job: u32,
    nodes: *const u32,
    count: usize,
    start: u64,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        with(engine, |core| {
            let nodes = border::array(nodes, count, "nodes")?;
            let opened = core.engine.open(job, nodes, Picos(start), &mut core.taken_in);
            let opened = opened.map_err(|error| core.refusal(error))?;
            Ok(c_int::try_from(opened).unwrap_or(c_int::MAX))
        })
    }
}

/// Closes an instance that is over (`vef_engine_is_over`): its number and its memory are free for others. Returns 1, or 0 and nothing happens
/// unless it was opened and is over. Counts and the end of the run keep what it did.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_close(engine: *mut Core, job: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { with(engine, |core| Ok(core.engine.close(job).into())) }
}

/// The error of the last failed call on this engine, in one line; "" if no call failed. The text is valid until the next
/// call on it.
///
/// # Safety
/// `engine` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_engine_error(engine: *mut Core) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { border::error(engine) }
}
