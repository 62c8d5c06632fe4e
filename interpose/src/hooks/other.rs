//! Calls that a trace cannot represent: recorded by name with what they moved, as far as their arguments tell.

use crate::wrap::{Language, Row, find, simply};
use vef_format::units::Bytes;

/// One-sided transfers, I/O, spawning, neighbourhood collectives, partitioned communication.
#[allow(non_snake_case)]
pub(crate) fn Other<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply::<R, L, N>(words, next, |done, args| {
        let counted = const { find(R::NAMES, &["count", "sendcount", "origin_count"]).is_some() };
        let typed = const { find(R::NAMES, &["datatype", "sendtype", "origin_datatype"]).is_some() };
        let bytes = match (counted, typed) {
            (true, true) => done.datatype(args.datatype()).bytes(args.count()),
            // `MPI_Fetch_and_op`, `MPI_Compare_and_swap`: one element.
            (false, true) if const { find(R::NAMES, &["target_rank"]).is_some() } => {
                done.datatype(args.datatype()).bytes(1)
            }
            _ => Bytes::ZERO,
        };
        done.put_other(bytes);
    })
}

/// Calls that leave no event: counted.
#[allow(non_snake_case)]
pub(crate) fn Counted<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply::<R, L, N>(words, next, |_, _| {})
}
