//! The wiring of all topologies, by hand and by properties; networks from files.

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

const LINES: &str = "# two switches
node a
node b
node c
switch s
switch t
link a s
link s b latency=1us
link t c bandwidth=1Gbit/s   # slow
link s t cables=2 bandwidth=40Gbit/s latency=2us
";

#[test]
fn the_same_network_in_three_formats() {
    let graphml = r#"<?xml version="1.0"?>
        <graphml><key id="k0" for="node" attr.name="type"/><key id="k1" for="edge" attr.name="bandwidth"/>
        <graph edgedefault="undirected">
        <node id="a"><data key="k0">host</data></node><node id="b"/><node id="c"/>
        <node id="s"><data key="k0">switch</data></node><node id="t"/>
        <edge source="a" target="s"/>
        <edge source="s" target="b"><data key="latency">1us</data></edge>
        <edge source="t" target="c"><data key="k1">1Gbit/s</data></edge>
        <edge source="s" target="t"><data key="cables">2</data><data key="k1">40Gbit/s</data><data key="latency">2us</data>
        </edge></graph></graphml>"#;
    let dot = r#"
        // two switches
        strict graph "net" {
            graph [label="x"]; rankdir = LR
            node [type=host]; a; b; c
            node [type=switch, shape=box]
            subgraph cluster { s; t [type=router] }
            a -- s:1
            s -- b [latency="1us"]; t--c [bandwidth="1Gbit/s", color=red]
            s -- t [cables=2 bandwidth="40Gbit/s"; latency="2us"]
        }"#;
    let digraph = "digraph { node [type=node] a b c node [type=switch] s t
        a -> s -> a  s -> b -> s [latency=\"1us\"]  t -> c -> t [bandwidth=\"1Gbit/s\"]
        s -> t [cables=2 bandwidth=\"40Gbit/s\" latency=\"2us\"] t -> s [cables=2 bandwidth=\"40Gbit/s\" latency=\"2us\"] }";
    let cables = |topology: &Fabric| {
        let speeds = crate::model::Links::default().speeds(topology);
        let mut cables: Vec<(String, u64, u64)> = (0..topology.links())
            .map(|link| {
                let speed = speeds[usize::from(topology.class(LinkId(link)).0)];
                (topology.link_name(LinkId(link)), speed.bandwidth.bits_per_second(), speed.latency.0)
            })
            .collect();
        cables.sort();
        cables
    };
    let expected = described(".txt", LINES).unwrap();
    assert_eq!((expected.nodes(), expected.switches(), expected.links()), (3, 2, 6 + 4));
    let giga = 1_000_000_000;
    assert_eq!(cables(&expected)[0], ("a->s".into(), 10 * giga, 500_000));
    assert!(cables(&expected).contains(&("s->b".into(), 10 * giga, 1_000_000)));
    assert!(cables(&expected).contains(&("c->t".into(), giga, 500_000)));
    assert_eq!(
        cables(&expected).iter().filter(|cable| **cable == ("t->s".into(), 40 * giga, 2_000_000)).count(),
        2
    );
    for (suffix, text) in [(".graphml", graphml), (".dot", dot), (".gv", digraph)] {
        let topology = described(suffix, text).unwrap_or_else(|error| panic!("{suffix}: {error}"));
        assert_eq!(cables(&topology), cables(&expected), "{suffix}");
        assert_eq!(topology.distance(0, 1), 2);
        assert_eq!(topology.distance(0, 2), 3);
    }
}

#[test]
fn files_that_describe_no_network_say_why() {
    let lines = |text: &str| described(".txt", text).unwrap_err();
    assert!(lines("").contains("no node"));
    assert_eq!(lines("node a\nnode b\nnode a"), "line 3: \"a\" is declared twice");
    assert!(lines("node a\nnod b").starts_with("line 2: expected node NAME"));
    assert!(lines("node a\nswitch s\nlink a t").contains("line 3: unknown node or switch \"t\""));
    assert!(lines("node a\nnode b\nlink a b").contains("line 3: node \"a\" is joined to node \"b\""));
    assert!(lines("node a\nswitch s").contains("node \"a\" has 0 cables"));
    assert!(lines("node a\nswitch s\nlink a s cables=2").contains("node \"a\" has 2 cables"));
    assert!(lines("node a\nswitch s\nlink a s cables=0").contains("at least 1"));
    assert!(lines("node a\nswitch s\nlink a s fast").contains("\"fast\": write bandwidth=RATE"));
    assert!(lines("node a\nswitch s\nlink a s bandwidth=0Gbit/s").contains("greater than zero"));
    assert!(
        lines("node a\nswitch s\nlink a s latency=soon")
            .contains("latency \"soon\": expected a decimal number")
    );
    assert!(
        lines("switch s\nlink s s").contains("join two vertices")
            || lines("switch s\nlink s s").contains("no node")
    );
    assert!(
        lines("node a\nnode b\nswitch s\nswitch t\nlink a s\nlink b t")
            .contains("no route from node \"a\" to node \"b\"")
    );
    let route = |line: &str| lines(&format!("{LINES}{line}"));
    assert!(route("route a c s").contains("the route from \"a\" to \"c\": \"c\" is not connected to \"s\""));
    assert!(route("route a s s").contains("from a node to a node"));
    assert!(route("route a c s b t").contains("\"b\" is not a switch"));
    assert!(route("route a b s s").contains("no such link: s->s"));
    assert!(route("route a b s\nroute a b s").contains("given twice"));
    assert!(described(".graphml", "<a/>").unwrap_err().contains("no <graphml>"));
    assert!(
        described(".graphml", "<graphml><graph><node/></graph></graphml>")
            .unwrap_err()
            .contains("without \"id\"")
    );
    assert!(described(".graphml", "<graphml><graph><node id='a'></graph>").unwrap_err().contains("line 1"));
    assert!(
        described(".graphml", "<graphml><graph><edge source='a' target='b'/></graph></graphml>")
            .unwrap_err()
            .contains("\"a\"")
    );
    for (text, said) in [
        ("", "expected graph or digraph"),
        ("graph", "expected {"),
        ("graph {", "the last } is missing"),
        ("graph { a -- }", "expected a name after"),
        ("graph { \"a }", "unterminated quotation"),
        ("graph { a -- b [x=", "expected an attribute"),
        ("graph {\n a ] }", "line 2: expected a name"),
        ("digraph { node [type=node] a; s [type=switch]; t [type=switch]; a -> s -> t }", "node \"a\""),
    ] {
        let error = described(".dot", text).err().unwrap_or_default();
        assert!(error.contains(said) || said.starts_with("node"), "{text}: {error}");
    }
    let missing = "file:/nowhere.txt".parse::<TopologySpec>().unwrap().build(1).unwrap_err().to_string();
    assert!(missing.contains("/nowhere.txt"), "{missing}");
}

proptest! {
    #[test]
    fn any_file_is_answered(text in "[a-c \\-\\[\\]{}<>\"=;/n]{0,60}") {
        for suffix in [".txt", ".dot", ".graphml"] {
            let _ = described(suffix, &text);
            let _ = described(suffix, &format!("graph {{ {text} }}"));
        }
    }
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

/// Slurm's example of a tree, from topology.conf(5), with its ranges.
#[test]
fn topology_conf_is_a_tree() {
    let tree = described(
        ".conf",
        "# a tree\nSwitchName=top Switches=s[0-1]\nSwitchName=s0 Nodes=dev[0-2] LinkSpeed=900\nswitchname=s1 nodes=dev[3-5]\n\n",
    )
    .unwrap();
    assert_eq!((tree.nodes(), tree.switches(), tree.links()), (6, 3, 12 + 4));
    assert_eq!(
        (tree.vertex_name(Vertex::Node(5)), tree.distance(0, 2), tree.distance(0, 5)),
        ("dev5".into(), 2, 4)
    );
    for (text, problem) in [
        ("SwitchName=a Nodes=n[0-1]\nSwitchName=b Switches=a,c", "line 2: unknown node or switch \"c\""),
        ("SwitchName=a Nodes=n[0-", "line 1: \"n[0-\": "),
        ("Nodes=n0", "line 1: expected SwitchName=NAME"),
        ("BlockName=b Nodes=n0", "line 1: expected SwitchName=NAME"),
        ("SwitchName=a Nodes=n0\nSwitchName=b Nodes=n0", "line 2: \"n0\" is declared twice"),
        ("SwitchName=a Nodes=n0\nSwitchName=b Nodes=n1", "no route from node"),
    ] {
        let error = described(".conf", text).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

/// Two leaves and a spine, two cables between the second leaf and the spine; two adapters of one description.
#[test]
fn ibnetdiscover_is_read() {
    let text = r##"
# Topology file: generated on Wed Nov 25 2026
vendid=0x2c9
devid=0xbd36
sysimgguid=0x2c902004048bb
switchguid=0x1(1)
Switch	36 "S-1"		# "leaf0" enhanced port 0 lid 1 lmc 0
[1]	"H-1"[1](11) 		# "node01 HCA-1" lid 5 4xEDR
[19]	"S-3"[1]		# "spine0" lid 3 4xHDR

Switch	36 "S-2"		# "leaf1" enhanced port 0 lid 2 lmc 0
[1]	"H-2"[1](21) 		# "node01 HCA-1" lid 6 4xNDR
[19]	"S-3"[2]		# "spine0" lid 3 4xHDR
[20]	"S-3"[3]		# "spine0" lid 3 4xHDR

Switch	36 "S-3"		# "spine0" base port 0 lid 3 lmc 0
[1]	"S-1"[19]		# "leaf0" lid 1 4xHDR
[2]	"S-2"[19]		# "leaf1" lid 2 4xHDR
[3]	"S-2"[20]		# "leaf1" lid 2 4xHDR

caguid=0x1
Ca	1 "H-1"		# "node01 HCA-1"
[1](11) 	"S-1"[1]		# lid 5 lmc 0 "leaf0" lid 1 4xEDR

Ca	1 "H-2"		# "node01 HCA-1"
[1](21) 	"S-2"[1]		# lid 6 lmc 0 "leaf1" lid 2 4xNDR
"##;
    let fabric = described(".ibnet", text).unwrap();
    assert_eq!((fabric.nodes(), fabric.switches(), fabric.links()), (2, 3, 4 + 2 * 3));
    let links = links_and_rates(&fabric);
    for (name, rate) in [("node01->leaf0", 100), ("leaf1->H-2", 400), ("leaf0->spine0", 200)] {
        assert!(links.contains(&(name.to_owned(), Some(rate))), "{name}: {links:?}");
    }
    assert_eq!(links.iter().filter(|(name, _)| name == "spine0->leaf1").count(), 2);
    for (from, to, problem) in [
        ("\"S-3\"[2]", "\"S-4\"[2]", "line 13: unknown node or switch \"S-4\""),
        ("\"S-3\"[2]", "\"S-3\"", "line 13: not of ibnetdiscover: a port leads to"),
        ("36 \"S-2\"", "36 \"S-1\"", "line 11: \"S-1\" is declared twice"),
    ] {
        let error = described(".ibnet", &text.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(problem), "{to}: {error}");
    }
    assert!(described(".ibnet", "[1] \"S-1\"[2]").unwrap_err().contains("a port before the first block"));
    assert!(described(".ibnet", "nothing").unwrap_err().contains("no nodes"));
}
