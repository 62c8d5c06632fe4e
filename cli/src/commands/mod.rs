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
use std::process::ExitCode;

/// Captures the MPI traffic of programs and replays it on simulated networks.
#[derive(clap::Parser)]
#[command(name = "vef", version, max_term_width = 110)]
pub struct Vef {
    #[command(subcommand)]
    pub command: Command,
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
    use clap::CommandFactory;

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
