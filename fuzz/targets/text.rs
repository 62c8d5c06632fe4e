//! A text trace is refused, or it is read and comes back the same when it is written.
#![no_main]

use vef_format::record::Version;
use vef_fuzz::{read_text, write_text};

vef_fuzz::target!(|bytes| {
    if let Ok((mut header, records)) = read_text(bytes) {
        let again = read_text(&write_text(&header, &records)).expect("what was written can be read");
        // What a writer always writes.
        (header.version, header.received) = (Version::V3, 0);
        assert_eq!(again, (header, records));
    }
});
