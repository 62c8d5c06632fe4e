//! The rules for files whose bytes storage servers keep: tasks behind those of the capture, which answer each request
//! ([`IoServers`](crate::IoServers)). Without servers, accesses are counted only.

use super::builder::{Builder, Lowered, Pending};
use super::opened::{OF_FILES, OpenFile, fnv};
use super::timeline::Chain;
use super::two_phases::Phases;
use crate::StorageServers;
use crate::error::Problem;
use crate::two_phase::Access;
use vef_format::account::TimePart;
use vef_format::capture::event::{Event, FileId, Io, Tile};
use vef_format::ids::{CommId, Rank};
use vef_format::units::Bytes;

impl Builder<'_> {
    /// A file is opened, with its pointers at `position`.
    pub(super) fn file_opened(
        &mut self,
        event: &Event<'_>,
        id: FileId,
        comm: CommId,
        position: i64,
        name: &str,
    ) -> Result<(), Problem> {
        let Some((of, index, _)) = self.duplicate(comm, OF_FILES, id.0)? else {
            self.not_representable(event.call, Bytes::ZERO);
            return Ok(());
        };
        let position = u64::try_from(position).unwrap_or(0);
        let first = self.options.io.map_or(0, |io| fnv(name) % io.servers.count);
        let file = OpenFile {
            of,
            comm: index,
            first,
            displacement: 0,
            unit: 1,
            position,
            shared: position,
            tile: None,
            accesses: 0,
        };
        self.files.insert(id, file);
        self.creation(event, of, None)
    }

    /// The view of a file is set, which also sets back its position.
    pub(super) fn file_viewed(
        &mut self,
        event: &Event<'_>,
        id: FileId,
        displacement: i64,
        unit: Bytes,
        tile: Option<Tile>,
    ) -> Result<(), Problem> {
        let Some(file) = self.files.get_mut(&id) else {
            self.not_representable(event.call, Bytes::ZERO);
            return Ok(());
        };
        let displacement = u64::try_from(displacement).unwrap_or(0);
        *file = OpenFile { displacement, unit: unit.0, position: 0, shared: 0, tile, ..*file };
        let comm = file.of;
        self.creation(event, comm, None)
    }

    /// A file is closed.
    pub(super) fn file_closed(&mut self, event: &Event<'_>, id: FileId) -> Result<(), Problem> {
        let Some(file) = self.files.remove(&id) else {
            self.not_representable(event.call, Bytes::ZERO);
            return Ok(());
        };
        self.creation(event, file.of, None)
    }

    /// The rank set its own position in a file.
    pub(super) fn file_sought(&mut self, id: FileId, position: i64) {
        if let Some(file) = self.files.get_mut(&id) {
            file.position = u64::try_from(position).unwrap_or(0).saturating_mul(file.unit);
        }
    }

    /// Rule 16: a file is read or written, or all its servers store what was written. A collective access is one of each member, behind their agreement, unless they gather pieces in two
    /// phases.
    pub(super) fn accessed(&mut self, event: &Event<'_>, io: &Io, bytes: Bytes) -> Result<(), Problem> {
        let mut chain = Chain::default();
        let agreed = match self.files.get(&io.file).map(|file| file.of).filter(|_| io.collective) {
            Some(of) => self.agree(event, of, None, &mut chain)?,
            _ => false,
        };
        let Some((StorageServers { first, servers }, file)) =
            self.options.io.zip(self.files.get_mut(&io.file))
        else {
            if !agreed || bytes != Bytes::ZERO {
                self.not_representable(event.call, bytes);
            }
            self.timeline.end(event, &chain);
            return self.start(io.request, Pending::Outside(TimePart::File));
        };
        let (comm, first_server) = (file.comm, file.first);
        let is_shared = self.agreements.are_at_shared_pointer(event.call);
        let at = match io.offset {
            Some(offset) => u64::try_from(offset).unwrap_or(0).saturating_mul(file.unit),
            None => {
                let position = if is_shared { &mut file.shared } else { &mut file.position };
                let at = *position;
                *position = at.saturating_add(bytes.0);
                at
            }
        };
        if io.collective && io.request.is_none() && !self.agreements.of(event.call).is_empty() {
            let place = (!is_shared).then(|| file.place(at, bytes));
            let (of, number) = (file.of, file.accesses);
            file.accesses += 1;
            self.task.accesses.push(Access { comm, at: event.start.0, place, bytes });
            let plan = self.plans.and_then(|all| all.get(&comm)?.get(number)?.as_ref());
            if let Some(plan) = plan {
                let phases = Phases { of, first_server, write: io.write, plan };
                self.in_two_phases(event, &phases, &mut chain)?;
                self.timeline.end(event, &chain);
                return Ok(());
            }
        }
        let at = file.displacement.saturating_add(at);
        let mut awaited = Lowered { part: TimePart::File, ..Lowered::of_window(Vec::new()) };
        let stores = self.agreements.are_of_storing(event.call);
        let asked = servers.of_file(first_server).filter(|_| stores).map(|server| (server, Bytes::ZERO));
        for (server, share) in servers.shares(first_server, at, bytes).chain(asked) {
            let moved = if io.write { [share, Bytes::ZERO] } else { [Bytes::ZERO, share] };
            awaited.receives.push(self.ask(
                (event.start.0, 0),
                event,
                comm,
                Rank(first.0 + server),
                moved,
                &mut chain,
            )?);
        }
        match io.request {
            Some(_) => self.start_lowered(io.request, awaited)?,
            None => self.complete_lowered(event, &awaited, &mut chain),
        }
        self.timeline.end(event, &chain);
        Ok(())
    }
}
