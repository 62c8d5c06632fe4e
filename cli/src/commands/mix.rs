//! `vef mix`: converts the captures of all ranks to one trace.

use crate::algorithms;
use crate::groups::{Threads, one_of};
use crate::mixing::Progress;
use crate::output::{self, Failure, Written, WrittenDirectory};
use crate::session;
use mixer::{Creations, IoServers, Job, MixError, Options, Polls, Rma, SendWaits, Spent, Summary};
use replay::Table;
use results::conversion::{Mix, MixSchema};
use sim_example::quantity::parse_bytes;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use vef_format::account::TimePart;
use vef_format::capture::CaptureError;
use vef_format::format::named_container;
use vef_format::operation::OpCodes;
use vef_format::units::{Bytes, Count};

/// Convert a capture to a trace
#[derive(clap::Args)]
#[command(
    override_usage = "vef mix [OPTIONS] --output <OUT> <CAPTURE>",
    after_help = "\
Processes started by mpirun or srun share the work; the trace is the same, byte for byte. -j and --memory are then per
process [default: 1 thread, and a share of half the free memory of the node]. A process that needs more memory uses a
temporary file; do not place these on a /tmp in memory.

Examples:
  vef mix capture -o app.vef
  mpirun -n 8 vef mix capture -o app.vef
  srun -n 8 vef mix capture -o app.vef --memory 4G --tmpdir /local/scratch"
)]
pub struct Arguments {
    /// Capture: its directory, or the VEFT.main of an older one
    #[arg(value_name = "CAPTURE", required_unless_present = "input")]
    capture: Option<PathBuf>,
    /// The capture as VEF-Prospector's mixer takes it
    #[arg(short, long, value_name = "CAPTURE", hide = true, conflicts_with = "capture")]
    input: Option<PathBuf>,
    /// Trace to write, or to replace: a container if the name ends in .vefx, else text; - is standard output
    #[arg(short, long, value_name = "OUT", value_parser = Written::trace())]
    pub output: Written,
    #[command(flatten)]
    pub threads: Threads,
    /// Memory to use, approximately (4G, 500MB); a larger capture is read twice and mixed in parts, with a
    /// temporary file [default: half of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: Option<Bytes>,
    /// Directory for temporary files, which are unlinked [default: that of the trace]
    #[arg(long, value_name = "DIR", value_parser = WrittenDirectory::any())]
    pub tmpdir: Option<WrittenDirectory>,
    /// Drop sends and receives without a partner instead of refusing the capture
    #[arg(long)]
    pub lenient: bool,
    /// Skip and count events of unknown type (older captures)
    #[arg(long)]
    pub skip_unknown: bool,
    /// Replace collectives by the messages of their algorithms: default, openmpi, mpich, nccl, or the file of
    /// a table
    #[arg(long, value_name = "TABLE", num_args = 0..=1, default_missing_value = "default", value_parser = algorithms::table)]
    pub lower_collectives: Option<Table>,
    /// Factor of MPI's own work in computing times: of calls without a record (MPI_Irecv, windows, files), and of failed polls
    /// that are no waiting. 0 leaves it out, for simulations whose calibration has the overheads of messages
    #[arg(long, value_name = "FACTOR", value_parser = own_work)]
    pub own_work: Option<f64>,
    /// Meaning of failed polls (MPI_Test, MPI_Iprobe …) that a message ends: waiting for the message, or
    /// computing for the captured time
    #[arg(long, value_name = "WHAT", default_value = "wait", value_parser = one_of([("wait", Polls::Wait), ("compute", Polls::Compute)]))]
    pub polls: Polls,
    /// Count times in which ranks were ready to run, but without a core, which others had, as computing. Else they are left out
    #[arg(long)]
    pub keep_preempted: bool,
    /// Meaning of waits that complete own non-blocking sends alone, and of one-sided synchronisations without a message: what the replay says
    /// of sends (--send-completion of vef sim), or computing for the captured time
    #[arg(long, value_name = "WHAT", default_value = "replay", value_parser = one_of([("replay", SendWaits::Replay), ("compute", SendWaits::Compute)]))]
    pub send_waits: SendWaits,
    /// Meaning of calls that create communicators, and open, view or close files: the collectives by which the MPI library agrees on them, or
    /// computing for the captured time
    #[arg(long, value_name = "WHAT", default_value = "collectives", value_parser = one_of([("collectives", Creations::Collectives), ("compute", Creations::Compute)]))]
    pub communicators: Creations,
    /// Storage servers: so many further tasks, which keep the files of MPI-IO and answer each access with a message. Without,
    /// accesses are counted
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub io_servers: Option<u32>,
    /// Bytes of a stripe, and the number of servers that keep one file
    #[arg(long, value_name = "SIZE:COUNT", default_value = "1MiB:1", value_parser = stripe, requires = "io_servers")]
    pub io_stripe: Stripe,
    /// What answers one-sided requests (gets, atomics, locks, flushes): the target, in its calls of MPI, or a network interface, which
    /// answers at once and is a further task of the trace on the node of its rank
    #[arg(long, value_name = "WHAT", default_value = "software", value_parser = one_of([("software", Rma::Software), ("hardware", Rma::Hardware)]))]
    pub rma: Rma,
    /// Count the time in MPI_Init as computing before each rank's first record
    #[arg(long)]
    pub keep_init: bool,
    /// File with the codes of collectives to use in the trace, one `code name` per line
    #[arg(long, value_name = "FILE")]
    pub op_codes: Option<PathBuf>,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// How files are divided among storage servers.
#[derive(Clone, Copy, Debug)]
pub struct Stripe {
    size: Bytes,
    width: u32,
}

fn stripe(text: &str) -> Result<Stripe, String> {
    let (size, width) = text.split_once(':').ok_or("write SIZE:COUNT, such as 1MiB:4")?;
    let size = parse_bytes(size).map_err(|error| error.to_string())?;
    let width = width.parse().ok().filter(|&width| width > 0);
    let width = width.ok_or("the number of servers that keep a file is 1 or more")?;
    if size == Bytes::ZERO {
        return Err("a stripe has at least one byte".to_owned());
    }
    Ok(Stripe { size, width })
}

fn own_work(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor| (0.0..=1000.0).contains(factor));
    factor.ok_or_else(|| "write a factor from 0 to 1000".to_owned())
}

impl Arguments {
    fn capture(&self) -> &Path {
        self.capture.as_ref().or(self.input.as_ref()).expect("one of them is required")
    }
}

/// Whether a word of a command line is one of this command's options, perhaps with its value.
pub fn takes(word: &str) -> bool {
    let command = <Arguments as clap::Args>::augment_args(clap::Command::new("mix"));
    let name = word.split('=').next().unwrap_or_default();
    command.get_arguments().filter(|option| !option.is_hide_set()).any(|option| {
        match name.strip_prefix("--") {
            Some(long) => option.get_long() == Some(long),
            None => name.chars().nth(1).is_some_and(|letter| option.get_short() == Some(letter)),
        }
    })
}

pub fn run(mix: &Arguments) -> Result<ExitCode, Failure> {
    // Inside another program its MPI is that program's.
    let job = if session::is_embedded() { Job::alone() } else { Job::of_launcher()? };
    // Only one process prints.
    let first = job.rank() == 0;
    let mixed = options(mix).and_then(|options| {
        let mixed = match first {
            true => mixer::mix_among(mix.capture(), &mix.output, &options, &Progress::new(), &job),
            false => mixer::mix_among(mix.capture(), &mix.output, &options, &mixer::Quiet, &job),
        };
        mixed.map_err(|error| placed(mix, error))
    });
    let shown = mixed.and_then(|summary| if first { show(mix, &summary) } else { Ok(()) });
    if session::is_embedded() {
        return shown.map(|()| ExitCode::SUCCESS);
    }
    // Before the launcher sees that a process ends.
    if let (Err(error), true) = (&shown, first) {
        output::error(error);
    }
    job.finish()?;
    Ok(if shown.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(output::EXIT_BAD_INPUT) })
}

/// Adds the name of the file that the error concerns, as the user gave it.
fn placed(mix: &Arguments, error: MixError) -> Failure {
    let input = mix.capture().display();
    match (error, &mix.op_codes) {
        (error @ MixError::NoCode(_), Some(table)) => format!("{}: {error}", table.display()).into(),
        (error @ MixError::Unmatched(_), _) => {
            format!("{input}: {error} (--lenient drops messages without a partner)").into()
        }
        (error @ MixError::Capture(CaptureError::Truncated { .. }), _) => {
            format!("{error}: copy it again from where it was recorded (--lenient reads files that processes left incomplete, not parts of files)").into()
        }
        (error @ (MixError::Event { .. } | MixError::Disagreement(_) | MixError::Circle(_)), _) => {
            format!("{input}: {error}").into()
        }
        (error, _) => error.into(),
    }
}

fn options(mix: &Arguments) -> Result<Options, Failure> {
    Ok(Options {
        memory: mix.memory,
        temporary: mix.tmpdir.as_deref().cloned(),
        lenient: mix.lenient,
        skip_unknown: mix.skip_unknown,
        jobs: mix.threads.number(),
        lower_collectives: mix.lower_collectives.clone(),
        polls: mix.polls,
        own_work: mix.own_work,
        keep_init: mix.keep_init,
        without_clocks: false,
        keep_preempted: mix.keep_preempted,
        send_waits: mix.send_waits,
        creations: mix.communicators,
        io: io_servers(mix)?,
        rma: mix.rma,
        op_codes: mix.op_codes.as_deref().map(OpCodes::open).transpose()?.unwrap_or_default(),
    })
}

fn io_servers(mix: &Arguments) -> Result<Option<IoServers>, Failure> {
    let Stripe { size: stripe, width } = mix.io_stripe;
    match mix.io_servers {
        Some(count) if width > count => {
            Err(format!("--io-stripe: {width} servers keep a file, but there are {count}").into())
        }
        count => Ok(count.map(|count| IoServers { count, stripe, width })),
    }
}

fn show(mix: &Arguments, summary: &Summary) -> Result<(), Failure> {
    let text = match mix.json {
        true => serde_json::to_string_pretty(&Mix { schema: MixSchema::default(), summary })?,
        false => text(summary, mix.io_stripe.width),
    };
    output::about(&mix.output, text)?;
    output::oversubscribed(mix.capture(), summary.oversubscribed());
    output::spawned(&summary.spawned, &summary.left_out);
    if summary.answered_outside > 0 {
        output::remark(format_args!(
            "warning: {}: {} had an answer in the run while the target was outside MPI, as from a network interface: in the trace the \
             target waits for each, and may lack what it computed before; with --rma hardware interfaces answer",
            mix.capture().display(),
            Count(summary.answered_outside, "one-sided request")
        ));
    }
    if !named_container(&mix.output) {
        output::plain_tasks(mix.output.display(), summary.storage_tasks().start..summary.tasks);
    }
    Ok(())
}

/// The parts of the tasks' time, if the capture tells them.
fn time(spent: &Spent) -> Option<String> {
    let running = spent.times.running();
    let share = |time: u64| format!("{:.1} %", 100.0 * time as f64 / running as f64);
    let shows = |share: &str| share != "0.0 %";
    let used = TimePart::ALL.iter().filter(|part| **part != TimePart::StartUp && spent.times.of(**part) > 0);
    let parts: Vec<String> = used
        .map(|&part| (part.title(), share(spent.times.of(part))))
        .filter(|(_, share)| shows(share))
        .map(|(part, share)| format!("{part} {share}"))
        .collect();
    let computing = [
        (spent.calls_kept, "in calls that have no record (such as MPI_Irecv and accesses to files)"),
        (spent.polls_kept, "in failed polls"),
        (spent.send_waits, "in waits for own sends"),
        (spent.preempted_kept, "without a core"),
    ];
    let counted = |state: &str, times: &[(u64, &str)]| {
        let times = times.iter().map(|&(time, what)| (share(time), what)).filter(|(share, _)| shows(share));
        let times: Vec<String> = times.map(|(share, what)| format!("{share} {what}")).collect();
        if times.is_empty() {
            String::new()
        } else {
            format!("; as {state} the trace has {}", times.join(", "))
        }
    };
    let computing = counted("computing", &computing);
    let waiting = counted("waiting", &[(spent.awaited, "in failed polls")]);
    (running > 0).then(|| format!("of the tasks' time: {}{computing}{waiting}", parts.join(", ")))
}

/// The summary as text: what was mixed, and what the trace lacks.
fn text(summary: &Summary, servers_of_a_file: u32) -> String {
    let mut lines = vec![format!(
        "{}: {} → {} ({}), {}, {}, {}",
        Count(summary.tasks, "task"),
        Count(summary.events, "event"),
        Count(summary.messages, "message"),
        summary.bytes,
        Count(summary.marks, "mark"),
        Count(summary.collectives, "collective"),
        Count(summary.communicators, "communicator")
    )];
    for (what, tasks) in
        [("storage server", summary.storage_tasks()), ("network interface", summary.interface_tasks())]
    {
        match tasks.len() {
            0 => {}
            1 => lines.push(format!("{what}: task {}", tasks.start)),
            _ => lines.push(format!("{what}s: tasks {} to {}", tasks.start, tasks.end - 1)),
        }
    }
    if servers_of_a_file < summary.io_servers {
        lines.push(format!(
            "each file is on {servers_of_a_file} of the storage servers (--io-stripe SIZE:COUNT)"
        ));
    }
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    lines.push(format!(
        "{}; {} matched; read in {}, matched in {}, written in {}",
        Count(summary.records, "record"),
        Count(summary.matched, "message"),
        seconds(summary.times.walk),
        seconds(summary.times.matching),
        seconds(summary.times.output)
    ));
    lines.extend(time(&summary.spent));
    if summary.spilled.0 > 0 {
        let Summary { spilled, peak_memory, .. } = summary;
        lines.push(format!(
            "mixed in parts, with {spilled} in temporary files; at most {peak_memory} of memory"
        ));
    }
    let killed: Vec<String> = summary.without_finalize().map(|task| task.to_string()).collect();
    if !killed.is_empty() {
        let first = &killed[..killed.len().min(5)];
        let more = if killed.len() > 5 { ", …" } else { "" };
        let tasks = Count(killed.len(), "task");
        lines.push(format!("{tasks} without MPI_Finalize ({}{more})", first.join(", ")));
    }
    if summary.never_completed > 0 {
        lines.push(format!("{} never completed", Count(summary.never_completed, "request")));
    }
    if summary.never_synchronised > 0 {
        lines.push(format!(
            "{} completed by no synchronisation: epochs that were never closed, or targets that ended before",
            Count(summary.never_synchronised, "one-sided transfer")
        ));
    }
    if summary.outside_windows > 0 {
        lines.push(format!(
            "{} accessed memory that the target's window, by its captured size, does not have; the trace has the transfers",
            Count(summary.outside_windows, "origin")
        ));
    }
    if summary.found_only > 0 {
        lines.push(format!("{} found a message that was never received", Count(summary.found_only, "probe")));
    }
    if summary.partitioned_sizes > 0 {
        lines.push(format!(
            "{} of another size than the send; the trace has that of the send",
            Count(summary.partitioned_sizes, "partitioned receive")
        ));
    }
    lines.extend(summary.lacks().into_iter().map(|lack| format!("not in the trace: {lack}")));
    if !summary.unmatched.first.is_empty() {
        lines.push("without a partner, the first of them:".to_owned());
        lines.extend(summary.unmatched.first.iter().map(|message| format!("  {message}")));
    }
    if summary.threaded > 0 {
        lines.push(format!(
            "{} called MPI from several threads: a trace has one sequence a task, in which they stand as they began",
            Count(summary.threaded, "task")
        ));
    }
    let serving = u64::from(summary.io_servers) + u64::from(summary.interfaces);
    let answering = summary.answering.saturating_sub(serving);
    if answering > 0 {
        lines.push(format!(
            "{} answered one-sided requests of others, each where it waited in MPI",
            Count(answering, "task")
        ));
    }
    if summary.negative_times > 0 {
        lines.push(format!(
            "{} began before the call before was over, by a clock that went backwards: computing time 0",
            Count(summary.negative_times, "call")
        ));
    }
    if summary.early_receptions > 0 {
        lines.push(format!(
            "by the clocks, {} arrived before the send: clocks of hosts disagree, processes were spawned, one-sided requests are answered in later calls than they were, or collectives and accesses to files that became messages took their time otherwise",
            Count(summary.early_receptions, "message")
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_are_shown_as_0_are_left_out() {
        let mut spent = Spent::default();
        spent.times.outside = 1_000_000;
        spent.calls_kept = 499;
        assert_eq!(time(&spent).as_deref(), Some("of the tasks' time: outside MPI 100.0 %"));
        spent.calls_kept = 501;
        let told = time(&spent).unwrap_or_default();
        assert!(
            told.ends_with(
                "; as computing the trace has 0.1 % in calls that have no record (such as MPI_Irecv and accesses to files)"
            ),
            "{told}"
        );
    }
}
