//! `vef bench coll`: one launch, in every rank.

use crate::output::{self, Failure, Written};
use collbench::{Error, Plan, Report};
use mpi_abi::api::Mpi;
use std::process::ExitCode;
use std::time::Duration;

/// Time collectives; run it by mpirun
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub plan: Plan,
    /// Write all samples and what they were measured on as JSON, brought up to date after every size
    #[arg(short, long, value_name = "FILE.json", value_parser = Written::kind(&["json"], "the file is a .json"))]
    pub output: Option<Written>,
    /// Write the table as CSV
    #[arg(long, value_name = "FILE.csv", value_parser = Written::kind(&["csv"], "the file is a .csv"))]
    pub csv: Option<Written>,
}

pub fn run(coll: &Arguments) -> Result<ExitCode, Failure> {
    if let Err(error) = coll.plan.check() {
        output::error_of_all_ranks(format_args!("error: {error}"));
        return Ok(ExitCode::from(output::EXIT_BAD_INPUT));
    }
    let mut table = ProgressTable { coll, printed: 0, problems: 0 };
    in_mpi(|mpi, is_root| {
        let mut watch = |report: &Report| {
            if is_root {
                table.show(report);
            }
        };
        let report = collbench::run(mpi, &coll.plan, &mut watch)?;
        if is_root {
            table.show(&report);
            let switches = report.switches_text();
            if !switches.is_empty()
                && let Err(error) = output::result(switches.trim_end())
            {
                output::error(&error);
            }
            if report.rows.is_empty() && !report.problems.is_empty() {
                return Ok(ExitCode::from(output::EXIT_BAD_INPUT));
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Initialises MPI, does `work`, finalises. An error that only this rank may have ends all of them.
pub fn in_mpi(work: impl FnOnce(&Mpi, bool) -> collbench::Result<ExitCode>) -> Result<ExitCode, Failure> {
    let mpi = Mpi::open(None)?;
    mpi.init_thread(mpi.abi().constants.thread_single)?;
    let world = mpi.abi().comm_world();
    let is_root = mpi.comm_rank(world)? == 0;
    let code = match work(&mpi, is_root) {
        Ok(code) => code,
        Err(error @ (Error::Mpi(_) | Error::Local(_))) => {
            output::error(&error.into());
            // Launchers that see an abort may end before they have passed on what was printed.
            std::thread::sleep(Duration::from_millis(200));
            mpi.abort(world, output::EXIT_BAD_INPUT.into())?;
            ExitCode::from(output::EXIT_BAD_INPUT)
        }
        Err(error) => {
            if is_root {
                output::error(&error.into());
            }
            ExitCode::from(output::EXIT_BAD_INPUT)
        }
    };
    mpi.finalize()?;
    Ok(code)
}

struct ProgressTable<'c> {
    coll: &'c Arguments,
    printed: usize,
    problems: usize,
}

impl ProgressTable<'_> {
    fn show(&mut self, report: &Report) {
        let mut text = String::new();
        if self.printed == 0 && self.problems == 0 {
            text += &report.heading();
        }
        text.extend(report.rows[self.printed..].iter().map(collbench::Row::to_text));
        text.extend(report.problems[self.problems..].iter().map(|problem| format!("! {problem}\n")));
        (self.printed, self.problems) = (report.rows.len(), report.problems.len());
        let write = || -> Result<(), Failure> {
            if !text.is_empty() {
                output::result(text.trim_end())?;
            }
            if let Some(path) = &self.coll.output {
                output::file(path, &report.to_json())?;
            }
            if let Some(path) = &self.coll.csv {
                output::file(path, &report.to_csv())?;
            }
            Ok(())
        };
        if let Err(error) = write() {
            output::error(&error);
            std::process::exit(output::EXIT_BAD_INPUT.into());
        }
    }
}
