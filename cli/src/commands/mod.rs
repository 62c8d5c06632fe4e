//! The commands, one file each, in the order of `vef --help`. A further one is a file and its line here.

mod bench;
mod cat;
mod check;
mod convert;
mod cut;
mod demo;
mod export;
mod generate;
mod import;
mod mix;
mod packaging;
mod place;
mod profile;
mod report;
mod run;
mod sim;
mod stats;
mod text;
mod timeline;
mod traffic;

use crate::list::commands;
use crate::output::Failure;
use clap::CommandFactory;
use clap::builder::StyledStr;
use std::process::ExitCode;

/// Captures the MPI traffic of programs and replays it on simulated networks.
#[derive(clap::Parser)]
#[command(
    name = "vef",
    version,
    max_term_width = 110,
    after_help = "The pages docs/*.md that help refers to are in share/doc/vef beside the bin directory of vef; docs/gallery.md shows what six \
                  questions take."
)]
pub struct Vef {
    #[command(subcommand)]
    pub command: Command,
}

impl Vef {
    /// The command line. Each paragraph below the options is one line, which is wrapped to the width of the terminal.
    pub fn in_paragraphs() -> clap::Command {
        in_paragraphs(Self::command())
    }
}

fn in_paragraphs(command: clap::Command) -> clap::Command {
    let joined = |help: Option<&StyledStr>| help.map(|help| joined(&help.to_string()));
    let [short, long] = [command.get_after_help(), command.get_after_long_help()].map(joined);
    let command = short.into_iter().fold(command, clap::Command::after_help);
    let command = long.into_iter().fold(command, clap::Command::after_long_help);
    command.mut_subcommands(in_paragraphs)
}

/// Joins lines; those that are indented, and what follows a blank line, stay lines of their own.
fn joined(text: &str) -> String {
    let mut all = String::new();
    let mut is_open = false;
    for line in text.lines() {
        let is_plain = !line.is_empty() && !line.starts_with(' ');
        if !all.is_empty() {
            all.push(if is_open && is_plain { ' ' } else { '\n' });
        }
        all.push_str(line);
        is_open = is_plain;
    }
    all
}

commands! {
    Run => run,
    Mix => mix,
    Check => check,
    Stats => stats,
    Report => report,
    Sim => sim,
    Traffic => traffic,
    Gen => generate,
    Timeline => timeline,
    Convert => convert,
    Cat => cat,
    Cut => cut,
    Import => import,
    Export => export,
    Place => place,
    Text => text,
    Profile => profile,
    Bench => bench,
    Demo => demo,
    Generate => packaging,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, CommandFactory, Parser};
    use sim_example::NetworkSettings;
    use sim_example::model::{Carrier, Model};

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "One sentence\nand more.\n\nExamples:\n  vef a\n  vef b\nThe end.";
        assert_eq!(joined(text), "One sentence and more.\n\nExamples:\n  vef a\n  vef b\nThe end.");
    }

    fn described(command: &clap::Command, path: &str) {
        let about = command.get_about().unwrap_or_else(|| panic!("{path}: what does it do?")).to_string();
        assert!(!about.ends_with('.') || path == "vef", "{path}: {about}");
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let (name, help) = (argument.get_id(), argument.get_help());
            let help = help.unwrap_or_else(|| panic!("{path}: what is {name}?")).to_string();
            assert!(!help.ends_with('.'), "{path}: {name}: {help}");
        }
        for below in command.get_subcommands() {
            described(below, &format!("{path} {}", below.get_name()));
        }
    }

    /// The help of a command has no option that the command refuses whatever else is given: those of models that it cannot run.
    #[test]
    fn help_lists_what_a_command_takes() {
        let shown = |command: &str, id: &str| {
            let vef = Vef::command();
            let command = vef.find_subcommand(command).unwrap();
            let found = command.get_arguments().find(|option| option.get_id() == id).unwrap();
            let values = found.get_possible_values();
            let values: Vec<String> = values.iter().map(|value| value.get_name().to_owned()).collect();
            (!found.is_hide_set(), values)
        };
        let ranks: Vec<Model> =
            Model::ALL.into_iter().filter(|model| matches!(model.info().carrier, Carrier::Ranks)).collect();
        assert!(!ranks.is_empty());
        let settings = NetworkSettings::augment_args(clap::Command::new("network"));
        let mut hidden = 0;
        for option in settings.get_arguments() {
            let id = option.get_id().as_str();
            assert!(shown("sim", id).0, "sim takes {id}");
            let users = Model::ALL.into_iter().filter(|model| {
                option.get_help_heading().is_none_or(|heading| model.info().options.contains(&heading))
            });
            let takes = users.into_iter().any(|model| !ranks.contains(&model));
            assert_eq!(shown("traffic", id).0, takes, "traffic {id}");
            hidden += u32::from(!takes);
        }
        assert!(hidden > 0);
        for model in Model::ALL {
            let name = model.info().name.to_owned();
            assert!(shown("sim", "model").1.contains(&name));
            assert_eq!(shown("traffic", "model").1.contains(&name), !ranks.contains(&model), "{name}");
            // Given, it is read, and refused with the reason.
            let given = |model: &str| {
                Vef::try_parse_from(["vef", "traffic", "--topology", "torus:4x4", "--model", model])
            };
            assert!(given(&name).is_ok(), "{name}");
            let error = given("none").map(|_| ()).unwrap_err().to_string();
            assert_eq!(error.contains(&name), !ranks.contains(&model), "{error}");
        }
    }

    /// `-h` of the commands with most options lists those that are used most, and fits on two screens.
    #[test]
    fn short_help_is_short() {
        for (name, usual) in [("sim", 24), ("traffic", 14)] {
            let mut vef = Vef::in_paragraphs();
            vef.build();
            let command = vef.find_subcommand_mut(name).unwrap();
            let listed = command.get_arguments().filter(|option| !option.is_hide_short_help_set());
            assert_eq!(listed.filter(|option| option.get_id() != "help").count(), usual, "{name}");
            let [short, long] = [command.render_help(), command.render_long_help()];
            let [short, long] = [short, long].map(|help| help.to_string().lines().count());
            assert!(short < 120 && 2 * short < long, "{name}: {short} and {long} lines");
        }
    }

    #[test]
    fn every_command_and_argument_is_described() {
        let vef = Vef::command();
        vef.clone().debug_assert();
        described(&vef, "vef");
        let readme = include_str!("../../../README.md");
        for command in vef.get_subcommands().filter(|command| !command.is_hide_set()) {
            let row = format!("| `vef {} ", command.get_name());
            assert!(readme.contains(&row), "README.md has no row {row}");
        }
    }
}
