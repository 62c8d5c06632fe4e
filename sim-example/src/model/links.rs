//! The links: how fast they are, and what they have carried.

use vef_format::units::{Bytes, Picos};

use crate::quantity::Bandwidth;
use crate::topology::{LinkClass, LinkId, Topology};

/// The links' speeds and the delays of interfaces and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// Of the links between switches.
    pub bandwidth: Bandwidth,
    /// Of the links between switches.
    pub latency: Picos,
    /// Of the links between nodes and switches; as between switches where absent.
    pub node_bandwidth: Option<Bandwidth>,
    /// Of the links between nodes and switches; as between switches where absent.
    pub node_latency: Option<Picos>,
    /// Of the links between groups of a dragonfly; as within groups where absent.
    pub global_bandwidth: Option<Bandwidth>,
    /// Of the links between groups of a dragonfly; as within groups where absent.
    pub global_latency: Option<Picos>,
    /// What a switch takes to pass a message on (σ).
    pub switch_delay: Picos,
    /// What a node's interface takes to prepare a message, before its first byte enters the network (o).
    pub overhead: Picos,
    /// What passes a link at once after a pause: a token bucket's depth. The packet model has none.
    pub burst: Bytes,
}

impl Default for Links {
    /// 10 Gbit/s and 500 ns a link, nothing else: over one switch a lone message takes as long as on the yardstick
    /// network of `vef check`, 1 µs + bytes / 10 Gbit/s.
    fn default() -> Self {
        const DEFAULT: Bandwidth = match Bandwidth::from_bits_per_second(10_000_000_000) {
            Some(bandwidth) => bandwidth,
            None => unreachable!(),
        };
        Self {
            bandwidth: DEFAULT,
            latency: Picos(500_000),
            node_bandwidth: None,
            node_latency: None,
            global_bandwidth: None,
            global_latency: None,
            switch_delay: Picos::ZERO,
            overhead: Picos::ZERO,
            burst: Bytes(0),
        }
    }
}

/// Latency and bandwidth of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkSpeed {
    pub(crate) latency: Picos,
    pub(crate) bandwidth: Bandwidth,
}

impl Links {
    /// The speed of the links of a class that every topology may have.
    pub(crate) fn of(&self, class: LinkClass) -> LinkSpeed {
        let (latency, bandwidth) = match class {
            LinkClass::NODE => (self.node_latency, self.node_bandwidth),
            LinkClass::GLOBAL => (self.global_latency, self.global_bandwidth),
            _ => (None, None),
        };
        LinkSpeed { latency: latency.unwrap_or(self.latency), bandwidth: bandwidth.unwrap_or(self.bandwidth) }
    }

    /// The speeds of all classes of a topology, by number.
    pub(crate) fn speeds(&self, topology: &Topology) -> Vec<LinkSpeed> {
        let given = topology.given_speeds().iter().map(|(speed, otherwise)| {
            let LinkSpeed { latency, bandwidth } = self.of(*otherwise);
            LinkSpeed {
                latency: speed.latency.unwrap_or(latency),
                bandwidth: speed.bandwidth.unwrap_or(bandwidth),
            }
        });
        [LinkClass::NODE, LinkClass::LOCAL, LinkClass::GLOBAL]
            .map(|class| self.of(class))
            .into_iter()
            .chain(given)
            .collect()
    }
}

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// How long it sent.
    pub(crate) busy: Picos,
    /// Messages; in the packet model, packets.
    pub(crate) count: u64,
    pub(crate) bytes: Bytes,
    /// How long messages (packets) waited for it, in sum and at most.
    pub(crate) waited: Picos,
    pub(crate) longest_wait: Picos,
    /// How long some waited and none found room behind it.
    pub(crate) blocked: Picos,
}

impl Usage {
    /// One more, which took `time` after it had waited.
    #[inline]
    pub(crate) fn add(&mut self, bytes: Bytes, time: Picos, waited: Picos) {
        // Amounts of a hostile trace may be anything: sums stay at the end of their range.
        self.busy = self.busy.saturating_add(time);
        self.count += 1;
        self.bytes = Bytes(self.bytes.0.saturating_add(bytes.0));
        self.waited = self.waited.saturating_add(waited);
        self.longest_wait = self.longest_wait.max(waited);
    }
}

/// The state of all links of a model in which a link serves one message after the other.
pub(crate) struct Serial {
    links: Vec<SerialLink>,
    speeds: Vec<LinkSpeed>,
    /// Time of a burst, by class (Γ).
    forgiven: Vec<Picos>,
}

/// One cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct SerialLink {
    /// When the last message that came to it will have left; with a burst, when its bucket will be full again.
    pub(crate) free: Picos,
    pub(crate) class: LinkClass,
    pub(crate) usage: Usage,
}

impl Serial {
    pub(crate) fn new(topology: &Topology, links: &Links) -> Self {
        let idle = |link| SerialLink {
            free: Picos::ZERO,
            class: topology.class(LinkId(link)),
            usage: Usage::default(),
        };
        let speeds = links.speeds(topology);
        // Longer than all time: never reached by a link that anything is sent over.
        let forgiven = speeds.iter().map(|speed| speed.bandwidth.time(links.burst).unwrap_or(Picos::MAX));
        let forgiven = forgiven.collect();
        Self { links: (0..topology.links()).map(idle).collect(), speeds, forgiven }
    }

    /// A link, its speed, and the time of its burst.
    #[inline]
    pub(crate) fn at(&mut self, link: LinkId) -> (&mut SerialLink, LinkSpeed, Picos) {
        let state = &mut self.links[link.index()];
        let class = usize::from(state.class.0);
        (state, self.speeds[class], self.forgiven[class])
    }

    /// When the link will have sent all that came to it.
    #[inline]
    pub(crate) fn free(&self, link: LinkId) -> Picos {
        let SerialLink { free, class, .. } = self.links[link.index()];
        free.saturating_sub(self.forgiven[usize::from(class.0)])
    }

    /// What each link has carried, by number.
    pub(crate) fn usage(&self) -> impl ExactSizeIterator<Item = Usage> + '_ {
        self.links.iter().map(|link| link.usage)
    }
}
