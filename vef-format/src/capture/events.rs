//! The events of one rank in order: the threads' records merged by the time at which the calls began.

use super::decode::{self, Context, Fault, Lists, Shapes};
use super::encode::{kind, makes_request};
use super::error::CaptureError;
use super::event::{Action, Event, Origin, RequestId};
use super::file::{Chunk, RankFile, damaged};
use super::layout::{CHUNK_HEADER, State, checksum};
use super::varint::Source;
use super::word::{self, Code};
use crate::error::Place;
use crate::units::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How the events of a rank end; known once `next` has returned `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With `MPI_Finalize`, and the file was closed.
    Finished,
    /// The program was killed, or ended without `MPI_Finalize`.
    Cut {
        /// Calls that were being written at that instant and are lost. Calls that the program was inside of are not
        /// known at all.
        torn: u32,
    },
    /// Tracing was stopped while the program went on.
    Stopped,
}

/// The events of one rank's file of our own layout.
#[derive(Debug)]
pub(super) struct FileEvents {
    file: RankFile,
    threads: Vec<Thread>,
    /// When each thread's next record begins; not used while there is one thread only.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    lists: Lists,
    /// With several threads: the definitions that were not delivered yet.
    definitions: Definitions,
    torn: u32,
}

/// Where the reading of one thread's records stands.
#[derive(Debug, Default)]
struct Thread {
    number: u16,
    /// The chunk that is read, and how many were begun.
    chunk: Option<Chunk>,
    begun: usize,
    /// Offset in the file of the next record.
    at: usize,
    /// End of the previous record, ticks.
    base: u64,
    /// How many requests it has made.
    requests: u64,
    /// How many of them ended in runs.
    ended: u64,
    /// How many records were read.
    records: u64,
    shapes: Shapes,
}

/// A record taken apart up to its action.
#[derive(Clone, Copy, Debug)]
struct Head {
    form: Form,
    start: u64,
    end: u64,
    /// Offset in the file of the action.
    at: usize,
    /// Offset behind the chunk.
    limit: usize,
}

/// How a record tells its action.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// By a kind and numbers.
    Kind(u8),
    /// In its one word.
    Word(Code),
}

/// Definitions of communicators and datatypes (number, index of the thread, record), next one last.
///
/// With several threads, a call may use what another thread defines in a record that begins later; the
/// reader delivers such a definition in time, and passes over the record when it comes to it.
#[derive(Debug, Default)]
struct Definitions {
    communicators: Vec<(u32, usize, Head)>,
    datatypes: Vec<(u32, usize, Head)>,
}

impl FileEvents {
    pub(super) fn new(file: RankFile) -> Result<Self, CaptureError> {
        let mut events = Self {
            threads: begin(&file),
            order: BinaryHeap::new(),
            lists: Lists::default(),
            definitions: Definitions::default(),
            torn: 0,
            file,
        };
        if events.threads.len() > 1 {
            events.find_definitions()?;
            events.threads = begin(&events.file);
            events.torn = 0;
            for index in 0..events.threads.len() {
                events.enqueue(index)?;
            }
        }
        Ok(events)
    }

    pub(super) fn ending(&self) -> Ending {
        match self.file.header.state {
            State::Finished => Ending::Finished,
            State::Stopped => Ending::Stopped,
            State::Running => Ending::Cut { torn: self.torn },
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<Event<'_>>, CaptureError> {
        if self.threads.len() > 1 {
            return self.next_of_many();
        }
        let Some(head) = self.head(0)? else { return Ok(None) };
        let thread = &mut self.threads[0];
        let (action, after) = decode(&self.file, &mut self.lists, thread, thread.requests, &head)?;
        thread.advance(&self.file, &head, after, &action)?;
        Ok(Some(event(&self.file, thread.number, &head, action)))
    }

    /// The event that begins first, or a definition that it needs.
    fn next_of_many(&mut self) -> Result<Option<Event<'_>>, CaptureError> {
        while let Some(&Reverse((_, index))) = self.order.peek() {
            let Some(head) = self.head(index)? else {
                self.order.pop();
                continue;
            };
            let thread = &mut self.threads[index];
            let requests = thread.requests;
            let (action, after) = decode(&self.file, &mut self.lists, thread, requests, &head)?;
            let needs = Needs::of(&action);
            if let Some((definition, owner)) = self.definitions.next_up_to(&needs) {
                let thread = &mut self.threads[owner];
                let (action, _) = decode(&self.file, &mut self.lists, thread, 0, &definition)?;
                return Ok(Some(event(&self.file, thread.number, &head, action)));
            }
            thread.advance(&self.file, &head, after, &action)?;
            self.order.pop();
            self.enqueue(index)?;
            if !needs.is_definition {
                let thread = &mut self.threads[index];
                let (action, _) = decode(&self.file, &mut self.lists, thread, requests, &head)?;
                return Ok(Some(event(&self.file, thread.number, &head, action)));
            }
        }
        Ok(None)
    }

    /// Puts the start of thread `index`'s next record, if it has one, into the order.
    fn enqueue(&mut self, index: usize) -> Result<(), CaptureError> {
        if let Some(head) = self.head(index)? {
            self.order.push(Reverse((head.start, index)));
        }
        Ok(())
    }

    /// Reads everything once to find the definitions.
    fn find_definitions(&mut self) -> Result<(), CaptureError> {
        for index in 0..self.threads.len() {
            while let Some(head) = self.head(index)? {
                let thread = &mut self.threads[index];
                let (action, after) = decode(&self.file, &mut self.lists, thread, thread.requests, &head)?;
                match &action {
                    Action::Communicator(comm) => {
                        self.definitions.communicators.push((comm.id.0, index, head))
                    }
                    Action::Datatype(datatype) => {
                        self.definitions.datatypes.push((datatype.id.0, index, head))
                    }
                    _ => {}
                }
                thread.advance(&self.file, &head, after, &action)?;
            }
        }
        self.definitions.communicators.sort_by_key(|&(id, ..)| Reverse(id));
        self.definitions.datatypes.sort_by_key(|&(id, ..)| Reverse(id));
        Ok(())
    }

    /// The head of thread `index`'s next record; moves on to the chunk it is in. `None`: no more.
    fn head(&mut self, index: usize) -> Result<Option<Head>, CaptureError> {
        let Some(thread) = self.threads.get_mut(index) else { return Ok(None) };
        let bytes = self.file.map.bytes();
        loop {
            if let Some(chunk) = &thread.chunk {
                let bytes = &bytes[..chunk.end];
                match bytes.get(thread.at) {
                    Some(&kind) if kind != 0 => {
                        return match thread.parse(bytes, kind) {
                            Ok(head) => Ok(Some(head)),
                            Err(fault) => Err(located(&self.file, thread, &fault)),
                        };
                    }
                    Some(_) if chunk.is_sealed() => {
                        let fault = Fault::Nonsense("record before the end of its chunk", 0);
                        return Err(located(&self.file, thread, &fault));
                    }
                    // A record that was being written has left its numbers behind a kind that is still zero.
                    Some(_) if self.file.header.state == State::Running => {
                        let rest = &bytes[thread.at..];
                        self.torn += u32::from(rest.iter().take(TORN_WINDOW).any(|&byte| byte != 0));
                    }
                    _ => {}
                }
                thread.chunk = None;
            }
            match self.file.threads[usize::from(thread.number)].list.get(thread.begun) {
                None => return Ok(None),
                Some(next) => thread.begin(&self.file, next)?,
            }
        }
    }
}

/// How far behind the last record traces of a torn one are looked for.
const TORN_WINDOW: usize = 64;

impl Thread {
    /// Goes to its next chunk.
    fn begin(&mut self, file: &RankFile, chunk: &Chunk) -> Result<(), CaptureError> {
        self.at = chunk.start;
        self.base = chunk.header.base;
        if chunk.is_sealed() && chunk.header.checksum != checksum(chunk.bytes(file)) {
            let what = "these bytes are not those that were written (wrong checksum)";
            return Err(damaged(&file.path, chunk.start - CHUNK_HEADER, what.to_owned()));
        }
        if chunk.header.requests != self.requests {
            let what = "count of requests in the head of a chunk";
            return Err(located(file, self, &Fault::Nonsense(what, chunk.header.requests)));
        }
        self.chunk = Some(*chunk);
        self.begun += 1;
        Ok(())
    }

    /// Takes the next record apart, which begins with `kind`.
    fn parse(&self, chunk: &[u8], kind: u8) -> Result<Head, Fault> {
        let (form, gap, duration, at);
        if kind & word::MARK == 0 {
            let mut source = Source::new(chunk, self.at + 1);
            (gap, duration) = (source.get()?, source.get()?);
            (form, at) = (Form::Kind(kind), source.position());
        } else {
            let raw = chunk[self.at..].first_chunk().ok_or(Fault::Ended)?;
            let code;
            (code, gap, duration) = word::parse(u64::from_le_bytes(*raw));
            (form, at) = (Form::Word(code), self.at + word::WORD);
        }
        let start = self.base.checked_add(gap);
        let end = start.and_then(|start| start.checked_add(duration));
        match (start, end) {
            (Some(start), Some(end)) => Ok(Head { form, start, end, at, limit: chunk.len() }),
            _ => Err(Fault::Nonsense("time", gap.max(duration))),
        }
    }

    /// Steps behind the record with `head`, whose last byte is before `after`.
    fn advance(
        &mut self,
        file: &RankFile,
        head: &Head,
        after: usize,
        action: &Action<'_>,
    ) -> Result<(), CaptureError> {
        if let Action::Complete(list) = action
            && head.is_run()
        {
            self.ended += list.len() as u64;
            // Each request ends once: few bytes must not keep the reader busy for long.
            if self.ended > self.requests {
                return Err(located(
                    file,
                    self,
                    &Fault::Nonsense("number of completed requests", self.ended),
                ));
            }
        }
        self.requests += u64::from(makes_request(action).is_some());
        self.at = after;
        self.base = head.end;
        self.records += 1;
        Ok(())
    }
}

impl Head {
    fn is_run(&self) -> bool {
        matches!(self.form, Form::Word(Code::Run { .. }) | Form::Kind(kind::COMPLETE_RUN))
    }
}

impl Definitions {
    /// Takes the next definition if an action with `needs` must not come before it.
    fn next_up_to(&mut self, needs: &Needs) -> Option<(Head, usize)> {
        let take = |list: &mut Vec<(u32, usize, Head)>, needed: Option<u32>| {
            list.pop_if(|&mut (id, ..)| needed.is_some_and(|needed| id <= needed))
                .map(|(_, owner, head)| (head, owner))
        };
        take(&mut self.communicators, needs.communicator)
            .or_else(|| take(&mut self.datatypes, needs.datatype))
    }
}

/// The highest numbers that an action mentions.
struct Needs {
    communicator: Option<u32>,
    datatype: Option<u32>,
    is_definition: bool,
}

impl Needs {
    fn of(action: &Action<'_>) -> Self {
        let (communicator, datatype) = match action {
            Action::Communicator(comm) => {
                let parent = match comm.origin {
                    Origin::Child { parent, .. } | Origin::Group { parent, .. } => parent.0,
                    _ => 0,
                };
                (Some(comm.id.0.max(parent)), None)
            }
            Action::Datatype(datatype) => (None, Some(datatype.id.0)),
            Action::CommunicatorFree(comm) | Action::Probe { comm, .. } => (Some(comm.0), None),
            Action::Send(send) => (Some(send.comm.0), Some(send.datatype.0)),
            Action::Receive(receive) => (Some(receive.comm.0), Some(receive.datatype.0)),
            Action::PostReceive(post) => (Some(post.comm.0), Some(post.datatype.0)),
            Action::Exchange { send, receive } => {
                (Some(send.comm.0.max(receive.comm.0)), Some(send.datatype.0.max(receive.datatype.0)))
            }
            Action::Collective(part) => (Some(part.comm.0), Some(part.datatype.0)),
            _ => (None, None),
        };
        let is_definition = matches!(action, Action::Communicator(_) | Action::Datatype(_));
        Self { communicator, datatype, is_definition }
    }
}

/// Every thread before its first record.
fn begin(file: &RankFile) -> Vec<Thread> {
    let threads = file.threads.iter().enumerate().filter(|(_, chunks)| !chunks.list.is_empty());
    threads.map(|(number, _)| Thread { number: number as u16, ..Thread::default() }).collect()
}

/// The action of the record with `head`, and where the next record begins.
fn decode<'a>(
    file: &'a RankFile,
    lists: &'a mut Lists,
    thread: &mut Thread,
    requests: u64,
    head: &Head,
) -> Result<(Action<'a>, usize), CaptureError> {
    let mut source = Source::new(&file.map.bytes()[..head.limit], head.at);
    let context = Context { thread: thread.number, requests, calls: &file.calls };
    let action = match head.form {
        Form::Kind(kind) => decode::action(&mut source, kind, &context, lists, &mut thread.shapes),
        Form::Word(Code::Shape(shape)) => {
            thread.shapes.get(u64::from(shape), RequestId { thread: thread.number, number: requests })
        }
        Form::Word(Code::Run { count, after }) => decode::run(count, after, &context, lists),
    };
    match action {
        Ok(action) => Ok((action, source.position())),
        Err(fault) => Err(located(file, thread, &fault)),
    }
}

fn event<'a>(file: &RankFile, thread: u16, head: &Head, action: Action<'a>) -> Event<'a> {
    Event {
        start: Nanos(file.clock.nanos(head.start)),
        end: Nanos(file.clock.nanos(head.end)),
        thread,
        action,
    }
}

/// `fault` in the record that `thread` is about to read.
fn located(file: &RankFile, thread: &Thread, fault: &Fault) -> CaptureError {
    let what = match fault {
        Fault::Ended => "the record runs past the end of its chunk".to_owned(),
        Fault::Nonsense(what, value) => format!("impossible {what}: {value}"),
    };
    let of = if file.threads.len() > 1 { format!(" (thread {})", thread.number) } else { String::new() };
    CaptureError::Damaged {
        place: Place::record(&file.path, thread.records, thread.at as u64),
        what: format!("{what}{of}"),
    }
}
