//! `vef traffic`: synthetic traffic on a network, from low load to saturation.

use crate::output::{self, Failure};
use crate::parallel;
use crate::progress::Bar;
use crate::repeated;
use crate::session::Watch;
use crate::simulation_args::Traffic;
pub use crate::simulation_args::Traffic as Arguments;
use results::table::TextStyle;
use results::traffic::{Batch, Load, TrafficSchema};
use sim_example::topology::TopologySpec;
use sim_example::traffic::{run_batch, run_traffic};
use sim_example::{NetworkSettings, Picos, SimError};
use vef_format::units::{Count, Grouped};

pub fn run(traffic: &Traffic) -> Result<(), Failure> {
    traffic.network.all_have_effect()?;
    if matches!(traffic.network.settings.topology, TopologySpec::Auto) {
        return Err("--topology: name the network, such as fattree:4x4x2 or torus:8x8; no trace says how many nodes it has".into());
    }
    let network = &traffic.network.settings;
    let settings = sim_example::traffic::Traffic { seed: network.seed, ..traffic.traffic.clone() };
    let bar = Bar::new("simulating");
    let seeds = u64::from(traffic.seeds.unwrap_or(1));
    let run = |loads: &[f64], count: &mut (dyn FnMut(u64) + Send)| -> Result<Vec<Load>, SimError> {
        let all = |&load: &f64| (0..seeds).map(move |n| (load, network.seed.wrapping_add(n)));
        let runs: Vec<(f64, u64)> = loads.iter().flat_map(all).collect();
        let one = |&(load, seed): &(f64, u64), _: &Watch| {
            let settings = sim_example::traffic::Traffic { seed, ..settings.clone() };
            run_traffic(&NetworkSettings { seed, ..network.clone() }, &settings, load)
        };
        let mut finished = 0;
        let found = parallel::map(&runs, traffic.jobs, one, |_, _| {
            finished += 1;
            count(finished);
        });
        let found: Vec<Load> = found.into_iter().collect::<Result<_, SimError>>()?;
        match traffic.seeds {
            None => Ok(found),
            Some(seeds) => Ok(found
                .chunks(seeds as usize)
                .filter_map(|of_load| Load::over_seeds(of_load.to_vec()))
                .collect()),
        }
    };
    let batch = traffic.batch.map(|messages| run_batch(network, &settings, messages)).transpose()?;
    let mut points = match traffic.saturation {
        Some(step) => saturation(step, |load| run(&[load], &mut |_| ()), &bar)?,
        None if batch.is_some() => Vec::new(),
        None => {
            let loads = loads(&traffic.load)?;
            run(&loads, &mut |finished| bar.set(finished, loads.len() as u64 * seeds))?
        }
    };
    drop(bar);
    all_above_are_saturated(&mut points);
    // Where the most load marks nothing, none does.
    let congested = batch.iter().filter_map(|batch| batch.congestion.as_ref());
    let mut congested = congested.chain(points.iter().rev().filter_map(|point| point.congestion.as_ref()));
    if let Some(warning) = congested.next().and_then(|congestion| network.nothing_marked(congestion)) {
        output::remark(warning);
    }
    if settings.pattern.rates_are_equal()
        && let Some(most) = points.iter().max_by(|one, other| one.load.total_cmp(&other.load))
        && let Some(warning) = network.unfair(most)
    {
        output::remark(warning);
    }
    let result = results::traffic::Traffic {
        schema: TrafficSchema::default(),
        topology: network.topology.to_string(),
        routing: network.routing.to_string(),
        model: network.model.to_string(),
        pattern: settings.pattern.to_string(),
        settings: repeated::settings::<Traffic>()?,
        points,
        batch,
    };
    match (traffic.json, traffic.csv) {
        (true, _) => output::json(&result),
        (_, true) => output::result(result.table().to_csv().trim_end()),
        _ => output::result(text(&result)),
    }
}

/// The loads that find the smallest one that saturates, to within `step`, in ascending order.
fn saturation(
    step: f64,
    run: impl Fn(f64) -> Result<Vec<Load>, SimError>,
    bar: &Bar,
) -> Result<Vec<Load>, SimError> {
    let steps = (1.0 / step).ceil();
    let (mut stable, mut saturated) = (0.0, steps);
    let mut points = run(1.0)?;
    let all = steps.log2().ceil() as u64 + 1;
    while points[0].saturated && saturated - stable > 1.0 {
        bar.set(points.len() as u64, all);
        let between = ((stable + saturated) / 2.0_f64).floor();
        let point = run(between / steps)?;
        let is_saturated = point.iter().any(|point| point.saturated);
        *(if is_saturated { &mut saturated } else { &mut stable }) = between;
        points.extend(point);
    }
    points.sort_by(|one, other| one.load.total_cmp(&other.load));
    Ok(points)
}

/// A network that cannot carry a load cannot carry more, though its queues may grow too slowly there to show it.
fn all_above_are_saturated(points: &mut [Load]) {
    let saturated = points.iter().filter(|point| point.saturated).map(|point| point.load);
    let first = saturated.fold(f64::INFINITY, f64::min);
    points.iter_mut().for_each(|point| point.saturated = point.load >= first);
}

/// `FROM:TO:STEP`, or a list.
fn loads(text: &str) -> Result<Vec<f64>, Failure> {
    const MOST: f64 = 10_000.0;
    let wrong = |what: &str| format!("--load {text:?}: {what}");
    let shares = "write shares above 0 and up to 1, as FROM:TO:STEP or 0.1,0.5";
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|load| *load > 0.0 && *load <= 1.0);
    let found = match text.split(':').collect::<Vec<_>>()[..] {
        [from, to, step] => match [from, to, step].map(number) {
            [Some(from), Some(to), Some(_)] if from > to => {
                return Err(wrong(&format!("FROM:TO:STEP goes up, but {from} is more than {to}")).into());
            }
            [Some(from), Some(to), Some(step)] => {
                // Tolerance for floating point: three times 0.1 is not 0.3.
                let steps = ((to - from) / step + 1e-9).floor();
                if steps >= MOST {
                    return Err(wrong(&format!("more than {} loads", Grouped(MOST as u64))).into());
                }
                let load = |n: u32| ((from + f64::from(n) * step) * 1e9).round() / 1e9;
                Some((0..=steps as u32).map(load).collect())
            }
            _ => None,
        },
        _ => text.split(',').map(number).collect(),
    };
    found.ok_or_else(|| wrong(shares).into())
}

fn text(result: &results::traffic::Traffic) -> String {
    let results::traffic::Traffic { topology, routing, model, pattern, points, .. } = result;
    if let Some(Batch { messages, runtime_ps, first_node_ps, throughput, latency, congestion, .. }) =
        &result.batch
    {
        let congestion = congestion.as_ref().map_or(String::new(), |all| format!("\ncongestion: {all}"));
        let [last, first, mean] = [*runtime_ps, *first_node_ps, latency.mean_ps].map(Picos);
        return format!(
            "{pattern} traffic on {topology}, {routing}, {model}\n{} a node arrived within {last}, of the first node within {first}; \
             throughput {throughput:.4}, latency mean {mean}, p99 {}{congestion}",
            Count(*messages, "message"),
            Picos(latency.p99_ps)
        );
    }
    let table = result.table().to_text(&TextStyle::WHOLE);
    let stable =
        points.iter().filter(|point| !point.saturated).map(|point| point.load).max_by(f64::total_cmp);
    let most = points.iter().max_by(|a, b| a.accepted.total_cmp(&b.accepted));
    let summary = match (stable, points.iter().any(|point| point.saturated), most) {
        (None, _, _) => "saturated at every load".to_owned(),
        (Some(load), false, _) => format!("not saturated at load {load}"),
        (Some(load), true, most) => format!(
            "stable up to load {load}; accepts {:.4} at most (worst node {:.4})",
            most.map_or(0.0, |point| point.accepted),
            most.map_or(0.0, |point| point.accepted_worst)
        ),
    };
    format!("{pattern} traffic on {topology}, {routing}, {model}\n{table}{summary}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_ranges_and_lists() {
        assert_eq!(loads("0.1:0.5:0.2").unwrap(), [0.1, 0.3, 0.5]);
        assert_eq!(loads("0.1:1:0.1").unwrap().len(), 10);
        assert_eq!(loads("0.1:1:0.1").unwrap()[2], 0.3);
        assert_eq!(loads("0.5, 1").unwrap(), [0.5, 1.0]);
        assert_eq!(loads("0.25").unwrap(), [0.25]);
        for text in ["", "0", "1.1", "0.1:0.5", "0.1:0.9:0", "x", "-0.1", "nan", "0.1,,0.2"] {
            assert!(loads(text).unwrap_err().to_string().contains("write shares"), "{text}");
        }
        for (text, why) in [
            ("0.5:0.1:0.1", "--load \"0.5:0.1:0.1\": FROM:TO:STEP goes up, but 0.5 is more than 0.1"),
            ("0.1:1:1e-9", "--load \"0.1:1:1e-9\": more than 10 000 loads"),
        ] {
            assert_eq!(loads(text).unwrap_err().to_string(), why);
        }
    }
}
