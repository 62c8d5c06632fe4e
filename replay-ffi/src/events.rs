//! Which collectives a `vef_builder` makes events of.

use crate::border;
use crate::builder::{Builder, describe};
use crate::message::kind;
use replay::{CollectiveEvents, CommId, EventOn, Kind};
use std::ffi::c_int;

/// Collectives of all jobs that the simulator carries out itself, as events instead of messages: in-network reduction, multicast by
/// hardware, an algorithm of its own. `kinds` has bit 1 << k for the operation of kind k (`vef_kind_name`); `UINT32_MAX` is all. With
/// `each_entry` 0 a collective is an event when its last member has entered, otherwise for each member that enters. The three functions
/// below restrict it further. Not with `vef_builder_partitions`.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_collective_events(
    builder: *mut Builder,
    kinds: u32,
    each_entry: c_int,
) -> c_int {
    let operations = (1..Kind::COUNT as u32).filter(|number| kinds >> number & 1 != 0).filter_map(kind);
    let operations = operations.filter_map(|kind| match kind {
        Kind::Collective(operation) => Some(operation),
        Kind::PointToPoint => None,
    });
    let (operations, on) =
        (operations.collect(), if each_entry == 0 { EventOn::AllEntered } else { EventOn::EachEntry });
    // SAFETY: the caller's promise.
    unsafe {
        change(builder, |events| {
            events.operations = operations;
            events.on = on;
        })
    }
}

/// Of `vef_builder_collective_events` only those on communicators of `least` to `most` members.
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_event_ranks(builder: *mut Builder, least: u32, most: u32) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { change(builder, |events| events.ranks = least..=most) }
}

/// Of `vef_builder_collective_events` only those of `least` to `most` bytes, as a decision table has them (`docs/collectives.md`).
///
/// # Safety
/// `builder` is null or usable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_event_bytes(builder: *mut Builder, least: u64, most: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { change(builder, |events| events.bytes = least..=most) }
}

/// Of `vef_builder_collective_events` only those on these communicators, by their numbers in the trace. The array is copied.
///
/// # Safety
/// `builder` is null or usable; `communicators` is null or has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vef_builder_event_communicators(
    builder: *mut Builder,
    communicators: *const u32,
    count: usize,
) -> c_int {
    // SAFETY: the caller's promise, here and in the closure.
    unsafe {
        describe(builder, |builder| {
            let comms = border::array(communicators, count, "communicators")?;
            let comms = comms.iter().copied().map(CommId).collect();
            builder.events.get_or_insert_default().comms = Some(comms);
            Ok(0)
        })
    }
}

/// # Safety
/// As [`describe`].
unsafe fn change(builder: *mut Builder, change: impl FnOnce(&mut CollectiveEvents)) -> c_int {
    let described = |builder: &mut Builder| {
        change(builder.events.get_or_insert_default());
        Ok(0)
    };
    // SAFETY: by this function's own contract.
    unsafe { describe(builder, described) }
}
