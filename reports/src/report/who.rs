//! Who sends to whom: the matrix, the pairs with most, and orders that show groups.

use crate::stats::{Pair as Counted, Stats, Sums, Volume};
use results::Exact;
use results::report::{Amount, Bits, Entropy, Matrix, Order, Pair, Pairs, Partners};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Cells are listed one by one if fewer than one in this many have messages.
const SPARSE: usize = 4;

/// The pairs of ranks that exchange messages.
pub(super) fn pairs(stats: &Stats, most: usize) -> Pairs {
    let exact = stats.exact_pairs.as_deref();
    let mut top: Vec<&Counted> = exact.unwrap_or_default().iter().collect();
    top.sort_by_key(|(src, dst, volume)| (Reverse(volume.bytes), Reverse(volume.messages), *src, *dst));
    top.truncate(most);
    let mut matrix = matrix(&stats.pairs);
    if let (1, Some(pairs)) = (stats.pairs.ranks_per_row, exact) {
        matrix.orders = orders(stats, pairs);
    }
    Pairs {
        different: exact.map(|pairs| pairs.len() as u64),
        top: top.into_iter().map(|&(src, dst, volume)| Pair { src, dst, amount: volume.into() }).collect(),
        partners: partners(stats.header.tasks, exact.unwrap_or_default()),
        symmetry: exact.and_then(symmetry),
        entropy: exact.and_then(entropy),
        matrix,
    }
}

/// The matrix of messages and bytes.
pub(crate) fn matrix(sums: &Sums) -> Matrix {
    let used = || sums.cells.iter().enumerate().filter(|(_, volume)| volume.messages > 0);
    let all = || sums.cells.iter().enumerate();
    let sparse = used().count() * SPARSE < sums.cells.len();
    let of = |measure: fn(&Volume) -> u64| -> Vec<Exact> {
        match sparse {
            true => used().map(|(_, volume)| measure(volume).into()).collect(),
            false => all().map(|(_, volume)| measure(volume).into()).collect(),
        }
    };
    Matrix {
        ranks_per_row: sums.ranks_per_row,
        rows: sums.rows,
        cells: sparse.then(|| used().map(|(at, _)| at as u32).collect()),
        messages: of(|volume| volume.messages),
        bytes: of(|volume| volume.bytes),
        orders: Vec::new(),
    }
}

/// Numbers of ranks by number of receivers; empty if pairs were not counted one by one.
fn partners(tasks: u32, pairs: &[Counted]) -> Vec<Partners> {
    let mut of_rank: BTreeMap<u32, u32> = BTreeMap::new();
    pairs.iter().for_each(|(src, _, _)| *of_rank.entry(*src).or_default() += 1);
    let mut ranks: BTreeMap<u32, u32> = BTreeMap::new();
    let silent = tasks - of_rank.len() as u32;
    if silent > 0 && !pairs.is_empty() {
        ranks.insert(0, silent);
    }
    of_rank.into_values().for_each(|partners| *ranks.entry(partners).or_default() += 1);
    ranks.into_iter().map(|(partners, ranks)| Partners { partners, ranks }).collect()
}

/// The share of bytes matched by as many bytes in the opposite direction; `None` without bytes.
fn symmetry(pairs: &[Counted]) -> Option<f64> {
    let bytes = |src: u32, dst: u32| {
        let found = pairs.binary_search_by_key(&(src, dst), |(src, dst, _)| (*src, *dst));
        found.map_or(0, |at| pairs[at].2.bytes)
    };
    let between = || pairs.iter().filter(|(src, dst, _)| src != dst);
    let all: u128 = between().map(|(_, _, volume)| u128::from(volume.bytes)).sum();
    let back: u128 =
        between().map(|(src, dst, volume)| u128::from(volume.bytes.min(bytes(*dst, *src)))).sum();
    (all > 0).then(|| back as f64 / all as f64)
}

/// The entropy of receivers of each rank's messages; `None` without messages.
fn entropy(pairs: &[Counted]) -> Option<Entropy> {
    let of_rank = |pairs: &[Counted]| {
        let counts = || pairs.iter().map(|(_, _, volume)| volume.messages as f64);
        let all: f64 = counts().sum();
        let bits = all.log2() - counts().map(|count| count * count.log2()).sum::<f64>() / all;
        // Exactly 0 for a single receiver, whatever the rounding.
        Bits { rank: pairs[0].0, bits: if pairs.len() == 1 { 0.0 } else { bits } }
    };
    let all: Vec<Bits> = pairs.chunk_by(|one, other| one.0 == other.0).map(of_rank).collect();
    let better = |one: Bits, other: &Bits, is: fn(&f64, &f64) -> bool| {
        if is(&other.bits, &one.bits) { *other } else { one }
    };
    let first = *all.first()?;
    Some(Entropy {
        min: all.iter().fold(first, |least, other| better(least, other, f64::lt)),
        mean: all.iter().map(|rank| rank.bits).sum::<f64>() / all.len() as f64,
        max: all.iter().fold(first, |most, other| better(most, other, f64::gt)),
    })
}

/// Orders of ranks that may show structure that the order by rank hides.
fn orders(stats: &Stats, pairs: &[Counted]) -> Vec<Order> {
    let mut orders = Vec::new();
    if let Some(hosts) = &stats.hosts {
        let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
        let number_of: Vec<usize> = hosts
            .iter()
            .map(|host| {
                let next = numbers.len();
                *numbers.entry(host).or_insert(next)
            })
            .collect();
        let mut ranks: Vec<u32> = (0..stats.header.tasks).collect();
        ranks.sort_by_key(|&rank| number_of[rank as usize]);
        orders.push(Order { by: "host".to_owned(), ranks });
    }
    orders.push(Order { by: "partners".to_owned(), ranks: by_partners(stats.header.tasks, pairs) });
    orders.retain(|order| !order.ranks.is_sorted());
    orders
}

/// An order with ranks that exchange much near each other: the next rank is always the one with most bytes to and from those before it.
fn by_partners(tasks: u32, pairs: &[Counted]) -> Vec<u32> {
    let mut neighbours: Vec<Vec<(u32, u64)>> = vec![Vec::new(); tasks as usize];
    for &(src, dst, volume) in pairs.iter().filter(|(src, dst, _)| src != dst) {
        neighbours[src as usize].push((dst, volume.bytes));
        neighbours[dst as usize].push((src, volume.bytes));
    }
    let mut ties = vec![0u64; tasks as usize];
    let mut placed = vec![false; tasks as usize];
    let mut next = BinaryHeap::new();
    let mut order = Vec::with_capacity(tasks as usize);
    for first in 0..tasks {
        next.push((0, Reverse(first)));
        while let Some((tie, Reverse(rank))) = next.pop() {
            let at = rank as usize;
            // The entry is stale: the rank's sum has grown since.
            if placed[at] || tie < ties[at] {
                continue;
            }
            placed[at] = true;
            order.push(rank);
            for &(other, bytes) in &neighbours[at] {
                let tie = &mut ties[other as usize];
                *tie = tie.saturating_add(bytes);
                next.push((*tie, Reverse(other)));
            }
        }
    }
    order
}

impl Sums {
    /// All messages.
    pub fn all(&self) -> Amount {
        self.by_distance.iter().fold(Amount::default(), |sum, volume| sum.plus((*volume).into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(bytes: u64) -> Volume {
        Volume { messages: 1, bytes }
    }

    #[test]
    fn partners_stand_together() {
        // Two groups whose ranks alternate.
        let pairs: Vec<Counted> =
            (0..6u32).flat_map(|a| [(a, (a + 2) % 6, volume(100)), (a, (a + 1) % 6, volume(1))]).collect();
        let order = by_partners(6, &pairs);
        assert_eq!(order.len(), 6);
        assert!(order[..3].iter().all(|rank| rank % 2 == 0), "{order:?}");
        assert_eq!(by_partners(3, &[]), [0, 1, 2]);
    }

    #[test]
    fn symmetry_and_partners() {
        let pairs = [(0, 1, volume(100)), (0, 2, volume(50)), (1, 0, volume(25)), (2, 2, volume(7))];
        assert_eq!(symmetry(&pairs), Some(50.0 / 175.0));
        assert_eq!(symmetry(&[(2, 2, volume(7))]), None);
        let two = [(0, 1, Volume { messages: 3, bytes: 0 }), (1, 0, volume(1)), (1, 2, volume(9))];
        let entropy = entropy(&two).expect("messages");
        assert_eq!(
            (entropy.min, entropy.mean, entropy.max),
            (Bits { rank: 0, bits: 0.0 }, 0.5, Bits { rank: 1, bits: 1.0 })
        );
        let histogram: Vec<(u32, u32)> =
            partners(5, &pairs).iter().map(|row| (row.partners, row.ranks)).collect();
        assert_eq!(histogram, [(0, 2), (1, 2), (2, 1)]);
    }
}
