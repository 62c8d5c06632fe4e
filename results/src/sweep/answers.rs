//! What follows from the points of a sweep: which is best, from which value on more gains nothing, and how large a difference must be to
//! mean anything.

use super::seeds::{OverSeeds, SEED};
use super::{Point, Prices, Sweep};
use std::collections::{BTreeMap, HashMap};

/// Gains up to this share of the run time count as none.
const NOTHING: f64 = 0.01;
/// Sentences about one option, and combinations of given options with sentences of their own.
const MOST_CASES: usize = 4;
/// Options that say which run is simulated, and how: none of their values is better than another.
const GIVEN: [&str; 16] = [
    "trace",
    "iterations",
    "phase",
    "from",
    "to",
    "from-launch",
    "compute-scale",
    "compute-noise",
    "send-completion",
    "same-node",
    "start",
    "arrival-second",
    "repeat",
    "background",
    "op-codes",
    "model",
];

/// A point that has a result.
#[derive(Clone, Debug)]
struct Run<'a> {
    /// The value of each option, in the order of the sweep.
    values: Vec<&'a str>,
    time: f64,
    cost: Option<f64>,
}

impl<'a> Run<'a> {
    fn of(point: &'a Point, options: &[String]) -> Option<Self> {
        let time = point.time()? as f64;
        let values = options.iter().map(|option| point.settings[option].as_str()).collect();
        Some(Self { values, time, cost: point.cost })
    }
}

/// A point without its seed: the options that can be chosen, in the order of the sweep.
type Case = Vec<String>;

/// The run times of a case, by seed.
#[derive(Clone, Debug, Default)]
struct Times {
    by_seed: BTreeMap<String, f64>,
    cost: Option<f64>,
}

impl Times {
    fn mean(&self) -> f64 {
        self.by_seed.values().sum::<f64>() / self.by_seed.len().max(1) as f64
    }

    /// How far the seeds are apart.
    fn spread(&self) -> f64 {
        let (least, most) = self
            .by_seed
            .values()
            .fold((f64::INFINITY, 0.0f64), |(least, most), &time| (least.min(time), most.max(time)));
        if self.mean() > 0.0 { (most - least) / self.mean() } else { 0.0 }
    }

    /// By which share of these times those of `other` are less, in the mean of the seeds that both have; and whether that is so with each of them.
    fn mean_gain(&self, other: &Self) -> (f64, bool) {
        let of = |(seed, time): (&String, &f64)| Some(1.0 - other.by_seed.get(seed)? / time.max(1.0));
        let gains: Vec<f64> = self.by_seed.iter().filter_map(of).collect();
        (gains.iter().sum::<f64>() / gains.len().max(1) as f64, gains.iter().all(|&gain| gain > 0.0))
    }

    /// The same; 0 if it is not so with every seed.
    fn gain(&self, other: &Self) -> f64 {
        let (gain, with_each) = self.mean_gain(other);
        if with_each { gain } else { 0.0 }
    }
}

impl Sweep {
    /// Adds what the networks cost, and what follows from the points.
    pub fn answered(mut self, prices: Option<Prices>) -> Self {
        self.prices = prices;
        for point in &mut self.points {
            point.cost = prices.zip(point.report.as_ref()).map(|(prices, report)| prices.of(&report.network));
        }
        let runs: Vec<Run<'_>> =
            self.points.iter().filter_map(|point| Run::of(point, &self.options)).collect();
        self.answers = answers(&self.options, &runs);
        let time = |point: &'_ Point| Some(point.report.as_ref()?.runtime_ps);
        let times = self.points.iter().filter_map(|point| Some((&point.settings, time(point)?)));
        self.over_seeds = OverSeeds::of(times);
        self
    }
}

/// Sentences about the points that have a result.
fn answers(options: &[String], runs: &[Run<'_>]) -> Vec<String> {
    let seed = options.iter().position(|option| option == SEED);
    let is_given = |at: &usize| GIVEN.contains(&options[*at].as_str());
    let (given, chosen): (Vec<usize>, Vec<usize>) =
        (0..options.len()).filter(|&at| Some(at) != seed).partition(is_given);
    let values =
        |run: &Run<'_>, of: &[usize]| of.iter().map(|&at| run.values[at].to_owned()).collect::<Vec<_>>();
    let named = |of: &[usize], values: &[String]| {
        let values = of.iter().zip(values).map(|(&at, value)| format!("{}={value}", options[at]));
        values.collect::<Vec<_>>().join(" ")
    };
    let mut groups = Grouped::<Vec<String>, Vec<&Run<'_>>>::default();
    runs.iter().for_each(|run| groups.of(values(run, &given)).push(run));
    let (mut answers, mut spread, mut seeds) = (Vec::new(), 0.0f64, 0);
    let left_out = groups.order.len().saturating_sub(MOST_CASES);
    for (number, group) in groups.order.iter().enumerate() {
        let mut cases = Grouped::<Case, Times>::default();
        for run in &groups.by_key[group] {
            let times = cases.of(values(run, &chosen));
            let of_seed = seed.map_or(String::new(), |seed| run.values[seed].to_owned());
            times.by_seed.insert(of_seed, run.time);
            times.cost = run.cost;
        }
        for times in cases.by_key.values() {
            (spread, seeds) = (spread.max(times.spread()), seeds.max(times.by_seed.len()));
        }
        if number < MOST_CASES && !chosen.is_empty() {
            let name = |case: &Case| named(&chosen, case);
            let mut own = best(&cases, &name);
            for (at, &option) in chosen.iter().enumerate() {
                own.extend(suffices(at, &options[option], &cases, &name));
            }
            let of = if given.is_empty() { String::new() } else { named(&given, group) + ": " };
            answers.extend(own.into_iter().map(|answer| format!("{of}{answer}")));
        }
    }
    if left_out > 0 && !answers.is_empty() {
        answers.push(format!("and so for {left_out} more values of {}", list(options, &given)));
    }
    if seeds > 1 {
        answers.insert(
            0,
            format!(
                "{seeds} seeds: the run times of one setting differ by up to {}; settings are compared seed by seed, and a \
                 difference counts if every seed shows it",
                percent(spread)
            ),
        );
    }
    answers
}

fn list(options: &[String], of: &[usize]) -> String {
    of.iter().map(|&at| options[at].as_str()).collect::<Vec<_>>().join(", ")
}

/// Values by key, with the order in which the keys came.
#[derive(Debug)]
struct Grouped<K, V> {
    order: Vec<K>,
    by_key: HashMap<K, V>,
}

impl<K, V> Default for Grouped<K, V> {
    fn default() -> Self {
        Self { order: Vec::new(), by_key: HashMap::new() }
    }
}

impl<K: Clone + Eq + std::hash::Hash, V: Default> Grouped<K, V> {
    /// The value of a key.
    fn of(&mut self, key: K) -> &mut V {
        if !self.by_key.contains_key(&key) {
            self.order.push(key.clone());
        }
        self.by_key.entry(key).or_default()
    }
}

/// The fastest case, those that are as fast, and the cheapest of these.
fn best(cases: &Grouped<Case, Times>, named: &dyn Fn(&Case) -> String) -> Vec<String> {
    let Grouped { order, by_key: times } = cases;
    let best = order.iter().min_by(|one, other| times[*one].mean().total_cmp(&times[*other].mean()));
    let Some(best) = best.filter(|_| order.len() > 1) else { return Vec::new() };
    let mut answers = vec![format!("fastest: {}", named(best))];
    let (mut alike, mut unclear) = (Vec::new(), Vec::new());
    for case in order.iter().filter(|case| *case != best) {
        match times[case].mean_gain(&times[best]) {
            (gain, _) if gain <= NOTHING => alike.push(case),
            (_, true) => {}
            (_, false) => unclear.push(case),
        }
    }
    let mut answer = |what: String, cases: &[&Case]| {
        let shown: Vec<String> = cases.iter().take(MOST_CASES).map(|case| named(case)).collect();
        let more = match cases.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if !cases.is_empty() {
            answers.push(format!("{what}: {}{more}", shown.join("; ")));
        }
    };
    answer(format!("not slower by more than {}", percent(NOTHING)), &alike);
    answer("slower in the mean, but not with every seed".to_owned(), &unclear);
    let costs: Vec<(&Case, f64)> =
        [best].into_iter().chain(alike).filter_map(|case| Some((case, times[case].cost?))).collect();
    // Of those that cost the same, the first: the fastest before the others.
    let cheapest = costs.iter().copied().min_by(|(_, one), (_, other)| one.total_cmp(other));
    // Among one, or several of one price, none is the cheapest.
    if let Some((case, cost)) = cheapest
        && costs.iter().any(|&(_, other)| other > cost)
    {
        answers.push(format!("the cheapest of these {}: {} ({cost:.0})", costs.len(), named(case)));
    }
    answers
}

/// From which value of an option on a more demanding one gains nothing, for each combination of the others. More of a bandwidth, a
/// size or a number is more demanding, and less of a time.
fn suffices(
    at: usize,
    option: &str,
    cases: &Grouped<Case, Times>,
    named: &dyn Fn(&Case) -> String,
) -> Vec<String> {
    let Grouped { order, by_key: times } = cases;
    let mut groups: BTreeMap<Case, Vec<&Case>> = BTreeMap::new();
    for case in order {
        let mut others = case.clone();
        others.remove(at);
        groups.entry(others).or_default().push(case);
    }
    let quantities: Vec<Option<Quantity>> = order.iter().map(|case| Quantity::of(&case[at])).collect();
    let times_among =
        quantities.iter().flatten().filter(|quantity| matches!(quantity, Quantity::Time(_))).count();
    if quantities.contains(&None) || ![0, order.len()].contains(&times_among) {
        return Vec::new();
    }
    let towards = if times_among > 0 { "down to" } else { "up to" };
    for cases in groups.values_mut() {
        let demand = |case: &Case| Quantity::of(&case[at]).map_or(0.0, Quantity::demand);
        cases.sort_by(|one, other| demand(one).total_cmp(&demand(other)));
    }
    let has_seeds = times.values().any(|times| times.by_seed.len() > 1);
    let shown = if has_seeds { " that every seed shows" } else { "" };
    let mut answers = Vec::new();
    for cases in groups.values().filter(|cases| cases.len() > 1) {
        let gain = |from: &Case, to: &Case| times[from].gain(&times[to]);
        let most_gain =
            |from: usize| cases[from + 1..].iter().map(|to| gain(cases[from], to)).fold(0.0, f64::max);
        let enough = (0..cases.len() - 1).find(|&from| most_gain(from) < NOTHING);
        let (mut rest, last) = ((*cases[0]).clone(), cases[cases.len() - 1]);
        rest.remove(at);
        answers.push(match enough {
            Some(from) => format!(
                "{} suffices: {option} {towards} {} gains {}",
                named(cases[from]),
                last[at],
                match most_gain(from) {
                    0.0 => format!("nothing{shown}"),
                    gain => format!("{} at most{shown}", percent(gain)),
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

/// What a swept value is a quantity of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    /// Seconds.
    Time(f64),
    /// Bits or bytes, a second or not, or a number.
    Amount(f64),
}

impl Quantity {
    /// Reads a value such as `1.5us`, `100Gbit/s`, `64KiB` or `8`.
    fn of(value: &str) -> Option<Self> {
        let end = value.find(|digit: char| !digit.is_ascii_digit() && digit != '.').unwrap_or(value.len());
        let (number, unit) = (value[..end].parse::<f64>().ok()?, value[end..].trim());
        let times =
            [("ps", 1e-12), ("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1.0)];
        if let Some((_, scale)) = times.into_iter().find(|&(name, _)| name == unit) {
            return Some(Self::Time(number * scale));
        }
        let mut rest = unit.chars().peekable();
        let power = rest.peek().and_then(|prefix| "kmgt".find(prefix.to_ascii_lowercase()));
        if power.is_some() {
            rest.next();
        }
        let base: f64 = if rest.next_if_eq(&'i').is_some() { 1024.0 } else { 1000.0 };
        let rest: String = rest.collect();
        let bits = match &rest[..] {
            "" | "bit/s" | "Bit/s" | "b/s" | "bps" | "B" => 1.0,
            "B/s" | "Bps" => 8.0,
            _ => return None,
        };
        Some(Self::Amount(number * bits * power.map_or(1.0, |power| base.powi(power as i32 + 1))))
    }

    /// Grows with what is asked of a network.
    fn demand(self) -> f64 {
        match self {
            Self::Time(seconds) => -seconds,
            Self::Amount(amount) => amount,
        }
    }
}

fn percent(share: f64) -> String {
    // A sum with 0.0 is not -0.0.
    format!("{:.1} %", (1000.0 * share).round() / 10.0 + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of a point, its run time and cost.
    type Told = (&'static [&'static str], f64, f64);

    fn told(options: &[&str], points: &[Told]) -> Vec<String> {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let run = |&(values, time, cost): &Told| Run {
            values: values.to_vec(),
            time,
            cost: (cost > 0.0).then_some(cost),
        };
        let runs: Vec<Run<'_>> = points.iter().map(run).collect();
        answers(&options, &runs)
    }

    #[test]
    fn what_says_which_run_is_simulated_is_no_choice() {
        for option in ["trace", "iterations", "model", "compute-scale", "arrival-second"] {
            assert_eq!(told(&[option], &[(&["10-20"], 9.0, 0.0), (&["30"], 2.0, 0.0)]), [""; 0], "{option}");
        }
        let points: [Told; 4] = [
            (&["a.vefx", "1G"], 90.0, 0.0),
            (&["a.vefx", "10G"], 80.0, 0.0),
            (&["b.vefx", "1G"], 20.0, 0.0),
            (&["b.vefx", "10G"], 20.0, 0.0),
        ];
        let expected = [
            "trace=a.vefx: fastest: bandwidth=10G",
            "trace=a.vefx: bandwidth=10G: the last step of bandwidth, from 1G, still gains 11.1 %",
            "trace=b.vefx: fastest: bandwidth=1G",
            "trace=b.vefx: not slower by more than 1.0 %: bandwidth=10G",
            "trace=b.vefx: bandwidth=1G suffices: bandwidth up to 10G gains nothing",
        ];
        assert_eq!(told(&["trace", "bandwidth"], &points), expected);
    }

    #[test]
    fn what_suffices_does_not_depend_on_the_order_of_the_points() {
        let found = |option: &str, points: &[Told]| {
            let told = told(&[option], points);
            told.into_iter().filter(|answer| answer.contains("suffices")).collect::<Vec<_>>()
        };
        let latencies: [Told; 3] = [(&["100ns"], 5.0, 0.0), (&["1us"], 5.0, 0.0), (&["10us"], 9.0, 0.0)];
        let bandwidths: [Told; 3] =
            [(&["1GB/s"], 9.0, 0.0), (&["10Gbit/s"], 5.0, 0.0), (&["100G"], 5.0, 0.0)];
        for (option, points, expected) in [
            ("latency", latencies, "latency=1us suffices: latency down to 100ns gains nothing"),
            ("bandwidth", bandwidths, "bandwidth=10Gbit/s suffices: bandwidth up to 100G gains nothing"),
        ] {
            for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
                assert_eq!(found(option, &order.map(|at| points[at])), [expected], "{order:?}");
            }
        }
        assert_eq!(found("packet", &[(&["4x4"], 1.0, 0.0), (&["8x8"], 1.0, 0.0)]), [""; 0]);
    }

    #[test]
    fn the_cheapest_of_equals_is_the_fastest() {
        let points: [Told; 3] =
            [(&["minimal"], 100.0, 7.0), (&["adaptive"], 100.5, 7.0), (&["ugal"], 100.7, 8.0)];
        assert_eq!(
            told(&["routing"], &points).last().unwrap(),
            "the cheapest of these 3: routing=minimal (7)"
        );
    }

    #[test]
    fn settings_are_compared_seed_by_seed() {
        // The seeds are further apart than the settings, but each of them says the same.
        let points = |last| -> Vec<Told> {
            vec![
                (&["a", "1"], 100.0, 0.0),
                (&["a", "2"], 150.0, 0.0),
                (&["b", "1"], 103.0, 0.0),
                (&["b", "2"], last, 0.0),
            ]
        };
        let clear = told(&["topology", "seed"], &points(155.0));
        assert_eq!(clear.len(), 2, "{clear:?}");
        assert!(
            clear[0].starts_with("2 seeds: the run times of one setting differ by up to 40.3 %"),
            "{clear:?}"
        );
        assert_eq!(clear[1], "fastest: topology=a");
        let unclear = told(&["topology", "seed"], &points(149.0));
        assert_eq!(unclear[2], "slower in the mean, but not with every seed: topology=b");
        let alike = told(&["topology", "seed"], &points(148.0));
        assert_eq!(alike[2], "not slower by more than 1.0 %: topology=b");
        let bandwidths: [Told; 4] = [
            (&["1G", "1"], 9.0, 0.0),
            (&["1G", "2"], 5.0, 0.0),
            (&["2G", "1"], 6.0, 0.0),
            (&["2G", "2"], 6.0, 0.0),
        ];
        assert_eq!(
            told(&["bandwidth", "seed"], &bandwidths)[3],
            "bandwidth=1G suffices: bandwidth up to 2G gains nothing that every seed shows"
        );
    }
}
