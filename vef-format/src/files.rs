//! What a task did with each file in the captured run: calls, bytes and time, by the name under which it opened the file.

use crate::capture::event::{Action, Completions, Detail, Event, FileId, Io, RequestId};
use crate::units::{Bytes, Ticks};
use std::collections::HashMap;

/// The calls of a task on a file. All sums saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileUse {
    /// How often it opened the file.
    pub opens: u64,
    /// Calls on it: to open, view and close it, to read and write, to seek, to sync, and to set its size, hints and atomicity.
    pub calls: u64,
    /// Reads of at least a byte.
    pub reads: u64,
    /// Bytes that they asked for.
    pub read_bytes: u64,
    /// Writes of at least a byte.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Time in these calls, and in those that completed accesses of the file; a call that completes accesses of several files counts
    /// for the first one.
    pub took: Ticks,
}

impl FileUse {
    /// Adds other calls.
    pub fn merge(&mut self, other: &Self) {
        let Self { opens, calls, reads, read_bytes, writes, written_bytes, took } = self;
        for (sum, value) in [
            (opens, other.opens),
            (calls, other.calls),
            (reads, other.reads),
            (read_bytes, other.read_bytes),
            (writes, other.writes),
            (written_bytes, other.written_bytes),
            (&mut took.0, other.took.0),
        ] {
            *sum = sum.saturating_add(value);
        }
    }

    fn accessed(&mut self, io: &Io, Bytes(bytes): Bytes) {
        let (count, sum) = match io.write {
            true => (&mut self.writes, &mut self.written_bytes),
            false => (&mut self.reads, &mut self.read_bytes),
        };
        *count += u64::from(bytes > 0);
        *sum = sum.saturating_add(bytes);
    }
}

/// Adds up the calls of one task by file.
#[derive(Debug, Default)]
pub struct FileUses {
    /// By name, in the order in which they were opened first.
    uses: Vec<(String, FileUse)>,
    /// Indices in `uses`.
    named: HashMap<String, usize>,
    open: HashMap<FileId, usize>,
    pending: HashMap<RequestId, usize>,
}

impl FileUses {
    /// Names of a task, at most; the calls on further files are added up under no name.
    pub const MOST_NAMES: usize = 1024;
    /// Bytes of a name, at most; of a longer one the end is kept.
    pub const LONGEST_NAME: usize = 4096;

    /// Whether a call that completes requests may complete accesses of files.
    #[inline(always)]
    pub fn are_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Adds an event of the task. Those that neither are calls on files nor complete requests change nothing.
    pub fn event(&mut self, event: &Event<'_>) {
        let took = Ticks(event.end.0.saturating_sub(event.start.0));
        let (bytes, detail) = match &event.action {
            Action::Other { bytes, detail } => (*bytes, detail),
            Action::Complete(completions) if self.are_pending() => {
                if let Some(file) = self.completed(completions) {
                    self.uses[file].1.merge(&FileUse { took, ..FileUse::default() });
                }
                return;
            }
            _ => return,
        };
        let mut made = FileUse { calls: 1, took, ..FileUse::default() };
        let file = match detail {
            Detail::FileOpen { id, name, .. } | Detail::FileOpenAt { id, name, .. } => {
                made.opens = 1;
                let file = self.of_name(name);
                self.open.insert(*id, file);
                Some(file)
            }
            Detail::FileView { file, .. }
            | Detail::FileViewTiled { file, .. }
            | Detail::FileSeek { file, .. } => self.open.get(file).copied(),
            Detail::FileClose(file) => self.open.remove(file),
            Detail::Io(io) => {
                made.accessed(io, bytes);
                let file = self.open.get(&io.file).copied();
                self.pending.extend(io.request.zip(file));
                file
            }
            Detail::None
            | Detail::Window { .. }
            | Detail::WindowFree(_)
            | Detail::Transfer(_)
            | Detail::Sync { .. } => None,
        };
        if let Some(file) = file {
            self.uses[file].1.merge(&made);
        }
    }

    /// The file of the first access among these requests.
    fn completed(&mut self, completions: &Completions<'_>) -> Option<usize> {
        let mut first = None;
        let mut take = |request| first = first.or(self.pending.remove(&request));
        match *completions {
            Completions::Run { first: RequestId { thread, number }, count } => {
                (number..number + count).for_each(|number| take(RequestId { thread, number }));
            }
            Completions::List(list) => list.iter().for_each(|completion| take(completion.request)),
        }
        first
    }

    fn of_name(&mut self, name: &str) -> usize {
        let name = tail(name);
        let is_new = !self.named.contains_key(name);
        let name = if is_new && self.named.len() >= Self::MOST_NAMES { "" } else { name };
        if let Some(&file) = self.named.get(name) {
            return file;
        }
        self.named.insert(name.to_owned(), self.uses.len());
        self.uses.push((name.to_owned(), FileUse::default()));
        self.uses.len() - 1
    }

    /// The files by name, in the order in which they were opened first; the name of those beyond [`FileUses::MOST_NAMES`] is empty.
    pub fn by_name(&self) -> impl Iterator<Item = (&str, &FileUse)> {
        self.uses.iter().map(|(name, used)| (name.as_str(), used))
    }
}

/// The end of a name, if that is too long.
fn tail(name: &str) -> &str {
    let longest = name.len().saturating_sub(FileUses::LONGEST_NAME);
    let from = (longest..=name.len()).find(|&at| name.is_char_boundary(at));
    &name[from.unwrap_or(name.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::event::CallSlot;
    use crate::ids::CommId;
    use crate::units::Nanos;

    /// Passes a call from `start` to `end`.
    fn call(uses: &mut FileUses, start: u64, end: u64, action: Action<'_>) {
        uses.event(&Event { start: Nanos(start), end: Nanos(end), thread: 0, call: CallSlot::NONE, action });
    }

    fn open(uses: &mut FileUses, id: u32, name: &str) {
        let detail = Detail::FileOpen { id: FileId(id), comm: CommId(0), mode: 0, name };
        call(uses, 0, 1, Action::Other { bytes: Bytes::ZERO, detail });
    }

    fn io(file: u32, write: bool, request: Option<u64>, bytes: u64) -> Action<'static> {
        let request = request.map(|number| RequestId { thread: 0, number });
        let io = Io { file: FileId(file), offset: None, write, collective: false, request };
        Action::Other { bytes: Bytes(bytes), detail: Detail::Io(io) }
    }

    #[test]
    fn a_name_that_is_opened_twice_is_one_file_and_waits_count_for_it() {
        let mut uses = FileUses::default();
        open(&mut uses, 0, "a");
        open(&mut uses, 1, "b");
        call(&mut uses, 10, 14, io(0, true, None, 100));
        // Without bytes: a call by which members agree.
        call(&mut uses, 14, 15, io(0, true, None, 0));
        call(&mut uses, 20, 21, io(1, false, Some(7), 30));
        let first = RequestId { thread: 0, number: 5 };
        call(&mut uses, 30, 50, Action::Complete(Completions::Run { first, count: 4 }));
        assert!(!uses.are_pending());
        call(&mut uses, 60, 61, Action::Other { bytes: Bytes::ZERO, detail: Detail::FileClose(FileId(0)) });
        // A closed file is nobody's.
        call(&mut uses, 62, 63, io(0, true, None, 9));
        open(&mut uses, 2, "a");
        let found: Vec<(&str, FileUse)> = uses.by_name().map(|(name, used)| (name, *used)).collect();
        let a = FileUse {
            opens: 2,
            calls: 5,
            writes: 1,
            written_bytes: 100,
            took: Ticks(8),
            ..FileUse::default()
        };
        let b =
            FileUse { opens: 1, calls: 2, reads: 1, read_bytes: 30, took: Ticks(22), ..FileUse::default() };
        assert_eq!(found, [("a", a), ("b", b)]);
    }

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let mut uses = FileUses::default();
        open(&mut uses, 0, &"ä".repeat(5000));
        for id in 1..3000 {
            open(&mut uses, id, &format!("file {id}"));
        }
        open(&mut uses, 3000, "file 1");
        let found: Vec<(&str, &FileUse)> = uses.by_name().collect();
        assert_eq!((found.len(), found[0].0.len()), (FileUses::MOST_NAMES + 1, FileUses::LONGEST_NAME));
        assert_eq!((found[1].0, found[1].1.opens), ("file 1", 2));
        assert_eq!((found[1024].0, found[1024].1.opens), ("", 3000 - 1024));
    }
}
