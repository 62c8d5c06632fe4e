//! Validation of any trace ends, and what it finds does not depend on how much of it is kept.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use vef_format::text::Reader;
use vef_format::validate::{Options, Validator};

fuzz_target!(|bytes: &[u8]| {
    let validate = |keep: usize| {
        let options = Options { keep, ..Options::default() };
        let mut reader = Reader::from_bytes(bytes, Path::new("fuzz.vef")).ok()?.ignore_counts();
        let mut validator = Validator::new(reader.header(), &options);
        while let Some((number, line)) = reader.next_numbered().ok()? {
            validator.add(number, &line);
        }
        Some(validator.finish())
    };
    if let (Some(all), Some(none)) = (validate(1000), validate(0)) {
        assert_eq!((all.errors, all.warnings, all.stuck_tasks), (none.errors, none.warnings, none.stuck_tasks));
        assert!(none.problems.is_empty());
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        for problem in &all.problems {
            assert!((1..=lines).contains(&problem.line), "{problem}");
        }
    }
});
