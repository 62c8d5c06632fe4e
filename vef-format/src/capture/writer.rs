//! Writes one rank's file from events, for generators, tests and conversions. (The interposer writes the same layout into
//! mapped memory; it shares the encoding, not this writer.)

use super::encode::{self, Content, Times, can_be_shape, makes_request};
use super::error::CaptureError;
use super::event::{Action, CallSlot, Completion, Event, RequestId};
use super::file::Function;
use super::layout::{
    CALL_ENTRY, CALL_NAME, CALL_SLOTS, CHUNK_HEADER, CHUNK_SIZE, ChunkHeader, ClockPair, HEADER_SIZE,
    RankInfo, State, call_field, field, header, rank_path, seal,
};
use super::word::{COMPLETERS, Head, SHAPES};
use crate::units::Nanos;
use crate::varint::MAX_LEN;
use rustix::fs::OFlags;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Writes the events of one rank. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct RankWriter {
    path: PathBuf,
    file: File,
    calls_at: usize,
    /// Offset of the next chunk.
    end: u64,
    threads: Vec<Option<Buffer>>,
    slots: HashMap<String, CallSlot>,
    functions: Vec<Function>,
    /// By slot: index in [`COMPLETERS`].
    completers: Vec<Option<u8>>,
    events: u64,
    ending: State,
}

/// The chunk that a thread fills.
#[derive(Debug)]
struct Buffer {
    header: ChunkHeader,
    bytes: Vec<u8>,
    at: usize,
    /// End of the thread's previous record, ns.
    base: u64,
    requests: u64,
    shapes: Shapes,
}

/// The shapes of a thread: bodies of records seen, and their shape numbers.
#[derive(Debug, Default)]
struct Shapes {
    seen: HashMap<Vec<u8>, Option<u16>>,
    next: u16,
}

/// The shape of an action.
enum Shape {
    /// Defined.
    Known(u16),
    /// To be defined now.
    New(u16),
    /// None.
    None,
}

impl Shapes {
    /// An action gets a shape when it occurs the second time, if any is left.
    fn of(&mut self, next: RequestId, call: CallSlot, action: &Action<'_>) -> Shape {
        if !can_be_shape(action) {
            return Shape::None;
        }
        let mut bytes = vec![0; 16 * MAX_LEN];
        let times = Times { gap: 0, duration: 0 };
        let end = encode::record(&mut bytes, 0, times, next, call, Content::Action(action));
        bytes.truncate(end.unwrap_or(0));
        let full = self.seen.len() >= usize::from(SHAPES);
        match self.seen.get_mut(&bytes) {
            Some(Some(known)) => Shape::Known(*known),
            Some(unnumbered) => {
                *unnumbered = Some(self.next);
                self.next += 1;
                Shape::New(self.next - 1)
            }
            None => {
                if !full {
                    self.seen.insert(bytes, None);
                }
                Shape::None
            }
        }
    }
}

impl Buffer {
    fn new(thread: u16, start: u64) -> Self {
        let header = ChunkHeader { thread, base: start, ..ChunkHeader::default() };
        let (base, bytes, shapes) = (start, Vec::new(), Shapes::default());
        let mut buffer = Self { header, bytes, at: 0, base, requests: 0, shapes };
        buffer.renew(1);
        buffer
    }

    /// Begins the chunk with the header's sequence number; `span` is its length in units.
    fn renew(&mut self, span: u32) {
        self.header = ChunkHeader { span, base: self.base, requests: self.requests, ..self.header };
        self.bytes.clear();
        self.bytes.resize(span as usize * CHUNK_SIZE, 0);
        self.at = CHUNK_HEADER;
    }

    /// Appends a record; `None`: not enough room.
    fn put(&mut self, event: &Event<'_>, shape: &Shape, completer: Option<u8>) -> Option<()> {
        let times = Times { gap: event.start.0 - self.base, duration: event.end.0 - event.start.0 };
        let next = RequestId { thread: event.thread, number: self.requests };
        let content = match (shape, &event.action) {
            (&Shape::Known(shape), _) => Content::Word(Head::shape(shape)),
            (&Shape::New(shape), action) => Content::Definition(action, shape),
            (Shape::None, Action::Complete(list)) => Content::completed(*list, completer, next),
            (Shape::None, action) => Content::Action(action),
        };
        self.at = encode::record(&mut self.bytes, self.at, times, next, event.call, content)?;
        Some(())
    }
}

impl RankWriter {
    /// Creates `DIR/<rank>.vefc`, and the directory if necessary.
    pub fn create(dir: &Path, info: &RankInfo) -> Result<Self, CaptureError> {
        std::fs::create_dir_all(dir).map_err(|e| CaptureError::io(dir, e))?;
        let path = rank_path(dir, info.rank);
        let mut options = File::options();
        options.write(true).create(true).truncate(true).custom_flags(OFlags::NOFOLLOW.bits() as i32);
        let mut file = options.open(&path).map_err(|e| CaptureError::io(&path, e))?;
        let start = header(info, ClockPair { tick: 1, nanos: 1 });
        file.write_all(&start).map_err(|e| CaptureError::io(&path, e))?;
        Ok(Self {
            path,
            file,
            calls_at: start.len(),
            end: HEADER_SIZE as u64,
            threads: Vec::new(),
            slots: HashMap::new(),
            functions: Vec::new(),
            completers: Vec::new(),
            events: 0,
            ending: State::Running,
        })
    }

    /// Appends `event`. Events of a thread must not overlap. A request that the event starts must have the next number of its
    /// thread; a request that it completes must have been started.
    pub fn event(&mut self, event: &Event<'_>) -> Result<(), CaptureError> {
        self.check(event)?;
        let completer = event.call.index().and_then(|at| *self.completers.get(at)?);
        let index = usize::from(event.thread);
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, || None);
        }
        let mut buffer = match self.threads[index].take() {
            Some(buffer) => buffer,
            None => Buffer::new(event.thread, event.start.0),
        };
        let next = RequestId { thread: event.thread, number: buffer.requests };
        let shape = buffer.shapes.of(next, event.call, &event.action);
        // If a new chunk is too short, a longer one is necessary.
        while buffer.put(event, &shape, completer).is_none() {
            let span = if buffer.at == CHUNK_HEADER { 2 * buffer.header.span } else { 1 };
            if buffer.at > CHUNK_HEADER {
                self.flush(&mut buffer)?;
            }
            buffer.renew(span);
        }
        buffer.base = event.end.0;
        buffer.requests += u64::from(makes_request(&event.action).is_some());
        self.threads[index] = Some(buffer);
        match event.action {
            Action::Finalize => self.ending = State::Finished,
            Action::Stopped { .. } | Action::Abort { .. } => self.ending = State::Stopped,
            _ => {}
        }
        self.events += 1;
        Ok(())
    }

    /// The slot of the function `name` in the call table.
    pub fn function(&mut self, name: &str) -> Result<CallSlot, CaptureError> {
        if let Some(&slot) = self.slots.get(name) {
            return Ok(slot);
        }
        let slot = CallSlot(self.functions.len() as u16);
        if name.is_empty()
            || name.len() > CALL_NAME
            || usize::from(slot.0) == CALL_SLOTS
            || name.contains('\0')
        {
            return Err(CaptureError::Event {
                number: self.events,
                what: format!("no room for the function {name:?}"),
            });
        }
        self.functions.push(Function { name: name.to_owned(), calls: 0, errors: 0, time: Nanos(0) });
        self.completers.push(COMPLETERS.iter().position(|known| *known == name).map(|at| at as u8));
        self.slots.insert(name.to_owned(), slot);
        Ok(slot)
    }

    /// Sets an entry of the call table.
    pub fn calls(&mut self, function: Function) -> Result<(), CaptureError> {
        let slot = self.function(&function.name)?;
        self.functions[usize::from(slot.0)] = function;
        Ok(())
    }

    /// Completes the file. Without a `Finalize` or `Stopped` event it reads as that of a killed process.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        for mut buffer in std::mem::take(&mut self.threads).into_iter().flatten() {
            self.flush(&mut buffer)?;
        }
        for (slot, function) in std::mem::take(&mut self.functions).into_iter().enumerate() {
            let mut entry = [0; CALL_ENTRY];
            let mut set = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
            set(call_field::COUNT, &function.calls.to_le_bytes());
            set(call_field::TICKS, &function.time.0.to_le_bytes());
            set(call_field::ERRORS, &function.errors.to_le_bytes());
            set(call_field::NAME, function.name.as_bytes());
            self.put((self.calls_at + slot * CALL_ENTRY) as u64, &entry)?;
        }
        self.put(field::CALLS as u64, &(self.slots.len() as u32).to_le_bytes())?;
        let length = self.file.seek(SeekFrom::End(0)).map_err(|e| CaptureError::io(&self.path, e))?;
        let length = length.max(HEADER_SIZE as u64);
        self.file.set_len(length).map_err(|e| CaptureError::io(&self.path, e))?;
        self.put(field::LENGTH as u64, &length.to_le_bytes())?;
        self.put(field::STATE as u64, &(self.ending as u32).to_le_bytes())
    }

    fn check(&self, event: &Event<'_>) -> Result<(), CaptureError> {
        let wrong = |what: String| Err(CaptureError::Event { number: self.events, what });
        if event.call.index().is_some_and(|slot| slot >= self.functions.len()) {
            return wrong(format!("its function is number {} of {}", event.call.0, self.functions.len()));
        }
        let made = |thread: u16| match self.threads.get(usize::from(thread)) {
            Some(Some(buffer)) => (buffer.requests, buffer.base),
            _ => (0, 0),
        };
        let (requests, base) = made(event.thread);
        if event.start.0 < base || event.end < event.start {
            return wrong(format!(
                "it runs from {} to {} ns, after an event that ended at {base} ns",
                event.start.0, event.end.0
            ));
        }
        if let Some(request) = makes_request(&event.action)
            && request != (RequestId { thread: event.thread, number: requests })
        {
            return wrong(format!("its request is {request:?}, the thread's next number is {requests}"));
        }
        let known = |request: RequestId| request.number < made(request.thread).0;
        match event.action {
            Action::Complete(list) => match list.iter().find(|completion| !known(completion.request)) {
                Some(Completion { request, .. }) => wrong(format!("{request:?} was never made")),
                None => Ok(()),
            },
            Action::Forget(request) if !known(request) => wrong(format!("{request:?} was never made")),
            Action::Exchange { send, .. } if send.request.is_some() => {
                wrong("a request in an exchange".into())
            }
            _ => Ok(()),
        }
    }

    /// Writes a chunk.
    fn flush(&mut self, buffer: &mut Buffer) -> Result<(), CaptureError> {
        buffer.bytes[..CHUNK_HEADER].copy_from_slice(&buffer.header.to_bytes());
        seal(&mut buffer.bytes, buffer.at);
        let offset = self.end;
        self.end += u64::from(buffer.header.span) * CHUNK_SIZE as u64;
        buffer.header.sequence += 1;
        self.put(offset, &buffer.bytes[..buffer.at])
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), CaptureError> {
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.write_all(bytes))
            .map_err(|e| CaptureError::io(&self.path, e))
    }
}
