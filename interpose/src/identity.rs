//! The identity of a run: a number that all ranks derive, each by itself, from what their launcher set, and that
//! differs between runs.

use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::parent_id;

/// Environment variables that identify a run. A row applies if its first variable is set.
const NAMES: [&[&str]; 3] = [
    // Set by `vef run`.
    &["VEF_RUN"],
    // Open MPI 4 derives the job number from the launcher's process ID and adds a random key; others make the namespace unique.
    &["PMIX_NAMESPACE", "OMPI_MCA_orte_precondition_transports"],
    &["OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_precondition_transports"],
];

/// Slurm's names of a job step. They may belong to a step that contains another launcher, hence the lowest priority.
const STEP: [&str; 2] = ["SLURM_JOB_ID", "SLURM_STEP_ID"];

/// The identity of the run; 0: unknown. `world`: the name of a spawned world.
pub(crate) fn identity(world: Option<&OsStr>) -> u64 {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let step = || STEP.map(variable).into_iter().collect::<Option<Vec<_>>>();
    // The host and port of Hydra's `mpiexec`, which Hydra passes only to its proxy on each host, the parent of the ranks.
    let control_port = || of_proxy(b"--control-port").map(|port| vec![port]);
    let found = named(variable).or_else(control_port).or_else(step);
    found.map_or(0, |parts| hash(parts.iter().map(OsString::as_os_str).chain(world)))
}

/// The values of the first variables that name a run.
fn named(variable: impl Fn(&str) -> Option<OsString>) -> Option<Vec<OsString>> {
    NAMES.iter().find_map(|names| {
        variable(names[0])?;
        Some(names.iter().filter_map(|name| variable(name)).collect())
    })
}

/// The number of a spawned world, from 1; `None`: unknown.
pub(crate) fn spawned() -> Option<u32> {
    let variable = |name: &str| std::env::var(name).ok();
    match variable("PMIX_NAMESPACE").or_else(|| variable("OMPI_MCA_ess_base_jobid")) {
        Some(job) => job_number(&job)?.checked_sub(1),
        None => of_proxy(b"--pgid")?.to_str()?.parse().ok(),
    }
    .filter(|&number| number > 0)
}

/// The number of an Open MPI job, from 1: the lower half of version 4's job ID; the part after the last `@` in later versions.
fn job_number(job: &str) -> Option<u32> {
    match job.rsplit_once('@') {
        Some((_, number)) => number.parse().ok(),
        None => job.parse::<u32>().ok().map(|job| job & 0xffff),
    }
}

/// An option of Hydra's proxy, an ancestor of this process.
fn of_proxy(option: &[u8]) -> Option<OsString> {
    /// The largest number of processes between the proxy and this one: scripts, debuggers.
    const MOST: usize = 16;
    std::env::var_os("PMI_FD")?;
    let ancestors = std::iter::successors(Some(parent_id()), |&process| parent_of(process));
    ancestors
        .take_while(|&process| process > 1)
        .take(MOST)
        .find_map(|process| value_of(option, &std::fs::read(format!("/proc/{process}/cmdline")).ok()?))
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name, in parentheses, may contain any character.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The value of an option in a command line, if the program is Hydra's proxy.
fn value_of(option: &[u8], line: &[u8]) -> Option<OsString> {
    let mut words = line.split(|&byte| byte == 0);
    words.next().filter(|program| program.ends_with(b"pmi_proxy"))?;
    words.find(|word| *word == option)?;
    words.next().map(|port| OsStr::from_bytes(port).to_owned())
}

/// Never 0.
fn hash<'a>(parts: impl Iterator<Item = &'a OsStr>) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.for_each(|part| part.hash(&mut hasher));
    hasher.finish().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launchers_variables_name_the_run() {
        let of = |set: &[(&str, &str)]| {
            let variable =
                |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            named(variable).map(|parts| hash(parts.iter().map(OsString::as_os_str)))
        };
        let (job, key) = (("PMIX_NAMESPACE", "12"), "OMPI_MCA_orte_precondition_transports");
        assert_eq!(of(&[("PATH", "/bin")]), None);
        assert_eq!(of(&[job, ("PMIX_RANK", "0")]), of(&[("PMIX_RANK", "1"), job]));
        assert_ne!(of(&[job, (key, "a")]), of(&[job, (key, "b")]));
        assert_eq!(of(&[job, (key, "a"), ("VEF_RUN", "x")]), of(&[("VEF_RUN", "x")]));
        assert_ne!(of(&[("VEF_RUN", "x")]), of(&[("VEF_RUN", "y")]));
    }

    #[test]
    fn jobs_of_open_mpi_are_numbered() {
        assert_eq!(
            ["3866492930", "1", "prterun-host-17@3", "x"].map(job_number),
            [Some(2), Some(1), Some(3), None]
        );
    }

    #[test]
    fn a_proxy_tells_where_its_mpiexec_listens() {
        let line = b"/usr/bin/hydra_pmi_proxy\0--rmk\0user\0--control-port\0host:35763\0--pgid\x000\0";
        assert_eq!(value_of(b"--control-port", line), Some("host:35763".into()));
        assert_eq!(value_of(b"--pgid", line), Some("0".into()));
        assert_eq!(value_of(b"--control-port", &line[..30]), None);
        assert_eq!(value_of(b"--control-port", b"sh\0--control-port\0x\0"), None);
        assert_eq!(parent_of(std::process::id()), Some(parent_id()));
    }
}
