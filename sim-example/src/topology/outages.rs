//! Links that fail at a time, and work again: the epochs between changes, in each of which the same links work.

use std::collections::HashSet;

use vef_format::units::Picos;

use super::wiring::LinkId;

/// When which links work. A link that fails at `t` does not carry what would leave it after `t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outages {
    /// The begin of each epoch, ascending; the first is 0.
    begins: Vec<Picos>,
    /// The failed links of each epoch, by their place in `sets`.
    places: Vec<u32>,
    /// Each set once.
    sets: Vec<HashSet<LinkId>>,
    /// Nodes in use that cannot reach each other for a time.
    cut_off: Vec<CutOff>,
}

/// Nodes in use that cannot reach each other, for a time or for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    pub(super) from: String,
    /// A node that it cannot reach.
    pub(super) to: String,
    /// One of the two.
    pub(super) base: String,
    /// How many nodes cannot reach that one, or cannot be reached from it.
    pub(super) count: usize,
    /// Nodes in use.
    pub(super) all: usize,
    pub(crate) begin: Picos,
    pub(super) end: Picos,
}

impl CutOff {
    /// From when on, unless from the beginning.
    pub(super) fn since(&self) -> String {
        if self.begin > Picos::ZERO { format!(" from {} on", self.begin) } else { String::new() }
    }
}

impl std::fmt::Display for CutOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { from, to, base, count, all, begin, end } = self;
        write!(
            f,
            "from {begin} to {end} no route leads from {from} to {to}; {count} of {all} nodes in use are cut off from {base}, and messages wait"
        )
    }
}

/// The most changes of a network.
pub(super) const MOST_CHANGES: usize = 4096;

impl Outages {
    /// Links `always` failed, others from a time to another one. `None` if all stay as they are, or there are more than [`MOST_CHANGES`].
    pub(super) fn new(always: &HashSet<LinkId>, others: &[(Picos, Picos, Vec<LinkId>)]) -> Option<Self> {
        let mut begins: Vec<Picos> = others.iter().flat_map(|&(from, to, _)| [from, to]).collect();
        begins.extend([Picos::ZERO]);
        begins.retain(|begin| *begin < Picos::MAX);
        begins.sort_unstable();
        begins.dedup();
        if others.is_empty() || begins.len() > MOST_CHANGES {
            return None;
        }
        let (mut places, mut sets) = (Vec::new(), Vec::<HashSet<LinkId>>::new());
        for begin in &begins {
            let lasting = others.iter().filter(|(from, to, _)| from <= begin && begin < to);
            let set: HashSet<LinkId> = lasting.flat_map(|(.., links)| links).chain(always).copied().collect();
            let place = sets.iter().position(|other| *other == set).unwrap_or(sets.len());
            if place == sets.len() {
                sets.push(set);
            }
            places.push(place as u32);
        }
        Some(Self { begins, places, sets, cut_off: Vec::new() })
    }

    /// The same, with nodes that cannot reach each other for a time.
    pub(super) fn with_cut_off(self, cut_off: Vec<CutOff>) -> Self {
        Self { cut_off, ..self }
    }

    /// The sets of failed links, each once.
    pub(super) fn sets(&self) -> &[HashSet<LinkId>] {
        &self.sets
    }

    /// The set of the epoch of that number.
    pub(super) fn place(&self, epoch: u32) -> usize {
        self.places[epoch as usize] as usize
    }

    /// The begins of all epochs.
    pub(crate) fn begins(&self) -> &[Picos] {
        &self.begins
    }

    /// The epoch of a time.
    pub(crate) fn at(&self, now: Picos) -> u32 {
        self.begins.partition_point(|begin| *begin <= now) as u32 - 1
    }

    /// The first change after a time.
    pub(crate) fn next(&self, now: Picos) -> Option<Picos> {
        self.begins.get(self.at(now) as usize + 1).copied()
    }

    /// Whether a link has failed at a time.
    pub(crate) fn is_down(&self, link: LinkId, now: Picos) -> bool {
        self.sets[self.place(self.at(now))].contains(&link)
    }

    /// When a link that carries something from `from` to `to` fails, or `from` if it does not work then.
    pub(crate) fn cut(&self, link: LinkId, from: Picos, to: Picos) -> Option<Picos> {
        let first = self.at(from);
        let fails = |epoch: &u32| self.sets[self.place(*epoch)].contains(&link);
        let is_begun = |epoch: &u32| *epoch == first || self.begins[*epoch as usize] < to;
        let cut = (first..self.begins.len() as u32).take_while(is_begun).find(fails)?;
        Some(self.begins[cut as usize].max(from))
    }

    /// Nodes in use that cannot reach each other for a time.
    pub(crate) fn cut_off(&self) -> &[CutOff] {
        &self.cut_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn epochs_lie_between_changes() {
        let at = |ns: u64| Picos(ns * 1000);
        let (a, b) = (LinkId(4), LinkId(7));
        let outages =
            Outages::new(&HashSet::new(), &[(at(2), at(5), vec![a]), (at(4), Picos::MAX, vec![b])]).unwrap();
        assert_eq!(outages.begins(), [at(0), at(2), at(4), at(5)]);
        assert_eq!((outages.at(at(0)), outages.at(at(2)), outages.at(at(9))), (0, 1, 3));
        assert_eq!((outages.next(at(2)), outages.next(at(5))), (Some(at(4)), None));
        assert!(!outages.is_down(a, at(1)) && outages.is_down(a, at(2)) && !outages.is_down(a, at(5)));
        // What ends when the link fails has passed.
        assert_eq!(outages.cut(a, at(1), at(2)), None);
        assert_eq!(outages.cut(a, at(1), at(3)), Some(at(2)));
        assert_eq!(outages.cut(a, at(3), at(3)), Some(at(3)));
        assert_eq!(outages.cut(b, at(0), at(100)), Some(at(4)));
        assert_eq!(outages.cut(a, at(5), at(100)), None);
        assert_eq!(Outages::new(&HashSet::from([a]), &[]), None);
    }
}
