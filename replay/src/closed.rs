//! Which jobs were opened beside those of the builder, and which of them are closed.

use std::collections::BTreeSet;
use vef_format::units::Picos;

/// The jobs of an engine that were opened beside those of its builder.
#[derive(Debug)]
pub(crate) struct Instances {
    /// Jobs of the builder, the first ones.
    pub(crate) built: u32,
    /// Those that are closed, by number.
    pub(crate) closed: BTreeSet<u32>,
    /// When the last task of any closed one finished.
    pub(crate) finish: Picos,
}

impl Instances {
    pub(crate) fn beside(built: u32) -> Self {
        Self { built, closed: BTreeSet::new(), finish: Picos::ZERO }
    }

    pub(crate) fn is_closed(&self, job: u32) -> bool {
        self.closed.contains(&job)
    }
}
