//! Networks that files describe: graphs, topology.conf, ibnetdiscover.

use super::*;

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
