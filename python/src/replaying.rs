//! The replay engine: traces that a network in Python carries.

use crate::columns::{Column, Numbers};
use crate::errors;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use replay::{Job, Kind, LiveId, Picos, Replay as Engine, ReplayError};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, TryLockError};
use vef_cli::embedded::options;

/// A trace and how it is replayed: path, nodes by rank, start in picoseconds, factors of computing times, whether it begins at the launch.
type JobSettings = (PathBuf, Option<Vec<u32>>, u64, Vec<f64>, bool);

/// A message that is ready.
#[pyclass(frozen, get_all, eq, module = "vef._vef")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    id: u64,
    src: u32,
    dst: u32,
    src_node: u32,
    dst_node: u32,
    bytes: u64,
    job: u32,
    ready_ps: u64,
    start_ps: u64,
    /// Index into `vef.KINDS`.
    kind: u8,
}

impl From<replay::Message> for Message {
    fn from(message: replay::Message) -> Self {
        Self {
            id: message.id.to_raw(),
            src: message.src.0,
            dst: message.dst.0,
            src_node: message.src_node,
            dst_node: message.dst_node,
            bytes: message.bytes.0,
            job: message.job,
            ready_ps: message.ready.0,
            start_ps: message.start.0,
            kind: message.kind.index() as u8,
        }
    }
}

#[pymethods]
impl Message {
    #[classattr]
    #[pyo3(name = "__match_args__")]
    const MATCH_ARGS: (&'static str, &'static str, &'static str, &'static str) =
        ("id", "src", "dst", "bytes");

    fn __repr__(&self) -> String {
        let Self { id, src, dst, bytes, ready_ps, .. } = self;
        format!("Message(id={id}, src={src}, dst={dst}, bytes={bytes}, ready_ps={ready_ps})")
    }
}

/// Messages that are ready, as columns.
#[pyclass(frozen, module = "vef._vef")]
#[derive(Debug)]
pub(crate) struct Batch {
    #[pyo3(get)]
    id: Py<Column>,
    #[pyo3(get)]
    src: Py<Column>,
    #[pyo3(get)]
    dst: Py<Column>,
    #[pyo3(get)]
    src_node: Py<Column>,
    #[pyo3(get)]
    dst_node: Py<Column>,
    #[pyo3(get)]
    bytes: Py<Column>,
    #[pyo3(get)]
    job: Py<Column>,
    #[pyo3(get)]
    ready_ps: Py<Column>,
    #[pyo3(get)]
    start_ps: Py<Column>,
    #[pyo3(get)]
    kind: Py<Column>,
    length: usize,
}

impl Batch {
    fn new(py: Python<'_>, all: &[replay::Message]) -> PyResult<Self> {
        let u32s = |of: fn(&replay::Message) -> u32| {
            Py::new(py, Column::new(Numbers::U32(all.iter().map(of).collect())))
        };
        let u64s = |of: fn(&replay::Message) -> u64| {
            Py::new(py, Column::new(Numbers::U64(all.iter().map(of).collect())))
        };
        let kinds = all.iter().map(|message| message.kind.index() as u8).collect();
        Ok(Self {
            id: u64s(|message| message.id.to_raw())?,
            src: u32s(|message| message.src.0)?,
            dst: u32s(|message| message.dst.0)?,
            src_node: u32s(|message| message.src_node)?,
            dst_node: u32s(|message| message.dst_node)?,
            bytes: u64s(|message| message.bytes.0)?,
            job: u32s(|message| message.job)?,
            ready_ps: u64s(|message| message.ready.0)?,
            start_ps: u64s(|message| message.start.0)?,
            kind: Py::new(py, Column::new(Numbers::U8(kinds)))?,
            length: all.len(),
        })
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.length
    }

    fn __repr__(&self) -> String {
        format!("Batch({} messages)", self.length)
    }
}

/// The engine. One thread at a time may call it; a call beside another is refused.
#[pyclass(frozen, module = "vef._vef")]
#[derive(Debug)]
pub(crate) struct Replay {
    /// `None`: closed.
    engine: Mutex<Option<Engine>>,
}

impl Replay {
    /// Applies `what` to the engine.
    fn with<T>(&self, what: impl FnOnce(&mut Engine) -> Result<T, ReplayError>) -> PyResult<T> {
        let misuse = |text: &str| errors::named("MisuseError", text.to_owned());
        let mut engine: MutexGuard<'_, _> = match self.engine.try_lock() {
            Ok(engine) => engine,
            Err(TryLockError::WouldBlock) => return Err(misuse("another thread is using this replay")),
            Err(TryLockError::Poisoned(_)) => return Err(misuse("this replay has failed")),
        };
        let engine = engine.as_mut().ok_or_else(|| misuse("this replay is closed"))?;
        what(engine).map_err(|error| errors::exception(&error))
    }
}

#[pymethods]
impl Replay {
    #[new]
    fn new(
        py: Python<'_>,
        jobs: Vec<JobSettings>,
        send: &str,
        same_node: &str,
        algorithms: &str,
    ) -> PyResult<Self> {
        let wrong = |name: &str, value: &str, error: String| {
            errors::named("OptionError", format!("{name}={value:?}: {error}"))
        };
        let send_completion = options::send_completion(send).map_err(|error| wrong("send", send, error))?;
        let inside = options::same_node(same_node).map_err(|error| wrong("same_node", same_node, error))?;
        let table =
            options::algorithms(algorithms).map_err(|error| wrong("algorithms", algorithms, error))?;
        let builder = Engine::builder().send_completion(send_completion).same_node(inside).algorithms(table);
        let engine = py.detach(|| {
            let mut builder = builder;
            for (path, nodes, start, factors, from_launch) in jobs {
                let mut job = Job::open(&path).map_err(|error| errors::exception(&error))?;
                job.from_launch(from_launch).map_err(|error| errors::exception(&error))?;
                if let Some(nodes) = nodes {
                    job = job.nodes(nodes);
                }
                builder = builder.job(job.start(Picos(start)).time_factors(factors));
            }
            builder.build().map_err(|error| errors::exception(&error))
        })?;
        Ok(Self { engine: Mutex::new(Some(engine)) })
    }

    fn next_ready(&self) -> PyResult<Option<u64>> {
        self.with(|engine| Ok(engine.next_ready().map(|at| at.0)))
    }

    fn pop_ready(&self, now: u64) -> PyResult<Option<Message>> {
        self.with(|engine| Ok(engine.pop_ready(Picos(now))?.map(Message::from)))
    }

    fn pop_ready_batch(&self, py: Python<'_>, now: u64, most: usize) -> PyResult<Batch> {
        let mut all = Vec::new();
        self.with(|engine| engine.pop_ready_batch(Picos(now), most, |message| all.push(message)))?;
        Batch::new(py, &all)
    }

    fn sent(&self, id: u64, at: u64) -> PyResult<()> {
        self.with(|engine| engine.sent(LiveId::from_raw(id), Picos(at)))
    }

    fn delivered(&self, id: u64, at: u64) -> PyResult<()> {
        self.with(|engine| engine.delivered(LiveId::from_raw(id), Picos(at)))
    }

    /// `ids`: a buffer of unsigned 64-bit numbers, or an iterable of integers.
    fn delivered_batch(&self, ids: &Bound<'_, PyAny>, at: u64) -> PyResult<()> {
        let ids = numbers(ids)?;
        self.with(|engine| engine.delivered_batch(ids.into_iter().map(LiveId::from_raw), Picos(at)))
    }

    /// Carries all messages by `arrivals`, a function from a batch, and the moment at which it starts, to the moments of arrival. A batch
    /// has the messages that are ready within `window` ps of the first; none may arrive within it.
    fn run(&self, py: Python<'_>, arrivals: &Bound<'_, PyAny>, window: u64) -> PyResult<()> {
        carry(self, py, arrivals, window)
    }

    #[getter]
    fn clock(&self) -> PyResult<u64> {
        self.with(|engine| Ok(engine.clock().0))
    }

    #[getter]
    fn finish(&self) -> PyResult<u64> {
        self.with(|engine| Ok(engine.finish().0))
    }

    #[getter]
    fn is_complete(&self) -> PyResult<bool> {
        self.with(|engine| Ok(engine.is_complete()))
    }

    fn stuck(&self) -> PyResult<Option<String>> {
        self.with(|engine| Ok(engine.stuck().map(|stuck| stuck.to_string())))
    }

    /// The tasks of a job.
    fn tasks(&self, job: u32) -> PyResult<u32> {
        self.with(|engine| Ok(engine.tasks(job)))
    }

    /// Messages and bytes started, messages delivered, messages and bytes within nodes, marks, collectives.
    fn counts(&self) -> PyResult<[u64; 7]> {
        self.with(|engine| {
            let (stats, total) = (engine.stats(), engine.stats().total());
            let inside = stats.inside;
            Ok([
                total.messages,
                total.bytes.0,
                stats.delivered,
                inside.messages,
                inside.bytes.0,
                stats.marks,
                stats.collectives,
            ])
        })
    }

    fn close(&self) {
        if let Ok(mut engine) = self.engine.try_lock() {
            *engine = None;
        }
    }

    /// The names of `kind`.
    #[staticmethod]
    fn kinds() -> Vec<String> {
        Kind::all().map(|kind| kind.to_string()).collect()
    }
}

/// Unsigned numbers from a buffer, or from an iterable.
fn numbers(of: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    if let Ok(buffer) = PyBuffer::<u64>::get(of) {
        return buffer.to_vec(of.py());
    }
    if let Ok(buffer) = PyBuffer::<i64>::get(of) {
        let signed = buffer.to_vec(of.py())?;
        return Ok(signed.into_iter().map(u64::try_from).collect::<Result<_, _>>()?);
    }
    of.try_iter()?.map(|number| number?.extract()).collect()
}

fn carry(replay: &Replay, py: Python<'_>, arrivals: &Bound<'_, PyAny>, window: u64) -> PyResult<()> {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    let misuse = |text: String| errors::named("MisuseError", text);
    let mut network: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let (mut batch, mut rounds) = (Vec::new(), 0u32);
    loop {
        rounds = rounds.wrapping_add(1);
        if rounds % 1024 == 0 {
            py.check_signals()?;
        }
        // All that happens up to the end of the window; what starts in it arrives later.
        batch.clear();
        let end = replay.with(|engine| {
            let arrival = network.peek().map(|&Reverse((at, _))| at);
            let first = engine.next_ready().map(|at| at.0).into_iter().chain(arrival).min();
            let Some(first) = first else { return Ok(None) };
            let end = first.saturating_add(window);
            loop {
                let arrival = network.peek().map(|&Reverse((at, _))| at);
                let ready = engine.next_ready().map(|at| at.0);
                let Some(now) = ready.into_iter().chain(arrival).min().filter(|&now| now <= end) else {
                    break;
                };
                if arrival == Some(now) {
                    while let Some(&Reverse((at, id))) = network.peek()
                        && at == now
                    {
                        network.pop();
                        engine.delivered(LiveId::from_raw(id), Picos(now))?;
                    }
                } else {
                    engine.pop_ready_batch(Picos(now), usize::MAX, |message| batch.push(message))?;
                }
            }
            Ok(Some(end))
        })?;
        let Some(end) = end else { break };
        if batch.is_empty() {
            continue;
        }
        let ended = numbers(&arrivals.call1((Batch::new(py, &batch)?,))?)?;
        if ended.len() != batch.len() {
            return Err(misuse(format!("{} arrivals for {} messages", ended.len(), batch.len())));
        }
        for (message, at) in batch.iter().zip(ended) {
            if at <= end && (window > 0 || at < message.start.0) {
                let (start, id) = (message.start.0, message.id.to_raw());
                return Err(misuse(format!(
                    "message {id:#x} starts at {start} ps and arrives at {at} ps, within the window of {window} ps: give a smaller window"
                )));
            }
            network.push(Reverse((at, message.id.to_raw())));
        }
    }
    match replay.with(|engine| Ok(engine.stuck()))? {
        Some(stuck) => Err(errors::stuck(&stuck)),
        None => Ok(()),
    }
}
