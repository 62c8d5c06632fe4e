//! A trace of SimGrid is refused, or becomes a capture.
#![no_main]

vef_fuzz::target!(256, |bytes| vef_fuzz::tools::import(&[("trace.txt", bytes)]));
