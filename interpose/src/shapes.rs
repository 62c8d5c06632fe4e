//! Calls that are alike, by their arguments as they came: a call that is like an earlier one need not be looked into.
//!
//! A shape is what a record says but for its times. The first call of a kind defines one ([`Shapes::keep`]), which the
//! arguments themselves then find ([`Shapes::find`]), handles and all; so a handle that is freed takes its shapes along
//! ([`Shapes::forget`]). There are two places for each shape; a third that wants them displaces one, which costs
//! space in the file, no more.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vef_format::capture::word::{Head, SHAPES};

/// How many shapes a lane keeps; a power of two.
const SLOTS: usize = 1024;
const _: () = assert!(SLOTS <= SHAPES as usize && SLOTS.is_power_of_two());

/// Words of the longest key.
pub(crate) const KEY: usize = 12;

/// What tells a call from others: which name it was called by, and its arguments as they came, but for buffers.
pub(crate) struct Key {
    /// The number of the name, and in the lowest bit whether a buffer is `MPI_IN_PLACE`. Never 0.
    pub(crate) name: u32,
    pub(crate) words: [u64; KEY],
}

/// Where a key is looked for first. Words of 0 at the end may be left out.
#[inline(always)]
fn home(name: u32, words: &[u64]) -> usize {
    /// Odd numbers without a pattern: the powers of one.
    const ODD: [u32; KEY + 1] = {
        let mut list = [0x9e37_79b1u32; KEY + 1];
        let mut i = 1;
        while i < list.len() {
            list[i] = list[i - 1].wrapping_mul(list[0]);
            i += 1;
        }
        list
    };
    let mixed = words.iter().zip(ODD).fold(name.wrapping_mul(ODD[KEY]), |sum, (word, odd)| {
        sum.wrapping_add((*word as u32).wrapping_mul(odd))
    });
    (mixed >> (u32::BITS - SLOTS.trailing_zeros())) as usize
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

/// Two cache lines, of which most calls need the first.
#[repr(C, align(128))]
struct Slot {
    /// 0: empty. Another lane that frees a handle may empty the slot.
    name: AtomicU32,
    head: Cell<Head>,
    flags: Cell<u8>,
    words: Cell<[u64; KEY]>,
}
const _: () = assert!(size_of::<Slot>() == 128);

/// Something that a shape is made of, by its number, for the day when that is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Comm(u32),
    Datatype(u32),
    Window(u32),
    File(u32),
}

impl Part {
    /// Never 0.
    fn code(self) -> u64 {
        let (class, number) = match self {
            Self::Comm(number) => (1, number),
            Self::Datatype(number) => (2, number),
            Self::Window(number) => (3, number),
            Self::File(number) => (4, number),
        };
        class << u32::BITS | u64::from(number)
    }
}

/// How many parts a shape can have.
pub(crate) const PARTS: usize = 4;

/// The codes of a shape's parts, or 0.
type Parts = [AtomicU64; PARTS];

/// The shapes of a lane. Never freed: other lanes know them.
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
            words: Cell::default(),
            name: AtomicU32::new(0),
            head: Cell::new(Head::shape(0)),
            flags: Cell::new(0),
        };
        Self { slots: forever(slot), parts: forever(Parts::default) }
    }

    #[inline(always)]
    fn at(self, place: usize, name: u32, words: &[u64]) -> Option<Shape> {
        // SAFETY: every place is below SLOTS, the number of slots.
        let slot = unsafe { self.slots.get_unchecked(place) };
        let known = slot.words.get();
        // Without branches.
        let differs = u64::from(slot.name.load(Ordering::Relaxed) ^ name);
        let differs = words.iter().zip(known).fold(differs, |all, (word, known)| all | (word ^ known));
        (differs == 0).then_some(Shape(slot))
    }

    /// The shape of calls with such a key. Words that are 0 in all keys with that name may be left out.
    #[inline(always)]
    pub(crate) fn find(self, name: u32, words: &[u64]) -> Option<Shape> {
        let home = home(name, words);
        self.at(home, name, words).or_else(|| self.at(home ^ 1, name, words))
    }

    /// The number that a new shape of calls with these arguments gets.
    pub(crate) fn choose(self, key: &Key) -> u16 {
        let home = home(key.name, &key.words);
        let is_free = |place: &usize| self.slots[*place].name.load(Ordering::Relaxed) == 0;
        // The newest is the most likely to come again: it gets the place where it is found first.
        [home, home ^ 1].into_iter().find(is_free).unwrap_or(home) as u16
    }

    /// From now on calls with these arguments have the shape `number`, which is made of `parts`.
    pub(crate) fn keep(self, number: u16, key: &Key, parts: [Option<Part>; PARTS], flags: u8) {
        let place = usize::from(number) % SLOTS;
        let slot = &self.slots[place];
        slot.words.set(key.words);
        slot.flags.set(flags);
        slot.head.set(Head::shape(number));
        for (code, part) in self.parts[place].iter().zip(parts) {
            code.store(part.map_or(0, Part::code), Ordering::Relaxed);
        }
        slot.name.store(key.name, Ordering::Relaxed);
    }

    /// What a handle stands for is freed, and the handle may come to mean another. Any thread may call this: who uses a
    /// handle that another thread frees has agreed with it that this is over, and so has seen the slots empty
    /// before the handle means something new.
    pub(crate) fn forget(self, freed: Part) {
        let freed = freed.code();
        for (slot, parts) in self.slots.iter().zip(self.parts) {
            if parts.iter().any(|part| part.load(Ordering::Relaxed) == freed) {
                slot.name.store(0, Ordering::Relaxed);
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
