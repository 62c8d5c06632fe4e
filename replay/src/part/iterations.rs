//! The iterations of a program's main loop, found in its records.
//!
//! Each rank's records are a sequence of shapes (kind, peer or communicator, operation; not bytes nor times), in which the longest
//! [`Pattern`] is the loop. Where an iteration begins is not determined by one rank: ranks are aligned one after the other, so
//! that as many messages and collectives as possible begin and end in the same iteration.

use super::PartError;
use super::pattern::Pattern;
use super::selection::Stretch;
use crate::source::Feed;
use hashbrown::HashMap;
use std::num::NonZeroU64;
use vef_format::ids::Rank;
use vef_format::raw::{COLLECTIVE, DEPENDENCY, KIND, MARK, MESSAGE, Raw};
use vef_format::units::Grouped;

/// Iterations on each side of the middle one whose messages align ranks.
const AROUND: usize = 4;
/// What a collective counts, compared with a message: one that is cut is left out as a whole.
const COLLECTIVE_WEIGHT: u64 = 8;
/// What a message counts in one iteration; it counts 1 where the record that waits for it is the first of the next.
const FULL: i64 = 2;
/// How often each rank is aligned once more, with all others.
const ROUNDS: usize = 3;
/// Places of the first rank at which an iteration may begin that are tried.
const MOST_BEGINNINGS: usize = 8;

/// The stretches of each rank in iterations `first` to `last`, and a description.
pub(crate) fn iterations(
    trace: &Feed,
    first: NonZeroU64,
    last: Option<NonZeroU64>,
) -> Result<(Vec<Vec<Stretch>>, String), PartError> {
    let loops = Loops::find(trace)?;
    let links = loops.links(trace)?;
    let beginnings = loops.beginnings(trace)?;
    let aligned = beginnings.iter().map(|&beginning| loops.align(&links, beginning));
    let (bases, _) = aligned
        .min_by_key(|aligned| aligned.as_ref().map_or(u64::MAX, |(_, apart)| *apart))
        .ok_or(PartError::Empty)??;
    let iterations = loops.common(&bases);
    let found = iterations.end.saturating_sub(iterations.start).max(0) as u64;
    let last = last.map_or(found, NonZeroU64::get);
    if found < 2 || last > found || first.get() > last {
        return Err(PartError::Iterations { found });
    }
    let (from, to) = (iterations.start + first.get() as i64 - 1, iterations.start + last as i64);
    let mut inside = 0;
    let mut stretches = vec![Vec::new(); trace.header().tasks as usize];
    for (of_rank, base) in loops.ranks.iter().zip(&bases) {
        let place = |iteration: i64| (base + iteration * of_rank.pattern.period as i64) as u64;
        inside += place(iterations.end) - place(iterations.start);
        stretches[of_rank.task.index()].push(Stretch::of(place(from)..place(to)));
    }
    let share = 100.0 * inside as f64 / loops.records.max(1) as f64;
    let described = format!(
        "iterations {} to {} of {}, which have {share:.1} % of all records",
        Grouped(first),
        Grouped(last),
        Grouped(found)
    );
    Ok((stretches, described))
}

/// The loops of all ranks that have records.
struct Loops {
    ranks: Vec<Loop>,
    /// Of all ranks.
    records: u64,
}

/// The main loop of one rank. Its pattern's period is that of an iteration of all ranks.
struct Loop {
    task: Rank,
    pattern: Pattern,
}

/// Two records that belong to one iteration.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The index of the loop, and the record's number: of a message the sender's; of a collective any member's.
    from: (usize, i64),
    /// Of a message, the record that waits for it: it comes behind the iteration's last record if that is all that the iteration waits for.
    to: (usize, i64),
    is_message: bool,
}

impl Link {
    fn weight(&self) -> u64 {
        if self.is_message { 1 } else { COLLECTIVE_WEIGHT }
    }
}

impl Loops {
    fn find(trace: &Feed) -> Result<Self, PartError> {
        let mut numbers = HashMap::new();
        let mut shapes: Vec<Vec<u32>> = Vec::new();
        trace.survey(false, &mut |task, raw| {
            let next = numbers.len() as u32;
            let shape = *numbers.entry(shape(raw)).or_insert(next);
            if task.index() >= shapes.len() {
                shapes.resize(task.index() + 1, Vec::new());
            }
            shapes[task.index()].push(shape);
        })?;
        let mut ranks = Vec::new();
        for (task, shapes) in (0..).map(Rank).zip(&shapes).filter(|(_, shapes)| !shapes.is_empty()) {
            let none = PartError::NoPattern { task, records: shapes.len() as u64 };
            ranks.push(Loop { task, pattern: Pattern::find(shapes).ok_or(none)? });
        }
        // Where some ranks repeat themselves more often than others, an iteration is what all do as often.
        let times = ranks.iter().map(|of| of.pattern.times()).min().unwrap_or(1);
        for Loop { pattern, .. } in &mut ranks {
            pattern.period *= (pattern.times() + times / 2) / times;
        }
        Ok(Self { ranks, records: shapes.iter().map(|shapes| shapes.len() as u64).sum() })
    }

    /// By task, the index of its loop.
    fn indices(&self) -> HashMap<u32, usize> {
        self.ranks.iter().zip(0..).map(|(of, index)| (of.task.0, index)).collect()
    }

    /// The messages and collectives around the middle of the loop.
    fn links(&self, trace: &Feed) -> Result<Vec<Link>, PartError> {
        let indices = self.indices();
        let mut numbers = vec![0i64; self.ranks.len()];
        let mut sends: HashMap<u64, (usize, i64)> = HashMap::new();
        let mut waits = Vec::new();
        let mut collectives: HashMap<u64, (usize, i64)> = HashMap::new();
        let mut links = Vec::new();
        trace.survey(false, &mut |task, raw| {
            let Some(&index) = indices.get(&task.0) else { return };
            let at = (index, numbers[index]);
            numbers[index] += 1;
            let Pattern { items, period } = &self.ranks[index].pattern;
            let middle = items.start + self.ranks[index].pattern.times() / 2 * period;
            let around = middle.saturating_sub(AROUND * period)..middle + AROUND * period;
            if !around.contains(&(at.1 as usize)) {
                return;
            }
            match raw.tag & KIND {
                MESSAGE => drop(sends.insert(raw.id, at)),
                COLLECTIVE => match collectives.get(&raw.id) {
                    Some(&from) => links.push(Link { from, to: at, is_message: false }),
                    None => drop(collectives.insert(raw.id, at)),
                },
                _ => {}
            }
            if raw.tag & DEPENDENCY == 2 {
                waits.push((raw.after, at));
            }
        })?;
        let messages = waits.into_iter().filter_map(|(id, to)| {
            let from = *sends.get(&id)?;
            (from.0 != to.0).then_some(Link { from, to, is_message: true })
        });
        links.extend(messages);
        Ok(links)
    }

    /// Records of the first rank with which an iteration may begin: the first of its pattern, those behind collectives, and those
    /// behind most computing.
    fn beginnings(&self, trace: &Feed) -> Result<Vec<i64>, PartError> {
        let Some(Loop { task, pattern }) = self.ranks.first() else { return Ok(Vec::new()) };
        let second = pattern.items.start + pattern.period..pattern.items.start + 2 * pattern.period;
        let (mut number, mut after_collective) = (0usize, false);
        let mut places = Vec::new();
        trace.survey(false, &mut |its, raw| {
            if its != *task {
                return;
            }
            if second.contains(&number) {
                let offset = (number - second.start) as i64;
                places.push((after_collective, raw.time, offset));
            }
            after_collective = raw.tag & KIND == COLLECTIVE;
            number += 1;
        })?;
        places.sort_by_key(|&(after_collective, time, offset)| {
            (!after_collective, std::cmp::Reverse(time), offset)
        });
        let half = MOST_BEGINNINGS / 2;
        let mut chosen = vec![0];
        chosen.extend(places.iter().take(half).map(|&(_, _, offset)| offset));
        places.sort_by_key(|&(_, time, offset)| (std::cmp::Reverse(time), offset));
        chosen.extend(places.iter().take(half).map(|&(_, _, offset)| offset));
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen.into_iter().map(|offset| pattern.items.start as i64 + offset).collect())
    }

    /// Where an iteration begins at each rank, if one of the first rank begins with its record `beginning`; and the weight of the links
    /// that are in two iterations.
    fn align(&self, links: &[Link], beginning: i64) -> Result<(Vec<i64>, u64), PartError> {
        let mut of_rank: Vec<Vec<&Link>> = vec![Vec::new(); self.ranks.len()];
        for link in links {
            of_rank[link.from.0].push(link);
            of_rank[link.to.0].push(link);
        }
        let mut bases: Vec<Option<i64>> = vec![None; self.ranks.len()];
        bases[0] = Some(beginning);
        // The weight of each rank's links with ranks that are aligned.
        let mut ready = vec![0u64; self.ranks.len()];
        let mut settled = 0;
        while settled < self.ranks.len() {
            let last = match settled {
                0 => 0,
                _ => {
                    let open = (0..self.ranks.len()).filter(|&rank| bases[rank].is_none());
                    let Some(next) = open.max_by_key(|&rank| (ready[rank], std::cmp::Reverse(rank))) else {
                        break;
                    };
                    bases[next] = Some(self.base(next, &of_rank[next], &bases)?);
                    next
                }
            };
            settled += 1;
            for link in &of_rank[last] {
                let other = if link.from.0 == last { link.to.0 } else { link.from.0 };
                ready[other] += link.weight();
            }
        }
        // The first ones knew only some of the others.
        for _ in 0..ROUNDS {
            for rank in 1..self.ranks.len() {
                bases[rank] = Some(self.base(rank, &of_rank[rank], &bases)?);
            }
        }
        let bases: Vec<i64> = bases.into_iter().flatten().collect();
        let apart = links.iter().map(|link| {
            let [from, to] = [link.from, link.to].map(|at| self.iteration(at, bases[at.0]));
            let behind = self.iteration((link.to.0, link.to.1 - 1), bases[link.to.0]);
            match from == to {
                true => 0,
                false if link.is_message && from == behind => FULL as u64 - 1,
                false => FULL as u64 * link.weight(),
            }
        });
        let apart = apart.sum();
        Ok((bases, apart))
    }

    /// The iteration of a record of a rank whose iteration 0 begins with record `base`.
    fn iteration(&self, (index, number): (usize, i64), base: i64) -> i64 {
        (number - base).div_euclid(self.ranks[index].pattern.period as i64)
    }

    /// The base of a rank that has most of its links with aligned ranks in one iteration.
    fn base(&self, rank: usize, links: &[&Link], bases: &[Option<i64>]) -> Result<i64, PartError> {
        let Loop { task, pattern } = &self.ranks[rank];
        let (period, begin) = (pattern.period as i64, pattern.items.start as i64);
        // Weights that begin and end with a base.
        let mut steps: Vec<(i64, i64)> = Vec::new();
        let mut all = 0;
        for link in links {
            let is_from = link.from.0 == rank;
            let (own, other) = if is_from { (link.from.1, link.to) } else { (link.to.1, link.from) };
            let Some(base) = bases[other.0] else { continue };
            let at = self.iteration(other, base);
            // What waits may come behind the last record of the iteration.
            let (low, high) = (own - (at + 1) * period + 1, own - at * period);
            let weight = FULL * link.weight() as i64;
            steps.extend([(low, weight), (high + 1, -weight)]);
            all += weight;
            // What waits may come behind the last record of the iteration.
            let behind = match (link.is_message, is_from) {
                (false, _) => continue,
                (true, false) => (low - 1, low),
                (true, true) if at == self.iteration((other.0, other.1 - 1), base) => continue,
                (true, true) => (high + 1, high + 1 + period),
            };
            steps.extend([(behind.0, 1), (behind.1, -1)]);
        }
        if all == 0 {
            return Ok(begin);
        }
        steps.sort_unstable();
        let (mut votes, mut best) = (0, (0, i64::MAX));
        for stretch in steps.chunk_by(|one, other| one.0 == other.0) {
            votes += stretch.iter().map(|step| step.1).sum::<i64>();
            let base = stretch[0].0;
            if votes > best.0 || (votes == best.0 && (base - begin).abs() < (best.1 - begin).abs()) {
                best = (votes, base);
            }
        }
        if 2 * best.0 < all { Err(PartError::Apart { task: *task }) } else { Ok(best.1) }
    }

    /// The iterations that are in the pattern of every rank.
    fn common(&self, bases: &[i64]) -> std::ops::Range<i64> {
        let of_rank = self.ranks.iter().zip(bases).map(|(of, base)| {
            let Pattern { items, period } = &of.pattern;
            let (begin, end, period) = (items.start as i64 - base, items.end as i64 - base, *period as i64);
            (begin + period - 1).div_euclid(period)..end.div_euclid(period)
        });
        of_rank.reduce(|one, other| one.start.max(other.start)..one.end.min(other.end)).unwrap_or(0..0)
    }
}

/// What two records have in common that occur at one place of a program.
fn shape(raw: &Raw) -> (u8, u32, u16) {
    let tag = raw.tag & (KIND | DEPENDENCY);
    match raw.tag & KIND {
        MARK => (tag, 0, 0),
        _ => (tag, raw.to, raw.op),
    }
}
