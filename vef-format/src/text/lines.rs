//! Formats lines of a trace in memory.

use super::numerals::{self, LONGEST, ROOM};
use crate::ids::{CommId, Rank};
use crate::raw::{AWAITED, DEPENDENCY, Raw};
use crate::record::{Header, WriteError};

/// Maximum bytes of a point-to-point or collective line: nine numbers, each with a letter and a blank.
const LINE: usize = 9 * (LONGEST + 1) + 8;
const _: () = assert!(LINE < ROOM / 2);

/// Formatted lines of a version 3 trace. Several threads can format lines, which one [`Writer`](super::Writer) then writes
/// in order.
#[derive(Debug)]
pub struct Lines {
    /// Text up to `at`, then room.
    text: Vec<u8>,
    at: usize,
    /// Limit of ranks.
    tasks: u32,
    pub(super) messages: u64,
    pub(super) local_collectives: u64,
}

impl Lines {
    /// No lines, of a trace of `tasks` tasks.
    pub fn new(tasks: u32) -> Self {
        Self { text: Vec::new(), at: 0, tasks, messages: 0, local_collectives: 0 }
    }

    /// Removes all lines; keeps the memory.
    pub fn clear(&mut self) {
        (self.at, self.messages, self.local_collectives) = (0, 0, 0);
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..self.at]
    }

    /// Number of lines of messages, marks and collectives.
    pub fn count(&self) -> u64 {
        self.messages + self.local_collectives
    }

    /// Adds a record of `task`.
    ///
    /// # Errors
    /// [`WriteError::Rank`]
    #[inline]
    pub fn raw(&mut self, task: Rank, raw: &Raw) -> Result<(), WriteError> {
        WriteError::unless_task(task, self.tasks)?;
        let mut line;
        if raw.is_collective() {
            self.local_collectives += 1;
            line = self.row();
            line.bytes(*b"G");
            line.number(raw.id);
            line.bytes(*b"C");
            line.number(raw.to.into());
            line.number(raw.op.into());
            line.number(task.0.into());
            line.number(raw.bytes);
            line.number(raw.recv);
        } else {
            WriteError::unless_task(Rank(raw.to), self.tasks)?;
            self.messages += 1;
            line = self.row();
            line.number(raw.id);
            line.number(task.0.into());
            line.number(raw.to.into());
            line.number(raw.bytes);
        }
        line.waits(raw.tag & (DEPENDENCY | AWAITED), raw.time, raw.after);
        self.at = line.end();
        Ok(())
    }

    /// Adds the first line.
    pub(super) fn header(&mut self, header: &Header) {
        let mut line = self.row();
        line.bytes(*b"VEF3 ");
        line.number(header.tasks.into());
        line.number(header.messages);
        line.number(header.communicators);
        line.number(header.collectives);
        line.number(header.local_collectives);
        line.number(0);
        line.number(header.clock.0);
        line.line_end();
        self.at = line.end();
    }

    /// Adds a communicator with at least one member.
    pub(super) fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WriteError> {
        let mut line = self.row();
        line.bytes(*b"C");
        line.number(id.0.into());
        self.at = line.end();
        for &member in members {
            WriteError::unless_task(member, self.tasks)?;
            let mut line = self.row();
            line.number(member.0.into());
            self.at = line.end();
        }
        // Replaces the last blank.
        self.text[self.at - 1] = b'\n';
        Ok(())
    }

    /// Makes room for a line (or part of one) and returns it.
    #[inline(always)]
    fn row(&mut self) -> Row<'_> {
        let end = self.at + ROOM;
        if self.text.len() < end {
            self.grow();
        }
        let begin = self.at;
        match self.text[begin..end].first_chunk_mut() {
            Some(text) => Row { text, begin, at: 0 },
            None => unreachable!("it is as long"),
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.text.resize(2 * self.text.len() + 4 * ROOM, 0);
    }
}

/// A line under construction.
struct Row<'a> {
    text: &'a mut [u8; ROOM],
    begin: usize,
    at: usize,
}

impl Row<'_> {
    /// Index of its end in the text.
    #[inline(always)]
    fn end(&self) -> usize {
        self.begin + self.at
    }

    /// Appends up to eight characters.
    #[inline(always)]
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        numerals::put(self.text, self.at, bytes);
        self.at += N;
    }

    /// Appends a number and a blank.
    #[inline(always)]
    fn number(&mut self, number: u64) {
        self.at = numerals::write(self.text, self.at, number);
    }

    /// Appends the fields `dep`, `time` and `idDep`, and the line end.
    #[inline(always)]
    fn waits(&mut self, dep: u8, time: u64, after: u64) {
        self.bytes([b'0' + dep, b' ']);
        self.number(time);
        match dep & DEPENDENCY {
            0 => self.bytes(*b"-1 "),
            1 | 2 => self.number(after),
            _ => {
                self.bytes(*b"G");
                self.number(after);
            }
        }
        self.line_end();
    }

    /// Replaces the last blank by the line end.
    #[inline(always)]
    fn line_end(&mut self) {
        numerals::put(self.text, self.at - 1, [b'\n']);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CollectiveId, MessageId};
    use crate::operation::{Amounts, OpCode};
    use crate::record::{Dependency, LocalCollective, Message};
    use crate::units::{Bytes, Ticks};
    use proptest::prelude::*;

    /// A difference of consecutive ids, of any length and sign.
    fn step() -> impl Strategy<Value = (bool, u64)> {
        let length = prop_oneof![4 => Just(63u32), 2 => 53u32..64, 1 => 0u32..64];
        (any::<bool>(), any::<u64>(), length).prop_map(|(back, far, length)| (back, far >> length))
    }

    fn dependency() -> impl Strategy<Value = Dependency> {
        (0..4, any::<u64>(), 0u32..64).prop_map(|(kind, id, shift)| match kind {
            0 => Dependency::Start,
            1 => Dependency::Sent(MessageId(id >> shift)),
            2 => Dependency::Received(MessageId(id >> shift)),
            _ => Dependency::Collective(CollectiveId(id >> shift)),
        })
    }

    fn id_dep(after: Dependency) -> String {
        match after {
            Dependency::Start => "-1".into(),
            Dependency::Sent(id) | Dependency::Received(id) => id.0.to_string(),
            Dependency::Collective(id) => format!("G{}", id.0),
        }
    }

    proptest! {
        #[test]
        fn lines_are_as_formatted(
            first in prop_oneof![0u64..2_000, 99_999_999_000u64..100_000_001_000, any::<u64>()],
            list in proptest::collection::vec(
                (step(), (any::<u32>(), any::<u32>()), any::<[u64; 3]>(), 0u32..64, dependency(), any::<[bool; 2]>()),
                1..60,
            ),
        ) {
            let mut lines = Lines::new(u32::MAX);
            let (mut id, mut expected) = (first, String::new());
            for ((back, far), (src, dst), numbers, shift, after, [awaited, collective]) in list {
                let (src, dst) = (src.wrapping_shr(shift), dst.wrapping_shr(shift / 2));
                let [a, b, time] = numbers.map(|number| number >> shift);
                prop_assume!(src < u32::MAX && dst < u32::MAX);
                id = if back { id.wrapping_sub(far) } else { id.wrapping_add(far) };
                let (time, code, id_dep) = (Ticks(time), after.code(), id_dep(after));
                if collective {
                    let amounts = Amounts { send: Bytes(a), recv: Bytes(b) };
                    let (id, comm, op, task) = (CollectiveId(id), CommId(dst), OpCode(b as u16), Rank(src));
                    let part = LocalCollective { id, comm, op, task, amounts, after, time };
                    lines.raw(task, &Raw::of_collective(&part)).unwrap();
                    expected += &format!("G{} C{dst} {} {src} {a} {b} {code} {} {id_dep}\n", id.0, op.0, time.0);
                } else {
                    let (id, src, dst, bytes) = (MessageId(id), Rank(src), Rank(dst), Bytes(a));
                    let message = Message { id, src, dst, bytes, awaited, after, time };
                    lines.raw(src, &Raw::of_message(&message)).unwrap();
                    let dep = code + if awaited { 4 } else { 0 };
                    expected += &format!("{} {src} {dst} {a} {dep} {} {id_dep}\n", id.0, time.0);
                }
            }
            prop_assert_eq!(std::str::from_utf8(lines.as_bytes()).unwrap(), expected);
        }
    }
}
