//! The events of one rank in order: the threads' records merged by the time at which the calls began.

mod quick;

use super::Taker;
use super::decode::{self, Context, Fault, Lists, Shapes};
use super::encode::{kind, makes_request};
use super::error::CaptureError;
use super::event::{Action, Completions, DatatypeId, Detail, Event, Io, Origin, Transfer};
use super::file::{Chunk, Function, RankFile, damaged};
use super::layout::{CHUNK_HEADER, State, checksum};
use super::varint::Source;
use super::word::{self, Code};
use crate::error::Place;
use crate::ids::CommId;
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
    next: Next,
    shapes: Shapes,
}

/// What is known of a thread's next record before it is read.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    /// Its offset in the file.
    at: usize,
    /// End of the record before, ticks.
    base: u64,
    /// How many requests the thread has made.
    requests: u64,
    /// How many of them ended in runs.
    ended: u64,
    /// How many records were read.
    records: u64,
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

/// Definitions of communicators, datatypes, windows and files (number, index of the thread, record), next one last.
///
/// With several threads, a call may use what another thread defines in a record that begins later; the
/// reader delivers such a definition in time, and passes over the record when it comes to it.
#[derive(Debug, Default)]
struct Definitions([Vec<(u32, usize, Head)>; 4]);

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
        self.file.span()
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

    /// Gives `taker` all events; ends early with its first error.
    #[inline]
    pub(super) fn each<T: Taker>(&mut self, taker: &mut T) -> Result<(), T::Error> {
        match self.threads.len() {
            0 | 1 => self.each_of_one::<T, true>(taker),
            _ => self.each_of_many(taker),
        }
    }

    /// [`FileEvents::each`] where at most one thread wrote; `QUICK` is false where tests compare.
    #[inline]
    pub(super) fn each_of_one<T: Taker, const QUICK: bool>(&mut self, taker: &mut T) -> Result<(), T::Error> {
        loop {
            if QUICK {
                self.each_quick(taker)?;
            }
            let Some(head) = self.head(0)? else { return Ok(()) };
            let Self { file, lists, threads, .. } = self;
            let Thread { number, next, shapes, .. } = &mut threads[0];
            let requests = next.requests;
            let step = |event: &Event<'_>, step| {
                next.pass(head.end, step)?;
                Ok(taker.take(event))
            };
            match decode(file, lists, *number, shapes, requests, &head, step) {
                Ok(taken) => taken?,
                Err(fault) => return Err(self.located(0, &fault).into()),
            }
        }
    }

    /// Those of the present chunk that can be read quickly, of the only thread.
    #[inline(always)]
    fn each_quick<T: Taker>(&mut self, taker: &mut T) -> Result<(), T::Error> {
        let Self { file, threads, .. } = self;
        match &mut threads[..] {
            [Thread { number, chunk: Some(chunk), next, shapes, .. }] => {
                quick::records(file, chunk.end, *number, next, shapes, taker)
            }
            _ => Ok(()),
        }
    }

    /// [`FileEvents::each`] where several threads wrote: the event that begins first comes first, or a definition that it needs.
    fn each_of_many<T: Taker>(&mut self, taker: &mut T) -> Result<(), T::Error> {
        while let Some(&Reverse((_, index))) = self.order.peek() {
            let Some(head) = self.head(index)? else {
                self.order.pop();
                continue;
            };
            let requests = self.threads[index].next.requests;
            let needs = self.read(index, requests, &head, |event| Needs::of(&event.action))?;
            if let Some((definition, owner)) = self.definitions.next_up_to(&needs) {
                // It comes early, at the time of what needs it.
                let times = Head { start: head.start, end: head.end, ..definition };
                self.read(owner, 0, &times, |event| taker.take(event))??;
                continue;
            }
            self.pass(index, &head)?;
            self.order.pop();
            self.enqueue(index)?;
            if needs.defines.is_none() {
                self.read(index, requests, &head, |event| taker.take(event))??;
            }
        }
        Ok(())
    }

    /// Gives `take` the event of thread `index` with this head.
    fn read<R>(
        &mut self,
        index: usize,
        requests: u64,
        head: &Head,
        take: impl FnOnce(&Event<'_>) -> R,
    ) -> Result<R, CaptureError> {
        let Self { file, lists, threads, .. } = self;
        let Thread { number, shapes, .. } = &mut threads[index];
        let taken = decode(file, lists, *number, shapes, requests, head, |event, _| Ok(take(event)));
        taken.map_err(|fault| self.located(index, &fault))
    }

    /// Steps behind the record of thread `index` with this head.
    fn pass(&mut self, index: usize, head: &Head) -> Result<(), CaptureError> {
        let Self { file, lists, threads, .. } = self;
        let Thread { number, next, shapes, .. } = &mut threads[index];
        let requests = next.requests;
        let passed =
            decode(file, lists, *number, shapes, requests, head, |_, step| next.pass(head.end, step));
        passed.map_err(|fault| self.located(index, &fault))
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
                let requests = self.threads[index].next.requests;
                let defined = self.read(index, requests, &head, |event| Needs::of(&event.action).defines)?;
                if let Some((class, id)) = defined {
                    self.definitions.0[class].push((id, index, head));
                }
                self.pass(index, &head)?;
            }
        }
        for list in &mut self.definitions.0 {
            list.sort_by_key(|&(id, ..)| Reverse(id));
        }
        Ok(())
    }

    /// The head of thread `index`'s next record; moves on to the chunk it is in. `None`: no more.
    #[inline(always)]
    fn head(&mut self, index: usize) -> Result<Option<Head>, CaptureError> {
        let Some(thread) = self.threads.get(index) else { return Ok(None) };
        if let Some(chunk) = &thread.chunk {
            let bytes = &self.file.map.bytes()[..chunk.end];
            if let Some(&kind) = bytes.get(thread.next.at)
                && kind != 0
            {
                return match thread.next.parse(bytes, kind) {
                    Ok(head) => Ok(Some(head)),
                    Err(fault) => Err(self.located(index, &fault)),
                };
            }
        }
        self.head_in_next_chunk(index)
    }

    /// [`FileEvents::head`] where no record begins.
    #[cold]
    fn head_in_next_chunk(&mut self, index: usize) -> Result<Option<Head>, CaptureError> {
        let thread = &mut self.threads[index];
        if let Some(chunk) = thread.chunk.take() {
            match self.file.map.bytes()[..chunk.end].get(thread.next.at..) {
                Some([_, ..]) if chunk.is_sealed() => {
                    let fault = Fault::Nonsense("record before the end of its chunk", 0);
                    return Err(self.located(index, &fault));
                }
                // A record that was being written has left its numbers behind a kind that is still zero.
                Some(rest) if self.file.header.state == State::Running => {
                    self.torn += u32::from(rest.iter().take(TORN_WINDOW).any(|&byte| byte != 0));
                }
                _ => {}
            }
        }
        match self.file.threads[usize::from(thread.number)].list.get(thread.begun) {
            None => Ok(None),
            Some(chunk) => {
                thread.begin(&self.file, chunk)?;
                self.head(index)
            }
        }
    }

    /// `fault` in the record that thread `index` is about to read.
    #[cold]
    fn located(&self, index: usize, fault: &Fault) -> CaptureError {
        located(&self.file, &self.threads[index], fault)
    }
}

/// How far behind the last record traces of a torn one are looked for.
const TORN_WINDOW: usize = 64;

impl Thread {
    /// Goes to its next chunk.
    fn begin(&mut self, file: &RankFile, chunk: &Chunk) -> Result<(), CaptureError> {
        self.next.at = chunk.start;
        self.next.base = chunk.header.base;
        if chunk.is_sealed() && chunk.header.checksum != checksum(chunk.bytes(file)) {
            let what = "these bytes are not those that were written (wrong checksum)";
            return Err(damaged(&file.path, chunk.start - CHUNK_HEADER, what.to_owned()));
        }
        if chunk.header.requests != self.next.requests {
            let what = "count of requests in the head of a chunk";
            return Err(located(file, self, &Fault::Nonsense(what, chunk.header.requests)));
        }
        self.chunk = Some(*chunk);
        self.begun += 1;
        Ok(())
    }
}

impl Next {
    /// Takes the record apart, which begins with `kind`.
    #[inline(always)]
    fn parse(&self, chunk: &[u8], kind: u8) -> Result<Head, Fault> {
        let (form, gap, duration, at);
        if kind & word::MARK == 0 {
            let mut source = Source::new(chunk, self.at + 1);
            (gap, duration) = (source.get()?, source.get()?);
            (form, at) = (Form::Kind(kind), source.position());
        } else {
            let raw = chunk[self.at..].first_chunk().ok_or(Fault::Ended)?;
            let head;
            (head, gap, duration) = word::parse(u64::from_le_bytes(*raw));
            (form, at) = (Form::Word(head.code()), self.at + word::WORD);
        }
        match self.times(gap, duration) {
            Some((start, end)) => Ok(Head { form, start, end, at, limit: chunk.len() }),
            None => Err(Fault::Nonsense("time", gap.max(duration))),
        }
    }

    /// When a call begins and ends, ticks.
    #[inline(always)]
    fn times(&self, gap: u64, duration: u64) -> Option<(u64, u64)> {
        let start = self.base.checked_add(gap)?;
        Some((start, start.checked_add(duration)?))
    }

    /// Steps behind the record of a call that was over at `end`; on a fault, stays in front of it.
    #[inline(always)]
    fn pass(&mut self, end: u64, step: Step) -> Result<(), Fault> {
        let ended = self.ended.saturating_add(step.ends);
        // Each request ends once: few bytes must not keep the reader busy for long.
        if ended > self.requests {
            return Err(Fault::Nonsense("number of completed requests", ended));
        }
        self.ended = ended;
        self.requests += u64::from(step.makes);
        self.at = step.after;
        self.base = end;
        self.records += 1;
        Ok(())
    }
}

/// What a record is to those behind it.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// Where the next one begins.
    after: usize,
    /// Whether it makes a request.
    makes: bool,
    /// How many requests end in it, if it is a run.
    ends: u64,
}

impl Definitions {
    /// Takes the next definition if an action with `needs` must not come before it.
    fn next_up_to(&mut self, needs: &Needs) -> Option<(Head, usize)> {
        let mut take = |(list, needed): (&mut Vec<(u32, usize, Head)>, Option<u32>)| {
            let next = list.pop_if(|&mut (id, ..)| needed.is_some_and(|needed| id <= needed));
            next.map(|(_, owner, head)| (head, owner))
        };
        self.0.iter_mut().zip(needs.highest).find_map(&mut take)
    }
}

/// What an action mentions, by class: communicators, datatypes, windows, files.
struct Needs {
    /// The highest number of each class.
    highest: [Option<u32>; 4],
    /// The class and number that it defines.
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

/// Every thread before its first record.
fn begin(file: &RankFile) -> Vec<Thread> {
    let threads = file.threads.iter().enumerate().filter(|(_, chunks)| !chunks.list.is_empty());
    threads.map(|(number, _)| Thread { number: number as u16, ..Thread::default() }).collect()
}

/// Gives `take` the record with `head` as an event, and what it is to those behind it. Its thread is `number`, has these
/// `shapes` and had made so many `requests` before.
fn decode<R>(
    file: &RankFile,
    lists: &mut Lists,
    number: u16,
    shapes: &mut Shapes,
    requests: u64,
    head: &Head,
    take: impl FnOnce(&Event<'_>, Step) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let mut source = Source::new(&file.map.bytes()[..head.limit], head.at);
    let times = (Nanos(file.clock.nanos(head.start)), Nanos(file.clock.nanos(head.end)));
    let context = Context { thread: number, requests, calls: file.calls.len() };
    let of = |call, action| Event { start: times.0, end: times.1, thread: number, call, action };
    let own;
    let (event, makes) = match head.form {
        Form::Word(Code::Shape(shape)) => shapes.call(shape.into(), times, &context)?,
        Form::Kind(kind::SHAPE) => {
            // In the place of a function.
            source.get()?;
            shapes.call(source.get()?, times, &context)?
        }
        Form::Word(Code::Run { completer, count, after }) => {
            own = of(file.completer(completer), decode::run(count, after, &context)?);
            (&own, false)
        }
        Form::Kind(kind) => {
            let (call, action) = decode::action(&mut source, kind, &context, lists, shapes)?;
            own = of(call, action);
            (&own, makes_request(&own.action).is_some())
        }
    };
    let ends = match event.action {
        Action::Complete(Completions::Run { count, .. }) => count,
        _ => 0,
    };
    take(event, Step { after: source.position(), makes, ends })
}

/// `fault` in the record that `thread` is about to read.
fn located(file: &RankFile, thread: &Thread, fault: &Fault) -> CaptureError {
    let what = match fault {
        Fault::Ended => "the record runs past the end of its chunk".to_owned(),
        Fault::Nonsense(what, value) => format!("impossible {what}: {value}"),
    };
    let of = if file.threads.len() > 1 { format!(" (thread {})", thread.number) } else { String::new() };
    CaptureError::Damaged {
        place: Place::record(&file.path, thread.next.records, thread.next.at as u64),
        what: format!("{what}{of}"),
    }
}
