//! The version of the layout.

/// The version of containers that this program writes, major and minor; it reads all minor versions of the major one.
pub const VERSION: (u8, u16) = (4, 0);
