//! Links that are slower for a time: what is left of their bandwidth, from when on.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use vef_format::units::Picos;

use super::outages::MOST_CHANGES;
use super::wiring::LinkId;

/// From a time to another one these links have so many percent of their bandwidth.
pub(super) type Slowdown = (Picos, Picos, Vec<LinkId>, f64);

/// What is left of the bandwidth of links, as it changes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slowdowns {
    /// By link: from when on which share of the bandwidth of its class is left; the first begin is 0.
    links: BTreeMap<LinkId, Vec<(Picos, f64)>>,
}

impl Slowdowns {
    /// `always` are links with so many percent of their bandwidth for the whole run, which their classes have already. Of several slowdowns
    /// of a link the one that leaves least counts. `None` if there are none, or more than [`MOST_CHANGES`].
    pub(super) fn new(always: &HashMap<LinkId, f64>, slowdowns: &[Slowdown]) -> Option<Self> {
        let times: BTreeSet<Picos> = slowdowns.iter().flat_map(|(from, to, ..)| [*from, *to]).collect();
        if times.is_empty() || times.len() > MOST_CHANGES {
            return None;
        }
        let mut of_links: BTreeMap<LinkId, Vec<(Picos, Picos, f64)>> = BTreeMap::new();
        for (from, to, links, percent) in slowdowns {
            links.iter().for_each(|link| of_links.entry(*link).or_default().push((*from, *to, *percent)));
        }
        let shares = |(link, slowdowns): (LinkId, Vec<(Picos, Picos, f64)>)| {
            let always = always.get(&link).copied().unwrap_or(100.0);
            let begins: BTreeSet<Picos> =
                slowdowns.iter().flat_map(|(from, to, _)| [*from, *to]).chain([Picos::ZERO]).collect();
            let share = |begin: Picos| {
                let lasting = slowdowns.iter().filter(|(from, to, _)| *from <= begin && begin < *to);
                lasting.map(|(.., percent)| *percent).fold(always, f64::min) / always
            };
            let begins = begins.into_iter().filter(|begin| *begin < Picos::MAX);
            (link, begins.map(|begin| (begin, share(begin))).collect())
        };
        Some(Self { links: of_links.into_iter().map(shares).collect() })
    }

    /// The links, each with the begins of times and the share of the bandwidth of its class that is left in each.
    pub(crate) fn links(&self) -> impl Iterator<Item = (LinkId, &[(Picos, f64)])> {
        self.links.iter().map(|(link, shares)| (*link, &shares[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_that_is_left_counts() {
        let at = |ns: u64| Picos(ns * 1000);
        let (a, b) = (LinkId(4), LinkId(7));
        let slowdowns = Slowdowns::new(
            &HashMap::from([(a, 50.0)]),
            &[
                (at(2), at(5), vec![a, b], 10.0),
                (at(4), Picos::MAX, vec![b], 25.0),
                (at(7), at(8), vec![a], 75.0),
            ],
        );
        let slowdowns = slowdowns.unwrap();
        let of: Vec<_> = slowdowns.links().collect();
        assert_eq!(of[0], (a, &[(at(0), 1.0), (at(2), 0.2), (at(5), 1.0), (at(7), 1.0), (at(8), 1.0)][..]));
        assert_eq!(of[1], (b, &[(at(0), 1.0), (at(2), 0.1), (at(4), 0.1), (at(5), 0.25)][..]));
        assert_eq!(Slowdowns::new(&HashMap::from([(a, 50.0)]), &[]), None);
    }
}
