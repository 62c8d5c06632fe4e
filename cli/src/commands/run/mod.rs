//! `vef run`: starts an MPI program under its launcher, with the preload library in the ranks.

mod arguments;
mod directory;
mod live;
mod outcome;

pub use arguments::Arguments;
pub use directory::unused;

use directory::claim;
use outcome::{await_ranks, compress, report};

use super::mix;
use crate::groups::parse;
use crate::launch;
use crate::library;
use crate::output::{self, Failure};
use crate::signals::is_ignored;
use crate::tools::Tools;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vef_format::nearest::did_you_mean;
use vef_format::new_file::is_stdout;

/// Environment variable with the directory for the capture.
const DIRECTORY_VARIABLE: &str = "VEF_DIR";

pub fn run(run: &Arguments) -> Result<ExitCode, Failure> {
    let Ended { program, done } = capture(run)?;
    Ok(match (program.success(), done) {
        (true, false) => ExitCode::from(output::EXIT_BAD_INPUT),
        _ => exit_code(program),
    })
}

/// The result of a run.
pub struct Ended {
    /// Exit status of the program.
    pub program: ExitStatus,
    /// Whether all requested work on the capture succeeded.
    pub done: bool,
}

/// Runs the program, reports the capture, and mixes and compresses it on request.
pub fn capture(run: &Arguments) -> Result<Ended, Failure> {
    let library = library::find()?;
    if let Some(first) = run.program.first().filter(|first| first.as_encoded_bytes().starts_with(b"-")) {
        let word = first.display().to_string();
        let command = <Arguments as clap::Args>::augment_args(clap::Command::new("run"));
        let names = command.get_arguments().filter_map(clap::Arg::get_long);
        let options: Vec<String> = names.map(|name| format!("--{name}")).collect();
        if mix::takes(&word) {
            return Err(format!(
                "{word}: an option of vef mix, not of vef run: capture without --mix, then vef mix DIR {word} … -o OUT"
            )
            .into());
        }
        let meant =
            did_you_mean(word.split('=').next().unwrap_or_default(), options.iter().map(String::as_str));
        return Err(format!(
            "{word}: no option of vef run; {meant}vef run --help lists them; a launcher's options: --mpirun 'mpirun OPTION …'"
        )
        .into());
    }
    if let Some(program) = run.program.first().map(Path::new)
        && run.mpirun.is_none()
        && program.components().nth(1).is_some()
        && !program.exists()
    {
        return Err(format!("{}: no such program", program.display()).into());
    }
    let line = match run.script {
        true => None,
        false => Some(launch::compose(run.mpirun.as_deref(), run.ranks, run.oversubscribe, &run.program)?),
    };
    let tools = Tools::named(&run.tools)?;
    let needs = [
        ("--mix", run.mix.is_some()),
        ("--compress", run.compress),
        ("--max-size", run.max_size.is_some()),
        ("--stop-after", run.stop_after.is_some()),
        ("--live", run.live),
        ("--only-phase", run.only_phase.is_some()),
        ("--only-ranks", run.only_ranks.is_some()),
    ];
    if let Some((option, _)) = needs.iter().find(|&&(_, given)| given && !tools.record()) {
        return Err(format!("{option} needs a capture: add --tool capture").into());
    }
    // Check output files before a run of possibly hours.
    if let Some(trace) = &run.mix {
        if is_stdout(trace) {
            return Err("--mix -: stdout belongs to the program; name a file".into());
        }
        let parent = trace.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(format!("--mix {}: no such directory: {}", trace.display(), parent.display()).into());
        }
        output::can_be_written(trace).map_err(|error| format!("--mix {error}"))?;
    }
    let preloaded = launch::preload(&library, &run.program)?;
    let claimed = claim(run)?;
    let directory = claimed.directory.clone();
    let mut variables = [preloaded, variables(run, &directory)].concat();
    variables.extend(tools.variables());
    let refusal = line.as_ref().and_then(refused);
    let plan = match line {
        Some(line) => launch::with_variables(line, &variables),
        None => launch::through_environment(&run.program, &variables),
    };
    let plan = plan.inspect_err(|_| claimed.give_up())?;
    let view = run.live.then(|| live::View::new(&directory));
    let program = start(&plan, view).inspect_err(|_| claimed.give_up())?;
    if tools.record() && !program.success() {
        await_ranks(&directory);
    }
    let captured = tools.record() && report(run, &claimed);
    if let Some(remedy) = refusal.filter(|_| !captured && !program.success()) {
        output::remark(remedy);
    }
    tools.report(&directory);
    let mut done = captured || !tools.record();
    // Attempt each step even if another has failed.
    let mut attempt = |what: Result<ExitCode, Failure>| match what {
        Ok(code) => done &= code == ExitCode::SUCCESS,
        Err(error) => {
            output::error(&error);
            done = false;
        }
    };
    if let Some(trace) = &run.mix {
        attempt(match captured {
            true => parse(&["-o".as_ref(), trace.as_os_str(), "--".as_ref(), directory.as_os_str()])
                .and_then(|arguments| super::mix::run(&arguments)),
            false => Err(format!("{}: not written, as nothing was recorded", trace.display()).into()),
        });
    }
    if captured && run.compress {
        attempt(compress(&directory).map(|()| ExitCode::SUCCESS));
    }
    Ok(Ended { program, done })
}

/// The hint after a failed launch by Open MPI, which refuses root, and more ranks than cores, by default.
fn refused(line: &launch::LauncherLine) -> Option<String> {
    let is_open_mpi = line.launcher == launch::LauncherKind::OpenMpi;
    let is_allowed = ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
        || line.words.iter().any(|word| word == "--allow-run-as-root");
    if is_open_mpi && rustix::process::geteuid().is_root() && !is_allowed {
        return Some(
            "Open MPI does not start as root unless OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 are set".into(),
        );
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks = line.ranks()?;
    const OPTIONS: [&str; 8] = [
        "--oversubscribe",
        "-oversubscribe",
        "--hostfile",
        "-hostfile",
        "--machinefile",
        "--host",
        "-host",
        "-H",
    ];
    let told = line.words.iter().any(|word| OPTIONS.iter().any(|option| word == option));
    let refused = is_open_mpi && !told && ranks as usize > cores;
    refused.then(|| {
        format!(
            "Open MPI starts no more ranks than there are cores ({cores} here, {ranks} ranks were asked for) unless told \
             to: vef run --oversubscribe …; times then measure the scheduler, too"
        )
    })
}

/// The environment variables of the recorder.
fn variables(run: &Arguments, directory: &Path) -> Vec<launch::Variable> {
    let mut variables = vec![
        (DIRECTORY_VARIABLE, directory.into()),
        // The directory was empty: a rank file in it belongs to another process of this run.
        ("VEF_FRESH", "1".into()),
        ("VEF_RUN", identity().into()),
    ];
    let options = [
        ("VEF_MAX_SIZE", run.max_size.map(|size| size.0.to_string())),
        ("VEF_STOP_AFTER", run.stop_after.clone()),
        ("VEF_PHASE", run.only_phase.clone()),
        ("VEF_RANKS", run.only_ranks.as_ref().map(|ranks| ranks.text.clone())),
    ];
    variables.extend(options.into_iter().filter_map(|(name, value)| Some((name, value?.into()))));
    // Some launchers do not pass their environment to other hosts.
    for name in ["VEF_TRACE", "VEF_CLOCK", "VEF_MAX_SIZE", "VEF_STOP_AFTER", "VEF_PHASE", "VEF_RANKS"] {
        if let Some(value) = std::env::var_os(name)
            && variables.iter().all(|(known, _)| *known != name)
        {
            variables.push((name, value));
        }
    }
    variables
}

/// A unique name for this run, recorded in its rank files.
fn identity() -> String {
    // The standard library's hasher has a random key.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Runs the line to its end, with stdin, stdout and stderr of this process, which a `view` may pass on. An interrupt from the terminal
/// reaches the launcher, which ends its ranks. Requests to terminate this process (`kill`, `timeout`, a batch
/// system) are forwarded to the launcher, and this process continues to report the capture.
fn start(plan: &launch::LaunchPlan, mut view: Option<live::View>) -> Result<ExitStatus, Failure> {
    let (program, arguments) = plan.words.split_first().ok_or("no program given")?;
    // One that `nohup` made this process ignore stays ignored.
    let requests = [SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
    let requests: Vec<i32> = requests.collect();
    let over = Arc::new(AtomicBool::new(false));
    for &signal in &requests {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, over.clone())?;
    }
    let mut signals = Signals::new([&requests[..], &[SIGINT, SIGQUIT]].concat())?;
    let mut command = Command::new(program);
    command.args(arguments).envs(plan.environment.iter().cloned());
    if let Some(view) = &view {
        view.redirect(&mut command);
    }
    let mut child =
        command.spawn().map_err(|error| format!("cannot start {}: {error}", Path::new(program).display()))?;
    if let Some(view) = &mut view {
        view.pass_on(&mut child);
    }
    let launcher = Pid::from_child(&child);
    let is_over = over.clone();
    std::thread::spawn(move || {
        for signal in signals.forever().filter(|signal| requests.contains(signal)) {
            // The number is the launcher's until it has been waited for, right before `over`.
            if let Some(signal) = Signal::from_named_raw(signal)
                && !is_over.load(Ordering::Acquire)
            {
                let _ = kill_process(launcher, signal);
            }
        }
    });
    let status = child.wait();
    over.store(true, Ordering::Release);
    Ok(status?)
}

/// The exit code of the program; 128 + n if signal n ended it, as in shells.
fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
