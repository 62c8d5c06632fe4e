//! A hostfile, machine file, rankfile or hwloc topology is refused, or a launcher places every rank on a node that exists. The first
//! bytes say which launcher and which files; these are parted by zeros.
#![no_main]

use placement::{LAUNCHERS, Request};
use std::path::PathBuf;

vef_fuzz::target!(|bytes| {
    let Some((&[launcher, files, processes], rest)) = bytes.split_first_chunk::<3>() else { return };
    vef_fuzz::with_directory(|directory| {
        let mut parts = rest.split(|&byte| byte == 0);
        let mut file = |bit: u8, name: &str| -> Option<PathBuf> {
            let path = directory.join(name);
            std::fs::write(&path, (files & bit != 0).then(|| parts.next()).flatten()?).expect("a temporary file");
            Some(path)
        };
        let request = Request {
            hostfile: file(1, "hostfile"),
            rankfile: file(2, "rankfile"),
            hwloc: file(4, "topology"),
            hosts: parts.next().map(|hosts| String::from_utf8_lossy(hosts).into_owned()).into_iter().collect(),
            processes: (processes > 0).then_some(processes.into()),
            by_node: files & 8 != 0,
            oversubscribe: files & 16 != 0,
            ..Request::default()
        };
        let launcher = LAUNCHERS[usize::from(launcher) % LAUNCHERS.len()];
        if let Ok(placement) = launcher.place(&request) {
            assert!(placement.ranks.iter().all(|location| (location.node as usize) < placement.nodes.len()));
            placement.to_table(|count| count.to_string());
        }
    });
});
