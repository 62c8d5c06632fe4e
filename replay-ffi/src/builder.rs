//! `vef_builder`: collects jobs and options until they become a replay.

use crate::border::{self, Failure, Handle, Head, with};
use crate::engine::Core;
use crate::instance::Instance;
use crate::status::*;
use replay::{Bytes, CollectiveEvents, Job, Link, Memory, Picos, Replay, SameNode, SendCompletion, Table};
use std::ffi::{c_char, c_int};

/// Describes a replay: its jobs, and what is decided for all of them.
#[repr(C)]
#[derive(Debug)]
pub struct Builder {
    head: Head,
    jobs: Vec<Job>,
    send_completion: SendCompletion,
    same_node: SameNode,
    algorithms: Table,
    keep_times: bool,
    pub(crate) events: Option<CollectiveEvents>,
    /// Why nothing more can be said to it: what went wrong first, or that it is built.
    over: Option<Failure>,
}

impl Handle for Builder {
    const TAG: u64 = u64::from_ne_bytes(*b"vefbuild");

    fn head(&mut self) -> &mut Head {
        &mut self.head
    }
}

impl Builder {
    pub(crate) fn job(&mut self, job: u32) -> Result<&mut Job, Failure> {
        let jobs = self.jobs.len();
        let found = self.jobs.get_mut(job as usize);
        found.ok_or_else(|| {
            Failure::new(VEF_ERROR_ARGUMENT, format_args!("there is no job {job}: {jobs} were added"))
        })
    }

    /// Replaces a job by what `change` makes of it.
    pub(crate) fn change(&mut self, job: u32, change: impl FnOnce(Job) -> Job) -> Result<c_int, Failure> {
        self.job(job)?;
        let changed = change(self.jobs.swap_remove(job as usize));
        self.jobs.push(changed);
        let last = self.jobs.len() - 1;
        self.jobs.swap(job as usize, last);
        Ok(0)
    }

    /// Makes the replay, in whichever form.
    fn build<T>(
        &mut self,
        build: impl FnOnce(replay::Builder) -> Result<T, replay::BuildError>,
    ) -> Result<T, Failure> {
        let mut builder = Replay::builder()
            .send_completion(self.send_completion)
            .same_node(self.same_node)
            .algorithms(std::mem::take(&mut self.algorithms))
            .keep_times(self.keep_times);
        if let Some(events) = self.events.take() {
            builder = builder.collective_events(events);
        }
        for job in self.jobs.drain(..) {
            builder = builder.job(job);
        }
        let built = build(builder).map_err(|error| {
            let status = match &error {
                replay::BuildError::Placement { .. } => VEF_ERROR_PLACEMENT,
                replay::BuildError::NoJobs => VEF_ERROR_STATE,
                replay::BuildError::Factor { .. }
                | replay::BuildError::NoBandwidth
                | replay::BuildError::EventsOfPartitions
                | replay::BuildError::Partition { .. } => VEF_ERROR_ARGUMENT,
                _ => VEF_ERROR_TRACE,
            };
            Failure::new(status, error)
        });
        self.over = Some(Failure::new(VEF_ERROR_STATE, "the builder has been built"));
        built
    }
}

/// Runs a call on a builder that is neither built nor has failed; its failure is the last thing that happens to it.
///
/// # Safety
/// As [`with`].
pub(crate) unsafe fn describe(
    builder: *mut Builder,
    call: impl FnOnce(&mut Builder) -> Result<c_int, Failure>,
) -> c_int {
    let described = |builder: &mut Builder| {
        if let Some(over) = &builder.over {
            return Err(over.clone());
        }
        let returned = call(builder);
        if let Err(failure) = &returned {
            builder.over = Some(failure.clone());
        }
        returned
    };
    // SAFETY: by this function's own contract.
    unsafe { with(builder, described) }
}

/// A builder without jobs; the caller owns it and frees it with `vef_builder_free`. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn vef_builder_new() -> *mut Builder {
    border::catch_panics();
    let builder = Builder {
        head: Head::new::<Builder>(),
        jobs: Vec::new(),
        send_completion: SendCompletion::default(),
        same_node: SameNode::default(),
        algorithms: Table::default(),
        keep_times: false,
        events: None,
        over: None,
    };
    builder.into_handle()
}

/// Frees a builder, built or not. Null is allowed.
///
/// # Safety
/// `builder` is null or from `vef_builder_new`, not freed, and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_free(builder: *mut Builder) {
    // SAFETY: the caller's promise.
    unsafe { border::free(builder) }
}

/// Adds the trace in the file `trace`: text (`.vef`) or container (`.vefx`). Text is read while it is replayed, so
/// the file must stay. Returns the job's number, from 0.
///
/// Without further calls the job's rank r is on node r, and it starts at 0.
///
/// # Safety
/// `builder` is null or usable; `trace` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_add_job(builder: *mut Builder, trace: *const c_char) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let path = border::path(trace, "trace")?;
            let number = c_int::try_from(builder.jobs.len());
            let number =
                number.map_err(|_| Failure::new(VEF_ERROR_ARGUMENT, "more than 2^31 jobs in one replay"))?;
            builder.jobs.push(Job::open(path).map_err(|error| Failure::new(VEF_ERROR_TRACE, error))?);
            Ok(number)
        })
    }
}

/// Sends of all jobs are complete for their senders when the simulator takes them, whatever their size. This is
/// the default.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_sends_eager(builder: *mut Builder) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_sends(builder, SendCompletion::Eager) }
}

/// Sends are complete for their senders when the simulator reports them sent, or delivered where it never does.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_sends_when_sent(builder: *mut Builder) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_sends(builder, SendCompletion::WhenSent) }
}

/// Sends of more than `above` bytes are complete for their senders when the simulator reports them sent, or delivered where it never does;
/// others when they are taken.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_sends_when_sent_above(builder: *mut Builder, above: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_sends(builder, SendCompletion::LargeWhenSent { above: Bytes(above) }) }
}

/// Sends of more than `above` bytes are complete for their senders when they are delivered, others when they are
/// taken. Those that a container notes as synchronous (`MPI_Ssend`, `MPI_Issend`) are as the larger ones, here and by the other rules with a size.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_sends_rendezvous(builder: *mut Builder, above: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_sends(builder, SendCompletion::Rendezvous { above: Bytes(above) }) }
}

/// As `vef_builder_sends_rendezvous`, and a send of more than `above` bytes is taken only when its receiver is in a call of MPI: at the
/// start of one of its records or while it waits, not while it computes. So MPI libraries work that make progress in calls alone.
/// Not with partitions.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_sends_rendezvous_in_calls(builder: *mut Builder, above: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_sends(builder, SendCompletion::RendezvousInCalls { above: Bytes(above) }) }
}

/// # Safety
/// As [`with`].
unsafe fn set_sends(builder: *mut Builder, send_completion: SendCompletion) -> c_int {
    // SAFETY: by this function's own contract.
    unsafe {
        describe(builder, |builder| {
            builder.send_completion = send_completion;
            Ok(0)
        })
    }
}

/// Messages that stay within a node take `latency` picoseconds + 8 * bytes / `bits_per_second`, without contention. The
/// library itself carries them: the simulator never sees them. Without this call they take 100 ns and 20 GB/s from a
/// rank to itself, 300 ns and 10 GB/s to another rank of the node.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_same_node_link(
    builder: *mut Builder,
    latency: u64,
    bits_per_second: u64,
) -> c_int {
    let change = |builder: &mut Builder| {
        let link = Link::new(Picos(latency), bits_per_second);
        let link = link.map_err(|error| Failure::new(VEF_ERROR_ARGUMENT, error))?;
        builder.same_node = SameNode::Inside(link.into());
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { describe(builder, change) }
}

/// As `vef_builder_same_node_link`, with times of their own for a rank's messages to itself, and for those to another rank of the node.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_same_node_memory(
    builder: *mut Builder,
    itself_latency: u64,
    itself_bits_per_second: u64,
    shared_latency: u64,
    shared_bits_per_second: u64,
) -> c_int {
    let change = |builder: &mut Builder| {
        let link = |latency, bits| {
            let link = Link::new(Picos(latency), bits);
            link.map_err(|error| Failure::new(VEF_ERROR_ARGUMENT, error))
        };
        let itself = link(itself_latency, itself_bits_per_second)?;
        let shared = link(shared_latency, shared_bits_per_second)?;
        builder.same_node = SameNode::Inside(Memory { itself, shared });
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { describe(builder, change) }
}

/// The simulator receives messages that stay within a node like all others.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_same_node_network(builder: *mut Builder) -> c_int {
    let change = |builder: &mut Builder| {
        builder.same_node = SameNode::ViaNetwork;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { describe(builder, change) }
}

/// Keeps the time of each rank by state, for `vef_replay_times` and `vef_engine_times`.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_keep_times(builder: *mut Builder) -> c_int {
    let change = |builder: &mut Builder| {
        builder.keep_times = true;
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe { describe(builder, change) }
}

/// Writes how many end nodes the placements of all jobs need, one more than the largest node of any rank, to `nodes`: the least size
/// of the simulator's network.
///
/// # Safety
/// `builder` is null or usable; `nodes` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_nodes_needed(builder: *mut Builder, nodes: *mut u64) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            border::present(nodes, "nodes")?;
            border::write(nodes, builder.jobs.iter().map(Job::nodes_needed).max().unwrap_or(0));
            Ok(0)
        })
    }
}

/// Which algorithm plays which collective: a table that comes with the library (`default`, `openmpi`, `mpich`, `nccl`),
/// else the path of a TOML file (`docs/collectives.md`).
///
/// # Safety
/// `builder` is null or usable; `table` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_algorithms(builder: *mut Builder, table: *const c_char) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            builder.algorithms = table_of(border::path(table, "table")?)?;
            Ok(0)
        })
    }
}

/// Longest decision table.
const MOST_TABLE: u64 = 16 << 20;

/// The decision table of that name, or in that file.
pub(crate) fn table_of(path: &std::path::Path) -> Result<Table, Failure> {
    if let Some(table) = path.to_str().and_then(Table::builtin) {
        return Ok(table);
    }
    let refused = |error: &dyn std::fmt::Display| {
        Failure::new(VEF_ERROR_ALGORITHMS, format_args!("{}: {error}", path.display()))
    };
    let text = border::read_text(path, MOST_TABLE).map_err(|error| {
        refused(&format_args!("neither default, openmpi, mpich, nccl nor a file: {error}"))
    })?;
    Table::from_toml(&text).map_err(|error| refused(&error))
}

/// Starts all jobs and writes the replay to `replay`; the caller owns it and frees it with `vef_replay_free`. The
/// builder can then only be freed; the replay does not need it.
///
/// A builder that has failed before fails here with the same code and text, so that the results of the calls in between need not
/// be checked one by one.
///
/// # Safety
/// `builder` is null or usable; `replay` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_build(builder: *mut Builder, replay: *mut *mut Instance) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            border::present(replay, "replay")?;
            let built = builder.build(replay::Builder::build)?;
            border::write(replay, Instance::new(built).into_handle());
            Ok(0)
        })
    }
}

/// As `vef_builder_build`, for a simulator with an event queue: writes an engine to `engine`, whose ranks
/// `vef_engine_begin` starts. The caller frees it with `vef_engine_free`.
///
/// # Safety
/// `builder` is null or usable; `engine` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_engine(builder: *mut Builder, engine: *mut *mut Core) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            border::present(engine, "engine")?;
            let built = builder.build(replay::Builder::engine)?;
            border::write(engine, Core::new(built, builder.keep_times).into_handle());
            Ok(0)
        })
    }
}

/// As `vef_builder_engine`, for a simulator that runs in parallel: writes `parts` engines to `engines`, each of which has the ranks
/// on its own nodes and may be used by a thread of its own. Node n is in partition `part_of[n]`; nodes from `nodes` on are in partition 0.
///
/// # Safety
/// `builder` is null or usable; `part_of` is null or has `nodes` elements; `engines` is null or has room for `parts`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_partitions(
    builder: *mut Builder,
    part_of: *const u32,
    nodes: usize,
    engines: *mut *mut Core,
    parts: u32,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            border::present(engines, "engines")?;
            let part_of = border::array(part_of, nodes, "part_of")?;
            let part_of = |node: u32| part_of.get(node as usize).copied().unwrap_or(0);
            let built = builder.build(|builder| builder.partitions(parts, part_of))?;
            for (at, engine) in built.into_iter().enumerate() {
                border::write(engines.add(at), Core::new(engine, builder.keep_times).into_handle());
            }
            Ok(0)
        })
    }
}

/// The error of the last failed call on this builder, in one line; "" if no call failed. The text is valid until the next
/// call on it.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_error(builder: *mut Builder) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { border::error(builder) }
}
