//! A calibration, a decision table or a placement in TOML is refused, or can be used. The first byte says which it is.
#![no_main]

use collectives::choose::Table;
use collectives::{Member, Operation, Sizes};
use placement::{Placement, PlacementFormat};
use sim_example::Settings;
use sim_example::calibration::Calibration;

vef_fuzz::target!(|bytes| {
    let Some((&what, text)) = bytes.split_first() else { return };
    match what % 3 {
        0 => vef_fuzz::with_directory(|directory| {
            let path = directory.join("calibration.toml");
            std::fs::write(&path, text).expect("a temporary file");
            let Ok(calibration) = Calibration::read(&path) else { return };
            calibration.doubts();
            let _ = calibration.apply(&mut Settings::default(), |_| false);
        }),
        1 => {
            let Ok(table) = Table::from_toml(&String::from_utf8_lossy(text)) else { return };
            for &operation in Operation::ALL {
                for (ranks, bytes) in [(1, 0), (3, 1000), (1 << 20, u64::MAX)] {
                    let member = Member { operation, ranks, rank: ranks - 1, root: 0, unit: 1 };
                    table.choose(&member, Sizes::Bytes(bytes));
                }
            }
        }
        _ => drop(Placement::parse(&String::from_utf8_lossy(text), PlacementFormat::Toml, "fuzz")),
    }
});
