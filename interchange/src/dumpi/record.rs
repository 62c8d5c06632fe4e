//! Decodes the records of a body, by the table of their arguments.

use super::table::KINDS;
use crate::calls::arguments::Status;
use crate::calls::input::{Input, Stop};

/// Label that ends the records.
pub(super) const END: u16 = 293;

/// Arguments of a record, at most.
const ARGUMENTS: usize = 12;

/// A version of the format: 8.1.0.
pub(super) type Version = [u8; 3];

/// A label.
pub(super) mod label {
    pub(in super::super) const INIT: u16 = 124;
    pub(in super::super) const TYPE_STRUCT: u16 = 40;
    pub(in super::super) const CART_GET: u16 = 105;
    pub(in super::super) const INIT_THREAD: u16 = 171;
}

/// Bits of the second field of a record.
mod mask {
    pub(super) const STATUSES: u8 = 3;
    pub(super) const CPU_TIMES: u8 = 4;
    pub(super) const WALL_TIMES: u8 = 8;
    pub(super) const THREAD: u8 = 0x40;
    pub(super) const COUNTERS: u8 = 0x80;
}

/// A record.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) label: u16,
    pub(super) thread: u16,
    /// Start and end, in seconds (of 16 bits) and ns.
    pub(super) wall: Option<[(u16, u32); 2]>,
    /// Numbers, by argument; of a list its length.
    pub(super) values: [i64; ARGUMENTS],
    /// Where the elements of an argument are in `elements`.
    spans: [(usize, usize); ARGUMENTS],
    elements: Vec<i32>,
    /// The statuses, if the program asked for any.
    pub(super) statuses: Vec<Status>,
}

/// Why a record cannot be decoded.
#[derive(Debug)]
pub(super) enum Wrong {
    Stop(Stop),
    /// There is no record with this label.
    Label(u16),
    /// A count is negative.
    Count(i32),
}

impl From<Stop> for Wrong {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

type Result<T> = std::result::Result<T, Wrong>;

#[inline]
fn int(input: &mut Input) -> Result<i32> {
    Ok(i32::from_be_bytes(input.take()?))
}

#[inline]
fn short(input: &mut Input) -> Result<u16> {
    Ok(u16::from_be_bytes(input.take()?))
}

#[inline]
fn count(input: &mut Input) -> Result<i32> {
    match int(input)? {
        count @ 0.. => Ok(count),
        count => Err(Wrong::Count(count)),
    }
}

impl Record {
    /// Name of the function.
    pub(super) fn name(&self) -> &'static str {
        KINDS.get(usize::from(self.label)).map_or("", |kind| kind.0)
    }

    /// The elements of argument `at`.
    pub(super) fn list(&self, at: usize) -> &[i32] {
        let (start, end) = self.spans[at];
        &self.elements[start..end]
    }

    /// The status of the only request of a call.
    pub(super) fn status(&self) -> Option<Status> {
        self.statuses.first().copied()
    }

    /// Reads the next record; `false`: there are no more.
    pub(super) fn read(&mut self, input: &mut Input, version: Version) -> Result<bool> {
        self.label = short(input)?;
        if self.label == END {
            return Ok(false);
        }
        let Some(&(_, arguments)) = KINDS.get(usize::from(self.label)) else {
            return Err(Wrong::Label(self.label));
        };
        let mask = input.byte()?;
        let has = |bit: u8| mask & bit != 0;
        self.thread = if has(mask::THREAD) { short(input)? } else { 0 };
        let cpu = if has(mask::CPU_TIMES) { Some(Self::times(input)?) } else { None };
        let wall = if has(mask::WALL_TIMES) { Some(Self::times(input)?) } else { None };
        self.wall = wall.or(cpu);
        if has(mask::COUNTERS) {
            let count = input.byte()?;
            input.skip(16 * u64::from(count))?;
        }
        self.elements.clear();
        self.statuses.clear();
        self.arguments(input, arguments.as_bytes(), has(mask::STATUSES), version)?;
        Ok(true)
    }

    fn times(input: &mut Input) -> Result<[(u16, u32); 2]> {
        let mut time = || Ok::<_, Wrong>((short(input)?, u32::from_be_bytes(input.take()?)));
        Ok([time()?, time()?])
    }

    fn arguments(&mut self, input: &mut Input, kinds: &[u8], statuses: bool, version: Version) -> Result<()> {
        let label = self.label;
        if label == label::INIT && version < [0, 6, 2] {
            int(input)?;
        }
        let (mut kinds, mut at) = (kinds.iter(), 0);
        while let Some(&kind) = kinds.next() {
            let start = self.elements.len();
            let old_number = label == label::TYPE_STRUCT && at == 2 && version < [0, 6, 9]
                || label == label::CART_GET && at == 5 && version < [0, 6, 8];
            let value: i64 = match kind {
                _ if old_number => int(input)?.into(),
                b'i' => int(input)?.into(),
                b'h' => short(input)?.into(),
                b'b' => input.byte()?.into(),
                b'q' => i64::from_be_bytes(input.take()?),
                b'S' => {
                    if statuses {
                        self.read_statuses(input, version)?;
                    }
                    self.statuses.len() as i64
                }
                b'?' => {
                    let mut operand = || usize::from(kinds.next().map_or(0, |digit| digit - b'0'));
                    let (one, other) = (operand(), operand());
                    if self.values[one] != self.values[other] {
                        self.values[at..].fill(0);
                        self.spans[at..].fill((0, 0));
                        return Ok(());
                    }
                    continue;
                }
                b'!' => return Err(Wrong::Label(label)),
                nested => {
                    self.list_of(input, nested)?;
                    (self.elements.len() - start) as i64
                }
            };
            self.values[at] = value;
            self.spans[at] = (start, self.elements.len());
            at += 1;
        }
        Ok(())
    }

    /// Reads a list; what it consists of is told by the table.
    fn list_of(&mut self, input: &mut Input, kind: u8) -> Result<()> {
        let count = count(input)?;
        for _ in 0..count {
            match kind {
                b'I' => self.elements.push(int(input)?),
                b'H' => self.elements.push(short(input)?.into()),
                b'B' => self.elements.push(input.byte()?.into()),
                b'C' => drop(input.byte()?),
                b'J' => self.list_of(input, b'I')?,
                b'D' => self.list_of(input, b'C')?,
                _ => self.list_of(input, b'D')?,
            }
        }
        Ok(())
    }

    fn read_statuses(&mut self, input: &mut Input, version: Version) -> Result<()> {
        for _ in 0..count(input)? {
            let (bytes, source) = (int(input)?, int(input)?);
            let (cancelled, _error) = (input.byte()? != 0, input.byte()?);
            let tag = if version < [0, 6, 3] { 0 } else { int(input)? };
            let bytes = u64::try_from(bytes).ok();
            self.statuses.push(Status { bytes, source: source.into(), tag, cancelled });
        }
        Ok(())
    }
}

/// The number of a request: before version 0.6.7 only 8 of its bits are valid.
pub(super) fn request(value: i64, version: Version) -> u64 {
    let value = value as u32;
    u64::from(if version < [0, 6, 7] { value & 0xff } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_room_for_its_arguments() {
        for (name, arguments) in KINDS {
            let letters = arguments.bytes().filter(u8::is_ascii_alphabetic).count();
            assert!(letters <= ARGUMENTS, "{name}");
            let known = |byte: u8| b"ihbqIHBCJDES?!".contains(&byte) || byte.is_ascii_digit();
            assert!(arguments.bytes().all(known), "{name}");
        }
    }
}
