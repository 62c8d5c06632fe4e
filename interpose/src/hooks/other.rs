//! Calls that a trace cannot represent: recorded by name with what they moved, as far as their arguments tell.

use crate::requests::Template;
use crate::wrap::{Args, Done, Language, Row, find, simply, simply_even_paused};
use mpi_abi::arguments::Kind;
use mpi_abi::prototypes::Call;
use vef_format::units::Bytes;

/// One-sided transfers, I/O, spawning, neighbourhood collectives.
#[allow(non_snake_case)]
pub(crate) fn Other<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply::<R, L, N>(words, next, |done, args| {
        // Asking in vain, perhaps a million times, is counted.
        if const { find(R::NAMES, &["flag"]).is_some() } && args.int_at(args.flag(), 0) == 0 {
            return;
        }
        let bytes = moved(done, args);
        done.put_other(bytes);
    })
}

/// Makes a persistent operation of this kind: each start of it is recorded, under the name of the function that made it.
#[allow(non_snake_case)]
pub(crate) fn OtherPersistent<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    simply_even_paused::<R, L, N>(words, next, |done, args| {
        let bytes = moved(done, args);
        done.keep_template(args, Template::Other(R::CALL, bytes));
    })
}

/// Partitioned communication: the transfers as persistent operations, `MPI_Pready` and its like by themselves.
#[allow(non_snake_case)]
pub(crate) fn Partitioned<R: Row, L: Language, const N: usize>(
    words: [usize; N],
    next: impl FnOnce([usize; N]) -> i32,
) -> i32 {
    if const { find(R::NAMES, &["partitions"]).is_some() } {
        OtherPersistent::<R, L, N>(words, next)
    } else {
        Other::<R, L, N>(words, next)
    }
}

/// What a call of this rank moves: what it sends where it sends something, else what it receives or reads.
fn moved<R: Row, L: Language>(done: &mut Done<'_>, args: &Args<'_, R, L>) -> Bytes {
    let has = |names: &[&str]| find(R::NAMES, names).is_some();
    if const { find(R::NAMES, &["sendtypes"]).is_some() } {
        let (_, out) = done.neighbours(args);
        let each = |done: &mut Done<'_>, i| {
            let datatype = args.handle_at(Kind::DatatypeArray, args.sendtypes(), i);
            // A type that goes with no elements need not be one.
            match args.number_at(args.sendcounts(), i) {
                0 => Bytes::ZERO,
                count => done.datatype(datatype).bytes(count),
            }
        };
        return sum((0..out).map(|i| each(done, i)));
    }
    if const { find(R::NAMES, &["sendcounts"]).is_some() } {
        let (_, out) = done.neighbours(args);
        let datatype = done.datatype(args.datatype());
        return sum((0..out).map(|i| datatype.bytes(args.number_at(args.sendcounts(), i))));
    }
    let counted = has(&["count", "sendcount", "origin_count"]);
    if !has(&["datatype", "sendtype", "origin_datatype"]) {
        return Bytes::ZERO;
    }
    // `MPI_Fetch_and_op`, `MPI_Compare_and_swap`: one element.
    let elements = if counted { args.count() } else { i64::from(has(&["target_rank"])) };
    let times = if const { find(R::NAMES, &["sendcount"]).is_some() } {
        done.neighbours(args).1 as i64
    } else if const { find(R::NAMES, &["partitions"]).is_some() } {
        i64::from(args.partitions())
    } else {
        1
    };
    match elements.saturating_mul(times) {
        // Without elements the datatype need not be one.
        0 => Bytes::ZERO,
        elements => done.datatype(args.datatype()).bytes(elements),
    }
}

/// What this rank sends in a collective between two groups, as far as its own arguments tell: a block for all.
pub(crate) fn sent_between_groups<R: Row, L: Language>(done: &mut Done<'_>, args: &Args<'_, R, L>) -> Bytes {
    use Call::*;
    let counted = const { find(R::NAMES, &["count", "sendcount"]).is_some() };
    let sends = match const { find(R::NAMES, &["root"]) } {
        None => true,
        Some(_) => {
            // The root says so, those of its group say that they have no part, the others name it.
            let from_root = matches!(
                R::CALL,
                MPI_Bcast
                    | MPI_Bcast_c
                    | MPI_Ibcast
                    | MPI_Ibcast_c
                    | MPI_Scatter
                    | MPI_Scatter_c
                    | MPI_Iscatter
                    | MPI_Iscatter_c
            );
            if from_root { args.root() == args.abi.constants.root } else { args.root() >= 0 }
        }
    };
    match counted && sends && args.count() != 0 {
        true => done.datatype(args.datatype()).bytes(args.count()),
        false => Bytes::ZERO,
    }
}

fn sum(bytes: impl Iterator<Item = Bytes>) -> Bytes {
    Bytes(bytes.fold(0, |sum, bytes| sum.wrapping_add(bytes.0)))
}

impl Done<'_> {
    /// How many neighbours the communicator of the call has: those it receives from, and those it sends to.
    fn neighbours<R: Row, L: Language>(&mut self, args: &Args<'_, R, L>) -> (usize, usize) {
        let mpi = &self.lane.tracer.mpi;
        self.shared.comms.neighbours(mpi, args.comm())
    }
}
