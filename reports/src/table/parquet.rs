//! Tables as Parquet files: required columns, a page a column and row group, plain values, compressed by gzip.
//!
//! That is the smallest part of the format that every reader knows. The crate `parquet` would write the same at the cost of two minutes
//! of compiling. Layouts are those of `parquet.thrift`, in Thrift's compact protocol; tests read the files by other programs.

use super::{Column, Table, Values};
use flate2::{Compression, GzBuilder};
use std::io::{self, Write};

const MAGIC: &[u8] = b"PAR1";
/// Rows of a row group, at most.
const GROUP: usize = 1 << 17;

// Values of the format's enumerations.
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const UTF8: i64 = 0;
const UINT_64: i64 = 14;
const REQUIRED: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const GZIP: i64 = 2;
const DATA_PAGE: i64 = 0;

impl Table {
    /// The table as a Parquet file. Whole numbers are unsigned with 64 bits; a column with a greater one is text.
    ///
    /// # Errors
    /// None is known: memory is written to.
    pub fn to_parquet(&self) -> io::Result<Vec<u8>> {
        let columns: Vec<Plain<'_>> = self.columns.iter().map(Plain::new).collect();
        let mut file = MAGIC.to_vec();
        let mut groups = Vec::new();
        for first in (0..self.rows()).step_by(GROUP) {
            let rows = first..(first + GROUP).min(self.rows());
            let mut chunks = Vec::new();
            for column in &columns {
                chunks.push(column.write(rows.clone(), &mut file)?);
            }
            let bytes = chunks.iter().map(|chunk| chunk.uncompressed).sum();
            let chunks: Vec<Struct> = chunks.into_iter().map(|chunk| chunk.described).collect();
            groups.push(Struct::new().list(1, chunks).int(2, I64, bytes).int(3, I64, rows.len() as i64));
        }
        let root = Struct::new().text(4, self.name).int(5, I32, columns.len() as i64);
        let schema = [root].into_iter().chain(columns.iter().map(Plain::schema)).collect();
        let footer = Struct::new()
            .int(1, I32, 1)
            .list(2, schema)
            .int(3, I64, self.rows() as i64)
            .list(4, groups)
            .text(6, concat!("vef ", env!("CARGO_PKG_VERSION")))
            .end();
        file.extend(&footer);
        file.extend((footer.len() as u32).to_le_bytes());
        file.extend(MAGIC);
        Ok(file)
    }
}

/// A column by the types of the format.
struct Plain<'a> {
    column: &'a Column,
    physical: i64,
    /// What the physical values mean.
    converted: Option<i64>,
}

/// The values of a column in a row group, written.
struct Chunk {
    described: Struct,
    uncompressed: i64,
}

impl<'a> Plain<'a> {
    fn new(column: &'a Column) -> Self {
        let (physical, converted) = match &column.values {
            Values::Whole(values) if values.iter().all(|value| value.0 <= u64::MAX.into()) => {
                (INT64, Some(UINT_64))
            }
            Values::Whole(_) | Values::Text(_) => (BYTE_ARRAY, Some(UTF8)),
            Values::Real(_) => (DOUBLE, None),
        };
        Self { column, physical, converted }
    }

    fn schema(&self) -> Struct {
        let own = Struct::new().int(1, I32, self.physical).int(3, I32, REQUIRED).text(4, self.column.name);
        self.converted.into_iter().fold(own, |own, converted| own.int(6, I32, converted))
    }

    fn write(&self, rows: std::ops::Range<usize>, file: &mut Vec<u8>) -> io::Result<Chunk> {
        let mut plain = Vec::new();
        let mut text = |text: &str| {
            plain.extend((text.len() as u32).to_le_bytes());
            plain.extend(text.as_bytes());
        };
        match &self.column.values {
            Values::Whole(values) if self.physical == INT64 => {
                values[rows.clone()].iter().for_each(|value| plain.extend((value.0 as u64).to_le_bytes()));
            }
            Values::Whole(values) => values[rows.clone()].iter().for_each(|value| text(&value.to_string())),
            Values::Text(values) => values[rows.clone()].iter().for_each(|value| text(value)),
            Values::Real(values) => {
                values[rows.clone()].iter().for_each(|value| plain.extend(value.to_le_bytes()))
            }
        }
        let mut packed = GzBuilder::new().write(Vec::new(), Compression::default());
        packed.write_all(&plain)?;
        let packed = packed.finish()?;
        let values = rows.len() as i64;
        let header = Struct::new()
            .int(1, I32, DATA_PAGE)
            .int(2, I32, plain.len() as i64)
            .int(3, I32, packed.len() as i64)
            .inner(5, Struct::new().int(1, I32, values).int(2, I32, PLAIN).int(3, I32, RLE).int(4, I32, RLE))
            .end();
        let at = file.len() as i64;
        file.extend(&header);
        file.extend(&packed);
        let uncompressed = (header.len() + plain.len()) as i64;
        let about = Struct::new()
            .int(1, I32, self.physical)
            .ints(2, &[PLAIN, RLE])
            .texts(3, &[self.column.name])
            .int(4, I32, GZIP)
            .int(5, I64, values)
            .int(6, I64, uncompressed)
            .int(7, I64, file.len() as i64 - at)
            .int(9, I64, at);
        Ok(Chunk { described: Struct::new().int(2, I64, at).inner(3, about), uncompressed })
    }
}

// Types of the compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct in the making, its fields by rising ids.
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    fn new() -> Self {
        Self { bytes: Vec::new(), last: 0 }
    }

    fn field(mut self, id: u8, kind: u8) -> Self {
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn zigzag(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63) as u64);
    }

    fn string(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.bytes.extend(text.as_bytes());
    }

    fn head(&mut self, len: usize, kind: u8) {
        match len {
            0..15 => self.bytes.push((len as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                self.varint(len as u64);
            }
        }
    }

    fn int(self, id: u8, kind: u8, value: i64) -> Self {
        let mut own = self.field(id, kind);
        own.zigzag(value);
        own
    }

    fn text(self, id: u8, text: &str) -> Self {
        let mut own = self.field(id, BINARY);
        own.string(text);
        own
    }

    fn inner(self, id: u8, inner: Self) -> Self {
        let mut own = self.field(id, STRUCT);
        own.bytes.extend(inner.end());
        own
    }

    fn ints(self, id: u8, values: &[i64]) -> Self {
        let mut own = self.field(id, LIST);
        own.head(values.len(), I32);
        values.iter().for_each(|&value| own.zigzag(value));
        own
    }

    fn texts(self, id: u8, texts: &[&str]) -> Self {
        let mut own = self.field(id, LIST);
        own.head(texts.len(), BINARY);
        texts.iter().for_each(|text| own.string(text));
        own
    }

    fn list(self, id: u8, all: Vec<Self>) -> Self {
        let mut own = self.field(id, LIST);
        own.head(all.len(), STRUCT);
        all.into_iter().for_each(|one| own.bytes.extend(one.end()));
        own
    }

    /// The bytes of the whole.
    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
