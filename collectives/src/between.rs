//! Collectives between the two groups of an inter-communicator, as MPICH 4.0.2 and Open MPI 4.1.4 send them.
//!
//! Most are a collective within a group, from or to its rank 0, and messages between the groups; the former follow a decision table.
//! `tests/record/record.sh MPI RANKS between FIRST` records them below the library. `docs/collectives.md` says what differs.

use crate::choose::Table;
use crate::creations::Library;
use crate::{Counts, Error, Member, Operation, Sizes, Step, steps};

/// The part of a rank in a rooted operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The operation has no root.
    Rootless,
    /// `MPI_ROOT`.
    Root,
    /// `MPI_PROC_NULL`: another rank of the root's group.
    Beside,
    /// The rank of the root in the other group.
    Opposite(u32),
}

/// One rank's part of a collective between groups.
#[derive(Clone, Copy, Debug)]
pub struct Party<'a> {
    /// The operation.
    pub operation: Operation,
    /// Whether the call blocks; persistent ones are as those that do not.
    pub blocking: bool,
    /// Its rank in its group.
    pub rank: u32,
    /// Ranks of its group.
    pub own: u32,
    /// Ranks of the other group.
    pub others: u32,
    /// Its part, if there is a root.
    pub role: Role,
    /// Bytes that it contributes, for all ranks of the other group together. Of a reduction with a scatter: the vector.
    pub send: u64,
    /// Bytes that it obtains, from all ranks of the other group together.
    pub recv: u64,
    /// Bytes of an element, which no split divides; 1 if it does not matter.
    pub unit: u32,
    /// Vector forms: bytes for each rank of the other group.
    pub send_counts: &'a [u64],
    /// Vector forms: bytes from each rank of the other group; of Reduce_scatter, the block of each rank of its own group.
    pub recv_counts: &'a [u64],
}

/// The rank of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// In the own group.
    Own(u32),
    /// In the other group.
    Other(u32),
}

/// A step of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Sends so many bytes.
    Send(Peer, u64),
    /// Posts a receive.
    Receive(Peer),
    /// Waits for all receives so far.
    Wait,
}

/// Bytes of all blocks below which MPICH gathers and scatters within the group.
const SHORT: u64 = 2048;

impl Party<'_> {
    /// The steps in `library`, whose table is `table`.
    ///
    /// # Errors
    /// See [`Error`]; of lists of another length than the groups', too.
    pub fn moves(&self, library: Library, table: &Table) -> Result<Vec<Move>, Error> {
        let mut moves = Moves { party: self, table, made: Vec::new() };
        if self.own == 0 || self.others == 0 {
            return Ok(moves.made);
        }
        match (library, self.blocking) {
            (Library::Mpich, _) => moves.of_mpich()?,
            (Library::OpenMpi, true) => moves.of_openmpi()?,
            (Library::OpenMpi, false) => moves.of_openmpi_not_blocking()?,
        }
        moves.made.push(Move::Wait);
        Ok(moves.made)
    }

    /// The bytes of a vector, or of all blocks together, in one direction.
    fn all(&self) -> u64 {
        self.send.max(self.recv)
    }
}

/// The steps of a rank in `MPI_Intercomm_create`, by which the groups agree; the first ranks are the leaders.
///
/// MPICH's leaders exchange their sizes and the numbers of the processes, which they spread with the context id; Open MPI's exchange descriptions of the
/// processes, taken as 50 bytes each, and then agree three times on an id, and three times more within each group.
///
/// # Errors
/// See [`Error`].
pub fn creation(
    library: Library,
    table: &Table,
    rank: u32,
    own: u32,
    others: u32,
) -> Result<Vec<Move>, Error> {
    let party = Party {
        operation: Operation::Barrier,
        blocking: true,
        rank,
        own,
        others,
        role: Role::Rootless,
        send: 0,
        recv: 0,
        // What the groups agree on are integers.
        unit: 4,
        send_counts: &[],
        recv_counts: &[],
    };
    let mut moves = Moves { party: &party, table, made: Vec::new() };
    let (mine, theirs) = (u64::from(own), u64::from(others));
    match library {
        Library::Mpich => {
            moves.exchange(4);
            moves.exchange(8 * mine);
            moves.within(Operation::Bcast, 8)?;
            moves.within(Operation::Bcast, 8 * theirs)?;
            moves.within(Operation::Allreduce, 260)?;
            moves.exchange(2);
            moves.within(Operation::Bcast, 12)?;
        }
        Library::OpenMpi => {
            for bytes in [4, 4, 50 * mine] {
                moves.exchange(bytes);
            }
            for bytes in [4, 4, 50 * theirs] {
                moves.within(Operation::Bcast, bytes)?;
            }
            for _ in 0..3 {
                moves.reduced_and_spread(4)?;
            }
            for _ in 0..3 {
                moves.within(Operation::Reduce, 4)?;
                moves.within(Operation::Bcast, 4)?;
            }
        }
    }
    Ok(moves.made)
}

/// Steps in the making.
struct Moves<'a> {
    party: &'a Party<'a>,
    table: &'a Table,
    made: Vec<Move>,
}

impl Moves<'_> {
    fn of_mpich(&mut self) -> Result<(), Error> {
        use Operation::*;
        let &Party { operation, others, send, recv, send_counts, recv_counts, .. } = self.party;
        match operation {
            Barrier => {
                self.within(Barrier, 0)?;
                self.exchange(1);
                self.within(Bcast, 1)?;
            }
            Gather if self.of_all_blocks() >= SHORT => self.collect(false, |_| true),
            Scatter if self.of_all_blocks() >= SHORT => self.spread(|_| send / u64::from(others)),
            Alltoall => self.in_turn(|_| send / u64::from(others)),
            // That is Alltoallv's alone.
            Alltoallv if !self.party.blocking => {
                self.each_to_each(|at| count(send_counts, at), |at| count(recv_counts, at) > 0, false);
            }
            Alltoallv | Alltoallw => self.in_turn(|at| count(send_counts, at)),
            Allgatherv => {
                if send > 0 {
                    self.send(0, send);
                }
                if self.party.rank == 0 {
                    (0..others).filter(|&at| count(recv_counts, at) > 0).for_each(|at| self.receive(at));
                }
                self.made.push(Move::Wait);
                self.within(Bcast, recv)?;
            }
            ReduceScatter | ReduceScatterBlock => {
                self.within(Reduce, send)?;
                self.exchange(send);
                self.scatter_result()?;
            }
            Bcast | Reduce | Allreduce | Gather | Scatter | Allgather => self.by_first_ranks()?,
            Gatherv => self.collect(false, |at| count(recv_counts, at) > 0),
            Scatterv => self.spread(|at| count(send_counts, at)),
            // There are none between groups.
            Scan | Exscan => {}
        }
        Ok(())
    }

    fn of_openmpi(&mut self) -> Result<(), Error> {
        use Operation::*;
        let &Party { operation, others, send, send_counts, recv_counts, .. } = self.party;
        match operation {
            Barrier => self.reduced_and_spread(4)?,
            Alltoall => self.each_to_each(|_| send / u64::from(others), |_| true, true),
            Alltoallv | Alltoallw => {
                self.each_to_each(|at| count(send_counts, at), |at| count(recv_counts, at) > 0, false);
            }
            _ if self.party.all() == 0 => {}
            ReduceScatter | ReduceScatterBlock => {
                self.all_to_first(send);
                self.scatter_result()?;
            }
            Allgatherv => self.each_to_each(|_| send, |at| count(recv_counts, at) > 0, false),
            Bcast | Reduce | Allreduce | Gather | Scatter | Allgather => self.by_first_ranks()?,
            Gatherv => self.collect(false, |at| count(recv_counts, at) > 0),
            Scatterv => self.spread(|at| count(send_counts, at)),
            Scan | Exscan => {}
        }
        Ok(())
    }

    fn of_openmpi_not_blocking(&mut self) -> Result<(), Error> {
        use Operation::*;
        let &Party { operation, rank, own, others, send, recv, send_counts, recv_counts, .. } = self.party;
        match operation {
            Barrier => {
                match rank {
                    0 => (1..others).for_each(|at| self.receive(at)),
                    _ => self.send(0, 0),
                }
                self.made.push(Move::Wait);
                if rank == 0 {
                    (0..others).for_each(|at| self.send(at, 0));
                }
                self.receive(0);
            }
            Gather | Gatherv => self.collect(true, |_| true),
            Scatter => self.spread_to_all(|_| send / u64::from(others)),
            Scatterv => self.spread_to_all(|at| count(send_counts, at)),
            Alltoall => self.each_to_each(|_| send / u64::from(others), |_| true, true),
            Allgather => self.each_to_each(|_| send, |_| true, true),
            Allgatherv => self.each_to_each(|_| send, |at| count(recv_counts, at) > 0, false),
            Alltoallv | Alltoallw => {
                self.each_to_each(|at| count(send_counts, at), |at| count(recv_counts, at) > 0, false);
            }
            _ if self.party.all() == 0 => {}
            Bcast => self.spread_to_all(|_| send),
            Reduce => self.collect(true, |_| true),
            Allreduce => {
                self.all_to_first(send);
                self.exchange(send);
                match rank {
                    0 => (1..others).for_each(|at| self.send(at, send)),
                    _ => self.receive(0),
                }
            }
            ReduceScatter | ReduceScatterBlock => {
                self.all_to_first(send);
                let block = |at| if operation == ReduceScatter { count(recv_counts, at) } else { recv };
                match rank {
                    0 => {
                        self.made.extend((1..own).map(|at| Move::Send(Peer::Own(at), block(at))));
                    }
                    _ => self.made.push(Move::Receive(Peer::Own(0))),
                }
            }
            Scan | Exscan => {}
        }
        Ok(())
    }

    /// The bytes of all blocks of the group that does not have the root.
    fn of_all_blocks(&self) -> u64 {
        match self.party.role {
            Role::Opposite(_) => self.party.all().saturating_mul(self.party.own.into()),
            _ => self.party.all(),
        }
    }

    /// A collective within each group, and messages between the two first ranks or the root and the other group's first rank.
    fn by_first_ranks(&mut self) -> Result<(), Error> {
        use Operation::*;
        let &Party { operation, rank, own, role, send, recv, .. } = self.party;
        let is_first = rank == 0;
        match (operation, role) {
            (Allreduce, _) => self.reduced_and_spread(send)?,
            (Allgather, _) => {
                self.within(Gather, send)?;
                self.exchange(send.saturating_mul(own.into()));
                self.within(Bcast, recv)?;
            }
            (Bcast | Scatter, Role::Root) => self.send(0, send),
            (Bcast | Scatter, Role::Opposite(root)) => {
                if is_first {
                    self.receive(root);
                    self.made.push(Move::Wait);
                }
                self.within(operation, recv)?;
            }
            (Reduce | Gather, Role::Root) => self.receive(0),
            (Reduce | Gather, Role::Opposite(root)) => {
                self.within(operation, send)?;
                if is_first {
                    let all = if operation == Gather { send.saturating_mul(own.into()) } else { send };
                    self.send(root, all);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// An allreduce of a vector.
    fn reduced_and_spread(&mut self, bytes: u64) -> Result<(), Error> {
        self.within(Operation::Reduce, bytes)?;
        self.exchange(bytes);
        self.within(Operation::Bcast, bytes)
    }

    /// The first ranks send to each other.
    fn exchange(&mut self, bytes: u64) {
        if self.party.rank == 0 {
            self.send(0, bytes);
            self.receive(0);
            self.made.push(Move::Wait);
        }
    }

    /// All send a vector to the first rank of the other group.
    fn all_to_first(&mut self, bytes: u64) {
        self.send(0, bytes);
        if self.party.rank == 0 {
            (0..self.party.others).for_each(|at| self.receive(at));
        }
        self.made.push(Move::Wait);
    }

    /// The first rank scatters the result of a reduction within its group.
    fn scatter_result(&mut self) -> Result<(), Error> {
        match self.party.operation {
            Operation::ReduceScatterBlock => self.within(Operation::Scatter, self.party.recv),
            _ => {
                let blocks = Counts::new(self.party.recv_counts.iter().copied())?;
                self.steps(Operation::Scatterv, Sizes::Blocks(&blocks))
            }
        }
    }

    /// The opposite group's ranks send to the root, which receives from those ranks `from`; `empty`: messages of no bytes, too.
    fn collect(&mut self, empty: bool, from: impl Fn(u32) -> bool) {
        let &Party { role, others, send, .. } = self.party;
        match role {
            Role::Root => (0..others).filter(|&at| from(at)).for_each(|at| self.receive(at)),
            Role::Opposite(root) if empty || send > 0 => self.send(root, send),
            _ => {}
        }
    }

    /// The root sends to the opposite group's ranks; empty messages are omitted.
    fn spread(&mut self, bytes: impl Fn(u32) -> u64) {
        match self.party.role {
            Role::Root => {
                (0..self.party.others).filter(|&at| bytes(at) > 0).for_each(|at| self.send(at, bytes(at)));
            }
            Role::Opposite(root) if self.party.recv > 0 => self.receive(root),
            _ => {}
        }
    }

    /// The root sends to the opposite group's ranks.
    fn spread_to_all(&mut self, bytes: impl Fn(u32) -> u64) {
        match self.party.role {
            Role::Root => (0..self.party.others).for_each(|at| self.send(at, bytes(at))),
            Role::Opposite(root) => self.receive(root),
            _ => {}
        }
    }

    /// Each rank sends to each of the other group; `empty`: messages of no bytes, too.
    fn each_to_each(&mut self, bytes: impl Fn(u32) -> u64, from: impl Fn(u32) -> bool, empty: bool) {
        for at in 0..self.party.others {
            if from(at) {
                self.receive(at);
            }
            if empty || bytes(at) > 0 {
                self.send(at, bytes(at));
            }
        }
    }

    /// Each rank sends to each of the other group, in turn.
    fn in_turn(&mut self, bytes: impl Fn(u32) -> u64) {
        let &Party { rank, own, others, .. } = self.party;
        let most = own.max(others);
        for turn in 0..most {
            let (to, source) = ((rank + turn) % most, (rank + most - turn) % most);
            if to < others {
                self.send(to, bytes(to));
            }
            if source < others {
                self.receive(source);
            }
            self.made.push(Move::Wait);
        }
    }

    fn send(&mut self, to: u32, bytes: u64) {
        self.made.push(Move::Send(Peer::Other(to), bytes));
    }

    fn receive(&mut self, from: u32) {
        self.made.push(Move::Receive(Peer::Other(from)));
    }

    /// A collective within the group, from or to its rank 0; `bytes` of the vector, or of each block.
    fn within(&mut self, operation: Operation, bytes: u64) -> Result<(), Error> {
        self.steps(operation, Sizes::Bytes(bytes))
    }

    fn steps(&mut self, operation: Operation, sizes: Sizes<'_>) -> Result<(), Error> {
        let &Party { rank, own, unit, .. } = self.party;
        // Open MPI's barrier reduces an integer.
        let unit = if self.party.operation == Operation::Barrier { 4 } else { unit };
        let unit = match sizes {
            Sizes::Bytes(bytes) if bytes.is_multiple_of(unit.into()) => unit,
            _ => 1,
        };
        let member = Member { operation, ranks: own, rank, root: 0, unit };
        if own == 1 {
            return Ok(());
        }
        let choice = self.table.choose(&member, sizes);
        for step in steps(member, choice, sizes)? {
            match step {
                Step::Send { to, data } => self.made.push(Move::Send(Peer::Own(to), data.len)),
                Step::Recv { from, .. } => self.made.push(Move::Receive(Peer::Own(from))),
                Step::Wait => self.made.push(Move::Wait),
                Step::Local { .. } => {}
            }
        }
        self.made.push(Move::Wait);
        Ok(())
    }
}

/// The bytes for, or from, a rank; 0 behind the end of the list.
fn count(counts: &[u64], at: u32) -> u64 {
    counts.get(at as usize).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The halves of one element would be half an element each: Open MPI reduces fewer elements than ranks by other means.
    #[test]
    fn an_element_is_not_divided() {
        let moves = allreduce([2, 1]).moves(Library::OpenMpi, &Table::builtin("openmpi").unwrap()).unwrap();
        let sends: Vec<_> = moves.into_iter().filter(|step| matches!(step, Move::Send(..))).collect();
        assert_eq!(sends, [Move::Send(Peer::Own(0), 4)]);
    }

    #[test]
    fn with_an_empty_group_nothing_is_sent() {
        for (library, table) in [(Library::Mpich, "mpich"), (Library::OpenMpi, "openmpi")] {
            for groups in [[0, 2], [2, 0]] {
                let moves = allreduce(groups).moves(library, &Table::builtin(table).unwrap()).unwrap();
                assert_eq!(moves, []);
            }
        }
    }

    /// Rank 1's part of an Allreduce of an element of 4 bytes.
    fn allreduce([own, others]: [u32; 2]) -> Party<'static> {
        Party {
            operation: Operation::Allreduce,
            blocking: true,
            rank: 1,
            own,
            others,
            role: Role::Rootless,
            send: 4,
            recv: 4,
            unit: 4,
            send_counts: &[],
            recv_counts: &[],
        }
    }
}
