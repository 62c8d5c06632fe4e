//! Speeds and use of links.

use vef_format::units::{Bytes, Picos};

use super::paces::{Pace, Paces};
use crate::quantity::{Bandwidth, parse_time};
use crate::topology::{Fabric, LinkClass, LinkId};

/// The heading of the options of links.
pub const HEADING: &str = "Links";
/// The heading of the options that only networks with groups use.
pub const GROUPS_HEADING: &str = "Links between groups of a dragonfly";

/// Speeds of links, and delays of interfaces and switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = HEADING)]
#[group(skip)]
pub struct Links {
    /// Bandwidth of a link
    #[arg(long, default_value = "10Gbit/s", value_name = "RATE")]
    pub bandwidth: Bandwidth,
    /// Latency of a link
    #[arg(long, default_value = "500ns", value_name = "TIME", value_parser = parse_time)]
    pub latency: Picos,
    /// Bandwidth of links between nodes and switches [default: --bandwidth]
    #[arg(long, value_name = "RATE")]
    pub node_bandwidth: Option<Bandwidth>,
    /// Latency of links between nodes and switches [default: --latency]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub node_latency: Option<Picos>,
    /// Bandwidth of links between groups of a dragonfly [default: --bandwidth]
    #[arg(long, value_name = "RATE", help_heading = GROUPS_HEADING)]
    pub global_bandwidth: Option<Bandwidth>,
    /// Latency of links between groups of a dragonfly [default: --latency]
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = GROUPS_HEADING)]
    pub global_latency: Option<Picos>,
    /// Delay of a switch per message
    #[arg(long, default_value = "0ns", value_name = "TIME", value_parser = parse_time)]
    pub switch_delay: Picos,
    /// Time of a node's interface per message, before the first byte enters the network
    #[arg(long, default_value = "0ns", value_name = "TIME", value_parser = parse_time)]
    pub overhead: Picos,
    /// Bytes that pass a link at once after a pause: the depth of a token bucket. Not used by the packet
    /// model.
    #[arg(skip)]
    pub burst: Bytes,
}

impl Default for Links {
    /// 10 Gbit/s and 500 ns per link: over one switch a message without contention takes 1 µs + bytes / 10
    /// Gbit/s, as on the yardstick network of `vef check`.
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
    /// The speed of a class that is not from a file.
    pub(crate) fn of(&self, class: LinkClass) -> LinkSpeed {
        let (latency, bandwidth) = match class {
            LinkClass::NODE => (self.node_latency, self.node_bandwidth),
            LinkClass::GLOBAL => (self.global_latency, self.global_bandwidth),
            _ => (None, None),
        };
        LinkSpeed { latency: latency.unwrap_or(self.latency), bandwidth: bandwidth.unwrap_or(self.bandwidth) }
    }

    /// The speeds of all classes of a topology, by class number.
    pub(crate) fn speeds(&self, topology: &Fabric) -> Vec<LinkSpeed> {
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

/// The use of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Busy time.
    pub busy: Picos,
    /// Messages, or packets in the packet model.
    pub count: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Waits of messages or packets for the link: the sum.
    pub waited: Picos,
    /// The longest wait.
    pub longest_wait: Picos,
    /// Time in which packets waited and none had room behind the link.
    pub blocked: Picos,
}

impl Usage {
    /// Adds a message or packet that took `time` after waiting for `waited`.
    #[inline]
    pub fn add(&mut self, bytes: Bytes, time: Picos, waited: Picos) {
        // Saturate: a hostile trace may have any sizes.
        self.busy = self.busy.saturating_add(time);
        self.count += 1;
        self.bytes = Bytes(self.bytes.0.saturating_add(bytes.0));
        self.waited = self.waited.saturating_add(waited);
        self.longest_wait = self.longest_wait.max(waited);
    }

    /// Adds the use that another partition has seen.
    pub(crate) fn merge(&mut self, other: &Self) {
        let Self { busy, count, bytes, waited, longest_wait, blocked } = *other;
        self.busy = self.busy.saturating_add(busy);
        self.count += count;
        self.bytes = Bytes(self.bytes.0.saturating_add(bytes.0));
        self.waited = self.waited.saturating_add(waited);
        self.longest_wait = self.longest_wait.max(longest_wait);
        self.blocked = self.blocked.saturating_add(blocked);
    }
}

/// The links of a model in which a link serves one message at a time.
pub(crate) struct Serial {
    links: Vec<SerialLink>,
    speeds: Vec<LinkSpeed>,
    burst: Bytes,
    /// Transmission time of a burst (Γ), by class.
    forgiven: Vec<Picos>,
    /// Set if the bandwidth of links changes.
    paces: Option<Box<Paces>>,
}

/// When a message crosses a link.
pub(crate) struct Times {
    /// When it could begin, but for messages before it.
    pub(crate) ready: Picos,
    /// For how long it waits for these.
    pub(crate) waited: Picos,
    /// For how long it uses the link.
    pub(crate) time: Picos,
    /// When its last byte has left.
    pub(crate) end: Picos,
    /// When the link is free then; with a burst, when its bucket is full.
    pub(crate) free: Picos,
}

/// Fits one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct SerialLink {
    /// When the link is free after all messages so far; with a burst, when its bucket is full.
    pub(crate) free: Picos,
    pub(crate) class: LinkClass,
    pub(crate) usage: Usage,
}

impl Serial {
    pub(crate) fn new(topology: &Fabric, links: &Links) -> Self {
        let idle = |link| SerialLink {
            free: Picos::ZERO,
            class: topology.class(LinkId(link)),
            usage: Usage::default(),
        };
        let speeds = links.speeds(topology);
        // An overflow means longer than any simulation.
        let forgiven = speeds.iter().map(|speed| speed.bandwidth.time(links.burst).unwrap_or(Picos::MAX));
        let forgiven = forgiven.collect();
        let paces = Paces::new(topology, |class| speeds[usize::from(class.0)].bandwidth);
        let links_idle = (0..topology.links()).map(idle).collect();
        Self { links: links_idle, speeds, burst: links.burst, forgiven, paces }
    }

    /// A link, and its latency.
    #[inline]
    pub(crate) fn at(&mut self, link: LinkId) -> (&mut SerialLink, Picos) {
        let state = &mut self.links[link.index()];
        let latency = self.speeds[usize::from(state.class.0)].latency;
        (state, latency)
    }

    #[inline(always)]
    fn pace(&self, link: LinkId) -> Option<&Pace> {
        self.paces.as_ref()?.of(link)
    }

    /// When a message crosses a link that its first byte reaches at `now` and its last byte at `last_byte`, and that it waits for if it
    /// `waits`; `None` beyond the range of times.
    #[inline(always)]
    pub(crate) fn times(
        &self,
        over: LinkId,
        bytes: Bytes,
        now: Picos,
        last_byte: Picos,
        waits: bool,
    ) -> Option<Times> {
        let SerialLink { free, class, .. } = self.links[over.index()];
        let pace = self.pace(over);
        let alone = self.speeds[usize::from(class.0)].bandwidth.time(bytes)?;
        let forgiven = self.forgiven[usize::from(class.0)];
        // Behind a slower link the message is sent in one piece that ends with its last byte.
        let ready = now.max(match pace {
            None => last_byte.saturating_sub(alone),
            Some(pace) => pace.before(last_byte, bytes),
        });
        let start = if waits { ready.max(free) } else { ready };
        let free = match pace {
            None => start.checked_add(alone),
            Some(pace) => pace.after(start, bytes),
        }?;
        let (waits_until, left) = match pace {
            None => (start.saturating_sub(forgiven), free.saturating_sub(forgiven)),
            Some(pace) => (pace.before(start, self.burst), pace.before(free, self.burst)),
        };
        Some(Times {
            ready,
            waited: waits_until.saturating_sub(ready),
            time: Picos(free.0 - start.0),
            // A token bucket only passes bytes that have arrived.
            end: ready.max(last_byte).max(left),
            free,
        })
    }

    /// When the link can send the next message.
    #[inline]
    pub(crate) fn free(&self, link: LinkId) -> Picos {
        let SerialLink { free, class, .. } = self.links[link.index()];
        match self.pace(link) {
            None => free.saturating_sub(self.forgiven[usize::from(class.0)]),
            Some(pace) => pace.before(free, self.burst),
        }
    }

    /// A link is not used before `until`; `None` beyond the range of times.
    pub(crate) fn keep_until(&mut self, link: LinkId, until: Picos) -> Option<()> {
        let class = usize::from(self.links[link.index()].class.0);
        let full = match self.pace(link) {
            None => until.checked_add(self.forgiven[class]),
            Some(pace) => pace.after(until, self.burst),
        }?;
        let free = &mut self.links[link.index()].free;
        *free = full.max(*free);
        Some(())
    }

    /// Use of each link, by number.
    pub(crate) fn usage(&self) -> impl ExactSizeIterator<Item = Usage> + '_ {
        self.links.iter().map(|link| link.usage)
    }
}
