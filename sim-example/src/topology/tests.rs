//! Every topology's routes held against a breadth-first search over its links, and by hand.

use super::*;
use crate::routing::Vertex;
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

fn build(text: &str) -> Topology {
    text.parse::<TopologySpec>().unwrap().build(1).unwrap()
}

fn names(topology: &Topology, src: u32, dst: u32) -> Vec<String> {
    match topology {
        Topology::Tree(tree) => tree.route(src, dst).map(|link| tree.link_name(link)).collect(),
        Topology::Torus(torus) => torus.route(src, dst).map(|link| torus.link_name(link)).collect(),
    }
}

/// Links from `src` to every vertex, by breadth-first search.
fn distances(routing: &impl Routing, src: u32) -> HashMap<Vertex, u32> {
    let mut outgoing: HashMap<Vertex, Vec<Vertex>> = HashMap::new();
    for link in 0..routing.links() {
        let (from, to) = routing.ends(LinkId(link)).unwrap();
        outgoing.entry(from).or_default().push(to);
    }
    let mut found = HashMap::from([(Vertex::Node(src), 0)]);
    let mut queue = VecDeque::from([Vertex::Node(src)]);
    while let Some(vertex) = queue.pop_front() {
        for &to in outgoing.get(&vertex).into_iter().flatten() {
            if !found.contains_key(&to) {
                found.insert(to, found[&vertex] + 1);
                queue.push_back(to);
            }
        }
    }
    found
}

fn check_routes(routing: &impl Routing, src: u32) -> Result<(), TestCaseError> {
    let shortest = distances(routing, src);
    for dst in 0..routing.nodes() {
        let route: Vec<LinkId> = routing.route(src, dst).collect();
        prop_assert_eq!(route.first(), Some(&LinkId::injection(src)));
        prop_assert_eq!(route.last(), Some(&LinkId::ejection(dst)));
        let ends: Vec<_> = route.iter().map(|&link| routing.ends(link).unwrap()).collect();
        prop_assert_eq!(ends[0].0, Vertex::Node(src));
        prop_assert_eq!(ends[ends.len() - 1].1, Vertex::Node(dst));
        prop_assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "not connected: {ends:?}");
        if src != dst {
            prop_assert_eq!(route.len() as u32, shortest[&Vertex::Node(dst)], "not shortest: {:?}", ends);
        }
        prop_assert_eq!(route.len() as u32, routing.distance(src, dst));
        prop_assert_eq!(routing.distance(dst, src), routing.distance(src, dst));
    }
    Ok(())
}

fn specs() -> impl Strategy<Value = TopologySpec> {
    prop_oneof![
        (1u32..20).prop_map(|nodes| TopologySpec::Switch { nodes }),
        (1u32..6, 1u32..6, 1u32..6).prop_map(|(leaves, nodes_per_leaf, spines)| TopologySpec::LeafSpine {
            leaves,
            nodes_per_leaf,
            spines
        }),
        (1u32..4).prop_map(|half| TopologySpec::KAry { k: 2 * half }),
        prop::collection::vec((1u32..4, 1u32..4), 1..5).prop_map(|levels| {
            let (children, mut parents): (Vec<_>, Vec<_>) = levels.into_iter().unzip();
            parents[0] = 1;
            TopologySpec::Xgft { children, parents }
        }),
        prop::collection::vec(1u32..7, 1..4).prop_map(|sizes| TopologySpec::Torus { sizes }),
    ]
}

proptest! {
    #[test]
    fn routes_are_connected_shortest_and_as_long_as_back(spec in specs(), src: prop::sample::Index) {
        match spec.build(1).unwrap() {
            Topology::Tree(tree) => check_routes(&tree, src.index(tree.nodes() as usize) as u32)?,
            Topology::Torus(torus) => check_routes(&torus, src.index(torus.nodes() as usize) as u32)?,
        }
    }

    /// Every link has its own two ends (a fat tree has no parallel cables, nor has a torus), and each has one back.
    #[test]
    fn links_are_cables_of_two(spec in specs()) {
        let topology = spec.build(1).unwrap();
        let ends: Vec<_> = (0..topology.links())
            .map(|link| match &topology {
                Topology::Tree(tree) => tree.ends(LinkId(link)).unwrap(),
                Topology::Torus(torus) => torus.ends(LinkId(link)).unwrap(),
            })
            .collect();
        let distinct: std::collections::HashSet<_> = ends.iter().copied().collect();
        prop_assert_eq!(distinct.len(), ends.len());
        prop_assert!(ends.iter().all(|&(from, to)| distinct.contains(&(to, from))));
    }

    #[test]
    fn a_spec_reads_back(spec in specs()) {
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
    }

    #[test]
    fn any_text_is_answered(kind in "(switch|fattree|fattree:k=|xgft|torus|auto|)", rest in "[:;,x0-9=]{0,30}|\\PC{0,10}") {
        let _ = format!("{kind}:{rest}").parse::<TopologySpec>();
        let _ = format!("{kind}{rest}").parse::<TopologySpec>();
    }
}

#[test]
fn sizes() {
    for (text, nodes, links) in [
        ("switch:16", 16, 32),
        ("fattree:4x16x8", 64, 128 + 2 * 4 * 8),
        ("fattree:k=4", 16, 3 * 2 * 16),
        ("xgft:2,2,2,2;1,2,2,2", 16, 2 * (16 + 16 + 16 + 16)),
        ("torus:4x4x2", 32, 64 + 64 + 64 + 32),
        ("torus:1", 1, 2),
        ("auto", 1, 2),
    ] {
        let topology = build(text);
        assert_eq!((topology.nodes(), topology.links()), (nodes, links), "{text}");
    }
    assert_eq!(TopologySpec::Auto.build(7).unwrap().nodes(), 7);
}

#[test]
fn routes_by_hand() {
    assert_eq!(names(&build("switch:4"), 1, 3), ["node1->switch", "switch->node3"]);
    assert_eq!(names(&build("switch:4"), 2, 2), ["node2->switch", "switch->node2"]);
    // Destination 7 of leaf 1 goes through spine 7 mod 3.
    assert_eq!(
        names(&build("fattree:2x4x3"), 1, 7),
        ["node1->leaf0", "leaf0->spine1", "spine1->leaf1", "leaf1->node7"]
    );
    assert_eq!(names(&build("fattree:2x4x3"), 4, 7), ["node4->leaf1", "leaf1->node7"]);
    // k = 4: aggregation switch by destination mod 2, core by the next digit.
    assert_eq!(
        names(&build("fattree:k=4"), 0, 14),
        [
            "node0->edge0",
            "edge0->aggregation0",
            "aggregation0->core1",
            "core1->aggregation6",
            "aggregation6->edge7",
            "edge7->node14"
        ]
    );
    // x the short way backwards over the edge, then y forwards; the tie in z by the parity of the coordinate.
    let torus = build("torus:5x4x2");
    assert_eq!(
        names(&torus, 0, 4 + 5 * 2 + 20),
        [
            "node0->(0,0,0)",
            "(0,0,0)->(4,0,0)",
            "(4,0,0)->(4,1,0)",
            "(4,1,0)->(4,2,0)",
            "(4,2,0)->(4,2,1)",
            "(4,2,1)->node34"
        ]
    );
    // From an odd coordinate the tie goes backwards.
    assert_eq!(names(&build("torus:4"), 1, 3), ["node1->(1)", "(1)->(0)", "(0)->(3)", "(3)->node3"]);
}

#[test]
fn what_is_no_topology_says_why() {
    let error = |text: &str| text.parse::<TopologySpec>().unwrap_err().to_string();
    assert!(error("mesh:4x4").contains("unknown kind; write auto, switch:N"));
    assert!(error("").contains("unknown kind"));
    assert!(error("auto:3").contains("unknown kind"));
    assert!(error("switch").contains("expected switch:NODES"));
    assert!(error("switch:").contains("expected switch:NODES"));
    assert!(error("switch:4x4").contains("expected switch:NODES"));
    assert!(error("switch:-1").contains("expected switch:NODES"));
    assert!(error("switch:+1").contains("expected switch:NODES"));
    assert!(error("switch:99999999999").contains("expected switch:NODES"));
    assert!(error("switch:0").contains("at least 1"));
    assert!(error("fattree:4x4").contains("expected fattree:LEAVES"));
    assert!(error("fattree:k=x").contains("expected fattree:LEAVES"));
    assert!(error("fattree:k=5").contains("must be even"));
    assert!(error("fattree:k=0").contains("at least 1"));
    assert!(error("xgft:4,4").contains("expected xgft:"));
    assert!(error("xgft:4,4;1").contains("2 levels of children, but 1 of parents"));
    assert!(error("xgft:4,4;2,2").contains("a node has one link"));
    assert!(error("torus:4x").contains("expected torus:"));
    assert!(error("torus:65536x65536").contains("more than 67108864 links"));
    assert!(error("torus:4000x4000x4").contains("more than 67108864 links"));
    assert!(error("switch:4000000000").contains("more than 67108864 links"));
    assert!(error(&format!("torus:{}", vec!["1"; 300].join("x"))).contains("more than"));
}
