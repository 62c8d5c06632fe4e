//! The wiring of all topologies, by hand and by properties.

mod files;

use super::*;
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

pub(crate) fn build(text: &str) -> Fabric {
    text.parse::<TopologySpec>().unwrap().build(1).unwrap()
}

fn joined(numbers: &[u32], separator: &str) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(separator)
}

/// Small networks of all kinds but files.
pub(crate) fn specs() -> impl Strategy<Value = String> {
    let sizes = |most: u32| prop::collection::vec(1u32..most, 1..4);
    let per_router = |nodes: u32| if nodes == 1 { String::new() } else { format!(":{nodes}") };
    prop_oneof![
        (1u32..20).prop_map(|nodes| format!("switch:{nodes}")),
        (1u32..6, 1u32..6, 1u32..6)
            .prop_map(|(leaves, nodes, spines)| format!("fattree:{leaves}x{nodes}x{spines}")),
        (1u32..4).prop_map(|half| format!("fattree:k={}", 2 * half)),
        (1u32..4, 1u32..4).prop_map(|(k, levels)| format!("karytree:{k}x{levels}")),
        (prop::collection::vec((1u32..4, 1u32..4, 1u32..3), 1..5), any::<bool>()).prop_map(
            |(levels, with_cables)| {
                let children: Vec<u32> = levels.iter().map(|level| level.0).collect();
                let (mut parents, mut cables): (Vec<_>, Vec<_>) =
                    levels.into_iter().map(|(_, w, p)| (w, p)).unzip();
                (parents[0], cables[0]) = (1, 1);
                let cables = if with_cables { format!(";{}", joined(&cables, ",")) } else { String::new() };
                format!("xgft:{};{}{cables}", joined(&children, ","), joined(&parents, ","))
            }
        ),
        (sizes(7), 1u32..3, any::<bool>()).prop_map(move |(sizes, nodes, wraps)| {
            let kind = if wraps { "torus" } else { "mesh" };
            format!("{kind}:{}{}", joined(&sizes, "x"), per_router(nodes))
        }),
        (sizes(5), 1u32..3).prop_map(move |(sizes, nodes)| format!(
            "hyperx:{}{}",
            joined(&sizes, "x"),
            per_router(nodes)
        )),
        (1u32..3, 1u32..5, 1u32..4, any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(
            |(nodes, routers, global, groups, arrangement)| {
                let ports = routers * global;
                let possible: Vec<Option<u32>> = [None, Some(1)]
                    .into_iter()
                    .chain((1..=ports).filter(|n| ports % n == 0).map(|n| Some(n + 1)))
                    .collect();
                let groups = possible[groups.index(possible.len())];
                let arrangement = match arrangement.index(3) {
                    1 if groups.is_none_or(|groups| groups == ports + 1) => ":absolute",
                    2 => ":relative",
                    _ => "",
                };
                let groups = groups.map_or(String::new(), |groups| format!("x{groups}"));
                format!("dragonfly:{nodes}x{routers}x{global}{groups}{arrangement}")
            }
        ),
        (prop::sample::select(vec![3u32, 4, 5, 7, 8, 9]), 1u32..3)
            .prop_map(|(q, nodes)| format!("slimfly:{q}:{nodes}")),
        (1u32..4, 1u32..4, 1u32..3, 1u32..4)
            .prop_map(|(rails, servers, pods, spines)| format!("rail:{rails}x{servers}x{pods}x{spines}")),
        (1u32..4, 1u32..4, 2u32..4).prop_map(|(up, ratio, levels)| {
            let behind = if ratio == 1 { String::new() } else { format!(":{ratio}") };
            format!("clos:{}x{levels}{behind}", 2 * up * (ratio + 1))
        }),
        (1u32..3, 1u32..4, 1u32..4, 1u32..3, any::<prop::sample::Index>()).prop_map(
            |(nodes, leaves, spines, global, groups)| {
                let ports = spines * global;
                let possible: Vec<u32> = (1..=ports).filter(|n| ports % n == 0).map(|n| n + 1).collect();
                let groups = groups.get(&possible);
                format!("dragonflyplus:{nodes}x{leaves}x{spines}x{global}x{groups}")
            }
        ),
    ]
}

/// The speeds of the classes of a network's first four links: in and out of its first two nodes.
fn node_speeds(fabric: &Fabric) -> Vec<Option<u64>> {
    let given = |link| fabric.class(LinkId(link)).0.checked_sub(LinkClass::GIVEN.0);
    let bits =
        |class: u16| fabric.given_speeds()[usize::from(class)].0.bandwidth.map(|rate| rate.bits_per_second());
    (0..4).map(|link| given(link).and_then(bits)).collect()
}

#[test]
fn a_cable_of_a_node_leads_both_ways() {
    let digraph = |edges: &str| {
        described(
            ".dot",
            &format!(
                "digraph {{ a [type=node]; b [type=node]; s [type=switch]; t [type=switch]; s -> t -> s; b -> s -> b; {edges} }}"
            ),
        )
    };
    for (edges, said) in [
        ("a -> s", "the cable between \"a\" and \"s\" must lead both ways"),
        ("s -> a", "the cable between \"a\" and \"s\" must lead both ways"),
        ("a -> s; t -> a", "must lead both ways"),
        ("a -> s; a -> s", "\"a\" has 2 cables"),
        ("a -> s -> a -> s", "\"a\" has 2 cables"),
        // 2^32 + 1 cables are not one.
        ("a -> s [cables=4294967295]; a -> s [cables=2]; s -> a", "\"a\" has 4294967297 cables"),
        ("", "\"a\" has 0 cables"),
    ] {
        let error = digraph(edges).unwrap_err();
        assert!(error.contains(said), "{edges}: {error}");
    }
    // Each direction has its own speed.
    let there = digraph("a -> s [bandwidth=1G]; s -> a [bandwidth=2G]").unwrap();
    assert_eq!(node_speeds(&there), [Some(1_000_000_000), Some(2_000_000_000), None, None]);
}

#[test]
fn graphml_has_references_and_cdata() {
    let with = |rate: &str| {
        described(
            ".graphml",
            &format!(
                "<graphml><key id='d' attr.name='bandwidth'/><graph><node id='a'/><node id='b'/><node id='s'><data key='kind'>switch</data></node>\n\
             <edge source='a' target='s'><data key='d'>{rate}</data></edge><edge source='b' target='s'/></graph></graphml>"
            ),
        )
    };
    for rate in ["10Gbit/s", "1&#48;Gbit/s", "1&#x30;Gbit/s", "<![CDATA[10]]>Gbit/s", "<![CDATA[10Gbit/s]]>"]
    {
        assert_eq!(node_speeds(&with(rate).unwrap())[0], Some(10_000_000_000), "{rate}");
    }
    let error = with("1&zero;Gbit/s").unwrap_err();
    assert!(error.contains("line 2: unknown entity &zero;"), "{error}");
    assert!(with("1&lt;Gbit/s").unwrap_err().contains("1<Gbit/s"));
}

#[test]
fn a_switch_has_a_limit_of_links() {
    let cables = |n: u32| {
        described(
            ".txt",
            &format!("node a\nnode b\nswitch s\nswitch t\nlink a s\nlink b t\nlink s t cables={n}"),
        )
    };
    assert_eq!(cables(1 << 16).unwrap().links(), 4 + 2 * (1 << 16));
    assert!(cables((1 << 16) + 1).unwrap_err().contains("switch \"s\" has more than 65536 links"));
    assert!(cables(1 << 25).unwrap_err().contains("more than 16777216 links"));
}

proptest! {
    /// Each link has an opposite link, each node one cable, and the network is connected.
    #[test]
    fn links_are_cables_of_two(spec in specs()) {
        let topology = build(&spec);
        let mut between: HashMap<(Vertex, Vertex), i32> = HashMap::new();
        for link in 0..topology.links() {
            let (from, to) = topology.ends(LinkId(link)).unwrap();
            prop_assert!(from != to);
            *between.entry((from, to)).or_default() += 1;
        }
        prop_assert!(between.iter().all(|(&(from, to), count)| between[&(to, from)] == *count));
        for node in 0..topology.nodes() {
            let switch = Vertex::Switch(topology.switch_of(node));
            prop_assert_eq!(topology.ends(LinkId::injection(node)), Some((Vertex::Node(node), switch)));
            prop_assert_eq!(topology.ends(LinkId::ejection(node)), Some((switch, Vertex::Node(node))));
            prop_assert_eq!(topology.class(LinkId::injection(node)), LinkClass::NODE);
        }
        let used: HashSet<Vertex> = between.keys().map(|&(from, _)| from).collect();
        if topology.nodes() > 1 {
            prop_assert_eq!(used.iter().filter(|vertex| matches!(vertex, Vertex::Node(_))).count(), topology.nodes() as usize);
        }
        let names: HashSet<String> = used.iter().map(|&vertex| topology.vertex_name(vertex)).collect();
        prop_assert_eq!(names.len(), used.len(), "two vertices of one name");
    }

    #[test]
    fn a_spec_reads_back(spec in specs()) {
        prop_assert_eq!(build(&spec).topology().name(), spec);
    }

    #[test]
    fn any_text_is_answered(kind in "(switch|fattree|fattree:k=|karytree|xgft|torus|mesh|hyperx|dragonfly|dragonflyplus|slimfly|clos|rail|auto|)", rest in "[:;,x0-9=]{0,30}|\\PC{0,10}") {
        let _ = format!("{kind}:{rest}").parse::<TopologySpec>();
        let _ = format!("{kind}{rest}").parse::<TopologySpec>();
    }
}

#[test]
fn sizes() {
    for (text, nodes, switches, links) in [
        ("switch:16", 16, 1, 32),
        ("fattree:4x16x8", 64, 12, 128 + 2 * 4 * 8),
        ("fattree:k=4", 16, 20, 3 * 2 * 16),
        ("karytree:2x4", 16, 32, 2 * (16 + 16 + 16 + 16)),
        ("xgft:2,2,2,2;1,2,2,2", 16, 32, 2 * (16 + 16 + 16 + 16)),
        ("xgft:4,4;1,2;1,3", 16, 6, 32 + 2 * 4 * 2 * 3),
        ("torus:4x4x2", 32, 32, 64 + 64 + 64 + 32),
        ("torus:4x4:3", 48, 16, 96 + 64),
        ("torus:1", 1, 1, 2),
        ("mesh:4x3", 12, 12, 24 + 2 * (3 * 3 + 4 * 2)),
        ("hyperx:4x4:4", 64, 16, 128 + 16 * 6),
        ("hyperx:6", 6, 6, 12 + 30),
        ("dragonfly:2x4x2", 72, 36, 144 + 36 * 3 + 9 * 8),
        ("dragonfly:2x4x2x5:relative", 40, 20, 80 + 20 * 3 + 5 * 8),
        ("dragonfly:2x4x2x1", 8, 4, 16 + 12),
        ("dragonflyplus:4x4x4x4", 4 * 4 * 17, 8 * 17, 2 * 272 + 2 * 16 * 17 + 16 * 17),
        ("slimfly:5", 200, 50, 400 + 50 * 7),
        ("slimfly:4:2", 64, 32, 128 + 32 * 6),
        ("clos:8x2:3", 48, 10, 96 + 2 * 8 * 2),
        ("clos:8x3", 128, 80, 2 * 3 * 128),
        ("clos:6x3:2", 72, 18 + 12 + 6, 144 + 2 * 18 * 2 + 2 * 12 * 3),
        ("rail:8x4x2x3", 64, 19, 128 + 2 * 16 * 3),
        ("auto", 1, 1, 2),
    ] {
        let topology = build(text);
        assert_eq!(
            (topology.nodes(), topology.switches(), topology.links()),
            (nodes, switches, links),
            "{text}"
        );
    }
    assert_eq!(TopologySpec::Auto.build(7).unwrap().nodes(), 7);
}

/// The arrangements by their definitions.
#[test]
fn global_cables_lead_where_the_arrangement_says() {
    let (a, h) = (4, 2);
    let (g, ports) = (a * h + 1, a * h);
    for (name, definition) in [
        (
            "palmtree",
            &(|i: u32, k: u32| ((i + 2 * g - k - 1) % g, ports - 1 - k)) as &dyn Fn(u32, u32) -> (u32, u32),
        ),
        ("relative", &|i, k| ((i + k + 1) % g, ports - 1 - k)),
        ("absolute", &|i, k| {
            let to = if k < i { k } else { k + 1 };
            (to, if i < to { i } else { i - 1 })
        }),
    ] {
        let topology = build(&format!("dragonfly:2x4x2:{name}"));
        let first = 144 + 36 * 3;
        for i in 0..g {
            for k in 0..ports {
                let (to, to_port) = definition(i, k);
                let ends = (Vertex::Switch(i * a + k / h), Vertex::Switch(to * a + to_port / h));
                assert_eq!(topology.ends(LinkId(first + i * ports + k)), Some(ends), "{name} {i} {k}");
                // Both ends are given: the cable leads back.
                assert_eq!(definition(to, to_port), (i, k));
            }
        }
    }
    // Fewer groups, palmtree: port k of i to i + 1 + ((a·h − 1 − k) mod (g − 1)), port a·h − 1 − k.
    let topology = build("dragonfly:1x4x2x5");
    let first = 40 + 20 * 3;
    for i in 0..5 {
        for k in 0..8 {
            let to = (i + 1 + (7 - k) % 4) % 5;
            let ends = (Vertex::Switch(i * 4 + k / 2), Vertex::Switch(to * 4 + (7 - k) / 2));
            assert_eq!(topology.ends(LinkId(first + i * 8 + k)), Some(ends), "{i} {k}");
        }
    }
}

#[test]
fn what_is_no_topology_says_why() {
    let error = |text: &str| text.parse::<TopologySpec>().unwrap_err().to_string();
    assert!(error("ring:4x4").contains("unknown kind; write auto, switch:N"));
    assert!(error("").contains("unknown kind"));
    assert!(error("auto:3").contains("unknown kind"));
    for text in
        ["switch", "switch:", "switch:4x4", "switch:-1", "switch:+1", "switch:99999999999", "switch:4:4"]
    {
        assert!(error(text).contains("expected switch:NODES"), "{text}");
    }
    assert!(error("switch:0").contains("at least 1"));
    assert!(error("fattree:4x4").contains("expected fattree:LEAVES"));
    assert!(error("fattree:k=x").contains("expected fattree:LEAVES"));
    assert!(error("fattree:k=5").contains("must be even"));
    assert!(error("fattree:k=0").contains("at least 1"));
    assert!(error("karytree:4").contains("expected karytree:K"));
    assert!(error("karytree:4x0").contains("at least 1"));
    assert!(error("karytree:1x4000000000").contains("more than"));
    assert!(error("xgft:4,4").contains("expected xgft:"));
    assert!(error("xgft:4,4;1").contains("2 levels of children, but 1 of parents"));
    assert!(error("xgft:4,4;1,2;1").contains("2 levels of children, but 1 of parents"));
    assert!(error("xgft:4,4;2,2").contains("a node has one link"));
    assert!(error("xgft:4,4;1,2;2,2").contains("a node has one link"));
    assert!(error("xgft:4,4;1,2;1,0").contains("at least 1"));
    assert!(error("torus:4x").contains("expected torus:"));
    assert!(error("mesh:4x4:x").contains("expected mesh:"));
    assert!(error("torus:65536x65536").contains("more than 16777216 links"));
    assert!(error("torus:4000x4000x4").contains("more than 16777216 links"));
    assert!(error("switch:4000000000").contains("more than 16777216 links"));
    assert!(error(&format!("torus:{}", vec!["1"; 300].join("x"))).contains("more than"));
    assert!(error("hyperx:").contains("expected hyperx:"));
    assert!(error("hyperx:100000:1").contains("more than"));
    assert!(error("dragonfly:2x4").contains("expected dragonfly:"));
    assert!(error("dragonfly:2x4x2:nautilus").contains("expected dragonfly:"));
    assert!(error("dragonfly:2x4x2x8").contains("groups − 1 must divide 8"));
    assert!(error("dragonfly:2x4x2x5:absolute").contains("needs all 9 groups"));
    assert!(error("dragonfly:2x0x2").contains("at least 1"));
    assert!(error("file:").contains("expected file:PATH"));
}

/// The network in a file with that suffix, or the error.
pub(crate) fn described(suffix: &str, text: &str) -> Result<Fabric, String> {
    let file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let spec: TopologySpec = format!("file:{}", file.path().display()).parse().unwrap();
    spec.build(1).map_err(|error| error.problem.to_string())
}

/// Each link is in one level, and the first level has those of the nodes, unless a tree has one switch.
#[test]
fn levels_divide_the_links() {
    for (text, names) in [
        ("switch:3", &["nodes"][..]),
        ("fattree:2x2x2", &["nodes", "leaf-spine"]),
        ("fattree:k=4", &["nodes", "edge-aggregation", "aggregation-core"]),
        ("karytree:2x4", &["nodes", "level1-level2", "level2-level3", "level3-level4"]),
        ("torus:4x3x2:2", &["nodes", "dimension 0", "dimension 1", "dimension 2"]),
        ("hyperx:3x4:2", &["nodes", "dimension 0", "dimension 1"]),
        ("dragonfly:2x4x2", &["nodes", "local", "global"]),
    ] {
        let fabric = build(text);
        let levels = fabric.topology().levels(fabric.wiring());
        assert_eq!(levels.iter().map(|level| level.name.as_str()).collect::<Vec<_>>(), names, "{text}");
        assert_eq!(levels[0].links, 0..2 * fabric.nodes());
        assert!(levels.windows(2).all(|pair| pair[0].links.end == pair[1].links.start), "{text}: {levels:?}");
        assert_eq!(levels[levels.len() - 1].links.end, fabric.links());
    }
    // Links of a dimension lead along it; of a level, between two kinds of switches.
    let torus = build("torus:4x3");
    let rows = torus.topology().levels(torus.wiring())[1].links.clone();
    assert!(rows.clone().all(|link| {
        let Some((Vertex::Switch(from), Vertex::Switch(to))) = torus.ends(LinkId(link)) else { return false };
        from / 4 == to / 4
    }));
    assert_eq!(rows.len(), 2 * 12);
    let tree = build("fattree:k=4");
    let core = tree.topology().levels(tree.wiring())[2].links.clone();
    assert!(core.clone().all(|link| tree.link_name(LinkId(link)).contains("core")));
    assert_eq!(core.len(), 2 * 16);
}

/// The least links between two halves of the nodes, of all halves and all divisions of the switches.
fn narrowest(fabric: &Fabric) -> u32 {
    let (nodes, switches) = (fabric.nodes(), fabric.switches());
    let ends: Vec<(u32, u32)> = (2 * nodes..fabric.links())
        .filter_map(|link| match fabric.ends(LinkId(link))? {
            (Vertex::Switch(from), Vertex::Switch(to)) => Some((from, to)),
            _ => None,
        })
        .collect();
    let mut of_switch = vec![0; switches as usize];
    (0..nodes).for_each(|node| of_switch[fabric.switch_of(node) as usize] += 1);
    // By how many nodes of a division's switches are on their side, the fewest links of nodes that lead to the other side.
    let cut = |side: u32| {
        let is_in = |switch: u32| side >> switch & 1 == 1;
        let between = ends.iter().filter(|(from, to)| is_in(*from) && !is_in(*to)).count() as u32;
        let inside: u32 =
            (0..switches).filter(|&switch| is_in(switch)).map(|switch| of_switch[switch as usize]).sum();
        between + inside.abs_diff(nodes / 2)
    };
    (0..1 << switches).map(cut).min().unwrap_or(0)
}

#[test]
fn bisections_are_the_narrowest_cuts() {
    for text in [
        "switch:6",
        "fattree:4x3x2",
        "fattree:4x1x3",
        "fattree:2x6x2",
        "xgft:2,2,2;1,1,1",
        "xgft:2,4;1,2;1,3",
        "karytree:2x3",
        "torus:4x3",
        "torus:4x4",
        "torus:6x2",
        "torus:4:3",
        "torus:2x2x2",
        "torus:8",
        "mesh:4x3",
        "mesh:4x4:2",
        "mesh:6x2",
        "hyperx:4",
        "hyperx:4:3",
        "hyperx:4x2:3",
        "hyperx:2x2x2:4",
        "hyperx:6:9",
        "hyperx:4x4:2",
        "hyperx:4x4:9",
    ] {
        let fabric = build(text);
        assert_eq!(fabric.topology().bisection(), Some(narrowest(&fabric)), "{text}");
    }
    for text in ["fattree:3x4x2", "torus:5x4", "hyperx:3x2", "dragonfly:2x4x2", "switch:3"] {
        assert_eq!(build(text).topology().bisection(), None, "{text}");
    }
}

/// The names of a network's links from one vertex to another, with their bandwidths in Gbit/s, if given.
pub(crate) fn links_and_rates(fabric: &Fabric) -> Vec<(String, Option<u64>)> {
    let rate = |link: LinkId| {
        let given = fabric.class(link).0.checked_sub(LinkClass::GIVEN.0)?;
        fabric.given_speeds()[usize::from(given)]
            .0
            .bandwidth
            .map(|rate| rate.bits_per_second() / 1_000_000_000)
    };
    (0..fabric.links()).map(LinkId).map(|link| (fabric.link_name(link), rate(link))).collect()
}
