//! Numbers and foreign text as people read them, in the terminal and on the page.

use results::Exact;
use results::report::Captured;
use vef_format::units::{Bytes, Grouped, Picos};

pub(super) fn count(value: Exact) -> String {
    Grouped(value).to_string()
}

/// With a unit that fits.
pub(super) fn bytes(value: Exact) -> String {
    let of_large = |_| format!("{} EB", Grouped(value.0 / 1_000_000_000_000_000_000));
    u64::try_from(value.0).map_or_else(of_large, |value| Bytes(value).to_string())
}

/// The name of a measure of ranks, and how its values are shown.
pub(super) fn measure_of_ranks(measure: &str) -> (&'static str, fn(Exact) -> String) {
    match measure {
        "computing_ps" => ("computing", time),
        "sent_bytes" => ("bytes sent", bytes),
        "received_bytes" => ("bytes received", bytes),
        "sent_messages" => ("messages sent", count),
        "received_messages" => ("messages received", count),
        _ => ("parts of collectives", count),
    }
}

pub(super) fn time(value: Exact) -> String {
    let of_large = |_| format!("{} s", Grouped(value.0 / 1_000_000_000_000));
    u64::try_from(value.0).map_or_else(of_large, |value| Picos(value).to_string())
}

/// Text of a program or a file for a terminal: control characters but the end of a line are escaped.
pub(super) fn printable(text: &str) -> String {
    vef_format::units::Printable(text).to_string()
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

pub(super) fn range(from: u128, to: u128) -> String {
    if from == to { Grouped(from).to_string() } else { format!("{} … {}", Grouped(from), Grouped(to)) }
}
