//! Tables of operation codes and decision tables are refused, or can be used. The first byte says which the rest is.
#![no_main]

use collectives::choose::Table;
use collectives::{Operation, Member, Sizes, steps};
use std::path::Path;
use vef_format::operation::OpCodes;

fn op_codes(text: &str) {
    let Ok(table) = OpCodes::parse(text, Path::new("fuzz")) else { return };
    assert!(!table.rows().is_empty());
    for &(code, operation) in table.rows() {
        assert_eq!((table.operation(code), table.code(operation)), (Some(operation), Some(code)));
    }
}

fn decisions(text: &str) {
    let Ok(table) = Table::from_toml(text) else { return };
    for &operation in Operation::ALL {
        for ranks in [1, 2, 3, 8] {
            let member = Member { operation, ranks, rank: ranks - 1, root: 0, unit: 1 };
            for bytes in [0, 1, 1000] {
                let choice = table.choose(&member, Sizes::Bytes(bytes));
                // Counted, so that they are made.
                if let Ok(steps) = steps(member, choice, Sizes::Bytes(bytes)) {
                    assert!(ranks > 1 || steps.count() < 100);
                }
            }
        }
    }
}

vef_fuzz::target!(|bytes| {
    let Some((&what, rest)) = bytes.split_first() else { return };
    let text = String::from_utf8_lossy(rest);
    match what % 2 {
        0 => op_codes(&text),
        _ => decisions(&text),
    }
});
