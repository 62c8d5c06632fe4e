//! The calls of VEF-TraceLib under their old names, for simulators that go cycle by cycle: `TraceManager.h`.
//!
//! The older interface has one instance a process and no way to report an error, so there is a static here, and
//! errors go to stderr as well as into [`TraceManager_problem`]. Everything else is the same engine.

use crate::border;
use replay::{Job, Link, LiveId, Message, Picos, Replay, ReplayError, SameNode};
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_int};
use std::fmt::Display;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Room for a path, its NUL included.
pub const FILENAME_SIZE: usize = 4096;

/// The configuration for `init_MultipleTraceManager`. Every field is read: there is none that a program which
/// does not know it could leave unset.
#[repr(C)]
#[allow(non_snake_case, reason = "the names are VEF-TraceLib's")]
pub struct Configuration {
    /// End nodes of the simulator; at least 1.
    pub simNodes: c_int,
    /// 1: `filename` is a trace. More: it is a list of as many, one path a line, relative to the list; empty lines
    /// and those that begin with # do not count.
    pub number_of_traces: c_int,
    /// How the ranks of all traces, counted through, are placed on nodes. 0: in blocks of equally many consecutive
    /// ranks (rank r on node r where there are enough nodes). 1: round robin, rank r on node r modulo
    /// `simNodes`.
    pub mapping_mode: c_int,
    /// The trace, text or container, or the list.
    pub filename: [c_char; FILENAME_SIZE],
    /// 0: a cycle lasts what `TraceManager_set_cycle` said, 1000 ps (1 ns) if it said nothing. Otherwise it lasts
    /// one tick of the first trace's clock: the computing times of the trace are numbers of cycles.
    pub use_simulator_clock_instead_of_factorTime: c_int,
}

/// A message to be carried.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TraceMessage {
    /// End node of the sender.
    pub src: c_int,
    /// End node of the receiver.
    pub dst: c_int,
    /// Bytes of payload.
    pub length: u64,
    /// Pass this to `ReceiveTraceMsg`.
    pub id: u64,
}

/// What the process has.
struct State {
    /// How long a cycle lasts where the trace does not say.
    cycle: Picos,
    same_node: SameNode,
    manager: Option<Manager>,
    /// What went wrong first since the last `init_MultipleTraceManager`.
    problem: Option<CString>,
}

/// The replay that `init_MultipleTraceManager` began.
struct Manager {
    replay: Replay,
    now: Picos,
    cycle: Picos,
    /// Whether the library carries messages within a node.
    carries_inside: bool,
    /// The message that is to be given next, if it was looked for.
    pending: Option<Message>,
    /// The destination of each message on its way.
    destinations: HashMap<u64, u32>,
    /// When the last task finishes, once that is known.
    finish: Option<Picos>,
}

static STATE: Mutex<State> = Mutex::new(State {
    cycle: Picos(1000),
    // As the older library, which left messages within a node to the simulator.
    same_node: SameNode::ViaNetwork,
    manager: None,
    problem: None,
});

/// How a call goes wrong.
enum Wrong {
    /// The caller's mistake: nothing has happened.
    Misuse(String),
    /// The end of the replay.
    Over(String),
}

impl From<ReplayError> for Wrong {
    fn from(error: ReplayError) -> Self {
        match error.is_misuse() {
            true => Self::Misuse(error.to_string()),
            false => Self::Over(error.to_string()),
        }
    }
}

fn over(error: impl Display) -> Wrong {
    Wrong::Over(error.to_string())
}

/// Runs `call` on the process's state. What goes wrong is kept, printed on stderr if it is the first, and returned
/// with -1.
fn with_state<N: From<i8>>(call: impl FnOnce(&mut State) -> Result<N, Wrong>) -> N {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    let wrong = match catch_unwind(AssertUnwindSafe(|| call(&mut state))) {
        Ok(Ok(returned)) => return returned,
        Ok(Err(wrong)) => wrong,
        Err(_) => Wrong::Over("a fault in vef_replay".to_owned()),
    };
    let problem = match wrong {
        Wrong::Misuse(problem) => problem,
        Wrong::Over(problem) => {
            state.manager = None;
            problem
        }
    };
    if state.problem.is_none() {
        // A program written for the older interface has no other way to learn of it.
        let _ = writeln!(std::io::stderr(), "TraceManager: {problem}");
        state.problem = Some(border::owned_text(problem));
    }
    N::from(-1)
}

/// Runs `call` on the replay.
fn with_manager<N: From<i8>>(call: impl FnOnce(&mut Manager) -> Result<N, Wrong>) -> N {
    with_state(|state| match &mut state.manager {
        Some(manager) => call(manager),
        None => Err(Wrong::Misuse("no trace is open: init_MultipleTraceManager comes first".to_owned())),
    })
}

/// Opens the traces and starts them at cycle 0; traces that were open are closed. Returns 0, or -1 on failure:
/// then every other call fails, and `isTraceComplete` ends the loop.
///
/// # Safety
/// `configuration` is null or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn init_MultipleTraceManager(configuration: *const Configuration) -> c_int {
    with_state(|state| {
        (state.manager, state.problem) = (None, None);
        // SAFETY: the caller's promise.
        let configuration = unsafe { configuration.as_ref() };
        let configuration = configuration.ok_or_else(|| over("the configuration is null"))?;
        state.manager = Some(open(configuration, state.cycle, state.same_node)?);
        Ok(0)
    })
}

fn open(configuration: &Configuration, cycle: Picos, same_node: SameNode) -> Result<Manager, Wrong> {
    let mut jobs = Vec::new();
    for path in traces(configuration)? {
        jobs.push(Job::open(&path).map_err(over)?);
    }
    let cycle = match configuration.use_simulator_clock_instead_of_factorTime {
        0 => cycle,
        _ => jobs.first().map_or(cycle, Job::clock),
    };
    let ranks = jobs.iter().try_fold(0u32, |sum, job| sum.checked_add(job.tasks()));
    let ranks = ranks.ok_or_else(|| over("more than 2^32 ranks in all traces"))?;
    let nodes = place(configuration, ranks)?;
    let mut nodes = nodes.as_slice();
    let mut builder = Replay::builder().same_node(same_node);
    for job in jobs {
        let (own, others) = nodes.split_at(job.tasks() as usize);
        builder = builder.job(job.nodes(own.to_vec()));
        nodes = others;
    }
    let replay = builder.build().map_err(over)?;
    let (now, destinations) = (Picos::ZERO, HashMap::new());
    let carries_inside = same_node != SameNode::ViaNetwork;
    Ok(Manager { replay, now, cycle, carries_inside, pending: None, destinations, finish: None })
}

/// Longest list of traces.
const MOST_LIST: u64 = 64 << 20;

/// The paths of the traces.
fn traces(configuration: &Configuration) -> Result<Vec<PathBuf>, Wrong> {
    let bytes = configuration.filename.map(|byte| byte as u8);
    let name = CStr::from_bytes_until_nul(&bytes).map_err(|_| over("filename has no end"))?;
    let path = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
    match configuration.number_of_traces {
        1 => Ok(vec![path]),
        number @ 2.. => {
            let problem = |what: &dyn Display| over(format_args!("{}: {what}", path.display()));
            let list = border::read_text(&path, MOST_LIST).map_err(|error| problem(&error))?;
            let beside = path.parent().unwrap_or(Path::new(""));
            let lines = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            let listed: Vec<PathBuf> = lines.map(|line| beside.join(line)).collect();
            if listed.len() as u64 != number as u64 {
                let count = listed.len();
                return Err(problem(&format_args!("it lists {count} traces, number_of_traces is {number}")));
            }
            Ok(listed)
        }
        number => Err(over(format_args!("number_of_traces is {number}"))),
    }
}

/// The nodes of the ranks of all traces, counted through.
fn place(configuration: &Configuration, ranks: u32) -> Result<Vec<u32>, Wrong> {
    let nodes = u32::try_from(configuration.simNodes).ok().filter(|&nodes| nodes > 0);
    let nodes = nodes.ok_or_else(|| over(format_args!("simNodes is {}", configuration.simNodes)))?;
    let in_a_block = ranks.div_ceil(nodes).max(1);
    match configuration.mapping_mode {
        0 => Ok((0..ranks).map(|rank| rank / in_a_block).collect()),
        1 => Ok((0..ranks).map(|rank| rank % nodes).collect()),
        mode => Err(over(format_args!("mapping_mode is {mode}; 0 and 1 are known"))),
    }
}

/// Returns 1 once every message is received and the clock has reached the moment at which the last task finishes, computing behind
/// its last message included; -1 if that can never be (nothing is on its
/// way and nothing will become ready, or the trace is wrong; `TraceManager_problem` explains it); 0 as long as
/// there is something to do.
#[unsafe(no_mangle)]
pub extern "C" fn isTraceComplete() -> c_int {
    with_manager(|manager| {
        let replay = &manager.replay;
        if replay.is_complete() {
            // Asked cycle by cycle, where it no longer changes.
            let finish = *manager.finish.get_or_insert_with(|| replay.finish());
            return Ok((manager.now >= finish).into());
        }
        match replay.stats().live() == 0 && replay.next_ready().is_none() {
            true => Err(Wrong::Over(replay.stuck().map(|stuck| stuck.to_string()).unwrap_or_default())),
            false => Ok(0),
        }
    })
}

/// Returns 1 if a message is to be injected at the current cycle, else 0; also 0 when something went wrong.
#[unsafe(no_mangle)]
pub extern "C" fn areMsgstoGet() -> c_int {
    let ready = |manager: &mut Manager| {
        let next = manager.replay.next_ready();
        let is_ready = manager.pending.is_some() || next.is_some_and(|at| at <= manager.now);
        // It may be one within a node: only taking it tells.
        if is_ready && manager.carries_inside && manager.pending.is_none() {
            manager.pending = manager.replay.pop_ready(manager.now)?;
            return Ok(c_int::from(manager.pending.is_some()));
        }
        Ok(c_int::from(is_ready))
    };
    with_manager(ready).max(0)
}

/// Writes the next message that is to be injected at the current cycle to `message`. Returns 1, or 0 if there is
/// none, or -1.
///
/// # Safety
/// `message` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getMsgTrace(message: *mut TraceMessage) -> c_int {
    with_manager(|manager| {
        if message.is_null() {
            return Err(Wrong::Misuse("getMsgTrace: the message is null".to_owned()));
        }
        let popped = match manager.pending.take() {
            Some(pending) => Some(pending),
            None => manager.replay.pop_ready(manager.now)?,
        };
        let Some(popped) = popped else { return Ok(0) };
        manager.destinations.insert(popped.id.to_raw(), popped.dst_node);
        // Nodes lie below simNodes, which is an int.
        let (src, dst) = (popped.src_node as c_int, popped.dst_node as c_int);
        let given = TraceMessage { src, dst, length: popped.bytes.0, id: popped.id.to_raw() };
        // SAFETY: the caller's promise, and not null.
        unsafe { border::write(message, given) };
        Ok(1)
    })
}

/// Reports that message `id` has been received, whole, at end node `dst` in the current cycle. Returns 0, or -1 if
/// no such message is on its way there; nothing has then happened.
#[unsafe(no_mangle)]
pub extern "C" fn ReceiveTraceMsg(dst: c_int, id: u64) -> c_int {
    with_manager(|manager| {
        match manager.destinations.get(&id) {
            Some(&node) if i64::from(node) == i64::from(dst) => {}
            Some(node) => {
                return Err(Wrong::Misuse(format!("message {id:#x} goes to node {node}, not to {dst}")));
            }
            None => return Err(Wrong::Misuse(format!("{id:#x} names no message on its way"))),
        }
        manager.destinations.remove(&id);
        manager.replay.delivered(LiveId::from_raw(id), manager.now)?;
        Ok(0)
    })
}

/// A cycle is over. Returns 0, or -1 at the end of time (2^64 ps, 213 days).
#[unsafe(no_mangle)]
pub extern "C" fn clock_tictac() -> c_int {
    clock_advance(1)
}

/// Number of cycles until something happens without a reception: a message is to be injected (or, after `TraceManager_same_node`, carried
/// within a node), or the last task finishes. 0: in this cycle. -1: nothing will happen without a reception, or something went wrong. A simulator whose network has nothing to do until
/// then may skip these cycles by `clock_advance`. Not one of VEF-TraceLib's calls.
#[unsafe(no_mangle)]
pub extern "C" fn nextEvent() -> i64 {
    with_manager(|manager| {
        let replay = &manager.replay;
        let next = match replay.is_complete() {
            true => Some(*manager.finish.get_or_insert_with(|| replay.finish())),
            false => replay.next_ready(),
        };
        let cycles = next.map(|at| at.saturating_sub(manager.now).0.div_ceil(manager.cycle.0));
        Ok(cycles.map_or(-1, |cycles| i64::try_from(cycles).unwrap_or(i64::MAX)))
    })
}

/// So many cycles are over: `clock_tictac` as many times. Returns 0, or -1 at the end of time (2^64 ps, 213 days). Not one of VEF-TraceLib's
/// calls.
#[unsafe(no_mangle)]
pub extern "C" fn clock_advance(cycles: u64) -> c_int {
    with_manager(|manager| {
        let took = manager.cycle.0.checked_mul(cycles).map(Picos);
        let next = took.and_then(|took| manager.now.checked_add(took));
        manager.now = next.ok_or_else(|| over("the end of time (2^64 ps, 213 days)"))?;
        Ok(0)
    })
}

/// From now on `init_MultipleTraceManager` opens traces whose messages within a node the library itself carries, in `latency` picoseconds +
/// 8 * bytes / `bits_per_second`: the simulator never sees them. With a bandwidth of 0, and without this call, the simulator gets them like all
/// others. Returns 0. Not one of VEF-TraceLib's calls.
#[unsafe(no_mangle)]
pub extern "C" fn TraceManager_same_node(latency: u64, bits_per_second: u64) -> c_int {
    with_state(|state| {
        state.same_node = match Link::new(Picos(latency), bits_per_second) {
            Ok(link) => SameNode::Inside(link.into()),
            Err(_) => SameNode::ViaNetwork,
        };
        Ok(0)
    })
}

/// How long a cycle lasts, in picoseconds; before `init_MultipleTraceManager`. Returns 0, or -1 for 0. Not one of
/// VEF-TraceLib's calls.
#[unsafe(no_mangle)]
pub extern "C" fn TraceManager_set_cycle(picoseconds: u64) -> c_int {
    with_state(|state| {
        if picoseconds == 0 {
            return Err(Wrong::Misuse("a cycle of 0 ps".to_owned()));
        }
        state.cycle = Picos(picoseconds);
        Ok(0)
    })
}

/// What went wrong first since `init_MultipleTraceManager`, or null. It stands on stderr too. The text lives until
/// `init_MultipleTraceManager` or `TraceManager_end`. Not one of VEF-TraceLib's calls.
#[unsafe(no_mangle)]
pub extern "C" fn TraceManager_problem() -> *const c_char {
    let state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    state.problem.as_ref().map_or(std::ptr::null(), |problem| border::text(problem))
}

/// Closes everything; `init_MultipleTraceManager` may follow. Not one of VEF-TraceLib's calls: a process may end
/// without it.
#[unsafe(no_mangle)]
pub extern "C" fn TraceManager_end() {
    with_state(|state| {
        (state.manager, state.problem) = (None, None);
        Ok::<c_int, _>(0)
    });
}
