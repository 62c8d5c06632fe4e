//! Placement files and what launchers take are refused, or put every rank on a node that exists. The first byte says
//! what the rest is: a placement file in one of its forms, or a request to a launcher with its files, parted by zeros.
#![no_main]

use placement::{PlacementFormat, LAUNCHERS, Launcher, Placement, Request};
use std::path::{Path, PathBuf};

fn check(placement: &Placement) {
    assert!(!placement.ranks.is_empty());
    for location in &placement.ranks {
        assert!((location.node as usize) < placement.nodes.len());
    }
}

/// A placement file comes back the same.
fn file(text: &str, format: PlacementFormat) {
    let Ok(placement) = Placement::parse(text, format, "fuzz") else { return };
    check(&placement);
    let again = Placement::parse(&placement.to_text(format), format, "fuzz").expect("what was written can be read");
    match format {
        // Names alone.
        PlacementFormat::Rankfile | PlacementFormat::Text => {
            assert_eq!(again.ranks.len(), placement.ranks.len());
        }
        _ => assert_eq!(again, placement),
    }
}

fn request(directory: &Path, launcher: &dyn Launcher, bytes: &[u8]) {
    let Some((&[which, more, processes], rest)) = bytes.split_first_chunk::<3>() else { return };
    let mut parts = rest.split(|&byte| byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let mut text = |bit: u8| (which & bit != 0).then(|| parts.next()).flatten();
    let (hostfile, rankfile, topology) = (text(1), text(2), text(4));
    let (hosts, node_list, slots, map_by, rank_by) = (text(8), text(16), text(32), text(64), text(128));
    let on_disk = |name: &str, content: Option<String>| -> Option<PathBuf> {
        let path = directory.join(name);
        std::fs::write(&path, content?).expect("a temporary file");
        Some(path)
    };
    let request = Request {
        processes: (more & 1 != 0).then_some(processes.into()),
        hostfile: on_disk("hostfile", hostfile),
        rankfile: on_disk("rankfile", rankfile),
        hwloc: on_disk("topology", topology),
        hosts: hosts.into_iter().collect(),
        node_list: node_list.and_then(|text| text.parse().ok()),
        slots: slots.and_then(|text| text.parse().ok()),
        map_by: map_by.and_then(|text| text.parse().ok()),
        rank_by: rank_by.and_then(|text| text.parse().ok()),
        by_node: more & 2 != 0,
        oversubscribe: more & 4 != 0,
        no_oversubscribe: more & 8 != 0,
        per_node: (more & 16 != 0).then_some((more >> 5).into()),
        ..Request::default()
    };
    if let Ok(placement) = launcher.place(&request) {
        check(&placement);
    }
}

vef_fuzz::target!(|bytes| {
    let Some((&what, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    vef_fuzz::with_directory(|directory| match what % 7 {
        0 => file(&text, PlacementFormat::Toml),
        1 => file(&text, PlacementFormat::Json),
        2 => file(&text, PlacementFormat::Text),
        other => request(directory, LAUNCHERS[usize::from(other) - 3], rest),
    });
});
