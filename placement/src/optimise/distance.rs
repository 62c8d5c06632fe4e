//! Distances between the nodes of a network, which the caller knows.

/// Distances between the nodes of a network.
pub trait Distances: Sync {
    /// Number of nodes.
    fn nodes(&self) -> u32;

    /// Hops (links) between two nodes below [`Self::nodes`]: symmetric, and 0 from a node to itself.
    fn hops(&self, a: u32, b: u32) -> u32;

    /// All nodes in an order in which halves, quarters, … are compact parts of the network: `0..nodes` along
    /// the leaves of a tree, [`box_order`] for a torus.
    fn order(&self) -> Vec<u32>;
}

/// The nodes of a torus or mesh in boxes, cut in halves across their longest side; the first dimension varies
/// fastest.
pub fn box_order(dimensions: &[u32]) -> Vec<u32> {
    let mut order = Vec::new();
    let mut boxes = vec![dimensions.iter().map(|&size| 0..size).collect::<Vec<_>>()];
    while let Some(mut first) = boxes.pop() {
        let longest = (0..first.len()).max_by_key(|&d| (first[d].len(), std::cmp::Reverse(d))).unwrap_or(0);
        let side = first.get(longest).cloned().unwrap_or(0..1);
        if side.len() <= 1 {
            let at = first.iter().zip(dimensions).rev();
            order.push(at.fold(0, |node, (at, &size)| node * size + at.start));
            continue;
        }
        let middle = side.start + (side.end - side.start).div_ceil(2);
        let mut second = first.clone();
        first[longest] = side.start..middle;
        second[longest] = middle..side.end;
        boxes.extend([second, first]);
    }
    order
}
