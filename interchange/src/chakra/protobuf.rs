//! The wire format of protocol buffers: fields of a message, one after the other.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A variable-length number.
    Number(u64),
    /// Eight bytes.
    Eight([u8; 8]),
    /// Four bytes.
    Four([u8; 4]),
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// A message that is made.
#[derive(Clone, Debug, Default)]
pub(super) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// A number of a variable length.
    #[inline]
    pub(super) fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// A field with a number; 0 is the default, which is left out.
    pub(super) fn number(&mut self, field: u64, number: u64) {
        if number > 0 {
            self.varint(field << 3);
            self.varint(number);
        }
    }

    /// A field with a string, a message, or packed numbers.
    pub(super) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    /// Fields that were encoded before.
    #[inline]
    pub(super) fn fields(&mut self, fields: &[u8]) {
        self.bytes.extend(fields);
    }

    /// A short field that was encoded before, with a further number at its end: its length is in the second byte.
    #[inline]
    pub(super) fn field_and_number(&mut self, field: &[u8], number: u64) {
        let begin = self.bytes.len();
        self.bytes.extend(field);
        self.varint(number);
        self.bytes[begin + 1] = (self.bytes.len() - begin - 2) as u8;
    }

    /// Writes the message behind its length.
    pub(super) fn write(&self, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let (bytes, length) = varint(self.bytes.len() as u64);
        out.write_all(&bytes[..length])?;
        out.write_all(&self.bytes)
    }
}

/// The bytes of a number, seven bits each, the low ones first, and how many they are.
fn varint(mut number: u64) -> ([u8; 10], usize) {
    let (mut bytes, mut at) = ([0; 10], 0);
    while number >= 0x80 {
        bytes[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    bytes[at] = number as u8;
    (bytes, at + 1)
}

/// Why a message is invalid, at an offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Garbled {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

/// The fields of a message.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn garbled<T>(&self, what: &'static str) -> Result<T, Garbled> {
        Err(Garbled { at: self.at, what })
    }

    /// A number of up to ten bytes, seven bits each, the low ones first.
    pub(super) fn number(&mut self) -> Result<u64, Garbled> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else { return self.garbled("a number") };
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.garbled("a number of more than ten bytes")
    }

    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], Garbled> {
        match self.bytes.get(self.at..).and_then(|rest| rest.get(..length)) {
            Some(bytes) => {
                self.at += length;
                Ok(bytes)
            }
            None => self.garbled(what),
        }
    }

    /// Bytes behind their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Garbled> {
        let length = self.number()?;
        let length = usize::try_from(length).or(self.garbled("a field's length"))?;
        self.take(length, "a field that is longer than its message")
    }

    /// The next field: its number and value.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, Garbled> {
        if self.is_empty() {
            return Ok(None);
        }
        let key = self.number()?;
        let value = match key & 7 {
            0 => Value::Number(self.number()?),
            1 => Value::Eight(*self.take(8, "eight bytes")?.first_chunk().unwrap_or(&[0; 8])),
            2 => Value::Bytes(self.bytes()?),
            5 => Value::Four(*self.take(4, "four bytes")?.first_chunk().unwrap_or(&[0; 4])),
            _ => return self.garbled("a field of an unknown wire type"),
        };
        match key >> 3 {
            0 => self.garbled("a field of number 0"),
            number => Ok(Some((number, value))),
        }
    }
}
