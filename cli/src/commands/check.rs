//! `vef check`: validates a trace, replays it, and shows its content; with `--repair` also corrects it.

use crate::commands::import::Settings;
use crate::foreign::Progress;
use crate::groups::{CapturedTime, OpCodesFile, Yardstick};
use crate::initialisation;
use crate::input::Input;
use crate::output::{self, EXIT_BAD_INPUT, Failure, Written};
use crate::progress::Bar;
use interchange::ImportError;
use replay::{BuildError, Engine, Extent, Job, Stream, yardstick};
use results::Exact;
use results::check::{self, Check, CheckSchema, Examined};
use results::report::After;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use vef_format::new_file::is_stdout;
use vef_format::units::{Bytes, Count, Grouped, Picos};
use vef_format::validate::{self, Kind, OperationTally, Options, Problem, Repair, Report, Severity};

/// Validate a trace and replay it
#[derive(clap::Args)]
#[command(after_help = "\
The exit code is 0 if every record replays, else 2. --json prints JSON even if the trace cannot be read: its key `error`
then has the reason. A trace from a pipe (TRACE is -) is copied to a temporary file.

--repair corrects counts of the header, trigger bits, ids, dependencies and orders that the rest of the trace determines,
and reports each change. It writes nothing if other errors remain. docs/formats.md has the rules.

A trace of another tool is checked as such first, with the options of vef import: of GOAL and Chakra circles, dependencies
on what is not there, sends and receives without a partner, collectives about which ranks disagree; of DUMPI, OTF2,
liballprof and SimGrid also files that are cut, clocks that go back, requests without a call that makes or completes them,
calls that a trace cannot hold; each with its number and the first places.

Examples:
  vef check app.vef
  vef check app.vef --repair mended.vef
  zstdcat app.vef.zst | vef check - --json")]
pub struct Arguments {
    /// Trace, or the directory of a capture; - is standard input
    #[arg(value_name = "TRACE", value_parser = Input::argument)]
    pub trace: PathBuf,
    /// Repair what the rest of the trace determines (text only), and write the result if it is valid
    #[arg(long, value_name = "OUT.vef", value_parser = Written::text())]
    pub repair: Option<Written>,
    #[command(flatten, next_help_heading = "Traces of other tools")]
    pub settings: Settings,
    #[command(flatten, next_help_heading = "Options")]
    pub codes: OpCodesFile,
    #[command(flatten)]
    pub yardstick: Yardstick,
    #[command(flatten)]
    pub captured_time: CapturedTime,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(check: &Arguments) -> Result<ExitCode, Failure> {
    let (trace, foreign) = match find_faults(check)? {
        Checked::Trace(trace, foreign) => (trace, foreign),
        Checked::Unusable => return Ok(ExitCode::from(EXIT_BAD_INPUT)),
    };
    let bar = Bar::new("checking");
    let examined = examine(check, &trace, foreign);
    drop(bar);
    let finding = match examined {
        Ok(finding) => finding,
        Err(error) => {
            if check.json {
                output::json(&failed(check, Some(output::in_one_line(&error)), None))?;
            }
            return Err(error);
        }
    };
    match check.json {
        true => output::json(&finding.to_json())?,
        false => output::result(finding.text())?,
    }
    if finding.is_complete() {
        return Ok(ExitCode::SUCCESS);
    }
    for problem in finding.problems(Severity::Error) {
        let place = match problem.place.record {
            Some(record) => format!(" {record}"),
            None => problem.place.line.to_string(),
        };
        output::remark(format_args!("{}:{place}: {}", check.trace.display(), problem.text));
    }
    Ok(ExitCode::from(EXIT_BAD_INPUT))
}

/// The result for a trace of which no more is known.
fn failed(check: &Arguments, error: Option<String>, foreign: Option<&Foreign>) -> Check {
    let finding = |finding: &interchange::Finding| {
        let interchange::Finding { what, is_error, count, first } = finding.clone();
        check::Finding { what, is_error, count, first }
    };
    Check {
        schema: CheckSchema::default(),
        trace: check.trace.clone(),
        complete: false,
        error,
        format: foreign.map(|foreign| foreign.format.to_owned()),
        findings: foreign.map(|foreign| foreign.findings.iter().map(finding).collect()),
        examined: None,
    }
}

/// A trace of another tool, and what is wrong in it.
struct Foreign {
    format: &'static str,
    findings: Vec<interchange::Finding>,
}

/// What the first look at a trace has found.
enum Checked {
    /// A trace, which may be what a trace of another tool was converted to.
    Trace(Input, Option<Foreign>),
    /// A trace of another tool that cannot be converted; why has been shown.
    Unusable,
}

/// Converts a trace of another tool, and shows what is wrong in it; of our own traces nothing is done.
fn find_faults(check: &Arguments) -> Result<Checked, Failure> {
    let file = Input::file(&check.trace)?;
    let format = file.foreign();
    let options = check.settings.options(format)?;
    let Some(format) = format else {
        return Ok(Checked::Trace(file.converted()?, None));
    };
    let (findings, trace) = faults(&file, format, &options)?;
    let is_sound = !findings.iter().any(|finding| finding.is_error);
    let foreign = Foreign { format: format.info().what, findings };
    let shown = check.trace.display();
    match trace {
        Some(trace) if is_sound && check.json => Ok(Checked::Trace(trace, Some(foreign))),
        _ if check.json => {
            let errors = foreign.findings.iter().filter(|finding| finding.is_error).count();
            output::json(&failed(
                check,
                Some(format!("{} of errors", Count(errors as u64, "kind"))),
                Some(&foreign),
            ))?;
            Ok(Checked::Unusable)
        }
        trace => {
            let mut lines = vec![format!("{shown}: {}", foreign.format)];
            lines.extend(foreign.findings.iter().map(|finding| {
                let severity = if finding.is_error { "error" } else { "warning" };
                format!("  {severity}: {}", finding.in_one_line())
            }));
            match trace {
                Some(trace) if is_sound => {
                    output::result(lines.join("\n"))?;
                    Ok(Checked::Trace(trace, Some(foreign)))
                }
                _ => {
                    lines.push("NOT complete: it cannot be converted".to_owned());
                    output::result(lines.join("\n"))?;
                    Ok(Checked::Unusable)
                }
            }
        }
    }
}

/// What is wrong in a trace of another tool, and the trace it becomes, unless an error is found.
fn faults(
    file: &Input,
    format: interchange::Format,
    options: &interchange::Options,
) -> Result<(Vec<interchange::Finding>, Option<Input>), Failure> {
    if let Some(checker) = format.info().checker {
        let files = interchange::Files::of(std::slice::from_ref(&file.path))?;
        let progress = Progress(Bar::new("checking"));
        let found = checker(&files, options, &progress).map_err(|error| file.error(error))?;
        drop(progress);
        if found.iter().any(|finding| finding.is_error) {
            return Ok((found, None));
        }
        let (trace, ..) = file.convert(format, options)?;
        return Ok((found, Some(trace)));
    }
    if let interchange::Reader::Refused(_) = format.info().reader {
        return file.convert(format, options).map(|(trace, ..)| (Vec::new(), Some(trace)));
    }
    // The calls of a format of calls are checked by the import and the mix, which --partial lets go on after errors.
    let error = match file.convert(format, options) {
        Ok((trace, summary, _)) => return Ok((summary.faults().collect(), Some(trace))),
        Err(error) => error,
    };
    let mut found = Vec::new();
    let partial = interchange::Options { partial: true, strict: false, ..options.clone() };
    if let Ok((_, summary, _)) = file.convert(format, &partial) {
        found.extend(summary.faults());
        let interchange::Unmatched { sends, receives, first } = summary.unmatched;
        if sends + receives > 0 {
            let what =
                format!("without a partner: {} and {}", Count(sends, "send"), Count(receives, "receive"));
            found.push(interchange::Finding { what, is_error: true, count: sends + receives, first });
        }
    }
    // The error itself, unless it is that a file ends early, of which all are named.
    let path = error.downcast_ref::<ImportError>().map(|error| error.place.path.display().to_string());
    let names = |place: &String| path.as_ref().is_some_and(|path| place.contains(path.as_str()));
    let ends = found.iter_mut().find(|finding| finding.what == interchange::ENDS_EARLY);
    match ends {
        Some(ends) if ends.first.iter().any(names) => ends.is_error = true,
        _ => {
            let (what, first) = ("cannot be converted".to_owned(), vec![output::in_one_line(&error)]);
            found.insert(0, interchange::Finding { what, is_error: true, count: 1, first });
        }
    }
    Ok((found, None))
}

fn examine<'a>(
    check: &'a Arguments,
    trace: &Input,
    foreign: Option<Foreign>,
) -> Result<Finding<'a>, Failure> {
    let op_codes = check.codes.read(trace)?.unwrap_or_default();
    let options = Options { op_codes, ..Options::default() };
    let found = match &check.repair {
        Some(to) => repair(trace, to, &options),
        None => validate(trace, &options).map(|(report, job)| (report, None, job)),
    };
    let (report, repair, job) = found.map_err(|error| trace.error(error))?;
    // An invalid trace has no meaningful run time: report the error instead.
    let replayed = job
        .map(|job| {
            let extent =
                check.yardstick.of_run.extent(&check.captured_time, trace, Some(&options.op_codes))?;
            replay_to_end(job, &check.yardstick, &extent)
        })
        .transpose();
    let replayed = replayed.map_err(|error| trace.error(error))?;
    let mut lacks = trace.lacks();
    match &foreign {
        None => trace.warn_in_full(),
        Some(foreign) => {
            // What the findings name is not said again.
            let is_named = |lack: &String| {
                let mut words = lack.split(' ');
                words.any(|word| {
                    foreign.findings.iter().any(|finding| finding.what.ends_with(&format!(" {word}")))
                })
            };
            lacks.retain(|lack| !is_named(lack));
            output::lacks(lacks.iter());
        }
    }
    trace.tell_time_in_mpi(true);
    if let (Some(replayed), None) = (&replayed, check.yardstick.of_run.part(&check.captured_time)) {
        initialisation::warn(trace, replayed.runtime, check.yardstick.of_run.from_launch);
    }
    Ok(Finding { check, foreign, report, repair, replayed, lacks })
}

/// Validates a trace; returns the job to replay if it is valid.
fn validate(trace: &Input, options: &Options) -> Result<(Report, Option<Job>), Failure> {
    let report = validate::validate(&trace.path, options)?;
    let job = match (report.is_complete(), trace.is_container()?) {
        (false, _) => None,
        (true, true) => Some(Job::open(&trace.path)?),
        (true, false) => Some(stream(&trace.path, options)?),
    };
    Ok((report, job))
}

/// Repairs a trace into the file `to`; returns the job to replay if the result is valid.
fn repair(
    trace: &Input,
    to: &Path,
    options: &Options,
) -> Result<(Report, Option<Repair>, Option<Job>), Failure> {
    if trace.is_container()? {
        let trace = trace.path.display();
        return Err(format!(
            "{trace}: only text can be repaired: vef convert {trace} FILE.vef makes it of this container"
        )
        .into());
    }
    if is_stdout(to) || fs::metadata(to).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Err(format!("{}: not a file; --repair reads its output again", to.display()).into());
    }
    // Refuse a trace that no replay would start.
    if let Ok(job) = stream(&trace.path, options)
        && let Err(error @ BuildError::Tasks { .. }) = Engine::builder().job(job).engine()
    {
        return Err(format!("{}: {error}", trace.path.display()).into());
    }
    let repair = validate::repair(&trace.path, to, options)?;
    let job = repair.report.is_complete().then(|| stream(to, options)).transpose()?;
    Ok((repair.report.clone(), Some(repair), job))
}

fn stream(trace: &Path, options: &Options) -> Result<Job, Failure> {
    Ok(Job::stream(Stream::with_codes(trace, options.op_codes.clone())?))
}

/// The result of a replay on the yardstick network.
struct Replayed {
    runtime: Picos,
    messages: u64,
    bytes: Bytes,
    /// Collectives for which the trace has only sums.
    split_evenly: u64,
    /// The longest `MPI_Init` of a rank, if either the records or the replay has it alone, and whether the records do.
    start_up: Option<(Picos, bool)>,
    /// Which part of the run was replayed, if not all of it.
    part: Option<String>,
    /// The deadlock, if the replay did not finish.
    stuck: Option<String>,
}

fn replay_to_end(job: Job, yardstick: &Yardstick, extent: &Extent) -> Result<Replayed, Failure> {
    let link = yardstick.link()?;
    let spans = job.captured_spans()?.unwrap_or_default();
    let differing = spans.iter().filter(|span| span.in_records != extent.from_launch);
    let start_up = differing
        .map(|span| (Picos(span.initialised.0.saturating_mul(job.clock().0)), span.in_records))
        .max();
    let mut engine = Engine::builder().job(job.extent(extent)?).engine()?;
    let outcome = yardstick::run(&mut engine, &link)?;
    let total = engine.stats().total();
    Ok(Replayed {
        runtime: outcome.runtime,
        messages: total.messages,
        bytes: total.bytes,
        split_evenly: engine.stats().split_evenly,
        start_up,
        part: extent.part.as_ref().map(|part| part.to_string()),
        stuck: outcome.stuck.map(|stuck| stuck.to_string()),
    })
}

/// All results of the command.
struct Finding<'a> {
    check: &'a Arguments,
    foreign: Option<Foreign>,
    /// With `--repair`, the report on the repaired trace.
    report: Report,
    repair: Option<Repair>,
    replayed: Option<Replayed>,
    /// What the trace lacks of the captured run.
    lacks: Vec<String>,
}

impl Finding<'_> {
    fn is_complete(&self) -> bool {
        self.report.is_complete() && self.replayed.as_ref().is_some_and(|replayed| replayed.stuck.is_none())
    }

    fn problems(&self, severity: Severity) -> impl Iterator<Item = &Problem> {
        self.report.problems.iter().filter(move |problem| problem.severity == severity)
    }

    fn to_json(&self) -> Check {
        let examined = self.examined();
        Check {
            complete: self.is_complete(),
            examined: Some(examined),
            ..failed(self.check, None, self.foreign.as_ref())
        }
    }

    fn examined(&self) -> Examined {
        let Report { tallies, errors, warnings, kinds, problems, stuck_tasks } = &self.report;
        let [nothing, send, reception, collective] = tallies.dependencies.map(Exact::from);
        let replayed = self.replayed.as_ref();
        let repair = |repair: &Repair| check::Repair {
            output: self.check.repair.as_deref().cloned(),
            written: repair.report.is_complete(),
            kinds: repair.kinds.clone(),
            changes: repair.changes.clone(),
        };
        Examined {
            tasks: tallies.tasks,
            messages: tallies.messages,
            awaited: tallies.awaited,
            to_self: tallies.to_self,
            bytes: tallies.bytes.0,
            marks: tallies.marks,
            communicators: tallies.communicators,
            collectives: tallies.collectives,
            local_collectives: tallies.local_collectives,
            operations: tallies.operations.clone(),
            dependencies: After { nothing, send, reception, collective },
            computing_ps: tallies.computing.0,
            runtime_ps: replayed.map(|replayed| replayed.runtime.0),
            yardstick: check::Yardstick {
                latency_ps: self.check.yardstick.latency().0,
                bits_per_second: self.check.yardstick.bandwidth().bits_per_second(),
                part: replayed.and_then(|replayed| replayed.part.clone()),
                messages: replayed.map(|replayed| replayed.messages),
                bytes: replayed.map(|replayed| replayed.bytes.0),
                collectives_split_evenly: replayed.map(|replayed| replayed.split_evenly),
                stuck: replayed.and_then(|replayed| replayed.stuck.clone()),
            },
            not_in_the_trace: self.lacks.clone(),
            errors: *errors,
            warnings: *warnings,
            stuck_tasks: *stuck_tasks,
            kinds: kinds.clone(),
            problems: problems.clone(),
            repair: self.repair.as_ref().map(repair),
        }
    }

    fn text(&self) -> String {
        let mut lines = self.repaired();
        lines.extend(self.content());
        if let Some(replayed) = &self.replayed {
            let only = replayed
                .part
                .iter()
                .map(|part| format!("  the numbers above are of the whole trace; replayed is only {part}"));
            lines.extend(only);
            lines.push(format!(
                "  replayed on a network of {} + bytes / {}: run time {}, {} with {} (collectives included)",
                self.check.yardstick.latency(),
                self.check.yardstick.bandwidth(),
                replayed.runtime,
                Count(replayed.messages, "message"),
                replayed.bytes
            ));
            if replayed.split_evenly > 0 {
                lines.push(format!(
                    "    of {} (Alltoallv, Alltoallw) the trace has only what each task sends and receives in sum: \
                     each sum was split evenly; a container (vef mix -o X.vefx) has the counts",
                    Count(replayed.split_evenly, "collective")
                ));
            }
            lines.extend(replayed.stuck.iter().map(|stuck| format!("  {stuck}")));
        }
        if self.report.stuck_tasks > 0 {
            let stuck = Count(self.report.stuck_tasks, "task");
            lines.push(format!("  {stuck} never {} to the end", stuck.agree("comes", "come")));
        }
        lines.extend(self.kinds(Severity::Error));
        if self.report.warnings > 0 {
            lines.extend(self.kinds(Severity::Warning));
            lines.extend(
                self.problems(Severity::Warning)
                    .map(|problem| format!("    {}: {}", problem.place, problem.text)),
            );
        }
        let is_part = self.replayed.as_ref().is_some_and(|replayed| replayed.part.is_some());
        let replays = match is_part {
            true => "the trace is valid, and every record of the part replays",
            false => "every record replays",
        };
        lines.push(match self.is_complete() {
            true if !self.lacks.is_empty() => {
                format!("complete: {replays}; not in the trace: {}", self.lacks[0])
            }
            true => format!("complete: {replays}"),
            false => format!("NOT complete: {}", Count(self.report.errors, "error")),
        });
        lines.join("\n")
    }

    /// The changes of the repair.
    fn repaired(&self) -> Vec<String> {
        let (Some(repair), Some(to)) = (&self.repair, &self.check.repair) else { return Vec::new() };
        let changes: u64 = repair.kinds.values().sum();
        let told = repair.changes.iter().map(|change| format!("  line {}: {}", change.line, change.text));
        let (from, to) = (self.check.trace.display(), to.display());
        let mut lines = vec![match (repair.report.is_complete(), changes) {
            (true, 0) => format!("{from}: nothing to repair; {to} is the same trace"),
            (true, _) => format!("{from} repaired as {to}: {}", Count(changes, "change")),
            (false, _) => format!(
                "{from}: certain: {}; other errors cannot be repaired: {to} is not written",
                Count(changes, "change")
            ),
        }];
        lines.extend(told);
        let untold = changes - repair.changes.len() as u64;
        lines.extend((untold > 0).then(|| format!("  and {} more", Grouped(untold))));
        lines
    }

    /// The content of the trace.
    fn content(&self) -> Vec<String> {
        let tallies = &self.report.tallies;
        let [_, send, reception, collective] = tallies.dependencies;
        let mut lines = vec![
            format!("{}: {}", self.check.trace.display(), Count(tallies.tasks, "task")),
            format!(
                "  {} with {} ({} awaited, {} of a task to itself), {}",
                Count(tallies.messages, "message"),
                tallies.bytes,
                Grouped(tallies.awaited),
                Grouped(tallies.to_self),
                Count(tallies.marks, "local mark")
            ),
            format!(
                "  {} on {}",
                Count(tallies.collectives, "collective"),
                Count(tallies.communicators, "communicator")
            ),
        ];
        lines.extend(tallies.operations.iter().map(|(name, tally)| operation(name, tally)));
        let start_up = self.replayed.as_ref().and_then(|replayed| replayed.start_up);
        let start_up = match start_up {
            Some((time, true)) => format!(", MPI_Init included, which is not replayed ({time} at most)"),
            Some((time, false)) => format!(" without MPI_Init, which is replayed ({time} at most)"),
            None => String::new(),
        };
        lines.push(format!(
            "  records that follow a send {}, a reception {}, a collective {}; computing {} at most{start_up}",
            Grouped(send),
            Grouped(reception),
            Grouped(collective),
            tallies.computing
        ));
        lines
    }

    /// Number and meaning of the problems of each kind.
    fn kinds(&self, severity: Severity) -> impl Iterator<Item = String> {
        let of_severity = move |(kind, _): &(&Kind, &u64)| kind.severity() == severity;
        let name = if severity == Severity::Error { "error" } else { "warning" };
        let kinds = self.report.kinds.iter().filter(of_severity);
        kinds.map(move |(kind, count)| format!("  {}: {}", Count(*count, name), kind.meaning()))
    }
}

fn operation(name: &str, tally: &OperationTally) -> String {
    format!(
        "    {name}: {}, {} contributed, {} obtained",
        Count(tally.operations, "operation"),
        tally.send,
        tally.recv
    )
}
