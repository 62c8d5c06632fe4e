//! What is wrong in a graph.

use super::matching;
use super::model::Graph;
use super::yardstick;
use crate::findings::Findings;
use vef_format::units::Count;

/// Finds circles, sends and receives without a partner, which a `partial` import leaves out, and operations that never end.
pub(crate) fn check(mut graph: Graph, partial: bool, findings: &mut Findings) {
    let order = match matching::topological(&graph) {
        Ok(order) => order,
        Err(circle) => {
            let shown: Vec<String> = circle.iter().take(5).map(|&node| graph.shown(node)).collect();
            findings.error("circles of dependencies", || {
                format!("of {}: {}", Count(circle.len(), "operation"), shown.join(" → "))
            });
            return;
        }
    };
    let mut pairs = matching::pair(&graph, order.as_deref());
    for &send in pairs.sends.iter().filter(|_| pairs.wildcards == 0) {
        findings.add("sends without a receive", !partial, || graph.shown(send));
    }
    for &receive in &pairs.receives {
        findings.add("receives without a send", !partial, || graph.shown(receive));
    }
    for &(send, receive) in &pairs.too_large {
        let shown = || format!("{} to {}", graph.shown(send), graph.shown(receive));
        findings.warning("messages larger than the room of their receives", shown);
    }
    let dependencies = graph.take_dependencies();
    if let Err(stuck) = yardstick::order(&graph, &dependencies, &mut pairs, graph.ranks, true) {
        findings.error("schedules that cannot end", || stuck);
    }
}
