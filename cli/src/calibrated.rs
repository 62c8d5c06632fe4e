//! Warnings about calibration files: figures that the measurement does not support, and figures that a run lacks.

use crate::output::remark;
use sim_example::calibration::{ADVICE, Calibration};
use std::path::Path;

/// Names the figures of `file` that its measurement does not support.
pub fn doubts(file: &Path, calibration: &Calibration) {
    let (file, doubts) = (file.display(), calibration.doubts());
    for doubt in &doubts {
        remark(format_args!("warning: {file}: {doubt}"));
    }
    if !doubts.is_empty() {
        remark(format_args!("warning: {file}: the measurement does not support these figures; {ADVICE}"));
    }
}

/// Names the figures that `file` lacks for a run with messages between nodes, or with ranks that share nodes.
pub fn lacks(file: &Path, calibration: &Calibration, between: bool, shared: bool) {
    if let Some(lacks) = calibration.lacks(between, shared) {
        remark(format_args!("warning: {}: {lacks}", file.display()));
    }
}
