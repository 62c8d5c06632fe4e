//! Integers of one to nine bytes whose first byte has the length.
//!
//! The number of trailing zero bits of the first byte, plus one, is the length n ≤ 8; the 7n bits above the lowest set bit
//! are the value, little-endian. A first byte of zero is followed by the value as eight bytes. Both directions take one
//! unaligned eight-byte access and no loop.

/// Maximum length of a value.
pub const MAX_LEN: usize = 9;

/// Writes `value` at the front of `room`; returns the length.
#[inline(always)]
pub(crate) fn store(value: u64, room: &mut [u8; MAX_LEN]) -> usize {
    if value < 1 << 56 {
        let Ok(word) = <&mut [u8; 8]>::try_from(&mut room[..8]) else { return 0 };
        // No branch on the length, which is unpredictable.
        let marked = value << 1 | 1;
        let highest = 63 - marked.leading_zeros();
        let further = (highest * 9) >> 6; // ⌊(highest - 1) / 7⌋ for 0 < highest ≤ 56, and 0 for 0
        *word = (marked << further).to_le_bytes();
        further as usize + 1
    } else {
        room[0] = 0;
        room[1..].copy_from_slice(&value.to_le_bytes());
        MAX_LEN
    }
}

/// Appends `value` to a list of bytes.
#[inline]
pub fn put(bytes: &mut Vec<u8>, value: u64) {
    if value < 1 << 7 {
        return bytes.push((value << 1 | 1) as u8);
    }
    let mut room = [0; MAX_LEN];
    let len = store(value, &mut room);
    bytes.extend_from_slice(&room[..len]);
}

/// Maps small numbers of either sign to small numbers.
#[inline(always)]
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The reverse of [`zigzag`].
#[inline(always)]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Takes a value from the front of `bytes`; `None`: they end within it.
#[inline(always)]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    if let Some((first, rest)) = bytes.split_first()
        && first & 1 == 1
    {
        *bytes = rest;
        return Some(u64::from(first >> 1));
    }
    let mut source = Source::new(bytes, 0);
    let value = source.get().ok()?;
    *bytes = &bytes[source.position()..];
    Some(value)
}

/// Writes into a slice; notes if it is too short.
#[derive(Debug)]
pub struct Sink<'a> {
    bytes: &'a mut [u8],
    at: usize,
    full: bool,
}

impl<'a> Sink<'a> {
    /// Begins at byte `at` of `bytes`.
    #[inline(always)]
    pub fn new(bytes: &'a mut [u8], at: usize) -> Self {
        Self { bytes, at, full: false }
    }

    /// Index of the next byte; `None` if something did not fit.
    #[inline(always)]
    pub fn position(&self) -> Option<usize> {
        if self.full { None } else { Some(self.at) }
    }

    /// Appends `value`. Writes zeros to up to eight bytes behind it.
    #[inline]
    pub fn put(&mut self, value: u64) {
        match self.bytes.get_mut(self.at..).and_then(|rest| rest.first_chunk_mut()) {
            Some(room) => self.at += store(value, room),
            None => self.full = true,
        }
    }

    /// Appends bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        match self.at.checked_add(bytes.len()).and_then(|end| self.bytes.get_mut(self.at..end)) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.at += bytes.len();
            }
            None => self.full = true,
        }
    }

    /// Appends the length of `text` and its bytes.
    pub fn text(&mut self, text: &str) {
        self.put(text.len() as u64);
        self.raw(text.as_bytes());
    }

    /// Appends the length of a list and its values.
    pub fn list(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        self.put(values.len() as u64);
        for value in values {
            self.put(value);
        }
    }
}

/// Reads what a [`Sink`] wrote.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The bytes end within a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended;

impl<'a> Source<'a> {
    /// Reads `bytes` from `at` on.
    #[inline]
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Index of the next value.
    #[inline]
    pub fn position(&self) -> usize {
        self.at
    }

    /// Number of bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The next value.
    #[inline(always)]
    pub fn get(&mut self) -> Result<u64, Ended> {
        let rest = self.bytes.get(self.at..).ok_or(Ended)?;
        if let Some(window) = rest.first_chunk::<8>() {
            let word = u64::from_le_bytes(*window);
            if word as u8 != 0 {
                let len = word.trailing_zeros() + 1;
                self.at += len as usize;
                return Ok((word >> len) & (u64::MAX >> (64 - 7 * len)));
            }
        }
        let (value, len) = long(rest)?;
        self.at += len;
        Ok(value)
    }

    /// The next values, at most eight; value n usually takes one byte if bit n of `SHORT` is set.
    #[inline(always)]
    pub fn fields<const N: usize, const SHORT: u8>(&mut self) -> Result<[u64; N], Ended> {
        const { assert!(N <= 8) };
        let mut fields = [0; N];
        // With this many bytes no value can pass the end.
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            Some(room) => {
                let mut at = 0;
                for (n, field) in fields.iter_mut().enumerate() {
                    *field = value_within(room, &mut at, SHORT >> n & 1 == 1);
                }
                self.at += at;
            }
            None => {
                for field in &mut fields {
                    *field = self.get()?;
                }
            }
        }
        Ok(fields)
    }

    /// The bytes of the next text.
    pub fn text(&mut self) -> Result<&'a [u8], Ended> {
        let len = usize::try_from(self.get()?).map_err(|_| Ended)?;
        let end = self.at.checked_add(len).ok_or(Ended)?;
        let text = self.bytes.get(self.at..end).ok_or(Ended)?;
        self.at = end;
        Ok(text)
    }
}

/// The value at the front of `rest`, and its length: near the end of the bytes, or of nine bytes.
#[cold]
fn long(rest: &[u8]) -> Result<(u64, usize), Ended> {
    let &first = rest.first().ok_or(Ended)?;
    if first == 0 {
        let raw = rest.get(1..).and_then(|tail| tail.first_chunk::<8>()).ok_or(Ended)?;
        return Ok((u64::from_le_bytes(*raw), MAX_LEN));
    }
    let len = first.trailing_zeros() as usize + 1;
    let mut word = [0; 8];
    word[..len].copy_from_slice(rest.get(..len).ok_or(Ended)?);
    Ok(((u64::from_le_bytes(word) >> len) & (u64::MAX >> (64 - 7 * len)), len))
}

/// Eight values of any length fit.
const EIGHT: usize = 8 * MAX_LEN;

/// The value at `at`, one of the first eight in `room`; advances `at`. A value that is usually `short` takes a branch, which
/// is quicker if it is predictable.
#[inline(always)]
fn value_within(room: &[u8; EIGHT], at: &mut usize, short: bool) -> u64 {
    // The mask proves to the compiler that nine bytes are in range.
    let begin = *at & (EIGHT - MAX_LEN);
    let word = room[begin..].first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    if short && word & 1 != 0 {
        *at += 1;
        return u64::from(word as u8 >> 1);
    }
    if word as u8 == 0 {
        *at += MAX_LEN;
        return room[begin + 1..].first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
    }
    let zeros = word.trailing_zeros() & 7;
    *at += zeros as usize + 1;
    (word & LOW_BYTES[zeros as usize]) >> zeros >> 1
}

/// Index n: mask of the lowest n + 1 bytes.
const LOW_BYTES: [u64; 8] = {
    let mut masks = [0xff; 8];
    let mut n = 1;
    while n < 8 {
        masks[n] = masks[n - 1] << 8 | 0xff;
        n += 1;
    }
    masks
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: u64) -> Vec<u8> {
        let mut room = [0; 32];
        let mut sink = Sink::new(&mut room, 0);
        sink.put(value);
        let len = sink.position().expect("fits");
        room[..len].to_vec()
    }

    #[test]
    fn lengths_change_at_multiples_of_seven_bits() {
        for bits in 1..=64u32 {
            let smallest = 1u64 << (bits - 1);
            let largest = u64::MAX >> (64 - bits);
            let expected = if bits <= 56 { bits.div_ceil(7) as usize } else { MAX_LEN };
            for value in [smallest, largest] {
                assert_eq!(written(value).len(), expected, "{value:#x}");
            }
        }
        assert_eq!(written(0), [1]);
    }

    #[test]
    fn several_values_are_read_as_one_by_one() {
        for shift in 0..64 {
            let values: Vec<u64> = (0..8).map(|at| (u64::MAX - at) >> ((shift + 9 * at) % 64)).collect();
            for values in [&values[..], &[u64::MAX; 8], &[0; 8]] {
                let mut bytes = [0xa5; EIGHT + MAX_LEN];
                let mut sink = Sink::new(&mut bytes, 0);
                values.iter().for_each(|&value| sink.put(value));
                let end = sink.position().expect("fits");
                // With much room behind, and with none.
                for bytes in [&bytes[..], &bytes[..end]] {
                    let mut source = Source::new(bytes, 0);
                    assert_eq!(source.fields::<8, 0b1010_0110>().expect("they are there"), *values);
                    assert_eq!(source.position(), end);
                }
                assert_eq!(Source::new(&bytes[..end - 1], 0).fields::<8, 0b1010_0110>(), Err(Ended));
            }
        }
    }

    #[test]
    fn a_full_slice_is_noted() {
        let mut room = [0; 12];
        let mut sink = Sink::new(&mut room, 0);
        sink.put(1);
        assert_eq!(sink.position(), Some(1));
        sink.put(u64::MAX);
        assert_eq!(sink.position(), Some(10));
        sink.put(1);
        assert_eq!(sink.position(), None);
    }

    proptest! {
        #[test]
        fn values_come_back(values in proptest::collection::vec(
            (any::<u64>(), 0u32..64).prop_map(|(v, shift)| v >> shift), 0..40)) {
            let mut room = vec![0; values.len() * MAX_LEN + MAX_LEN];
            let mut sink = Sink::new(&mut room, 0);
            for &value in &values {
                sink.put(value);
            }
            let len = sink.position().expect("fits");
            // Exactly the bytes written: the reader must not need more.
            let mut source = Source::new(&room[..len], 0);
            for &value in &values {
                prop_assert_eq!(source.get(), Ok(value));
            }
            prop_assert_eq!(source.get(), Err(Ended));
            // Truncated: some of the values, then the end.
            let mut cut = Source::new(&room[..len / 2], 0);
            let read = std::iter::from_fn(|| cut.get().ok()).collect::<Vec<_>>();
            prop_assert_eq!(&read[..], &values[..read.len()]);
        }
    }
}
