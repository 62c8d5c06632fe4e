//! Tables by handle.

/// A map from handles to values. It allocates only when it grows.
pub(crate) type HandleMap<V> = hashbrown::HashMap<usize, V>;

/// Objects by handle, numbered in the order in which they become known.
#[derive(Debug, Default)]
pub(crate) struct Numbered<V> {
    known: HandleMap<V>,
    next: u32,
}

impl<V: Copy> Numbered<V> {
    #[inline(always)]
    pub(crate) fn get(&self, handle: usize) -> Option<V> {
        self.known.get(&handle).copied()
    }

    pub(crate) fn get_mut(&mut self, handle: usize) -> Option<&mut V> {
        self.known.get_mut(&handle)
    }

    /// Stores the object of `handle`, which follows from its number.
    pub(crate) fn add(&mut self, handle: usize, object: impl FnOnce(u32) -> V) -> V {
        let object = object(self.next_number());
        self.known.insert(handle, object);
        object
    }

    /// The number of an object that has no handle of its own.
    pub(crate) fn next_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Removes a handle that was freed or reused; returns its object.
    pub(crate) fn forget(&mut self, handle: usize) -> Option<V> {
        self.known.remove(&handle)
    }
}
