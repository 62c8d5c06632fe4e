//! `vef generate`: man pages and completions of this very command, for packages (`scripts/install`), and the header by which programs mark
//! phases. Hidden: packages have all of them.

use super::Vef;
use crate::output::{Failure, WrittenDirectory};
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::io::Error;

/// Write man pages, completions, or vef_phase.h
#[derive(clap::Args)]
#[command(hide = true)]
pub struct Arguments {
    /// What to write
    #[arg(value_enum, value_name = "WHAT")]
    pub what: What,
    /// Directory to write to, which is made
    #[arg(value_name = "DIR", value_parser = WrittenDirectory::any())]
    pub directory: WrittenDirectory,
}

/// What to write.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// A page of each command: vef.1, vef-run.1 …
    Man,
    /// Completions for bash, zsh and fish: vef.bash, _vef, vef.fish
    Completions,
    /// The header by which programs mark phases: vef_phase.h
    Header,
}

/// The header by which programs mark phases.
const HEADER: &str = include_str!("../../../interpose/include/vef_phase.h");

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let directory = &*arguments.directory;
    let failed = |error: Error| format!("{}: {error}", directory.display());
    fs::create_dir_all(directory).map_err(failed)?;
    match arguments.what {
        What::Man => clap_mangen::generate_to(Vef::in_paragraphs(), directory).map_err(failed)?,
        What::Header => fs::write(directory.join("vef_phase.h"), HEADER).map_err(failed)?,
        What::Completions => {
            for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
                clap_complete::generate_to(shell, &mut Vef::command(), "vef", directory).map_err(failed)?;
            }
        }
    }
    Ok(())
}
