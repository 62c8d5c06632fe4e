//! One collective by a schedule: its steps, with the program's data.
//!
//! A schedule speaks of bytes of four buffers. In a reduction an element of it is one of the program's datatype, as the
//! operation wants them, and the program's memory is used where it is. In all other collectives it is a byte: the ranks'
//! datatypes may differ, only the bytes that packing gives are the same for all. Data without holes is used where it is,
//! other data is packed before and unpacked after.

use crate::demand::{Block, Data, Demand};
use crate::messages::{Code, Messages, code_of};
use collectives::{Buffer, Combine, Cursor, Member, Operation, Sizes, Step};
use mpi_abi::api::{Layout, Mpi};
use mpi_abi::handles::{Comm, Datatype, Op};
use mpi_abi::prototypes::Call;

/// Packed data is handled in parts: MPI counts its bytes by a C `int`.
const MOST_PACKED: u64 = 1 << 30;

/// Elements in a row: the address of the first, and how many.
type Piece = (usize, u64);

/// Memory of the tool's own for elements, whose place may begin before or behind that of the first element.
struct Room {
    _memory: Vec<u64>,
    at: usize,
    elements: u64,
}

/// A message that is combined or put in several places once it is there.
struct Arrival {
    room: usize,
    into: Vec<Piece>,
    len: u64,
    combine: Combine,
}

/// A collective on its way.
pub(crate) struct Run<'a> {
    mpi: &'a Mpi,
    comm: Comm,
    messages: Messages<'a>,
    member: Member,
    sizes: Sizes<'a>,
    datatype: Datatype,
    layout: Layout,
    op: Option<Op>,
    /// Where each buffer's first element is, once there is one.
    places: [Option<usize>; 4],
    rooms: Vec<Room>,
    /// Rooms that nothing is in.
    free: Vec<usize>,
    /// Rooms of messages that are sent.
    leaving: Vec<usize>,
    arrivals: Vec<Arrival>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        (mpi, comm, messages): (&'a Mpi, Comm, Messages<'a>),
        (member, sizes): (Member, Sizes<'a>),
        demand: &Demand,
    ) -> Self {
        let byte = Layout { size: 1, extent: 1, true_lower: 0, true_extent: 1, is_plain: true };
        let typed = demand.input.as_ref().filter(|_| demand.op.is_some()).map(|data| data.blocks[0]);
        let (datatype, layout) =
            typed.map_or((mpi.abi().byte(), byte), |block| (block.datatype, block.layout));
        Self {
            mpi,
            comm,
            messages,
            member,
            sizes,
            datatype,
            layout,
            op: demand.op,
            places: [None; 4],
            rooms: Vec::new(),
            free: Vec::new(),
            leaving: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    /// Carries the steps out. After an error messages may be under way, whose memory is never freed.
    ///
    /// # Safety
    /// The demand must be that of a call of the program's.
    pub(crate) unsafe fn carry_out(mut self, cursor: Cursor, demand: &Demand) -> Result<(), Code> {
        // SAFETY: the contract.
        let result = unsafe { self.steps(cursor, demand) };
        if result.is_err() {
            std::mem::forget(self);
        }
        result
    }

    unsafe fn steps(&mut self, mut cursor: Cursor, demand: &Demand) -> Result<(), Code> {
        let sends = demand.operation == Operation::Bcast && self.member.rank == demand.root;
        // SAFETY: the contract: the program's data; the schedule is one for it.
        unsafe {
            if let Some(data) = &demand.input {
                self.place(Buffer::Input, data, true)?;
            }
            if let Some(data) = &demand.output {
                self.place(Buffer::Output, data, sends)?;
            }
            while let Some(step) = cursor.next(self.sizes) {
                self.step(step)?;
            }
            match &demand.output {
                Some(data) if !sends => self.give(data),
                _ => Ok(()),
            }
        }
    }

    /// Finds a buffer its place: that of the program's data where it can be used, else a room, filled if it `holds` data.
    unsafe fn place(&mut self, buffer: Buffer, data: &Data, holds: bool) -> Result<(), Code> {
        let usable = match self.op {
            Some(_) => Some(data.blocks[0].at),
            None => data.plain_address(),
        };
        if let Some(at) = usable.filter(|_| !data.in_place) {
            self.places[buffer as usize] = Some(at);
            return Ok(());
        }
        let at = self.buffer(buffer);
        if !holds {
            return Ok(());
        }
        // SAFETY: the contract; the room is as large as the data.
        unsafe {
            match self.op {
                Some(_) => self.copy((data.blocks[0].at, data.blocks[0].count), at),
                None => {
                    let mut to = at;
                    for block in &data.blocks {
                        self.pack(block, to)?;
                        to += block.bytes() as usize;
                    }
                    Ok(())
                }
            }
        }
    }

    /// Hands the program what is in a room.
    unsafe fn give(&mut self, data: &Data) -> Result<(), Code> {
        let (None, None) = (self.op, data.plain_address()) else { return Ok(()) };
        let mut from = self.buffer(Buffer::Output);
        for block in &data.blocks {
            // SAFETY: the contract; the room is as large as the data.
            unsafe { self.unpack(from, block)? };
            from += block.bytes() as usize;
        }
        Ok(())
    }

    /// Where a buffer is.
    fn buffer(&mut self, buffer: Buffer) -> usize {
        if let Some(at) = self.places[buffer as usize] {
            return at;
        }
        let elements = self.member.buffer_bytes(buffer, self.sizes) / u64::from(self.member.unit);
        let room = self.room(elements);
        let at = self.rooms[room].at;
        self.places[buffer as usize] = Some(at);
        at
    }

    /// Room for that many elements.
    fn room(&mut self, elements: u64) -> usize {
        if let Some(found) = self.free.iter().position(|&room| self.rooms[room].elements >= elements) {
            return self.free.swap_remove(found);
        }
        const ALIGNED: i64 = 64;
        let last = self.layout.extent * elements.saturating_sub(1) as i64;
        let low = (last.min(0) + self.layout.true_lower).div_euclid(ALIGNED) * ALIGNED;
        let high = last.max(0) + self.layout.true_lower + self.layout.true_extent;
        let bytes = if elements == 0 { 0 } else { (high - low) + ALIGNED };
        let memory = vec![0u64; (bytes as usize).div_ceil(8)];
        let start = (memory.as_ptr() as usize).next_multiple_of(ALIGNED as usize);
        let at = start.wrapping_add_signed(-low as isize);
        self.rooms.push(Room { _memory: memory, at, elements });
        self.rooms.len() - 1
    }

    fn address(&self, at: usize, index: u64) -> usize {
        at.wrapping_add_signed((self.layout.extent as isize).wrapping_mul(index as isize))
    }

    /// The pieces of some data of a schedule's, in elements.
    fn pieces(&mut self, data: collectives::Data) -> Vec<Piece> {
        let at = self.buffer(data.buffer);
        let unit = u64::from(self.member.unit);
        let pieces = data.pieces(self.member.buffer_bytes(data.buffer, self.sizes));
        pieces.map(|(from, len)| (self.address(at, from / unit), len / unit)).collect()
    }

    unsafe fn step(&mut self, step: Step) -> Result<(), Code> {
        // SAFETY: the contract, and the schedule's proof: what is sent stays, what is received is not touched before the wait.
        unsafe {
            match step {
                Step::Send { to, data } => {
                    let pieces = self.pieces(data);
                    let whole = match pieces[..] {
                        [] => (0, 0),
                        [piece] => piece,
                        _ => {
                            let len = data.len / u64::from(self.member.unit);
                            let room = self.room(len);
                            self.leaving.push(room);
                            let whole = (self.rooms[room].at, len);
                            self.move_pieces(&pieces, &[whole], Combine::Store)?;
                            whole
                        }
                    };
                    self.post(Call::MPI_Isend, whole, to)
                }
                Step::Recv { from, data, combine } => {
                    let pieces = self.pieces(data);
                    let whole = match pieces[..] {
                        [] => (0, 0),
                        [piece] if combine == Combine::Store => piece,
                        _ => {
                            let len = data.len / u64::from(self.member.unit);
                            let room = self.room(len);
                            let whole = (self.rooms[room].at, len);
                            self.arrivals.push(Arrival { room, into: pieces, len, combine });
                            whole
                        }
                    };
                    self.post(Call::MPI_Irecv, whole, from)
                }
                Step::Wait => {
                    self.messages.wait()?;
                    self.free.append(&mut self.leaving);
                    for Arrival { room, into, len, combine } in std::mem::take(&mut self.arrivals) {
                        self.move_pieces(&[(self.rooms[room].at, len)], &into, combine)?;
                        self.free.push(room);
                    }
                    Ok(())
                }
                Step::Local { from, into, combine } => {
                    let (from, into) = (self.pieces(from), self.pieces(into));
                    self.move_pieces(&from, &into, combine)
                }
            }
        }
    }

    unsafe fn post(&mut self, function: Call, (at, count): Piece, peer: u32) -> Result<(), Code> {
        let spacing = (self.layout.size, self.layout.extent);
        // SAFETY: the contract.
        unsafe { self.messages.post(function, (at, count, self.datatype), spacing, peer) }
    }

    /// Elements into others, stored or combined; as many in all.
    unsafe fn move_pieces(&self, from: &[Piece], into: &[Piece], combine: Combine) -> Result<(), Code> {
        let mut into = into.iter().copied();
        let mut room = (0, 0);
        for &(mut at, mut left) in from {
            while left > 0 {
                if room.1 == 0 {
                    let Some(next) = into.next() else { return Ok(()) };
                    room = next;
                }
                let count = left.min(room.1);
                // SAFETY: the contract.
                unsafe {
                    match combine {
                        Combine::Store => self.copy((at, count), room.0)?,
                        // arriving ⊕ present, into present: what MPI does.
                        Combine::Before => self.reduce(at, (room.0, count))?,
                        // present ⊕ arriving comes out where the arriving was.
                        Combine::After => {
                            self.reduce(room.0, (at, count))?;
                            self.copy((at, count), room.0)?;
                        }
                    }
                }
                at = self.address(at, count);
                left -= count;
                room = (self.address(room.0, count), room.1 - count);
            }
        }
        Ok(())
    }

    unsafe fn reduce(&self, from: usize, (into, count): Piece) -> Result<(), Code> {
        let Some(op) = self.op else { return Ok(()) };
        let mut done = 0;
        while done < count {
            let part = (count - done).min(1 << 30);
            let (from, into) = (self.address(from, done) as *const u8, self.address(into, done) as *mut u8);
            // SAFETY: the contract.
            unsafe { self.mpi.reduce_local(from, into, part as usize, (self.datatype, op)) }
                .map_err(code_of)?;
            done += part;
        }
        Ok(())
    }

    /// Copies the data of elements, and nothing that is between it.
    unsafe fn copy(&self, (from, count): Piece, to: usize) -> Result<(), Code> {
        if from == to || count == 0 {
            return Ok(());
        }
        let Self { datatype, layout, .. } = *self;
        // SAFETY: the contract.
        unsafe {
            if layout.is_plain {
                std::ptr::copy(from as *const u8, to as *mut u8, (count * layout.size) as usize);
                return Ok(());
            }
            let mut packed = vec![0u8; (count * layout.size) as usize];
            let at = packed.as_mut_ptr() as usize;
            self.pack(&Block { at: from, count, datatype, layout }, at)?;
            self.unpack(at, &Block { at: to, count, datatype, layout })
        }
    }

    /// Packs a block to where there is room for its bytes.
    unsafe fn pack(&self, block: &Block, to: usize) -> Result<(), Code> {
        // SAFETY: the contract.
        parts(block, |elements, count, (from, len)| unsafe {
            let place = ((to + from) as *mut u8, len);
            match self.mpi.pack((elements, count, block.datatype), place, self.comm) {
                Ok(written) if written == len => Ok(()),
                // Not the data's bytes alone: this MPI packs in a way of its own.
                Ok(_) => Err(mpi_abi::ERR_NO_SUCH_FUNCTION),
                Err(error) => Err(code_of(error)),
            }
        })
    }

    /// Unpacks the bytes of a block.
    unsafe fn unpack(&self, from: usize, block: &Block) -> Result<(), Code> {
        // SAFETY: the contract.
        parts(block, |elements, count, (at, len)| unsafe {
            let into = (elements, count, block.datatype);
            self.mpi.unpack(((from + at) as *const u8, len), into, self.comm).map_err(code_of)
        })
    }
}

/// A block in parts that are small enough: the address of each part's first element, its elements, and the place and number of its bytes.
fn parts(
    block: &Block,
    mut each: impl FnMut(usize, i32, (usize, i32)) -> Result<(), Code>,
) -> Result<(), Code> {
    let size = block.layout.size;
    if size == 0 {
        return Ok(());
    }
    let most = (MOST_PACKED / size).max(1);
    let mut done = 0;
    while done < block.count {
        let count = (block.count - done).min(most);
        // One element of more than 2 GiB cannot be packed.
        let len = i32::try_from(count * size).map_err(|_| mpi_abi::ERR_NO_SUCH_FUNCTION)?;
        each(block.element(done), count as i32, ((done * size) as usize, len))?;
        done += count;
    }
    Ok(())
}
