//! Encoding of the messages between parts and processes: variable-length numbers and byte strings.

use std::collections::BTreeMap;
use vef_format::ids::Rank;
use vef_format::units::Bytes;
use vef_format::varint::{Ended, MAX_LEN, Sink, Source};

/// An encoded message.
#[derive(Debug, Default)]
pub(crate) struct Encoder(pub(crate) Vec<u8>);

impl Encoder {
    /// Appends a number.
    #[inline]
    pub(crate) fn put(&mut self, value: u64) {
        let at = self.0.len();
        // [`Sink::put`] may overwrite as many bytes behind a number.
        self.0.extend_from_slice(&[0; 2 * MAX_LEN]);
        let mut sink = Sink::new(&mut self.0, at);
        sink.put(value);
        let end = sink.position().unwrap_or(at);
        self.0.truncate(end);
    }

    /// Appends some numbers.
    pub(crate) fn put_all<const N: usize>(&mut self, values: [u64; N]) {
        values.into_iter().for_each(|value| self.put(value));
    }

    /// Appends a signed number.
    pub(crate) fn put_signed(&mut self, value: i64) {
        self.put((value << 1 ^ value >> 63) as u64);
    }

    /// Appends a length and the bytes.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.put(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Reads what an [`Encoder`] wrote. The bytes come from this program only, so an error is a defect of the program; it is
/// returned as [`Garbled`] all the same.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    source: Source<'a>,
}

/// The bytes are not a valid encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message between parts of the mix is invalid")]
pub struct Garbled;

impl From<Ended> for Garbled {
    fn from(_: Ended) -> Self {
        Self
    }
}

impl<'a> Reader<'a> {
    /// Begins at the front of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, source: Source::new(bytes, 0) }
    }

    /// Whether bytes remain.
    pub(crate) fn more(&self) -> bool {
        self.source.remaining() > 0
    }

    /// The next number.
    #[inline]
    pub(crate) fn get(&mut self) -> Result<u64, Garbled> {
        Ok(self.source.get()?)
    }

    /// The next number, which must fit into 32 bits.
    #[inline]
    pub(crate) fn get_u32(&mut self) -> Result<u32, Garbled> {
        u32::try_from(self.get()?).map_err(|_| Garbled)
    }

    /// The next signed number.
    pub(crate) fn get_signed(&mut self) -> Result<i64, Garbled> {
        let value = self.get()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The next byte string.
    pub(crate) fn get_bytes(&mut self) -> Result<&'a [u8], Garbled> {
        let length = usize::try_from(self.get()?).map_err(|_| Garbled)?;
        let at = self.source.position();
        let end = at.checked_add(length).ok_or(Garbled)?;
        let found = self.bytes.get(at..end).ok_or(Garbled)?;
        self.source = Source::new(self.bytes, end);
        Ok(found)
    }
}

/// A value in a message.
pub(crate) trait Coded: Sized {
    /// Appends the value.
    fn put(&self, encoder: &mut Encoder);

    /// The next value.
    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled>;

    /// A message of this value alone.
    fn encode(&self) -> Vec<u8> {
        let mut encoder = Encoder::default();
        self.put(&mut encoder);
        encoder.0
    }

    /// The value of a message.
    fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        Self::get(&mut Reader::new(bytes))
    }
}

/// Implements [`Coded`] for a struct: its fields, in this order.
macro_rules! coded {
    ($name:ty { $($field:tt),+ }) => {
        impl $crate::bytes::Coded for $name {
            fn put(&self, encoder: &mut $crate::bytes::Encoder) {
                $($crate::bytes::Coded::put(&self.$field, encoder);)+
            }

            fn get(reader: &mut $crate::bytes::Reader<'_>) -> Result<Self, $crate::bytes::Garbled> {
                Ok(Self { $($field: $crate::bytes::Coded::get(reader)?),+ })
            }
        }
    };
}
pub(crate) use coded;

coded!(Rank { 0 });
coded!(Bytes { 0 });

/// Implements [`Coded`] for integers, by the methods of [`Encoder`] and [`Reader`].
macro_rules! integer {
    ($name:ty, $put:ident, $get:ident) => {
        impl Coded for $name {
            fn put(&self, encoder: &mut Encoder) {
                encoder.$put(*self as _);
            }

            fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
                reader.$get()?.try_into().map_err(|_| Garbled)
            }
        }
    };
}

integer!(u64, put, get);
integer!(u32, put, get);
integer!(usize, put, get);
integer!(i32, put_signed, get_signed);

impl Coded for Vec<u8> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.put_bytes(self);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
        reader.get_bytes().map(<[u8]>::to_vec)
    }
}

impl Coded for String {
    fn put(&self, encoder: &mut Encoder) {
        encoder.put_bytes(self.as_bytes());
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
        reader.get_bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.put(self.len() as u64);
        self.iter().for_each(|value| value.put(encoder));
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
        (0..reader.get()?).map(|_| T::get(reader)).collect()
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.put(self.is_some().into());
        self.iter().for_each(|value| value.put(encoder));
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
        (reader.get()? != 0).then(|| T::get(reader)).transpose()
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, encoder: &mut Encoder) {
        self.0.put(encoder);
        self.1.put(encoder);
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
        Ok((A::get(reader)?, B::get(reader)?))
    }
}

impl<K: Coded + Ord, V: Coded> Coded for BTreeMap<K, V> {
    fn put(&self, encoder: &mut Encoder) {
        encoder.put(self.len() as u64);
        for (key, value) in self {
            key.put(encoder);
            value.put(encoder);
        }
    }

    fn get(reader: &mut Reader<'_>) -> Result<Self, Garbled> {
        Vec::get(reader).map(|entries: Vec<(K, V)>| entries.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut encoder = Encoder::default();
        for value in [0, 1, 127, 128, u64::MAX] {
            encoder.put(value);
        }
        encoder.put_bytes(b"members");
        for value in [0, -1, i64::MIN, i64::MAX] {
            encoder.put_signed(value);
        }
        let mut reader = Reader::new(&encoder.0);
        for value in [0, 1, 127, 128, u64::MAX] {
            assert_eq!(reader.get(), Ok(value));
        }
        assert_eq!(reader.get_bytes(), Ok(&b"members"[..]));
        for value in [0, -1, i64::MIN, i64::MAX] {
            assert_eq!(reader.get_signed(), Ok(value));
        }
        assert!(!reader.more());
        assert_eq!(reader.get(), Err(Garbled));
        assert_eq!(Reader::new(&[255]).get_bytes(), Err(Garbled));
    }
}
