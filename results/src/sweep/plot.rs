//! The run times of a sweep as a picture.

use super::{Point, Sweep};
use plotters::coord::ranged1d::{IntoSegmentedCoord, SegmentValue};
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;

/// Curves in a picture, at most: a legend of more would hide them.
const MOST_CURVES: usize = 24;

/// Its size.
const PIXELS: (u32, u32) = (960, 640);

/// A time in the unit of the axis.
fn unit(most: f64) -> (f64, &'static str) {
    match most {
        1e12.. => (1e12, "s"),
        1e9.. => (1e9, "ms"),
        1e6.. => (1e6, "µs"),
        _ => (1e3, "ns"),
    }
}

impl Sweep {
    /// An SVG of run times: along it the values of the option that has most, in the order of the sweep; a line for each combination of the
    /// others (of at most 24), without the seed, of which it shows the mean and the range.
    ///
    /// # Errors
    /// No point has a result.
    pub fn plot(&self) -> Result<String, Box<dyn Error>> {
        let seedless = || self.options.iter().filter(|option| *option != "seed");
        let values = |option: &String| {
            let mut seen: Vec<&str> = Vec::new();
            for point in &self.points {
                let value = point.settings[option].as_str();
                if !seen.contains(&value) {
                    seen.push(value);
                }
            }
            seen
        };
        let along = seedless().max_by_key(|option| values(option).len()).or(self.options.first());
        let along = along.ok_or("a sweep without options")?;
        let places = values(along);
        let mut curves: BTreeMap<usize, (String, BTreeMap<usize, Vec<f64>>)> = BTreeMap::new();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let name = |point: &Point| {
            let others = seedless().filter(|option| *option != along);
            others.map(|option| format!("{option}={}", point.settings[option])).collect::<Vec<_>>().join(" ")
        };
        for point in &self.points {
            let Some(report) = &point.report else { continue };
            let name = name(point);
            let next = numbers.len();
            let number = *numbers.entry(name.clone()).or_insert(next);
            let place = places.iter().position(|value| *value == point.settings[along]).unwrap_or(0);
            let curve = curves.entry(number).or_insert_with(|| (name, BTreeMap::new()));
            curve.1.entry(place).or_default().push(report.runtime_ps as f64);
        }
        let left_out = curves.len().saturating_sub(MOST_CURVES);
        let times = || curves.values().flat_map(|(_, times)| times.values().flatten().copied());
        let most = times().fold(f64::NAN, f64::max);
        if most.is_nan() {
            return Err("no point has a result".into());
        }
        let (scale, unit) = unit(most);
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, PIXELS).into_drawing_area();
            area.fill(&WHITE)?;
            let mut chart = ChartBuilder::on(&area)
                .margin(16)
                .x_label_area_size(48)
                .y_label_area_size(84)
                .build_cartesian_2d(
                    (0..places.len() - 1).into_segmented(),
                    0.0..(1.08 * most / scale).max(1e-9),
                )?;
            let more = match left_out {
                0 => String::new(),
                left_out => format!(" ({left_out} more curves are left out)"),
            };
            chart
                .configure_mesh()
                .x_desc(format!("{along}{more}"))
                .y_desc(format!("run time, {unit}"))
                .x_labels(places.len())
                .x_label_formatter(&|place| match place {
                    SegmentValue::CenterOf(place) => places.get(*place).copied().unwrap_or("").to_owned(),
                    SegmentValue::Exact(_) | SegmentValue::Last => String::new(),
                })
                .draw()?;
            for (index, (name, times)) in curves.values().take(MOST_CURVES).enumerate() {
                let colour = Palette99::pick(index).to_rgba();
                let mean = |times: &Vec<f64>| times.iter().sum::<f64>() / times.len() as f64 / scale;
                let line = times.iter().map(|(&place, times)| (SegmentValue::CenterOf(place), mean(times)));
                let series = chart.draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))?;
                if !name.is_empty() {
                    series.label(name).legend(move |(x, y)| {
                        PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                    });
                }
                chart.draw_series(line.map(|at| Circle::new(at, 3, colour.filled())))?;
                let seeds = times.iter().filter(|(_, times)| times.len() > 1).map(|(&place, times)| {
                    let [low, high] = [f64::min, f64::max]
                        .map(|of| times.iter().copied().reduce(of).unwrap_or_default() / scale);
                    let place = SegmentValue::CenterOf(place);
                    ErrorBar::new_vertical(place, low, mean(times), high, colour.filled(), 7)
                });
                chart.draw_series(seeds)?;
            }
            if curves.values().any(|(name, _)| !name.is_empty()) {
                chart
                    .configure_series_labels()
                    .position(SeriesLabelPosition::UpperRight)
                    .background_style(WHITE.mix(0.85))
                    .border_style(BLACK)
                    .draw()?;
            }
            area.present()?;
        }
        Ok(vef_format::units::xml_text(svg))
    }
}
