//! Lists that are complete take no more memory than they need.

/// Moves `list` into memory of its size. Shrinking it in place would leave a gap behind each of many lists.
pub(crate) fn fit<T: Copy>(list: &mut Vec<T>) {
    if list.capacity() > list.len() {
        *list = list.as_slice().to_vec();
    }
}
