//! Free memory and peak memory of this process, as the system reports them.

use std::fs;
use std::path::Path;

/// Free memory in bytes, of the machine and of the control groups that contain this process (batch systems limit jobs
/// by these). `None` where the system does not report it.
pub(crate) fn free() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|facts| bytes(&facts, "MemAvailable:"));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine.into_iter().chain(left_by(&groups, Path::new("/sys/fs/cgroup"))).min()
}

/// Peak resident memory of this process, in bytes.
pub(crate) fn peak() -> Option<u64> {
    bytes(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The value in bytes of the line `of`, which is in kB.
fn bytes(facts: &str, of: &str) -> Option<u64> {
    let line = facts.lines().find_map(|line| line.strip_prefix(of))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Free memory within the limits of the control groups, ancestors included. `groups` is the content of
/// `/proc/self/cgroup`: hierarchy, controllers (none in version 2), path. Hierarchies are mounted below `root`.
fn left_by(groups: &str, root: &Path) -> Option<u64> {
    let mut least = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(place)) = (fields.next(), fields.next()) else { continue };
        let (mount, limit, used, kept) = match controllers {
            "" => (root.to_path_buf(), "memory.max", "memory.current", "active_file"),
            _ if controllers.split(',').any(|controller| controller == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_active_file")
            }
            _ => continue,
        };
        let inactive = kept.replace("active", "inactive");
        for group in Path::new(place.trim_start_matches('/')).ancestors() {
            let group = mount.join(group);
            let number = |name| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
            let Some((limit, used)) = number(limit).zip(number(used)) else { continue };
            // Page cache is reclaimed before the limit is enforced.
            let facts = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
            let pages: u64 = facts
                .lines()
                .filter_map(|line| line.split_once(' '))
                .filter(|&(name, _)| name == kept || name == inactive)
                .filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok())
                .sum();
            let left = limit.saturating_sub(used.saturating_sub(pages));
            least = Some(least.map_or(left, |least: u64| least.min(left)));
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrowest_group_decides() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        assert_eq!(left_by("0::/job/step\n", dir.path()), None);
        // The step has no limit of its own; its job has.
        write("job/step/memory.max", "max\n");
        write("job/step/memory.current", "100\n");
        write("job/memory.max", "5000\n");
        write("job/memory.current", "4000\n");
        write("job/memory.stat", "anon 1000\ninactive_file 1200\nactive_file 1800\nactive_file_other 9\n");
        assert_eq!(left_by("0::/job/step\n", dir.path()), Some(4000));
        write("job/step/memory.max", "600\n");
        assert_eq!(left_by("0::/job/step\n", dir.path()), Some(500));
        // Version 1, beside a version 2 hierarchy without limits.
        write("memory/job/memory.limit_in_bytes", "900\n");
        write("memory/job/memory.usage_in_bytes", "800\n");
        write("memory/job/memory.stat", "active_file 5\ntotal_active_file 300\ntotal_inactive_file 0\n");
        assert_eq!(left_by("12:cpu,cpuacct:/job\n5:memory:/job\n0::/\n", dir.path()), Some(400));
        write("memory/job/memory.limit_in_bytes", "70\n");
        assert_eq!(left_by("5:memory:/job\n", dir.path()), Some(0));
    }

    #[test]
    fn this_process_has_had_some() {
        // Only where the system reports it.
        assert!(peak().is_none_or(|peak| peak > 100_000));
        assert!(free().is_none_or(|free| free > 0));
    }
}
