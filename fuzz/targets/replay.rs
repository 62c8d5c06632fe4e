//! A replay of any trace ends, and a trace that is read while it is replayed gives what one in memory gives. The first
//! byte says when sends are complete; the rest is a text trace.
#![no_main]

use replay::{Engine, Job, Loaded, SendCompletion, yardstick};
use std::path::Path;
use std::sync::Arc;
use vef_format::operation::OpCodes;
use vef_format::text::Reader;
use vef_format::units::Bytes;

/// What came of a replay: its run time and whether it came to its end, or the error. A trace in memory was read to its
/// end before, so that errors of reading are not compared.
fn outcome(job: Job, how: u8) -> Option<Result<(u64, bool), String>> {
    let completion = match how % 5 {
        0 => SendCompletion::Eager,
        1 => SendCompletion::WhenSent,
        2 => SendCompletion::LargeWhenSent { above: Bytes(8) },
        3 => SendCompletion::Rendezvous { above: Bytes(8) },
        _ => SendCompletion::RendezvousInCalls { above: Bytes(8) },
    };
    let mut engine = Engine::builder().job(job).send_completion(completion).engine().ok()?;
    let outcome = yardstick::run(&mut engine, &yardstick::default_link());
    Some(outcome.map(|end| (end.runtime.0, end.stuck.is_none())).map_err(|error| error.to_string()))
}

vef_fuzz::target!(|bytes| {
    let Some((&how, trace)) = bytes.split_first() else { return };
    vef_fuzz::with_directory(|directory| {
        let path = directory.join("trace.vef");
        std::fs::write(&path, trace).expect("a temporary file");
        let streamed = Job::open(&path).ok().and_then(|job| outcome(job, how));
        let Ok(reader) = Reader::from_bytes(trace, Path::new("fuzz.vef")) else { return };
        let Ok(loaded) = Loaded::read(reader, OpCodes::default()) else { return };
        let in_memory = outcome(Job::loaded(&Arc::new(loaded)), how);
        if let (Some(Ok(streamed)), Some(Ok(in_memory))) = (streamed, in_memory) {
            assert_eq!(streamed, in_memory);
        }
    });
});
