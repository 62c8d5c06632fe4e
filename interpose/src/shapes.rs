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
/// Members of the longest key.
const HANDLES: usize = 3;
const COUNTS: usize = 2;
const INTS: usize = 4;

/// What tells calls of a function apart: its arguments as they came, but for buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<const H: usize, const C: usize, const I: usize> {
    pub(crate) handles: [u64; H],
    pub(crate) counts: [i64; C],
    pub(crate) ints: [i32; I],
}

/// A [`Key`] of any size.
pub(crate) trait AnyKey: Copy {
    /// Where it is looked for first.
    fn home(&self, function: Function) -> usize;

    /// Whether it is this slot's.
    fn is_in(&self, slot: &Slot) -> bool;

    /// Makes it the slot's.
    fn put_into(&self, slot: &Slot);
}

impl<const H: usize, const C: usize, const I: usize> AnyKey for Key<H, C, I> {
    #[inline(always)]
    fn home(&self, function: Function) -> usize {
        // Several, so that each is part of its instruction.
        const ODD: [u32; INTS + 1] = [0x9e37_79b1, 0x85eb_ca6b, 0xc2b2_ae35, 0x27d4_eb2f, 0x1656_67b1];
        let mut mixed = function.0;
        for (i, handle) in self.handles.iter().enumerate() {
            mixed = mixed.wrapping_add((*handle as u32) << i);
        }
        for (i, count) in self.counts.iter().enumerate() {
            mixed = mixed.wrapping_add((*count as u32) << (2 + i));
        }
        for (int, odd) in self.ints.iter().zip(ODD) {
            mixed = mixed.wrapping_mul(odd).wrapping_add(*int as u32);
        }
        (mixed.wrapping_mul(ODD[I]) >> (u32::BITS - SLOTS.trailing_zeros())) as usize
    }

    #[inline(always)]
    fn is_in(&self, slot: &Slot) -> bool {
        // One by one: what makes one long word of them takes longer than it saves.
        let (handles, counts, ints) = (slot.handles.get(), slot.counts.get(), slot.ints.get());
        (0..I).all(|i| ints[i] == self.ints[i])
            && (0..C).all(|i| counts[i] == self.counts[i])
            && (0..H).all(|i| handles[i] == self.handles[i])
    }

    fn put_into(&self, slot: &Slot) {
        slot.handles.set(std::array::from_fn(|i| self.handles.get(i).copied().unwrap_or_default()));
        slot.counts.set(std::array::from_fn(|i| self.counts.get(i).copied().unwrap_or_default()));
        slot.ints.set(std::array::from_fn(|i| self.ints.get(i).copied().unwrap_or_default()));
    }
}

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
pub(crate) struct Slot {
    handles: Cell<[u64; HANDLES]>,
    counts: Cell<[i64; COUNTS]>,
    ints: Cell<[i32; INTS]>,
    /// 0: empty. Another lane that frees a handle may empty the slot.
    function: AtomicU32,
    head: Cell<Head>,
    flags: Cell<u8>,
}
const _: () = assert!(size_of::<Slot>() == 64);

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
            handles: Cell::default(),
            counts: Cell::default(),
            ints: Cell::default(),
            function: AtomicU32::new(0),
            head: Cell::new(Head::shape(0)),
            flags: Cell::new(0),
        };
        Self { slots: forever(slot), parts: forever(Parts::default) }
    }

    #[inline(always)]
    fn at(self, place: usize, function: Function, key: &impl AnyKey) -> Option<Shape> {
        // SAFETY: every place is below SLOTS, the number of slots.
        let slot = unsafe { self.slots.get_unchecked(place) };
        let same = slot.function.load(Ordering::Relaxed) == function.0 && key.is_in(slot);
        same.then_some(Shape(slot))
    }

    /// The shape of a call with these arguments, where it is looked for first.
    #[inline(always)]
    pub(crate) fn find(self, function: Function, key: &impl AnyKey) -> Option<Shape> {
        self.at(key.home(function), function, key)
    }

    /// As [`Shapes::find`], also where it would be if another took its place.
    pub(crate) fn find_anywhere(self, function: Function, key: &impl AnyKey) -> Option<Shape> {
        let home = key.home(function);
        self.at(home, function, key).or_else(|| self.at(home ^ 1, function, key))
    }

    /// The number that a new shape of calls with these arguments gets.
    pub(crate) fn choose(&self, function: Function, key: &impl AnyKey) -> u16 {
        let home = key.home(function);
        let is_free = |place: &usize| self.slots[*place].function.load(Ordering::Relaxed) == 0;
        // The newest is the most likely to come again: it gets the place where it is found first.
        [home, home ^ 1].into_iter().find(is_free).unwrap_or(home) as u16
    }

    /// From now on calls with these arguments have the shape `number`, which was defined by a record of `action`.
    pub(crate) fn keep(
        &self,
        number: u16,
        function: Function,
        key: &impl AnyKey,
        action: &Action<'_>,
        flags: u8,
    ) {
        let (comm, datatypes) = match action {
            Action::Send(send) => (send.comm, [send.datatype; 2]),
            Action::Receive(receive) => (receive.comm, [receive.datatype; 2]),
            Action::PostReceive(post) => (post.comm, [post.datatype; 2]),
            Action::Exchange { send, receive } => (send.comm, [send.datatype, receive.datatype]),
            Action::Collective(part) => {
                (part.comm, [part.datatype, part.recv_datatype.unwrap_or(part.datatype)])
            }
            _ => return,
        };
        let place = usize::from(number) % SLOTS;
        let (slot, parts) = (&self.slots[place], &self.parts[place]);
        key.put_into(slot);
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
