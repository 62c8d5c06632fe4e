//! Starts an MPI program with the preload library in its ranks only.
//!
//! Launchers pass environment variables to ranks by options; the launcher itself, its daemons and shells do
//! not get them. An `LD_PRELOAD` of the user stays first. Where options do not reach (application files of
//! Open MPI, worlds that a program spawns in its version 5, a script that calls the launcher), the environment passes them.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Launchers with known options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LauncherKind {
    /// Open MPI's `mpirun`: `-x NAME=VALUE`, one for each program of an MPMD line.
    OpenMpi,
    /// MPICH's (also Intel's, MVAPICH's) `mpiexec.hydra`: `-genv NAME VALUE`.
    Hydra,
    /// Slurm's `srun`: `--export=ALL,NAME=VALUE`.
    Slurm,
}

impl LauncherKind {
    /// The option that permits more ranks than cores, if the launcher needs one.
    pub const fn oversubscribe(self) -> Option<&'static str> {
        match self {
            Self::OpenMpi => Some("--oversubscribe"),
            Self::Hydra => None,
            Self::Slurm => Some("--overcommit"),
        }
    }
}

/// An environment variable for the ranks.
pub type Variable = (&'static str, OsString);

/// A launcher command line, split into words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LauncherLine {
    /// The launcher and its arguments, then the program and its arguments.
    pub words: Vec<OsString>,
    /// The kind of launcher.
    pub launcher: LauncherKind,
    /// Number of words before the launcher's options: wrappers and the launcher itself.
    pub front: usize,
}

/// A command to execute, and variables to add to its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchPlan {
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Variables for the whole process tree.
    pub environment: Vec<(OsString, OsString)>,
}

impl LauncherLine {
    /// Sum of the ranks of all programs on the line, if each has a number.
    pub fn ranks(&self) -> Option<u32> {
        const OPTIONS: [&str; 6] = ["-n", "-np", "--np", "-c", "--n", "--ntasks"];
        let programs = self.words[self.front..].split(|word| word == ":");
        let of_program = |words: &[OsString]| {
            let at = words.iter().position(|word| OPTIONS.iter().any(|option| word == option))?;
            words.get(at + 1)?.to_str()?.parse::<u32>().ok()
        };
        programs.map(of_program).try_fold(0u32, |sum, ranks| sum.checked_add(ranks?))
    }
}

/// Programs that run another program and may precede a launcher.
const WRAPPERS: &[&str] = &[
    "env", "ionice", "nice", "nohup", "numactl", "setsid", "stdbuf", "strace", "taskset", "time", "timeout",
    "xvfb-run",
];

/// Names of launchers.
const LAUNCHER_NAMES: &[&str] = &["mpirun", "mpiexec", "orterun", "srun", "prterun"];

/// The line that starts `program` (a program and its arguments, or a whole launcher line) on `ranks` ranks,
/// with `oversubscribe` possibly more than cores.
///
/// # Errors
/// A message if no launcher is found, or its kind is unknown.
pub fn compose(
    mpirun: Option<&str>,
    ranks: Option<u32>,
    oversubscribe: bool,
    program: &[OsString],
) -> Result<LauncherLine, String> {
    if program.is_empty() {
        return Err("no program given".into());
    }
    let (mut words, position, program) = match (mpirun, launcher_position(program)) {
        (Some(command), _) => {
            let words = split(command)?;
            let position = launcher_position(&words).unwrap_or(0);
            (words, position, program)
        }
        (None, Some(position)) => (program.to_vec(), position, &[][..]),
        (None, None) => (vec![find(program)?], 0, program),
    };
    let launcher = identify(Path::new(&words[position]))?;
    let front = position + 1;
    let mut options: Vec<OsString> = Vec::new();
    if oversubscribe {
        options.extend(launcher.oversubscribe().map(Into::into));
    }
    if let Some(ranks) = ranks {
        options.extend(["-n".into(), ranks.to_string().into()]);
    }
    // After the options in --mpirun, where the program begins; else directly after the launcher.
    let place = if program.is_empty() { front } else { words.len() };
    words.splice(place..place, options);
    words.extend(program.iter().cloned());
    Ok(LauncherLine { words, launcher, front })
}

/// Splits `--mpirun` into words as a shell does.
fn split(command: &str) -> Result<Vec<OsString>, String> {
    match shlex::split(command) {
        None => Err(format!("--mpirun {command}: a quote is not closed, or nothing follows a backslash")),
        Some(words) if words.is_empty() => Err("--mpirun is empty".into()),
        Some(words) => Ok(words.into_iter().map(OsString::from).collect()),
    }
}

/// Index of the launcher in a command line, possibly after wrappers (`env`, `time` …).
pub fn launcher_position(words: &[OsString]) -> Option<usize> {
    let first = Path::new(words.first()?).file_name()?.to_str()?;
    if !WRAPPERS.contains(&first) {
        return is_launcher_name(&words[0]).then_some(0);
    }
    // Stop at an MPI program: its arguments are its own.
    let mut words = words.iter().enumerate();
    let (position, word) =
        words.find(|(_, word)| is_launcher_name(word) || linked_mpi(Path::new(word)).is_some())?;
    is_launcher_name(word).then_some(position)
}

/// Adds options to `line` that set `variables` in the ranks.
///
/// # Errors
/// A message if the launcher cannot pass a value.
pub fn with_variables(line: LauncherLine, variables: &[Variable]) -> Result<LaunchPlan, String> {
    let LauncherLine { mut words, launcher, front } = line;
    let mut environment = Vec::new();
    let words = match launcher {
        LauncherKind::OpenMpi if words.iter().any(|word| ["-app", "--app"].iter().any(|app| word == app)) => {
            // With an application file Open MPI ignores all other options.
            return Ok(LaunchPlan { words, environment: vec![open_mpi_list(variables)?] });
        }
        LauncherKind::OpenMpi => {
            // Of version 5, worlds that the program spawns have the environment of mpirun alone.
            if is_prrte(Path::new(&words[front - 1])) && !is_sanitized(variables) {
                environment = variables.iter().map(|(name, value)| (name.into(), value.clone())).collect();
            }
            // `-x` applies to one program; repeat it after each colon of an MPMD line.
            let options: Vec<OsString> =
                variables.iter().flat_map(|variable| ["-x".into(), assignment(variable)]).collect();
            let mut out = Vec::with_capacity(words.len() + options.len());
            for (position, word) in words.into_iter().enumerate() {
                let starts_program = position + 1 == front || word == ":";
                out.push(word);
                if starts_program {
                    out.extend(options.iter().cloned());
                }
            }
            out
        }
        LauncherKind::Hydra => {
            let options = variables
                .iter()
                .flat_map(|(name, value)| ["-genv".into(), OsString::from(name), value.clone()]);
            words.splice(front..front, options.collect::<Vec<_>>());
            words
        }
        LauncherKind::Slurm => {
            let mut export = user_export(&mut words, front).unwrap_or_else(|| "ALL".into());
            for variable in variables {
                if variable.1.as_encoded_bytes().contains(&b',') {
                    return Err(format!("{}: srun --export cannot pass a value with a comma", variable.0));
                }
                export.push(",");
                export.push(assignment(variable));
            }
            let mut option = OsString::from("--export=");
            option.push(export);
            words.insert(front, option);
            words
        }
    };
    Ok(LaunchPlan { words, environment })
}

/// Whether an `mpirun` of Open MPI is that of version 5, which is PRRTE's.
fn is_prrte(mpirun: &Path) -> bool {
    let beside = which(mpirun).and_then(|path| Some(path.canonicalize().ok()?.parent()?.join("prterun")));
    beside.is_some_and(|prterun| prterun.is_file())
}

/// Whether the libraries in front of the recorder have AddressSanitizer, which would report the leaks of a launcher.
fn is_sanitized(variables: &[Variable]) -> bool {
    let has_it = |value: &OsStr| value.to_string_lossy().contains("libasan");
    variables.iter().any(|(name, value)| *name == "LD_PRELOAD" && has_it(value))
}

/// Sets `variables` in the environment of `program`, from which launchers pass them on: Open MPI and Hydra on
/// this host, srun on all hosts. A variable of Open MPI makes it pass them to other hosts.
///
/// # Errors
/// As [`with_variables`].
pub fn through_environment(program: &[OsString], variables: &[Variable]) -> Result<LaunchPlan, String> {
    let mut environment: Vec<_> =
        variables.iter().map(|(name, value)| (OsString::from(name), value.clone())).collect();
    environment.push(open_mpi_list(variables)?);
    Ok(LaunchPlan { words: program.to_vec(), environment })
}

/// The variable with which Open MPI sets variables in its ranks, appended to its current value.
fn open_mpi_list(variables: &[Variable]) -> Result<(OsString, OsString), String> {
    const NAME: &str = "OMPI_MCA_mca_base_env_list";
    let mut list = std::env::var_os(NAME).filter(|list| !list.is_empty()).unwrap_or_default();
    for variable in variables {
        if variable.1.as_encoded_bytes().contains(&b';') {
            return Err(format!("{}: Open MPI cannot pass a value with a semicolon here", variable.0));
        }
        if !list.is_empty() {
            list.push(";");
        }
        list.push(assignment(variable));
    }
    Ok((NAME.into(), list))
}

/// Removes the user's `--export` from the options of an `srun` line; returns the last one.
fn user_export(words: &mut Vec<OsString>, front: usize) -> Option<OsString> {
    let mut found = None;
    let mut at = front;
    while let Some(option) = words.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-'))
    {
        if let Some(list) = option.strip_prefix("--export=") {
            found = Some(OsString::from(list));
            words.remove(at);
        } else if option == "--export" && at + 1 < words.len() {
            found = Some(words.remove(at + 1));
            words.remove(at);
        } else {
            // The value is the next word, which does not begin with a dash, and the program follows.
            let value_follows = !option.contains('=')
                && words.get(at + 1).is_some_and(|next| !next.as_encoded_bytes().starts_with(b"-"))
                && words[at + 2..].iter().any(|word| word.as_encoded_bytes().starts_with(b"--export"));
            at += 1 + usize::from(value_follows);
        }
    }
    found
}

/// The variables with which the loader finds `library` in the ranks of the program among `words`: `LD_PRELOAD`, with the user's in front, and
/// what the program cannot be behind. The loader divides it at blanks and colons. A library in a directory with a blank is therefore named alone, and the directory is put first in `LD_LIBRARY_PATH`.
///
/// # Errors
/// A message if the loader cannot be given the path.
pub fn preload(library: &Path, words: &[OsString]) -> Result<Vec<Variable>, String> {
    let has = |path: &OsStr, wrong: &[u8]| path.as_encoded_bytes().iter().any(|byte| wrong.contains(byte));
    let joined = |parts: &mut dyn Iterator<Item = Option<OsString>>| {
        let parts: Vec<_> = parts.flatten().filter(|part| !part.is_empty()).collect();
        parts.join(OsStr::new(":"))
    };
    let users = std::env::var_os("LD_PRELOAD");
    // AddressSanitizer ends a program in which another library was loaded before it.
    let sanitizer = words.iter().find_map(|word| resolved(&libraries_of(Path::new(word))?, "libasan.so"));
    let is_there = |name: &Path| {
        users.as_ref().zip(name.file_name()).is_some_and(|(users, name)| {
            users.as_encoded_bytes().windows(name.len()).any(|part| part == name.as_encoded_bytes())
        })
    };
    let sanitizer = sanitizer.filter(|path| !is_there(path)).map(PathBuf::into_os_string);
    let preload = |name: &OsStr| {
        let mut list = [sanitizer.clone(), users.clone(), Some(name.into())].into_iter();
        ("LD_PRELOAD", joined(&mut list))
    };
    if !has(library.as_os_str(), b" :") {
        return Ok(vec![preload(library.as_os_str())]);
    }
    match (library.parent(), library.file_name()) {
        (Some(directory), Some(name)) if !has(directory.as_os_str(), b":;") && !has(name, b" :") => {
            let directories = [Some(directory.into()), std::env::var_os("LD_LIBRARY_PATH")];
            let directories = joined(&mut directories.into_iter());
            Ok(vec![preload(name), ("LD_LIBRARY_PATH", directories)])
        }
        _ => Err(format!(
            "{}: the loader cannot preload it: its directory must have no colon or semicolon in its path, its name no blank or colon",
            library.display()
        )),
    }
}

/// The path of `program`, as a shell finds it.
pub fn which(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let directories = std::env::var_os("PATH")?;
    std::env::split_paths(&directories).map(|directory| directory.join(program)).find(|path| path.is_file())
}

fn assignment((name, value): &Variable) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

/// Whether this is the name of a launcher.
fn is_launcher_name(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    LAUNCHER_NAMES.contains(&stem)
}

/// The launcher for `mpirun` before `arguments`: the first in PATH, unless the program is linked to another
/// MPI whose launcher is installed.
pub fn mpirun_for(arguments: &[OsString]) -> OsString {
    let mpirun = || OsString::from("mpirun");
    let Some(mpi) = mpi_of(arguments) else { return mpirun() };
    match identify(Path::new("mpirun")) {
        Ok(launcher) if Some(launcher) == mpi.launcher => mpirun(),
        _ => find(arguments).unwrap_or_else(|_| mpirun()),
    }
}

/// An MPI that a program is linked to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LinkedMpi {
    /// The kind of its launcher; `None`: a library with the standard ABI, which any MPI may have.
    launcher: Option<LauncherKind>,
    /// The library, as resolved by the loader.
    library: PathBuf,
}

impl LinkedMpi {
    /// The launcher that was installed with the library: `lib/libmpi.so` and `bin/mpiexec`.
    fn launcher_beside(&self) -> Option<PathBuf> {
        let directory = self.library.parent()?.parent()?.join("bin");
        ["mpiexec", "mpirun"].iter().map(|name| directory.join(name)).find(|path| path.is_file())
    }
}

/// The MPI that the program among these words is linked to; it may have wrappers (`env A=1 ./app`, `valgrind
/// ./app`).
fn mpi_of(words: &[OsString]) -> Option<LinkedMpi> {
    words.iter().find_map(|word| linked_mpi(Path::new(word)))
}

/// The launcher for the program among `words`: that of the MPI it is linked to if it can be determined, else
/// the first one found.
fn find(words: &[OsString]) -> Result<OsString, String> {
    let mpi = mpi_of(words);
    if let Some(launcher) = mpi.as_ref().and_then(LinkedMpi::launcher_beside) {
        return Ok(launcher.into());
    }
    let specific: &[&str] = match mpi.and_then(|mpi| mpi.launcher) {
        Some(LauncherKind::Hydra) => &["mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich"],
        Some(LauncherKind::OpenMpi) => &["mpirun.openmpi", "orterun"],
        _ => &[],
    };
    let general = ["mpirun", "mpiexec", "srun"];
    specific.iter().chain(&general).find(|name| which(Path::new(name)).is_some()).map(OsString::from).ok_or_else(|| {
        "no MPI launcher found (looked for mpirun, mpiexec, srun in PATH); install an MPI, or name one with --mpirun"
            .into()
    })
}

/// The MPI in the dynamic section of a program, as resolved by the loader.
fn linked_mpi(program: &Path) -> Option<LinkedMpi> {
    mpi_among(&libraries_of(program)?)
}

/// What `ldd` lists of a program; `None`: it is none.
fn libraries_of(program: &Path) -> Option<String> {
    // Launchers find a program in the current directory, too.
    let program = which(program).or_else(|| program.is_file().then(|| Path::new(".").join(program)))?;
    let mut magic = [0; 4];
    File::open(&program).and_then(|mut file| file.read_exact(&mut magic)).ok()?;
    if magic != *b"\x7fELF" {
        return None;
    }
    let listing = Command::new("ldd").arg(program).output().ok()?.stdout;
    Some(String::from_utf8_lossy(&listing).into_owned())
}

/// The MPI in a listing of `ldd`.
fn mpi_among(listing: &str) -> Option<LinkedMpi> {
    /// The beginnings of names, the first that fits first.
    const NAMES: [(&str, Option<LauncherKind>); 4] = [
        ("libmpich.so", Some(LauncherKind::Hydra)),
        ("libmpi.so.12", Some(LauncherKind::Hydra)),
        ("libmpi.so", Some(LauncherKind::OpenMpi)),
        ("libmpi_abi.so", None),
    ];
    NAMES.iter().find_map(|&(beginning, launcher)| {
        Some(LinkedMpi { launcher, library: resolved(listing, beginning)? })
    })
}

/// The path in a listing of `ldd` of the first library whose name begins so: lines such as
/// `libmpi.so.40 => /usr/lib/libmpi.so.40 (0x00007f…)`.
fn resolved(listing: &str, beginning: &str) -> Option<PathBuf> {
    let mut lines = listing.lines().filter_map(|line| line.trim().split_once(" => "));
    let (_, resolved) = lines.find(|(name, _)| name.starts_with(beginning))?;
    Some(resolved.rsplit_once(" (").map_or(resolved, |(path, _)| path).into())
}

/// Determines the kind of a launcher from its version text.
fn identify(launcher: &Path) -> Result<LauncherKind, String> {
    let answer = Command::new(launcher)
        .arg("--version")
        .output()
        .map_err(|error| format!("cannot start {}: {error}", launcher.display()))?;
    let text =
        String::from_utf8_lossy(&answer.stdout).into_owned() + &String::from_utf8_lossy(&answer.stderr);
    let text = text.to_lowercase();
    if text.contains("hydra") || text.contains("intel(r) mpi") {
        Ok(LauncherKind::Hydra)
    } else if text.contains("open mpi") || text.contains("openrte") || text.contains("prrte") {
        Ok(LauncherKind::OpenMpi)
    } else if text.contains("slurm") {
        Ok(LauncherKind::Slurm)
    } else {
        Err(format!(
            "{} --version does not say Open MPI, HYDRA or slurm: cannot tell how to reach its ranks",
            launcher.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(launcher: LauncherKind, text: &str) -> LauncherLine {
        LauncherLine { words: text.split(' ').map(OsString::from).collect(), launcher, front: 1 }
    }

    fn shown(plan: &Result<LaunchPlan, String>) -> String {
        let words = &plan.as_ref().expect("a plan").words;
        words.iter().map(|word| word.to_str().expect("ascii")).collect::<Vec<_>>().join(" ")
    }

    fn variables() -> Vec<Variable> {
        vec![("LD_PRELOAD", "/a.so:/b.so".into()), ("VEF_DIR", "/out".into())]
    }

    #[test]
    fn open_mpi_gets_the_variables_for_every_program_of_the_line() {
        let words = with_variables(line(LauncherKind::OpenMpi, "mpirun -n 2 ./a : -n 1 ./b x"), &variables());
        assert_eq!(
            shown(&words),
            "mpirun -x LD_PRELOAD=/a.so:/b.so -x VEF_DIR=/out -n 2 ./a : \
             -x LD_PRELOAD=/a.so:/b.so -x VEF_DIR=/out -n 1 ./b x"
        );
    }

    #[test]
    fn hydra_gets_them_once() {
        let words = with_variables(line(LauncherKind::Hydra, "mpiexec -n 2 ./a : -n 1 ./b"), &variables());
        assert_eq!(
            shown(&words),
            "mpiexec -genv LD_PRELOAD /a.so:/b.so -genv VEF_DIR /out -n 2 ./a : -n 1 ./b"
        );
    }

    #[test]
    fn slurm_keeps_the_rest_of_the_environment() {
        let words = with_variables(line(LauncherKind::Slurm, "srun -n 2 ./a"), &variables());
        assert_eq!(shown(&words), "srun --export=ALL,LD_PRELOAD=/a.so:/b.so,VEF_DIR=/out -n 2 ./a");
    }

    #[test]
    fn slurm_exports_what_its_user_wants_too() {
        let ours = "LD_PRELOAD=/a.so:/b.so,VEF_DIR=/out";
        for (given, expected) in [
            ("srun --export=NONE -n 2 ./a", format!("srun --export=NONE,{ours} -n 2 ./a")),
            ("srun -n 2 --export A=1,B ./a", format!("srun --export=A=1,B,{ours} -n 2 ./a")),
            ("srun -n 2 ./a --export=x", format!("srun --export=ALL,{ours} -n 2 ./a --export=x")),
        ] {
            assert_eq!(shown(&with_variables(line(LauncherKind::Slurm, given), &variables())), expected);
        }
        let comma = [("VEF_DIR", OsString::from("/a,b"))];
        assert!(with_variables(line(LauncherKind::Slurm, "srun ./a"), &comma).is_err());
    }

    #[test]
    fn options_go_behind_the_launcher_not_what_it_is_wrapped_in() {
        let words: Vec<OsString> = "env A=1 mpirun -n 2 ./a".split(' ').map(OsString::from).collect();
        assert_eq!(launcher_position(&words), Some(2));
        let wrapped = LauncherLine { front: 3, ..line(LauncherKind::Hydra, "env A=1 mpirun -n 2 ./a") };
        assert!(
            shown(&with_variables(wrapped, &variables())).starts_with("env A=1 mpirun -genv LD_PRELOAD ")
        );
        assert_eq!(launcher_position(&["./a".into(), "mpirun".into()]), None);
    }

    #[test]
    fn the_words_of_a_launcher_may_be_quoted() {
        let words = |command| split(command).map(|words| words.join(OsStr::new("|")));
        assert_eq!(words("'/my mpi/mpirun' --x \"a b\" c\\ d"), Ok("/my mpi/mpirun|--x|a b|c d".into()));
        assert!(words("mpirun 'x").is_err_and(|said| said.contains("quote")));
        assert!(words(" ").is_err_and(|said| said.contains("empty")));
    }

    #[test]
    fn an_application_file_leaves_the_environment_alone_to_open_mpi() {
        let plan =
            with_variables(line(LauncherKind::OpenMpi, "mpirun --app file"), &variables()).expect("a plan");
        assert_eq!(plan.words, ["mpirun", "--app", "file"]);
        let (name, value) = &plan.environment[0];
        assert_eq!(name, "OMPI_MCA_mca_base_env_list");
        assert!(value.to_str().expect("ascii").ends_with("LD_PRELOAD=/a.so:/b.so;VEF_DIR=/out"));
    }

    #[test]
    fn the_mpi_of_a_program_is_the_library_that_the_loader_finds() {
        let found =
            |listing: &str| mpi_among(listing).map(|mpi| (mpi.launcher, mpi.library.display().to_string()));
        let libc = "\tlibc.so.6 => /lib/libc.so.6 (0x1)\n";
        for (line, launcher, library) in [
            (
                "libmpich.so.12 => /usr/lib/libmpich.so.12 (0x7)",
                Some(LauncherKind::Hydra),
                "/usr/lib/libmpich.so.12",
            ),
            (
                "libmpi.so.12 => /a (b)/lib/libmpi.so.12 (0x7)",
                Some(LauncherKind::Hydra),
                "/a (b)/lib/libmpi.so.12",
            ),
            (
                "libmpi.so.40 => /usr/lib/libmpi.so.40 (0x7)",
                Some(LauncherKind::OpenMpi),
                "/usr/lib/libmpi.so.40",
            ),
            ("libmpi_abi.so.1 => /opt/lib/libmpi_abi.so.1 (0x7)", None, "/opt/lib/libmpi_abi.so.1"),
        ] {
            assert_eq!(found(&format!("{libc}\t{line}\n{libc}")), Some((launcher, library.to_owned())));
        }
        assert_eq!(found(libc), None);
    }

    #[test]
    fn the_launcher_beside_a_library_is_its_own() {
        let prefix = tempfile::tempdir().expect("a directory");
        let library = prefix.path().join("lib/libmpi_abi.so.1");
        let mpi = LinkedMpi { launcher: None, library };
        assert_eq!(mpi.launcher_beside(), None);
        let bin = prefix.path().join("bin");
        std::fs::create_dir(&bin).expect("a directory");
        std::fs::write(bin.join("mpirun"), "").expect("a file");
        assert_eq!(mpi.launcher_beside(), Some(bin.join("mpirun")));
    }

    #[test]
    fn launchers_are_known_by_name() {
        for name in ["mpirun", "/usr/bin/mpirun.openmpi", "mpiexec.hydra", "srun"] {
            assert!(is_launcher_name(OsStr::new(name)), "{name}");
        }
        for name in ["./mpirunner", "lmp", ""] {
            assert!(!is_launcher_name(OsStr::new(name)), "{name}");
        }
    }
}
