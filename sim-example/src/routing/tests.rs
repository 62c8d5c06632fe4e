//! Routes, checked against breadth-first search, by hand, and for cycles of channel dependencies.

mod loads;

use super::router::Decisions;
use super::*;
use crate::random::Random;
use crate::topology::tests::{build, specs};
use crate::topology::{Choice, Fabric, Hop, LinkClass, LinkId, Route, Vertex};
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};
use vef_format::units::Bytes;

pub(crate) fn routing(text: &str) -> RoutingSpec {
    text.parse().unwrap()
}

/// A router of the routing with this name.
pub(crate) fn router<'a>(topology: &'a Fabric, name: &str, seed: u64) -> Result<Router<'a>, RoutingError> {
    // Tests end soon.
    let routing: &'static RoutingSpec = Box::leak(Box::new(routing(name)));
    Router::new(topology, &**routing, seed)
}

fn names(topology: &Fabric, src: u32, dst: u32) -> Vec<String> {
    let router = router(topology, "minimal", 0).unwrap();
    router.route(src, dst).map(|link| topology.link_name(link)).collect()
}

/// All links are idle.
pub(crate) struct Unloaded;

impl Load for Unloaded {
    fn load(&self, _: LinkId) -> u64 {
        0
    }

    fn of_bytes(&self, bytes: Bytes) -> u64 {
        bytes.0
    }
}

impl Router<'_> {
    /// The links from `src` to `dst` in an unloaded network, injection and ejection included.
    pub(crate) fn route(&self, src: u32, dst: u32) -> impl Iterator<Item = LinkId> + use<'_> {
        let mut route = Some(self.start(src, dst, self.key(src, dst, 0)));
        let rest = std::iter::from_fn(move || {
            let hop = self.next(route.as_mut()?, &Unloaded);
            if hop.last {
                route = None;
            }
            Some(hop.link)
        });
        std::iter::once(LinkId::injection(src)).chain(rest)
    }
}

const ALL: [&str; 8] =
    ["minimal", "ecmp:pair", "ecmp:packet", "adaptive", "valiant", "valiant:router", "ugal", "par"];

/// Links from node `src` to every vertex, by breadth-first search.
fn distances(topology: &Fabric, src: u32) -> HashMap<Vertex, u32> {
    let mut outgoing: HashMap<Vertex, Vec<Vertex>> = HashMap::new();
    for link in 0..topology.links() {
        let (from, to) = topology.ends(LinkId(link)).unwrap();
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

/// Makes random choices.
struct AtRandom {
    random: Random,
    /// Whether options begin with different links: not so where one local link leads to several cables of a
    /// dragonfly.
    distinct: bool,
}

impl Choice for AtRandom {
    fn among(&mut self, _: &Route, n: u32, fixed: u32, link: &dyn Fn(u32) -> LinkId) -> u32 {
        assert!(n > 1 && fixed < n);
        let links: std::collections::HashSet<LinkId> = (0..n).map(link).collect();
        assert!(links.len() == n as usize || !self.distinct, "two choices are the same link");
        self.random.below(n)
    }

    fn draw(&mut self, _: &Route, n: u32, _: u32) -> u32 {
        self.random.below(n)
    }
}

impl Decisions for AtRandom {
    /// So that the cost of a way is its length.
    fn load(&self, _: LinkId) -> Option<u64> {
        Some(1)
    }

    fn takes_detour(&mut self, short: u64, detour: u64) -> bool {
        // In a dragonfly, two global links may be shorter than one with local links before and behind.
        assert!(short > 0 && detour >= short.min(2), "{short} {detour}");
        self.random.below(2) == 0
    }
}

/// The links of a route with random choices, and their classes.
fn way(router: &Router<'_>, src: u32, dst: u32, seed: u64) -> Vec<(LinkId, u8)> {
    let mut route = router.start(src, dst, seed as u32);
    let distinct = router.fabric().topology().switches_per_group().is_none();
    let mut choice = AtRandom { random: Random::new(seed, 7), distinct };
    let mut found = vec![(LinkId::injection(src), 0)];
    loop {
        let Hop { link, class, last } = router.next_by(&mut route, &mut choice);
        found.push((link, class));
        assert!(found.len() < 1000, "no end");
        if last {
            return found;
        }
    }
}

proptest! {
    /// Any route is connected, reaches its node, has the expected length, and uses valid classes.
    #[test]
    fn ways_lead_there(spec in specs(), src: prop::sample::Index, seed: u64) {
        let topology = build(&spec);
        let src = src.index(topology.nodes() as usize) as u32;
        let shortest = distances(&topology, src);
        let dragonfly = topology.topology().switches_per_group().is_some();
        let pairs = (0..topology.nodes()).flat_map(|src| (0..topology.nodes()).map(move |dst| (src, dst)));
        let diameter = pairs.map(|(src, dst)| topology.distance(src, dst)).max().unwrap_or(0);
        for name in ALL {
            let (routing, router) = (routing(name), router(&topology, name, 1));
            let Ok(router) = router else { continue };
            let farthest = (0..topology.nodes()).map(|node| topology.distance(src, node)).max().unwrap_or(0);
            for dst in 0..topology.nodes() {
                let way = way(&router, src, dst, seed);
                let ends: Vec<_> = way.iter().map(|&(link, _)| topology.ends(link).unwrap()).collect();
                prop_assert_eq!(ends[0].0, Vertex::Node(src));
                prop_assert_eq!(ends[ends.len() - 1].1, Vertex::Node(dst));
                prop_assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "not connected: {ends:?}");
                for &(link, class) in &way[1..way.len() - 1] {
                    prop_assert!(u32::from(class) < router.classes(topology.class(link)));
                }
                let length = way.len() as u32;
                match () {
                    () if routing.detours() != Detours::Never => {
                        let is_tree = topology.topology().minimal_routing() == "dmodk";
                        let levels = topology.topology().levels(topology.wiring()).len() as u32;
                        // To any switch, and from there: in a mesh, farther than from the middle. Each distance has a node's links.
                        let most = if routing.decides_again() { 9 } else if dragonfly { 8 } else if is_tree { 2 * levels } else { farthest + diameter };
                        prop_assert!(length <= most);
                    }
                    // In a dragonfly a shortest route has at most one global link.
                    () if dragonfly => {
                        let globals = way.iter().filter(|(link, _)| topology.class(*link) == LinkClass::GLOBAL).count();
                        prop_assert!(globals <= 1 && length >= topology.distance(src, dst) && length <= 5);
                    }
                    () if src != dst => {
                        prop_assert_eq!(length, shortest[&Vertex::Node(dst)]);
                        prop_assert_eq!(length, topology.distance(src, dst));
                        prop_assert_eq!(length, topology.distance(dst, src));
                    }
                    () => prop_assert_eq!(length, 2),
                }
            }
        }
    }

    /// With the classes that a routing needs, no deadlock is possible.
    #[test]
    fn channels_do_not_depend_on_themselves(spec in specs()) {
        let topology = build(&spec);
        prop_assume!(topology.switches() <= 40);
        for name in ALL {
            if let Ok(mut router) = router(&topology, name, 1) {
                prop_assert!(router.assign_channels(None, ChannelClasses::Routing).is_ok(), "{} {}", spec, name);
                // Too many, or none, are refused by name.
                match router.assign_channels(None, ChannelClasses::Hops) {
                    Ok(_) | Err(RoutingError::TooManyClasses { .. } | RoutingError::NoHops { .. }) => {}
                    Err(error) => prop_assert!(false, "{} {}: {}", spec, name, error),
                }
            }
        }
    }
}

#[test]
fn too_few_channels_are_refused_with_the_cycle() {
    for (topology, routing, needed) in [
        ("torus:5", "minimal", 2),
        ("torus:6x4", "minimal", 2),
        ("torus:5x5", "valiant", 4),
        ("torus:5x5", "adaptive", 6),
        ("torus:3x3x3", "adaptive", 16),
        ("mesh:4x4", "valiant", 2),
        ("mesh:3x3", "adaptive", 2),
        ("hyperx:3x3", "ecmp:packet", 2),
        ("hyperx:3x3x3:1", "adaptive", 3),
        ("hyperx:3x3:2", "ugal:64", 2),
        ("dragonfly:2x4x2", "minimal", 2),
        ("dragonfly:2x4x2", "ugal:64", 3),
        ("dragonfly:2x4x2", "par:64", 4),
        ("dragonfly:1x3x1", "valiant:router", 4),
        ("dragonflyplus:1x2x2x1", "valiant", 2),
        ("slimfly:5:1", "minimal", 2),
    ] {
        let built = build(topology);
        let mut router = router(&built, routing, 1).unwrap();
        assert_eq!(
            router.assign_channels(None, ChannelClasses::Routing).unwrap(),
            needed,
            "{topology} {routing}"
        );
        assert!(router.assign_channels(Some(needed + 1), ChannelClasses::Routing).is_ok());
        // For adaptive routing in a torus one class less need not close a cycle; half as many do.
        let few =
            if topology.starts_with("torus") && routing == "adaptive" { needed / 2 } else { needed - 1 };
        let refused = router.assign_channels(Some(few), ChannelClasses::Routing);
        let error = refused.expect_err(&format!("{topology} {routing}")).to_string();
        assert!(
            error.contains(&format!("needs {needed} virtual channels here; {few} can deadlock")),
            "{error}"
        );
        assert!(error.contains(" -> "), "{error}");
    }
    for (topology, routing) in [
        ("mesh:4x4", "minimal"),
        ("fattree:k=4", "adaptive"),
        ("hyperx:4x4", "minimal"),
        ("karytree:2x3", "ugal"),
        ("dragonflyplus:2x3x2x2", "adaptive"),
    ] {
        let built = build(topology);
        let mut router = router(&built, routing, 1).unwrap();
        assert_eq!(router.assign_channels(None, ChannelClasses::Routing).unwrap(), 1, "{topology} {routing}");
    }
    let many = build("torus:3x3x3x3x3x3x3x3");
    let mut router = router(&many, "adaptive", 1).unwrap();
    assert!(
        router
            .assign_channels(None, ChannelClasses::Routing)
            .unwrap_err()
            .to_string()
            .contains("needs 1152 virtual channels")
    );
}

/// In a torus by the links of the longest route: in dimension order those of one dimension, for adaptive routes of all.
#[test]
fn classes_by_hops_are_as_many_as_links() {
    for (topology, routing, needed) in [
        ("torus:8", "minimal", 4),
        ("torus:6x9", "minimal", 4),
        ("torus:6x9", "valiant", 8),
        ("torus:6x9", "adaptive", 7),
        ("torus:2x2", "minimal", 1),
        ("mesh:4x3", "minimal", 3),
        ("mesh:4x3", "adaptive", 5),
    ] {
        let built = build(topology);
        let mut router = router(&built, routing, 1).unwrap();
        assert_eq!(router.assign_channels(None, ChannelClasses::Hops), Ok(needed), "{topology} {routing}");
    }
    let tree = build("fattree:k=4");
    let refused = router(&tree, "minimal", 1).unwrap().assign_channels(None, ChannelClasses::Hops);
    assert_eq!(refused, Err(RoutingError::NoHops { routing: "minimal".into() }));
    let long = build("torus:300");
    let refused = router(&long, "minimal", 1).unwrap().assign_channels(None, ChannelClasses::Hops);
    assert_eq!(refused, Err(RoutingError::TooManyClasses { routing: "minimal".into(), classes: 150 }));
}

#[test]
fn a_graph_from_a_file_gets_as_many_channels_as_it_needs() {
    let ring = |n: u32| {
        let mut text = String::new();
        for at in 0..n {
            text += &format!("node n{at}\nswitch s{at}\nlink n{at} s{at}\n");
        }
        for at in 0..n {
            text += &format!("link s{at} s{}\n", (at + 1) % n);
        }
        text
    };
    let topology = |text: &str| {
        let file = tempfile::Builder::new().suffix(".txt").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        build(&format!("file:{}", file.path().display()))
    };
    // A ring of five can deadlock, unless the class is the number of links taken; a line cannot.
    let five = topology(&ring(5));
    assert_eq!(router(&five, "minimal", 1).unwrap().assign_channels(None, ChannelClasses::Routing), Ok(2));
    assert_eq!(router(&five, "valiant", 1).unwrap().assign_channels(None, ChannelClasses::Routing), Ok(4));
    let line = topology(&ring(5).replace("link s4 s0\n", ""));
    assert_eq!(router(&line, "adaptive", 1).unwrap().assign_channels(None, ChannelClasses::Routing), Ok(1));
    assert_eq!(router(&line, "ugal", 1).unwrap().assign_channels(None, ChannelClasses::Routing), Ok(2));
    // Given routes are used, and checked for cycles.
    let given = topology(&format!("{}route n0 n1 s0 s4 s3 s2 s1\n", ring(5)));
    assert_eq!(names(&given, 0, 1), ["n0->s0", "s0->s4", "s4->s3", "s3->s2", "s2->s1", "s1->n1"]);
    assert_eq!(names(&given, 1, 0), ["n1->s1", "s1->s0", "s0->n0"]);
    assert_eq!(router(&given, "minimal", 1).unwrap().assign_channels(None, ChannelClasses::Routing), Ok(4));
    // In an even ring the two routes to the opposite switch are equally short: chosen by destination, or by
    // hash.
    let six = topology(&ring(6));
    assert_eq!(names(&six, 0, 3)[1], "s0->s5");
    assert_eq!(names(&six, 2, 5)[1], "s2->s3");
    let router = router(&six, "ecmp:message", 1).unwrap();
    let first = |message| {
        let mut route = router.start(0, 3, router.key(0, 3, message));
        router.next(&mut route, &Unloaded).link
    };
    let taken: std::collections::HashSet<LinkId> = (0..20).map(first).collect();
    assert_eq!(taken.len(), 2);
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
    // x backwards over the edge, then y forwards; the tie in z by the parity of the coordinate.
    assert_eq!(
        names(&build("torus:5x4x2"), 0, 4 + 5 * 2 + 20),
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
    // No route leads over the edge of a mesh.
    assert_eq!(
        names(&build("mesh:3x2"), 0, 5),
        ["node0->(0,0)", "(0,0)->(1,0)", "(1,0)->(2,0)", "(2,0)->(2,1)", "(2,1)->node5"]
    );
    assert_eq!(
        names(&build("hyperx:4x3:2"), 1, 23),
        ["node1->(0,0)", "(0,0)->(3,0)", "(3,0)->(3,2)", "(3,2)->node23"]
    );
    // Group 0 to group 2, absolute: port 1 of group 0, at router 0; the cable ends at port 0 of group 2.
    assert_eq!(
        names(&build("dragonfly:2x4x2:absolute"), 7, 23),
        ["node7->g0.r3", "g0.r3->g0.r0", "g0.r0->g2.r0", "g2.r0->g2.r3", "g2.r3->node23"]
    );
}

/// Destinations are spread over parallel cables and parents.
#[test]
fn destinations_spread_over_parallel_cables() {
    let links_used = |topology: &Fabric, src: u32, hop: usize| {
        let router = router(topology, "minimal", 0).unwrap();
        let used: std::collections::HashSet<_> = (0..topology.nodes())
            .filter_map(|dst| router.route(src, dst).nth(hop))
            .filter(|link| link.0 >= 2 * topology.nodes())
            .collect();
        used.len()
    };
    assert_eq!(links_used(&build("xgft:4,4;1,2;1,2"), 0, 1), 4);
    assert_eq!(links_used(&build("xgft:4,4;1,2;1,2"), 0, 2), 3 * 4);
    // From router 0, of 4 in the group: 3 local links and its own 2 global ones.
    assert_eq!(links_used(&build("dragonfly:2x4x2x5"), 0, 1), 5);
}

/// Every shift of a full tree under D-mod-k uses each link at most once (Zahavi 2010).
#[test]
fn shifts_of_a_full_tree_do_not_meet() {
    for text in ["fattree:4x4x4", "fattree:k=4", "karytree:3x3", "xgft:4,4;1,2;1,2"] {
        let topology = build(text);
        let router = router(&topology, "dmodk", 0).unwrap();
        for shift in 1..topology.nodes() {
            let mut used = std::collections::HashSet::new();
            for src in 0..topology.nodes() {
                for link in router.route(src, (src + shift) % topology.nodes()) {
                    assert!(used.insert(link), "{text}, shift {shift}: {}", topology.link_name(link));
                }
            }
        }
    }
}

/// Ties of a dimension go either way by the packet, and all else as in dimension order.
#[test]
fn ties_at_random() {
    let topology = build("torus:4x3");
    let (fixed, random) = (router(&topology, "dor", 0).unwrap(), router(&topology, "dor:random", 7).unwrap());
    let links = |router: &Router<'_>, dst, key| {
        let mut route = router.start(1, dst, key);
        std::iter::from_fn(|| Some(router.next(&mut route, &Unloaded)).filter(|hop| !hop.last))
            .map(|hop| hop.link)
            .collect::<Vec<_>>()
    };
    let same = (0..400).filter(|n| links(&random, 3, random.key(1, 3, *n)) == links(&fixed, 3, 0)).count();
    assert!((150..250).contains(&same), "{same} of 400");
    assert!((0..40).all(|n| links(&random, 6, random.key(1, 6, n)) == links(&fixed, 6, 0)));
}

#[test]
fn names_read_back() {
    for name in ALL.into_iter().chain([
        "dor",
        "dmodk",
        "ecmp:message",
        "dor:random",
        "ugal:4096",
        "ugal:global",
        "ugal:router",
        "ugal:global:router:4096",
        "par:4096",
    ]) {
        assert_eq!(routing(name).to_string(), name);
    }
    assert_eq!(routing("ecmp").name(), "ecmp:pair");
    assert_eq!(routing("ugal:64KiB").name(), "ugal:65536");
    for (text, says) in [
        ("", "unknown routing; write minimal, dor, dmodk, "),
        ("shortest", "unknown routing; write minimal, dor, dmodk, "),
        ("part", "unknown routing; did you mean par? write minimal, dor, dmodk, "),
        ("ecmp:flow", "write ecmp:pair|message|packet"),
        ("valiant:group", "write valiant[:router]"),
        ("ugal:", "write ugal[:global][:router][:BYTES]"),
        ("ugal:many", "write ugal[:global][:router][:BYTES]"),
        ("ugal:globally", "write ugal[:global][:router][:BYTES]"),
        ("par:", "write par[:BYTES]"),
        ("dor:", "write dor, dor:random"),
        ("minimal:", "write minimal"),
    ] {
        let error = text.parse::<RoutingSpec>().unwrap_err().to_string();
        assert!(error.starts_with(says), "{text}: {error}");
    }
    let tree = build("fattree:k=4");
    let error = |name| router(&tree, name, 0).unwrap_err().to_string();
    assert!(error("dor").starts_with("routing dor is for tori, meshes and HyperX"));
    for name in ["valiant:router", "ugal:router"] {
        assert!(error(name).contains("for dragonflies"));
    }
    assert!(error("dor:random").contains("for tori"));
    for text in ["torus:4x4", "fattree:k=4", "dragonflyplus:1x2x2x1"] {
        let error = router(&build(text), "par", 0).unwrap_err().to_string();
        assert!(
            error.starts_with("routing par is for dragonflies in which no link has failed; use minimal"),
            "{error}"
        );
    }
    let torus = build("torus:4");
    assert!(router(&torus, "dmodk", 0).unwrap_err().to_string().contains("for trees"));
}
