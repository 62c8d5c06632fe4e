//! Numbers in text.

/// Appends the digits of a number.
#[inline]
pub(crate) fn number(out: &mut Vec<u8>, number: u64) {
    out.extend(itoa::Buffer::new().format(number).as_bytes());
}
