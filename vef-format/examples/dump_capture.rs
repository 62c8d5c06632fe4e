//! Prints the events of a capture, a line each: `cargo run -p vef-format --example dump_capture DIR [RANK]`.

#![allow(clippy::print_stdout)] // its purpose

use std::error::Error;
use std::io::{BufWriter, Write};
use std::path::Path;
use vef_format::capture::Capture;
use vef_format::ids::Rank;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("usage: dump_capture DIR [RANK]")?;
    let only = arguments.next().map(|rank| rank.parse()).transpose()?.map(Rank);
    let capture = Capture::open(Path::new(&dir))?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    for rank in (0..capture.tasks()).map(Rank).filter(|rank| only.is_none_or(|only| only == *rank)) {
        if let Some(info) = capture.rank(rank) {
            writeln!(out, "rank {rank}: {info:?}")?;
        }
        let mut events = capture.events(rank)?;
        let mut zero = None;
        let mut count = 0u64;
        events.each(|event| {
            let zero = *zero.get_or_insert(event.start.0);
            let at = event.start.0 as i64 - zero as i64;
            let took = event.end.0 - event.start.0;
            writeln!(out, "{rank}.{} {at:>12} +{took:<8} {:?}", event.thread, event.action)?;
            count += 1;
            Ok::<_, Box<dyn Error>>(())
        })?;
        writeln!(
            out,
            "rank {rank}: {count} events, {:?}; calls: {:?}",
            events.ending(),
            capture.functions(rank)?
        )?;
    }
    Ok(())
}
