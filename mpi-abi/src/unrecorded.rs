//! The time in which a task's calls were not recorded, of a capture of one phase (`vef run --only-phase`).

use vef_format::capture::event::{Action, Event};
use vef_format::units::Nanos;

/// Follows the phases of a task.
#[derive(Debug)]
pub struct Unrecorded {
    /// The phase in which calls are recorded.
    phase: String,
    /// How many of its entries are open.
    open: u32,
    /// Where the task left the phase, or entered it: when, and its time outside until then.
    edges: Vec<(Nanos, u64)>,
    /// Whether it is outside behind the last of them.
    outside: bool,
    /// The latest end of an event of each thread.
    ended: Vec<Nanos>,
}

impl Unrecorded {
    /// Of a task whose calls are recorded in `phase` only.
    pub fn outside(phase: &str) -> Self {
        let (edges, ended) = (Vec::new(), Vec::new());
        Self { phase: phase.to_owned(), open: 0, edges, outside: false, ended }
    }

    /// `MPI_Init` returned.
    pub fn begin(&mut self, at: Nanos) {
        if self.edges.is_empty() {
            self.edges.push((at, 0));
            self.outside = self.open == 0;
        }
    }

    /// Whether calls are recorded.
    pub fn is_inside(&self) -> bool {
        !self.outside
    }

    /// How much of the time of `thread` between its previous event and this one, in nanoseconds, was outside the phase. Communicators are
    /// made there, too.
    pub fn before(&mut self, thread: u16, event: &Event<'_>) -> u64 {
        match event.action {
            Action::Phase { begin, name } if name == self.phase => {
                self.open = if begin { self.open.saturating_add(1) } else { self.open.saturating_sub(1) };
                if self.outside == (self.open > 0) && !self.edges.is_empty() {
                    self.edges.push((event.start, self.until(event.start)));
                    self.outside = !self.outside;
                }
            }
            // It looks back.
            Action::Preempted => return 0,
            _ => {}
        }
        let thread = usize::from(thread);
        if thread >= self.ended.len() {
            self.ended.resize(thread + 1, Nanos(0));
        }
        let ended = self.ended[thread];
        self.ended[thread] = event.end.max(ended);
        self.until(event.start).saturating_sub(self.until(ended))
    }

    /// The time outside the phase until then. Edges are known up to the start of the latest event.
    fn until(&self, at: Nanos) -> u64 {
        let behind = self.edges.partition_point(|&(edge, _)| edge <= at);
        let Some(&(edge, before)) = behind.checked_sub(1).and_then(|last| self.edges.get(last)) else {
            return 0;
        };
        // Edges take turns, so the parity tells the side.
        let is_outside = self.outside == ((self.edges.len() - behind).is_multiple_of(2));
        if is_outside { before.saturating_add(at.since(edge).unwrap_or(0)) } else { before }
    }
}
