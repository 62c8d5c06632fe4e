//! What calls of a lane were like, by their arguments as they came: a call that is like an earlier one need not be looked into.
//!
//! A shape is what a record says but for its times. The first call of a kind defines one ([`Shapes::keep`]), which the
//! arguments themselves then find ([`Shapes::find`]), handles and all; so a handle that is freed takes its shapes along
//! ([`Shapes::forget`]). There are two places for each shape; a third that wants them displaces one, which costs
//! space in the file, no more.

use crate::wrap::{Language, Row};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use vef_format::capture::event::{Action, DatatypeId};
use vef_format::capture::word::{Head, SHAPES};
use vef_format::ids::CommId;

/// How many shapes a lane keeps; a power of two.
const SLOTS: usize = 1024;
const _: () = assert!(SLOTS <= SHAPES as usize && SLOTS.is_power_of_two());
/// Words of the longest key.
const KEY: usize = 7;

/// A function, called in a language.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Function(u32);

impl Function {
    #[inline(always)]
    pub(crate) const fn of<R: Row, L: Language>() -> Self {
        // Never 0; the same handles are other words in the other language.
        Self((R::CALL as u32 + 1) << 1 | L::FIRST_INDEX as u32)
    }
}

/// A shape that was found.
#[derive(Clone, Copy)]
pub(crate) struct Shape(&'static Slot);

impl Shape {
    /// The word of such a call.
    #[inline(always)]
    pub(crate) fn head(self) -> Head {
        self.0.head.get()
    }

    /// What is to be remembered of the request that such a call makes: flags of `Waiting`.
    #[inline(always)]
    pub(crate) fn flags(self) -> u8 {
        self.0.flags.get()
    }
}

/// One cache line.
#[repr(C, align(64))]
struct Slot {
    key: Cell<[u64; KEY]>,
    /// 0: empty. Another lane that frees a handle may empty the slot.
    function: AtomicU32,
    head: Cell<Head>,
    flags: Cell<u8>,
}

/// What a shape is made of, for the day when that is freed; ids plus one, or 0.
#[derive(Default)]
struct Parts {
    comm: AtomicU32,
    datatypes: [AtomicU32; 2],
}

/// The shapes of a lane.
#[derive(Clone, Copy)]
pub(crate) struct Shapes {
    slots: &'static [Slot; SLOTS],
    parts: &'static [Parts; SLOTS],
}

// SAFETY: all but `forget`, which looks at atomics alone, is called by the lane whose shapes these are.
unsafe impl Sync for Slot {}

impl Shapes {
    pub(crate) fn new() -> Self {
        let slot = || Slot {
            key: Cell::new([0; KEY]),
            function: AtomicU32::new(0),
            head: Cell::new(Head::shape(0)),
            flags: Cell::new(0),
        };
        Self { slots: forever(slot), parts: forever(Parts::default) }
    }

    /// Where a key is looked for first.
    #[inline(always)]
    fn home<const K: usize>(function: Function, key: &[u64; K]) -> usize {
        let mut mixed = u64::from(function.0);
        for word in key {
            mixed = mixed.rotate_left(15) ^ word;
        }
        (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS.trailing_zeros())) as usize
    }

    #[inline(always)]
    fn at<const K: usize>(self, place: usize, function: Function, key: &[u64; K]) -> Option<Shape> {
        // SAFETY: every place is below SLOTS, the number of slots.
        let slot = unsafe { self.slots.get_unchecked(place) };
        let mut same = slot.function.load(Ordering::Relaxed) == function.0;
        for (own, word) in slot.key.get().iter().zip(key) {
            same = same && own == word;
        }
        same.then_some(Shape(slot))
    }

    /// The shape of a call with these arguments, where it is looked for first.
    #[inline(always)]
    pub(crate) fn find<const K: usize>(self, function: Function, key: &[u64; K]) -> Option<Shape> {
        self.at(Self::home(function, key), function, key)
    }

    /// As [`Shapes::find`], also where it would be if another took its place.
    pub(crate) fn find_anywhere<const K: usize>(self, function: Function, key: &[u64; K]) -> Option<Shape> {
        let home = Self::home(function, key);
        self.at(home, function, key).or_else(|| self.at(home ^ 1, function, key))
    }

    /// The number that a new shape of calls with these arguments gets.
    pub(crate) fn choose<const K: usize>(&self, function: Function, key: &[u64; K]) -> u16 {
        let home = Self::home(function, key);
        let is_free = |place: &usize| self.slots[*place].function.load(Ordering::Relaxed) == 0;
        // The newest is the most likely to come again: it gets the place where it is found first.
        [home, home ^ 1].into_iter().find(is_free).unwrap_or(home) as u16
    }

    /// From now on calls with these arguments have the shape `number`, which was defined by a record of `action`.
    pub(crate) fn keep<const K: usize>(
        &self,
        number: u16,
        function: Function,
        key: &[u64; K],
        action: &Action<'_>,
        flags: u8,
    ) {
        let (comm, datatypes) = match action {
            Action::Send(send) => (send.comm, [send.datatype; 2]),
            Action::Receive(receive) => (receive.comm, [receive.datatype; 2]),
            Action::PostReceive(post) => (post.comm, [post.datatype; 2]),
            Action::Exchange { send, receive } => (send.comm, [send.datatype, receive.datatype]),
            Action::Collective(part) => (part.comm, [part.datatype; 2]),
            _ => return,
        };
        let place = usize::from(number) % SLOTS;
        let (slot, parts) = (&self.slots[place], &self.parts[place]);
        let mut words = [0; KEY];
        words[..K].copy_from_slice(key);
        slot.key.set(words);
        slot.flags.set(flags);
        slot.head.set(Head::shape(number));
        parts.comm.store(comm.0 + 1, Ordering::Relaxed);
        for (part, datatype) in parts.datatypes.iter().zip(datatypes) {
            part.store(datatype.0 + 1, Ordering::Relaxed);
        }
        slot.function.store(function.0, Ordering::Relaxed);
    }

    /// The communicator or datatype is freed, and its handle may come to mean another. Any thread may call this: who uses a
    /// handle that another thread frees has agreed with it that this is over, and so has seen the slots empty
    /// before the handle means something new.
    pub(crate) fn forget(&self, comm: Option<CommId>, datatype: Option<DatatypeId>) {
        let comm = comm.map(|comm| comm.0 + 1);
        let datatype = datatype.map(|datatype| datatype.0 + 1);
        for (slot, parts) in self.slots.iter().zip(self.parts) {
            let is = |part: &AtomicU32, freed: Option<u32>| freed == Some(part.load(Ordering::Relaxed));
            if is(&parts.comm, comm) || parts.datatypes.iter().any(|part| is(part, datatype)) {
                slot.function.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// As many as there are slots; a lane is never freed.
fn forever<T>(make: impl Fn() -> T) -> &'static [T; SLOTS] {
    let list: Box<[T]> = std::iter::repeat_with(make).take(SLOTS).collect();
    match <&[T; SLOTS]>::try_from(&*Box::leak(list)) {
        Ok(list) => list,
        Err(_) => unreachable!("it was made that long"),
    }
}
