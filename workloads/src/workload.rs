//! A trace to generate: its pattern and parameters.

use std::fmt;
use std::io::Write;

use vef_format::container::{self, About};
use vef_format::record::{Header, Line};
use vef_format::text;
use vef_format::trace::TraceWriter;
use vef_format::units::{Bytes, Picos, Ticks};

use crate::emit::{Emitter, Sink};
use crate::error::WorkloadError;
use crate::model::Model;

/// A communication pattern; [`crate::PATTERNS`] has all.
#[derive(Debug)]
pub struct Pattern {
    /// Its name in options.
    pub name: &'static str,
    /// How tasks are numbered.
    pub layout: Layout,
    /// Emits all iterations.
    pub(crate) emit: fn(&Workload, &mut Emitter<'_>) -> Result<(), WorkloadError>,
}

/// What the tasks of a pattern form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A row of any length.
    Row,
    /// A grid of two dimensions.
    Grid2d,
    /// A grid of three dimensions.
    Grid3d,
    /// Replicas of a model, tasks that share each layer, and stages of a pipeline.
    Model,
}

impl Layout {
    /// The sizes for this many tasks: the squarest grid, or data-parallel replicas.
    pub fn sizes(self, tasks: u32) -> Vec<u32> {
        match self {
            Self::Row => vec![tasks],
            Self::Grid2d => square(tasks).into(),
            Self::Grid3d => cube(tasks).into(),
            Self::Model => vec![tasks, 1, 1],
        }
    }

    /// Number of sizes.
    pub fn dimensions(self) -> usize {
        match self {
            Self::Row => 1,
            Self::Grid2d => 2,
            Self::Grid3d | Self::Model => 3,
        }
    }
}

/// Most tasks; each takes memory.
const MOST_TASKS: u32 = 1 << 24;

/// A trace to generate.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The communication pattern.
    pub pattern: &'static Pattern,
    /// Tasks in each dimension of the pattern's layout.
    pub sizes: Vec<u32>,
    /// Payload of a message, or of each member's block in a collective.
    pub bytes: Bytes,
    /// Number of iterations of the pattern.
    pub iterations: u32,
    /// Computing of a task per iteration, in nanoseconds.
    pub compute: Ticks,
    /// Largest deviation of a task's factor for its computing from 1.
    pub imbalance: f64,
    /// Largest deviation of an iteration's factor for the computing of a task from 1.
    pub noise: f64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Training: micro-batches per step.
    pub micro_batches: u32,
    /// Training: gradients per task.
    pub gradient: Bytes,
    /// The language model, of which a step is trained.
    pub model: Model,
}

impl Workload {
    /// A pattern with this many tasks, and parameters that may be changed.
    pub fn new(pattern: &'static Pattern, tasks: u32) -> Self {
        Self {
            pattern,
            sizes: pattern.layout.sizes(tasks),
            bytes: Bytes(8192),
            iterations: 100,
            compute: Ticks(10_000),
            imbalance: 0.0,
            noise: 0.0,
            seed: 1,
            micro_batches: 4,
            gradient: Bytes(64 << 20),
            model: Model::default(),
        }
    }

    /// Number of tasks; 0 if the product overflows.
    pub fn tasks(&self) -> u32 {
        self.sizes.iter().try_fold(1u32, |a, &b| a.checked_mul(b)).unwrap_or(0)
    }

    /// The header of the trace.
    ///
    /// # Errors
    /// An invalid parameter.
    pub fn header(&self) -> Result<Header, WorkloadError> {
        let mut header = Header { tasks: self.tasks(), clock: Picos(1000), ..Header::default() };
        self.emit(&mut |line| {
            match line {
                Line::Communicator { .. } => header.communicators += 1,
                Line::Message(_) => header.messages += 1,
                Line::Collective(part) => {
                    header.local_collectives += 1;
                    header.collectives = part.id.0 + 1;
                }
            }
            Ok(())
        })?;
        Ok(header)
    }

    /// Writes the trace as text.
    ///
    /// # Errors
    /// An invalid parameter, or an I/O error.
    pub fn write_text(&self, out: impl Write) -> Result<Header, WorkloadError> {
        let header = self.header()?;
        self.write(TraceWriter::Text(text::Writer::new(out, &header)?))?;
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
        let origin = vec![("program".to_owned(), format!("generated: {self}"))];
        let about = About { origin, ..About::default() };
        let writer = container::Writer::new(out, &header, &about, settings)?;
        self.write(TraceWriter::Container(Box::new(writer)))?;
        Ok(header)
    }

    fn write(&self, mut writer: TraceWriter<impl Write>) -> Result<(), WorkloadError> {
        self.emit(&mut |line| Ok(writer.line(line)?))?;
        Ok(writer.finish()?)
    }

    /// Emits all records, in order for each task.
    fn emit(&self, sink: Sink<'_>) -> Result<(), WorkloadError> {
        self.check()?;
        let deviations = (self.imbalance, self.noise);
        let mut emitter = Emitter::new(sink, self.tasks(), self.compute, deviations, self.seed);
        (self.pattern.emit)(self, &mut emitter)?;
        emitter.finish()
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let wrong = |what, problem: &str| Err(WorkloadError::Setting { what, problem: problem.to_owned() });
        match self.tasks() {
            0 => wrong("ranks", "every number must be at least 1, and their product at most 16777216")?,
            1..=MOST_TASKS => {}
            _ => wrong("ranks", "at most 16777216 are possible")?,
        }
        if self.pattern.layout == Layout::Model && self.micro_batches == 0 {
            wrong("micro-batches", "at least 1")?;
        }
        for (what, share) in [("imbalance", self.imbalance), ("noise", self.noise)] {
            if !(0.0..=1.0).contains(&share) {
                wrong(what, "a share from 0 to 1")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Workload {
    /// The pattern and its sizes: `halo2d (4x4)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.pattern.name)?;
        match (self.pattern.layout, &self.sizes[..]) {
            (Layout::Row, _) => Ok(()),
            (Layout::Model, [data, tensor, pipeline]) => {
                write!(f, " (data {data}, tensor {tensor}, pipeline {pipeline})")
            }
            (Layout::Grid2d | Layout::Grid3d | Layout::Model, sizes) => {
                write!(f, " ({})", sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x"))
            }
        }
    }
}

/// The squarest rectangle with this many tasks.
fn square(tasks: u32) -> [u32; 2] {
    let mut side = (f64::from(tasks)).sqrt() as u32 + 1;
    while side > 1 && !tasks.is_multiple_of(side) {
        side -= 1;
    }
    let side = side.max(1);
    [side.max(tasks / side), side.min(tasks / side)]
}

/// The most cubic box with this many tasks.
fn cube(tasks: u32) -> [u32; 3] {
    let mut best = [tasks, 1, 1];
    for a in (1..=tasks)
        .take_while(|&a| u64::from(a).pow(3) <= u64::from(tasks))
        .filter(|&a| tasks.is_multiple_of(a))
    {
        let [b, c] = square(tasks / a);
        let found = [b.max(a), c.max(a.min(b)).min(b.max(a)), a.min(c)];
        let spread = |sides: &[u32; 3]| sides.iter().max().zip(sides.iter().min()).map_or(0, |(a, b)| a - b);
        if spread(&found) < spread(&best) {
            best = found;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids() {
        assert_eq!((square(64), square(12), square(7), square(1)), ([8, 8], [4, 3], [7, 1], [1, 1]));
        let sorted = |tasks| {
            let mut sides = cube(tasks);
            sides.sort_unstable();
            sides
        };
        assert_eq!(
            (sorted(64), sorted(240), sorted(7), sorted(4096)),
            ([4, 4, 4], [5, 6, 8], [1, 1, 7], [16, 16, 16])
        );
        for tasks in 1..300 {
            assert_eq!(square(tasks).iter().product::<u32>(), tasks);
            assert_eq!(cube(tasks).iter().product::<u32>(), tasks, "{:?}", cube(tasks));
        }
    }
}
