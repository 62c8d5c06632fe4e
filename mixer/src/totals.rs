//! The summary of a mix, from the counts of all tasks.

use crate::agreement::Operations;
use crate::counts::Counts;
use crate::error::MixError;
use crate::matching::Matched;
use crate::summary::{Dropped, Summary};
use vef_format::units::Bytes;

impl Summary {
    /// Takes over the counts of all tasks.
    pub(crate) fn add_counts(&mut self, counts: Counts) {
        macro_rules! set {
            ($($name:ident)+) => { $(self.$name = counts.$name;)+ };
        }
        set!(events messages marks local_collectives agreements threaded answering negative_times unknown_requests);
        set!(never_completed found_only skipped_unknown torn spent not_representable killed stopped unrecorded unbegun);
        set!(never_synchronised outside_windows shared_windows answered_outside);
        set!(partitions_not_ready partitions_inactive partitioned_sizes);
        self.bytes = Bytes(counts.bytes);
    }

    /// Takes over the result of matching all tasks, of which collectives have these `operations`; unmatched messages are an error
    /// unless `lenient`.
    pub(crate) fn add_matched(
        &mut self,
        matched: Matched,
        operations: &[Operations],
        lenient: bool,
    ) -> Result<(), MixError> {
        if !matched.unmatched.is_empty() && !lenient {
            return Err(MixError::Unmatched(Box::new(matched.unmatched)));
        }
        self.matched = matched.matched;
        self.never_synchronised = self.never_synchronised.saturating_add(matched.never_synchronised);
        self.dropped = Dropped {
            sends: matched.unmatched.sends,
            cancelled: matched.cancelled,
            empty_self: matched.empty_self,
            collectives: operations.iter().map(|operations| operations.incomplete_parts).sum(),
        };
        self.bytes.0 = self.bytes.0.saturating_sub(matched.dropped_bytes);
        self.unmatched = matched.unmatched;
        self.messages -= self.dropped.sends + self.dropped.cancelled + self.dropped.empty_self;
        self.local_collectives -= self.dropped.collectives;
        self.collectives = operations.iter().map(|operations| operations.complete).sum();
        self.records = self.messages + self.marks + self.local_collectives;
        let most = u64::from(u32::MAX - 2);
        match self.messages + self.marks > most || self.collectives > most {
            true => Err(MixError::TooMany("lines of one kind")),
            false => Ok(()),
        }
    }
}
