//! The state of the program's handles.

use crate::comms::Comms;
use crate::pending::Pending;
use crate::requests::Template;
use crate::table::HandleMap;
use vef_format::capture::event::{Datatype, DatatypeId};
use vef_format::units::Bytes;

/// The state of all handles.
pub(crate) struct Known {
    pub(crate) comms: Comms,
    pub(crate) types: Types,
    pub(crate) windows: Numbers,
    pub(crate) files: Numbers,
    pub(crate) requests: Pending,
    /// Matched messages by handle.
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

/// The properties of a datatype that recording needs.
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

/// The known datatypes.
#[derive(Debug, Default)]
pub(crate) struct Types {
    known: HandleMap<Type>,
    /// The result of the last look-up.
    last: (usize, Type),
    next: u32,
}

impl Types {
    /// The datatype of `handle`, if it is known.
    #[inline(always)]
    pub(crate) fn get(&mut self, handle: usize) -> Option<Type> {
        if self.last.0 != handle || handle == 0 {
            self.last = (handle, *self.known.get(handle)?);
        }
        Some(self.last.1)
    }

    /// Assigns a number to the datatype of `handle`.
    pub(crate) fn add(&mut self, handle: usize, described: &Datatype<'_>) -> Type {
        let found = Type { id: DatatypeId(self.next), sparse: !described.contiguous, size: described.size.0 };
        self.next += 1;
        self.known.insert(handle, found);
        found
    }

    /// Removes a handle that was freed or reused; returns its datatype.
    pub(crate) fn forget(&mut self, handle: usize) -> Option<Type> {
        self.last = (0, Type::default());
        self.known.remove(handle)
    }
}

/// Numbers of windows or of files.
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

/// The templates of persistent requests.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: HandleMap<u32>,
    list: Vec<Option<Template>>,
    /// Free places of the list.
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

    /// Removes a template; [`Templates::insert`] puts it back.
    pub(crate) fn remove(&mut self, handle: usize) -> Option<Template> {
        let place = self.known.remove(handle)?;
        self.free.push(place);
        self.list[place as usize].take()
    }

    /// Whether the request is persistent.
    pub(crate) fn has(&self, handle: usize) -> bool {
        self.known.get(handle).is_some()
    }
}
