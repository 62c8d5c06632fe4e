//! What imports and exports tell while they work.

/// Shows how far an import or export is.
pub trait Progress: Sync {
    /// `done` of `total` units, mostly bytes, are done.
    fn set(&self, done: u64, total: u64);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn set(&self, _: u64, _: u64) {}
}
