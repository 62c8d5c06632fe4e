//! What a call asks for: which data, from where to where. Looks only at the arguments that are significant at this rank.

use crate::arguments::{Arguments, List};
use collectives::{Counts, Operation};
use mpi_abi::api::{Layout, Mpi};
use mpi_abi::handles::{Datatype, Op};
use mpi_abi::prototypes::Name;

/// Elements in a row in the program's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// The address of the first, which with derived datatypes need not be that of data.
    pub(crate) at: usize,
    pub(crate) count: u64,
    pub(crate) datatype: Datatype,
    pub(crate) layout: Layout,
}

impl Block {
    /// Bytes of data.
    pub(crate) fn bytes(&self) -> u64 {
        self.count * self.layout.size
    }

    /// The address of an element.
    pub(crate) fn element(&self, index: u64) -> usize {
        self.at.wrapping_add_signed((self.layout.extent as isize).wrapping_mul(index as isize))
    }
}

/// Data of the program's: blocks whose bytes, one behind the other, are a buffer of a schedule.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    pub(crate) blocks: Vec<Block>,
    /// The program's memory is where the results go, too: it cannot be read later.
    pub(crate) in_place: bool,
}

impl Data {
    fn new(blocks: Vec<Block>) -> Self {
        Self { blocks, in_place: false }
    }

    fn in_place(blocks: Vec<Block>) -> Self {
        Self { blocks, in_place: true }
    }

    /// Where the bytes lie in order and without holes, if they do.
    pub(crate) fn plain_address(&self) -> Option<usize> {
        let mut blocks = self.blocks.iter().filter(|block| block.bytes() > 0);
        let Some(first) = blocks.next() else { return Some(0) };
        let mut end = first.at;
        let rest = std::iter::once(first).chain(blocks);
        for block in rest {
            if !block.layout.is_plain || block.at != end {
                return None;
            }
            end = end.wrapping_add(block.bytes() as usize);
        }
        Some(first.at)
    }
}

/// How many bytes each rank has, as [`collectives::Sizes`], owned.
#[derive(Clone, Debug)]
pub(crate) enum Bytes {
    Same(u64),
    Blocks(Counts),
    Pairs {
        send: Counts,
        recv: Counts,
    },
    /// Only the root knows all ranks' bytes; the others know their own.
    AtRoot {
        own: u64,
        all: Option<Vec<u64>>,
    },
}

/// A collective call.
#[derive(Clone, Debug)]
pub(crate) struct Demand {
    pub(crate) operation: Operation,
    /// 0 where there is none.
    pub(crate) root: u32,
    pub(crate) bytes: Bytes,
    /// What this rank contributes, if anything; of a broadcast nothing.
    pub(crate) input: Option<Data>,
    /// What this rank obtains, if anything; of a broadcast also the root's data.
    pub(crate) output: Option<Data>,
    /// Of a reduction.
    pub(crate) op: Option<Op>,
}

/// Reads the arguments of one call.
struct Reader<'a> {
    mpi: &'a Mpi,
    arguments: Arguments<'a>,
    rank: usize,
    ranks: usize,
}

impl Demand {
    /// What a call asks of `rank`. `None`: arguments that are no valid ones, or larger than can be told; MPI's own function says so.
    pub(crate) fn of(
        mpi: &Mpi,
        operation: Operation,
        arguments: Arguments<'_>,
        (rank, ranks): (u32, u32),
    ) -> Option<Demand> {
        let root = match arguments.has(Name::Root) {
            true => u32::try_from(arguments.rank(Name::Root)).ok().filter(|&root| root < ranks)?,
            false => 0,
        };
        let reader = Reader { mpi, arguments, rank: rank as usize, ranks: ranks as usize };
        let op = operation.reduces().then(|| arguments.op());
        let (bytes, input, output) = match operation {
            Operation::Barrier => (Bytes::Same(0), None, None),
            Operation::Bcast => {
                let data = reader.block(Name::Buffer, Name::Count, Name::Datatype, 1)?;
                (Bytes::Same(data.bytes()), None, Some(Data::new(vec![data])))
            }
            _ if operation.reduces() => reader.reduction(operation, rank == root)?,
            Operation::Gather | Operation::Allgather => {
                reader.gather(operation == Operation::Allgather || rank == root)?
            }
            Operation::Gatherv | Operation::Allgatherv => reader.gatherv(operation, rank == root)?,
            Operation::Scatter => reader.scatter(rank == root)?,
            Operation::Scatterv => reader.scatterv(rank == root)?,
            Operation::Alltoall => reader.alltoall()?,
            _ => reader.alltoallv()?,
        };
        Some(Demand { operation, root, bytes, input, output, op })
    }
}

type Parts = (Bytes, Option<Data>, Option<Data>);

impl Reader<'_> {
    fn made(&self, at: usize, count: i64, datatype: Datatype) -> Option<Block> {
        let count = u64::try_from(count).ok()?;
        if datatype.word() == self.mpi.abi().predefined.datatype_null {
            return None;
        }
        let layout = self.mpi.type_layout(datatype).ok()??;
        count.checked_mul(layout.size.max(layout.extent.unsigned_abs())).filter(|&all| all < 1 << 62)?;
        Some(Block { at, count, datatype, layout })
    }

    /// `times` times `count` elements in a row.
    fn block(&self, buffer: Name, count: Name, datatype: Name, times: usize) -> Option<Block> {
        let count = self.arguments.count(count).checked_mul(times as i64)?;
        self.made(self.arguments.address(buffer), count, self.arguments.datatype(datatype))
    }

    /// A block for every rank, by lists of counts and displacements in elements.
    fn blocks(&self, buffer: Name, counts: Name, displs: Name, datatype: Name) -> Option<Vec<Block>> {
        let (counts, displs) = (self.arguments.list(counts), self.arguments.list(displs));
        let whole = self.made(self.arguments.address(buffer), 0, self.arguments.datatype(datatype))?;
        let block = |rank| {
            // SAFETY: the lists have a place for every rank.
            let (count, displ) = unsafe { (counts.at(rank), displs.at(rank)) };
            let at = whole.element(displ as u64);
            let count = u64::try_from(count).ok()?;
            count.checked_mul(whole.layout.size).filter(|&all| all < 1 << 62)?;
            Some(Block { at, count, ..whole })
        };
        (0..self.ranks).map(block).collect()
    }

    /// The same with a datatype for every rank and displacements in bytes.
    fn typed_blocks(&self, buffer: Name, counts: Name, displs: Name, datatypes: Name) -> Option<Vec<Block>> {
        let (counts, displs) = (self.arguments.list(counts), self.arguments.list(displs));
        let buffer = self.arguments.address(buffer);
        let block = |rank| {
            // SAFETY: the lists have a place for every rank.
            let (count, displ, datatype) =
                unsafe { (counts.at(rank), displs.at(rank), self.arguments.datatype_at(datatypes, rank)) };
            // Where nothing is moved, programs pass MPI_DATATYPE_NULL, or a type that was freed.
            let datatype = if count == 0 { self.mpi.abi().byte() } else { datatype };
            self.made(buffer.wrapping_add_signed(displ as isize), count, datatype)
        };
        (0..self.ranks).map(block).collect()
    }

    /// Rank `self.rank`'s block of `self.ranks` equal ones.
    fn own_of(&self, all: &Block) -> Block {
        let count = all.count / self.ranks as u64;
        Block { at: all.element(count * self.rank as u64), count, ..*all }
    }

    fn reduction(&self, operation: Operation, is_root: bool) -> Option<Parts> {
        use Operation::{Exscan, Reduce, ReduceScatter, ReduceScatterBlock};
        let mut bytes = None;
        let elements = match operation {
            ReduceScatter => {
                let (size, counts) = (self.size_of_one()?, self.arguments.list(Name::Recvcounts));
                let all = all_counts(counts, self.ranks)?;
                bytes = Some(Bytes::Blocks(Counts::new(all.iter().map(|count| count * size)).ok()?));
                i64::try_from(all.iter().try_fold(0u64, |sum, &count| sum.checked_add(count))?).ok()?
            }
            ReduceScatterBlock => self.arguments.count(Name::Recvcount).checked_mul(self.ranks as i64)?,
            _ => self.arguments.count(Name::Count),
        };
        let datatype = self.arguments.datatype(Name::Datatype);
        let at = |buffer| self.made(self.arguments.address(buffer), elements, datatype);
        let in_place = self.arguments.is_in_place(Name::Sendbuf);
        let input = at(if in_place { Name::Recvbuf } else { Name::Sendbuf })?;
        let output = match operation {
            Reduce if !is_root => None,
            // Not significant there.
            Exscan if self.rank == 0 => None,
            ReduceScatter => {
                // SAFETY: the list has a place for every rank.
                let own = unsafe { self.arguments.list(Name::Recvcounts).at(self.rank) };
                Some(Block { count: own as u64, ..at(Name::Recvbuf)? })
            }
            ReduceScatterBlock => {
                Some(Block { at: self.arguments.address(Name::Recvbuf), ..self.own_of(&input) })
            }
            _ => Some(at(Name::Recvbuf)?),
        };
        let same = match operation {
            ReduceScatterBlock => input.bytes() / self.ranks as u64,
            _ => input.bytes(),
        };
        let input = Data { blocks: vec![input], in_place };
        Some((bytes.unwrap_or(Bytes::Same(same)), Some(input), output.map(|block| Data::new(vec![block]))))
    }

    /// Bytes of an element of a reduction.
    fn size_of_one(&self) -> Option<u64> {
        Some(self.made(0, 0, self.arguments.datatype(Name::Datatype))?.layout.size)
    }

    fn sent(&self) -> Option<Block> {
        self.block(Name::Sendbuf, Name::Sendcount, Name::Sendtype, 1)
    }

    fn received(&self) -> Option<Block> {
        self.block(Name::Recvbuf, Name::Recvcount, Name::Recvtype, 1)
    }

    fn gather(&self, receives: bool) -> Option<Parts> {
        let all = match receives {
            true => Some(self.block(Name::Recvbuf, Name::Recvcount, Name::Recvtype, self.ranks)?),
            false => None,
        };
        let input = match &all {
            Some(all) if self.arguments.is_in_place(Name::Sendbuf) => Data::in_place(vec![self.own_of(all)]),
            _ => Data::new(vec![self.sent()?]),
        };
        let bytes = match &all {
            Some(all) => all.bytes() / self.ranks as u64,
            None => input.blocks[0].bytes(),
        };
        Some((Bytes::Same(bytes), Some(input), all.map(|all| Data::new(vec![all]))))
    }

    fn gatherv(&self, operation: Operation, is_root: bool) -> Option<Parts> {
        let for_all = operation == Operation::Allgatherv;
        let all = match for_all || is_root {
            true => Some(self.blocks(Name::Recvbuf, Name::Recvcounts, Name::Displs, Name::Recvtype)?),
            false => None,
        };
        let input = match &all {
            Some(all) if self.arguments.is_in_place(Name::Sendbuf) => Data::in_place(vec![all[self.rank]]),
            _ => Data::new(vec![self.sent()?]),
        };
        let sizes = all.as_ref().map(|all| all.iter().map(Block::bytes).collect::<Vec<u64>>());
        let bytes = match sizes {
            Some(sizes) if for_all => Bytes::Blocks(Counts::new(sizes).ok()?),
            all => Bytes::AtRoot { own: input.blocks[0].bytes(), all },
        };
        Some((bytes, Some(input), all.map(Data::new)))
    }

    /// What a rank gets of a scatter; the root may have it where it is.
    fn scattered(&self, is_root: bool) -> Option<Option<Data>> {
        match is_root && self.arguments.is_in_place(Name::Recvbuf) {
            true => Some(None),
            false => Some(Some(Data::new(vec![self.received()?]))),
        }
    }

    fn scatter(&self, is_root: bool) -> Option<Parts> {
        let output = self.scattered(is_root)?;
        if !is_root {
            let bytes = output.as_ref().map_or(0, |data| data.blocks[0].bytes());
            return Some((Bytes::Same(bytes), None, output));
        }
        let all = self.block(Name::Sendbuf, Name::Sendcount, Name::Sendtype, self.ranks)?;
        Some((Bytes::Same(all.bytes() / self.ranks as u64), Some(Data::new(vec![all])), output))
    }

    fn scatterv(&self, is_root: bool) -> Option<Parts> {
        let output = self.scattered(is_root)?;
        if !is_root {
            let own = output.as_ref().map_or(0, |data| data.blocks[0].bytes());
            return Some((Bytes::AtRoot { own, all: None }, None, output));
        }
        let blocks = self.blocks(Name::Sendbuf, Name::Sendcounts, Name::Displs, Name::Sendtype)?;
        let all: Vec<u64> = blocks.iter().map(Block::bytes).collect();
        Some((Bytes::AtRoot { own: all[self.rank], all: Some(all) }, Some(Data::new(blocks)), output))
    }

    fn alltoall(&self) -> Option<Parts> {
        let all = self.block(Name::Recvbuf, Name::Recvcount, Name::Recvtype, self.ranks)?;
        let input = match self.arguments.is_in_place(Name::Sendbuf) {
            true => Data::in_place(vec![all]),
            false => {
                Data::new(vec![self.block(Name::Sendbuf, Name::Sendcount, Name::Sendtype, self.ranks)?])
            }
        };
        Some((Bytes::Same(all.bytes() / self.ranks as u64), Some(input), Some(Data::new(vec![all]))))
    }

    fn alltoallv(&self) -> Option<Parts> {
        let is_typed = self.arguments.has(Name::Sendtypes);
        let received = match is_typed {
            true => self.typed_blocks(Name::Recvbuf, Name::Recvcounts, Name::Rdispls, Name::Recvtypes)?,
            false => self.blocks(Name::Recvbuf, Name::Recvcounts, Name::Rdispls, Name::Recvtype)?,
        };
        let input = match (self.arguments.is_in_place(Name::Sendbuf), is_typed) {
            (true, _) => Data::in_place(received.clone()),
            (false, true) => Data::new(self.typed_blocks(
                Name::Sendbuf,
                Name::Sendcounts,
                Name::Sdispls,
                Name::Sendtypes,
            )?),
            (false, false) => {
                Data::new(self.blocks(Name::Sendbuf, Name::Sendcounts, Name::Sdispls, Name::Sendtype)?)
            }
        };
        let counts = |blocks: &[Block]| Counts::new(blocks.iter().map(Block::bytes)).ok();
        let bytes = Bytes::Pairs { send: counts(&input.blocks)?, recv: counts(&received)? };
        Some((bytes, Some(input), Some(Data::new(received))))
    }
}

fn all_counts(list: List, ranks: usize) -> Option<Vec<u64>> {
    // SAFETY: the list has a place for every rank.
    (0..ranks).map(|rank| u64::try_from(unsafe { list.at(rank) }).ok()).collect()
}
