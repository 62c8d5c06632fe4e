//! Encodes records in chunks.

use std::io::{self, Write};

/// What a chunk begins with: its type, and that numbers are little-endian.
const CHUNK: [u8; 2] = [3, 0x42];
/// Bytes of a chunk in front of its records.
const HEADER: usize = 18;
/// The record at the end of a file.
const END: [u8; 2] = [2, 1];

/// A record, whose fields are appended.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    bytes: Vec<u8>,
}

impl Record {
    /// Begins a record of a type.
    pub(super) fn begin(&mut self, kind: u8) -> &mut Self {
        self.bytes.clear();
        self.byte(kind)
    }

    /// Begins a record of a type that has a length.
    pub(super) fn with_length(&mut self, kind: u8) -> &mut Self {
        self.begin(kind).byte(0)
    }

    /// Completes a record that has a length.
    pub(super) fn end(&mut self) -> &[u8] {
        let length = self.bytes.len() - 2;
        match u8::try_from(length) {
            Ok(length @ 0..=0xfe) => self.bytes[1] = length,
            _ => {
                self.bytes[1] = 0xff;
                self.bytes.splice(2..2, (length as u64).to_le_bytes());
            }
        }
        &self.bytes
    }

    /// A record without a length.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn byte(&mut self, byte: u8) -> &mut Self {
        self.bytes.push(byte);
        self
    }

    /// A number of 64 bits.
    pub(super) fn full(&mut self, number: u64) -> &mut Self {
        self.bytes.extend(number.to_le_bytes());
        self
    }

    /// A packed number.
    pub(super) fn packed(&mut self, number: u64) -> &mut Self {
        let length = 8 - (number.leading_zeros() / 8) as usize;
        self.bytes.push(length as u8);
        self.bytes.extend(&number.to_le_bytes()[..length]);
        self
    }

    /// A number that is not defined.
    pub(super) fn undefined(&mut self) -> &mut Self {
        self.byte(0xff)
    }

    /// A number of 64 bits that is not defined.
    pub(super) fn undefined_full(&mut self) -> &mut Self {
        self.full(u64::MAX)
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes.extend(text.bytes().filter(|&byte| byte != 0));
        self.byte(0)
    }
}

/// A file of chunks, all but the last of which have one size.
#[derive(Debug)]
pub(super) struct ChunkWriter<W> {
    out: W,
    size: usize,
    chunk: Vec<u8>,
    /// Number of the first event of the chunk.
    first: u64,
    /// Records, or events, written.
    pub(super) number: u64,
    /// Time of the last event of the chunk.
    time: Option<u64>,
}

impl<W: Write> ChunkWriter<W> {
    pub(super) fn new(out: W, size: usize) -> Self {
        let mut writer = Self { out, size, chunk: Vec::with_capacity(size), first: 0, number: 0, time: None };
        writer.header();
        writer
    }

    fn header(&mut self) {
        self.chunk.clear();
        self.chunk.extend(CHUNK);
        self.chunk.extend([0; 16]);
        self.time = None;
    }

    /// Writes a definition.
    pub(super) fn definition(&mut self, record: &[u8]) -> io::Result<()> {
        self.room(record.len())?;
        self.chunk.extend(record);
        self.number += 1;
        Ok(())
    }

    /// Writes an event of a time.
    pub(super) fn event(&mut self, time: u64, record: &[u8]) -> io::Result<()> {
        self.room(record.len() + 9)?;
        if self.time != Some(time) {
            self.time = Some(time);
            self.chunk.push(5);
            self.chunk.extend(time.to_le_bytes());
        }
        self.chunk.extend(record);
        self.number += 1;
        Ok(())
    }

    /// Begins a new chunk unless there is room for so many bytes.
    fn room(&mut self, bytes: usize) -> io::Result<()> {
        if self.chunk.len() + bytes + END.len() > self.size {
            if HEADER + bytes + END.len() > self.size {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "a record is longer than a chunk"));
            }
            self.chunk.resize(self.size, 0);
            self.put()?;
            self.first = self.number + 1;
            self.header();
        }
        Ok(())
    }

    fn put(&mut self) -> io::Result<()> {
        // Of events only: a file of definitions has zeros.
        if self.time.is_some() {
            self.chunk[2..10].copy_from_slice(&self.first.to_le_bytes());
            self.chunk[10..18].copy_from_slice(&self.number.to_le_bytes());
        }
        self.out.write_all(&self.chunk)
    }

    /// Ends the file; returns the number of its records.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.chunk.extend(END);
        self.put()?;
        self.out.flush()?;
        Ok(self.number)
    }
}
