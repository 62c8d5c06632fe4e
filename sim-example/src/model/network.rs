//! The interface of the networks: messages are submitted, their delivery is reported.

use replay::Kind;
use vef_format::units::{Bytes, Picos};

use super::links::Usage;
use crate::topology::{Fabric, Vertex};
use crate::watch::Watch;

/// A message would arrive after 2⁶⁴ picoseconds, or the packet model would divide it into more than 2²⁶ packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {} bytes would arrive after 2^64 ps (213 days), or has more than 2^26 packets", .bytes.0)]
pub struct OutOfTime {
    /// Its payload.
    pub bytes: Bytes,
}

/// A message to carry, between nodes of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The node that sends.
    pub src: u32,
    /// The node that receives; it may be the same.
    pub dst: u32,
    /// Its payload.
    pub bytes: Bytes,
    /// Chosen by the caller.
    pub tag: u64,
    /// Who sends it.
    pub origin: Origin,
}

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A job, by number, in an operation of this kind.
    Job {
        /// The job.
        job: u32,
        /// The operation.
        kind: Kind,
        /// The ranks that send and receive.
        ranks: [u32; 2],
    },
    /// Traffic beside the jobs.
    Background,
}

impl Origin {
    /// That of what goes from the receiver to the sender.
    pub(crate) fn back(self) -> Self {
        match self {
            Self::Job { job, kind, ranks: [from, to] } => Self::Job { job, kind, ranks: [to, from] },
            Self::Background => Self::Background,
        }
    }
}

impl Default for Origin {
    /// Point-to-point of job 0.
    fn default() -> Self {
        Self::Job { job: 0, kind: Kind::PointToPoint, ranks: [0, 1] }
    }
}

/// What congestion control has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congested {
    /// Packets marked.
    pub marked: u64,
    /// Notifications of senders (DCQCN).
    pub notified: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets sent again.
    pub sent_again: u64,
    /// Times that a sender heard nothing for too long.
    pub timeouts: u64,
    /// Most bytes that waited for a link; of output buffers.
    pub largest_queue: u64,
}

/// The routes of what has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    /// Messages, or packets in the packet model, that have arrived or are on their last link.
    pub arrived: u64,
    /// The links that these crossed, those of nodes included.
    pub links: u64,
}

impl Hops {
    /// Adds a route.
    #[inline]
    pub fn add(&mut self, links: u32) {
        self.arrived += 1;
        self.links += u64::from(links);
    }

    /// Links of a route, in the mean; `None` if nothing has arrived.
    pub fn mean(self) -> Option<f64> {
        (self.arrived > 0).then(|| self.links as f64 / self.arrived as f64)
    }
}

/// An event of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The last byte has left the node.
    Sent {
        /// That of [`Carried`].
        tag: u64,
    },
    /// The last byte has arrived.
    Delivered {
        /// That of [`Carried`].
        tag: u64,
        /// Time since submission.
        latency: Picos,
        /// Time from submission until the first byte left the node.
        queued: Picos,
    },
}

/// What [`Network::stranded`] says of a switch and a destination.
pub(super) fn stranded(fabric: &Fabric, at: u32, dst: u32) -> String {
    let [at, dst] = [Vertex::Switch(at), Vertex::Node(dst)].map(|vertex| fabric.vertex_name(vertex));
    format!("a message for {dst} is in switch {at}, from which no route leads there any more")
}

/// A network that carries messages.
///
/// `examples/own_model.rs` is one of another crate.
pub trait Network {
    /// Submits a message at `at`, not before the last event that was processed.
    ///
    /// # Errors
    /// The message would arrive too late.
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime>;

    /// Processes events up to `limit`, and returns the first one that concerns a message, with its time.
    ///
    /// # Errors
    /// A message would arrive too late.
    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime>;

    /// Use of each link, by number.
    fn usage(&self) -> Vec<Usage>;

    /// Number of events so far: steps of messages or packets.
    fn events(&self) -> u64;

    /// The routes of what has arrived; `None` of a network that does not count them.
    fn hops(&self) -> Option<Hops> {
        None
    }

    /// When no event is left and not all messages are delivered: the channels that wait for each other.
    fn deadlock(&self) -> Option<String> {
        None
    }

    /// When not all messages are delivered: one that is at a switch from which no link leads on any more, and that switch.
    fn stranded(&self) -> Option<String> {
        None
    }

    /// What congestion control has done, if there is any.
    fn congested(&self) -> Option<Congested> {
        None
    }

    /// Takes the recorder of optional results (links over time, the critical path). Without one, or in a network that does not
    /// keep it, these are empty.
    fn set_watch(&mut self, _: Option<Box<Watch>>) {}

    /// The recorder, if one is set.
    fn watch(&mut self) -> Option<&mut Watch> {
        None
    }
}

/// The methods of a network that another one around it does not change.
macro_rules! forward {
    ($this:ident => $inner:expr) => {
        fn usage(&$this) -> Vec<$crate::model::Usage> {
            $inner.usage()
        }

        fn events(&$this) -> u64 {
            $inner.events()
        }

        fn hops(&$this) -> Option<$crate::model::Hops> {
            $inner.hops()
        }

        fn deadlock(&$this) -> Option<String> {
            $inner.deadlock()
        }

        fn stranded(&$this) -> Option<String> {
            $inner.stranded()
        }

        fn congested(&$this) -> Option<$crate::model::Congested> {
            $inner.congested()
        }

        fn set_watch(&mut $this, watch: Option<Box<$crate::watch::Watch>>) {
            $inner.set_watch(watch);
        }

        fn watch(&mut $this) -> Option<&mut $crate::watch::Watch> {
            $inner.watch()
        }
    };
}
pub(crate) use forward;

impl<N: Network + ?Sized> Network for Box<N> {
    fn submit(&mut self, at: Picos, message: Carried) -> Result<(), OutOfTime> {
        (**self).submit(at, message)
    }

    fn run_until(&mut self, limit: Picos) -> Result<Option<(Picos, Happened)>, OutOfTime> {
        (**self).run_until(limit)
    }

    forward!(self => (**self));
}
