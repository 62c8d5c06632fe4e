//! How fast cursors yield messages: every algorithm over a few thousand ranks, one line each.
//!
//!     cargo run --release -p collectives --example speed

#![allow(clippy::print_stdout)]

use collectives::{Algorithm, Choice, Cursor, Member, Operation, Sizes, Step};
use std::hint::black_box;
use std::time::Instant;

fn main() -> Result<(), collectives::Error> {
    let ranks = 4096;
    for &operation in Operation::ALL {
        for algorithm in Algorithm::of(operation) {
            if matches!(algorithm, Algorithm::Nothing | Algorithm::SortedLinear | Algorithm::SortedBinomial) {
                continue;
            }
            let sizes = Sizes::Bytes(if operation == Operation::Barrier { 0 } else { 65_536 });
            let begin = Instant::now();
            let (mut messages, mut rank) = (0u64, 0);
            while begin.elapsed().as_millis() < 50 {
                let member = Member { operation, ranks, rank, root: 0, unit: 1 };
                let mut cursor = Cursor::new(member, Choice::plain(algorithm), black_box(sizes))?;
                while let Some(step) = cursor.next(sizes) {
                    messages += u64::from(matches!(black_box(step), Step::Send { .. } | Step::Recv { .. }));
                }
                rank = (rank + 1) % ranks;
            }
            let rate = messages as f64 / 2.0 / begin.elapsed().as_secs_f64() / 1e6;
            println!("{operation:>22} {algorithm:<20} {rate:8.1} M messages/s");
        }
    }
    Ok(())
}
