//! A capture as time-independent text traces, as MinI writes them ([`vef_format::time_independent`]): one file a rank, a line a
//! call.
//!
//! A receive's line stands where it was posted; the sender of one from `MPI_ANY_SOURCE` is looked up before, in a pass of its own
//! over the events. Memory is constant but for those senders and for what is known of communicators and datatypes.
//!
//! Not written: what MinI does not know and no line could say (one-sided, files, neighbourhoods, inter-communicators, matched
//! receives, messages to `MPI_PROC_NULL`), and waits that completed nothing.

use super::error::{TextError, placed};
use super::output::Output;
use crate::wildcards::Matched;
use mpi_abi::unrecorded::Unrecorded;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use vef_format::capture::event::{
    Action, Collective, Communicator, Datatype, DatatypeId, Event, Origin, Receive, Send, SendMode,
};
use vef_format::capture::{Capture, Function, Group};
use vef_format::ids::{CommId, CommRank, Rank};
use vef_format::operation::Operation;
use vef_format::time_independent::{
    COMPLETIONS, NOT_CONTIGUOUS, RANKS_FILE, RECEIVES, SENDS, collective_name,
};
use vef_format::units::{Bytes, Nanos};

/// MinI's codes of predefined datatypes; others count as derived ones.
const CODES: [(&str, u32); 11] = [
    ("MPI_DOUBLE", 0),
    ("MPI_DOUBLE_PRECISION", 0),
    ("MPI_INT", 1),
    ("MPI_INTEGER", 1),
    ("MPI_CHAR", 2),
    ("MPI_CHARACTER", 2),
    ("MPI_SHORT", 3),
    ("MPI_LONG", 4),
    ("MPI_FLOAT", 5),
    ("MPI_REAL", 5),
    ("MPI_BYTE", BYTE),
];
const BYTE: u32 = 6;
/// A derived datatype without holes.
const CONTIGUOUS: u32 = 100;

/// Writes the traces of all ranks of `capture` into the directory `to`. `times`: with a line `<rank> compute <ns>` between calls.
///
/// # Errors
/// See [`TextError`].
pub fn write(capture: &Capture, to: &Path, times: bool) -> Result<(), TextError> {
    let tasks = capture.tasks();
    fs::create_dir_all(to).map_err(|error| placed(to, error))?;
    for rank in (0..tasks).map(Rank) {
        let to = Output::replace(to.join(format!("ti_trace{rank}.txt")))?;
        let matched = Matched::of_rank(capture, rank)?;
        let mut events = capture.events(rank)?;
        let functions = events.functions().iter().map(Known::of).collect();
        let mut trace = Trace {
            to,
            unrecorded: events.only_phase().map(Unrecorded::outside),
            rank,
            tasks,
            functions,
            matched,
            comms: HashMap::default(),
            types: HashMap::default(),
            groups: HashMap::new(),
            counts: Vec::new(),
            last: None,
            computing: 0,
            times,
        };
        events.each(|event| trace.event(event))?;
        trace.to.finish()?;
    }
    // Without it nobody could tell that the last rank's file is missing.
    let mut ranks = Output::replace(to.join(RANKS_FILE))?;
    ranks.write_fmt(format_args!("{tasks}\n"))?;
    ranks.finish()
}

/// What the traces call a function.
struct Known {
    /// Its name in MPI, without a suffix for large counts.
    plain: String,
    /// Its name in the trace, if it is a message or completes requests.
    line: Option<&'static str>,
    /// Of a collective: whether it returns a request at once.
    immediate: bool,
}

impl Known {
    fn of(function: &Function) -> Self {
        let plain = function.name.trim_end_matches("_c").to_owned();
        let stem = plain.trim_end_matches("_replace");
        let mut listed = COMPLETIONS.iter().chain(&SENDS).chain(&RECEIVES);
        let line = listed.find(|(mpi, _)| *mpi == stem).map(|(_, name)| *name);
        let immediate = plain.starts_with("MPI_I");
        Self { plain, line, immediate }
    }
}

/// A communicator, as the trace speaks of it.
struct Named {
    name: String,
    group: Group,
    foreign: bool,
    /// This process's rank in it, where that is to be written: not in `MPI_COMM_WORLD`.
    rank: Option<CommRank>,
    /// How many rootless collectives it had.
    collectives: u64,
}

/// The size and MinI's code of a datatype.
#[derive(Clone, Copy)]
struct Type {
    size: u64,
    code: u32,
}

/// One rank's trace.
struct Trace {
    to: Output,
    /// Of a capture of one phase.
    unrecorded: Option<Unrecorded>,
    rank: Rank,
    tasks: u32,
    /// By slot of the call table.
    functions: Vec<Known>,
    /// Source and tag of the messages that receives matched.
    matched: Matched,
    comms: HashMap<u32, Named>,
    types: HashMap<u32, Type>,
    /// How many communicators were made by groups of the same tag, first member and size.
    groups: HashMap<(i32, Rank, u32), u32>,
    /// Room for the counts of a vector form.
    counts: Vec<u64>,
    /// When the previous call ended.
    last: Option<Nanos>,
    /// Computing since the previous line.
    computing: u64,
    times: bool,
}

/// What a message carries, and where: its communicator, bytes and datatype.
type Load = (CommId, Bytes, DatatypeId);

impl Trace {
    /// So much of the time since the previous call is no computing.
    fn leave_out(&mut self, took: u64) {
        self.last = self.last.map(|last| Nanos(last.0.saturating_add(took)));
    }

    fn event(&mut self, event: &Event<'_>) -> Result<(), TextError> {
        // The calls of all threads are one sequence.
        let unrecorded = self.unrecorded.as_mut().map_or(0, |phase| phase.before(0, event));
        self.leave_out(unrecorded);
        // A call that completes nothing has no line, and is time between the others.
        if let Action::Polls { .. } = event.action {
            return Ok(());
        }
        // Nor has a time without a core, which is no computing.
        if let Action::Preempted = event.action {
            if self.unrecorded.as_ref().is_none_or(Unrecorded::is_inside) {
                self.leave_out(event.end.0.saturating_sub(event.start.0));
            }
            return Ok(());
        }
        let function = event.call.index().and_then(|slot| self.functions.get(slot));
        let line = function.and_then(|function| function.line);
        let is_call = !matches!(
            event.action,
            Action::Init
                | Action::Communicator(_)
                | Action::Meeting(_)
                | Action::Creation(_)
                | Action::Topology(_)
                | Action::Neighbourhood(_)
                | Action::Partitioned(_)
                | Action::Datatype(_)
                | Action::Phase { .. }
                | Action::Other { .. }
        );
        // What lies before an event without a line is in front of the next line.
        self.computing += self.last.map_or(0, |last| event.start.0.saturating_sub(last.0));
        self.last = Some(event.end);
        let is_mark = matches!(event.action, Action::Communicator(_) | Action::Phase { .. });
        if self.times && (is_call || is_mark && self.computing > 0) {
            writeln!(self.to, "{} compute {}", self.rank, self.computing)?;
            self.computing = 0;
        }
        match &event.action {
            Action::Init => {
                if let Some(phase) = &mut self.unrecorded {
                    phase.begin(event.end);
                }
                writeln!(self.to, "{} init 1", self.rank)?;
            }
            Action::Finalize => writeln!(self.to, "{} finalize", self.rank)?,
            Action::Phase { begin, name } => {
                let name = name.replace(['\n', '\0'], " ");
                writeln!(self.to, "Phase {name} {}.", if *begin { "start" } else { "end" })?;
            }
            Action::Communicator(described) => self.communicator(event, described)?,
            Action::CommunicatorFree(comm) => {
                if let Some(freed) = self.comms.remove(&comm.0).filter(|freed| !freed.foreign) {
                    writeln!(self.to, "Comm {} free.", freed.name)?;
                }
            }
            Action::Datatype(described) => self.datatype(described),
            Action::Send(send) => self.send(line, send)?,
            Action::Receive(receive) => self.receive(line.unwrap_or("recv"), receive)?,
            // A matched probe is none that MinI knows.
            Action::PostReceive(post)
                if function.is_some_and(|function| !function.plain.contains("probe")) =>
            {
                let matched = || self.matched.source(post.request);
                let (source, load) = (post.source.or_else(matched), (post.comm, post.bytes, post.datatype));
                self.reception(line.unwrap_or("Irecv"), source, load)?;
            }
            Action::Exchange { send, receive } => {
                self.send(line, send)?;
                self.receive("Sendrecv", receive)?;
            }
            Action::Complete(_) => {
                if let Some(name) = line.filter(|name| COMPLETIONS.iter().any(|(_, known)| known == name)) {
                    writeln!(self.to, "{} {name}", self.rank)?;
                }
            }
            Action::Collective(part) if self.comms.get(&part.comm.0).is_none_or(|comm| !comm.foreign) => {
                let immediate = function.is_some_and(|function| function.immediate);
                self.collective(immediate, part)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn datatype(&mut self, described: &Datatype<'_>) {
        let code = CODES.iter().find(|(name, _)| *name == described.name).map(|(_, code)| *code);
        let code = code.unwrap_or(if described.contiguous { CONTIGUOUS } else { NOT_CONTIGUOUS });
        self.types.insert(described.id.0, Type { size: described.size.0, code });
    }

    fn type_of(&self, datatype: DatatypeId) -> Type {
        self.types.get(&datatype.0).copied().unwrap_or(Type { size: 0, code: CONTIGUOUS })
    }

    fn send(&mut self, name: Option<&str>, send: &Send) -> Result<(), TextError> {
        // Of the start of a persistent request: as the non-blocking form.
        let started = match send.mode {
            SendMode::Standard => "Isend",
            SendMode::Buffered => "Ibsend",
            SendMode::Synchronous => "Issend",
            SendMode::Ready => "Irsend",
        };
        let load = (send.comm, send.bytes, send.datatype);
        self.message(name.unwrap_or(started), Some(send.dest), load)
    }

    fn receive(&mut self, name: &str, receive: &Receive) -> Result<(), TextError> {
        self.reception(name, Some(receive.source), (receive.comm, receive.bytes, receive.datatype))
    }

    /// As [`Trace::message`]; in an exchange the first field is the sender.
    fn reception(&mut self, name: &str, source: Option<CommRank>, load: Load) -> Result<(), TextError> {
        if !name.ends_with("endrecv") {
            return self.message(name, source, load);
        }
        let Some(comm) = self.comms.get(&load.0.0).filter(|comm| !comm.foreign) else { return Ok(()) };
        let own = comm.rank.map_or(self.rank.0, |rank| rank.0);
        match source.and_then(|source| comm.group.get(source)) {
            // The line of a send to oneself is that of its receive, too: twice it would be two messages.
            Some(sender) if sender != self.rank => write!(self.to, "{sender} {name} {own}")?,
            _ => return Ok(()),
        }
        self.load(load)
    }

    /// `0 send 1 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD`; an unknown peer is -1.
    fn message(&mut self, name: &str, peer: Option<CommRank>, load: Load) -> Result<(), TextError> {
        if self.comms.get(&load.0.0).is_some_and(|comm| comm.foreign) {
            return Ok(());
        }
        let peer = peer.map_or(-1, |peer| i64::from(peer.0));
        write!(self.to, "{} {name} {peer}", self.rank)?;
        self.load(load)
    }

    /// ` 1 (of 4 bytes) 1 on comm MPI_COMM_WORLD`.
    fn load(&mut self, (comm, bytes, datatype): Load) -> Result<(), TextError> {
        let Type { size, code } = self.type_of(datatype);
        let count = bytes.0.checked_div(size).unwrap_or(0);
        let comm = self.comms.get(&comm.0).map_or("unknown", |comm| &comm.name);
        writeln!(self.to, " {count} (of {size} bytes) {code} on comm {comm}")
    }

    /// `0 allReduce 1 (of 4 bytes) of type 1 on comm mini_comm_0_0 1`.
    fn collective(&mut self, immediate: bool, part: &Collective<'_>) -> Result<(), TextError> {
        let letter = if immediate { "I" } else { "" };
        write!(self.to, "{} {letter}{}", self.rank, collective_name(part.operation))?;
        let mut sent = self.type_of(part.datatype);
        let received = part.recv_datatype.map(|datatype| self.type_of(datatype));
        let Some(comm) = self.comms.get_mut(&part.comm.0) else { return writeln!(self.to) };
        if part.operation == Operation::Barrier {
            return writeln!(self.to, " on comm {}", comm.name);
        }
        if part.operation == Operation::Alltoallw {
            // Every peer has its own datatype: in bytes.
            sent = Type { size: 1, code: if sent.code == NOT_CONTIGUOUS { NOT_CONTIGUOUS } else { BYTE } };
        }
        let bytes = if part.send_counts.is_empty() { part.recv_counts } else { part.send_counts };
        if bytes.is_empty() {
            write!(self.to, " {}", part.count)?;
        } else {
            self.counts.clear();
            self.counts.extend(bytes.iter().map(|bytes| bytes.checked_div(sent.size).unwrap_or(0)));
            let [least, median, most] = summary(&mut self.counts);
            write!(self.to, " min={least} median={median} max={most}")?;
        }
        write!(self.to, " (of {} bytes) ", sent.size)?;
        if let Some(root) = part.root {
            write!(self.to, "{root} ")?;
        }
        match received {
            Some(received) => write!(self.to, "of types {}, {}", sent.code, received.code)?,
            None => write!(self.to, "of type {}", sent.code)?,
        }
        write!(self.to, " on comm {}", comm.name)?;
        match (part.root, comm.rank) {
            (None, _) => {
                comm.collectives += 1;
                writeln!(self.to, " {}", comm.collectives)
            }
            (Some(_), Some(rank)) => writeln!(self.to, " {rank}"),
            (Some(_), None) => writeln!(self.to),
        }
    }

    /// `0 Comm split. color=0, key=0.New comm mini_comm_0_0 of size 4`.
    ///
    /// The first number of a name is the index of the creating call on its parent: all members agree on that without asking each
    /// other. Below a parent other than the world, the parent's numbers come first.
    fn communicator(&mut self, event: &Event<'_>, described: &Communicator<'_>) -> Result<(), TextError> {
        let group = Group::new(described.members, self.tasks).unwrap_or_default();
        let first = group.get(CommRank(0)).unwrap_or_default();
        let size = group.count();
        let made_by = event.call.index().and_then(|slot| self.functions.get(slot));
        let mut of_group = |tag: i32| {
            let index = self.groups.entry((tag, first, size)).or_insert(0);
            *index += 1;
            format!("mini_group_{tag}_{first}_{size}_{}", *index - 1)
        };
        let name = match described.origin {
            Origin::World => "MPI_COMM_WORLD".to_owned(),
            Origin::SelfOnly => "MPI_COMM_SELF".to_owned(),
            Origin::Child { parent, ordinal } => {
                let parent = self.comms.get(&parent.0).map_or("unknown", |parent| &parent.name);
                let of = match (parent, parent.strip_prefix("mini_comm_")) {
                    ("MPI_COMM_WORLD", _) => String::new(),
                    (_, Some(numbers)) => format!("{numbers}_"),
                    (other, None) => format!("{other}_"),
                };
                let last = described.split.map_or(i64::from(first.0), |split| split.color.into());
                format!("mini_comm_{of}{ordinal}_{last}")
            }
            Origin::Group { tag, .. } => of_group(tag),
            Origin::Unseen { .. } if made_by.is_some() => of_group(0),
            Origin::Unseen { .. } => format!("mini_comm_unseen_{first}_{size}"),
        };
        let foreign = described.foreign || described.is_inter();
        if let Some(function) = made_by.filter(|_| !foreign) {
            write!(self.to, "{} Comm ", self.rank)?;
            match described.split {
                Some(split) => write!(self.to, "split. color={}, key={}", split.color, split.key)?,
                None => {
                    let how = function.plain.trim_start_matches("MPI_").trim_start_matches("Comm_");
                    write!(self.to, "{}", how.to_ascii_lowercase())?;
                }
            }
            writeln!(self.to, ".New comm {name} of size {size}")?;
        }
        let rank = match described.origin {
            Origin::World => None,
            _ => group.rank_of(self.rank),
        };
        self.comms.insert(described.id.0, Named { name, group, foreign, rank, collectives: 0 });
        Ok(())
    }
}

/// Least, median and most; of an even number of counts the median is the mean of the middle two.
fn summary(counts: &mut [u64]) -> [u64; 3] {
    if counts.is_empty() {
        return [0; 3];
    }
    let middle = counts.len() / 2;
    let even = counts.len().is_multiple_of(2);
    let (below, &mut upper, above) = counts.select_nth_unstable(middle);
    let lower = below.iter().max().copied().filter(|_| even).unwrap_or(upper);
    let least = below.iter().min().copied().unwrap_or(upper);
    let most = above.iter().max().copied().unwrap_or(upper);
    [least, lower.midpoint(upper), most]
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn spreads() {
        let of = |counts: &[u64]| summary(&mut counts.to_vec());
        assert_eq!(of(&[5]), [5, 5, 5]);
        assert_eq!(of(&[9, 1, 4]), [1, 4, 9]);
        assert_eq!(of(&[8, 1, 2, 4]), [1, 3, 8]);
        assert_eq!(of(&[u64::MAX, u64::MAX]), [u64::MAX, u64::MAX, u64::MAX]);
    }
}
