//! `profile`: how often each function was called, how long that took and how much it moved, and to whom. One file a rank,
//! `profile/<rank>.json`, written at the end; `vef profile` adds them up.
//!
//! Two clock reads and a lock a call, no allocation but for persistent requests. Bytes are those of the buffer that this rank
//! gives (of a receive: that it asks for); peers are those it sends to. What a persistent or partitioned request moves
//! counts where it is started.

use super::arguments::{self, Arguments, is_beyond_a_trace};
use super::handles::{Communicators, Types};
use crate::clock;
use mpi_abi::api::Mpi;
use mpi_abi::prototypes::{Call, Category};
use mpi_abi::tool::{Intercepted, Place, Tool};
use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use vef_format::capture::layout::ClockPair;

/// The tool.
pub(super) struct Profile {
    directory: PathBuf,
    opened: ClockPair,
    mpi: OnceLock<World>,
    counts: Mutex<Counts>,
}

/// What is known once MPI is initialised.
struct World {
    mpi: Mpi,
    rank: u32,
    tasks: u32,
}

struct Counts {
    /// By function.
    calls: Vec<Tally>,
    peers: Peers,
    comms: Communicators,
    types: Types,
    /// What each start of a persistent or partitioned request moves, by handle.
    persistent: HashMap<usize, Transfer>,
}

/// What a call moves.
#[derive(Clone, Copy, Default)]
struct Transfer {
    bytes: u64,
    /// The rank in `MPI_COMM_WORLD` that it is sent to, if it is sent to one.
    to: Option<u32>,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    calls: u64,
    ticks: u64,
    bytes: u64,
    errors: u64,
}

#[derive(Clone, Copy, Default)]
struct Peer {
    messages: u64,
    bytes: u64,
}

/// By rank in `MPI_COMM_WORLD`.
struct Peers(Vec<Peer>);

impl Peers {
    /// Notes whom a message goes to; its bytes.
    fn note(&mut self, Transfer { bytes, to }: Transfer) -> u64 {
        if let Some(peer) = to.and_then(|to| self.0.get_mut(to as usize)) {
            peer.messages += 1;
            peer.bytes += bytes;
        }
        bytes
    }
}

impl Tool for Profile {
    const NAME: &'static CStr = c"profile";

    fn open(place: &Place) -> Result<Self, String> {
        let counts = Counts {
            calls: vec![Tally::default(); Call::COUNT],
            peers: Peers(Vec::new()),
            comms: Communicators::new(),
            types: Types::new(),
            persistent: HashMap::new(),
        };
        Ok(Self {
            directory: super::directory(&place.directory, "profile", place.instance),
            opened: clock::pair(),
            mpi: OnceLock::new(),
            counts: Mutex::new(counts),
        })
    }

    /// What communicates, waits, or does what a trace cannot hold; not what only asks.
    fn intercepts(&self, call: Call) -> bool {
        use Category::*;
        is_beyond_a_trace(call.category())
            || (matches!(
                call.category(),
                Send | SendImmediate
                    | SendPersistent
                    | Recv
                    | RecvImmediate
                    | RecvPersistent
                    | SendRecv
                    | SendRecvImmediate
                    | Probe
                    | Wait
                    | Test
                    | Start
                    | RequestFree
                    | Collective
                    | CollectiveImmediate
                    | CollectivePersistent
                    | VectorCollective
                    | VectorCollectiveImmediate
                    | VectorCollectivePersistent
                    | CommCreate
                    | CommFree
                    | TypeFree
            ) || matches!(call, Call::MPI_Init | Call::MPI_Init_thread | Call::MPI_Finalize))
    }

    fn call(&self, call: &mut Intercepted<'_>) -> i32 {
        let function = call.function();
        // Forgotten before: the handle may come to mean another as soon as it is free.
        match function.category() {
            Category::CommFree | Category::TypeFree => self.forget(call),
            _ if function == Call::MPI_Request_free => self.forget(call),
            _ => {}
        }
        let start = clock::now();
        let code = call.pass_on();
        let ticks = clock::now().saturating_sub(start);
        if matches!(function, Call::MPI_Init | Call::MPI_Init_thread) && code == 0 {
            self.initialised();
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = &mut counts.calls[function as usize];
        tally.calls += 1;
        tally.ticks += ticks;
        tally.errors += u64::from(code != 0);
        if code == 0
            && let Some(world) = self.mpi.get()
        {
            let bytes = counts.moved(world, function, call.words());
            counts.calls[function as usize].bytes += bytes;
        }
        code
    }

    fn close(&self) {
        let Some(world) = self.mpi.get() else { return };
        let text = self.report(world);
        let path = self.directory.join(format!("{}.json", world.rank));
        if let Err(error) =
            std::fs::create_dir_all(&self.directory).and_then(|()| std::fs::write(&path, text))
        {
            crate::tracer::complain(&format!("{}: the profile is lost: {error}", path.display()));
        }
    }
}

impl Profile {
    fn initialised(&self) {
        let Ok(mpi) = Mpi::loaded() else { return };
        let comm = mpi.abi().comm_world();
        let (rank, tasks) =
            (mpi.comm_rank(comm).unwrap_or(0) as u32, mpi.comm_size(comm).unwrap_or(1) as u32);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // Pages of zeros that nobody writes to take no memory.
        counts.peers = Peers(vec![Peer::default(); tasks as usize]);
        let _ = self.mpi.set(World { mpi, rank, tasks });
    }

    fn forget(&self, call: &mut Intercepted<'_>) {
        let Some(world) = self.mpi.get() else { return };
        // SAFETY: these functions take the address of a handle first.
        let handle = unsafe { arguments::handle_at(world.mpi.abi(), call.words(), Some(0), 0) };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        match call.function().category() {
            Category::CommFree => _ = counts.comms.forget(handle),
            Category::TypeFree => counts.types.forget(handle),
            _ => _ = counts.persistent.remove(&handle),
        }
    }

    fn report(&self, world: &World) -> String {
        let now = clock::pair();
        let nanos = now.nanos.saturating_sub(self.opened.nanos);
        let per_tick = nanos as f64 / now.tick.saturating_sub(self.opened.tick).max(1) as f64;
        let in_nanos = |ticks: u64| (ticks as f64 * per_tick) as u64;
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // What MPI_Init and MPI_Finalize take is not the program's communication.
        let at_work =
            |call: &Call| !matches!(call, Call::MPI_Init | Call::MPI_Init_thread | Call::MPI_Finalize);
        let mpi: u64 = Call::all().filter(at_work).map(|call| counts.calls[call as usize].ticks).sum();
        let mut text = format!(
            "{{\"version\": 1, \"rank\": {}, \"tasks\": {}, \"wall_ns\": {nanos}, \"mpi_ns\": {},\n \"calls\": [",
            world.rank,
            world.tasks,
            in_nanos(mpi)
        );
        let mut comma = "\n";
        for call in Call::all().filter(|&call| counts.calls[call as usize].calls > 0) {
            let Tally { calls, ticks, bytes, errors } = counts.calls[call as usize];
            let _ = write!(
                text,
                "{comma}  {{\"name\": \"{}\", \"calls\": {calls}, \"ns\": {}, \"bytes\": {bytes}, \"errors\": {errors}, \
                 \"representable\": {}}}",
                call.name(),
                in_nanos(ticks),
                !is_beyond_a_trace(call.category())
            );
            comma = ",\n";
        }
        text.push_str("],\n \"peers\": [");
        let mut comma = "\n";
        for (rank, Peer { messages, bytes }) in
            counts.peers.0.iter().enumerate().filter(|(_, p)| p.messages > 0)
        {
            let _ =
                write!(text, "{comma}  {{\"rank\": {rank}, \"messages\": {messages}, \"bytes\": {bytes}}}");
            comma = ",\n";
        }
        text.push_str("]}\n");
        text
    }
}

impl Counts {
    /// The bytes of a call that has succeeded; notes the peer of a send.
    fn moved(&mut self, world: &World, function: Call, words: &[usize]) -> u64 {
        use Category::*;
        let a = arguments::of(function);
        // SAFETY: the call has succeeded, so what the table says of its arguments holds.
        let request = |index| unsafe { arguments::handle_at(world.mpi.abi(), words, a.requests, index) };
        match function.category() {
            SendPersistent
            | RecvPersistent
            | CollectivePersistent
            | VectorCollectivePersistent
            | NeighborCollectivePersistent => {
                let transfer = self.transfer(world, function, words);
                self.persistent.insert(request(0), transfer);
                0
            }
            Partitioned if a.partitions.is_some() => {
                let mut transfer = self.transfer(world, function, words);
                transfer.bytes = transfer.bytes.wrapping_mul(arguments::int(words, a.partitions) as u64);
                self.persistent.insert(request(0), transfer);
                0
            }
            Start => {
                let requests = if a.length.is_some() { arguments::int(words, a.length) as usize } else { 1 };
                let started = (0..requests).map(|index| {
                    let transfer = self.persistent.get(&request(index)).copied().unwrap_or_default();
                    self.peers.note(transfer)
                });
                started.fold(0, u64::wrapping_add)
            }
            _ => {
                let transfer = self.transfer(world, function, words);
                self.peers.note(transfer)
            }
        }
    }

    /// What a call moves, or each start of the request that it makes.
    fn transfer(&mut self, world: &World, function: Call, words: &[usize]) -> Transfer {
        use Category::*;
        let (mpi, abi) = (&world.mpi, world.mpi.abi());
        let a = arguments::of(function);
        match function.category() {
            Send | SendImmediate | SendRecv | SendRecvImmediate | SendPersistent | Partitioned
                if a.dest.is_some() =>
            {
                let dest = arguments::int(words, a.dest);
                if dest == abi.constants.proc_null {
                    return Transfer::default();
                }
                let comm = self.comms.get(mpi, arguments::handle(abi, words, a.comm));
                let to = (!comm.foreign).then(|| comm.world_rank(dest) as u32);
                Transfer { bytes: self.bytes(mpi, words, a), to }
            }
            Recv | RecvImmediate | RecvPersistent | Partitioned
                if a.source.is_some() && arguments::int(words, a.source) == abi.constants.proc_null =>
            {
                Transfer::default()
            }
            Recv
            | RecvImmediate
            | RecvPersistent
            | Partitioned
            | Rma
            | RmaRequest
            | Io
            | IoImmediate
            | NeighborCollective
            | NeighborCollectiveImmediate
            | NeighborCollectivePersistent => Transfer { bytes: self.bytes(mpi, words, a), to: None },
            Collective
            | CollectiveImmediate
            | CollectivePersistent
            | VectorCollective
            | VectorCollectiveImmediate
            | VectorCollectivePersistent => Transfer { bytes: self.given(mpi, words, a), to: None },
            _ => Transfer::default(),
        }
    }

    /// Elements times their size.
    fn bytes(&mut self, mpi: &Mpi, words: &[usize], a: &Arguments) -> u64 {
        if a.count.is_none() || a.datatype.is_none() {
            return 0;
        }
        let size = self.types.get(mpi, arguments::handle(mpi.abi(), words, a.datatype)).size;
        size.wrapping_mul(a.number(words, a.count) as u64)
    }

    /// What this rank gives to a collective.
    fn given(&mut self, mpi: &Mpi, words: &[usize], a: &Arguments) -> u64 {
        let abi = mpi.abi();
        let comm = self.comms.get(mpi, arguments::handle(abi, words, a.comm));
        let (size, rank, foreign) = (comm.size as usize, comm.rank, comm.foreign);
        if foreign {
            return self.bytes(mpi, words, a);
        }
        if a.scatters && arguments::int(words, a.root) != rank {
            return 0;
        }
        // With MPI_IN_PLACE only the receiving side is significant.
        let in_place = a.sendbuf.is_some() && arguments::word(words, a.sendbuf) == abi.constants.in_place;
        let (datatype, types) = if in_place { (a.recvtype, a.recvtypes) } else { (a.datatype, a.sendtypes) };
        let counts =
            if in_place { a.recvcounts } else { a.sendcounts.or(a.recvcounts.filter(|_| a.count.is_none())) };
        let element = arguments::handle(abi, words, datatype);
        if let Some(counts) = counts {
            // Of a gather, this rank's block alone is its own.
            let gathers = in_place && a.count.is_some();
            let blocks = if gathers { rank as usize..rank as usize + 1 } else { 0..size };
            return blocks.fold(0u64, |sum, i| {
                // SAFETY: the program passed a count for every member, and with several types one of these for each.
                let (count, datatype) = unsafe {
                    let datatype = match types {
                        Some(_) => arguments::handle_at(abi, words, types, i),
                        None => element,
                    };
                    (a.number_at(words, Some(counts), i) as u64, datatype)
                };
                let bytes = if count == 0 { 0 } else { self.types.get(mpi, datatype).size };
                sum.wrapping_add(count.wrapping_mul(bytes))
            });
        }
        let count = a.number(words, if in_place { a.recvcount } else { a.count }) as u64;
        let bytes =
            if datatype.is_none() { 0 } else { self.types.get(mpi, element).size.wrapping_mul(count) };
        if a.scatters || a.exchanges { bytes.wrapping_mul(size as u64) } else { bytes }
    }
}
