//! Classes of traffic, which share each link by weight: start-time fair queueing.
//!
//! Each class has virtual channels and queues of its own. A packet of p bytes of a class of weight w gets on a link the tags `S = max(v, F)` and
//! `F = S + p / w`: v is the tag S of the last packet served, F that of the last one of its class. Of the classes with a packet that may be sent, that with
//! the least S is served. So classes that always have one share the link by their weights, and what one does not use the others have.
//!
//! Source: P. Goyal, H. M. Vin, H. Cheng, "Start-time fair queueing: a scheduling algorithm for integrated services packet switching networks",
//! SIGCOMM 1996.

use replay::Kind;

use crate::model::network::Origin;
use crate::topology::LinkId;

/// Whose messages are a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// A job, by number.
    Job(u32),
    /// Messages of collectives, of all jobs.
    Collectives,
    /// Traffic beside the jobs.
    Background,
}

/// The classes of traffic, with their weights. What no class has is one of weight 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficClasses {
    count: u8,
    classes: [Option<(Members, u16)>; Self::MOST],
}

/// A class that cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    /// The members have a class.
    #[error("these messages have another class")]
    Twice,
    /// Too many classes.
    #[error("more than {} classes", TrafficClasses::MOST)]
    TooMany,
    /// The weight is 0 or too large.
    #[error("a weight is a number from 1 to {}", TrafficClasses::MOST_WEIGHT)]
    Weight,
}

impl TrafficClasses {
    /// Most classes.
    pub const MOST: usize = 15;
    /// The largest weight.
    pub const MOST_WEIGHT: u16 = 1000;

    /// Adds a class.
    ///
    /// # Errors
    /// The members have a class, there are [`Self::MOST`], or the weight is 0 or above [`Self::MOST_WEIGHT`].
    pub fn add(&mut self, members: Members, weight: u16) -> Result<(), ClassError> {
        if !(1..=Self::MOST_WEIGHT).contains(&weight) {
            return Err(ClassError::Weight);
        }
        if self.has(members) {
            return Err(ClassError::Twice);
        }
        let free = self.classes.iter_mut().find(|class| class.is_none()).ok_or(ClassError::TooMany)?;
        *free = Some((members, weight));
        self.count += 1;
        Ok(())
    }

    /// Whether there is a class of these messages.
    pub fn has(&self, members: Members) -> bool {
        self.classes.iter().flatten().any(|class| class.0 == members)
    }

    /// Number of classes, with the one of all other messages.
    pub(super) fn count(&self) -> u32 {
        u32::from(self.count) + 1
    }

    /// The class of a message: 0 if no other has it. A message of a collective is of the class of collectives, if there is one, else of its job's.
    #[inline]
    pub(super) fn of(&self, origin: Origin) -> u32 {
        if self.count == 0 {
            return 0;
        }
        let place = |members| (1..).zip(self.classes.iter().flatten()).find(|(_, class)| class.0 == members);
        let found = match origin {
            Origin::Background => place(Members::Background),
            Origin::Job { job, kind, .. } => {
                let collective = match kind {
                    Kind::Collective(_) => place(Members::Collectives),
                    Kind::PointToPoint => None,
                };
                collective.or_else(|| place(Members::Job(job)))
            }
        };
        found.map_or(0, |(class, _)| class)
    }

    fn weight(&self, class: u32) -> u64 {
        let class = class.checked_sub(1).and_then(|class| self.classes[class as usize]);
        class.map_or(1, |(_, weight)| weight.into())
    }
}

/// The tags of all links.
#[derive(Debug)]
pub(super) struct Shares {
    classes: TrafficClasses,
    /// Of each link, the tag S of the last packet served; empty with one class.
    served: Vec<u64>,
    /// Of each link and class, the tag F of the last packet.
    ends: Vec<u64>,
}

impl Shares {
    pub(super) fn new(classes: TrafficClasses, links: u32) -> Self {
        let links = if classes.count() == 1 { 0 } else { links as usize };
        Self { classes, served: vec![0; links], ends: vec![0; links * classes.count() as usize] }
    }

    /// Number of classes.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.classes.count()
    }

    /// The tag S of the next packet of a class on a link.
    #[inline]
    pub(super) fn start(&self, link: LinkId, class: u32) -> u64 {
        match self.served.get(link.index()) {
            Some(&served) => served.max(self.ends[(link.0 * self.count() + class) as usize]),
            None => 0,
        }
    }

    /// Serves a packet. Tags count 2⁻²⁰ bytes of weight 1, so they end behind 2⁴⁴ bytes on a link, which no simulation reaches.
    #[inline]
    pub(super) fn serve(&mut self, link: LinkId, class: u32, bytes: u32) {
        if self.served.is_empty() {
            return;
        }
        let start = self.start(link, class);
        let (place, weight) = ((link.0 * self.count() + class) as usize, self.classes.weight(class));
        self.served[link.index()] = start;
        self.ends[place] = start.saturating_add((u64::from(bytes) << 20) / weight);
    }
}
