//! Collective calls that own their buffers: prepared once, made many times.
//!
//! A benchmark repeats the same call. [`OwnedCollective`] looks the function up once and owns all arguments and the memory
//! behind them, so that the call is safe and costs no more than an indirect call. It uses the `MPI_` names, so tools see
//! the calls.
//!
//! The table [`COLLECTIVES`] describes the functions: a row lists a function's arguments, one letter each, in the order of
//! its C prototype.
//!
//! | letter | argument |
//! |---|---|
//! | `s` `r` | send, receive buffer of one block |
//! | `S` `R` | send, receive buffer with a block for each peer |
//! | `n` `m` | elements of a block: the common number, this process's own |
//! | `k` `d` `D` `A` | counts by peer; displacements in elements, in bytes, in bytes as `MPI_Aint` |
//! | `t` `T` | datatype, one for each peer |
//! | `o` `0` `c` | reduction operation, root, communicator |
//! | `N` | address of a new communicator |

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use super::{Element, Mpi, Reduction, int, pmpi};
use crate::error::{Error, Result};
use crate::handles::{Comm, Datatype, Op};
use crate::symbols::{self, MOST_WORDS, call_with};

/// A row of the table.
#[derive(Debug)]
pub struct Collective {
    /// Name in MPI without the prefix: `Allreduce`.
    pub name: &'static str,
    /// C names: blocking, non-blocking, persistent; empty where MPI has none.
    symbols: [&'static CStr; 3],
    arguments: &'static str,
}

/// How a collective is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `MPI_Bcast`.
    Blocking,
    /// `MPI_Ibcast`, then `MPI_Wait`.
    NonBlocking,
    /// `MPI_Bcast_init` once, then `MPI_Start` and `MPI_Wait`.
    Persistent,
}

macro_rules! c_name {
    ($($part:expr),*) => {
        match CStr::from_bytes_with_nul(concat!($($part),*, "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => panic!("a name without an inner NUL"), // at compile time
        }
    };
}

macro_rules! collectives {
    ($($name:literal $small:literal $arguments:literal;)*) => {
        /// Every collective function over a communicator.
        pub const COLLECTIVES: &[Collective] = &[
            $(Collective {
                name: $name,
                symbols: [c_name!("MPI_", $name), c_name!("MPI_I", $small), c_name!("MPI_", $name, "_init")],
                arguments: $arguments,
            },)*
            Collective { name: "Comm_dup", symbols: [c"MPI_Comm_dup", c"", c""], arguments: "cN" },
        ];
    };
}
collectives! {
    "Barrier" "barrier" "c";
    "Bcast" "bcast" "snt0c";
    "Reduce" "reduce" "srnto0c";
    "Allreduce" "allreduce" "srntoc";
    "Gather" "gather" "sntRnt0c";
    "Gatherv" "gatherv" "smtRkdt0c";
    "Scatter" "scatter" "Sntrnt0c";
    "Scatterv" "scatterv" "Skdtrmt0c";
    "Allgather" "allgather" "sntRntc";
    "Allgatherv" "allgatherv" "smtRkdtc";
    "Alltoall" "alltoall" "SntRntc";
    "Alltoallv" "alltoallv" "SkdtRkdtc";
    "Alltoallw" "alltoallw" "SkDTRkDTc";
    "Reduce_scatter" "reduce_scatter" "Srktoc";
    "Reduce_scatter_block" "reduce_scatter_block" "Srntoc";
    "Scan" "scan" "srntoc";
    "Exscan" "exscan" "srntoc";
    "Neighbor_allgather" "neighbor_allgather" "sntRntc";
    "Neighbor_allgatherv" "neighbor_allgatherv" "smtRkdtc";
    "Neighbor_alltoall" "neighbor_alltoall" "SntRntc";
    "Neighbor_alltoallv" "neighbor_alltoallv" "SkdtRkdtc";
    "Neighbor_alltoallw" "neighbor_alltoallw" "SkATRkATc";
}

impl Collective {
    /// The row of that name, in any case: `allreduce`, `reduce-scatter`, `Reduce_scatter`.
    pub fn named(name: &str) -> Option<&'static Collective> {
        let plain = |text: &str| text.replace('-', "_").to_ascii_lowercase();
        COLLECTIVES.iter().find(|row| plain(row.name) == plain(name))
    }

    /// Whether it goes over the neighbours of a topology.
    pub fn is_neighbourhood(&self) -> bool {
        self.name.starts_with("Neighbor")
    }

    /// Whether it combines values.
    pub fn reduces(&self) -> bool {
        self.arguments.contains('o')
    }

    /// Whether it has a root.
    pub fn is_rooted(&self) -> bool {
        self.arguments.contains('0')
    }

    /// Whether processes may have blocks of different sizes.
    pub fn is_vector(&self) -> bool {
        self.arguments.contains('k')
    }

    /// Whether the MPI of this process has it in that form.
    pub fn exists(&self, form: Form) -> bool {
        let symbol = self.symbols[form as usize];
        !symbol.is_empty() && symbols::function(symbol).is_some()
    }
}

/// The amounts of a call, the same on all processes except `own`.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// Elements of a block.
    pub elements: usize,
    /// Elements by peer, where they differ; for all-to-all the block from i to j is that of (i + j) mod p.
    pub counts: Option<Vec<usize>>,
    /// The number of sets of buffers, at least 1; they are used in turn so that caches stay cold.
    pub copies: usize,
}

/// A collective call with all its arguments.
pub struct OwnedCollective {
    mpi: Mpi,
    row: &'static Collective,
    form: Form,
    address: NonNull<std::ffi::c_void>,
    words: [usize; MOST_WORDS],
    /// The number of arguments in `words`.
    count: usize,
    send: Memory,
    receive: Memory,
    copies: usize,
    turn: usize,
    request: Box<usize>,
    /// Data that the words refer to, besides the buffers.
    _ints: Vec<Box<[c_int]>>,
    _longs: Vec<Box<[isize]>>,
    _bytes: Vec<Box<[u8]>>,
    new_comm: Box<usize>,
}

/// A buffer of `copies` pieces, `stride` bytes apart, and its index among the words.
struct Memory {
    data: Box<[u64]>,
    bytes: usize,
    stride: usize,
    word: Option<usize>,
}

impl Memory {
    fn new(bytes: usize, copies: usize) -> Memory {
        // Pieces are at least a page apart, so that they share no cache line and no prefetch.
        let stride = bytes.max(1).next_multiple_of(4096);
        Memory { data: vec![0; stride / 8 * copies].into_boxed_slice(), bytes, stride, word: None }
    }

    fn at(&self, copy: usize) -> usize {
        self.data.as_ptr() as usize + copy * self.stride
    }

    fn bytes_mut(&mut self, copy: usize) -> &mut [u8] {
        // SAFETY: `data` has `stride` bytes for each copy, and any bytes are valid `u64`s.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.data.as_mut_ptr().cast::<u8>().add(copy * self.stride),
                self.bytes,
            )
        }
    }
}

impl OwnedCollective {
    /// Prepares a call. Collective for [`Form::Persistent`].
    ///
    /// Neighbourhood collectives need a communicator with a topology. `T` is the type of the elements.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`] where the MPI has no such function, [`Error::TooLarge`] where counts exceed C's `int`.
    pub fn new<T: Element>(
        mpi: &Mpi,
        row: &'static Collective,
        form: Form,
        blocks: &Blocks,
        (operation, root, comm): (Reduction, i32, Comm),
    ) -> Result<OwnedCollective> {
        let missing = || Error::NoSuchFunction { function: row.name_in(form) };
        let symbol = row.symbols[form as usize];
        let address =
            (!symbol.is_empty()).then(|| symbols::function(symbol)).flatten().ok_or_else(missing)?;
        let rank = mpi.comm_rank(comm)? as usize;
        let peers = match row.is_neighbourhood() {
            true => mpi.comm_neighbours(comm).map(|(from, to)| from.max(to))?,
            false => mpi.comm_size(comm)? as usize,
        };
        let counts: Vec<usize> = match &blocks.counts {
            Some(counts) if counts.len() == peers && row.is_vector() => {
                let all_to_all = row.name.starts_with("Alltoall");
                (0..peers).map(|peer| counts[if all_to_all { (rank + peer) % peers } else { peer }]).collect()
            }
            _ => vec![blocks.elements; peers],
        };
        let own = counts.get(rank).copied().unwrap_or(blocks.elements);
        let total: usize = counts.iter().sum();
        let width = size_of::<T>();
        let one = own.max(blocks.elements) * width;
        let all = total.max(blocks.elements * peers) * width;
        let room = |small: char, large: char| {
            let bytes = if row.arguments.contains(large) {
                all
            } else if row.arguments.contains(small) {
                one
            } else {
                0
            };
            Memory::new(bytes, blocks.copies.max(1))
        };
        let name = row.name_in(form);
        let mut call = OwnedCollective {
            mpi: mpi.clone(),
            row,
            form,
            address,
            words: [0; MOST_WORDS],
            count: 0,
            send: room('s', 'S'),
            receive: room('r', 'R'),
            copies: blocks.copies.max(1),
            turn: 0,
            request: Box::new(0),
            _ints: Vec::new(),
            _longs: Vec::new(),
            _bytes: Vec::new(),
            new_comm: Box::new(0),
        };
        let displacements = || {
            counts.iter().scan(0, |at, count| {
                let here = *at;
                *at += count;
                Some(here)
            })
        };
        let ints = |values: &mut dyn Iterator<Item = usize>| -> Result<Box<[c_int]>> {
            values.map(|value| int(name, "a count or displacement", value)).collect()
        };
        let datatype = T::datatype(mpi.abi()).word();
        for letter in row.arguments.chars() {
            let word = match letter {
                's' | 'S' => {
                    call.send.word = Some(call.count);
                    call.send.at(0)
                }
                'r' | 'R' => {
                    call.receive.word = Some(call.count);
                    call.receive.at(0)
                }
                'n' => int(name, "count", blocks.elements)? as usize,
                'm' => int(name, "count", own)? as usize,
                'k' | 'd' | 'D' => {
                    let list = match letter {
                        'k' => ints(&mut counts.iter().copied())?,
                        'd' => ints(&mut displacements())?,
                        _ => ints(&mut displacements().map(|at| at * width))?,
                    };
                    call._ints.push(list);
                    call._ints.last().map_or(0, |list| list.as_ptr() as usize)
                }
                'A' => {
                    call._longs.push(displacements().map(|at| (at * width) as isize).collect());
                    call._longs.last().map_or(0, |list| list.as_ptr() as usize)
                }
                't' => datatype,
                'T' => {
                    let handle = &datatype.to_ne_bytes()[..mpi.abi().handle_size];
                    call._bytes.push(handle.repeat(peers).into_boxed_slice());
                    call._bytes.last().map_or(0, |list| list.as_ptr() as usize)
                }
                'o' => mpi.op(operation),
                '0' => root as usize,
                'c' => comm.word(),
                'N' => &raw mut *call.new_comm as usize,
                _ => unreachable!("a letter of the table"),
            };
            call.push(word);
        }
        let request = &raw mut *call.request as usize;
        match form {
            Form::Blocking => {}
            Form::NonBlocking => call.push(request),
            Form::Persistent => {
                call.push(mpi.abi().predefined.info_null);
                call.push(request);
                call.invoke()?;
            }
        }
        Ok(call)
    }

    /// Makes the call; if it is not blocking, waits for its completion.
    ///
    /// # Errors
    /// [`Error::Call`].
    #[inline]
    pub fn run(&mut self) -> Result<()> {
        self.run_with(|| {})
    }

    /// As [`OwnedCollective::run`], with `work` after the start of the call; of a blocking call after its end.
    ///
    /// # Errors
    /// [`Error::Call`].
    #[inline]
    pub fn run_with(&mut self, work: impl FnOnce()) -> Result<()> {
        self.start()?;
        work();
        self.wait()
    }

    /// Makes or starts the call. If it is not blocking, [`OwnedCollective::wait`] must follow.
    #[inline]
    fn start(&mut self) -> Result<()> {
        match self.form {
            Form::Persistent => {
                let mpi = &self.mpi;
                pmpi!(mpi, MPI_Start(&raw mut *self.request))
            }
            _ => self.invoke(),
        }
    }

    /// Waits for the completion of the call; returns immediately after a blocking call.
    #[inline]
    fn wait(&mut self) -> Result<()> {
        if self.form == Form::Blocking {
            return Ok(());
        }
        let (mpi, ignore) = (&self.mpi, self.mpi.abi().constants.status_ignore);
        pmpi!(mpi, MPI_Wait(&raw mut *self.request, ignore))
    }

    /// Work between two calls that must not be timed: selects the next set of buffers and frees a communicator that
    /// the call has made.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn prepare_next(&mut self) -> Result<()> {
        if self.row.name == "Comm_dup" && *self.new_comm != 0 {
            let mpi = &self.mpi;
            pmpi!(mpi, MPI_Comm_free(&raw mut *self.new_comm))?;
            *self.new_comm = 0;
        }
        if self.copies > 1 && self.form != Form::Persistent {
            self.turn = (self.turn + 1) % self.copies;
            for memory in [&self.send, &self.receive] {
                if let Some(word) = memory.word {
                    self.words[word] = memory.at(self.turn);
                }
            }
        }
        Ok(())
    }

    /// The send buffer of the next call; the only buffer if the function has no receive buffer.
    pub fn send_mut(&mut self) -> &mut [u8] {
        let turn = self.turn;
        self.send.bytes_mut(turn)
    }

    /// The receive buffer of the last call; the send buffer if the function has no receive buffer.
    pub fn received(&mut self) -> &mut [u8] {
        let turn = self.turn;
        if self.receive.word.is_some() { self.receive.bytes_mut(turn) } else { self.send.bytes_mut(turn) }
    }

    fn push(&mut self, word: usize) {
        self.words[self.count] = word;
        self.count += 1;
    }

    fn invoke(&mut self) -> Result<()> {
        // SAFETY: the words match the function's prototype; the memory they refer to is owned and as large as counts
        // and displacements require; it is not dropped while a request is active (see `drop`).
        let code = unsafe { call_with(self.address, &self.words, self.count) };
        self.mpi.check(self.row.name_in(self.form), Some(code))
    }
}

impl Drop for OwnedCollective {
    fn drop(&mut self) {
        let (mpi, null) = (&self.mpi, self.mpi.abi().predefined.request_null);
        if self.form == Form::Persistent
            && *self.request != 0
            && *self.request & mpi.abi().handle_mask() != null
        {
            // If this fails, the request is left to MPI.
            let _ = pmpi!(mpi, MPI_Request_free(&raw mut *self.request));
        }
    }
}

impl Collective {
    fn name_in(&self, form: Form) -> &'static str {
        self.symbols[form as usize].to_str().ok().filter(|name| !name.is_empty()).unwrap_or(self.name)
    }
}

impl Mpi {
    /// `MPI_Reduce_local` on memory: `into` = `from` ⊕ `into`.
    ///
    /// # Safety
    /// Both must hold `count` elements of `datatype`, aligned for it, and not overlap; `op` must be defined for it.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub unsafe fn reduce_local(
        &self,
        from: *const u8,
        into: *mut u8,
        count: usize,
        (datatype, op): (Datatype, Op),
    ) -> Result<()> {
        let count = int("MPI_Reduce_local", "count", count)?;
        pmpi!(self, MPI_Reduce_local(from, into, count, datatype.word(), op.word()))
    }

    /// The handle of a predefined reduction.
    pub fn reduction(&self, operation: Reduction) -> Op {
        // SAFETY: what the ABI says it is.
        unsafe { Op::from_word(self.op(operation)) }
    }

    /// `MPI_Cart_create` without reordering: a grid of extents `dims`, periodic in all dimensions. Collective.
    ///
    /// # Errors
    /// [`Error::Call`], for example if the grid is larger than `comm`.
    pub fn cart_create(&self, comm: Comm, dims: &[i32]) -> Result<Comm> {
        let periods = vec![1i32; dims.len()];
        let count = int("MPI_Cart_create", "dimensions", dims.len())?;
        self.new_comm(|word| {
            pmpi!(self, MPI_Cart_create(comm.word(), count, dims.as_ptr(), periods.as_ptr(), 0i32, word))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prototypes::Call;

    #[test]
    fn rows_have_as_many_arguments_as_the_prototypes() {
        for row in COLLECTIVES {
            for (symbol, extra) in row.symbols.iter().zip([0, 1, 2]) {
                let name = symbol.to_str().unwrap();
                if name.is_empty() {
                    continue;
                }
                let arguments = Call::from_name(name).map(|call| call.parameters().len());
                assert_eq!(arguments, Some(row.arguments.len() + extra), "{name}");
            }
        }
    }

    #[test]
    fn rows_are_found_by_any_spelling() {
        for name in ["Reduce_scatter", "reduce-scatter", "REDUCE_SCATTER"] {
            assert_eq!(Collective::named(name).map(|row| row.name), Some("Reduce_scatter"), "{name}");
        }
        assert!(Collective::named("reduce scatter").is_none());
    }
}
