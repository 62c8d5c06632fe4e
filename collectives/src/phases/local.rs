//! Steps in memory: what moves between the buffers before and after the messages.

use super::local;
use crate::phase::Next;
use crate::{Buffer, Combine, Cursor, Sizes};

impl Cursor {
    pub(crate) fn copy_in(&self, buffer: Buffer) -> Next {
        match self.pos {
            0 => local((Buffer::Input, self.all()), (buffer, self.all()), Combine::Store),
            _ => Next::Done,
        }
    }

    pub(crate) fn copy_own(&self, sizes: Sizes<'_>) -> Next {
        let own = self.piece(sizes, self.rank);
        match self.pos {
            0 => local((Buffer::Input, (0, own.1)), (Buffer::Output, own), Combine::Store),
            _ => Next::Done,
        }
    }

    pub(crate) fn copy_own_pair(&self, sizes: Sizes<'_>) -> Next {
        let own = self.piece(sizes, self.rank);
        let (place, _) = self.block_from(sizes, self.rank);
        match self.pos {
            0 => local((Buffer::Input, own), (Buffer::Output, (place, own.1)), Combine::Store),
            _ => Next::Done,
        }
    }

    pub(crate) fn take_own(&self, sizes: Sizes<'_>) -> Next {
        let held = if self.operation.reduces() { Buffer::Work } else { Buffer::Input };
        let own = self.piece(sizes, self.rank);
        match self.pos {
            0 => local((held, own), (Buffer::Output, (0, own.1)), Combine::Store),
            _ => Next::Done,
        }
    }
}
