//! What goes into a collective and what must come out, from the definition of the operation alone.
//!
//! Values are small whole numbers, so that sums are exact in every element type and in every order.

use collectives::Operation;
use mpi_abi::api::{Element, Mpi};
use mpi_abi::handles::Datatype;

/// How numbers lie in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// `u8`, sums modulo 256.
    Bytes,
    /// `f64`.
    Doubles,
}

impl Numbers {
    /// Bytes of one.
    pub const fn width(self) -> usize {
        match self {
            Numbers::Bytes => 1,
            Numbers::Doubles => 8,
        }
    }

    /// Their type in MPI.
    pub(crate) fn datatype(self, mpi: &Mpi) -> Datatype {
        match self {
            Numbers::Bytes => u8::datatype(mpi.abi()),
            Numbers::Doubles => f64::datatype(mpi.abi()),
        }
    }

    /// Fills a buffer with this rank's contribution.
    pub fn fill(self, buffer: &mut [u8], rank: u32) {
        for (index, place) in buffer.chunks_exact_mut(self.width()).enumerate() {
            let value = contribution(rank, index);
            match self {
                Numbers::Bytes => place[0] = value as u8,
                Numbers::Doubles => place.copy_from_slice(&f64::from(value).to_ne_bytes()),
            }
        }
    }

    fn at(self, buffer: &[u8], index: usize) -> f64 {
        match self {
            Numbers::Bytes => f64::from(buffer[index]),
            Numbers::Doubles => {
                buffer[8 * index..].first_chunk().map_or(f64::NAN, |bytes| f64::from_ne_bytes(*bytes))
            }
        }
    }

    /// The first element that is not what the operation promises: (index, found, expected). `block`: elements of a block
    /// (of the vector for operations without blocks); all blocks are equal.
    pub fn first_wrong(
        self,
        operation: Operation,
        (rank, ranks, root): (u32, u32, u32),
        block: usize,
        output: &[u8],
    ) -> Option<(usize, f64, f64)> {
        (0..output.len() / self.width()).find_map(|index| {
            let expected = expected(operation, (rank, ranks, root), block, index)?;
            let expected = match self {
                Numbers::Bytes => f64::from((expected % 256) as u8),
                Numbers::Doubles => f64::from(expected),
            };
            let found = self.at(output, index);
            (found != expected).then_some((index, found, expected))
        })
    }
}

/// What a rank contributes.
fn contribution(rank: u32, index: usize) -> u32 {
    (rank * 7 + (index % 1009) as u32 * 3) % 17 + 1
}

/// Element `index` of the output of `rank`; `None` where the operation leaves it open.
fn expected(
    operation: Operation,
    (rank, ranks, root): (u32, u32, u32),
    block: usize,
    index: usize,
) -> Option<u32> {
    use Operation::*;
    let sum = |ranks: std::ops::Range<u32>, index| Some(ranks.map(|r| contribution(r, index)).sum());
    let block = block.max(1);
    let (owner, inside) = ((index / block) as u32, index % block);
    match operation {
        Barrier => None,
        Bcast => Some(contribution(root, index)),
        Reduce | Gather | Gatherv if rank != root => None,
        Reduce | Allreduce => sum(0..ranks, index),
        Scan => sum(0..rank + 1, index),
        Exscan if rank == 0 => None,
        Exscan => sum(0..rank, index),
        Gather | Gatherv | Allgather | Allgatherv => Some(contribution(owner, inside)),
        Scatter | Scatterv => Some(contribution(root, rank as usize * block + index)),
        Alltoall | Alltoallv | Alltoallw => Some(contribution(owner, rank as usize * block + inside)),
        ReduceScatter | ReduceScatterBlock => sum(0..ranks, rank as usize * block + index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        for numbers in [Numbers::Bytes, Numbers::Doubles] {
            let mut output = vec![0; 6 * numbers.width()];
            // Rank 2's input is what a broadcast from root 2 leaves everywhere.
            numbers.fill(&mut output, 2);
            let check = |output: &[u8], root| numbers.first_wrong(Operation::Bcast, (0, 4, root), 6, output);
            assert_eq!(check(&output, 2), None);
            assert!(check(&output, 1).is_some());
            output[5 * numbers.width()..].fill(0x7f);
            assert_eq!(check(&output, 2).map(|wrong| wrong.0), Some(5));
        }
    }
}
