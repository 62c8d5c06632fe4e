//! Shapes: calls with the same arguments as an earlier call are recorded by reference to it.
//!
//! A shape is a record without its times. The first call with certain arguments defines it ([`ShapeTable::keep`]); later calls find it
//! by their raw arguments ([`ShapeTable::find`]). When a handle is freed, the shapes that use it are removed ([`ShapeTable::forget`]). Each
//! shape has two possible slots; a third one replaces the shape in one of them, which only makes the file larger.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use vef_format::capture::word::{Head, SHAPES};

/// The number of shapes of a lane.
const SLOTS: usize = 1024;
const _: () = assert!(SLOTS <= SHAPES as usize && SLOTS.is_power_of_two());

/// The number of words of the longest key.
pub(crate) const KEY: usize = 12;

/// Identifies a call: the export and the raw arguments, except buffers.
pub(crate) struct Key {
    /// Twice the export's number plus two; the lowest bit says whether a buffer is `MPI_IN_PLACE`. Never 0.
    pub(crate) name: u32,
    pub(crate) words: [u64; KEY],
}

/// The first slot to try for a key. Trailing zeros may be omitted.
#[inline(always)]
fn home(name: u32, words: &[u64]) -> usize {
    /// Multipliers: powers of an odd constant.
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

#[derive(Clone, Copy)]
pub(crate) struct CallShape(&'static ShapeSlot);

impl CallShape {
    /// The head of the record of a call of this shape.
    #[inline(always)]
    pub(crate) fn head(self) -> Head {
        self.0.head.get()
    }

    /// Flags of the request that such a call makes.
    #[inline(always)]
    pub(crate) fn flags(self) -> u8 {
        self.0.flags.get()
    }
}

/// Two cache lines; most look-ups read only the first.
#[repr(C, align(128))]
struct ShapeSlot {
    /// 0: empty. Other lanes may empty the slot when they free a handle.
    name: AtomicU32,
    head: Cell<Head>,
    flags: Cell<u8>,
    words: Cell<[u64; KEY]>,
}
const _: () = assert!(size_of::<ShapeSlot>() == 128);

/// An object that a shape uses, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsedObject {
    Comm(u32),
    Datatype(u32),
    Window(u32),
    File(u32),
}

impl UsedObject {
    /// A unique code of the object. Never 0.
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

/// The largest number of objects of a shape.
pub(crate) const PARTS: usize = 4;

/// The codes of a shape's objects, or 0.
type ObjectCodes = [AtomicU64; PARTS];

/// The shapes of a lane. Never freed, because other lanes refer to them.
#[derive(Clone, Copy)]
pub(crate) struct ShapeTable {
    slots: &'static [ShapeSlot; SLOTS],
    parts: &'static [ObjectCodes; SLOTS],
}

// SAFETY: only the owning lane calls the methods, except `forget`, which accesses atomics only.
unsafe impl Sync for ShapeSlot {}

impl ShapeTable {
    pub(crate) fn new() -> Self {
        let slot = || ShapeSlot {
            words: Cell::default(),
            name: AtomicU32::new(0),
            head: Cell::new(Head::shape(0)),
            flags: Cell::new(0),
        };
        Self { slots: forever(slot), parts: forever(ObjectCodes::default) }
    }

    #[inline(always)]
    fn at(self, place: usize, name: u32, words: &[u64]) -> Option<CallShape> {
        // SAFETY: every place is below SLOTS, the number of slots.
        let slot = unsafe { self.slots.get_unchecked(place) };
        let known = slot.words.get();
        // No branches in the comparison.
        let differs = u64::from(slot.name.load(Ordering::Relaxed) ^ name);
        let differs = words.iter().zip(known).fold(differs, |all, (word, known)| all | (word ^ known));
        (differs == 0).then_some(CallShape(slot))
    }

    /// Finds the shape of a key. Trailing zeros may be omitted.
    #[inline(always)]
    pub(crate) fn find(self, name: u32, words: &[u64]) -> Option<CallShape> {
        let home = home(name, words);
        self.at(home, name, words).or_else(|| self.at(home ^ 1, name, words))
    }

    /// The number for a new shape with this key.
    pub(crate) fn choose(self, key: &Key) -> u16 {
        let home = home(key.name, &key.words);
        let is_free = |place: &usize| self.slots[*place].name.load(Ordering::Relaxed) == 0;
        // Prefer the slot that is tried first: the newest shape is the most likely to be used next.
        [home, home ^ 1].into_iter().find(is_free).unwrap_or(home) as u16
    }

    /// Stores the shape `number`, which uses `parts`.
    pub(crate) fn keep(self, number: u16, key: &Key, parts: [Option<UsedObject>; PARTS], flags: u8) {
        let place = usize::from(number) % SLOTS;
        let slot = &self.slots[place];
        slot.words.set(key.words);
        slot.flags.set(flags);
        slot.head.set(Head::shape(number));
        for (code, part) in self.parts[place].iter().zip(parts) {
            code.store(part.map_or(0, UsedObject::code), Ordering::Relaxed);
        }
        slot.name.store(key.name, Ordering::Relaxed);
    }

    /// Removes all shapes that use a freed object. Any thread may call this: a program must synchronise the last use
    /// of a handle with its free, so the owning lane sees the empty slots before the handle is reused.
    pub(crate) fn forget(self, freed: UsedObject) {
        let freed = freed.code();
        for (slot, parts) in self.slots.iter().zip(self.parts) {
            if parts.iter().any(|part| part.load(Ordering::Relaxed) == freed) {
                slot.name.store(0, Ordering::Relaxed);
            }
        }
    }
}

/// Allocates an element for each slot; never freed.
fn forever<T>(make: impl Fn() -> T) -> &'static [T; SLOTS] {
    let list: Box<[T]> = std::iter::repeat_with(make).take(SLOTS).collect();
    Box::leak(list).first_chunk().unwrap_or_else(|| unreachable!("it was made that long"))
}
