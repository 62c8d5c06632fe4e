//! Pictures: times by size, measured with their intervals beside simulated ones; the messages of a schedule as a graph.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use collectives::{Choice, Cursor, Member, Operation, Sizes, Step};
use plotters::prelude::*;

use crate::check::ComparedCell;
use crate::error::{Error, Result};
use crate::results::{MergedRow, Report, merge};

/// A curve: an operation by an algorithm on so many ranks.
#[derive(Clone, Debug, Default, PartialEq)]
struct Curve {
    /// Bytes, low, middle and high time in µs.
    measured: Vec<(f64, [f64; 3])>,
    /// Bytes and time in µs.
    simulated: Vec<(f64, f64)>,
}

/// An SVG with logarithmic axes: measured medians with their intervals (over launches if there are several, else the quarter of
/// the samples on either side of the median), and what was simulated for the same calls, if anything, as dashed lines.
///
/// # Errors
/// There is nothing to draw.
pub fn times(reports: &[Report], cells: &[ComparedCell]) -> Result<String> {
    let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
    let name = |operation: &str, algorithm: &str, ranks: u32| match algorithm {
        "mpi" | "-" => format!("{operation}, {ranks} ranks"),
        _ => format!("{operation} {algorithm}, {ranks} ranks"),
    };
    for row in merge(reports, 0.95) {
        let MergedRow { operation, algorithm, ranks, bytes, over_launches, .. } = &row;
        let [low, high] = match over_launches.interval {
            Some(interval) => [interval.low, interval.high],
            None => {
                let mut samples: Vec<f64> = reports
                    .iter()
                    .flat_map(|report| &report.rows)
                    .filter(|one| {
                        (&one.operation, &one.algorithm, one.ranks, one.bytes)
                            == (operation, algorithm, *ranks, *bytes)
                    })
                    .flat_map(|one| one.samples_ns.iter().copied())
                    .collect();
                samples.sort_by(f64::total_cmp);
                [0.25, 0.75].map(|q| crate::stats::quantile(&samples, q))
            }
        };
        let middle = over_launches.median;
        let times = [low.min(middle), middle, high.max(middle)].map(|ns| (ns / 1e3).max(1e-3));
        let curve = curves.entry(name(operation, algorithm, *ranks)).or_default();
        curve.measured.push((bytes.max(&1).to_owned() as f64, times));
    }
    for cell in cells {
        let curve = curves.entry(name(&cell.operation, &cell.algorithm, cell.ranks)).or_default();
        curve.simulated.push((cell.bytes.max(1) as f64, (cell.simulated_ns / 1e3).max(1e-3)));
    }
    draw(&curves).map_err(|error| Error::Invalid(format!("plot: {error}")))
}

fn draw(curves: &BTreeMap<String, Curve>) -> std::result::Result<String, Box<dyn std::error::Error>> {
    let points = || {
        curves.values().flat_map(|curve| {
            let bars = curve.measured.iter().flat_map(|(x, times)| times.map(|y| (*x, y)));
            bars.chain(curve.simulated.iter().copied())
        })
    };
    if points().next().is_none() {
        return Err("there is nothing to draw".into());
    }
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        (low / 1.5)..(high * 1.5)
    };
    let (x, y) = (range(&mut points().map(|p| p.0)), range(&mut points().map(|p| p.1)));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (960, 640)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(16)
            .x_label_area_size(48)
            .y_label_area_size(84)
            .build_cartesian_2d(x.log_scale(), y.log_scale())?;
        chart
            .configure_mesh()
            .x_desc("bytes")
            .y_desc("µs (bars: interval; dashed: simulated)")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y}"))
            .draw()?;
        for (index, (name, curve)) in curves.iter().enumerate() {
            let colour = Palette99::pick(index).to_rgba();
            let middle = curve.measured.iter().map(|(x, times)| (*x, times[1]));
            chart
                .draw_series(LineSeries::new(middle, colour.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            chart.draw_series(curve.measured.iter().map(|(x, [low, middle, high])| {
                ErrorBar::new_vertical(*x, *low, *middle, *high, colour.filled(), 7)
            }))?;
            chart.draw_series(DashedLineSeries::new(
                curve.simulated.iter().copied(),
                6,
                4,
                colour.stroke_width(2),
            ))?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK)
            .draw()?;
        area.present()?;
    }
    Ok(vef_format::units::xml_text(svg))
}

/// The messages of a schedule in Graphviz's language: an edge from sender to receiver with its place among the sender's messages and its
/// bytes.
///
/// # Errors
/// Where there is no such schedule.
pub fn schedule_dot(
    operation: Operation,
    choice: Choice,
    ranks: u32,
    root: u32,
    bytes: u64,
) -> Result<String> {
    let mut dot = String::new();
    let _ = writeln!(dot, "digraph \"{} {}\" {{", operation.key(), choice.algorithm);
    let _ = writeln!(dot, "  node [shape=circle];");
    if operation.is_rooted() {
        let _ = writeln!(dot, "  {root} [style=filled, fillcolor=lightgrey];");
    }
    for rank in 0..ranks {
        let member = Member { operation, ranks, rank, root, unit: 1 };
        let sizes = Sizes::Bytes(if operation == Operation::Barrier { 0 } else { bytes });
        let mut cursor = Cursor::new(member, choice, sizes)?;
        let mut number = 0;
        while let Some(step) = cursor.next(sizes) {
            if let Step::Send { to, data } = step {
                number += 1;
                let _ = writeln!(dot, "  {rank} -> {to} [label=\"{number}: {} B\"];", data.len);
            }
        }
    }
    dot += "}\n";
    Ok(dot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectives::Algorithm;

    #[test]
    fn a_binomial_tree_as_a_graph() {
        let dot = schedule_dot(Operation::Bcast, Choice::plain(Algorithm::Binomial), 4, 0, 100).unwrap();
        for edge in
            ["0 -> 2 [label=\"1: 100 B\"]", "0 -> 1 [label=\"2: 100 B\"]", "2 -> 3 [label=\"1: 100 B\"]"]
        {
            assert!(dot.contains(edge), "{edge} is not in\n{dot}");
        }
        assert_eq!(dot.matches("->").count(), 3);
    }

    #[test]
    fn simulated_times_are_drawn() {
        let cell = |bytes, simulated_ns| ComparedCell {
            operation: "bcast".into(),
            algorithm: "mpi".into(),
            ranks: 4,
            bytes,
            measured_ns: None,
            simulated_ns,
        };
        let svg = times(&[], &[cell(1024, 1e5), cell(4096, 4e5), cell(65_536, 8e6)]).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("bcast, 4 ranks") && svg.contains("bytes"));
        assert!(times(&[], &[]).is_err());
    }
}
