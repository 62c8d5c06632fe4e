//! How people see a report's values, in the terminal and on the page.

use results::report::Captured;
use results::shown::time;
use results::table::Cell;

/// The name of a measure of ranks, and the cells of its values.
pub(super) fn measure(name: &str) -> (&'static str, fn(u128) -> Cell) {
    match name {
        "computing_ps" => ("computing", Cell::Time),
        "sent_bytes" => ("bytes sent", Cell::Bytes),
        "received_bytes" => ("bytes received", Cell::Bytes),
        "sent_messages" => ("messages sent", Cell::Count),
        "received_messages" => ("messages received", Cell::Count),
        _ => ("parts of collectives", Cell::Count),
    }
}

/// A share, if there is one; else it is sorted as 0.
pub(super) fn share(share: Option<f64>) -> Cell {
    share.map_or_else(|| Cell::Worded(0.0, "–".to_owned()), Cell::Share)
}

/// How long a captured run took.
pub(super) fn spans(captured: &Captured) -> String {
    let [init, skew] = [captured.initialisation_ps, captured.launch_skew_ps].map(time);
    match captured.span_ps {
        Some(span) => {
            let span = time(span);
            format!(
                "{span} between MPI_Init and MPI_Finalize (longest rank); MPI_Init took {init} at most; launch skew {skew}"
            )
        }
        None => {
            format!("MPI_Init took {init} at most; launch skew {skew}; not all ranks came to MPI_Finalize")
        }
    }
}

/// A bandwidth.
pub(super) fn rate(bits_per_second: u64) -> String {
    let (factor, unit) = match bits_per_second {
        0..1_000_000 => (1e3, "kbit/s"),
        1_000_000..1_000_000_000 => (1e6, "Mbit/s"),
        _ => (1e9, "Gbit/s"),
    };
    format!("{} {unit}", bits_per_second as f64 / factor)
}
