//! What is known of the handles of a program.

use crate::comms::Comms;
use crate::pending::Pending;
use crate::requests::Template;
use crate::table::HandleMap;
use vef_format::capture::event::{Datatype, DatatypeId};
use vef_format::units::Bytes;

/// What is known of handles.
pub(crate) struct Known {
    pub(crate) comms: Comms,
    pub(crate) types: Types,
    pub(crate) windows: Numbers,
    pub(crate) files: Numbers,
    pub(crate) requests: Pending,
    /// Matched messages, by message handle.
    pub(crate) messages: Pending,
    pub(crate) templates: Templates,
}

impl Known {
    pub(crate) fn new() -> Self {
        Self {
            comms: Comms::new(),
            types: Types::default(),
            windows: Numbers::default(),
            files: Numbers::default(),
            requests: Pending::new(),
            messages: Pending::new(),
            templates: Templates::default(),
        }
    }
}

/// What recording a call needs of a datatype.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Type {
    pub(crate) id: DatatypeId,
    /// Whether its elements have gaps.
    pub(crate) sparse: bool,
    /// Bytes of one element.
    pub(crate) size: u64,
}

impl Type {
    /// Bytes of `count` elements.
    #[inline(always)]
    pub(crate) fn bytes(self, count: i64) -> Bytes {
        Bytes(self.size.wrapping_mul(count as u64))
    }
}

/// The datatypes seen so far.
#[derive(Debug, Default)]
pub(crate) struct Types {
    known: HandleMap<Type>,
    /// The one asked for last.
    last: (usize, Type),
    next: u32,
}

impl Types {
    /// The datatype behind `handle`, if it is known.
    #[inline(always)]
    pub(crate) fn get(&mut self, handle: usize) -> Option<Type> {
        if self.last.0 != handle || handle == 0 {
            self.last = (handle, *self.known.get(handle)?);
        }
        Some(self.last.1)
    }

    /// Numbers the datatype behind `handle`.
    pub(crate) fn add(&mut self, handle: usize, described: &Datatype<'_>) -> Type {
        let found = Type { id: DatatypeId(self.next), sparse: !described.contiguous, size: described.size.0 };
        self.next += 1;
        self.known.insert(handle, found);
        found
    }

    /// The handle was freed, or means another datatype now; what it was.
    pub(crate) fn forget(&mut self, handle: usize) -> Option<Type> {
        self.last = (0, Type::default());
        self.known.remove(handle)
    }
}

/// Numbers of windows or files.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    known: HandleMap<u32>,
    next: u32,
}

impl Numbers {
    pub(crate) fn get(&self, handle: usize) -> Option<u32> {
        self.known.get(handle).copied()
    }

    pub(crate) fn add(&mut self, handle: usize) -> u32 {
        let number = self.next;
        self.next += 1;
        self.known.insert(handle, number);
        number
    }

    pub(crate) fn forget(&mut self, handle: usize) -> Option<u32> {
        self.known.remove(handle)
    }
}

/// What persistent requests do.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: HandleMap<u32>,
    list: Vec<Option<Template>>,
    /// Places of the list that are free.
    free: Vec<u32>,
}

impl Templates {
    pub(crate) fn insert(&mut self, handle: usize, template: Template) {
        self.remove(handle);
        let place = self.free.pop().unwrap_or_else(|| {
            self.list.push(None);
            self.list.len() as u32 - 1
        });
        self.list[place as usize] = Some(template);
        self.known.insert(handle, place);
    }

    /// Takes it out, to be put back by [`Templates::insert`].
    pub(crate) fn remove(&mut self, handle: usize) -> Option<Template> {
        let place = self.known.remove(handle)?;
        self.free.push(place);
        self.list[place as usize].take()
    }

    /// Whether the request is a persistent one.
    pub(crate) fn has(&self, handle: usize) -> bool {
        self.known.get(handle).is_some()
    }
}
