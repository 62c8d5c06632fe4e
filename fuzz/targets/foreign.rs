//! Any bytes as a file of another tool are refused, or make a trace that is valid. The first byte chooses the format, and whether parts of
//! files are accepted.
#![no_main]

use interchange::{Files, Format, Imported, Options, Quiet, import};
use vef_format::validate::{self, validate};

vef_fuzz::target!(|bytes| {
    let Some((&how, rest)) = bytes.split_first() else { return };
    let format = Format::ALL[usize::from(how >> 1) % Format::ALL.len()];
    vef_fuzz::with_directory(|directory| {
        let (file, trace) = (directory.join("t-0000.bin"), directory.join("t.vef"));
        let capture = directory.join("capture");
        // That of the input before.
        let _ = std::fs::remove_dir_all(&capture);
        std::fs::write(&file, rest).expect("a temporary file");
        let Ok(files) = Files::of(&[file]) else { return };
        let options = Options { partial: how & 1 == 1, flops_per_second: Some(1e9), ..Options::default() };
        if let Some(checker) = format.info().checker {
            let _ = checker(&files, &options, &Quiet);
        }
        let imported = import(format, &files, &trace, || Ok(capture.clone()), &options, &Quiet);
        if let Ok(Imported::Trace(_)) = imported {
            let report = validate(&trace, &validate::Options::default()).expect("a trace");
            assert_eq!((report.errors, report.stuck_tasks), (0, 0), "{report:?}");
        }
    });
});
