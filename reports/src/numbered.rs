//! Data on what a capture numbers.

/// Data on the communicators or datatypes of a capture, by their numbers.
#[derive(Debug)]
pub(crate) struct Numbered<T>(Vec<Option<T>>);

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Numbered<T> {
    pub(crate) fn insert(&mut self, number: u32, known: T) {
        let at = number as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, || None);
        }
        self.0[at] = Some(known);
    }

    /// `None`: the capture does not describe it.
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.0.get(number as usize)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.0.get_mut(number as usize)?.as_mut()
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        self.0.get_mut(number as usize)?.take()
    }
}
