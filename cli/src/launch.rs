//! Starting an MPI program so that the preload library is in its ranks, and nowhere else.
//!
//! The launchers carry single environment variables to the ranks by options of their own; the launcher itself,
//! its daemons and the shells around them are left alone. An `LD_PRELOAD` that the user has set stays in front.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The kinds of launcher whose options are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// Open MPI's `mpirun`: `-x NAME=VALUE`, one for each program of an MPMD line.
    OpenMpi,
    /// MPICH's (also Intel's, MVAPICH's) `mpiexec.hydra`: `-genv NAME VALUE`.
    Hydra,
    /// Slurm's `srun`: `--export=ALL,NAME=VALUE`.
    Slurm,
}

/// A variable that the ranks are to find in their environment.
pub type Variable = (&'static str, OsString);

/// What to start: a launcher command line split into words, as the user would type it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The launcher and its arguments, with the program and its arguments at the end.
    pub words: Vec<OsString>,
    /// Which launcher it is.
    pub launcher: Launcher,
}

/// The names launchers go by.
const LAUNCHER_NAMES: &[&str] = &["mpirun", "mpiexec", "orterun", "srun", "prterun"];

/// The line that starts `program` (a program and its arguments, or a launcher line that the user gave whole)
/// on `ranks` ranks.
///
/// # Errors
/// A sentence for the user when no launcher is found, or its kind cannot be told.
pub fn compose(mpirun: Option<&str>, ranks: Option<u32>, program: &[OsString]) -> Result<Line, String> {
    let Some(first) = program.first() else { return Err("no program given".into()) };
    if mpirun.is_none() && is_launcher_name(first) {
        let launcher = identify(Path::new(first))?;
        let mut words = program.to_vec();
        if let Some(ranks) = ranks {
            words.splice(1..1, ["-n".into(), ranks.to_string().into()]);
        }
        return Ok(Line { words, launcher });
    }
    let mut words = match mpirun {
        Some(command) => command.split_whitespace().map(OsString::from).collect(),
        None => vec![find(Path::new(first))?],
    };
    let Some(name) = words.first() else { return Err("--mpirun is empty".into()) };
    let launcher = identify(Path::new(name))?;
    if let Some(ranks) = ranks {
        words.extend(["-n".into(), ranks.to_string().into()]);
    }
    words.extend(program.iter().cloned());
    Ok(Line { words, launcher })
}

/// `line` with options that give `variables` to the ranks.
pub fn with_variables(line: Line, variables: &[Variable]) -> Vec<OsString> {
    let mut words = line.words;
    match line.launcher {
        Launcher::OpenMpi => {
            // `-x` holds for one program; an MPMD line repeats it behind every colon.
            let options: Vec<OsString> =
                variables.iter().flat_map(|variable| ["-x".into(), assignment(variable)]).collect();
            let mut out = Vec::with_capacity(words.len() + options.len());
            for (position, word) in words.into_iter().enumerate() {
                let starts_program = position == 0 || word == ":";
                out.push(word);
                if starts_program {
                    out.extend(options.iter().cloned());
                }
            }
            out
        }
        Launcher::Hydra => {
            let options = variables
                .iter()
                .flat_map(|(name, value)| ["-genv".into(), OsString::from(name), value.clone()]);
            words.splice(1..1, options.collect::<Vec<_>>());
            words
        }
        Launcher::Slurm => {
            let mut export = OsString::from("--export=ALL");
            for variable in variables {
                export.push(",");
                export.push(assignment(variable));
            }
            words.insert(1, export);
            words
        }
    }
}

/// The value of `LD_PRELOAD` for the ranks: what the user has set already, then `library`.
pub fn preload(library: &Path) -> OsString {
    match std::env::var_os("LD_PRELOAD").filter(|set| !set.is_empty()) {
        None => library.into(),
        Some(mut value) => {
            value.push(":");
            value.push(library);
            value
        }
    }
}

/// Where `program` is, as a shell would find it.
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

/// Whether a program of that name is a launcher.
pub fn is_launcher_name(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    LAUNCHER_NAMES.contains(&stem)
}

/// The launcher for `program`: that of the MPI it is linked to where both can be told, else the first there is.
fn find(program: &Path) -> Result<OsString, String> {
    let specific: &[&str] = match linked_mpi(program) {
        Some(Launcher::Hydra) => &["mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich"],
        Some(Launcher::OpenMpi) => &["mpirun.openmpi", "orterun"],
        _ => &[],
    };
    let general = ["mpirun", "mpiexec", "srun"];
    specific.iter().chain(&general).find(|name| which(Path::new(name)).is_some()).map(OsString::from).ok_or_else(|| {
        "no MPI launcher found (looked for mpirun, mpiexec, srun in PATH); install an MPI, or name one with --mpirun"
            .into()
    })
}

/// Which MPI a program's dynamic section asks for, as the loader resolves it.
fn linked_mpi(program: &Path) -> Option<Launcher> {
    let listing = Command::new("ldd").arg(which(program)?).output().ok()?.stdout;
    let listing = String::from_utf8_lossy(&listing);
    if listing.contains("libmpich.so") || listing.contains("libmpi.so.12") {
        Some(Launcher::Hydra)
    } else if listing.contains("libmpi.so") {
        Some(Launcher::OpenMpi)
    } else {
        None
    }
}

/// Asks a launcher what it is.
fn identify(launcher: &Path) -> Result<Launcher, String> {
    let answer = Command::new(launcher)
        .arg("--version")
        .output()
        .map_err(|error| format!("cannot start {}: {error}", launcher.display()))?;
    let text =
        String::from_utf8_lossy(&answer.stdout).into_owned() + &String::from_utf8_lossy(&answer.stderr);
    let text = text.to_lowercase();
    if text.contains("hydra") || text.contains("intel(r) mpi") {
        Ok(Launcher::Hydra)
    } else if text.contains("open mpi") || text.contains("openrte") || text.contains("prrte") {
        Ok(Launcher::OpenMpi)
    } else if text.contains("slurm") {
        Ok(Launcher::Slurm)
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

    fn line(launcher: Launcher, text: &str) -> Line {
        Line { words: text.split(' ').map(OsString::from).collect(), launcher }
    }

    fn shown(words: &[OsString]) -> String {
        words.iter().map(|word| word.to_str().expect("ascii")).collect::<Vec<_>>().join(" ")
    }

    fn variables() -> Vec<Variable> {
        vec![("LD_PRELOAD", "/a.so:/b.so".into()), ("VEF_DIR", "/out".into())]
    }

    #[test]
    fn open_mpi_gets_the_variables_for_every_program_of_the_line() {
        let words = with_variables(line(Launcher::OpenMpi, "mpirun -n 2 ./a : -n 1 ./b x"), &variables());
        assert_eq!(
            shown(&words),
            "mpirun -x LD_PRELOAD=/a.so:/b.so -x VEF_DIR=/out -n 2 ./a : \
             -x LD_PRELOAD=/a.so:/b.so -x VEF_DIR=/out -n 1 ./b x"
        );
    }

    #[test]
    fn hydra_gets_them_once() {
        let words = with_variables(line(Launcher::Hydra, "mpiexec -n 2 ./a : -n 1 ./b"), &variables());
        assert_eq!(
            shown(&words),
            "mpiexec -genv LD_PRELOAD /a.so:/b.so -genv VEF_DIR /out -n 2 ./a : -n 1 ./b"
        );
    }

    #[test]
    fn slurm_keeps_the_rest_of_the_environment() {
        let words = with_variables(line(Launcher::Slurm, "srun -n 2 ./a"), &variables());
        assert_eq!(shown(&words), "srun --export=ALL,LD_PRELOAD=/a.so:/b.so,VEF_DIR=/out -n 2 ./a");
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
