//! A placement file is refused, or puts every rank on a node that exists and comes back the same when it is written. The first byte
//! says which form it has.
#![no_main]

use placement::{Placement, PlacementFormat};

vef_fuzz::target!(|bytes| {
    let Some((&what, rest)) = bytes.split_first() else { return };
    let format = match what % 3 {
        0 => PlacementFormat::Toml,
        1 => PlacementFormat::Json,
        _ => PlacementFormat::Text,
    };
    let Ok(placement) = Placement::parse(&String::from_utf8_lossy(rest), format, "fuzz") else { return };
    assert!(!placement.ranks.is_empty());
    assert!(placement.ranks.iter().all(|location| (location.node as usize) < placement.nodes.len()));
    let again = Placement::parse(&placement.to_text(format), format, "fuzz").expect("what was written can be read");
    // Text has the names of nodes alone.
    match format {
        PlacementFormat::Rankfile | PlacementFormat::Text => {
            assert_eq!(again.ranks.len(), placement.ranks.len());
        }
        _ => assert_eq!(again, placement),
    }
    placement.to_table(|count| count.to_string());
    placement.to_getinfo();
});
