//! Collective calls that own their buffers: prepared once, made many times.
//!
//! A benchmark repeats the same call. [`OwnedCollective`] looks the function up once and owns all arguments and the memory
//! behind them, so that the call is safe and costs no more than an indirect call. It uses the `MPI_` names, so tools see
//! the calls. The arguments follow from the function's parameters in [`prototypes`](crate::prototypes).

use std::any::Any;
use std::ffi::{CString, c_int, c_void};
use std::ptr::NonNull;

use super::{Mpi, int, pmpi};
use crate::error::{Error, Result};
use crate::handles::{Comm, Datatype};
use crate::prototypes::{Call, Category, Group, Kind, Name, Timing};
use crate::symbols::{self, MOST_WORDS, call_with};

/// A collective function over a communicator, `MPI_Comm_dup` included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveFunction(Call);

/// How a collective is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallForm {
    /// `MPI_Bcast`.
    Blocking,
    /// `MPI_Ibcast`, then `MPI_Wait`.
    NonBlocking,
    /// `MPI_Bcast_init` once, then `MPI_Start` and `MPI_Wait`.
    Persistent,
}

impl CollectiveFunction {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let has_forms = |call: Call| {
            let is_collective =
                matches!(call.category(), Category::Collective | Category::NeighborCollective);
            is_collective && call.timing() == Timing::Blocking && call.group() == Group::Plain
        };
        Call::all().filter(move |&call| has_forms(call) || call == Call::MPI_Comm_dup).map(Self)
    }

    /// The one of that name, in any case: `allreduce`, `reduce-scatter`, `Reduce_scatter`.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|known| known.name().eq_ignore_ascii_case(&name.replace('-', "_")))
    }

    /// Its name in MPI without the prefix: `Allreduce`.
    pub fn name(self) -> &'static str {
        self.0.name().trim_start_matches("MPI_")
    }

    /// Whether it goes over the neighbours of a topology.
    pub fn is_neighbourhood(self) -> bool {
        self.0.category() == Category::NeighborCollective
    }

    /// Whether it combines values.
    pub fn reduces(self) -> bool {
        self.has(Kind::Op)
    }

    /// Whether the MPI of this process has it in that form.
    pub fn exists(self, form: CallForm) -> bool {
        self.function(form).is_some_and(|call| address(call).is_some())
    }

    fn has(self, kind: Kind) -> bool {
        self.0.parameters().iter().any(|parameter| parameter.kind == kind)
    }

    /// `None`: MPI has no such form of it.
    fn function(self, form: CallForm) -> Option<Call> {
        match form {
            CallForm::Blocking => Some(self.0),
            CallForm::NonBlocking => Call::from_name(&format!("MPI_I{}", self.name().to_ascii_lowercase())),
            CallForm::Persistent => Call::from_name(&format!("{}_init", self.0.name())),
        }
    }
}

fn address(call: Call) -> Option<NonNull<c_void>> {
    symbols::function(&CString::new(call.name()).ok()?)
}

/// The data of a call, the same on all processes.
#[derive(Clone, Debug)]
pub struct CollectiveData {
    /// The type of the elements.
    pub datatype: Datatype,
    /// Bytes of an element.
    pub width: usize,
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
    function: Call,
    form: CallForm,
    address: NonNull<c_void>,
    words: [usize; MOST_WORDS],
    send: Memory,
    receive: Memory,
    copies: usize,
    turn: usize,
    request: Box<usize>,
    new_comm: Box<usize>,
    /// Lists that the words refer to.
    lists: Vec<Box<dyn Any>>,
}

/// A buffer of several pieces, `stride` bytes apart, and its index among the words.
#[derive(Default)]
struct Memory {
    data: Box<[u64]>,
    bytes: usize,
    stride: usize,
    word: Option<usize>,
}

impl Memory {
    fn new(bytes: usize, copies: usize, word: usize) -> Memory {
        // Pieces are at least a page apart, so that they share no cache line and no prefetch.
        let stride = bytes.max(1).next_multiple_of(4096);
        let data = vec![0; stride / 8 * copies].into_boxed_slice();
        Memory { data, bytes, stride, word: Some(word) }
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
    /// Prepares a call. Collective for [`CallForm::Persistent`].
    ///
    /// Neighbourhood collectives need a communicator with a topology. Reductions add the elements.
    ///
    /// # Errors
    /// [`Error::MissingSymbol`] where the MPI has no such function, [`Error::TooLarge`] where counts exceed C's `int`.
    pub fn new(
        mpi: &Mpi,
        collective: CollectiveFunction,
        form: CallForm,
        blocks: &CollectiveData,
        (root, comm): (i32, Comm),
    ) -> Result<OwnedCollective> {
        let function = collective.function(form).ok_or(Error::MissingSymbol { symbol: collective.name() })?;
        let name = function.name();
        let rank = mpi.comm_rank(comm)? as usize;
        let peers = match collective.is_neighbourhood() {
            true => mpi.comm_neighbours(comm).map(|[from, to]| from.len().max(to.len()))?,
            false => mpi.comm_size(comm)? as usize,
        };
        let starts = |names: &[&str]| names.iter().any(|start| collective.name().starts_with(start));
        let counts: Vec<usize> = match &blocks.counts {
            Some(counts) if counts.len() == peers && collective.has(Kind::CountArray) => {
                let first = if starts(&["Alltoall"]) { rank } else { 0 };
                (0..peers).map(|peer| counts[(first + peer) % peers]).collect()
            }
            _ => vec![blocks.elements; peers],
        };
        let displacements = |unit: usize| {
            counts.iter().scan(0, move |at, count| Some(std::mem::replace(at, *at + count * unit)))
        };
        let ints = |values: &mut dyn Iterator<Item = usize>| -> Result<Box<[c_int]>> {
            values.map(|value| int(name, "a count or displacement", value)).collect()
        };
        let own = counts.get(rank).copied().unwrap_or(blocks.elements);
        let (width, datatype) = (blocks.width, blocks.datatype.word());
        let one = own.max(blocks.elements) * width;
        let all = counts.iter().sum::<usize>().max(blocks.elements * peers) * width;
        let mut call = OwnedCollective {
            mpi: mpi.clone(),
            function,
            form,
            address: address(function).ok_or(Error::MissingSymbol { symbol: name })?,
            words: [0; MOST_WORDS],
            send: Memory::default(),
            receive: Memory::default(),
            copies: blocks.copies.max(1),
            turn: 0,
            request: Box::new(0),
            new_comm: Box::new(0),
            lists: Vec::new(),
        };
        for (place, parameter) in function.parameters().iter().enumerate() {
            call.words[place] = match parameter.kind {
                Kind::Buffer => {
                    let (memory, has_block_a_peer) = match parameter.name {
                        Name::Recvbuf => {
                            (&mut call.receive, starts(&["Gather", "Allgather", "Alltoall", "Neighbor"]))
                        }
                        _ => (
                            &mut call.send,
                            starts(&["Scatter", "Alltoall", "Reduce_scatter", "Neighbor_alltoall"]),
                        ),
                    };
                    *memory = Memory::new(if has_block_a_peer { all } else { one }, call.copies, place);
                    memory.at(0)
                }
                Kind::Count => int(name, "count", own)? as usize,
                Kind::CountArray => call.keep(ints(&mut counts.iter().copied())?),
                Kind::DisplArray => {
                    let in_bytes = starts(&["Alltoallw"]);
                    call.keep(ints(&mut displacements(if in_bytes { width } else { 1 }))?)
                }
                Kind::AintDisplArray => call.keep(displacements(width).collect()),
                Kind::Datatype => datatype,
                Kind::DatatypeArray => {
                    let handle = &datatype.to_ne_bytes()[..mpi.abi().handle_size];
                    call.keep(handle.repeat(peers).into_boxed_slice())
                }
                Kind::Op => mpi.sum().word(),
                Kind::Root => root as usize,
                Kind::Comm => comm.word(),
                Kind::CommPtr => &raw mut *call.new_comm as usize,
                Kind::Info => mpi.abi().predefined.info_null,
                Kind::RequestPtr => &raw mut *call.request as usize,
                other => unreachable!("{name} has a parameter of kind {other:?}"),
            };
        }
        if form == CallForm::Persistent {
            call.invoke()?;
        }
        Ok(call)
    }

    /// Keeps a list as long as the call; returns its address.
    fn keep<E: 'static>(&mut self, list: Box<[E]>) -> usize {
        let address = list.as_ptr() as usize;
        self.lists.push(Box::new(list));
        address
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
        let request = &raw mut *self.request;
        let (mpi, ignore) = (&self.mpi, self.mpi.abi().constants.status_ignore);
        match self.form {
            CallForm::Persistent => pmpi!(mpi, MPI_Start(request))?,
            _ => self.invoke()?,
        }
        work();
        match self.form {
            CallForm::Blocking => Ok(()),
            _ => pmpi!(mpi, MPI_Wait(request, ignore)),
        }
    }

    /// Work between two calls that must not be timed: selects the next set of buffers and frees a communicator that
    /// the call has made.
    ///
    /// # Errors
    /// [`Error::Call`].
    pub fn prepare_next(&mut self) -> Result<()> {
        if *self.new_comm != 0 {
            let mpi = &self.mpi;
            pmpi!(mpi, MPI_Comm_free(&raw mut *self.new_comm))?;
            *self.new_comm = 0;
        }
        if self.copies > 1 && self.form != CallForm::Persistent {
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

    fn invoke(&self) -> Result<()> {
        // SAFETY: the words match the function's prototype; the memory they refer to is owned and as large as counts
        // and displacements require; it is not dropped while a request is active (see `drop`).
        let code = unsafe { call_with(self.address, &self.words, self.function.parameters().len()) };
        self.mpi.check(self.function.name(), Some(code))
    }
}

impl Drop for OwnedCollective {
    fn drop(&mut self) {
        let (mpi, null) = (&self.mpi, self.mpi.abi().predefined.request_null);
        let is_request = ![0, null].contains(&(*self.request & mpi.abi().handle_mask()));
        if self.form == CallForm::Persistent && is_request {
            // If this fails, the request is left to MPI.
            let _ = pmpi!(mpi, MPI_Request_free(&raw mut *self.request));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_any_spelling() {
        for name in ["Reduce_scatter", "reduce-scatter", "REDUCE_SCATTER"] {
            assert_eq!(
                CollectiveFunction::named(name),
                Some(CollectiveFunction(Call::MPI_Reduce_scatter)),
                "{name}"
            );
        }
        assert!(
            CollectiveFunction::named("reduce scatter").is_none()
                && CollectiveFunction::named("bcast-init").is_none()
        );
    }

    #[test]
    fn all_have_their_forms() {
        for collective in CollectiveFunction::all() {
            for form in [CallForm::NonBlocking, CallForm::Persistent] {
                let exists = collective.function(form).is_some();
                assert_eq!(exists, collective.name() != "Comm_dup", "{collective:?}, {form:?}");
            }
        }
        assert_eq!(
            (
                CollectiveFunction::all().count(),
                CollectiveFunction::all().filter(|known| known.reduces()).count()
            ),
            (23, 6)
        );
    }
}
