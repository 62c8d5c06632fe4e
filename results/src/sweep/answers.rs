//! What follows from the points of a sweep: which is best, from which value on more gains nothing, and how large a difference must be to
//! mean anything.

use super::{Point, Prices, Sweep};
use std::collections::{BTreeMap, HashMap};

/// Gains up to this share of the run time count as none.
const NOTHING: f64 = 0.01;
/// Sentences about one option.
const MOST_CASES: usize = 4;
/// The option that only changes what is random.
const SEED: &str = "seed";

/// A point without its seed: the other options, in the order of the sweep.
type Case = Vec<String>;

/// The run times of the seeds of a case.
#[derive(Clone, Debug, Default)]
struct Times {
    sum: f64,
    count: u32,
    min: f64,
    max: f64,
    cost: Option<f64>,
}

impl Times {
    fn add(&mut self, time: f64, cost: Option<f64>) {
        (self.min, self.max) = match self.count {
            0 => (time, time),
            _ => (self.min.min(time), self.max.max(time)),
        };
        (self.sum, self.count, self.cost) = (self.sum + time, self.count + 1, cost);
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.count.max(1))
    }

    /// How far the seeds are apart.
    fn spread(&self) -> f64 {
        if self.mean() > 0.0 { (self.max - self.min) / self.mean() } else { 0.0 }
    }
}

impl Sweep {
    /// Adds what the networks cost, and what follows from the points.
    pub fn answered(mut self, prices: Option<Prices>) -> Self {
        self.prices = prices;
        for point in &mut self.points {
            point.cost = prices.zip(point.report.as_ref()).map(|(prices, report)| prices.of(&report.network));
        }
        self.answers = self.answers();
        self
    }

    /// Sentences about the points that have a result.
    fn answers(&self) -> Vec<String> {
        let options: Vec<&String> = self.options.iter().filter(|option| *option != SEED).collect();
        let case = |point: &Point| -> Case {
            options.iter().map(|&option| point.settings[option].clone()).collect()
        };
        // In the order of the sweep.
        let mut order: Vec<Case> = Vec::new();
        let mut times: HashMap<Case, Times> = HashMap::new();
        for point in &self.points {
            let Some(report) = &point.report else { continue };
            let case = case(point);
            if !times.contains_key(&case) {
                order.push(case.clone());
            }
            times.entry(case).or_default().add(report.runtime_ps as f64, point.cost);
        }
        let mut answers = Vec::new();
        let spread = times.values().map(Times::spread).fold(0.0, f64::max);
        let seeds = times.values().map(|times| times.count).max().unwrap_or(0);
        // Differences up to this mean nothing.
        let nothing = NOTHING.max(spread);
        if seeds > 1 {
            answers.push(format!(
                "{seeds} seeds: the run times of one setting differ by up to {}; differences below that mean nothing",
                percent(spread)
            ));
        }
        let named = |case: &Case| {
            let values = options.iter().zip(case).map(|(option, value)| format!("{option}={value}"));
            values.collect::<Vec<_>>().join(" ")
        };
        let best = order.iter().min_by(|one, other| times[*one].mean().total_cmp(&times[*other].mean()));
        let Some(best) = best.filter(|_| order.len() > 1) else { return answers };
        let least = times[best].mean();
        answers.push(format!("fastest: {}", named(best)));
        let alike: Vec<&Case> = order
            .iter()
            .filter(|case| *case != best && times[*case].mean() <= least * (1.0 + nothing))
            .collect();
        if !alike.is_empty() {
            let shown: Vec<String> = alike.iter().take(MOST_CASES).map(|case| named(case)).collect();
            let more = match alike.len() - shown.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            answers.push(format!("not slower by more than {}: {}{more}", percent(nothing), shown.join("; ")));
        }
        let costs: Vec<(&Case, f64)> =
            alike.iter().chain([&best]).filter_map(|&case| Some((case, times[case].cost?))).collect();
        let cheapest = costs.iter().copied().min_by(|one, other| one.1.total_cmp(&other.1));
        // Among one, or several of one price, none is the cheapest.
        if let Some((case, cost)) = cheapest
            && costs.iter().any(|&(_, other)| other > cost)
        {
            answers.push(format!("the cheapest of these {}: {} ({cost:.0})", costs.len(), named(case)));
        }
        for (at, option) in options.iter().enumerate() {
            answers.extend(suffices(at, option, &order, &times, nothing, &named));
        }
        answers
    }
}

/// From which value of an ordered option on more gains nothing, for each combination of the others.
fn suffices(
    at: usize,
    option: &str,
    order: &[Case],
    times: &HashMap<Case, Times>,
    nothing: f64,
    named: &dyn Fn(&Case) -> String,
) -> Vec<String> {
    let mut groups: BTreeMap<Case, Vec<&Case>> = BTreeMap::new();
    for case in order {
        let mut others = case.clone();
        others.remove(at);
        groups.entry(others).or_default().push(case);
    }
    let is_quantity = |case: &Case| case[at].starts_with(|first: char| first.is_ascii_digit());
    if !order.iter().all(is_quantity) {
        return Vec::new();
    }
    let mut answers = Vec::new();
    for cases in groups.values().filter(|cases| cases.len() > 1) {
        let gain = |from: &Case, to: &Case| 1.0 - times[to].mean() / times[from].mean().max(1.0);
        let most_gain =
            |from: usize| cases[from + 1..].iter().map(|to| gain(cases[from], to)).fold(0.0, f64::max);
        let enough = (0..cases.len() - 1).find(|&from| most_gain(from) < nothing);
        let (mut rest, last) = ((*cases[0]).clone(), cases[cases.len() - 1]);
        rest.remove(at);
        answers.push(match enough {
            Some(from) => format!(
                "{} suffices: {option} up to {} gains {}",
                named(cases[from]),
                last[at],
                match most_gain(from) {
                    0.0 => "nothing".to_owned(),
                    gain => format!("{} at most", percent(gain)),
                }
            ),
            None => {
                let before = cases[cases.len() - 2];
                format!(
                    "{}: the last step of {option}, from {}, still gains {}",
                    named(last),
                    before[at],
                    percent(gain(before, last))
                )
            }
        });
    }
    let left_out = answers.len().saturating_sub(MOST_CASES);
    answers.truncate(MOST_CASES);
    if left_out > 0 {
        answers.push(format!("and so for {left_out} more combinations of the other options"));
    }
    answers
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
