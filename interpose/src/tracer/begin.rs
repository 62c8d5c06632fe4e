//! How a recorder begins: where it writes, and what its file says of the process.

use super::{State, TRACERS, Tracer};
use crate::clock;
use crate::guard::warn;
use crate::identity;
use crate::known::KnownObjects;
use crate::mapped;
use crate::output::Output;
use crate::settings::Settings;
use mpi_abi::api::Mpi;
use mpi_abi::handles;
use mpi_abi::prototypes::Call;
use mpi_abi::tables::Flavour;
use rustix::thread::CpuSet;
use std::cell::UnsafeCell;
use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, Once};
use std::time::Instant;
use vef_format::capture::layout::ClockPair;
use vef_format::capture::{RankInfo, rank_path};
use vef_format::ids::Rank;

impl Tracer {
    /// Starts recorder number `place`, which writes to a directory, at the end of an `MPI_Init` or of the call that began a session.
    /// `alone`: there is no chain of tools. `zero`: time 0 of the capture.
    ///
    /// # Errors
    /// The reason why this process is not recorded.
    pub(crate) fn begin(
        settings: &Settings,
        (place, directory): (usize, &Path),
        alone: bool,
        session: Option<handles::Session>,
        zero: ClockPair,
    ) -> Result<&'static Self, Box<dyn Error>> {
        let mpi = Mpi::loaded()?;
        let of_session = session.map(|session| mpi.clone().in_session(session)).transpose()?;
        let world = of_session.as_ref().unwrap_or(&mpi);
        let rank = Rank(world.world_rank()?.try_into()?);
        let tasks = world.world_size()?.try_into()?;
        // A later session may have a higher thread level.
        let multiple = session.is_some() || mpi.query_thread() == Ok(mpi.abi().constants.thread_multiple);
        let spawned = session.is_none() && mpi.parent().is_ok_and(|parent| parent.is_some());
        let in_the_way = |error: std::io::Error| match error.kind() {
            ErrorKind::AlreadyExists => format!(
                "another process records, or has recorded, as rank {rank} in {} (was the program started by the launcher of another \
                 MPI, or twice in one run?)",
                directory.display()
            ),
            _ => format!("{}: {error}", directory.display()),
        };
        let mut directory = directory.to_owned();
        if spawned {
            // Every process derives the number by itself, because the recorder must not communicate.
            let number =
                identity::spawned().ok_or("it was spawned, and the number of its world is unknown")?;
            directory.push(format!("spawned-{number}"));
        }
        let directory = &directory;
        std::fs::create_dir_all(directory).map_err(|error| match directory.metadata() {
            Ok(there) if !there.is_dir() => format!("{}: is not a directory", directory.display()),
            _ => format!("{}: {error}", directory.display()),
        })?;
        if rank.0 == 0 && !settings.fresh {
            remove_leftovers(directory, tasks);
        }
        let run = identity::identity(directory.file_name().filter(|_| spawned));
        let info = rank_info(&mpi, rank, tasks, run, zero, settings);
        let path = rank_path(directory, rank);
        let output =
            Output::create(&path, &info, zero, settings.max_size, settings.fresh).map_err(in_the_way)?;
        output.set_pair(1, clock::pair());
        for given in settings.invalid.iter().filter(|_| rank.0 == 0 && place == 0) {
            warn(&format!("{given} is invalid and ignored"));
        }
        let tracer: &'static Self = Box::leak(Box::new(Self {
            place,
            alone,
            state: AtomicU8::new(State::Closed as u8),
            session: Mutex::new(of_session),
            opens: AtomicU32::new(1),
            entries: [const { AtomicPtr::new(null_mut()) }; Call::COUNT],
            known: UnsafeCell::new(KnownObjects::default()),
            lanes: Mutex::default(),
            outsiders: Mutex::default(),
            lock: Mutex::default(),
            rank,
            tasks,
            multiple,
            phase: settings.phase.clone().map(|name| (name, AtomicU32::new(0))),
            stop_after: settings.stop_after.map(|after| (after, Instant::now())),
            output,
            mpi,
        }));
        mapped::survive_truncation();
        TRACERS[place].store(std::ptr::from_ref(tracer).cast_mut(), Ordering::Release);
        stop_in_children();
        Ok(tracer)
    }
}

/// Stops recording in children of `fork`, which share the mapping.
fn stop_in_children() {
    extern "C" fn in_child() {
        Tracer::all().for_each(|tracer| _ = tracer.set_state(State::Over));
    }
    static ONCE: Once = Once::new();
    // SAFETY: a function that is never unloaded.
    ONCE.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
}

/// Removes rank files of an earlier, larger run, which would make this capture unreadable.
fn remove_leftovers(dir: &Path, tasks: u32) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let rank = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
        if let Some(rank) = rank.filter(|&rank| rank >= tasks)
            && path == rank_path(dir, Rank(rank))
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn rank_info(mpi: &Mpi, rank: Rank, tasks: u32, run: u64, start: ClockPair, settings: &Settings) -> RankInfo {
    let abi = mpi.abi();
    let local = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"];
    RankInfo {
        rank,
        tasks,
        run,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        local_rank: local.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()),
        cores: cores(),
        mpi: match abi.flavour {
            Flavour::Mpich => "mpich",
            Flavour::OpenMpi => "openmpi",
            Flavour::Standard => "standard",
        }
        .to_owned(),
        library: abi.version.lines().next().unwrap_or_default().trim().to_owned(),
        program: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
        pid: std::process::id(),
        realtime: clock::realtime_at(start),
        only_phase: settings.phase.clone(),
    }
}

/// The CPUs on which this process may run.
fn cores() -> Vec<u32> {
    let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).map(|cpu| cpu as u32).collect()
}
