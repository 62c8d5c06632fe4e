//! Draws a topology as SVG: trees in rows; tori, meshes and HyperX in planes; dragonflies as groups on a
//! ring; networks from files on a ring. With a report, the colour of a cable shows the utilisation of its
//! busier direction.
//!
//! Trees show nodes. Other topologies show only switches, filled with the colour of their nodes' busiest
//! link.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::report::Report;
use crate::topology::{Drawing, Fabric, LinkId, Vertex};

/// Most cables of a drawing; a larger one is unreadable, and slow to open.
pub const MOST_CABLES: usize = 20_000;

/// The network has more than [`MOST_CABLES`] cables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cables} cables are too many to draw; at most {MOST_CABLES} are possible")]
pub struct TooManyCables {
    /// Its number of cables.
    pub cables: usize,
}

/// The links between two vertices.
#[derive(Default)]
struct Cable {
    links: Vec<LinkId>,
}

/// Margin of the drawing.
const MARGIN: f64 = 40.0;
/// Distance of neighbouring vertices.
const STEP: f64 = Drawing::STEP;

/// Draws a topology. With a report that has [`Observe::links`](crate::Observe), links are coloured by
/// utilisation.
///
/// # Errors
/// The topology has more than [`MOST_CABLES`] cables.
pub fn svg(topology: &Fabric, report: Option<&Report>) -> Result<String, TooManyCables> {
    let drawing = topology.topology().drawing(topology.wiring());
    let mut cables: BTreeMap<(Vertex, Vertex), Cable> = BTreeMap::new();
    let mut of_nodes: BTreeMap<u32, Vec<LinkId>> = BTreeMap::new();
    for link in (0..topology.links()).map(LinkId) {
        let Some((from, to)) = topology.ends(link) else { continue };
        match (from, to) {
            (node @ Vertex::Node(_), Vertex::Switch(switch))
            | (Vertex::Switch(switch), node @ Vertex::Node(_))
                if !drawing.places.contains_key(&node) =>
            {
                of_nodes.entry(switch).or_default().push(link);
            }
            _ => cables.entry((from.min(to), from.max(to))).or_default().links.push(link),
        }
    }
    if cables.len() > MOST_CABLES {
        return Err(TooManyCables { cables: cables.len() });
    }
    let used: BTreeMap<u32, f64> = report
        .and_then(|report| report.links.all.as_ref())
        .map(|links| links.iter().map(|link| (link.number, link.utilisation)).collect())
        .unwrap_or_default();
    let (mut width, mut height) = (0f64, 0f64);
    for &(x, y) in drawing.places.values() {
        (width, height) = (width.max(x), height.max(y));
    }
    let (width, height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN + 30.0);
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = draw(&mut out, topology, report, &cables, &of_nodes, &used, &drawing, (width, height));
    Ok(out)
}

/// The colour of the highest utilisation of `links`.
fn colour(used: &BTreeMap<u32, f64>, links: &[LinkId], shown: bool) -> String {
    if !shown {
        return "#888888".to_owned();
    }
    let most = links.iter().filter_map(|link| used.get(&link.0)).fold(0f64, |most, share| most.max(*share));
    // From grey over blue to red, in steps of lightness that colour-blind readers can distinguish.
    let stops = [(0.0, [200, 200, 205]), (0.25, [94, 160, 200]), (0.6, [225, 165, 40]), (1.0, [165, 20, 20])];
    let share = most.clamp(0.0, 1.0);
    let at = stops.iter().position(|(stop, _)| share <= *stop).unwrap_or(stops.len() - 1).max(1);
    let ((from, a), (to, b)) = (stops[at - 1], stops[at]);
    let part = (share - from) / (to - from);
    let mix = |n: usize| (f64::from(a[n]) + part * (f64::from(b[n]) - f64::from(a[n]))).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

/// Escapes text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The tooltip of links: names and, with a report, utilisations.
fn words(topology: &Fabric, used: &BTreeMap<u32, f64>, links: &[LinkId], shown: bool) -> String {
    let one = |link: &LinkId| {
        let name = escaped(&topology.link_name(*link));
        match shown {
            true => format!("{name} {:.1} %", 100.0 * used.get(&link.0).copied().unwrap_or(0.0)),
            false => name,
        }
    };
    links.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[expect(clippy::too_many_arguments, reason = "the parts of one picture")]
fn draw(
    out: &mut String,
    topology: &Fabric,
    report: Option<&Report>,
    cables: &BTreeMap<(Vertex, Vertex), Cable>,
    of_nodes: &BTreeMap<u32, Vec<LinkId>>,
    used: &BTreeMap<u32, f64>,
    Drawing { places, straight }: &Drawing,
    (width, height): (f64, f64),
) -> std::fmt::Result {
    let shown = report.is_some();
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    )?;
    let place = |vertex: &Vertex| {
        let (x, y) = places.get(vertex).copied().unwrap_or_default();
        (x + MARGIN, y + MARGIN)
    };
    let title = match report {
        Some(report) => {
            let network = &report.network;
            format!(
                "{}, {}, {}: run time {}",
                network.topology, network.model, network.routing, report.runtime_ps
            )
        }
        None => format!(
            "{} nodes, {} switches, {} cables",
            topology.nodes(),
            topology.switches(),
            topology.links() / 2
        ),
    };
    writeln!(out, "<text x=\"{MARGIN}\" y=\"22\">{}</text>", escaped(&title))?;
    for ((from, to), cable) in cables {
        let ((x1, y1), (x2, y2)) = (place(from), place(to));
        let (length, count) = ((x2 - x1).hypot(y2 - y1), cable.links.len() / 2);
        // Draw long cables as arcs, clear of the vertices between their ends.
        let bow = if length > 1.5 * STEP * 2.0 && !straight { 0.12 } else { 0.0 };
        let (cx, cy) = ((x1 + x2) / 2.0 - bow * (y2 - y1), (y1 + y2) / 2.0 + bow * (x2 - x1));
        writeln!(
            out,
            "<path d=\"M{x1:.1} {y1:.1}Q{cx:.1} {cy:.1} {x2:.1} {y2:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"><title>{}</title></path>",
            colour(used, &cable.links, shown),
            if count > 1 { 2.5 } else { 1.4 },
            words(topology, used, &cable.links, shown)
        )?;
    }
    for vertex in places.keys() {
        let (x, y) = place(vertex);
        let name = escaped(&topology.vertex_name(*vertex));
        match vertex {
            Vertex::Node(_) => {
                writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"#555\"><title>{name}</title></circle>"
                )?;
            }
            Vertex::Switch(switch) => {
                let links = of_nodes.get(switch).map_or(&[][..], Vec::as_slice);
                let (fill, said) = match links {
                    [] => ("#ffffff".to_owned(), String::new()),
                    links => {
                        (colour(used, links, shown), format!("\n{}", words(topology, used, links, shown)))
                    }
                };
                writeln!(
                    out,
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{fill}\" stroke=\"#222\"><title>{name}{said}</title></rect>",
                    x - 5.0,
                    y - 5.0
                )?;
            }
        }
    }
    if shown {
        writeln!(
            out,
            "<text x=\"{MARGIN}\" y=\"{:.1}\">utilisation of a cable's busier direction:</text>",
            height - 12.0
        )?;
        for (n, share) in [0.0, 0.25, 0.5, 0.75, 1.0].into_iter().enumerate() {
            let x = MARGIN + 235.0 + 60.0 * n as f64;
            let fill = colour(&BTreeMap::from([(0, share)]), &[LinkId(0)], true);
            writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"10\" fill=\"{fill}\"/><text x=\"{:.1}\" y=\"{:.1}\">{:.0} %</text>",
                height - 21.0,
                x + 18.0,
                height - 12.0,
                100.0 * share
            )?;
        }
    }
    writeln!(out, "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::tests::{build, specs};
    use proptest::prelude::*;

    /// Each switch and each cable is drawn once, at its own place, and the output is XML.
    fn check(text: &str) {
        let topology = build(text);
        let svg = svg(&topology, None).unwrap();
        let mut reader = quick_xml::Reader::from_str(&svg);
        let (mut cables, mut switches, mut nodes) = (0, 0, 0);
        loop {
            match reader.read_event().unwrap() {
                quick_xml::events::Event::Eof => break,
                quick_xml::events::Event::Start(tag) => match tag.name().as_ref() {
                    b"path" => cables += 1,
                    b"rect" => switches += 1,
                    b"circle" => nodes += 1,
                    _ => {}
                },
                _ => {}
            }
        }
        let mut ends: Vec<(Vertex, Vertex)> = (0..topology.links())
            .filter_map(|link| topology.ends(LinkId(link)))
            .map(|(from, to)| (from.min(to), from.max(to)))
            .filter(|(from, _)| nodes > 0 || matches!(from, Vertex::Switch(_)))
            .collect();
        ends.sort_unstable();
        ends.dedup();
        assert_eq!((cables, switches), (ends.len(), topology.switches() as usize), "{text}");
        let places = topology.topology().drawing(topology.wiring()).places;
        let mut found: Vec<(i64, i64)> =
            places.values().map(|(x, y)| ((x * 4.0) as i64, (y * 4.0) as i64)).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), places.len(), "{text}: two in one place");
    }

    #[test]
    fn all_kinds() {
        for text in [
            "switch:5",
            "fattree:4x4x2",
            "fattree:k=4",
            "torus:4x4x2",
            "mesh:3x5",
            "hyperx:3x4:2",
            "dragonfly:2x4x2",
        ] {
            check(text);
        }
        let large = build("torus:40x40x10");
        assert_eq!(svg(&large, None).unwrap_err().cables, 48_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(30))]
        #[test]
        fn any_topology(spec in specs()) {
            check(&spec);
        }
    }
}
