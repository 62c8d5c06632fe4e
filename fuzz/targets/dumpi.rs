//! A rank's file of DUMPI is refused, or becomes a capture.
#![no_main]

vef_fuzz::target!(256, |bytes| vef_fuzz::tools::import(&[("run-0000.bin", bytes)]));
