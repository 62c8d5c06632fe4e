//! A GOAL schedule is refused, or runs to its end or to a stop that is explained. The first byte says under which settings.
#![no_main]

use std::path::Path;

use sim_example::loggp::{LogGp, Rendezvous, Schedule, run_schedule};

vef_fuzz::target!(512, |bytes| {
    let Some((&how, text)) = bytes.split_first() else { return };
    let Ok(schedule) = Schedule::from_bytes(Path::new("fuzz.goal"), text.to_vec()) else { return };
    let rendezvous = if how & 1 == 0 { Rendezvous::Late } else { Rendezvous::Handshake };
    let settings = LogGp { rendezvous, compat: how & 2 != 0, ..LogGp::default() };
    if let Ok(outcome) = run_schedule(&schedule, &settings) {
        assert_eq!((outcome.ranks, outcome.operations), (schedule.ranks, schedule.operations.len() as u64));
    }
});
