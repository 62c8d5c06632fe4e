//! Where it was measured: hosts, processors, cores that ranks may use, load and stolen time.

use std::collections::BTreeSet;
use std::fs::read_to_string;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::world::World;

/// The machine as the ranks see it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Machine {
    /// Host of each rank.
    pub hosts: Vec<String>,
    /// Cores that each rank may run on, as Linux numbers them.
    pub cores: Vec<String>,
    /// Processor of rank 0's host.
    pub processor: String,
    /// `uname -sr` of rank 0's host.
    pub system: String,
    /// First line of what the MPI says it is.
    pub mpi: String,
    /// Whether a host has more ranks than cores that they may use.
    pub oversubscribed: bool,
    /// Bytes free on rank 0's host.
    pub memory: u64,
}

impl Machine {
    /// Looks at all ranks' hosts; complete at rank 0, `oversubscribed` at all. Collective.
    ///
    /// # Errors
    /// MPI's.
    pub fn look(world: &World) -> Result<Machine> {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let status = read_to_string("/proc/self/status").unwrap_or_default();
        let own_cores = field(&status, "Cpus_allowed_list:").to_owned();
        let hosts = world.gather_text(&host)?;
        let cores = world.gather_text(&own_cores)?;
        // Hosts that are namespaces of one machine share its cores, whatever they are called.
        let boot = read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boots = world.gather_text(boot.trim())?;
        let oversubscribed = world.agree(shares_cores(&hosts, &cores) || shares_cores(&boots, &cores))?;
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = cpuinfo.lines().find(|line| line.starts_with("model name"));
        let processor = name.and_then(|line| line.split_once(": ")).map_or("", |(_, name)| name).to_owned();
        let uname = rustix::system::uname();
        Ok(Machine {
            hosts,
            cores,
            processor,
            system: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            mpi: world.mpi.abi().version.lines().next().unwrap_or("").trim().to_owned(),
            oversubscribed,
            memory: free_memory(),
        })
    }
}

/// Whether more ranks have the same label than there are cores that they may use.
fn shares_cores(labels: &[String], cores: &[String]) -> bool {
    labels.iter().any(|label| {
        let here = || labels.iter().zip(cores).filter(|(other, _)| *other == label);
        let usable: BTreeSet<u32> = here().flat_map(|(_, cores)| numbers(cores)).collect();
        here().count() > usable.len().max(1)
    })
}

/// Bytes that programs can still get on this host; everything where the system does not say.
pub fn free_memory() -> u64 {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let available =
        field(&text, "MemAvailable:").split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok());
    available.map_or(u64::MAX, |kb| kb.saturating_mul(1024))
}

fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim)
}

/// The numbers of a list like `0-2,5`.
fn numbers(list: &str) -> Vec<u32> {
    list.split(',')
        .filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.trim().parse::<u32>().ok()?..=to.trim().parse::<u32>().ok()?)
        })
        .flatten()
        .collect()
}

/// How busy a host is with other things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostLoad {
    /// Load average of the last minute.
    pub load: f64,
    /// Share of processor time that the hypervisor took away, of all time since the previous look.
    pub stolen: f64,
    /// Share of processor time in use, of all time since the previous look.
    pub busy: f64,
}

/// Looks at the load of this host again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadMeter {
    all: f64,
    idle: f64,
    stolen: f64,
}

impl LoadMeter {
    /// The load now, and shares since this was last called (since boot, the first time).
    pub fn look(&mut self) -> HostLoad {
        let stat = read_to_string("/proc/stat").unwrap_or_default();
        let ticks: Vec<f64> =
            field(&stat, "cpu ").split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0.0);
        let now = LoadMeter { all: ticks.iter().take(8).sum(), idle: at(3) + at(4), stolen: at(7) };
        let (all, idle, stolen) = (now.all - self.all, now.idle - self.idle, now.stolen - self.stolen);
        *self = now;
        let share = |part: f64| if all > 0.0 { part / all } else { 0.0 };
        let average = read_to_string("/proc/loadavg").unwrap_or_default();
        let load = average.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0);
        HostLoad { load, stolen: share(stolen), busy: share(all - idle) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        assert_eq!(numbers("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(numbers(""), [] as [u32; 0]);
    }

    #[test]
    fn this_host_says_something() {
        let mut meter = LoadMeter::default();
        let load = meter.look();
        assert!((0.0..=1.0).contains(&load.stolen) && (0.0..=1.0).contains(&load.busy), "{load:?}");
        assert!(free_memory() > 1 << 20);
    }
}
