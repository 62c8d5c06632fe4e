//! The optimiser on networks where the best placement, or a bound, is known.

use std::time::Duration;

use crate::networks::{FatTree, SingleSwitch, Torus};
use placement::optimise::{CommMatrix, Distances, SearchOptions, optimise};
use placement::{Node, Placement};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// A grid of ranks with renumbered neighbours.
fn scrambled_grid(x: u32, y: u32) -> CommMatrix {
    let mut names: Vec<u32> = (0..x * y).collect();
    names.shuffle(&mut SmallRng::seed_from_u64(7));
    let mut matrix = CommMatrix::new(x * y);
    for at in 0..x * y {
        for (there, exists) in [(at + 1, at % x + 1 < x), (at + x, at + x < x * y)] {
            if exists {
                matrix.push(names[at as usize], names[there as usize], 100);
            }
        }
    }
    matrix
}

#[test]
fn a_scrambled_grid_is_unscrambled() {
    let mut matrix = scrambled_grid(16, 8);
    let tree = FatTree { nodes: 32, per_leaf: 8 };
    let before = Placement::block(128, 32, 4).unwrap();
    let done = optimise(&mut matrix, &tree, &before, SearchOptions::default()).unwrap();
    // Nodes of 2 × 2 ranks, leaves of 8 × 4: 104 pairs between nodes, 24 of them between leaves.
    let optimum = 100 * (2 * 104 + 2 * 24);
    let after = done.after.hop_bytes;
    assert!(after >= optimum && after <= optimum * 11 / 10, "{after} of {optimum}");
    assert!(after < done.best_random && after < done.block && after < done.round_robin);
    let again = optimise(&mut matrix, &tree, &before, SearchOptions::default()).unwrap();
    assert_eq!(again.placement, done.placement, "a seed gives one placement");
    // The placement is optimal, so nothing changes.
    let rest =
        optimise(&mut matrix, &tree, &done.placement, SearchOptions { seed: 2, ..SearchOptions::default() })
            .unwrap();
    if rest.after.hop_bytes == after {
        assert_eq!(rest.placement, done.placement);
    }
}

#[test]
fn without_gain_nothing_moves() {
    // On one switch all placements are equal; slots and cores of the placement stay.
    let network = SingleSwitch { nodes: 16 };
    let mut before = Placement::round_robin(16, 16).unwrap();
    before.ranks.reverse();
    before.ranks[3].core = Some(7);
    let done = optimise(&mut scrambled_grid(4, 4), &network, &before, SearchOptions::default()).unwrap();
    assert_eq!(done.placement, before);
    assert_eq!(done.after, done.before);
}

#[test]
fn no_time_still_gives_a_placement() {
    let options = SearchOptions { time_limit: Duration::ZERO, ..SearchOptions::default() };
    let before = Placement::block(128, 128, 1).unwrap();
    let torus = Torus::new(vec![16, 8]);
    let done = optimise(&mut scrambled_grid(16, 8), &torus, &before, options).unwrap();
    assert!(done.cut_short && done.after.hop_bytes <= done.before.hop_bytes);
    assert_eq!(done.random_rivals, 1, "one rival is made in any case");
}

#[test]
fn what_does_not_fit_is_refused() {
    let before = Placement::block(4, 2, 2).unwrap();
    let error = |ranks, nodes| {
        let network = SingleSwitch { nodes };
        optimise(&mut CommMatrix::new(ranks), &network, &before, SearchOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error(5, 2), "there are 5 ranks, but the placement has 4");
    assert_eq!(error(4, 3), "the network has 3 nodes, but the placement has 2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn never_worse_and_within_the_slots(
        messages in proptest::collection::vec((0u32..12, 0u32..12, 0u64..u64::MAX), 0..40),
        slots in proptest::collection::vec(0u32..5, 6),
        seed: u64,
    ) {
        let mut matrix = CommMatrix::new(12);
        messages.iter().for_each(|&(src, dst, bytes)| matrix.push(src, dst, bytes));
        let mut before = Placement::round_robin(12, 6).unwrap();
        for (node, &slots) in before.nodes.iter_mut().zip(&slots) {
            *node = Node { slots: (slots > 0).then_some(slots), ..Node::named(&node.name) };
        }
        let torus = Torus::new(vec![3, 2]);
        let done = optimise(&mut matrix, &torus, &before, SearchOptions { seed, ..SearchOptions::default() }).unwrap();
        prop_assert!(done.after.hop_bytes <= done.before.hop_bytes);
        prop_assert!(done.after.hop_bytes <= done.best_random.min(done.block));
        let nodes = done.placement.nodes_of_ranks();
        prop_assert_eq!(nodes.len(), 12);
        for (node, &slots) in slots.iter().enumerate() {
            let most = if slots == 0 { 2 } else { slots.max(2) };
            prop_assert!(nodes.iter().filter(|&&n| n as usize == node).count() <= most as usize);
        }
        let hops = |&(a, b, _): &(u32, u32, u64)| torus.hops(nodes[a as usize], nodes[b as usize]);
        let pairs = matrix.pairs().iter();
        let sum: u128 = pairs.map(|pair| u128::from(hops(pair)) * u128::from(pair.2)).sum();
        prop_assert_eq!(sum, done.after.hop_bytes);
    }
}

#[test]
fn distances_are_symmetric_and_orders_complete() {
    fn check(network: &impl Distances) {
        let mut order = network.order();
        order.sort_unstable();
        assert_eq!(order, (0..network.nodes()).collect::<Vec<_>>(), "the order has every node once");
        for a in 0..network.nodes() {
            assert_eq!(network.hops(a, a), 0);
            for b in 0..network.nodes() {
                assert_eq!(network.hops(a, b), network.hops(b, a));
            }
        }
    }
    let torus = Torus::new(vec![4, 3]);
    assert_eq!((torus.hops(0, 3), torus.hops(0, 6), torus.hops(1, 9)), (1, 3, 1));
    assert_eq!(&torus.order()[..2], [0, 4], "halves of the longest side first");
    let tree = FatTree { nodes: 10, per_leaf: 4 };
    assert_eq!((tree.hops(0, 3), tree.hops(3, 4)), (2, 4));
    check(&torus);
    check(&tree);
    check(&SingleSwitch { nodes: 5 });
}
