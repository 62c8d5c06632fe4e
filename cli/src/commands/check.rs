//! `vef check`: is a trace sound, does it replay to its end, and what is in it.

use crate::args::Check;
use crate::output::{self, EXIT_BAD_INPUT, Failure, grouped};
use crate::progress::Busy;
use replay::{Job, Link, Replay, yardstick};
use sim_example::quantity::{Bandwidth, parse_time};
use std::path::Path;
use std::process::ExitCode;
use vef_format::container;
use vef_format::units::{Bytes, Picos};
use vef_format::validate::{self, OperationTally, Problem, Report, Severity};

pub fn execute(check: &Check) -> Result<ExitCode, Failure> {
    let network = Network { latency: parse_time(&check.latency)?, bandwidth: check.bandwidth.parse()? };
    let busy = Busy::new("checking");
    let options = validate::Options::default();
    let in_container = container::is_container(&check.trace)
        .map_err(|error| format!("{}: {error}", check.trace.display()))?;
    let report = match in_container {
        true => validate::validate_container(&check.trace, &options)?,
        false => validate::validate(&check.trace, &options)?,
    };
    // A trace that is wrong between its lines has no meaningful run time: say what is wrong instead.
    let replayed = match report.is_complete() {
        true => Some(replay_to_end(&check.trace, &network)?),
        false => None,
    };
    drop(busy);
    let finding = Finding { trace: &check.trace, report: &report, network, replayed };
    match check.json {
        true => output::json(&finding.json())?,
        false => output::result(finding.text())?,
    }
    match finding.is_complete() {
        true => Ok(ExitCode::SUCCESS),
        false => {
            for problem in report.problems.iter().filter(|p| p.severity == Severity::Error) {
                output::remark(format_args!("{}:{}: {}", check.trace.display(), problem.line, problem.text));
            }
            Ok(ExitCode::from(EXIT_BAD_INPUT))
        }
    }
}

/// Every message takes the latency and its bytes over the bandwidth, whatever else is under way.
struct Network {
    latency: Picos,
    bandwidth: Bandwidth,
}

/// What a replay on the yardstick came to.
struct Replayed {
    runtime: Picos,
    messages: u64,
    bytes: Bytes,
    /// Why it did not come to its end.
    stuck: Option<String>,
}

fn replay_to_end(trace: &Path, network: &Network) -> Result<Replayed, Failure> {
    let link = Link::new(network.latency, network.bandwidth.bits_per_second())?;
    let mut replay = Replay::builder().job(Job::open(trace)?).build()?;
    let outcome = yardstick::run(&mut replay, &link)?;
    let total = replay.stats().total();
    Ok(Replayed {
        runtime: outcome.runtime,
        messages: total.messages,
        bytes: total.bytes,
        stuck: outcome.stuck.map(|stuck| stuck.to_string()),
    })
}

/// Everything that was found.
struct Finding<'a> {
    trace: &'a Path,
    report: &'a Report,
    network: Network,
    replayed: Option<Replayed>,
}

impl Finding<'_> {
    fn is_complete(&self) -> bool {
        self.report.is_complete() && self.replayed.as_ref().is_some_and(|replayed| replayed.stuck.is_none())
    }

    fn json(&self) -> serde_json::Value {
        let tallies = &self.report.tallies;
        serde_json::json!({
            "tasks": tallies.tasks,
            "messages": tallies.messages,
            "marks": tallies.marks,
            "collectives": tallies.collectives,
            "bytes": tallies.bytes,
            "runtime_ps": self.replayed.as_ref().map(|replayed| replayed.runtime),
            "complete": self.is_complete(),
            "local_collectives": tallies.local_collectives,
            "communicators": tallies.communicators,
            "awaited": tallies.awaited,
            "to_self": tallies.to_self,
            "operations": tallies.operations,
            "computing_ps": tallies.computing,
            "yardstick": {
                "latency_ps": self.network.latency,
                "bits_per_second": self.network.bandwidth.bits_per_second(),
                "messages": self.replayed.as_ref().map(|replayed| replayed.messages),
                "bytes": self.replayed.as_ref().map(|replayed| replayed.bytes),
                "stuck": self.replayed.as_ref().and_then(|replayed| replayed.stuck.as_ref()),
            },
            "errors": self.report.errors,
            "warnings": self.report.warnings,
            "problems": self.report.problems,
        })
    }

    fn text(&self) -> String {
        let tallies = &self.report.tallies;
        let mut lines = vec![
            format!("{}: {} tasks", self.trace.display(), grouped(tallies.tasks)),
            format!(
                "  {} messages with {} ({} awaited, {} of a task to itself), {} local marks",
                grouped(tallies.messages),
                tallies.bytes,
                grouped(tallies.awaited),
                grouped(tallies.to_self),
                grouped(tallies.marks)
            ),
            format!(
                "  {} collectives on {} communicators",
                grouped(tallies.collectives),
                grouped(tallies.communicators)
            ),
        ];
        lines.extend(tallies.operations.iter().map(|(name, tally)| operation(name, tally)));
        if let Some(replayed) = &self.replayed {
            lines.push(format!(
                "  replayed on a network of {} + bytes / {}: run time {}, {} messages with {} (collectives included)",
                self.network.latency,
                self.network.bandwidth,
                replayed.runtime,
                grouped(replayed.messages),
                replayed.bytes
            ));
            lines.extend(replayed.stuck.iter().map(|stuck| format!("  {stuck}")));
        }
        if self.report.warnings > 0 {
            lines.push(format!("  {} warnings", grouped(self.report.warnings)));
            lines.extend(
                self.warnings().map(|problem| format!("    line {}: {}", problem.line, problem.text)),
            );
        }
        lines.push(match self.is_complete() {
            true => "complete: every record replays".into(),
            false => format!("NOT complete: {} errors", grouped(self.report.errors)),
        });
        lines.join("\n")
    }

    fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.report.problems.iter().filter(|problem| problem.severity == Severity::Warning)
    }
}

fn operation(name: &str, tally: &OperationTally) -> String {
    format!(
        "    {name}: {} operations, {} contributed, {} obtained",
        grouped(tally.operations),
        tally.send,
        tally.recv
    )
}
