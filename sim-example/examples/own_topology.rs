//! A topology that the simulator does not have: the Petersen graph, ten switches of three cables each, no two of them more
//! than two cables apart. Each switch has one node.
//!
//! `cargo run -p sim-example --example own_topology`

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::io::Write;

use sim_example::topology::{Choice, Hop, LinkClass, LinkId, Policy, Route, Topology, Wiring};
use sim_example::{Settings, Workload, simulate};

#[derive(Debug)]
struct Petersen;

/// Of an outer switch 0…4, the next ones of a pentagon and an inner switch; of an inner one 5…9, the next ones of a pentagram.
fn neighbours(switch: u32) -> [u32; 3] {
    match switch {
        0..5 => [(switch + 1) % 5, (switch + 4) % 5, switch + 5],
        _ => [(switch + 2) % 5 + 5, (switch + 3) % 5 + 5, switch - 5],
    }
}

impl Topology for Petersen {
    fn name(&self) -> String {
        "petersen".to_owned()
    }

    /// The links between switches follow those of the nodes: three a switch.
    fn wiring(&self) -> Wiring {
        let mut wiring = Wiring::new(10, 10, |node| node);
        for switch in 0..10 {
            neighbours(switch).into_iter().for_each(|to| wiring.link(switch, to, LinkClass::LOCAL));
        }
        wiring
    }

    fn switch_name(&self, switch: u32) -> String {
        format!("s{switch}")
    }

    fn hops(&self, from: u32, to: u32) -> u32 {
        if from == to { 0 } else { 2 - u32::from(neighbours(from).contains(&to)) }
    }

    /// The only shortest way. The class of a link is the number of links before it, so no cycle of channels is possible.
    fn next(&self, route: &mut Route, _: Policy, _: &mut dyn Choice) -> Hop {
        let left = self.hops(route.at, route.dst);
        if left == 0 {
            return Hop::to_node(route.dst);
        }
        let closer = |to: &u32| self.hops(*to, route.dst) == left - 1;
        let port = neighbours(route.at).iter().position(closer).unwrap_or_default();
        let link = LinkId(20 + 3 * route.at + port as u32);
        route.at = neighbours(route.at)[port];
        route.state += 1;
        Hop::to_switch(link, route.state as u32 - 1)
    }

    fn channel_classes(&self, _: Policy, _: LinkClass) -> u32 {
        2
    }
}

/// A message of 1000 bytes from node 0 to its neighbour, then to a switch two cables away.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (to, links) in [(1, 3), (7, 4)] {
        let mut trace = tempfile::NamedTempFile::new()?;
        writeln!(trace, "VEF3 10 1 0 0 0 0 1000\n0 0 {to} 1000 0 0 -1")?;
        let mut settings = Settings { jobs: vec![Workload::new(trace.path())], ..Settings::default() };
        settings.network.topology = Petersen.into();
        for model in ["latency", "cut-through", "packet", "flow"] {
            settings.network.model = model.parse()?;
            let report = simulate(&settings, &mut |_| {})?;
            println!("{model}: {links} links, {}", report.runtime_ps);
            // 500 ns a link, and 800 ns for 1000 bytes at 10 Gbit/s.
            assert_eq!(report.runtime_ps, links * 500_000 + 800_000);
        }
    }
    Ok(())
}
