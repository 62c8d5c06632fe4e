//! What a `vef_builder` is told about one of its jobs, and what it tells.

use crate::border::{self, Failure};
use crate::builder::{Builder, describe, table_of};
use crate::status::*;
use placement::Placement;
use replay::{Computing, Job, OpCodes, Part, PartError, Picos, Rank, Raw, Ticks};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

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
            let nodes = Placement::read_nodes(border::path(file, "file")?);
            let nodes = nodes.map_err(|error| Failure::new(VEF_ERROR_PLACEMENT, error))?;
            builder.change(job, |job| job.nodes(nodes))
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

/// The job counts as over until `vef_engine_repeat` starts it: when another is over, say.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_on_call(builder: *mut Builder, job: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { describe(builder, |builder| builder.change(job, Job::on_call)) }
}

/// Leaves out the time before the end of each rank's `MPI_Init`, if the trace records it and its first records
/// include it: `vef mix --keep-init` and earlier versions made such containers. Without effect otherwise.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_skip_start_up(builder: *mut Builder, job: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { start_up(builder, job, false) }
}

/// Counts the time before the end of each rank's `MPI_Init` as run, if the trace records it; `vef mix` leaves it out of the first records.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_from_launch(builder: *mut Builder, job: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { start_up(builder, job, true) }
}

/// # Safety
/// As [`describe`].
unsafe fn start_up(builder: *mut Builder, job: u32, from_launch: bool) -> c_int {
    // SAFETY: by this function's own contract.
    unsafe {
        describe(builder, |builder| {
            let set = builder.job(job)?.from_launch(from_launch);
            set.map_err(|error| Failure::new(VEF_ERROR_TRACE, error)).map(|()| 0)
        })
    }
}

/// Computing time that each rank leaves out before its first record, in ticks of the trace's clock (`vef_builder_clock`): `ticks[r]` of
/// rank r, nothing of ranks from `count` on. More than there is leaves none. The array is copied.
///
/// # Safety
/// `builder` is null or usable; `ticks` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_skip(
    builder: *mut Builder,
    job: u32,
    ticks: *const u64,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let skipped = border::array(ticks, count, "ticks")?.iter().copied().map(Ticks).collect();
            builder.change(job, |job| job.skip(skipped))
        })
    }
}

/// The factor by which a job's computing times are multiplied: a number from 0, 1 without this call.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_time_factor(builder: *mut Builder, job: u32, factor: f64) -> c_int {
    // SAFETY: the caller's promise, and an array of one element.
    unsafe { vef_builder_time_factors(builder, job, &raw const factor, 1) }
}

/// As `vef_builder_time_factor`, by rank: `factors[r]` of rank r, the last one also of the ranks from `count` on. The array is copied.
///
/// # Safety
/// `builder` is null or usable; `factors` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_time_factors(
    builder: *mut Builder,
    job: u32,
    factors: *const f64,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let factors = border::array(factors, count, "factors")?.to_vec();
            match factors.iter().find(|factor| !(0.0..f64::INFINITY).contains(*factor)) {
                None => builder.change(job, |job| job.time_factors(factors)),
                Some(factor) => {
                    let text = format!("the time factor {factor} is not a number from 0");
                    Err(Failure::new(VEF_ERROR_ARGUMENT, text))
                }
            }
        })
    }
}

/// Returns the computing time before a record, in ticks of the trace's clock: `captured` is that of the trace, `record` the record's number
/// among those of `rank`, from 0.
pub type ComputingTime =
    Option<unsafe extern "C" fn(user: *mut c_void, rank: u32, record: u64, captured: u64) -> u64>;

/// Replaces a job's computing times by what `computing` returns, before factors are applied: to remove noise, to draw times, or for another
/// model of the machine. `user` is passed on, and must stay valid as long as the replay. It is called once for each record, those of a rank in
/// their order, by whichever thread advances the replay: by several at once with `vef_builder_partitions`. It must not call this library, nor
/// throw or leave by `longjmp`.
///
/// # Safety
/// `builder` is null or usable; `computing` does what is said above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_computing(
    builder: *mut Builder,
    job: u32,
    computing: ComputingTime,
    user: *mut c_void,
) -> c_int {
    let change = |builder: &mut Builder| {
        let call = computing.ok_or_else(|| Failure::new(VEF_ERROR_NULL, "computing is null"))?;
        builder.change(job, |job| job.computing(Box::new(Called { call, user })))
    };
    // SAFETY: the caller's promise.
    unsafe { describe(builder, change) }
}

/// Computing times from a function of the caller's.
#[derive(Clone, Copy, Debug)]
struct Called {
    call: unsafe extern "C" fn(*mut c_void, u32, u64, u64) -> u64,
    user: *mut c_void,
}

// SAFETY: `vef_builder_computing` demands a function that any thread may call with `user`.
unsafe impl Send for Called {}
// SAFETY: as above, by several threads at once.
unsafe impl Sync for Called {}

impl Computing for Called {
    fn time(&mut self, task: Rank, number: u64, record: &Raw) -> Ticks {
        // SAFETY: the promise of `vef_builder_computing`'s caller.
        Ticks(unsafe { (self.call)(self.user, task.0, number, record.time) })
    }

    fn again(&self) -> Box<dyn Computing> {
        Box::new(*self)
    }
}

/// Which algorithm plays which collective of this job, as `vef_builder_algorithms` says it for all jobs.
///
/// # Safety
/// `builder` is null or usable; `table` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_job_algorithms(
    builder: *mut Builder,
    job: u32,
    table: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let table = table_of(border::path(table, "table")?)?;
            builder.change(job, |job| job.algorithms(table))
        })
    }
}

/// Replays only a phase that the program has marked: `NAME`, or `NAME:K` for the K-th time that a rank enters it. All ranks begin with their
/// first record of it; what depends on other records does not wait, and collectives that not all members enter in it are left out. The trace is
/// read for that.
///
/// # Safety
/// `builder` is null or usable; `phase` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_phase(builder: *mut Builder, job: u32, phase: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { part(builder, job, phase, "phase", Part::phase) }
}

/// As `vef_builder_phase`, for iterations of the program's main loop, which is found in its records: `FIRST`, `FIRST-LAST` or `FIRST-`, from
/// 1.
///
/// # Safety
/// `builder` is null or usable; `iterations` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_iterations(
    builder: *mut Builder,
    job: u32,
    iterations: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { part(builder, job, iterations, "iterations", Part::iterations) }
}

/// As `vef_builder_phase`, for what was captured from `from` picoseconds on up to `to`, counted from the return of each rank's `MPI_Init`;
/// `UINT64_MAX` is the end of the run. Only containers of `vef mix` have captured times.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_captured(builder: *mut Builder, job: u32, from: u64, to: u64) -> c_int {
    let to = (to != u64::MAX).then_some(Picos(to));
    // SAFETY: the caller's promise.
    unsafe { describe(builder, |builder| select(builder, job, &Part::Captured { from: Picos(from), to })) }
}

/// Replays only this part of a job.
fn select(builder: &mut Builder, job: u32, part: &Part) -> Result<c_int, Failure> {
    let selected = builder.job(job)?.select(part);
    let selected = Arc::new(selected.map_err(|error| Failure::new(VEF_ERROR_ARGUMENT, error))?);
    builder.change(job, |job| job.part(selected))
}

/// # Safety
/// As [`describe`]; `text` is null or a string.
unsafe fn part(
    builder: *mut Builder,
    job: u32,
    text: *const c_char,
    name: &str,
    parse: impl FnOnce(&str) -> Result<Part, PartError>,
) -> c_int {
    // SAFETY: by this function's own contract, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let text = border::path(text, name)?.to_string_lossy();
            let part = parse(&text).map_err(|error| Failure::new(VEF_ERROR_ARGUMENT, error))?;
            select(builder, job, &part)
        })
    }
}

/// Writes the number of records of all ranks of a job to `records`, as its header says: `records` of `vef_stats` reaches the sum over
/// all jobs, for a progress bar.
///
/// # Safety
/// `builder` is null or usable; `records` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_records(builder: *mut Builder, job: u32, records: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { tell(builder, job, records, "records", Job::records) }
}

/// Writes how long a tick of a job's computing times lasts, in picoseconds and without factors, to `picoseconds`.
///
/// # Safety
/// `builder` is null or usable; `picoseconds` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_clock(builder: *mut Builder, job: u32, picoseconds: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { tell(builder, job, picoseconds, "picoseconds", |job| job.clock().0) }
}

/// # Safety
/// As [`describe`]; `out` is null or can be written.
unsafe fn tell(
    builder: *mut Builder,
    job: u32,
    out: *mut u64,
    name: &str,
    what: impl FnOnce(&Job) -> u64,
) -> c_int {
    // SAFETY: by this function's own contract, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            border::present(out, name)?;
            border::write(out, what(builder.job(job)?));
            Ok(0)
        })
    }
}
