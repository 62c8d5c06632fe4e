//! A node list and its counts of slots, parted by a zero, are refused, or Slurm's rules place ranks on these nodes.
#![no_main]

use placement::{NodeList, Request, launcher};

vef_fuzz::target!(128, |bytes| {
    let mut parts = bytes.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let Some(Ok(nodes)) = parts.next().map(|text| text.parse::<NodeList>()) else { return };
    assert!(!nodes.0.is_empty() && nodes.0.iter().all(|name| !name.is_empty()));
    let slots = parts.next().and_then(|text| text.parse().ok());
    let request = Request { node_list: Some(nodes), slots, processes: Some(100), ..Request::default() };
    if let Ok(placement) = launcher("slurm").expect("one of LAUNCHERS").place(&request) {
        assert!(placement.ranks.iter().all(|location| (location.node as usize) < placement.nodes.len()));
    }
});
