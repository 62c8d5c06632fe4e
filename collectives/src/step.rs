//! One step of one rank, and how it names the bytes it moves.
//!
//! Three buffers are known by every schedule. [`Buffer::Input`] and [`Buffer::Output`] are MPI's send and
//! receive buffers, blocks in rank order without gaps; where MPI gives a rank none (the output of a reduction
//! elsewhere than at the root, say), whoever executes the steps lends one of the same size, because inner
//! nodes of trees keep data in transit there. [`Buffer::Work`] and [`Buffer::Arrival`] are scratch.
//! [`crate::Member::buffer_bytes`] tells how large each is.

/// What a rank does next.
///
/// Posting never blocks; [`Step::Wait`] does. Between one pair of ranks messages do not overtake: the n-th
/// send from a to b meets the n-th receive at b from a, within one collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Post a message. Its bytes are `data.len`, its contents what `data` holds now; they stay untouched up to the next wait.
    Send {
        /// Receiver, a rank of the communicator.
        to: u32,
        /// What is sent.
        data: Data,
    },
    /// Post a receive. It takes effect at the next wait, receives in the order in which they were posted.
    Recv {
        /// Sender, a rank of the communicator.
        from: u32,
        /// Where it goes. The sender decides how long the message is; `len` equals that unless the
        /// sizes are [`crate::Sizes::Sums`], when it is the receiver's guess.
        data: Data,
        /// Whether it replaces what is there or is reduced with it.
        combine: Combine,
    },
    /// Everything posted since the last wait completes before anything later starts.
    Wait,
    /// Work in memory, done at once.
    Local {
        /// Source.
        from: Data,
        /// Destination, of the same length.
        into: Data,
        /// Whether it replaces what is there or is reduced with it.
        combine: Combine,
    },
}

/// How arriving data meets the data in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// It replaces it.
    Store,
    /// arriving ⊕ present: the arriving contributions belong to lower ranks.
    Before,
    /// present ⊕ arriving: the arriving contributions belong to higher ranks.
    After,
}

/// A buffer of a rank. See the module's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Buffer {
    /// What the rank contributes.
    Input,
    /// What the rank obtains.
    Output,
    /// Scratch that lives through the collective.
    Work,
    /// Scratch for one arriving message.
    Arrival,
}

/// A set of bytes of one buffer, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// The buffer.
    pub buffer: Buffer,
    /// First byte, below the buffer's size (or 0).
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Where the bytes after the first are.
    pub layout: Layout,
}

/// Where the bytes of a [`Data`] lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One after another; after the buffer's last byte comes its first.
    Cyclic,
    /// `run` bytes taken, `run` bytes left out, and so on.
    EveryOther {
        /// Bytes of one run.
        run: u64,
    },
    /// Blocks of `block` bytes, each forward, taken one *before* the other from the block at `offset` on;
    /// before the buffer's first block comes its last.
    Backwards {
        /// Bytes of one block.
        block: u64,
    },
}

impl Data {
    pub(crate) const fn new(buffer: Buffer, (offset, len): (u64, u64)) -> Data {
        Data { buffer, offset, len, layout: Layout::Cyclic }
    }

    /// The contiguous pieces (offset, length) in order, none empty; `size` is the buffer's size in bytes.
    pub fn pieces(self, size: u64) -> impl Iterator<Item = (u64, u64)> {
        let (mut offset, mut left) = (self.offset, self.len);
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let at = offset;
            let len = match self.layout {
                Layout::Cyclic => {
                    offset = 0;
                    left.min(size.saturating_sub(at))
                }
                Layout::EveryOther { run } => {
                    offset += 2 * run;
                    left.min(run)
                }
                Layout::Backwards { block } => {
                    offset = if at >= block { at - block } else { size.saturating_sub(block) };
                    left.min(block)
                }
            };
            left -= len;
            (len > 0).then_some((at, len))
        })
    }
}
