//! Writes traces as text or as a container.

use std::io::Write;

use vef_format::container::{self, About};
use vef_format::ids::{CommId, Rank};
use vef_format::record::{Header, LocalCollective, Message, Version};
use vef_format::text;
use vef_format::units::Picos;

use crate::Workload;
use crate::emit::{Counts, Emitter, Sink};
use crate::error::WorkloadError;
use crate::kernels;

impl Workload {
    /// Emits all records to `sink`, in order for each task.
    ///
    /// # Errors
    /// An invalid parameter, or an error of the sink.
    pub fn records<S: Sink>(&self, sink: &mut S) -> Result<(), WorkloadError> {
        self.check()?;
        kernels::emit(self, Emitter::new(self, sink))
    }

    /// The header of the trace.
    ///
    /// # Errors
    /// An invalid parameter.
    pub fn header(&self) -> Result<Header, WorkloadError> {
        let mut counts = Counts::default();
        self.records(&mut counts)?;
        Ok(Header {
            version: Version::V3,
            tasks: self.kernel.tasks(),
            messages: counts.messages,
            communicators: counts.communicators,
            collectives: counts.collectives,
            local_collectives: counts.local_collectives,
            received: 0,
            clock: Picos(1000),
        })
    }

    /// Writes the trace as text.
    ///
    /// # Errors
    /// An invalid parameter, or an I/O error.
    pub fn write_text(&self, out: impl Write) -> Result<Header, WorkloadError> {
        let header = self.header()?;
        let mut writer = Text(text::Writer::new(out, &header)?);
        self.records(&mut writer)?;
        writer.0.finish()?;
        Ok(header)
    }

    /// Writes the trace as a container.
    ///
    /// # Errors
    /// An invalid parameter, or an I/O error.
    pub fn write_container(
        &self,
        out: impl Write,
        settings: container::Settings,
    ) -> Result<Header, WorkloadError> {
        let header = self.header()?;
        let origin = vec![("program".to_owned(), format!("generated: {}", self.kernel))];
        let about = About { origin, ..About::default() };
        let mut writer = Container(container::Writer::new(out, &header, &about, settings)?);
        self.records(&mut writer)?;
        writer.0.finish()?;
        Ok(header)
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what, problem: &str| Err(WorkloadError::Setting { what, problem: problem.to_owned() });
        match self.kernel.tasks() {
            0 => {
                return wrong(
                    "ranks",
                    "every number must be at least 1, and their product at most 2147483647",
                );
            }
            1..=0x7fff_ffff => {}
            _ => return wrong("ranks", "at most 2147483647 are possible"),
        }
        if let kernels::Kernel::Training { micro_batches: 0, .. } = self.kernel {
            return wrong("micro-batches", "at least 1");
        }
        for (what, share) in [("imbalance", self.imbalance), ("noise", self.noise)] {
            if !(0.0..=1.0).contains(&share) {
                return wrong(what, "a share from 0 to 1");
            }
        }
        Ok(())
    }
}

struct Text<W: Write>(text::Writer<W>);

impl<W: Write> Sink for Text<W> {
    fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WorkloadError> {
        Ok(self.0.communicator(id, members)?)
    }

    fn message(&mut self, message: &Message) -> Result<(), WorkloadError> {
        Ok(self.0.message(message)?)
    }

    fn collective(&mut self, part: &LocalCollective) -> Result<(), WorkloadError> {
        Ok(self.0.collective(part)?)
    }
}

struct Container<W: Write>(container::Writer<W>);

impl<W: Write> Sink for Container<W> {
    fn communicator(&mut self, id: CommId, members: &[Rank]) -> Result<(), WorkloadError> {
        Ok(self.0.communicator(id, members)?)
    }

    fn message(&mut self, message: &Message) -> Result<(), WorkloadError> {
        Ok(self.0.message(message)?)
    }

    fn collective(&mut self, part: &LocalCollective) -> Result<(), WorkloadError> {
        Ok(self.0.collective(part)?)
    }
}
