//! `vef_builder`: collects jobs and options until they become a replay.

use crate::border::{self, Failure, Handle, Head, with};
use crate::engine::Core;
use crate::instance::Instance;
use crate::status::*;
use placement::Placement;
use replay::{Bytes, Job, Link, OpCodes, Picos, Replay, SameNode, SendCompletion, Table};
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
    fn job(&mut self, job: u32) -> Result<&mut Job, Failure> {
        let jobs = self.jobs.len();
        let found = self.jobs.get_mut(job as usize);
        found.ok_or_else(|| {
            Failure::new(VEF_ERROR_ARGUMENT, format_args!("there is no job {job}: {jobs} were added"))
        })
    }

    /// Replaces a job by what `change` makes of it.
    fn change(&mut self, job: u32, change: impl FnOnce(Job) -> Job) -> Result<c_int, Failure> {
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
            .algorithms(std::mem::take(&mut self.algorithms));
        for job in self.jobs.drain(..) {
            builder = builder.job(job);
        }
        let built = build(builder).map_err(|error| {
            let status = match &error {
                replay::BuildError::Placement { .. } => VEF_ERROR_PLACEMENT,
                replay::BuildError::NoJobs => VEF_ERROR_STATE,
                replay::BuildError::Factor { .. }
                | replay::BuildError::NoBandwidth
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
unsafe fn describe(
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
    let builder = Builder {
        head: Head::new::<Builder>(),
        jobs: Vec::new(),
        send_completion: SendCompletion::default(),
        same_node: SameNode::default(),
        algorithms: Table::default(),
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

/// Number of ranks of a job, for which `vef_builder_nodes` needs nodes.
///
/// # Safety
/// `builder` is null or usable; `ranks` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_ranks(builder: *mut Builder, job: u32, ranks: *mut u32) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            border::present(ranks, "ranks")?;
            border::write(ranks, builder.job(job)?.tasks());
            Ok(0)
        })
    }
}

/// Places a job: rank r is on end node `nodes[r]`. The array is copied. It needs `count` at least the job's ranks.
///
/// # Safety
/// `builder` is null or usable; `nodes` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_nodes(
    builder: *mut Builder,
    job: u32,
    nodes: *const u32,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let nodes = border::array(nodes, count, "nodes")?.to_vec();
            builder.change(job, |job| job.nodes(nodes))
        })
    }
}

/// Places a job by a file: `.toml` or `.json` as `vef place` writes them, else one node number or name a line.
///
/// # Safety
/// `builder` is null or usable; `file` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_placement(
    builder: *mut Builder,
    job: u32,
    file: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let placement = Placement::read(border::path(file, "file")?);
            let placement = placement.map_err(|error| Failure::new(VEF_ERROR_PLACEMENT, error))?;
            builder.change(job, |job| job.nodes(placement.nodes_of_ranks()))
        })
    }
}

/// Writes the nodes on which a job's ranks ran when the trace was captured to `nodes`, by rank, `room` of them at most: hosts are numbered
/// from 0 in the order of their first ranks. Returns the number of ranks, or 0 if the trace does not record it (text does not). With a `room`
/// of 0 `nodes` may be null.
///
/// # Safety
/// `builder` is null or usable; `nodes` is null or has room for `room` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_captured_nodes(
    builder: *mut Builder,
    job: u32,
    nodes: *mut u32,
    room: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let captured = builder.job(job)?.captured_nodes();
            let captured =
                captured.map_err(|error| Failure::new(VEF_ERROR_TRACE, error))?.unwrap_or_default();
            if room > 0 {
                border::present(nodes, "nodes")?;
            }
            for (rank, &node) in captured.iter().take(room).enumerate() {
                border::write(nodes.add(rank), node);
            }
            Ok(c_int::try_from(captured.len()).unwrap_or(c_int::MAX))
        })
    }
}

/// Which codes stand for which collective operations in a job's text trace: the path of a table, one code and name per line
/// (`docs/formats.md`). Without this call they are the default codes. A container has its own and takes none.
///
/// # Safety
/// `builder` is null or usable; `table` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_op_codes(
    builder: *mut Builder,
    job: u32,
    table: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let codes = OpCodes::open(border::path(table, "table")?);
            let codes = codes.map_err(|error| Failure::new(VEF_ERROR_TRACE, error))?;
            let set = builder.job(job)?.set_op_codes(codes);
            set.map_err(|error| Failure::new(VEF_ERROR_ARGUMENT, error)).map(|()| 0)
        })
    }
}

/// When a job's ranks start, in picoseconds; 0 without this call.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_start(builder: *mut Builder, job: u32, start: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { describe(builder, |builder| builder.change(job, |job| job.start(Picos(start)))) }
}

/// Leaves out the time before the end of each rank's `MPI_Init`, if the trace records it and its first records
/// include it: `vef mix --keep-init` and earlier versions made such containers. Without effect otherwise.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_skip_start_up(builder: *mut Builder, job: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        describe(builder, |builder| {
            let skipped = builder.job(job)?.from_launch(false);
            skipped.map_err(|error| Failure::new(VEF_ERROR_TRACE, error)).map(|()| 0)
        })
    }
}

/// The factor by which a job's computing times are multiplied: a number from 0, 1 without this call.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_time_factor(builder: *mut Builder, job: u32, factor: f64) -> c_int {
    let change = |builder: &mut Builder| {
        if !(0.0..f64::INFINITY).contains(&factor) {
            let text = format!("the time factor {factor} is not a number from 0");
            return Err(Failure::new(VEF_ERROR_ARGUMENT, text));
        }
        builder.change(job, |job| job.time_factor(factor))
    };
    // SAFETY: the caller's promise.
    unsafe { describe(builder, change) }
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

/// Sends of more than `above` bytes are complete for their senders when they are delivered, others when they are
/// taken.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_sends_rendezvous(builder: *mut Builder, above: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { set_sends(builder, SendCompletion::Rendezvous { above: Bytes(above) }) }
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
            let path = border::path(table, "table")?;
            builder.algorithms = match path.to_str().and_then(Table::builtin) {
                Some(table) => table,
                None => read_table(path)?,
            };
            Ok(0)
        })
    }
}

fn read_table(path: &std::path::Path) -> Result<Table, Failure> {
    let refused = |error: &dyn std::fmt::Display| {
        Failure::new(VEF_ERROR_ALGORITHMS, format_args!("{}: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
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
            border::write(engine, Core::new(built).into_handle());
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
                border::write(engines.add(at), Core::new(engine).into_handle());
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
