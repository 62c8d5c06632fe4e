//! `text`: time-independent traces that people can read, as MinI writes them ([`vef_format::time_independent`]); one file a
//! rank, `ti_traces/ti_trace<rank>.txt`; `vef text` aggregates them.
//!
//! A line is written when its call returns, a receive's where it was posted (its sender, if anybody was welcome, is filled in
//! when it is known). Constant memory, but for what is remembered of requests and handles that are in use. With
//! `VEF_TEXT_CYCLES=1` a line `<rank> compute <cycles>` tells what passed since the previous call.
//!
//! Not written: what MinI does not know and no line could say (one-sided, files, neighbourhoods, inter-communicators,
//! matched receives, messages to `MPI_PROC_NULL`).

use super::arguments::{self, Arguments};
use super::handles::{Communicators, Type, Types};
use super::lines::{Gap, Lines};
use crate::clock;
use crate::hooks::operation;
use crate::tracer::complain;
use mpi_abi::api::Mpi;
use mpi_abi::prototypes::{Call, Category};
use mpi_abi::status::Status;
use mpi_abi::tool::{Intercepted, Place, Tool};
use std::collections::{HashMap, VecDeque};
use std::ffi::CStr;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use vef_format::operation::Operation;
use vef_format::time_independent::{COMPLETIONS, RANKS_FILE, RECEIVES, SENDS, collective_name};

/// The tool.
pub(super) struct Text {
    directory: PathBuf,
    cycles: bool,
    mpi: OnceLock<Mpi>,
    /// Receives from anybody under way.
    unknown: AtomicUsize,
    trace: Mutex<Option<Trace>>,
}

/// This rank's trace.
struct Trace {
    lines: Lines,
    path: PathBuf,
    /// In `MPI_COMM_WORLD`, with a blank.
    rank: String,
    comms: Communicators,
    types: Types,
    gaps: HashMap<usize, VecDeque<Gap>>,
    /// Persistent requests.
    templates: HashMap<usize, Template>,
    /// For the members of groups that make a communicator among themselves.
    groups: HashMap<(i32, i32, u32), u32>,
    /// Room for the counts of a vector form.
    counts: Vec<u64>,
    /// What ends the previous message's line, and what it was made of: they are mostly alike.
    tail: (Type, usize, String),
    /// The end of the previous call, ticks.
    last: u64,
}

/// What a persistent request does.
#[derive(Clone, Copy)]
enum Template {
    Message { call: &'static str, peer: Option<i32>, count: i64, datatype: Type, comm: usize },
    Collective { operation: Operation, shape: Shape, comm: usize },
}

/// What a collective's line says of amounts and datatypes.
#[derive(Clone, Copy)]
struct Shape {
    counts: Counts,
    root: Option<i32>,
    sent: Type,
    /// Where it is another one that matters too.
    received: Option<Type>,
}

#[derive(Clone, Copy)]
enum Counts {
    Same(i64),
    Spread(u64, u64, u64),
}

impl Tool for Text {
    const NAME: &'static CStr = c"text";

    fn open(place: &Place) -> Result<Self, String> {
        Ok(Self {
            directory: super::directory(&place.directory, "ti_traces", place.instance),
            cycles: std::env::var_os("VEF_TEXT_CYCLES").is_some_and(|value| value != "0"),
            mpi: OnceLock::new(),
            unknown: AtomicUsize::new(0),
            trace: Mutex::new(None),
        })
    }

    fn intercepts(&self, call: Call) -> bool {
        use Category::*;
        (matches!(
            call.category(),
            SendPersistent
                | RecvPersistent
                | Start
                | RequestFree
                | CommCreate
                | CommFree
                | TypeFree
                | SendRecvImmediate
        ) || matches!(call, Call::MPI_Init | Call::MPI_Init_thread | Call::MPI_Finalize)
            || name(call).is_some())
    }

    fn call(&self, call: &mut Intercepted<'_>) -> i32 {
        use Category::*;
        let function = call.function();
        let start = if self.cycles { clock::now() } else { 0 };
        let code = match function.category() {
            Lifecycle => return self.lifecycle(call, start),
            CommFree | TypeFree | RequestFree => return self.free(call),
            Recv | Wait | Test | SendRecv => return self.with_status(call, start),
            _ => call.pass_on(),
        };
        if code == 0
            && let Some(mpi) = self.mpi.get()
        {
            self.write(start, |trace| trace.call(self, mpi, function, call.words()));
        }
        code
    }

    fn phase(&self, begin: bool, name: &str) {
        self.write(0, |trace| {
            trace.lines.text("Phase ");
            trace.lines.text(&name.replace(['\n', '\0'], " "));
            trace.lines.text(if begin { " start." } else { " end." });
            trace.lines.end();
        });
    }

    fn close(&self) {
        let trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut trace) = trace
            && let Err(error) = trace.lines.finish()
        {
            complain(&format!("{}: the text trace is incomplete: {error}", trace.path.display()));
        }
    }
}

/// A function's name in a trace; `None`: it has no line.
fn name(call: Call) -> Option<&'static str> {
    static NAMES: OnceLock<Vec<Option<&'static str>>> = OnceLock::new();
    let find = |call: Call| {
        let plain = call.name().trim_end_matches("_c").trim_end_matches("_replace");
        let listed = COMPLETIONS.iter().chain(&SENDS).chain(&RECEIVES);
        listed.clone().find(|(mpi, _)| *mpi == plain).map(|(_, name)| *name).or_else(|| {
            let name = collective_name(operation(call)?);
            Some(match call.category() {
                Category::CollectiveImmediate | Category::VectorCollectiveImmediate => immediate(name),
                _ => name,
            })
        })
    };
    NAMES.get_or_init(|| Call::all().map(find).collect())[call as usize]
}

/// A collective's name with an `I` in front.
fn immediate(name: &'static str) -> &'static str {
    Box::leak(format!("I{name}").into_boxed_str())
}

impl Text {
    /// Writes lines, if there is a trace.
    #[inline]
    fn write(&self, start: u64, write: impl FnOnce(&mut Trace)) {
        let mut trace = self.trace.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(trace) = trace.as_mut() else { return };
        if self.cycles && start != 0 {
            trace.begin("compute");
            trace.lines.text(" ");
            trace.lines.number(start.saturating_sub(trace.last) as i64);
            trace.lines.end();
        }
        write(trace);
        if self.cycles {
            trace.last = clock::now();
        }
    }

    fn lifecycle(&self, call: &mut Intercepted<'_>, start: u64) -> i32 {
        if call.function() == Call::MPI_Finalize {
            self.write(start, |trace| {
                trace.begin("finalize");
                trace.lines.end();
            });
            return call.pass_on();
        }
        let code = call.pass_on();
        if code == 0
            && let Err(reason) = self.begin()
        {
            complain(&format!("there is no text trace: {reason}"));
        }
        code
    }

    fn begin(&self) -> Result<(), String> {
        let mpi = Mpi::loaded().map_err(|error| error.to_string())?;
        let rank = mpi.comm_rank(mpi.abi().comm_world()).map_err(|error| error.to_string())?;
        let path = self.directory.join(format!("ti_trace{rank}.txt"));
        let file = std::fs::create_dir_all(&self.directory).and_then(|()| File::create(&path));
        let file = file.map_err(|error| format!("{}: {error}", path.display()))?;
        if rank == 0 {
            // Without it nobody could tell that the last rank's file is missing.
            let ranks = mpi.comm_size(mpi.abi().comm_world()).map_err(|error| error.to_string())?;
            let path = self.directory.join(RANKS_FILE);
            std::fs::write(&path, format!("{ranks}\n"))
                .map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let mut lines = Lines::new(file);
        lines.number(i64::from(rank));
        lines.text(" init 1");
        lines.end();
        let trace = Trace {
            lines,
            path,
            rank: format!("{rank} "),
            comms: Communicators::new(),
            types: Types::new(),
            gaps: HashMap::new(),
            templates: HashMap::new(),
            groups: HashMap::new(),
            counts: Vec::new(),
            tail: (Type::default(), 0, String::new()),
            last: clock::now(),
        };
        *self.trace.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace);
        let _ = self.mpi.set(mpi);
        Ok(())
    }

    /// Forgotten before the call: the handle may come to mean another as soon as it is free.
    fn free(&self, call: &mut Intercepted<'_>) -> i32 {
        let Some(mpi) = self.mpi.get() else { return call.pass_on() };
        // SAFETY: these functions take the address of a handle first.
        let handle = unsafe { arguments::handle_at(mpi.abi(), call.words(), Some(0), 0) };
        match call.function() {
            Call::MPI_Comm_free | Call::MPI_Comm_disconnect => {}
            Call::MPI_Type_free => {
                self.write(0, |trace| trace.types.forget(handle));
                return call.pass_on();
            }
            Call::MPI_Request_free => {
                self.write(0, |trace| trace.free_request(self, handle));
                return call.pass_on();
            }
            _ => return call.pass_on(),
        }
        let mut freed = None;
        self.write(0, |trace| {
            trace.tail.1 = 0;
            freed = trace.comms.forget(handle);
        });
        let code = call.pass_on();
        if code == 0
            && let Some(comm) = freed.filter(|comm| !comm.foreign)
        {
            self.write(0, |trace| {
                trace.lines.text("Comm ");
                trace.lines.text(&comm.name);
                trace.lines.text(" free.");
                trace.lines.end();
            });
        }
        code
    }

    /// Calls whose status says who sent, where the program left that open.
    fn with_status(&self, call: &mut Intercepted<'_>, start: u64) -> i32 {
        let function = call.function();
        let a = arguments::of(function);
        let Some(mpi) = self.mpi.get() else { return call.pass_on() };
        let constants = &mpi.abi().constants;
        let completes = a.requests.is_some();
        let open = match completes {
            true => self.unknown.load(Ordering::Relaxed) > 0,
            false => arguments::int(call.words(), a.source) == constants.any_source,
        };
        let length = match a.length {
            Some(_) => usize::try_from(arguments::int(call.words(), a.length)).unwrap_or(0),
            None => 1,
        };
        // Rare: so many statuses are asked for only while a receive from anybody is under way.
        let mut statuses = Vec::new();
        let mut before = Vec::new();
        if open {
            let words = call.words();
            if completes {
                // SAFETY: the program passed that many requests.
                before.extend(
                    (0..length).map(|i| unsafe { arguments::handle_at(mpi.abi(), words, a.requests, i) }),
                );
            }
            if let Some(place) = a.status.map(usize::from)
                && [0, constants.status_ignore, constants.statuses_ignore].contains(&words[place])
            {
                statuses.resize((length.max(1) * mpi.abi().status.size).div_ceil(8), 0u64);
                words[place] = statuses.as_mut_ptr() as usize;
            }
        }
        let code = call.pass_on();
        if code != 0 {
            return code;
        }
        let words = &*call.words();
        if completes {
            // SAFETY: the call has set its flag.
            if a.flag.is_some() && unsafe { arguments::int_at(words, a.flag, 0) } == 0 {
                return code;
            }
            self.write(start, |trace| {
                trace.complete(self, mpi, function, words, &before);
                trace.begin(name(function).unwrap_or_default());
                trace.lines.end();
            });
        } else {
            self.write(start, |trace| trace.call(self, mpi, function, words));
        }
        code
    }
}

/// The sender that a status names.
///
/// # Safety
/// The status argument must be that of a call which has succeeded, with more than `index` elements, or stand for none.
unsafe fn source(mpi: &Mpi, words: &[usize], a: &Arguments, index: usize) -> Option<i32> {
    let abi = mpi.abi();
    let address = arguments::word(words, a.status);
    if [0, abi.constants.status_ignore, abi.constants.statuses_ignore].contains(&address) {
        return None;
    }
    // SAFETY: the contract.
    Some(unsafe { Status::at((address as *const u8).add(index * abi.status.size), abi) }.source())
}

impl Trace {
    /// A line's rank and name.
    #[inline]
    fn begin(&mut self, name: &str) {
        self.lines.text(&self.rank);
        self.lines.text(name);
    }

    /// The lines of a call that has succeeded.
    #[inline]
    fn call(&mut self, tool: &Text, mpi: &Mpi, function: Call, words: &[usize]) {
        use Category::*;
        let abi = mpi.abi();
        let a = arguments::of(function);
        match function.category() {
            Send | SendImmediate => {
                let datatype = self.types.get(mpi, arguments::handle(abi, words, a.datatype));
                let peer = arguments::int(words, a.dest);
                let comm = arguments::handle(abi, words, a.comm);
                self.message(
                    mpi,
                    name(function).unwrap_or_default(),
                    Some(peer),
                    a.number(words, a.count),
                    datatype,
                    comm,
                );
            }
            Recv | RecvImmediate if a.source.is_some() => self.receive(tool, mpi, function, words, a),
            SendRecv | SendRecvImmediate => self.exchange(mpi, function, words, a),
            SendPersistent | RecvPersistent => {
                let call = function.name();
                let sends = function.category() == SendPersistent;
                // As the non-blocking form: `MPI_Ssend_init` is started as an `Issend`.
                let listed = SENDS.iter().chain(&RECEIVES).find(|(mpi, _)| {
                    let stem = |name: &str| name.trim_start_matches("MPI_").to_ascii_lowercase();
                    stem(mpi) == format!("i{}", stem(call.trim_end_matches("_c").trim_end_matches("_init")))
                });
                let Some(&(_, call)) = listed else { return };
                let place = if sends { a.dest } else { a.source };
                let peer =
                    Some(arguments::int(words, place)).filter(|&peer| peer != abi.constants.any_source);
                let datatype = self.types.get(mpi, arguments::handle(abi, words, a.datatype));
                let comm = arguments::handle(abi, words, a.comm);
                let template =
                    Template::Message { call, peer, count: a.number(words, a.count), datatype, comm };
                // SAFETY: the call has set its request.
                self.templates.insert(unsafe { arguments::handle_at(abi, words, a.request, 0) }, template);
            }
            CollectivePersistent | VectorCollectivePersistent => {
                let Some(operation) = operation(function) else { return };
                let comm = arguments::handle(abi, words, a.comm);
                let shape = self.shape(mpi, operation, words, a);
                // SAFETY: the call has set its request.
                let request = unsafe { arguments::handle_at(abi, words, a.request, 0) };
                self.templates.insert(request, Template::Collective { operation, shape, comm });
            }
            Start => {
                let count = if function == Call::MPI_Startall { arguments::int(words, Some(0)) } else { 1 };
                for i in 0..usize::try_from(count).unwrap_or(0) {
                    // SAFETY: the program passed that many requests.
                    let request = unsafe { arguments::handle_at(abi, words, a.requests, i) };
                    self.start(tool, mpi, request);
                }
            }
            CommCreate => self.new_comm(mpi, function, words, a),
            Collective | CollectiveImmediate | VectorCollective | VectorCollectiveImmediate => {
                let Some(operation) = operation(function) else { return };
                let comm = arguments::handle(abi, words, a.comm);
                if self.comms.get(mpi, comm).foreign {
                    return;
                }
                let shape = self.shape(mpi, operation, words, a);
                self.collective(mpi, name(function).unwrap_or_default(), operation, shape, comm);
            }
            _ => {}
        }
    }

    /// `0 send 1 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD`; without a peer, a gap for it.
    #[inline]
    fn message(
        &mut self,
        mpi: &Mpi,
        call: &str,
        peer: Option<i32>,
        count: i64,
        datatype: Type,
        comm: usize,
    ) -> Option<Gap> {
        if peer == Some(mpi.abi().constants.proc_null) || self.comms.get(mpi, comm).foreign {
            return None;
        }
        self.begin(call);
        self.lines.text(" ");
        let gap = match peer {
            Some(peer) => {
                self.lines.number(i64::from(peer));
                None
            }
            None => Some(self.lines.gap()),
        };
        self.amount(mpi, count, datatype, comm);
        gap
    }

    /// ` 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD`.
    #[inline]
    fn amount(&mut self, mpi: &Mpi, count: i64, datatype: Type, comm: usize) {
        self.lines.text(" ");
        self.lines.number(count);
        if (self.tail.0, self.tail.1) != (datatype, comm) {
            let Type { size, code } = datatype;
            let name = &self.comms.get(mpi, comm).name;
            self.tail = (datatype, comm, format!(" (of {size} bytes) {code} on comm {name}"));
        }
        self.lines.text(&self.tail.2);
        self.lines.end();
    }

    fn receive(&mut self, tool: &Text, mpi: &Mpi, function: Call, words: &[usize], a: &Arguments) {
        let abi = mpi.abi();
        let datatype = self.types.get(mpi, arguments::handle(abi, words, a.datatype));
        let comm = arguments::handle(abi, words, a.comm);
        let asked = arguments::int(words, a.source);
        let from = match asked == abi.constants.any_source {
            false => Some(asked),
            // SAFETY: a blocking receive has filled its status.
            true if a.request.is_none() => Some(unsafe { source(mpi, words, a, 0) }.unwrap_or(-1)),
            true => None,
        };
        let gap = self.message(
            mpi,
            name(function).unwrap_or_default(),
            from,
            a.number(words, a.count),
            datatype,
            comm,
        );
        if let Some(gap) = gap {
            // SAFETY: the call has set its request.
            self.await_source(tool, unsafe { arguments::handle_at(abi, words, a.request, 0) }, gap);
        }
    }

    /// The oldest gap that awaits the source of `request`.
    fn take_gap(&mut self, request: usize) -> Option<Gap> {
        self.gaps.get_mut(&request).and_then(VecDeque::pop_front)
    }

    fn await_source(&mut self, tool: &Text, request: usize, gap: Gap) {
        self.gaps.entry(request).or_default().push_back(gap);
        tool.unknown.fetch_add(1, Ordering::Relaxed);
    }

    /// Two lines: what this rank sends, and what it gets, whose first field is its sender.
    fn exchange(&mut self, mpi: &Mpi, function: Call, words: &[usize], a: &Arguments) {
        let abi = mpi.abi();
        let call = name(function).unwrap_or_default();
        let comm = arguments::handle(abi, words, a.comm);
        let sent = self.types.get(mpi, arguments::handle(abi, words, a.datatype));
        let count = a.number(words, a.count);
        self.message(mpi, call, Some(arguments::int(words, a.dest)), count, sent, comm);
        let mut from = arguments::int(words, a.source);
        if from == abi.constants.any_source {
            // SAFETY: the call has filled its status, if it has one.
            from = unsafe { source(mpi, words, a, 0) }.unwrap_or(-1);
        }
        let own = self.comms.get(mpi, comm);
        if from < 0 || own.foreign {
            return;
        }
        let (sender, rank) = (own.world_rank(from), own.rank);
        let received = self.types.get(mpi, arguments::handle(abi, words, a.recvtype));
        self.lines.number(i64::from(sender));
        self.lines.text(" ");
        self.lines.text(call);
        self.lines.text(" ");
        self.lines.number(i64::from(rank));
        self.amount(mpi, a.number(words, a.recvcount), received, comm);
    }

    /// Fills in who sent what was received.
    fn complete(&mut self, tool: &Text, mpi: &Mpi, function: Call, words: &[usize], before: &[usize]) {
        use Call::*;
        let a = arguments::of(function);
        let undefined = mpi.abi().constants.undefined;
        // SAFETY: the call has succeeded and set its outputs.
        let set = |place, index| unsafe { arguments::int_at(words, place, index) };
        let mut done = |handle: Option<&usize>, status: usize| {
            if let Some(gap) = handle.and_then(|&handle| self.take_gap(handle)) {
                tool.unknown.fetch_sub(1, Ordering::Relaxed);
                // SAFETY: as above.
                self.lines.fill(gap, unsafe { source(mpi, words, a, status) }.unwrap_or(-1));
            }
        };
        match function {
            MPI_Waitany | MPI_Testany => match set(a.index, 0) {
                index if index == undefined => {}
                index => done(before.get(index as usize), 0),
            },
            MPI_Waitsome | MPI_Testsome => match set(a.index, 0) {
                count if count == undefined => {}
                count => (0..count as usize).for_each(|i| done(before.get(set(a.indices, i) as usize), i)),
            },
            _ => (0..before.len()).for_each(|i| done(before.get(i), i)),
        }
    }

    /// Nobody will hear of it again.
    fn free_request(&mut self, tool: &Text, request: usize) {
        self.templates.remove(&request);
        if let Some(gap) = self.take_gap(request) {
            tool.unknown.fetch_sub(1, Ordering::Relaxed);
            self.lines.fill(gap, -1);
        }
    }

    fn start(&mut self, tool: &Text, mpi: &Mpi, request: usize) {
        match self.templates.get(&request).copied() {
            Some(Template::Message { call, peer, count, datatype, comm }) => {
                if let Some(gap) = self.message(mpi, call, peer, count, datatype, comm) {
                    self.await_source(tool, request, gap);
                }
            }
            Some(Template::Collective { operation, shape, comm }) => {
                self.collective(mpi, collective_name(operation), operation, shape, comm);
            }
            None => {}
        }
    }

    /// `0 allReduce 1 (of 4 bytes) of type 1 on comm mini_comm_0_0 1`.
    #[inline]
    fn collective(&mut self, mpi: &Mpi, call: &str, operation: Operation, shape: Shape, comm: usize) {
        self.begin(call);
        let is_world = comm == mpi.abi().predefined.comm_world;
        let comm = self.comms.get(mpi, comm);
        let lines = &mut self.lines;
        if operation == Operation::Barrier {
            lines.text(" on comm ");
            lines.text(&comm.name);
            return lines.end();
        }
        match shape.counts {
            Counts::Same(count) => {
                lines.text(" ");
                lines.number(count);
            }
            Counts::Spread(least, median, most) => {
                for (name, count) in [(" min=", least), (" median=", median), (" max=", most)] {
                    lines.text(name);
                    lines.number(count as i64);
                }
            }
        }
        lines.text(" (of ");
        lines.number(shape.sent.size as i64);
        lines.text(" bytes) ");
        if let Some(root) = shape.root {
            lines.number(i64::from(root));
            lines.text(" ");
        }
        lines.text(if shape.received.is_some() { "of types " } else { "of type " });
        lines.number(i64::from(shape.sent.code));
        if let Some(received) = shape.received {
            lines.text(", ");
            lines.number(i64::from(received.code));
        }
        lines.text(" on comm ");
        lines.text(&comm.name);
        if shape.root.is_none() {
            comm.collectives += 1;
            lines.text(" ");
            lines.number(comm.collectives as i64);
        } else if !is_world {
            lines.text(" ");
            lines.number(i64::from(comm.rank));
        }
        lines.end();
    }

    /// The amounts and datatypes of a collective call, from the arguments that are significant at this rank.
    #[inline]
    fn shape(&mut self, mpi: &Mpi, operation: Operation, words: &[usize], a: &Arguments) -> Shape {
        let abi = mpi.abi();
        let comm = self.comms.get(mpi, arguments::handle(abi, words, a.comm));
        let (rank, size) = (comm.rank, comm.size as usize);
        let root = a.root.map(|_| arguments::int(words, a.root));
        let at_root = root == Some(rank);
        let in_place = a.sendbuf.is_some() && arguments::word(words, a.sendbuf) == abi.constants.in_place;
        let mut datatype = |place| self.types.get(mpi, arguments::handle(abi, words, place));
        let same = |place| Counts::Same(a.number(words, place));
        let mut spread = |place| {
            self.counts.clear();
            // SAFETY: the program passed a count for each member.
            self.counts.extend((0..size).map(|i| unsafe { a.number_at(words, place, i) } as u64));
            summary(&mut self.counts)
        };
        let (counts, sent, received) = match operation {
            Operation::Barrier => (Counts::Same(0), Type::default(), None),
            Operation::Gather | Operation::Gatherv if !at_root => (same(a.count), datatype(a.datatype), None),
            Operation::Scatter | Operation::Scatterv if !at_root => {
                (same(a.recvcount), datatype(a.recvtype), None)
            }
            Operation::Gather | Operation::Allgather | Operation::Alltoall => match in_place {
                true => (same(a.recvcount), datatype(a.recvtype), None),
                false => (same(a.count), datatype(a.datatype), Some(datatype(a.recvtype))),
            },
            Operation::Scatter => (same(a.count), datatype(a.datatype), None),
            Operation::Gatherv | Operation::Allgatherv => (spread(a.recvcounts), datatype(a.recvtype), None),
            Operation::Scatterv => (spread(a.sendcounts), datatype(a.datatype), None),
            Operation::Alltoallv if in_place => (spread(a.recvcounts), datatype(a.recvtype), None),
            Operation::Alltoallv => (spread(a.sendcounts), datatype(a.datatype), Some(datatype(a.recvtype))),
            Operation::Alltoallw => return self.bytes_to_each(mpi, words, a, in_place, size),
            Operation::ReduceScatter => (spread(a.recvcounts), datatype(a.datatype), None),
            Operation::ReduceScatterBlock => (same(a.recvcount), datatype(a.datatype), None),
            _ => (same(a.count), datatype(a.datatype), None),
        };
        Shape { counts, root, sent, received }
    }

    /// Every peer has its own datatype: in bytes.
    fn bytes_to_each(
        &mut self,
        mpi: &Mpi,
        words: &[usize],
        a: &Arguments,
        in_place: bool,
        size: usize,
    ) -> Shape {
        let (counts, types) =
            if in_place { (a.recvcounts, a.recvtypes) } else { (a.sendcounts, a.sendtypes) };
        let mut holes = false;
        self.counts.clear();
        for i in 0..size {
            // SAFETY: the program passed a count and a datatype for each member.
            let (count, handle) = unsafe {
                (a.number_at(words, counts, i) as u64, arguments::handle_at(mpi.abi(), words, types, i))
            };
            // A type that goes with no elements need not be one.
            let datatype = if count == 0 { Type::default() } else { self.types.get(mpi, handle) };
            holes |= u32::from(datatype.code) == vef_format::time_independent::NOT_CONTIGUOUS;
            self.counts.push(count.wrapping_mul(datatype.size));
        }
        let code = if holes { vef_format::time_independent::NOT_CONTIGUOUS as u8 } else { 6 };
        let sent = Type { size: 1, code };
        Shape { counts: summary(&mut self.counts), root: None, sent, received: None }
    }

    /// `0 Comm split. color=0, key=0.New comm mini_comm_0_0 of size 4`.
    ///
    /// The first number of a name is the how manyth communicator of its parent it is: all members agree on that without
    /// asking each other. Below a parent other than the world, the parent's numbers come first.
    fn new_comm(&mut self, mpi: &Mpi, function: Call, words: &[usize], a: &Arguments) {
        use Call::*;
        let abi = mpi.abi();
        let by_group = matches!(
            function,
            MPI_Comm_create_group
                | MPI_Comm_create_from_group
                | MPI_Intercomm_create
                | MPI_Intercomm_create_from_groups
                | MPI_Intercomm_merge
        );
        let parent = arguments::handle(abi, words, a.comm);
        let prefix = match by_group {
            true => String::new(),
            false => {
                let is_world = parent == abi.predefined.comm_world;
                let parent = self.comms.get(mpi, parent);
                let ordinal = parent.children;
                parent.children += 1;
                match parent.name.strip_prefix("mini_comm_") {
                    Some(numbers) if !is_world => format!("mini_comm_{numbers}_{ordinal}"),
                    _ if is_world => format!("mini_comm_{ordinal}"),
                    _ => format!("mini_comm_{}_{ordinal}", parent.name),
                }
            }
        };
        // SAFETY: the call has set it.
        let handle = unsafe { arguments::handle_at(abi, words, a.new_comm, 0) };
        if handle == abi.predefined.comm_null {
            return;
        }
        let duplicate = matches!(function, MPI_Comm_idup | MPI_Comm_idup_with_info);
        let splits = function == MPI_Comm_split;
        let color = if splits { arguments::int(words, Some(1)) } else { 0 };
        let made = self.comms.describe(mpi, handle, duplicate.then_some(parent));
        made.name = match (by_group, splits) {
            (true, _) => {
                let kin = (arguments::int(words, a.tag), made.first(), made.size);
                let ordinal = self.groups.entry(kin).or_insert(0);
                *ordinal += 1;
                format!("mini_group_{}_{}_{}_{}", kin.0, kin.1, kin.2, *ordinal - 1)
            }
            (_, true) => format!("{prefix}_{color}"),
            _ => format!("{prefix}_{}", made.first()),
        };
        if made.foreign {
            return;
        }
        let (name, size) = (made.name.clone(), made.size);
        self.begin("Comm ");
        if splits {
            let key = arguments::int(words, Some(2));
            self.lines.text(&format!("split. color={color}, key={key}.New comm "));
        } else {
            let how =
                function.name().trim_start_matches("MPI_").trim_start_matches("Comm_").to_ascii_lowercase();
            self.lines.text(&how);
            self.lines.text(".New comm ");
        }
        self.lines.text(&name);
        self.lines.text(" of size ");
        self.lines.number(i64::from(size));
        self.lines.end();
    }
}

/// Least, median and most; of an even number of counts the median is the mean of the middle two.
fn summary(counts: &mut [u64]) -> Counts {
    if counts.is_empty() {
        return Counts::Spread(0, 0, 0);
    }
    let middle = counts.len() / 2;
    let even = counts.len().is_multiple_of(2);
    let (below, &mut upper, above) = counts.select_nth_unstable(middle);
    let lower = below.iter().max().copied().filter(|_| even).unwrap_or(upper);
    let least = below.iter().min().copied().unwrap_or(upper);
    let most = above.iter().max().copied().unwrap_or(upper);
    Counts::Spread(least, lower.midpoint(upper), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_collective_has_a_name_and_its_immediate_form_another() {
        assert_eq!(name(Call::MPI_Allreduce), Some("allReduce"));
        assert_eq!(name(Call::MPI_Iallreduce_c), Some("IallReduce"));
        assert_eq!(name(Call::MPI_Sendrecv_replace), Some("Sendrecv"));
        assert_eq!((name(Call::MPI_Irecv), name(Call::MPI_Comm_rank)), (Some("Irecv"), None));
    }

    #[test]
    fn spreads() {
        let of = |counts: &[u64]| match summary(&mut counts.to_vec()) {
            Counts::Spread(least, median, most) => (least, median, most),
            Counts::Same(_) => unreachable!("a summary is a spread"),
        };
        assert_eq!(of(&[5]), (5, 5, 5));
        assert_eq!(of(&[9, 1, 4]), (1, 4, 9));
        assert_eq!(of(&[8, 1, 2, 4]), (1, 3, 8));
        assert_eq!(of(&[u64::MAX, u64::MAX]), (u64::MAX, u64::MAX, u64::MAX));
    }
}
