//! Rail-optimised pods: a leaf switch for each rail of a pod, joined to all spine switches.
//!
//! `rail:RAILSxSERVERSxPODSxSPINES`: a server has RAILS nodes, one for each of its GPUs with their network interfaces; node number r of
//! a server is at the leaf of rail r of its pod, with those of the SERVERS servers of the pod. So nodes of equal number in one pod are two
//! links apart, and others, those of one server included, three more. Node n is number n mod RAILS of server n / RAILS.
//!
//! It is a fat tree of two levels with other node numbers, and so are its routes.
//!
//! Source: NVIDIA, "DGX SuperPOD: Next Generation Scalable Infrastructure for AI Leadership, Reference Architecture" (2023), compute fabric.

use super::drawing::Drawing;
use super::error::TopologyProblem;
use super::form::{Form, exactly, joined};
use super::interface::{Level, Topology};
use super::route::{Choice, Hop, Policy, Route};
use super::tree::Tree;
use super::wiring::{LinkClass, LinkId, Vertex, Wiring, product};

pub(super) const FORMS: &[Form] = &[Form {
    kind: "rail",
    form: "rail:RAILSxSERVERSxPODSxSPINES",
    example: "rail:8x32x4x16",
    help: "pods of SERVERS with RAILS nodes (GPUs) each, node r of each at the leaf switch of rail r of its pod; all leaves joined to all spines",
    parse: |text| {
        let [rails, servers, pods, spines] = exactly(text)?;
        Some(Rail::new(rails, servers, pods, spines).map(Into::into))
    },
}];

/// Rail-optimised pods.
#[derive(Clone, Debug)]
struct Rail {
    tree: Tree,
    rails: u32,
    servers: u32,
    leaves: u32,
}

impl Rail {
    fn new(rails: u32, servers: u32, pods: u32, spines: u32) -> Result<Self, TopologyProblem> {
        let name = format!("rail:{}", joined(&[rails, servers, pods, spines], "x"));
        let leaves = product([rails, pods])?;
        let tree = Tree::new(name, &[servers, leaves], &[1, spines], &[1, 1])?;
        Ok(Self { tree, rails, servers, leaves })
    }

    /// The node of the tree in which those of a leaf follow each other.
    fn in_tree(&self, node: u32) -> u32 {
        let (server, rail) = (node / self.rails, node % self.rails);
        let (pod, server) = (server / self.servers, server % self.servers);
        (pod * self.rails + rail) * self.servers + server
    }
}

impl Topology for Rail {
    fn name(&self) -> String {
        self.tree.name()
    }

    fn wiring(&self) -> Wiring {
        let tree = self.tree.wiring();
        let switch_of = |node| tree.switch_of(self.in_tree(node));
        let mut wiring = Wiring::new(tree.nodes(), tree.switches(), switch_of);
        for link in 2 * tree.nodes()..tree.links() {
            if let Some((Vertex::Switch(from), Vertex::Switch(to))) = tree.ends(LinkId(link)) {
                wiring.link(from, to, LinkClass::LOCAL);
            }
        }
        wiring
    }

    fn switch_name(&self, switch: u32) -> String {
        match switch.checked_sub(self.leaves) {
            Some(spine) => format!("spine{spine}"),
            None => format!("pod{}.rail{}", switch / self.rails, switch % self.rails),
        }
    }

    /// Server and number there: `server3.1`.
    fn node_name(&self, node: u32) -> String {
        format!("server{}.{}", node / self.rails, node % self.rails)
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        self.tree.hops(from, to)
    }

    fn next(&self, route: &mut Route, policy: Policy, choice: &mut dyn Choice) -> Hop {
        let dst = route.dst;
        route.dst = self.in_tree(dst);
        let hop = self.tree.next(route, policy, choice);
        route.dst = dst;
        if hop.last { Hop::to_node(dst) } else { hop }
    }

    fn channel_classes(&self, policy: Policy, class: LinkClass) -> u32 {
        self.tree.channel_classes(policy, class)
    }

    fn minimal_routing(&self) -> &'static str {
        self.tree.minimal_routing()
    }

    fn intermediate(
        &self,
        from: u32,
        to: u32,
        policy: Policy,
        draw: &mut dyn FnMut(u32) -> u32,
    ) -> Option<u32> {
        self.tree.intermediate(from, to, policy, draw)
    }

    fn lengths(&self, route: &Route, to: u32, via: u32, policy: Policy) -> (u32, u32) {
        self.tree.lengths(route, to, via, policy)
    }

    fn levels(&self, wiring: &Wiring) -> Vec<Level> {
        self.tree.levels(wiring)
    }

    fn bisection(&self) -> Option<u32> {
        self.tree.bisection()
    }

    fn drawing(&self, wiring: &Wiring) -> Drawing {
        let drawing = self.tree.drawing(wiring);
        let mut own = vec![0; wiring.nodes() as usize];
        (0..wiring.nodes()).for_each(|node| own[self.in_tree(node) as usize] = node);
        let moved = |(vertex, place)| match vertex {
            Vertex::Node(node) => (Vertex::Node(own[node as usize]), place),
            Vertex::Switch(_) => (vertex, place),
        };
        Drawing { places: drawing.places.into_iter().map(moved).collect(), straight: drawing.straight }
    }
}

#[cfg(test)]
mod tests {
    use crate::routing::tests::router;
    use crate::topology::tests::build;

    /// Node 5 is number 1 of server 2; in pod 0 with 3 servers, at the leaf of rail 1.
    #[test]
    fn nodes_of_a_rail_share_a_leaf() {
        let fabric = build("rail:2x3x2x4");
        assert_eq!((fabric.nodes(), fabric.switches()), (12, 8));
        let names = |src, dst| -> Vec<String> {
            let router = router(&fabric, "minimal", 0).unwrap();
            router.route(src, dst).map(|link| fabric.link_name(link)).collect()
        };
        assert_eq!(names(1, 5), ["server0.1->pod0.rail1", "pod0.rail1->server2.1"]);
        // In the tree, node 4 is number 2 at leaf 0: over spine 2.
        assert_eq!(
            names(5, 4),
            ["server2.1->pod0.rail1", "pod0.rail1->spine2", "spine2->pod0.rail0", "pod0.rail0->server2.0"]
        );
        assert_eq!(names(0, 7).len(), 4);
        for text in ["rail:2x3x2", "rail:0x3x2x1", "rail:2x3x2x0", "rail:65536x65536x1x1"] {
            assert!(text.parse::<crate::topology::TopologySpec>().is_err(), "{text}");
        }
    }
}
