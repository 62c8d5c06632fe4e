//! Writes one rank's file from events: for generators, tests, and conversions. (The interposer writes the same
//! layout straight into memory; it shares the encoding, not this writer.)

use super::encode::{self, Author, Times, makes_request};
use super::error::CaptureError;
use super::event::{Action, Completion, Event, RequestId};
use super::layout::{
    CALL_ENTRY, CALL_NAME, CALL_SLOTS, CALLS_AT, CHUNK_HEADER, CHUNK_SIZE, ChunkHeader, ClockPair, EXTENSION,
    HEADER_SIZE, RankInfo, State, field, header,
};
use crate::ids::Rank;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file of `rank` in the capture `dir`.
pub fn rank_path(dir: &Path, rank: Rank) -> PathBuf {
    dir.join(format!("{rank}.{EXTENSION}"))
}

/// Writes the events of one rank. Times are nanoseconds; the clock of the file is `CLOCK_MONOTONIC` itself.
#[derive(Debug)]
pub struct RankWriter {
    path: PathBuf,
    file: File,
    threads: Vec<Option<Buffer>>,
    /// Units claimed so far.
    units: u64,
    calls: HashMap<String, u32>,
    names: Vec<(String, u64)>,
    events: u64,
    ending: State,
}

/// A thread's chunk under construction.
#[derive(Debug)]
struct Buffer {
    header: ChunkHeader,
    offset: u64,
    bytes: Vec<u8>,
    at: usize,
    /// End of the thread's previous record, ns.
    base: u64,
    requests: u64,
}

impl RankWriter {
    /// Begins `DIR/<rank>.vefc`; the directory is made when missing.
    pub fn create(dir: &Path, info: &RankInfo) -> Result<Self, CaptureError> {
        std::fs::create_dir_all(dir).map_err(|e| CaptureError::io(dir, e))?;
        let path = rank_path(dir, info.rank);
        let mut file = File::create(&path).map_err(|e| CaptureError::io(&path, e))?;
        let mut start = vec![0; HEADER_SIZE];
        start[..CALLS_AT].copy_from_slice(&header(info, ClockPair { tick: 1, nanos: 1 }));
        file.write_all(&start).map_err(|e| CaptureError::io(&path, e))?;
        Ok(Self {
            path,
            file,
            threads: Vec::new(),
            units: 0,
            calls: HashMap::new(),
            names: Vec::new(),
            events: 0,
            ending: State::Running,
        })
    }

    /// Appends `event`. Within a thread, events must not begin before the previous one's end; a request made
    /// must have the next number of its thread, a request completed must have been made.
    pub fn event(&mut self, event: &Event<'_>) -> Result<(), CaptureError> {
        self.check(event)?;
        let slot = match event.action {
            Action::Other { name, .. } => self.call_slot(name)?,
            _ => 0,
        };
        let index = usize::from(event.thread);
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, || None);
        }
        let mut buffer = match self.threads[index].take() {
            Some(buffer) => buffer,
            None => self.new_chunk(event.thread, None, event.start.0, 1)?,
        };
        loop {
            let times = Times { gap: event.start.0 - buffer.base, duration: event.end.0 - event.start.0 };
            let author = Author { thread: event.thread, requests: buffer.requests };
            match encode::record(&mut buffer.bytes, buffer.at, times, author, &event.action, slot) {
                Some(end) => {
                    buffer.at = end;
                    break;
                }
                // A fresh chunk that is too short calls for a longer one.
                None => {
                    let fresh = buffer.at == CHUNK_HEADER;
                    let span = if fresh { 2 * buffer.header.span } else { 1 };
                    buffer = self.new_chunk(event.thread, Some(buffer), event.start.0, span)?;
                }
            }
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

    /// Sets how often the function `name` was called.
    pub fn calls(&mut self, name: &str, count: u64) -> Result<(), CaptureError> {
        let slot = self.call_slot(name)?;
        self.names[slot as usize].1 = count;
        Ok(())
    }

    /// Writes what is left. Without a `Finalize` (or `Stopped`) event, the file reads as that of a killed process.
    pub fn finish(mut self) -> Result<(), CaptureError> {
        for buffer in std::mem::take(&mut self.threads).into_iter().flatten() {
            self.flush(buffer)?;
        }
        let length = HEADER_SIZE as u64 + self.units * CHUNK_SIZE as u64;
        self.file.set_len(length).map_err(|e| CaptureError::io(&self.path, e))?;
        for (slot, (name, count)) in std::mem::take(&mut self.names).iter().enumerate() {
            let at = (CALLS_AT + slot * CALL_ENTRY) as u64;
            self.put(at, &count.to_le_bytes())?;
            self.put(at + 8, name.as_bytes())?;
        }
        self.put(field::LENGTH as u64, &length.to_le_bytes())?;
        self.put(field::STATE as u64, &(self.ending as u32).to_le_bytes())
    }

    fn check(&self, event: &Event<'_>) -> Result<(), CaptureError> {
        let wrong = |what: String| Err(CaptureError::Event { number: self.events, what });
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

    fn call_slot(&mut self, name: &str) -> Result<u32, CaptureError> {
        if let Some(&slot) = self.calls.get(name) {
            return Ok(slot);
        }
        if name.is_empty() || name.len() > CALL_NAME || self.names.len() == CALL_SLOTS || name.contains('\0')
        {
            return Err(CaptureError::Event {
                number: self.events,
                what: format!("no room for the function {name:?}"),
            });
        }
        let slot = self.names.len() as u32;
        self.names.push((name.to_owned(), 0));
        self.calls.insert(name.to_owned(), slot);
        Ok(slot)
    }

    /// Ends `previous` and begins the next chunk of its thread.
    fn new_chunk(
        &mut self,
        thread: u16,
        previous: Option<Buffer>,
        start: u64,
        span: u16,
    ) -> Result<Buffer, CaptureError> {
        let (sequence, base, requests) = match &previous {
            Some(buffer) => (buffer.header.sequence + 1, buffer.base, buffer.requests),
            None => (0, start, 0),
        };
        if let Some(buffer) = previous {
            self.flush(buffer)?;
        }
        let header =
            ChunkHeader { thread, span, sequence, used: 0, requests, base, clock: ClockPair::default() };
        let offset = HEADER_SIZE as u64 + self.units * CHUNK_SIZE as u64;
        self.units += u64::from(span);
        let bytes = vec![0; CHUNK_SIZE * usize::from(span)];
        Ok(Buffer { header, offset, bytes, at: CHUNK_HEADER, base, requests })
    }

    fn flush(&mut self, mut buffer: Buffer) -> Result<(), CaptureError> {
        buffer.header.used = buffer.at as u32;
        buffer.bytes[..CHUNK_HEADER].copy_from_slice(&buffer.header.to_bytes());
        self.put(buffer.offset, &buffer.bytes[..buffer.at])
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), CaptureError> {
        self.file
            .seek(SeekFrom::Start(at))
            .and_then(|_| self.file.write_all(bytes))
            .map_err(|e| CaptureError::io(&self.path, e))
    }
}
