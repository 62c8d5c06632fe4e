//! Steps in memory: what moves between the buffers before and after the messages.

use crate::Buffer::{self, Input, Output, Work};
use crate::cursor::{Cursor, Next};
use crate::program::local;
use crate::{Combine, Sizes};

impl Cursor {
    /// The whole input into a buffer.
    pub(crate) fn copy_in(&self, buffer: Buffer, _: Sizes<'_>) -> Next {
        match self.pos {
            0 => local((Input, self.all()), (buffer, self.all()), Combine::Store),
            _ => Next::Done,
        }
    }

    /// The input, one block, to its place in the output.
    pub(crate) fn copy_own(&self, sizes: Sizes<'_>) -> Next {
        let own = self.piece(sizes, self.rank);
        match self.pos {
            0 => local((Input, (0, own.1)), (Output, own), Combine::Store),
            _ => Next::Done,
        }
    }

    /// The rank's block of input (scatter) or work (reduce-scatter) to the output.
    pub(crate) fn take_own(&self, sizes: Sizes<'_>) -> Next {
        let held = if self.operation.reduces() { Work } else { Input };
        let own = self.piece(sizes, self.rank);
        match self.pos {
            0 => local((held, own), (Output, (0, own.1)), Combine::Store),
            _ => Next::Done,
        }
    }
}
