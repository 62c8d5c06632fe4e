//! Networks as lines of text:
//!
//! ```text
//! # comment
//! node n0
//! switch s0
//! link n0 s0 bandwidth=10Gbit/s latency=500ns cables=2
//! route n0 n1 s0 s1
//! ```
//!
//! Links are two-way. `route FROM TO SWITCHES…` gives the route between two nodes; all other routes are
//! shortest.

use super::description::{Description, Edge, Kind, Names, RouteLine, Speed};
use super::error::{FileError, FileProblem};

pub(super) fn parse(text: &str) -> Result<Description, FileError> {
    let mut names = Names::default();
    for (number, line) in (1..).zip(text.lines()) {
        add(&mut names, line, number).map_err(|problem| problem.at(number))?;
    }
    Ok(names.description)
}

fn add(names: &mut Names, line: &str, number: usize) -> Result<(), FileProblem> {
    let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
    match words[..] {
        [] => {}
        ["node", name] => drop(names.declare(name, Some(Kind::Node))?),
        ["switch", name] => drop(names.declare(name, Some(Kind::Switch))?),
        ["link", from, to, ref rest @ ..] => {
            let (mut speed, mut cables) = (Speed::default(), 1);
            for word in rest {
                let (key, value) = word.split_once('=').unwrap_or((word, ""));
                if key == "cables" {
                    cables =
                        value.parse().ok().filter(|&n| n > 0).ok_or_else(|| FileProblem::cables(value))?;
                } else if !speed.set(key, value)? {
                    return Err(FileProblem::Syntax(format!(
                        "{word:?}: write bandwidth=RATE, latency=TIME or cables=N"
                    )));
                }
            }
            let ends = (names.find(from)?, names.find(to)?);
            names.description.edges.push(Edge { ends, speed, cables, one_way: false, line: number });
        }
        ["route", src, dst, ref switches @ ..] if !switches.is_empty() => {
            let switches = switches.iter().map(|name| names.find(name)).collect::<Result<_, _>>()?;
            let (src, dst) = (names.find(src)?, names.find(dst)?);
            names.description.routes.push(RouteLine { src, dst, switches, line: number });
        }
        _ => {
            return Err(FileProblem::Syntax(
                "expected node NAME, switch NAME, link A B [bandwidth=RATE] [latency=TIME] [cables=N], or route A B SWITCHES"
                    .into(),
            ));
        }
    }
    Ok(())
}
