//! What the rules for probes and creations keep, by function of the call table.

use crate::index::{ChannelIndex, ReceiveIndex};
use ::collectives::creations::{Library, Part};
use vef_format::capture;
use vef_format::capture::event::CallSlot;

/// The probes of one task.
#[derive(Debug)]
pub(super) struct Probes {
    /// Slots of the functions whose probes take the message; the recorder writes these as posted receives.
    matched: Vec<CallSlot>,
    /// Slots of the functions that look for messages without waiting.
    looking: Vec<CallSlot>,
    /// The probes so far. Each has an index among the receives of the task, which stands for the message that it found, and the
    /// channel of that message.
    pub(super) made: Vec<(ReceiveIndex, ChannelIndex)>,
}

impl Probes {
    /// No probes yet, of a rank with these functions in its call table.
    pub(super) fn new(functions: &[capture::Function]) -> Self {
        let slots = |names: [&str; 2]| {
            let slots = (0..).map(CallSlot).zip(functions);
            slots.filter(|(_, function)| names.contains(&&*function.name)).map(|(slot, _)| slot).collect()
        };
        let (matched, looking) = (slots(["MPI_Mprobe", "MPI_Improbe"]), slots(["MPI_Iprobe", "MPI_Improbe"]));
        Self { matched, looking, made: Vec::new() }
    }

    /// Whether failed polls by this function looked for messages.
    pub(super) fn look_for_messages(&self, call: CallSlot) -> bool {
        self.looking.contains(&call)
    }

    /// Whether a call that posts a receive is a matched probe.
    #[inline(always)]
    pub(super) fn are_by(&self, call: CallSlot) -> bool {
        self.matched.contains(&call)
    }
}

/// Whether a function ends a split access to a file.
pub(super) fn ends_access(function: &str) -> bool {
    function.starts_with("MPI_File_") && function.ends_with("_end")
}

/// The collectives by which MPI agrees on communicators, by slot of the call table.
#[derive(Debug)]
pub(super) struct Agreements {
    parts: Vec<&'static [Part]>,
    /// Whether creations are what the library sends, not computing.
    are_sent: bool,
    /// Slots of the functions that access files at the shared pointer.
    shared: Vec<CallSlot>,
    /// Slots of the functions that wait until the bytes of a file are stored.
    storing: Vec<CallSlot>,
    /// Slots of the functions that end a split access to a file.
    ending: Vec<CallSlot>,
}

impl Agreements {
    /// Of a rank with these functions in its call table; `library`: `None`, if creations are computing.
    pub(super) fn new(library: Option<Library>, functions: &[capture::Function]) -> Self {
        let agreement = |library: Library| functions.iter().map(move |call| library.agreement(&call.name));
        let is_shared = |name: &str| name.contains("_ordered") || name.contains("_shared");
        let slots = |of: &dyn Fn(&str) -> bool| {
            let slots = (0..).map(CallSlot).zip(functions);
            slots.filter(|(_, call)| of(&call.name)).map(|(slot, _)| slot).collect()
        };
        Self {
            parts: library.into_iter().flat_map(agreement).collect(),
            are_sent: library.is_some(),
            shared: slots(&is_shared),
            storing: slots(&|name| name.starts_with("MPI_File_sync")),
            ending: slots(&ends_access),
        }
    }

    /// Whether two groups agree by messages.
    pub(super) fn are_sent(&self) -> bool {
        self.are_sent
    }

    /// Whether a call accesses a file at the shared pointer.
    pub(super) fn are_at_shared_pointer(&self, call: CallSlot) -> bool {
        self.shared.contains(&call)
    }

    /// Whether a call waits until the bytes of a file are stored.
    pub(super) fn are_of_storing(&self, call: CallSlot) -> bool {
        self.storing.contains(&call)
    }

    /// Whether a call ends a split access to a file, which began with all of its requests.
    pub(super) fn are_of_ending(&self, call: CallSlot) -> bool {
        self.ending.contains(&call)
    }

    /// Those of a call; empty, if it creates no communicator.
    pub(super) fn of(&self, call: CallSlot) -> &'static [Part] {
        call.index().and_then(|slot| self.parts.get(slot)).copied().unwrap_or_default()
    }
}
