//! A capture of the older layout is refused, or read to its end. The input is the lengths of `VEFT.main` and of
//! `0.comm`, then these, then `0.veft`.
#![no_main]

use vef_format::capture::legacy::{Events, Main, Options, UnknownEvents};
use vef_format::ids::Rank;

vef_fuzz::target!(|bytes| {
    let Some((&[main, comm], rest)) = bytes.split_first_chunk::<2>() else { return };
    let (main, rest) = rest.split_at(rest.len().min(main.into()));
    let (comm, calls) = rest.split_at(rest.len().min(comm.into()));
    vef_fuzz::with_directory(|directory| {
        for (name, content) in [("VEFT.main", main), ("0.comm", comm), ("0.veft", calls)] {
            std::fs::write(directory.join(name), content).expect("a temporary file");
        }
        let Ok(main) = Main::open(directory) else { return };
        for unknown in [UnknownEvents::Refuse, UnknownEvents::Skip] {
            let options = Options { unknown, ..Options::default() };
            let Ok(mut events) = Events::open(&main, Rank(0), &options) else { return };
            while let Ok(Some(event)) = events.next() {
                assert!(event.start <= event.end);
            }
            assert!(events.records() <= calls.len() as u64 / 40);
        }
    });
});
