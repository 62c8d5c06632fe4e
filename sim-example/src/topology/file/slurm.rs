//! Slurm's `topology.conf` (topology/tree), as in topology.conf(5):
//!
//! ```text
//! SwitchName=leaf0 Nodes=node[0-3]
//! SwitchName=leaf1 Nodes=node[4-7]
//! SwitchName=top Switches=leaf[0-1]
//! ```
//!
//! Each node and each lower switch has one cable to its switch. `LinkSpeed` has no unit and is ignored, as Slurm does.

use placement::NodeList;

use super::description::{Description, Edge, Kind, Names, Speed};
use super::error::{FileError, FileProblem};

pub(super) fn parse(text: &str) -> Result<Description, FileError> {
    let mut names = Names::default();
    // What is below each switch: it may be declared later.
    let mut below: Vec<(usize, Vec<String>, usize)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        add(&mut names, &mut below, line, number).map_err(|problem| problem.at(number))?;
    }
    for (switch, switches, line) in below {
        for name in switches {
            let lower = names.find(&name).map_err(|problem| problem.at(line))?;
            join(&mut names, lower, switch, line);
        }
    }
    Ok(names.description)
}

fn join(names: &mut Names, from: usize, to: usize, line: usize) {
    let edge = Edge { ends: (from, to), speed: Speed::default(), cables: 1, one_way: false, line };
    names.description.edges.push(edge);
}

fn add(
    names: &mut Names,
    below: &mut Vec<(usize, Vec<String>, usize)>,
    line: &str,
    number: usize,
) -> Result<(), FileProblem> {
    let syntax = |problem: String| FileProblem::Syntax(problem);
    let wrong = || syntax("expected SwitchName=NAME Nodes=LIST or SwitchName=NAME Switches=LIST".to_owned());
    let (mut switch, mut nodes, mut switches) = (None, Vec::new(), Vec::new());
    for word in line.split('#').next().unwrap_or_default().split_whitespace() {
        let (key, value) = word.split_once('=').ok_or_else(wrong)?;
        let list = || {
            let list = value.parse::<NodeList>().map_err(|error| syntax(format!("{value:?}: {error}")));
            list.map(|list| list.0)
        };
        match key.to_ascii_lowercase().as_str() {
            "switchname" if !value.is_empty() => switch = Some(value),
            "nodes" => nodes = list()?,
            "switches" => switches = list()?,
            "linkspeed" => {}
            _ => return Err(wrong()),
        }
    }
    let Some(switch) = switch else {
        return if nodes.is_empty() && switches.is_empty() { Ok(()) } else { Err(wrong()) };
    };
    let switch = names.declare(switch, Some(Kind::Switch))?;
    for node in nodes {
        let node = names.declare(&node, Some(Kind::Node))?;
        join(names, node, switch, number);
    }
    below.push((switch, switches, number));
    Ok(())
}
