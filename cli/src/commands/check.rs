//! `vef check`: is a trace sound, does it replay to its end, and what is in it.

use crate::args::Check;
use crate::output::{self, EXIT_BAD_INPUT, Failure, grouped};
use std::process::ExitCode;
