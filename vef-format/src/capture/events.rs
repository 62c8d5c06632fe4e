//! Reads the events of one rank in order: merges the threads' records by the start of the calls.

use super::decode::{self, Context, Fault, Lists};
use super::encode::{kind, makes_request};
use super::error::CaptureError;
use super::event::{
    Action, CallSlot, Completions, DatatypeId, Detail, Event, Io, Origin, RequestId, Transfer,
};
use super::file::{Chunk, Function, RankFile};
use super::layout::{CHUNK_HEADER, State};
use super::taker::{Call, Closure, Taker};
use super::varint::{Ended, Source};
use super::word::{self, Code};
use crate::error::Place;
use crate::ids::CommId;
use crate::units::Nanos;
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
}

/// The events in one rank's file of our own layout.
#[derive(Debug)]
pub(super) struct FileEvents {
    file: RankFile,
    threads: Vec<Thread>,
    /// Start and thread of each thread's next record; not used with one thread.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    lists: Lists,
    /// With several threads: definitions that have not been delivered.
    definitions: Definitions,
    torn: u32,
}

/// Position in one thread's records.
#[derive(Debug, Default)]
struct Thread {
    number: u16,
    /// Number of chunks begun, and the bytes of the latest: header and records.
    begun: usize,
    chunk: Vec<u8>,
    next: Next,
    /// The shapes, if several threads made calls.
    shapes: Shapes<Event<'static>>,
}

/// State in front of a thread's next record.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    /// Its index in the chunk.
    at: usize,
    /// End of the previous record, in ticks.
    base: u64,
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

/// The shapes of a thread, by number: as a taker compiled them, and whether a call starts a request.
#[derive(Debug)]
struct Shapes<S>(Vec<Option<(S, bool)>>);

impl<S> Default for Shapes<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S> Shapes<S> {
    #[inline(always)]
    fn get(&mut self, number: u64) -> Result<&mut (S, bool), Fault> {
        let known = usize::try_from(number).ok().and_then(|number| self.0.get_mut(number));
        known.and_then(Option::as_mut).ok_or(Fault::Nonsense("shape that was not defined", number))
    }

    /// The place of a shape that is being defined.
    fn place(&mut self, number: u64) -> Result<&mut Option<(S, bool)>, Fault> {
        if number >= word::SHAPES.into() {
            return Err(Fault::Nonsense("number of a shape", number));
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

    /// The functions of the call table, by slot.
    pub(super) fn functions(&self) -> &[Function] {
        &self.file.calls
    }

    pub(super) fn span(&self) -> (Nanos, Nanos) {
        let (begin, closed) = self.file.span();
        match self.file.header.state {
            State::Finished | State::Stopped => (begin, closed),
            // No time of closing was written: the end of the last record that was read.
            State::Running => {
                let read = self.threads.iter().map(|thread| self.file.clock.nanos(thread.next.base)).max();
                (begin, closed.max(Nanos(read.unwrap_or(0))))
            }
        }
    }

    /// Whether several threads wrote records.
    pub(super) fn has_many_threads(&self) -> bool {
        self.threads.len() > 1
    }

    pub(super) fn ending(&self) -> Ending {
        match self.file.header.state {
            State::Finished => Ending::Finished,
            State::Stopped => Ending::Stopped,
            State::Running => Ending::Cut { torn: self.torn },
        }
    }

    /// Passes all events to `taker` until it returns an error.
    #[inline]
    pub(super) fn each<T: Taker<Error: From<CaptureError>>>(
        &mut self,
        taker: &mut T,
    ) -> Result<(), T::Error> {
        match self.threads.len() {
            0 | 1 => self.each_of_one(taker),
            _ => self.each_of_many(taker),
        }
    }

    /// [`FileEvents::each`] with at most one thread.
    #[inline]
    fn each_of_one<T: Taker<Error: From<CaptureError>>>(&mut self, taker: &mut T) -> Result<(), T::Error> {
        let mut shapes = Shapes::default();
        while self.has_next(0)? {
            let Self { file, lists, threads, .. } = self;
            let taken = threads[0].each_in_chunk(file, lists, &mut shapes, taker);
            taken.map_err(|stop| self.error(0, *stop))?;
        }
        Ok(())
    }

    /// [`FileEvents::each`] with several threads: events by start, each after the definitions that it needs.
    fn each_of_many<T: Taker<Error: From<CaptureError>>>(&mut self, taker: &mut T) -> Result<(), T::Error> {
        let mut lists = Lists::default();
        while let Some(Reverse((_, index))) = self.order.pop() {
            let Self { file, lists: of_definitions, threads, definitions, .. } = self;
            let taken = threads[index].read(file, &mut lists, |event| {
                let needs = Needs::of(&event.action);
                while let Some((thread, bytes)) = definitions.next_up_to(&needs) {
                    // A definition delivered early gets the time of the event that needs it.
                    let mut early = Closure::new(|defined: &Event<'_>| {
                        let (start, end) = (event.start, event.end);
                        taker.take(&Event { start, end, ..defined.clone() })
                    });
                    let (next, shapes) = (&mut Next::default(), &mut Shapes::default());
                    read(file, of_definitions, thread, next, shapes, &bytes, &mut early)?;
                }
                match needs.defines {
                    None => taker.take(event).map_err(Stop::taker),
                    Some(_) => Ok(()),
                }
            });
            taken.map_err(|stop| match *stop {
                Stop::Taker(within) => self.error(index, *within),
                Stop::Fault(fault) => self.located(index, &fault).into(),
            })?;
            self.enqueue(index)?;
        }
        Ok(())
    }

    /// The error for `stop` at the next record of thread `index`.
    #[cold]
    fn error<E: From<CaptureError>>(&self, index: usize, stop: Stop<E>) -> E {
        match stop {
            Stop::Fault(fault) => self.located(index, &fault).into(),
            Stop::Taker(error) => error,
        }
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
    fn find_definitions(&mut self) -> Result<(), CaptureError> {
        for index in 0..self.threads.len() {
            while self.has_next(index)? {
                let Self { file, lists, threads, .. } = self;
                let thread = &mut threads[index];
                let begin = thread.next.at;
                let mut defines = None;
                let read = thread.read(file, lists, |event| {
                    defines = Needs::of(&event.action).defines;
                    Ok::<_, CaptureError>(())
                });
                read.map_err(|stop| self.error(index, *stop))?;
                if let Some((class, id)) = defines {
                    let thread = &self.threads[index];
                    let bytes = thread.chunk[begin..thread.next.at].to_vec();
                    self.definitions.0[class].push((id, thread.number, bytes));
                }
            }
        }
        for list in &mut self.definitions.0 {
            list.sort_by_key(|&(id, ..)| Reverse(id));
        }
        Ok(())
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
        let chunks = &self.file.threads[usize::from(thread.number)].list;
        loop {
            let rest = thread.chunk.get(thread.next.at..).unwrap_or_default();
            let present = thread.begun.checked_sub(1).and_then(|present| chunks.get(present));
            if !rest.is_empty() && present.is_some_and(Chunk::is_sealed) {
                let fault = Fault::Nonsense("record before the end of its chunk", 0);
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
                let fault =
                    Fault::Nonsense("count of requests in the head of a chunk", chunk.header.requests);
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
        let what = match fault {
            Fault::Ended => "the record runs past the end of its chunk".to_owned(),
            Fault::Nonsense(what, value) => format!("impossible {what}: {value}"),
        };
        let of = if file.threads.len() > 1 { format!(" (thread {})", thread.number) } else { String::new() };
        let chunks = &file.threads[usize::from(thread.number)].list;
        let chunk = thread.begun.checked_sub(1).and_then(|present| chunks.get(present));
        let at = chunk.map_or(0, |chunk| chunk.start - CHUNK_HEADER) + thread.next.at;
        let place = Place::record(&file.path, thread.next.records, at as u64);
        CaptureError::Damaged { place, what: format!("{what}{of}") }
    }
}

/// Number of bytes behind the last record that may belong to an incomplete one.
const TORN_WINDOW: usize = 64;

impl Thread {
    /// Whether a record begins where the previous one ended.
    #[inline(always)]
    fn is_at_record(&self) -> bool {
        self.chunk.get(self.next.at).is_some_and(|&kind| kind != 0)
    }

    /// Passes the records up to the end of the chunk to `taker`.
    #[inline]
    fn each_in_chunk<T: Taker>(
        &mut self,
        file: &RankFile,
        lists: &mut Lists,
        shapes: &mut Shapes<T::Shape>,
        taker: &mut T,
    ) -> Result<(), Box<Stop<T::Error>>> {
        let Self { number, chunk, next, .. } = self;
        // A local copy need not be stored after every record.
        let mut here = *next;
        let mut taken = Ok(());
        while taken.is_ok() && chunk.get(here.at).is_some_and(|&kind| kind != 0) {
            taken = read(file, lists, *number, &mut here, shapes, chunk, taker);
        }
        *next = here;
        taken
    }

    /// Passes the next record to `take`.
    fn read<E>(
        &mut self,
        file: &RankFile,
        lists: &mut Lists,
        take: impl FnMut(&Event<'_>) -> Result<(), E>,
    ) -> Result<(), Box<Stop<E>>> {
        let Self { number, chunk, next, shapes, .. } = self;
        read(file, lists, *number, next, shapes, chunk, &mut Closure::new(take))
    }
}

/// Why reading stops. It is boxed, because it is large, and returned for each record.
enum Stop<E> {
    Fault(Fault),
    Taker(E),
}

impl<E> Stop<E> {
    #[cold]
    fn taker(error: E) -> Box<Self> {
        Box::new(Self::Taker(error))
    }
}

impl<E> From<Fault> for Box<Stop<E>> {
    #[cold]
    fn from(fault: Fault) -> Self {
        Box::new(Stop::Fault(fault))
    }
}

impl<E> From<Ended> for Box<Stop<E>> {
    #[cold]
    fn from(ended: Ended) -> Self {
        Fault::from(ended).into()
    }
}

impl Next {
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
            None => Err(Fault::Nonsense("time", gap.max(duration))),
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
            return Err(Fault::Nonsense("number of completed requests", ended));
        }
        self.ended = ended;
        Ok(())
    }
}

/// Decodes the record at `next` in the chunk of thread `number`, and passes it to `taker`. Advances, unless there is a fault.
#[inline(always)]
fn read<T: Taker>(
    file: &RankFile,
    lists: &mut Lists,
    number: u16,
    next: &mut Next,
    shapes: &mut Shapes<T::Shape>,
    chunk: &[u8],
    taker: &mut T,
) -> Result<(), Box<Stop<T::Error>>> {
    let head = next.parse(chunk)?;
    let context = Context { thread: number, requests: next.requests, calls: file.calls.len() };
    let request = RequestId { thread: number, number: next.requests };
    let call = Call { clock: &file.clock, ticks: (head.start, head.end), next: request };
    match head.form {
        Form::Word(Code::Shape(shape)) => {
            let (shape, makes) = shapes.get(shape.into())?;
            next.pass(head.at, head.end, *makes);
            taker.call(shape, call).map_err(Stop::taker)
        }
        Form::Word(Code::Run { completer, count, after }) => {
            let event = call.event(file.completer(completer), decode::run(count, after, &context)?);
            next.end_requests(count)?;
            next.pass(head.at, head.end, false);
            taker.take(&event).map_err(Stop::taker)
        }
        // Sends of different lengths have no shape.
        Form::Kind(kind @ kind::SEND..kind::RECEIVE) => {
            let mut source = Source::new(chunk, head.at);
            let (slot, action) = decode::send(&mut source, kind, &context)?;
            let event = call.event(slot, action);
            next.pass(source.position(), head.end, makes_request(&event.action).is_some());
            taker.take(&event).map_err(Stop::taker)
        }
        Form::Kind(kind) => {
            let mut source = Source::new(chunk, head.at);
            let slot = source.get()?;
            if kind == kind::SHAPE {
                // A shape includes the function.
                let (shape, makes) = shapes.get(source.get()?)?;
                next.pass(source.position(), head.end, *makes);
                return taker.call(shape, call).map_err(Stop::taker);
            }
            let slot = decode::call_slot(slot, context.calls)?;
            // A copy, so that `next` itself can be in registers.
            let mut copy = *next;
            let taken =
                read_any(source, kind, (lists, context), &mut copy, shapes, (call, slot, head.end), taker);
            *next = copy;
            taken
        }
    }
}

/// [`read`] of the less frequent kinds, from the fields behind the function on.
#[inline(never)]
fn read_any<'a, T: Taker>(
    mut source: Source<'a>,
    mut kind: u8,
    (lists, context): (&'a mut Lists, Context),
    next: &mut Next,
    shapes: &mut Shapes<T::Shape>,
    (call, slot, end): (Call<'_>, CallSlot, u64),
    taker: &mut T,
) -> Result<(), Box<Stop<T::Error>>> {
    let mut shape = None;
    if kind == kind::DEFINE {
        shape = Some(source.get()?);
        let code = source.get()?;
        kind = u8::try_from(code).map_err(|_| Fault::Nonsense("kind of record", code))?;
    }
    let event = call.event(slot, decode::action(&mut source, kind, &context, lists)?);
    let place = match shape {
        None => None,
        Some(shape) => {
            let action = decode::as_shape(&event.action);
            let action = action.ok_or(Fault::Nonsense("kind of a shape", kind.into()))?;
            Some((shapes.place(shape)?, call.event(slot, action)))
        }
    };
    if let Action::Complete(Completions::Run { count, .. }) = event.action {
        next.end_requests(count)?;
    }
    let makes = makes_request(&event.action).is_some();
    next.pass(source.position(), end, makes);
    taker.take(&event).map_err(Stop::taker)?;
    if let Some((place, event)) = place {
        *place = Some((taker.compile(event), makes));
    }
    Ok(())
}

impl Definitions {
    /// Takes the next definition if an action with `needs` must come after it.
    fn next_up_to(&mut self, needs: &Needs) -> Option<(u16, Vec<u8>)> {
        let mut take = |(list, needed): (&mut Vec<Definition>, Option<u32>)| {
            let next = list.pop_if(|&mut (id, ..)| needed.is_some_and(|needed| id <= needed));
            next.map(|(_, thread, bytes)| (thread, bytes))
        };
        self.0.iter_mut().zip(needs.highest).find_map(&mut take)
    }
}

/// What an action refers to, by class: communicators, datatypes, windows, files.
struct Needs {
    /// The highest number of each class.
    highest: [Option<u32>; 4],
    /// Class and number of the definition, if it is one.
    defines: Option<(usize, u32)>,
}

impl Needs {
    fn of(action: &Action<'_>) -> Self {
        let message = |comm: CommId, datatype: DatatypeId| [Some(comm.0), Some(datatype.0), None, None];
        let mut defines = None;
        let highest = match action {
            Action::Communicator(comm) => {
                let parent = match comm.origin {
                    Origin::Child { parent, .. } | Origin::Group { parent, .. } => parent.0,
                    _ => 0,
                };
                defines = Some((0, comm.id.0));
                [Some(comm.id.0.max(parent)), None, None, None]
            }
            Action::Datatype(datatype) => {
                defines = Some((1, datatype.id.0));
                [None, Some(datatype.id.0), None, None]
            }
            Action::CommunicatorFree(comm) | Action::Probe { comm, .. } => [Some(comm.0), None, None, None],
            Action::Send(send) => message(send.comm, send.datatype),
            Action::Receive(receive) => message(receive.comm, receive.datatype),
            Action::PostReceive(post) => message(post.comm, post.datatype),
            Action::Exchange { send, receive } => {
                message(send.comm.max(receive.comm), send.datatype.max(receive.datatype))
            }
            Action::Collective(part) => {
                message(part.comm, part.datatype.max(part.recv_datatype.unwrap_or_default()))
            }
            Action::Other { detail, .. } => match *detail {
                Detail::Window { id, comm, .. } => {
                    defines = Some((2, id.0));
                    [Some(comm.0), None, Some(id.0), None]
                }
                Detail::FileOpen { id, comm, .. } => {
                    defines = Some((3, id.0));
                    [Some(comm.0), None, None, Some(id.0)]
                }
                Detail::WindowFree(window)
                | Detail::Sync { window, .. }
                | Detail::Transfer(Transfer { window, .. }) => [None, None, Some(window.0), None],
                Detail::FileClose(file) | Detail::FileView { file, .. } | Detail::Io(Io { file, .. }) => {
                    [None, None, None, Some(file.0)]
                }
                Detail::None => [None; 4],
            },
            _ => [None; 4],
        };
        Self { highest, defines }
    }
}

/// All threads, before their first records.
fn begin(file: &RankFile) -> Vec<Thread> {
    let threads = file.threads.iter().enumerate().filter(|(_, chunks)| !chunks.list.is_empty());
    threads.map(|(number, _)| Thread { number: number as u16, ..Thread::default() }).collect()
}
