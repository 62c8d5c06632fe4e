//! Collective buffering in two phases, as ROMIO does it: members of a file whose accesses interleave exchange their bytes with
//! *aggregators*, which access the file in large pieces.
//!
//! The rules are those of ROMIO's generic file system with its default hints (`ad_write_coll.c`, `ad_read_coll.c`, `ad_aggregate.c` of
//! MPICH 4.0):
//!
//! 1. Members tell each other where their accesses begin and end. If none begins in front of the end of that of the member before, each
//!    accesses the file on its own.
//! 2. Otherwise the first member on each host is an aggregator (`cb_nodes`). The bytes from the first begin to the last end are divided
//!    evenly among the aggregators, in the order of their hosts' first members: *domains*.
//! 3. An aggregator passes through its domain, from the first byte that is asked for to the last, in rounds of 16 MiB
//!    (`cb_buffer_size`); all aggregators have as many rounds as the one with most. In each, members and aggregator exchange the members' bytes of
//!    that round, and the aggregator accesses the file by one piece, unless no member has a byte there: holes included, and a piece with
//!    holes is read before it is written.
//!
//! Of an access through a view with gaps, only the number of bytes is known, and where the first and the last one are: they are taken to be spread
//! evenly in between.

use crate::index::CommIndex;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use vef_format::ids::Rank;
use vef_format::units::Bytes;

/// Bytes that an aggregator accesses at a time.
const BUFFER: u64 = 16 << 20;
/// Most rounds of all accesses of a capture, together 1 TiB for each aggregator: few bytes of a capture must not make millions of records. Where
/// they are exceeded, members access the file on their own.
const MOST_ROUNDS: u64 = 1 << 16;

/// A collective access of one task to a file, of which the other members must know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    /// The file's communicator.
    pub(crate) comm: CommIndex,
    /// Start of the call, on the clock of the task.
    pub(crate) at: u64,
    /// From the first byte in the file to behind the last; `None`: unknown.
    pub(crate) place: Option<Range<u64>>,
    /// Bytes of data in it.
    pub(crate) bytes: Bytes,
}

/// The plan of one collective access in two phases. Members are ranks of the file's communicator.
#[derive(Debug)]
pub(crate) struct Plan {
    members: Vec<Member>,
    aggregators: Vec<Domain>,
    pub(crate) rounds: u64,
}

/// A member's access.
#[derive(Debug)]
struct Member {
    place: Range<u64>,
    bytes: Bytes,
    /// When the last member came to the access, on the clock of this one.
    at: u64,
}

/// Where in a piece members have bytes. Those of a view are taken to be spread evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covered {
    Nowhere,
    WithHoles,
    Everywhere,
}

/// An aggregator.
#[derive(Debug)]
struct Domain {
    member: u32,
    /// All of it.
    whole: Range<u64>,
    /// From the first byte that members ask for to behind the last.
    used: Range<u64>,
}

/// The plans of the accesses to each file, in the order of the accesses; `None`: each member accesses it on its own.
pub(crate) type Plans = HashMap<CommIndex, Vec<Option<Plan>>>;

impl Plan {
    /// The plan for these accesses, by member, whose clocks `shifts` convert to the common one; `hosts` are the first members of each host, in
    /// order. `None`: there is nothing to exchange.
    fn new(accesses: &[&Access], shifts: &[i64], hosts: &[u32]) -> Option<Self> {
        let places: Option<Vec<Range<u64>>> = accesses.iter().map(|access| access.place.clone()).collect();
        let places = places?;
        let interleave =
            |pair: &[Range<u64>]| !pair[1].is_empty() && pair[1].start < pair[0].end.saturating_sub(1);
        if !places.windows(2).any(interleave) {
            return None;
        }
        // Members without a byte count here: where they would begin is in a domain, too.
        let begin = places.iter().map(|place| place.start).min()?;
        let end = places.iter().map(|place| place.end).max()?;
        let size = (end - begin).div_ceil(hosts.len() as u64);
        let domain = |(number, &member): (usize, &u32)| {
            let from = begin.saturating_add(size.saturating_mul(number as u64)).min(end);
            let whole = from..from.saturating_add(size).min(end);
            let parts = || places.iter().map(|place| common(place, &whole)).filter(|part| !part.is_empty());
            let first = parts().map(|part| part.start).min().unwrap_or(whole.start);
            let used = first..parts().map(|part| part.end).max().unwrap_or(first);
            Domain { member, whole, used }
        };
        let aggregators: Vec<Domain> = hosts.iter().enumerate().map(domain).collect();
        let rounds =
            aggregators.iter().map(|domain| (domain.used.end - domain.used.start).div_ceil(BUFFER)).max()?;
        let starts =
            accesses.iter().zip(shifts).map(|(access, &shift)| access.at.saturating_add_signed(shift));
        let last = starts.max().unwrap_or(0);
        let member = |((place, access), &shift): ((Range<u64>, &&Access), &i64)| {
            let at = last.saturating_add_signed(shift.saturating_neg());
            Member { place, bytes: access.bytes, at }
        };
        let members = places.into_iter().zip(accesses).zip(shifts).map(member).collect();
        Some(Self { members, aggregators, rounds })
    }

    /// The aggregators, in order: their numbers, and which members they are.
    pub(crate) fn aggregators(&self) -> impl Iterator<Item = (usize, u32)> {
        self.aggregators.iter().map(|domain| domain.member).enumerate()
    }

    /// The members, by rank.
    pub(crate) fn members(&self) -> Range<u32> {
        0..self.members.len() as u32
    }

    /// When the last member came to the access, on the clock of `member`.
    pub(crate) fn at(&self, member: u32) -> u64 {
        self.members[member as usize].at
    }

    /// What an aggregator accesses in a round, from 0 on.
    pub(crate) fn piece(&self, aggregator: usize, round: u64) -> Range<u64> {
        let used = &self.aggregators[aggregator].used;
        let from = used.start.saturating_add(round.saturating_mul(BUFFER)).min(used.end);
        from..from.saturating_add(BUFFER).min(used.end)
    }

    /// Whether members have no byte, or not all bytes, of a piece.
    pub(crate) fn covers(&self, piece: &Range<u64>) -> Covered {
        let bytes = self.members().map(|member| self.share(member, piece).0);
        let sum = bytes.fold(0, u64::saturating_add);
        let parts = self.members.iter().map(|member| common(&member.place, piece));
        let mut parts: Vec<Range<u64>> = parts.filter(|part| !part.is_empty()).collect();
        parts.sort_unstable_by_key(|part| part.start);
        let end =
            parts.iter().try_fold(piece.start, |end, part| (part.start <= end).then_some(end.max(part.end)));
        match sum {
            0 => Covered::Nowhere,
            _ if sum >= piece.end - piece.start && end == Some(piece.end) => Covered::Everywhere,
            _ => Covered::WithHoles,
        }
    }

    /// All that an aggregator may access.
    pub(crate) fn domain(&self, aggregator: usize) -> Range<u64> {
        self.aggregators[aggregator].whole.clone()
    }

    /// The bytes of a member in a part of the file.
    pub(crate) fn share(&self, member: u32, part: &Range<u64>) -> Bytes {
        let Member { place, bytes: Bytes(bytes), .. } = &self.members[member as usize];
        let part = common(place, part);
        if part.is_empty() {
            return Bytes::ZERO;
        }
        let length = u128::from(place.end - place.start);
        let in_front = |at: u64| u128::from(at - place.start) * u128::from(*bytes) / length;
        Bytes((in_front(part.end) - in_front(part.start)) as u64)
    }
}

fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

/// The plans for the accesses of all tasks. `group` returns the members of a communicator, `host` the host of a task, and `shift` what converts its
/// clock to the common one.
pub(crate) fn plans<'h>(
    accesses: Vec<(Rank, Vec<Access>)>,
    group: impl Fn(CommIndex) -> Vec<Rank>,
    host: impl Fn(Rank) -> &'h str,
    shift: impl Fn(Rank) -> i64,
) -> Plans {
    let mut files: BTreeMap<CommIndex, HashMap<Rank, Vec<Access>>> = BTreeMap::new();
    let mut rounds_left = MOST_ROUNDS;
    for (task, list) in accesses {
        for access in list {
            files.entry(access.comm).or_default().entry(task).or_default().push(access);
        }
    }
    let plan = |(comm, lists): (CommIndex, HashMap<Rank, Vec<Access>>)| {
        let members = group(comm);
        // A member that has none was killed in front of the first one, or does not tell its accesses.
        let all: Option<Vec<&Vec<Access>>> = members.iter().map(|member| lists.get(member)).collect();
        let all = all?;
        let mut hosts: Vec<(&str, u32)> = Vec::new();
        for (member, task) in (0..).zip(&members) {
            let host = host(*task);
            if !hosts.iter().any(|&(known, _)| known == host) {
                hosts.push((host, member));
            }
        }
        let hosts: Vec<u32> = hosts.into_iter().map(|(_, member)| member).collect();
        let shifts: Vec<i64> = members.iter().map(|&task| shift(task)).collect();
        let count = all.iter().map(|list| list.len()).min().unwrap_or(0);
        let of_access = |number: usize| {
            let accesses: Vec<&Access> = all.iter().map(|list| &list[number]).collect();
            let plan = Plan::new(&accesses, &shifts, &hosts)?;
            rounds_left = rounds_left.checked_sub(plan.rounds)?;
            Some(plan)
        };
        let plans: Vec<Option<Plan>> = (0..count).map(of_access).collect();
        plans.iter().any(Option::is_some).then_some((comm, plans))
    };
    files.into_iter().filter_map(plan).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn access(place: Range<u64>, bytes: u64) -> Access {
        Access { comm: CommIndex(0), at: 0, place: Some(place), bytes: Bytes(bytes) }
    }

    fn plan(accesses: &[Access], hosts: &[u32]) -> Option<Plan> {
        Plan::new(&accesses.iter().collect::<Vec<_>>(), &vec![0; accesses.len()], hosts)
    }

    #[test]
    fn members_behind_each_other_access_the_file_on_their_own() {
        let blocks = [access(0..10, 10), access(10..20, 10), access(20..20, 0)];
        assert!(plan(&blocks, &[0]).is_none());
        let turned = [access(10..20, 10), access(0..10, 10)];
        assert_eq!(plan(&turned, &[0]).expect("a plan").piece(0, 0), 0..20);
        let unknown = Access { place: None, ..access(0..0, 10) };
        assert!(plan(&[access(5..15, 10), unknown], &[0]).is_none());
    }

    #[test]
    fn domains_are_even_and_rounds_those_of_the_fullest() {
        const MIB: u64 = 1 << 20;
        let accesses = [access(10 * MIB..90 * MIB, 40 * MIB), access(20 * MIB..91 * MIB, 41 * MIB)];
        let plan = plan(&accesses, &[0, 1]).expect("a plan");
        let half = 10 * MIB + 81 * MIB / 2;
        assert_eq!([plan.domain(0), plan.domain(1)], [10 * MIB..half, half..91 * MIB]);
        assert_eq!(plan.rounds, 3);
        assert_eq!(plan.piece(0, 1), 26 * MIB..42 * MIB);
        assert_eq!(plan.piece(0, 2), 42 * MIB..half);
        assert_eq!(plan.piece(1, 3), 91 * MIB..91 * MIB);
    }

    /// As MPICH 4.0.2 does by `strace`: three members in reverse order and a fourth far behind, or with a hole in front of it.
    #[test]
    fn pieces_are_accessed_where_members_have_bytes_and_read_where_they_have_holes() {
        const MIB: u64 = 1 << 20;
        let covered = |last: Range<u64>| {
            let turned =
                (0..3).map(|member| access((32 - 16 * member) * MIB..(48 - 16 * member) * MIB, 16 * MIB));
            let last = access(last.clone(), last.end - last.start);
            let plan = plan(&turned.chain([last]).collect::<Vec<_>>(), &[0]).expect("a plan");
            let covered: Vec<Covered> =
                (0..plan.rounds).map(|round| plan.covers(&plan.piece(0, round))).collect();
            covered
        };
        use Covered::{Everywhere, Nowhere, WithHoles};
        let hole = 48 * MIB + 4096;
        assert_eq!(covered(hole..hole + 4096), [Everywhere, Everywhere, Everywhere, WithHoles]);
        let far = 80 * MIB;
        assert_eq!(
            covered(far..far + 4096),
            [Everywhere, Everywhere, Everywhere, Nowhere, Nowhere, Everywhere]
        );
    }

    /// Overlapping members hide no hole by the sum of their bytes.
    #[test]
    fn holes_are_found_between_members_and_within_them() {
        let plan = plan(&[access(0..10, 10), access(0..10, 10), access(15..20, 5)], &[0]).expect("a plan");
        assert_eq!(plan.covers(&(0..20)), Covered::WithHoles);
        assert_eq!(plan.covers(&(0..10)), Covered::Everywhere);
        let views = [access(0..17, 10), access(2..19, 5)];
        assert_eq!(self::plan(&views, &[0]).expect("a plan").covers(&(0..19)), Covered::WithHoles);
    }

    /// `cb_nodes` 2: all bytes are in the second half of what begins where the member without bytes would.
    #[test]
    fn members_without_bytes_count_for_the_domains() {
        let turned = [access(103..106, 3), access(100..103, 3), access(0..0, 0)];
        let plan = plan(&turned, &[0, 1]).expect("a plan");
        assert_eq!([plan.piece(0, 0).is_empty(), plan.piece(1, 0) == (100..106)], [true, true]);
    }

    #[test]
    fn all_accesses_together_have_so_many_rounds() {
        let far = |member: u64| access(if member == 0 { 1 << 39..(1 << 39) + 9 } else { 0..9 }, 9);
        let accesses = (0..2).map(|member| (Rank(member), vec![far(member.into()); 3])).collect();
        let plans = plans(accesses, |_| vec![Rank(0), Rank(1)], |_| "one", |_| 0);
        let planned: Vec<bool> = plans[&CommIndex(0)].iter().map(Option::is_some).collect();
        assert_eq!(planned, [true, false, false]);
    }

    /// `collectives/tests/record/record.sh mpich 4 phases` of MPICH 4.0.2, four ranks on one host: an access, and for each pair of ranks
    /// messages and bytes. A place takes 16 bytes for each contiguous piece; those of a view are not known, and count as one.
    #[test]
    fn exchanges_are_those_of_mpich() {
        for line in include_str!("../tests/data/two-phases.txt").lines() {
            let mut words = line.split(' ');
            let name = words.next().expect("a name");
            let place = |member: u64| match name {
                "Far_write" => 20_000_000 * (3 - member)..20_000_000 * (4 - member),
                "Turned_write" | "Turned_read" => 1000 * (3 - member)..1000 * (4 - member),
                _ => 1000 * member..1000 * member + 9000,
            };
            let (bytes, pieces) = match name {
                "Far_write" => (20_000_000, 1),
                "Turned_write" | "Turned_read" => (1000, 1),
                _ => (3000, 3),
            };
            let accesses: Vec<Access> = (0..4).map(|member| access(place(member), bytes)).collect();
            let plan = plan(&accesses, &[0]).expect("a plan");
            let mut found = std::collections::BTreeMap::<(u32, u32), (u64, u64)>::new();
            let mut send = |from, to, bytes| {
                let sum = found.entry((from, to)).or_default();
                *sum = (sum.0 + 1, sum.1 + bytes);
            };
            for member in 1..4 {
                send(member, 0, 16 * pieces);
                for round in 0..plan.rounds {
                    let bytes = plan.share(member, &plan.piece(0, round)).0;
                    let (from, to) = if name.ends_with("read") { (0, member) } else { (member, 0) };
                    if bytes > 0 {
                        send(from, to, bytes);
                    }
                }
            }
            let recorded = words.skip(6).map(|pair| {
                let numbers: Vec<u64> =
                    pair.split(':').map(|number| number.parse().expect("a number")).collect();
                ((numbers[0] as u32, numbers[1] as u32), (numbers[2], numbers[3]))
            });
            assert_eq!(found, recorded.collect(), "{name}");
        }
    }

    proptest! {
        #[test]
        fn each_byte_is_exchanged_once(
            places in proptest::collection::vec((0u64..1000, 0u64..300, 0u64..300), 2..6), hosts in 1u32..4,
        ) {
            let of = |&(start, length, bytes): &(u64, u64, u64)| access(start..start + length, bytes.min(length));
            let accesses: Vec<Access> = places.iter().map(of).collect();
            let hosts: Vec<u32> = (0..hosts.min(accesses.len() as u32)).collect();
            if let Some(plan) = plan(&accesses, &hosts) {
                for (member, access) in (0..).zip(&accesses) {
                    let rounds = || (0..plan.rounds).flat_map(|round| (0..hosts.len()).map(move |number| (number, round)));
                    let sum: u64 = rounds().map(|(number, round)| plan.share(member, &plan.piece(number, round)).0).sum();
                    prop_assert_eq!(sum, access.bytes.0);
                    let sum: u64 = (0..hosts.len()).map(|number| plan.share(member, &plan.domain(number)).0).sum();
                    prop_assert_eq!(sum, access.bytes.0);
                }
            }
        }
    }
}
