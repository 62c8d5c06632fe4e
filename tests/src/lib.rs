//! What the end-to-end tests share: the MPIs of this machine, the products under test, running things with a
//! deadline, and counting what a trace holds.
//!
//! A test that needs something the machine lacks is [`skipped`]; `scripts/deps` installs all of it, so that nothing is
//! skipped in CI.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use skipping::{have, installed, shared, skipped};

pub mod browser;
pub mod counted;
pub mod counts;
pub mod modules;
pub mod schema;
pub mod source;
pub mod spine;
pub mod threaded;

/// An MPI of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpi {
    /// `mpicc.mpich`, `mpiexec.mpich`.
    Mpich,
    /// `mpicc.openmpi`, `mpirun.openmpi`.
    OpenMpi,
    /// One of PyPI.
    Wheel(Wheel),
}

impl Mpi {
    /// Those of Debian, which [`installed`](Self::installed) looks for.
    pub const DEBIAN: [Self; 2] = [Self::Mpich, Self::OpenMpi];

    /// The C compiler wrapper.
    pub fn mpicc(self) -> &'static str {
        match self {
            Self::Mpich => "mpicc.mpich",
            Self::OpenMpi => "mpicc.openmpi",
            Self::Wheel(wheel) => wheel.programs().expect("installed").0,
        }
    }

    /// The launcher, with the options that let it start more ranks than there are cores.
    pub fn launcher(self) -> &'static [&'static str] {
        match self {
            Self::Mpich => &["mpiexec.mpich"],
            Self::OpenMpi => &["mpirun.openmpi", "--oversubscribe"],
            Self::Wheel(wheel) => wheel.programs().expect("installed").1,
        }
    }

    /// Debian's MPIs whose compiler and launcher are here; says which are not.
    pub fn installed() -> Vec<Self> {
        Self::DEBIAN
            .into_iter()
            .filter(|mpi| {
                let complete = [mpi.mpicc(), mpi.launcher()[0]].iter().all(|program| have(program));
                if !complete {
                    skipped(format_args!("{mpi:?} is not installed (scripts/deps)"));
                }
                complete
            })
            .collect()
    }

    /// Debian's MPIs and those of PyPI; says which are not here. `VEF_MPIS=Mpich,OpenMpi5` asks for these alone.
    pub fn every() -> Vec<Self> {
        let asked = std::env::var("VEF_MPIS").ok();
        let is_asked =
            |name: String| asked.as_ref().is_none_or(|asked| asked.split(',').any(|of| of == name));
        let wheels = Wheel::ALL.into_iter().filter(|wheel| is_asked(format!("{wheel:?}")));
        let wheels = wheels.filter(|wheel| wheel.programs().is_some()).map(Self::Wheel);
        Self::installed().into_iter().filter(|mpi| is_asked(format!("{mpi:?}"))).chain(wheels).collect()
    }

    /// Debian's MPIs and the given ones of PyPI; all of them if `VEF_SEEDS` asks for more than an ordinary test has time for.
    pub fn with(wheels: &[Wheel]) -> Vec<Self> {
        let all = std::env::var_os("VEF_SEEDS").is_some();
        let is_wanted = |mpi: &Self| matches!(mpi, Self::Wheel(wheel) if all || wheels.contains(wheel));
        Self::every().into_iter().filter(|mpi| !matches!(mpi, Self::Wheel(_)) || is_wanted(mpi)).collect()
    }

    /// The C compiler wrapper, ready to be started.
    pub fn compiler(self) -> Command {
        let mut command = Command::new(self.mpicc());
        if self == Self::Wheel(Wheel::Intel) {
            command.env("I_MPI_ROOT", Wheel::Intel.home());
        }
        command
    }

    /// Compiles C sources (relative to the repository) into `name` in `directory`.
    pub fn compile(self, directory: &Path, name: &str, arguments: &[&str]) -> PathBuf {
        let output = directory.join(format!("{name}.{self:?}"));
        let mut command = self.compiler();
        command.current_dir(root()).args(["-O1", "-w", "-o"]).arg(&output).args(arguments);
        run(&mut command).success();
        output
    }

    /// Compiles `tests/c/NAME.F90` for one of the [`INTERFACES`].
    pub fn compile_fortran(self, directory: &Path, interface: &str, name: &str) -> PathBuf {
        let output = directory.join(name);
        let mut compiler = Command::new(self.mpicc().replace("mpicc", "mpifort"));
        compiler.current_dir(root()).args(["-w", "-ffree-line-length-none", "-fallow-argument-mismatch"]);
        compiler.arg(format!("-D{interface}")).arg("-o").arg(&output).arg(format!("tests/c/{name}.F90"));
        run(&mut compiler).success();
        output
    }
}

/// An MPI that is a wheel of PyPI, installed once in `target/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wheel {
    /// MPICH 5 with its own ABI.
    Mpich5,
    /// MPICH 5 with the standard ABI.
    StandardAbi,
    /// Open MPI 5.
    OpenMpi5,
    /// Intel MPI 2021.
    Intel,
}

/// A compiler wrapper, and a launcher with options.
pub type Programs = (&'static str, &'static [&'static str]);

impl Wheel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Mpich5, Self::StandardAbi, Self::OpenMpi5, Self::Intel];

    /// Where it is installed, or will be.
    pub fn home(self) -> PathBuf {
        root().join("target").join(match self {
            Self::Mpich5 | Self::StandardAbi => "mpich-wheel",
            Self::OpenMpi5 => "openmpi-wheel",
            Self::Intel => "impi-wheel",
        })
    }

    /// Its C compiler wrapper, and its launcher with options; `None`, said aloud: it cannot be had here.
    pub fn programs(self) -> Option<Programs> {
        static HERE: [OnceLock<Option<Programs>>; 4] = [const { OnceLock::new() }; 4];
        *HERE[self as usize].get_or_init(|| {
            let (packages, compiler, options): (&[&str], _, &[&str]) = match self {
                Self::Mpich5 => (&["mpich==5.0.2"], "mpicc", &[]),
                Self::StandardAbi => (&["mpich==5.0.2"], "mpicc_abi", &[]),
                Self::OpenMpi5 => {
                    (&["openmpi==5.0.11"], "mpicc", &["--oversubscribe", "--allow-run-as-root"])
                }
                Self::Intel => (&["impi-rt==2021.18.1", "impi-devel==2021.18.1"], "mpicc", &[]),
            };
            let home = self.home();
            let program = |name: &str| &*home.join("bin").join(name).display().to_string().leak();
            if !Path::new(program(compiler)).is_file() && !from_pypi(&home, packages) {
                return None;
            }
            let launcher = [program("mpiexec")].into_iter().chain(options.iter().copied());
            Some((program(compiler), &*launcher.collect::<Vec<_>>().leak()))
        })
    }
}

/// Makes a virtual environment with packages of PyPI; says aloud that it cannot.
pub fn from_pypi(home: &Path, packages: &[&str]) -> bool {
    // Tests of one run may want the same one.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !installed("python3") {
        skipped("python3 is not installed");
        return false;
    }
    let _ = std::fs::remove_dir_all(home);
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(home)).output.status.success();
    let mut install = Command::new(home.join("bin/pip"));
    install.args(["install", "--quiet", "--only-binary", ":all:"]).args(packages);
    let installed = made && run_for(&mut install, Duration::from_secs(900)).output.status.success();
    if !installed {
        skipped(format_args!("{packages:?} cannot be installed here (python3-venv, PyPI)"));
    }
    installed
}

/// The ways to MPI in Fortran.
pub const INTERFACES: [&str; 3] = ["MPIF_H", "USE_MPI", "MPI_F08"];

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The command `vef`, built together with the preload library beside it.
pub fn vef() -> Command {
    let mut command = Command::new(products().join("vef"));
    command.env_remove("LD_PRELOAD").env_remove("VEF_DIR");
    // Open MPI refuses to start as root unless told twice; containers often are root.
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// Whether commands, libraries and examples are up to date, because `scripts/test` has built them.
fn are_built() -> bool {
    std::env::var_os("VEF_BUILT").is_some()
}

/// The directory with `vef` and `libvef_interpose.so`, up to date.
pub fn products() -> &'static Path {
    static PRODUCTS: OnceLock<PathBuf> = OnceLock::new();
    PRODUCTS.get_or_init(|| {
        let test = std::env::current_exe().expect("the test's own path");
        let directory = test.parent().and_then(Path::parent).expect("target/PROFILE").to_path_buf();
        if are_built() {
            return directory;
        }
        let mut build = Command::new(env!("CARGO"));
        build.current_dir(root()).args([
            "build",
            "--quiet",
            "--locked",
            "-p",
            "cli",
            "-p",
            "interpose",
            "-p",
            "substitute",
        ]);
        // scripts/install builds the same set, with the same features.
        build.args(["-p", "replay-ffi"]);
        if directory.file_name() == Some(OsStr::new("release")) {
            build.arg("--release");
        }
        run_for(&mut build, Duration::from_secs(900)).success();
        directory
    })
}

/// The directory of the examples of `mpi-abi`, with this one up to date.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let target = test.ancestors().nth(3).expect("target/PROFILE/deps");
    if are_built() {
        return target.join("debug/examples");
    }
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(root()).args(["build", "--quiet", "--locked", "-p", "mpi-abi", "--example", name]);
    run_for(build.arg("--target-dir").arg(target), Duration::from_secs(600)).success();
    target.join("debug/examples")
}

/// How a process ended and what it printed.
#[derive(Debug)]
pub struct Ended {
    /// The command line, for messages.
    pub line: String,
    /// Its exit status, stdout and stderr.
    pub output: Output,
}

impl Ended {
    /// Stdout as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Stderr as text.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Itself, if the exit code was 0.
    ///
    /// # Panics
    /// When it was not; shows what was printed.
    pub fn success(self) -> Self {
        self.exited(0)
    }

    /// Itself, if the exit code was `code`.
    ///
    /// # Panics
    /// When it was not; shows what was printed.
    pub fn exited(self, code: i32) -> Self {
        assert_eq!(
            self.output.status.code(),
            Some(code),
            "{}\n{}\nstdout: {}\nstderr: {}",
            self.line,
            self.output.status,
            self.stdout(),
            self.stderr()
        );
        self
    }
}

/// The turn of one MPI program: others wait. Ranks that wait spin, and more of them than cores give each other away
/// whole time slices; two tests beside each other took three times as long as one after the other.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command to its end, five minutes at most.
pub fn run(command: &mut Command) -> Ended {
    run_for(command, Duration::from_secs(300))
}

/// Runs a command to its end, `limit` at most. What starts ranks waits for its turn first.
///
/// # Panics
/// When it cannot be started or does not end in time: a hang is a failure.
pub fn run_for(command: &mut Command, limit: Duration) -> Ended {
    let line = format!("{command:?}");
    run_within(command, limit).unwrap_or_else(|| panic!("{line}: not over after {limit:?}"))
}

/// Runs a command to its end; `None`: it was not over after `limit`, and was killed with all that it had started.
///
/// # Panics
/// When it cannot be started.
#[expect(clippy::print_stderr, reason = "told beside what the test says")]
pub fn run_within(command: &mut Command, limit: Duration) -> Option<Ended> {
    let line = format!("{command:?}");
    let launches = ["mpiexec", "mpirun", "\"run\""].iter().any(|word| line.contains(word));
    let _turn = launches.then(turn);
    for _ in 0..2 {
        let ended = once(command, limit)?;
        if ended.output.status.success() || !ended.stderr().contains(NOT_LAUNCHED) {
            return Some(ended);
        }
        eprintln!("{line}: launched again, since {NOT_LAUNCHED}");
    }
    once(command, limit)
}

/// What the launcher of Open MPI 5 says, one time in thousands, before it starts a rank.
const NOT_LAUNCHED: &str = "The PMIx server's listener thread failed to start.";

/// [`run_within`], whatever the launcher says.
fn once(command: &mut Command, limit: Duration) -> Option<Ended> {
    let line = format!("{command:?}");
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{line}: {error}"));
    let pid = child.id();
    let started = Instant::now();
    let waiter = std::thread::spawn(move || child.wait_with_output());
    while !waiter.is_finished() {
        if started.elapsed() > limit {
            let _ = Command::new("kill").args(["-9", "--", &format!("-{pid}")]).status();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = waiter.join().expect("the waiting thread").expect("the output of the child");
    Some(Ended { line, output })
}

/// A number at `key` of a JSON object.
pub fn number(json: &serde_json::Value, key: &str) -> u64 {
    json[key].as_u64().unwrap_or_else(|| panic!("no number {key} in {json:#}"))
}

/// Messages and bytes between two ranks.
pub type Traffic = BTreeMap<(u32, u32), (u64, u64)>;
