//! The iterations of a program's main loop, found in its records.
//!
//! The records of one rank, the reference, are a sequence of shapes (kind, peer or communicator, operation; not bytes nor times), in which the
//! [`Pattern`] is the loop. The part begins and ends at the reference with an iteration, at each other rank where as few messages and
//! collectives as possible cross the beginning or the end.

use super::PartError;
use super::pattern::Pattern;
use super::selection::Stretch;
use crate::source::Feed;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::num::NonZeroU64;
use vef_format::ids::Rank;
use vef_format::raw::{COLLECTIVE, DEPENDENCY, KIND, MARK, MESSAGE, Raw};
use vef_format::units::Grouped;

/// What a message that crosses a cut costs; 1 where the record that waits for it is the first behind the cut.
const MESSAGE_COST: i64 = 2;
/// What a collective costs of which a member is cut off: it is left out as a whole.
const COLLECTIVE_COST: i64 = 16;
/// How often each rank is cut once more, when all others are.
const ROUNDS: usize = 3;
/// Records of the reference at which an iteration may begin that are tried.
const MOST_BEGINNINGS: usize = 8;
/// Ranks that are tried as the reference.
const MOST_REFERENCES: usize = 64;

/// The stretches of each rank in iterations `first` to `last`, a description, and the number of these iterations.
pub(crate) fn iterations(
    trace: &Feed,
    first: NonZeroU64,
    last: Option<NonZeroU64>,
) -> Result<(Vec<Vec<Stretch>>, String, u64), PartError> {
    let Loop { reference, pattern, records } = Loop::find(trace)?;
    let links = Links::read(trace, records.len())?;
    let mut best: Option<(i64, Vec<Vec<Stretch>>, u64)> = None;
    // Iterations, from the beginning with most of them.
    let mut most = 0;
    for offset in beginnings(trace, reference, &pattern)? {
        // Behind its first records, the last iteration has no end.
        let found = (pattern.starts.len() - usize::from(offset > 0)) as u64;
        let to = last.map_or(found, NonZeroU64::get);
        most = most.max(found);
        if to > found || first.get() > to {
            continue;
        }
        let start = |iteration: u64| match pattern.starts.get(iteration as usize) {
            Some(start) => start + offset,
            None => pattern.starts[iteration as usize - 1] + pattern.period,
        };
        let begin = links.cut(reference, start(first.get() - 1) as i64, &records);
        let end = links.cut(reference, start(to) as i64, &records);
        let cost = begin.1 + end.1;
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            let range = |(begin, end): (i64, i64)| Stretch::of(begin as u64..end.max(begin) as u64);
            let stretches = begin.0.into_iter().zip(end.0).map(|cuts| vec![range(cuts)]).collect();
            best = Some((cost, stretches, found));
        }
    }
    let asked = || match last {
        Some(last) if last == first => first.to_string(),
        Some(last) => format!("{first}-{last}"),
        None => format!("{first}-"),
    };
    let (_, stretches, found) = best.ok_or_else(|| PartError::Iterations { asked: asked(), found: most })?;
    let last = last.map_or(found, NonZeroU64::get);
    let described = format!(
        "iterations {} to {} of {} of rank {reference} (mostly {} records each)",
        Grouped(first),
        Grouped(last),
        Grouped(most),
        Grouped(pattern.period)
    );
    Ok((stretches, described, last + 1 - first.get()))
}

/// The main loop of a trace.
struct Loop {
    reference: Rank,
    pattern: Pattern,
    /// Number of records, by rank.
    records: Vec<i64>,
}

impl Loop {
    fn find(trace: &Feed) -> Result<Self, PartError> {
        let mut numbers = HashMap::new();
        let mut shapes: Vec<Vec<u32>> = Vec::new();
        let mut records: Vec<i64> = vec![0; trace.header().tasks as usize];
        trace.survey(false, &mut |task, raw| {
            if let Some(records) = records.get_mut(task.index()) {
                *records += 1;
            }
            if task.index() >= MOST_REFERENCES {
                return;
            }
            let next = numbers.len() as u32;
            let shape = *numbers.entry(shape(raw)).or_insert(next);
            if task.index() >= shapes.len() {
                shapes.resize(task.index() + 1, Vec::new());
            }
            shapes[task.index()].push(shape);
        })?;
        let mut found =
            (0..).map(Rank).zip(&shapes).filter_map(|(rank, shapes)| Some((rank, Pattern::find(shapes)?)));
        let (reference, pattern) = found.next().ok_or(PartError::NoPattern)?;
        Ok(Self { reference, pattern, records })
    }
}

/// Two records that are to be on one side of a cut.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Rank and number of a record: of a message its own; of a collective any member's.
    from: (u32, u32),
    /// Of a message, the record that waits for it.
    to: (u32, u32),
    is_message: bool,
}

/// The messages and collectives of a trace, by rank.
struct Links {
    all: Vec<Link>,
    /// The links of each rank: indices.
    of_rank: Vec<Vec<u32>>,
}

impl Links {
    fn read(trace: &Feed, ranks: usize) -> Result<Self, PartError> {
        let mut numbers = vec![0u32; ranks];
        let mut sends: HashMap<u64, (u32, u32)> = HashMap::new();
        let mut waits: HashMap<u64, (u32, u32)> = HashMap::new();
        let mut collectives: HashMap<u64, (u32, u32)> = HashMap::new();
        let mut all = Vec::new();
        trace.survey(false, &mut |task, raw| {
            let Some(number) = numbers.get_mut(task.index()) else { return };
            let at = (task.0, *number);
            *number = number.saturating_add(1);
            if raw.tag & DEPENDENCY == 2 {
                match sends.remove(&raw.after) {
                    Some(from) => all.push(Link { from, to: at, is_message: true }),
                    None => drop(waits.insert(raw.after, at)),
                }
            }
            match raw.tag & KIND {
                MESSAGE if raw.awaited() => match waits.remove(&raw.id) {
                    Some(to) => all.push(Link { from: at, to, is_message: true }),
                    None => drop(sends.insert(raw.id, at)),
                },
                COLLECTIVE => match collectives.get(&raw.id) {
                    Some(&from) => all.push(Link { from, to: at, is_message: false }),
                    None => drop(collectives.insert(raw.id, at)),
                },
                _ => {}
            }
        })?;
        all.retain(|link| link.from.0 != link.to.0);
        let mut of_rank = vec![Vec::new(); ranks];
        for (link, index) in all.iter().zip(0..) {
            of_rank[link.from.0 as usize].push(index);
            of_rank[link.to.0 as usize].push(index);
        }
        Ok(Self { all, of_rank })
    }

    /// The first record of each rank behind a cut that the `reference` has in front of record `place`; and what crosses it.
    fn cut(&self, reference: Rank, place: i64, records: &[i64]) -> (Vec<i64>, i64) {
        let mut cuts: Vec<Option<i64>> = vec![None; records.len()];
        cuts[reference.index()] = Some(place);
        // Of the reference's records in front of its cut.
        let share = place as f64 / records[reference.index()].max(1) as f64;
        // The number of each rank's links with ranks that are cut.
        let mut ready = vec![0u64; records.len()];
        let mut queue = std::collections::BinaryHeap::from([(0, Reverse(reference.0))]);
        while let Some((_, Reverse(rank))) = queue.pop() {
            let at = rank as usize;
            match cuts[at] {
                None => cuts[at] = Some(self.best(rank, records[at], &cuts, share).0),
                Some(_) if rank == reference.0 => {}
                Some(_) => continue,
            }
            for &link in &self.of_rank[at] {
                let Link { from, to, .. } = self.all[link as usize];
                let other = if from.0 == rank { to.0 } else { from.0 };
                ready[other as usize] += 1;
                if cuts[other as usize].is_none() && ready[other as usize].is_power_of_two() {
                    queue.push((ready[other as usize], Reverse(other)));
                }
            }
        }
        // The first ones knew only some of the others. What has no links has its share of the records in front.
        let mut cuts: Vec<Option<i64>> = cuts
            .into_iter()
            .zip(records)
            .map(|(cut, &records)| cut.or(Some((records as f64 * share) as i64)))
            .collect();
        let mut cost = 0;
        for round in 0..=ROUNDS {
            cost = 0;
            for rank in (0..records.len()).filter(|&rank| rank != reference.index()) {
                let (cut, own) = self.best(rank as u32, records[rank], &cuts, share);
                if round < ROUNDS && !self.of_rank[rank].is_empty() {
                    cuts[rank] = Some(cut);
                }
                cost += own;
            }
        }
        (cuts.into_iter().map(Option::unwrap_or_default).collect(), cost)
    }

    /// The cut of a rank that is crossed least by its links with ranks that are cut; of several, that which has most nearly this `share` of
    /// the records in front (a chain is crossed as often wherever it is cut). And what crosses it.
    fn best(&self, rank: u32, records: i64, cuts: &[Option<i64>], share: f64) -> (i64, i64) {
        let near = (records as f64 * share) as i64;
        // What a cut in front of record n costs is the sum of the steps up to n.
        let mut steps: Vec<(i64, i64)> = vec![(0, 0)];
        for &link in &self.of_rank[rank as usize] {
            let Link { from, to, is_message } = self.all[link as usize];
            let is_from = from.0 == rank;
            let (own, other) = if is_from { (from, to) } else { (to, from) };
            let Some(cut) = cuts[other.0 as usize] else { continue };
            let (own, other) = (i64::from(own.1), i64::from(other.1));
            // If the other record is in front of the cut, the own one is not to be behind, and the reverse.
            let cost = match (is_message, is_from) {
                (false, _) => COLLECTIVE_COST,
                // What waits first behind the cut.
                (true, true) if other == cut => 1,
                (true, _) => MESSAGE_COST,
            };
            let own_is_behind_from = match (is_message, is_from, other < cut) {
                // A wait in front of the first record behind the cut is no part of what is behind.
                (true, true, _) if other == cut => None,
                (_, _, true) => Some(own),
                (_, _, false) => None,
            };
            match own_is_behind_from {
                // The cut must be behind it.
                Some(own) => {
                    steps.extend([(0, cost), (own + 1, -cost)]);
                    if is_message && !is_from {
                        steps.extend([(own, 1 - cost), (own + 1, cost - 1)]);
                    }
                }
                None => steps.push((own + 1, cost)),
            }
        }
        steps.sort_unstable();
        let (mut cost, mut best): (i64, Option<(i64, i64)>) = (0, None);
        for step in steps.chunk_by(|one, other| one.0 == other.0) {
            cost += step.iter().map(|step| step.1).sum::<i64>();
            let order = |(place, cost): (i64, i64)| (cost, place.abs_diff(near));
            let this = (step[0].0, cost);
            if this.0 <= records && best.is_none_or(|best| order(this) < order(best)) {
                best = Some(this);
            }
        }
        best.unwrap_or((0, 0))
    }
}

/// Offsets in an iteration of the reference at which it may begin: where the pattern does, behind collectives, and behind most computing.
fn beginnings(trace: &Feed, reference: Rank, pattern: &Pattern) -> Result<Vec<usize>, PartError> {
    let second = pattern.starts[1]..pattern.starts[1] + pattern.period;
    let (mut number, mut after_collective) = (0usize, false);
    let mut places = Vec::new();
    trace.survey(false, &mut |task, raw| {
        if task != reference {
            return;
        }
        if second.contains(&number) {
            places.push((after_collective, raw.time, number - second.start));
        }
        after_collective = raw.tag & KIND == COLLECTIVE;
        number += 1;
    })?;
    places.sort_by_key(|&(after_collective, time, offset)| (!after_collective, Reverse(time), offset));
    let mut chosen = vec![0];
    chosen.extend(places.iter().take(MOST_BEGINNINGS / 2).map(|&(_, _, offset)| offset));
    places.sort_by_key(|&(_, time, offset)| (Reverse(time), offset));
    chosen.extend(places.iter().take(MOST_BEGINNINGS / 2).map(|&(_, _, offset)| offset));
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}

/// What two records have in common that occur at one place of a program.
fn shape(raw: &Raw) -> (u8, u32, u16) {
    let tag = raw.tag & (KIND | DEPENDENCY);
    match raw.tag & KIND {
        MARK => (tag, 0, 0),
        _ => (tag, raw.to, raw.op),
    }
}
