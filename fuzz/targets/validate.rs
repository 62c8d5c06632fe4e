//! Validation of any trace ends, and what it finds does not depend on how much of it is kept. A repair of it
//! ends, and what it writes is complete.
#![no_main]

use std::path::Path;
use vef_format::text::Reader;
use vef_format::validate::{Options, Validator, repair, validate};

vef_fuzz::target!(|bytes| {
    let found = |keep: usize| {
        let options = Options { keep, ..Options::default() };
        let mut reader = Reader::from_bytes(bytes, Path::new("fuzz.vef")).ok()?.ignore_counts();
        let mut validator = Validator::new(reader.header(), &options);
        while let Some((number, line)) = reader.next_numbered().ok()? {
            validator.add(number, &line);
        }
        Some(validator.finish())
    };
    if let (Some(all), Some(none)) = (found(1000), found(0)) {
        assert_eq!((all.errors, all.warnings, all.stuck_tasks), (none.errors, none.warnings, none.stuck_tasks));
        assert!(none.problems.is_empty());
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        for problem in &all.problems {
            assert!((1..=lines).contains(&problem.place.line), "{problem}");
        }
        vef_fuzz::with_directory(|directory| {
            let (from, to) = (directory.join("damaged.vef"), directory.join("repaired.vef"));
            std::fs::write(&from, bytes).expect("a temporary file");
            let _ = std::fs::remove_file(&to);
            let repaired = repair(&from, &to, &Options::default()).expect("every line could be read");
            assert_eq!(repaired.report.is_complete(), to.exists());
            if to.exists() {
                assert!(validate(&to, &Options::default()).expect("what was written can be read").is_complete());
            }
        });
    }
});
