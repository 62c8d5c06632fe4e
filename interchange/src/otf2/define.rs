//! The definitions of an archive that is written, and its anchor.

use super::encode::{ChunkWriter, Record};
use crate::export::{Loaded, Notes};
use hashbrown::HashMap;
use std::io;
use vef_format::ids::CommId;

/// Sizes of chunks.
pub(super) const EVENTS: usize = 1 << 20;
pub(super) const DEFINITIONS: usize = 4 << 20;
/// The one that wrote the archive, and how: readers know the amounts of collectives by it.
const CREATOR: &str =
    concat!("vef ", env!("CARGO_PKG_VERSION"), ", with amounts of collectives as Score-P has them");

/// The number of `MPI_COMM_WORLD`, whose messages all are; those of others follow.
pub(super) const WORLD: u64 = 0;

/// The numbers of the communicators, without gaps.
pub(super) fn communicators(trace: &Loaded) -> HashMap<CommId, u64> {
    let world = trace.world();
    let mut others: Vec<CommId> = trace.members.keys().copied().filter(|&comm| world != Some(comm)).collect();
    others.sort_unstable();
    others.into_iter().zip(WORLD + 1..).chain(world.map(|world| (world, WORLD))).collect()
}

/// What is defined.
pub(super) struct Defined<'a> {
    pub(super) trace: &'a Loaded,
    pub(super) notes: &'a Notes,
    /// The numbers of the communicators.
    pub(super) comms: &'a HashMap<CommId, u64>,
    /// Names of the functions, by region.
    pub(super) functions: &'a [String],
    /// Numbers of events, by rank.
    pub(super) events: &'a [u64],
}

/// Writes strings, each once, and the definitions that name them.
struct Definer<'a, W> {
    out: &'a mut ChunkWriter<W>,
    strings: HashMap<String, u64>,
}

impl<W: io::Write> Definer<'_, W> {
    fn string(&mut self, text: &str) -> io::Result<u64> {
        if let Some(&known) = self.strings.get(text) {
            return Ok(known);
        }
        let number = self.strings.len() as u64;
        self.strings.insert(text.to_owned(), number);
        self.put(Record::default().with_length(10).packed(number).text(text))?;
        Ok(number)
    }

    fn put(&mut self, record: &mut Record) -> io::Result<()> {
        self.out.definition(record.end())
    }
}

/// Writes the definitions of an archive: its resolution is in ticks a second, its length in ticks.
pub(super) fn define<W: io::Write>(
    &Defined { trace, notes, comms, functions, events }: &Defined<'_>,
    (resolution, length): (u64, u64),
    out: &mut ChunkWriter<W>,
) -> io::Result<()> {
    let mut to = Definer { out, strings: HashMap::new() };
    let mut record = Record::default();
    to.put(record.with_length(5).packed(resolution).full(0).packed(length).undefined_full())?;
    let nothing = to.string("")?;
    let machine = to.string("machine")?;
    let node = to.string("node")?;
    to.put(record.with_length(12).packed(0).packed(nothing).packed(machine).undefined())?;
    let mut nodes: HashMap<&str, u64> = HashMap::new();
    for rank in 0..events.len() {
        let host = notes.hosts.as_ref().map_or("", |hosts| hosts[rank].as_str());
        let next = nodes.len() as u64 + 1;
        let at = *nodes.entry(host).or_insert(next);
        if at == next {
            let name = to.string(host)?;
            to.put(record.with_length(12).packed(at).packed(name).packed(node).packed(0))?;
        }
        let (rank, name) = (rank as u64, to.string(&format!("MPI Rank {rank}"))?);
        to.put(record.with_length(13).packed(rank).packed(name).byte(1).packed(at).undefined())?;
    }
    let thread = to.string("Master thread")?;
    for (rank, &events) in (0..).zip(events) {
        to.put(record.with_length(14).packed(rank).packed(thread).byte(1).packed(events).packed(rank))?;
    }
    for (region, function) in (0..).zip(functions) {
        let name = to.string(function)?;
        // No description, an older type, no place in a source; the canonical name, role unknown, paradigm MPI, no flags.
        record.with_length(15).packed(region).packed(name).packed(nothing).byte(0).undefined();
        to.put(record.packed(0).packed(0).packed(name).byte(0).byte(4).packed(0))?;
    }
    let ranks = events.len() as u64;
    let group = |to: &mut Definer<'_, W>, id: u64, kind: u8, members: &mut dyn Iterator<Item = u64>| {
        let (members, mut record): (Vec<u64>, _) = (members.collect(), Record::default());
        let old = if kind == 4 { 6 } else { 4 };
        record.with_length(18).packed(id).packed(nothing).byte(old).packed(members.len() as u64);
        for member in members {
            record.packed(member);
        }
        to.put(record.byte(kind).byte(4).packed(0))
    };
    group(&mut to, 0, 4, &mut (0..ranks))?;
    group(&mut to, 1, 5, &mut (0..ranks))?;
    let mut others: Vec<(u64, CommId)> =
        comms.iter().map(|(&comm, &number)| (number, comm)).filter(|&(number, _)| number != WORLD).collect();
    others.sort_unstable();
    for &(number, comm) in &others {
        let members = &trace.members[&comm];
        group(&mut to, number + 1, 5, &mut members.iter().map(|member| u64::from(member.0)))?;
    }
    let name = to.string("MPI_COMM_WORLD")?;
    to.put(Record::default().with_length(22).packed(WORLD).packed(name).packed(1).undefined().packed(0))?;
    for (number, comm) in others {
        let name = to.string(&format!("C{}", comm.0))?;
        record.with_length(22).packed(number).packed(name).packed(number + 1);
        to.put(record.packed(WORLD).packed(0))?;
    }
    Ok(())
}

/// The anchor: as version 3.0 of the library has it.
pub(super) fn anchor(ranks: u32, definitions: u64) -> Vec<u8> {
    let mut anchor = b"\x03\x42OTF2\0\x03\x02\x03\0\x02".to_vec();
    for chunk in [EVENTS, DEFINITIONS] {
        anchor.extend((chunk as u64).to_le_bytes());
    }
    // POSIX files, without compression.
    anchor.extend([1, 1]);
    for number in [ranks.into(), definitions] {
        anchor.extend(number.to_le_bytes());
    }
    // Machine, creator, description.
    anchor.push(0);
    anchor.extend(CREATOR.bytes());
    anchor.extend([0, 0]);
    // No properties; identifier of the trace; no snapshots nor thumbnails; the end.
    anchor.extend([0; 4]);
    anchor.extend([0; 8]);
    anchor.extend([0; 8]);
    anchor.extend([2, 1, 0]);
    anchor
}
