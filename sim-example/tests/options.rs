//! The options of a network: their defaults, and what the manual says of the models that use them.

use clap::{Args, Command, FromArgMatches};
use sim_example::NetworkSettings;
use sim_example::model::{GROUPS_HEADING, Model};
use sim_example::routing;
use sim_example::topology;
use sim_example::traffic::{Pattern, Traffic};

fn page(name: &str) -> String {
    std::fs::read_to_string(format!("{}/../docs/{name}.md", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn manual() -> String {
    page("simulator")
}

#[test]
fn without_options_the_settings_are_the_defaults() {
    let matches = NetworkSettings::augment_args(Command::new("sim")).get_matches_from(["sim"]);
    let parsed = NetworkSettings::from_arg_matches(&matches).unwrap();
    let default = NetworkSettings { seed: 1, ..NetworkSettings::default() };
    assert_eq!(format!("{parsed:?}"), format!("{default:?}"));
    let matches = Traffic::augment_args(Command::new("traffic")).get_matches_from(["traffic"]);
    assert_eq!(
        format!("{:?}", Traffic::from_arg_matches(&matches).unwrap()),
        format!("{:?}", Traffic::default())
    );
}

/// The manual's table of options and models is that of `ModelInfo::options`.
#[test]
fn the_manual_says_which_model_uses_an_option() {
    let command = NetworkSettings::augment_args(Command::new("sim"));
    let mut rows: Vec<(&str, Vec<String>)> = Vec::new();
    for option in command.get_arguments() {
        let Some(heading) = option.get_help_heading() else { continue };
        let name = format!("`--{}`", option.get_long().unwrap());
        match rows.iter_mut().find(|(of, _)| *of == heading) {
            Some((_, names)) => names.push(name),
            None => rows.push((heading, vec![name])),
        }
    }
    assert_eq!(rows.len(), 5);
    for (heading, names) in rows {
        let uses = |model: &Model| model.info().options.contains(&heading);
        let models: Vec<String> =
            Model::ALL.iter().filter(|model| uses(model)).map(|model| format!("`{model}`")).collect();
        assert!(!models.is_empty(), "no model uses options of {heading}");
        let only = if heading == GROUPS_HEADING { ", with a dragonfly" } else { "" };
        let row = format!("| {} | {}{only} |", names.join(", "), models.join(", "));
        assert!(manual().contains(&row), "docs/simulator.md lacks\n{row}");
    }
}

#[test]
fn the_manual_names_every_form() {
    let manual = manual();
    for model in Model::ALL {
        let row = format!("| {} |", model.info().help);
        assert!(manual.contains(&row), "docs/simulator.md lacks {row}");
    }
    for pattern in Pattern::ALL {
        assert!(page("traffic").contains(&format!("`{pattern}`")), "docs/traffic.md lacks pattern {pattern}");
    }
    for form in topology::FORMS.iter().copied().flatten() {
        assert!(manual.contains(&format!("`{}:", form.kind)), "docs/simulator.md lacks {}", form.form);
    }
    for form in routing::FORMS {
        let first = form.form.split([',', '[', '|']).next().unwrap();
        assert!(manual.contains(&format!("`{first}`")), "docs/simulator.md lacks {first}");
    }
}
