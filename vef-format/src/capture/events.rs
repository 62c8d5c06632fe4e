//! Reads the events of one rank in order: merges the threads' records by the start of the calls.

use super::encode::{can_be_shape, kind, makes_request};
use super::error::CaptureError;
use super::event::{
    Action, CallSlot, Collective, Completions, Detail, Event, Io, Neighbourhood, PostReceive, RequestId,
    Send, Transfer,
};
use super::file::{Chunk, Function, RankFile};
use super::forms::{Class, Decoder, Fault, Form as _, Lists, Room};
use super::layout::{CHUNK_HEADER, State};
use super::word::{self, Code};
use crate::error::Place;
use crate::units::Nanos;
use crate::varint::Source;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How the events of a rank end. Known once `next` has returned `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `MPI_Finalize` was called and the file was closed.
    Finished,
    /// The program was killed, or ended without `MPI_Finalize`.
    Cut {
        /// Calls that were incompletely recorded and are lost. Calls that had not returned are not known at all.
        torn: u32,
    },
    /// Recording stopped before the program ended.
    Stopped,
    /// It did not begin: the program was killed in `MPI_Init`.
    Unbegun,
}

/// Takes the events of a rank, one by one. A closure is one, too.
pub trait Consumer<E> {
    /// Takes the next event; an error ends the reading.
    fn take(&mut self, event: &Event<'_>) -> Result<(), E>;
}

impl<E, F: FnMut(&Event<'_>) -> Result<(), E>> Consumer<E> for F {
    #[inline(always)]
    fn take(&mut self, event: &Event<'_>) -> Result<(), E> {
        self(event)
    }
}

/// The events in one rank's file of our own layout.
#[derive(Debug)]
pub(super) struct FileEvents {
    file: RankFile,
    threads: Vec<Thread>,
    /// Start and thread of each thread's next record, except of the thread that is being read.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    lists: Lists,
    /// With several threads: definitions that have not been delivered.
    definitions: Option<Definitions>,
    torn: u32,
}

/// Position in one thread's records.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// Number of chunks begun, and the bytes of the latest: header and records.
    begun: usize,
    pub(super) chunk: Vec<u8>,
    pub(super) next: Next,
    pub(super) shapes: Shapes,
}

/// State in front of a thread's next record.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Next {
    thread: u16,
    /// Its index in the chunk.
    pub(super) at: usize,
    /// End of the previous record, in ticks.
    pub(super) base: u64,
    /// Number of requests that the thread has started.
    requests: u64,
    /// Number of requests that ended in runs.
    ended: u64,
    /// Number of records read.
    records: u64,
}

/// A record without its action.
#[derive(Clone, Copy, Debug)]
struct Head {
    form: Form,
    start: u64,
    end: u64,
    /// Index of the action.
    at: usize,
}

/// The form of an action.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Kind and fields.
    Kind(u8),
    /// A word.
    Word(Code),
}

/// The shapes of a thread, by number: the event that defined each, with the times and the request of the latest call.
#[derive(Debug, Default)]
pub(super) struct Shapes(Vec<Option<Event<'static>>>);

impl Shapes {
    #[inline(always)]
    fn get(&mut self, number: u64) -> Result<&mut Event<'static>, Fault> {
        let known = usize::try_from(number).ok().and_then(|number| self.0.get_mut(number));
        known.and_then(Option::as_mut).ok_or(Fault::Invalid("shape that was not defined", number))
    }

    /// The place of a shape that is being defined.
    fn slot(&mut self, number: u64) -> Result<&mut Option<Event<'static>>, Fault> {
        if number >= word::SHAPES.into() {
            return Err(Fault::Invalid("number of a shape", number));
        }
        let number = number as usize;
        if self.0.len() <= number {
            self.0.resize_with(number + 1, || None);
        }
        Ok(&mut self.0[number])
    }
}

/// Definitions of communicators, datatypes, windows and files, the next one last.
///
/// With several threads, a call may use a definition of another thread whose record begins later. The reader delivers such
/// a definition early and skips its record later.
#[derive(Debug, Default)]
struct Definitions([Vec<Definition>; 4]);

/// Number, thread, and bytes of the record.
type Definition = (u32, u16, Vec<u8>);

impl FileEvents {
    pub(super) fn new(file: RankFile) -> Result<Self, CaptureError> {
        let mut events = Self {
            threads: begin(&file),
            order: BinaryHeap::new(),
            lists: Lists::default(),
            definitions: None,
            torn: 0,
            file,
        };
        if events.threads.len() > 1 {
            events.definitions = Some(events.find_definitions()?);
            events.threads = begin(&events.file);
            events.torn = 0;
        }
        Ok(events)
    }

    /// The functions of the call table, by slot.
    pub(super) fn functions(&self) -> &[Function] {
        &self.file.calls
    }

    pub(super) fn span(&self) -> (Nanos, Nanos) {
        let (begin, closed) = self.file.span();
        match self.file.header.state {
            State::Finished | State::Stopped => (begin, closed),
            // No time of closing was written: the end of the last record that was read.
            State::Running => (begin, closed.max(self.last())),
        }
    }

    /// The end of the last record that was read; 0 without any.
    fn last(&self) -> Nanos {
        let read = self.threads.iter().map(|thread| self.file.clock.nanos(thread.next.base)).max();
        Nanos(read.unwrap_or(0))
    }

    /// Whether several threads wrote records.
    pub(super) fn has_many_threads(&self) -> bool {
        self.threads.len() > 1
    }

    pub(super) fn only_phase(&self) -> Option<&str> {
        self.file.header.info.only_phase.as_deref()
    }

    pub(super) fn ending(&self) -> Ending {
        match self.file.header.state {
            State::Finished => Ending::Finished,
            State::Stopped => Ending::Stopped,
            State::Running => Ending::Cut { torn: self.torn },
        }
    }

    /// Passes all events to `take`, by start, until it returns an error. Call once.
    #[inline]
    pub(super) fn each<E: From<CaptureError>>(&mut self, mut consumer: impl Consumer<E>) -> Result<(), E> {
        (0..self.threads.len()).try_for_each(|index| self.enqueue(index))?;
        while let Some(Reverse((_, index))) = self.order.pop() {
            let Self { file, lists, threads, definitions, .. } = self;
            let until = match self.order.peek() {
                None => u64::MAX,
                // Of calls that start together, that of the lower thread is the first.
                Some(&Reverse((start, other))) => start.saturating_sub(u64::from(other < index)),
            };
            let Thread { chunk, next, shapes, .. } = &mut threads[index];
            // A local copy need not be stored after every record.
            let mut here = *next;
            let ended = loop {
                let mut slot = None;
                let event = match here.decode(file, chunk, shapes, lists, &mut slot, until) {
                    Ok(Some(event)) => event,
                    Ok(None) => break Ok(()),
                    Err(fault) => break Err(fault),
                };
                if let Some(definitions) = definitions {
                    let needs = Needs::of(&event.action);
                    definitions
                        .deliver(&needs, file, event, &mut |event: &Event<'_>| consumer.take(event))?;
                    if needs.defines.is_some() {
                        continue;
                    }
                }
                consumer.take(event)?;
            };
            *next = here;
            ended.map_err(|fault| self.located(index, &fault))?;
            self.enqueue(index)?;
        }
        // The file says which thread recorded what, but not which one stopped the recording without an event.
        let stopped = self.file.header.stop_reason.as_deref().map(|reason| {
            let end = self.file.span().1.max(self.last());
            Event { start: end, end, thread: 0, call: CallSlot::NONE, action: Action::Stopped { reason } }
        });
        stopped.map_or(Ok(()), |event| consumer.take(&event))
    }

    /// Enqueues the start of thread `index`'s next record, if it has one.
    fn enqueue(&mut self, index: usize) -> Result<(), CaptureError> {
        if self.has_next(index)? {
            let thread = &self.threads[index];
            let head = thread.next.parse(&thread.chunk).map_err(|fault| self.located(index, &fault))?;
            self.order.push(Reverse((head.start, index)));
        }
        Ok(())
    }

    /// Finds all definitions, reading the whole file once.
    fn find_definitions(&mut self) -> Result<Definitions, CaptureError> {
        let mut found = Definitions::default();
        for index in 0..self.threads.len() {
            while self.has_next(index)? {
                let Self { file, lists, threads, .. } = self;
                let Thread { chunk, next, shapes, .. } = &mut threads[index];
                let begin = next.at;
                let mut slot = None;
                let decoded = next.decode(file, chunk, shapes, lists, &mut slot, u64::MAX);
                let defines = decoded.map(|event| Needs::of(&event?.action).defines);
                if let Some((class, id)) = defines.map_err(|fault| self.located(index, &fault))? {
                    let thread = &self.threads[index];
                    let bytes = thread.chunk[begin..thread.next.at].to_vec();
                    found.0[class as usize].push((id, thread.next.thread, bytes));
                }
            }
        }
        for list in &mut found.0 {
            list.sort_by_key(|&(id, ..)| Reverse(id));
        }
        Ok(found)
    }

    /// Whether thread `index` has another record; advances to its chunk.
    #[inline]
    fn has_next(&mut self, index: usize) -> Result<bool, CaptureError> {
        let Some(thread) = self.threads.get(index) else { return Ok(false) };
        if thread.is_at_record() {
            return Ok(true);
        }
        self.has_next_in_another_chunk(index)
    }

    /// [`FileEvents::has_next`] at the end of a chunk.
    #[cold]
    fn has_next_in_another_chunk(&mut self, index: usize) -> Result<bool, CaptureError> {
        let thread = &mut self.threads[index];
        let chunks = &self.file.threads[usize::from(thread.next.thread)].list;
        loop {
            let rest = thread.chunk.get(thread.next.at..).unwrap_or_default();
            let present = thread.begun.checked_sub(1).and_then(|present| chunks.get(present));
            if !rest.is_empty() && present.is_some_and(Chunk::is_sealed) {
                let fault = Fault::Invalid("record before the end of its chunk", 0);
                return Err(self.located(index, &fault));
            }
            if self.file.header.state == State::Running {
                // An incomplete record has non-zero bytes behind a kind that is still zero.
                self.torn += u32::from(rest.iter().take(TORN_WINDOW).any(|&byte| byte != 0));
            }
            let Some(chunk) = chunks.get(thread.begun) else {
                thread.next.at = thread.chunk.len();
                return Ok(false);
            };
            chunk.read(&self.file, &mut thread.chunk)?;
            thread.begun += 1;
            (thread.next.at, thread.next.base) = (CHUNK_HEADER, chunk.header.base);
            if chunk.header.requests != thread.next.requests {
                let fault = Fault::Invalid("count of requests in the head of a chunk", chunk.header.requests);
                return Err(self.located(index, &fault));
            }
            if thread.is_at_record() {
                return Ok(true);
            }
        }
    }

    /// The error for `fault` in the next record of thread `index`.
    #[cold]
    fn located(&self, index: usize, fault: &Fault) -> CaptureError {
        let (file, thread) = (&self.file, &self.threads[index]);
        let what = fault.to_string();
        let of =
            if file.threads.len() > 1 { format!(" (thread {})", thread.next.thread) } else { String::new() };
        let chunks = &file.threads[usize::from(thread.next.thread)].list;
        let chunk = thread.begun.checked_sub(1).and_then(|present| chunks.get(present));
        let at = chunk.map_or(0, |chunk| chunk.start - CHUNK_HEADER) + thread.next.at;
        let place = Place::record(&file.path, thread.next.records, at as u64);
        CaptureError::Damaged { place, what: format!("{what}{of}") }
    }
}

/// Number of bytes behind the last record that may belong to an incomplete one.
const TORN_WINDOW: usize = 64;

impl Thread {
    /// Before the first record of the thread with this number.
    pub(super) fn before(number: u16) -> Self {
        Self { next: Next { thread: number, ..Next::default() }, ..Self::default() }
    }

    /// Whether a record begins where the previous one ended.
    #[inline(always)]
    fn is_at_record(&self) -> bool {
        self.chunk.get(self.next.at).is_some_and(|&kind| kind != 0)
    }
}

impl Next {
    /// Decodes the record that begins here in `chunk`, and advances unless there is a fault. Returns
    /// `None` at the end of the chunk, and if the record starts after `until`.
    #[inline(always)]
    pub(super) fn decode<'a>(
        &mut self,
        file: &RankFile,
        chunk: &'a [u8],
        shapes: &'a mut Shapes,
        lists: &'a mut Lists,
        slot: &'a mut Option<Event<'a>>,
        until: u64,
    ) -> Result<Option<&'a Event<'a>>, Fault> {
        if chunk.get(self.at).is_none_or(|&kind| kind == 0) {
            return Ok(None);
        }
        let head = self.parse(chunk)?;
        if head.start > until {
            return Ok(None);
        }
        let next = RequestId { thread: self.thread, number: self.requests };
        let nanos = |ticks| Nanos(file.clock.nanos(ticks));
        let (start, end) = (nanos(head.start), nanos(head.end));
        let (call, action) = match head.form {
            Form::Word(Code::Shape(shape)) => {
                let event = shapes.get(shape.into())?;
                let makes = repeat(event, (start, end), next);
                self.pass(head.at, head.end, makes);
                return Ok(Some(event));
            }
            Form::Word(Code::Run { completer, count, after }) => {
                let run = Completions::before(next, count, after)?;
                self.end_requests(count)?;
                self.pass(head.at, head.end, false);
                (file.completer(completer), Action::Complete(run))
            }
            // Sends of different lengths have no shape.
            Form::Kind(kind @ kind::SEND..=kind::LAST_SEND) => {
                let mut from = Decoder::new(Source::new(chunk, head.at), next, Room::default());
                let call = call_slot(from.source.get()?, file)?;
                let send = Send::get(&mut from, (kind - kind::SEND).into(), "send")?;
                self.pass(from.source.position(), head.end, send.request.is_some());
                (call, Action::Send(send))
            }
            Form::Kind(kind) => {
                // A copy, so that `self` can be in registers.
                let mut copy = *self;
                let record = (Source::new(chunk, head.at), kind, (start, end), head.end);
                let event = copy.decode_any(record, file, shapes, lists, slot)?;
                *self = copy;
                return Ok(Some(event));
            }
        };
        Ok(Some(slot.insert(Event { start, end, thread: self.thread, call, action })))
    }

    /// [`Next::decode`] of the less frequent kinds, from the function on.
    #[inline(never)]
    fn decode_any<'a>(
        &mut self,
        (mut source, kind, (start, end), end_tick): (Source<'a>, u8, (Nanos, Nanos), u64),
        file: &RankFile,
        shapes: &'a mut Shapes,
        lists: &'a mut Lists,
        slot: &'a mut Option<Event<'a>>,
    ) -> Result<&'a Event<'a>, Fault> {
        let next = RequestId { thread: self.thread, number: self.requests };
        let call = source.get()?;
        if kind == kind::SHAPE {
            // A shape includes the function.
            let event = shapes.get(source.get()?)?;
            let makes = repeat(event, (start, end), next);
            self.pass(source.position(), end_tick, makes);
            return Ok(event);
        }
        let call = call_slot(call, file)?;
        let thread = next.thread;
        if kind == kind::DEFINE {
            let shape = shapes.slot(source.get()?)?;
            // Without room: a shape has neither texts nor lists.
            let mut from = Decoder::new(source, next, Room::default());
            let action = Action::get_whole(&mut from, "kind of record")?;
            if !can_be_shape(&action) {
                return Err(Fault::Invalid("kind of a shape", action.flags()));
            }
            self.pass(from.source.position(), end_tick, makes_request(&action).is_some());
            return Ok(shape.insert(Event { start, end, thread, call, action }));
        }
        let mut from = Decoder::new(source, next, lists.into());
        let action = Action::get(&mut from, kind.into(), "kind of record")?;
        if let Action::Complete(Completions::Run { count, .. }) = action {
            self.end_requests(count)?;
        }
        self.pass(from.source.position(), end_tick, makes_request(&action).is_some());
        Ok(slot.insert(Event { start, end, thread, call, action }))
    }

    /// Decodes times, function and form of the record that begins here.
    #[inline(always)]
    fn parse(&self, chunk: &[u8]) -> Result<Head, Fault> {
        let rest = chunk.get(self.at..).ok_or(Fault::Ended)?;
        let (form, gap, duration, at);
        match rest.first_chunk().map(|raw| u64::from_le_bytes(*raw)) {
            Some(word) if word as u8 & word::MARK != 0 => {
                let head;
                (head, gap, duration) = word::parse(word);
                (form, at) = (Form::Word(head.code()), self.at + word::WORD);
            }
            _ => {
                let kind = rest.first().copied().filter(|kind| kind & word::MARK == 0);
                let mut source = Source::new(chunk, self.at + 1);
                [gap, duration] = source.fields::<2, 0>()?;
                (form, at) = (Form::Kind(kind.ok_or(Fault::Ended)?), source.position());
            }
        }
        let start = self.base.checked_add(gap);
        match start.and_then(|start| Some((start, start.checked_add(duration)?))) {
            Some((start, end)) => Ok(Head { form, start, end, at }),
            None => Err(Fault::Invalid("time", gap.max(duration))),
        }
    }

    /// Advances past a call that returned at `end` to the record at `after`; `makes`: the call starts a request.
    #[inline(always)]
    fn pass(&mut self, after: usize, end: u64, makes: bool) {
        self.requests += u64::from(makes);
        self.at = after;
        self.base = end;
        self.records += 1;
    }

    /// Counts requests that end in a run. Each ends once: this bounds the work that few bytes can cause.
    #[inline(always)]
    fn end_requests(&mut self, count: u64) -> Result<(), Fault> {
        let ended = self.ended.saturating_add(count);
        if ended > self.requests {
            return Err(Fault::Invalid("number of completed requests", ended));
        }
        self.ended = ended;
        Ok(())
    }
}

/// The function in a record: slot in the call table plus one.
#[inline(always)]
fn call_slot(code: u64, file: &RankFile) -> Result<CallSlot, Fault> {
    match code.checked_sub(1) {
        None => Ok(CallSlot::NONE),
        Some(slot) if slot < file.calls.len() as u64 => Ok(CallSlot(slot as u16)),
        Some(slot) => Err(Fault::Invalid("slot of the call table", slot)),
    }
}

/// Makes `event`, an earlier call of its shape, the next call of the thread. Returns whether it starts a request.
#[inline(always)]
fn repeat(event: &mut Event<'static>, times: (Nanos, Nanos), next: RequestId) -> bool {
    (event.start, event.end) = times;
    match &mut event.action {
        Action::Send(Send { request: Some(request), .. })
        | Action::PostReceive(PostReceive { request, .. })
        | Action::Collective(Collective { request: Some(request), .. })
        | Action::Neighbourhood(Neighbourhood { request: Some(request), .. })
        | Action::Other {
            detail:
                Detail::Transfer(Transfer { request: Some(request), .. })
                | Detail::Io(Io { request: Some(request), .. }),
            ..
        } => {
            *request = next;
            true
        }
        _ => false,
    }
}

impl Definitions {
    /// Passes the definitions that `event`, which has `needs`, must come after to `take`, with the times of the event.
    #[cold]
    fn deliver<E>(
        &mut self,
        needs: &Needs,
        file: &RankFile,
        event: &Event<'_>,
        take: &mut dyn FnMut(&Event<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let &Event { start, end, .. } = event;
        while let Some((thread, bytes)) = self.next_up_to(needs) {
            let (mut next, mut shapes, mut lists) =
                (Next { thread, ..Next::default() }, Shapes::default(), Lists::default());
            // It was decoded before, so there is no fault.
            if let Ok(Some(event)) = next.decode(file, &bytes, &mut shapes, &mut lists, &mut None, u64::MAX) {
                let event = Event { start, end, ..event.clone() };
                // A window has a communicator, whose record may begin later as well.
                self.deliver(&Needs::of(&event.action), file, &event, take)?;
                take(&event)?;
            }
        }
        Ok(())
    }

    /// Takes the next definition if an action with `needs` must come after it.
    fn next_up_to(&mut self, needs: &Needs) -> Option<(u16, Vec<u8>)> {
        let mut take = |(class, (list, needed)): (usize, (&mut Vec<Definition>, Option<u32>))| {
            let needed = needed?;
            // A window or a file is made by a call, which must not come before earlier calls of its thread: of two made at the same time by two
            // threads, the one with the lower number may have begun later.
            let is_call = [Class::Window as usize, Class::File as usize].contains(&class);
            let at = match is_call {
                true => list.binary_search_by_key(&Reverse(needed), |&(id, ..)| Reverse(id)).ok()?,
                false => list.len().checked_sub(1).filter(|&last| list[last].0 <= needed)?,
            };
            let (_, thread, bytes) = list.remove(at);
            Some((thread, bytes))
        };
        self.0.iter_mut().zip(needs.highest).enumerate().find_map(&mut take)
    }
}

/// The objects that an action refers to.
struct Needs {
    /// The highest number of each [`Class`].
    highest: [Option<u32>; 4],
    /// The object that it defines.
    defines: Option<(Class, u32)>,
}

impl Needs {
    fn of(action: &Action<'_>) -> Self {
        let mut highest = [None; 4];
        action.refers(&mut |class, number| {
            let known = &mut highest[class as usize];
            *known = (*known).max(Some(number));
        });
        let defines = match action {
            Action::Communicator(comm) => Some((Class::Communicator, comm.id.0)),
            Action::Datatype(datatype) => Some((Class::Datatype, datatype.id.0)),
            Action::Other { detail: Detail::Window { id, .. }, .. } => Some((Class::Window, id.0)),
            Action::Other { detail: Detail::FileOpen { id, .. } | Detail::FileOpenAt { id, .. }, .. } => {
                Some((Class::File, id.0))
            }
            _ => None,
        };
        Self { highest, defines }
    }
}

/// All threads, before their first records.
fn begin(file: &RankFile) -> Vec<Thread> {
    let threads = file.threads.iter().enumerate().filter(|(_, chunks)| !chunks.list.is_empty());
    threads.map(|(number, _)| Thread::before(number as u16)).collect()
}
