//! Traces: header, origin, communicators, and records as Arrow columns.

use crate::errors;
use arrow_array::builder::{BooleanBuilder, StringDictionaryBuilder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use vef_format::container::{Reader, Streams};
use vef_format::ids::Rank;
use vef_format::operation::{OpCode, OpCodes};
use vef_format::record::{Dependency, Header, Line};
use vef_format::text;
use vef_format::trace::{Trace as Opened, TraceError};

/// A trace file. Text is read again each time; of a container the index stays in memory.
#[pyclass(frozen, module = "vef._vef")]
#[derive(Debug)]
pub(crate) struct Trace {
    path: PathBuf,
    header: Header,
    container: Option<Arc<Reader>>,
}

#[pymethods]
impl Trace {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = py.detach(|| Opened::open(&path)).map_err(|error| errors::exception(&error))?;
        let header = *opened.header();
        let container = match opened {
            Opened::Text(_) => None,
            Opened::Container(reader) => Some(Arc::new(*reader)),
        };
        Ok(Self { path, header, container })
    }

    #[getter]
    fn tasks(&self) -> u32 {
        self.header.tasks
    }

    #[getter]
    fn messages(&self) -> u64 {
        self.header.messages
    }

    #[getter]
    fn collectives(&self) -> u64 {
        self.header.collectives
    }

    #[getter]
    fn clock_ps(&self) -> u64 {
        self.header.clock.0
    }

    #[getter]
    fn is_container(&self) -> bool {
        self.container.is_some()
    }

    /// Pairs of names and values; a name may come several times.
    #[getter]
    fn origin(&self) -> Vec<(String, String)> {
        self.container.as_ref().map(|reader| reader.about().origin.clone()).unwrap_or_default()
    }

    /// Records of a task; of a container alone, whose index has the number.
    fn records_of(&self, task: u32) -> Option<u64> {
        self.container.as_ref().map(|reader| reader.records_of(Rank(task)))
    }

    /// Id and members of each communicator.
    fn communicators(&self, py: Python<'_>) -> PyResult<Vec<(u32, Vec<u32>)>> {
        py.detach(|| {
            let mut all = Vec::new();
            let add = |_, line: Line<'_>| {
                if let Line::Communicator { id, members } = line {
                    all.push((id.0, members.iter().map(|rank| rank.0).collect()));
                }
                Ok::<(), TraceError>(())
            };
            Opened::open(&self.path).and_then(|trace| trace.each(add))?;
            Ok(all)
        })
        .map_err(|error: TraceError| errors::exception(&error))
    }

    /// The records of these tasks, or of all, in batches of `rows`.
    #[pyo3(signature = (tasks, rows))]
    fn stream(&self, py: Python<'_>, tasks: Option<Vec<u32>>, rows: usize) -> PyResult<Stream> {
        let source = py
            .detach(|| Source::open(&self.path, &self.header, self.container.as_ref(), tasks))
            .map_err(|error| errors::exception(&error))?;
        let batches = Batches { source, rows: rows.max(1), schema: schema(), failed: false };
        Ok(Stream { batches: Mutex::new(Some(batches)) })
    }

    /// The records of one task, one after the other.
    fn iterate(&self, py: Python<'_>, task: u32) -> PyResult<Records> {
        let source = py
            .detach(|| Source::open(&self.path, &self.header, self.container.as_ref(), Some(vec![task])))
            .map_err(|error| errors::exception(&error))?;
        Ok(Records { source: Mutex::new(source) })
    }
}

/// A record as a tuple, in the order of the columns.
type Tuple = (
    u32,
    &'static str,
    u64,
    Option<u32>,
    u64,
    Option<u64>,
    Option<String>,
    Option<u32>,
    Option<bool>,
    &'static str,
    Option<u64>,
    u64,
);

/// An iterator over the records of a task, as tuples.
#[pyclass(frozen, module = "vef._vef")]
#[derive(Debug)]
pub(crate) struct Records {
    source: Mutex<Source>,
}

#[pymethods]
impl Records {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self) -> PyResult<Option<Tuple>> {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let row = source.next().map_err(|error| errors::exception(&error))?;
        Ok(row.map(|row| {
            let operation = row.operation.map(|code| source.operation(code));
            let Row { task, kind, id, dst, bytes, received, communicator, awaited, after, time, .. } = row;
            (task, kind, id, dst, bytes, received, operation, communicator, awaited, after.0, after.1, time)
        }))
    }
}

/// Batches of records, once: what takes Arrow takes them by `__arrow_c_stream__`.
#[pyclass(frozen, module = "vef._vef")]
#[derive(Debug)]
pub(crate) struct Stream {
    batches: Mutex<Option<Batches>>,
}

#[pymethods]
impl Stream {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore a request that it cannot satisfy.
        let _ = requested_schema;
        let taken = self.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
        let batches = taken.ok_or_else(|| {
            errors::named("MisuseError", "this stream was read; ask the trace for another".to_owned())
        })?;
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The columns of records. `python/vef/trace.py` documents them.
fn schema() -> SchemaRef {
    let word = || DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("task", DataType::UInt32, false),
        Field::new("kind", word(), false),
        Field::new("id", DataType::UInt64, false),
        Field::new("dst", DataType::UInt32, true),
        Field::new("bytes", DataType::UInt64, false),
        Field::new("received_bytes", DataType::UInt64, true),
        Field::new("operation", word(), true),
        Field::new("communicator", DataType::UInt32, true),
        Field::new("awaited", DataType::Boolean, true),
        Field::new("after", word(), false),
        Field::new("after_id", DataType::UInt64, true),
        Field::new("computing_ps", DataType::UInt64, false),
    ]))
}

/// Where records come from.
#[derive(Debug)]
struct Source {
    reading: Reading,
    tasks: Option<Vec<u32>>,
    clock: u64,
    codes: OpCodes,
}

#[derive(Debug)]
enum Reading {
    Text(Box<text::Reader>),
    /// The streams, and the number of the next task among those wanted.
    Container(Box<Streams>, usize),
}

/// A record.
struct Row {
    task: u32,
    kind: &'static str,
    id: u64,
    dst: Option<u32>,
    bytes: u64,
    received: Option<u64>,
    operation: Option<OpCode>,
    communicator: Option<u32>,
    awaited: Option<bool>,
    after: (&'static str, Option<u64>),
    time: u64,
}

impl Source {
    fn open(
        path: &Path,
        header: &Header,
        container: Option<&Arc<Reader>>,
        tasks: Option<Vec<u32>>,
    ) -> Result<Self, TraceError> {
        let (reading, codes) = match container {
            None => (Reading::Text(Box::new(text::Reader::open(path)?)), OpCodes::default()),
            Some(reader) => {
                let streams = Box::new(Streams::new(reader.clone()));
                (Reading::Container(streams, 0), reader.about().op_codes.clone())
            }
        };
        let tasks = match (&reading, tasks) {
            (Reading::Container(..), None) => Some((0..header.tasks).collect()),
            (_, tasks) => tasks,
        };
        Ok(Self { reading, tasks, clock: header.clock.0, codes })
    }

    /// The next record.
    fn next(&mut self) -> Result<Option<Row>, TraceError> {
        let Self { reading, tasks, clock, .. } = self;
        match reading {
            Reading::Text(reader) => {
                while let Some(line) = reader.next()? {
                    let wanted = |task| tasks.as_ref().is_none_or(|tasks| tasks.contains(&task));
                    if let Some(row) = row(&line, *clock)
                        && wanted(row.task)
                    {
                        return Ok(Some(row));
                    }
                }
                Ok(None)
            }
            Reading::Container(streams, number) => {
                while let Some(&task) = tasks.as_ref().and_then(|tasks| tasks.get(*number)) {
                    match streams.next(Rank(task))? {
                        Some(line) => return Ok(row(&line, *clock)),
                        None => *number += 1,
                    }
                }
                Ok(None)
            }
        }
    }

    /// The name of an operation, or its code.
    fn operation(&self, code: OpCode) -> String {
        self.codes.name(code).map_or_else(|| format!("operation {}", code.0), str::to_owned)
    }
}

/// A record as columns; `None` for a communicator.
fn row(line: &Line<'_>, clock: u64) -> Option<Row> {
    let after = match line.after() {
        Dependency::Start => ("start", None),
        Dependency::Sent(id) => ("send", Some(id.0)),
        Dependency::Received(id) => ("reception", Some(id.0)),
        Dependency::Collective(id) => ("collective", Some(id.0)),
    };
    match line {
        Line::Communicator { .. } => None,
        Line::Message(message) => Some(Row {
            task: message.src.0,
            kind: if message.is_mark() { "mark" } else { "message" },
            id: message.id.0,
            dst: Some(message.dst.0),
            bytes: message.bytes.0,
            received: None,
            operation: None,
            communicator: None,
            awaited: Some(message.awaited),
            after,
            time: message.time.0.saturating_mul(clock),
        }),
        Line::Collective(part) => Some(Row {
            task: part.task.0,
            kind: "collective",
            id: part.id.0,
            dst: None,
            bytes: part.amounts.send.0,
            received: Some(part.amounts.recv.0),
            operation: Some(part.op),
            communicator: Some(part.comm.0),
            awaited: None,
            after,
            time: part.time.0.saturating_mul(clock),
        }),
    }
}

/// Batches of records. Consumers read them without the interpreter's lock, so nothing here touches Python.
#[derive(Debug)]
struct Batches {
    source: Source,
    rows: usize,
    schema: SchemaRef,
    /// An error ends the stream.
    failed: bool,
}

impl Batches {
    fn batch(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let mut task = UInt32Builder::new();
        let mut kind = StringDictionaryBuilder::<Int8Type>::new();
        let mut id = UInt64Builder::new();
        let mut dst = UInt32Builder::new();
        let mut bytes = UInt64Builder::new();
        let mut received = UInt64Builder::new();
        let mut operation = StringDictionaryBuilder::<Int8Type>::new();
        let mut communicator = UInt32Builder::new();
        let mut awaited = BooleanBuilder::new();
        let mut after = StringDictionaryBuilder::<Int8Type>::new();
        let mut after_id = UInt64Builder::new();
        let mut computing = UInt64Builder::new();
        let mut rows = 0;
        while rows < self.rows
            && let Some(row) = self.source.next().map_err(|error| ArrowError::ExternalError(error.into()))?
        {
            rows += 1;
            task.append_value(row.task);
            kind.append(row.kind)?;
            id.append_value(row.id);
            dst.append_option(row.dst);
            bytes.append_value(row.bytes);
            received.append_option(row.received);
            match row.operation {
                Some(code) => drop(operation.append(self.source.operation(code))?),
                None => operation.append_null(),
            }
            communicator.append_option(row.communicator);
            awaited.append_option(row.awaited);
            after.append(row.after.0)?;
            after_id.append_option(row.after.1);
            computing.append_value(row.time);
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = vec![
            Arc::new(task.finish()),
            Arc::new(kind.finish()),
            Arc::new(id.finish()),
            Arc::new(dst.finish()),
            Arc::new(bytes.finish()),
            Arc::new(received.finish()),
            Arc::new(operation.finish()),
            Arc::new(communicator.finish()),
            Arc::new(awaited.finish()),
            Arc::new(after.finish()),
            Arc::new(after_id.finish()),
            Arc::new(computing.finish()),
        ];
        RecordBatch::try_new(self.schema.clone(), columns).map(Some)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let batch = self.batch();
        self.failed = batch.is_err();
        batch.transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
