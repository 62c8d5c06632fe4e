//! Lines with the options of a sweep are refused, or have points, each with a value of every option, that make a table; what a value
//! says of a network is refused, or a network is made of it.
#![no_main]

use clap::{Args, Command, FromArgMatches};
use results::sweep::{Point, Sweep, SweepSchema, Swept};
use results::table::TextStyle;
use sim_example::NetworkSettings;
use sim_example::topology::TopologySpec;

vef_fuzz::target!(128, |bytes| {
    let text = String::from_utf8_lossy(bytes);
    let Ok(swept) = text.lines().map(str::parse).collect::<Result<Vec<Swept>, _>>() else { return };
    let Ok(points) = Swept::points(&swept) else { return };
    assert_eq!(points.len(), swept.iter().map(|option| option.values.len()).product::<usize>());
    for point in points.iter().take(4) {
        let words = point.iter().map(|(option, value)| format!("--{option}={value}"));
        let command = NetworkSettings::augment_args(Command::new("network").no_binary_name(true));
        let Ok(found) = command.try_get_matches_from(words) else { continue };
        let settings = NetworkSettings::from_arg_matches(&found).expect("parsed arguments");
        // Large networks take memory that is stated.
        if let TopologySpec::Known(topology) = settings.topology {
            assert!(!topology.name().is_empty());
        }
    }
    let point = |values: Vec<(String, String)>| Point { settings: values.into_iter().collect(), error: None, report: None, cost: None };
    let sweep = Sweep {
        answers: Vec::new(),
        prices: None,
        over_seeds: Vec::new(),
        schema: SweepSchema::default(),
        options: swept.iter().map(|option| option.option.clone()).collect(),
        points: points.into_iter().take(64).map(point).collect(),
    };
    let table = sweep.table();
    assert!(table.to_text(&TextStyle::WHOLE).lines().count() > sweep.points.len());
    assert!(table.to_csv().lines().count() > sweep.points.len());
});
