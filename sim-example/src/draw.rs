//! The drawing of a network with the utilisation of its links: its vertices where the topology places them, and a cable for all
//! links between two vertices. A switch whose nodes have no place has the utilisation of their busiest link.

use std::collections::BTreeMap;

use results::simulation::{Drawing, DrawnCable, DrawnVertex};

use crate::topology::{Fabric, LinkId, Vertex};

/// Most cables of a drawing; a larger one is unreadable, and slow to open.
pub const MOST_CABLES: usize = 20_000;

/// The drawing of a network whose links have these utilisations; `None`: it has more than [`MOST_CABLES`] cables.
pub(crate) fn drawing(topology: &Fabric, utilisation: impl Fn(LinkId) -> f64) -> Option<Drawing> {
    // So many switches have more cables.
    if topology.switches() as usize > MOST_CABLES + 1 {
        return None;
    }
    let drawing = topology.topology().drawing(topology.wiring());
    let (places, straight) = (drawing.places, drawing.straight);
    let mut cables: BTreeMap<(Vertex, Vertex), DrawnCable> = BTreeMap::new();
    let mut of_nodes: BTreeMap<Vertex, f64> = BTreeMap::new();
    let numbers: BTreeMap<Vertex, u32> = places.keys().copied().zip(0..).collect();
    for link in (0..topology.links()).map(LinkId) {
        let Some((from, to)) = topology.ends(link) else { continue };
        let (from, to, used) = (from.min(to), from.max(to), utilisation(link));
        let (Some(&first), Some(&second)) = (numbers.get(&from), numbers.get(&to)) else {
            let switch = if numbers.contains_key(&from) { from } else { to };
            let most = of_nodes.entry(switch).or_default();
            *most = most.max(used);
            continue;
        };
        let new = || DrawnCable { ends: [first, second], links: 0, utilisation: 0.0 };
        let cable = cables.entry((from, to)).or_insert_with(new);
        cable.links += 1;
        cable.utilisation = cable.utilisation.max(used);
        if cables.len() > MOST_CABLES {
            return None;
        }
    }
    let tenth = |pixels: f64| (pixels * 10.0).round() / 10.0;
    let vertex = |(vertex, (x, y)): (Vertex, (f64, f64))| DrawnVertex {
        name: topology.vertex_name(vertex),
        is_node: matches!(vertex, Vertex::Node(_)),
        x: tenth(x),
        y: tenth(y),
        utilisation: of_nodes.get(&vertex).copied(),
    };
    Some(Drawing {
        vertices: places.into_iter().map(vertex).collect(),
        cables: cables.into_values().collect(),
        straight,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{build, specs};
    use proptest::prelude::*;

    /// Each switch and each cable is drawn once, at its own place, and each link is in a cable, or at a node that is not drawn.
    fn check(text: &str) {
        let topology = build(text);
        let drawing = drawing(&topology, |link| f64::from(link.0)).unwrap();
        let nodes = drawing.vertices.iter().filter(|vertex| vertex.is_node).count();
        assert!([0, topology.nodes() as usize].contains(&nodes), "{text}");
        assert_eq!(drawing.vertices.len() - nodes, topology.switches() as usize, "{text}");
        let of_nodes = 2 * topology.nodes();
        let in_cables: u32 = drawing.cables.iter().map(|cable| cable.links).sum();
        assert_eq!(in_cables, topology.links() - if nodes > 0 { 0 } else { of_nodes }, "{text}");
        let most = drawing.cables.iter().map(|cable| cable.utilisation);
        let most = most.chain(drawing.vertices.iter().filter_map(|vertex| vertex.utilisation));
        assert_eq!(most.fold(0.0, f64::max), f64::from(topology.links() - 1), "{text}");
        let mut ends: Vec<[u32; 2]> = drawing.cables.iter().map(|cable| cable.ends).collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0] != pair[1]), "{text}: a cable twice");
        let mut found: Vec<(i64, i64)> =
            drawing.vertices.iter().map(|at| ((at.x * 10.0) as i64, (at.y * 10.0) as i64)).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), drawing.vertices.len(), "{text}: two in one place");
    }

    #[test]
    fn all_kinds() {
        for text in [
            "switch:5",
            "fattree:4x4x2",
            "fattree:k=4",
            "torus:4x4x2",
            "mesh:3x5",
            "hyperx:3x4:2",
            "dragonfly:2x4x2",
        ] {
            check(text);
        }
        assert_eq!(drawing(&build("torus:40x40x10"), |_| 0.0), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn any_topology(spec in specs()) {
            check(&spec);
        }
    }
}
