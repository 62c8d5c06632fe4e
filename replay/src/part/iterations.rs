//! The iterations of a program's main loop, found in its records.
//!
//! The records of one rank, the reference, are a sequence of [shapes](Shapes) (kind, peer or communicator, operation; not bytes, times nor what they wait for), in which the
//! [`Pattern`] is the loop. The part begins and ends at the reference with an iteration, at the other ranks where as few messages and
//! collectives as possible cross the beginning or the end: the least cut of a graph of records. Of equal cuts it is the one nearest to each
//! rank's own pattern.

use super::PartError;
use super::flow::{Network, UNBOUNDED};
use super::pattern::Pattern;
use super::selection::Stretch;
use super::shapes::Shapes;
use crate::source::Feed;
use hashbrown::HashMap;
use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::ops::Range;
use vef_format::ids::Rank;
use vef_format::raw::{COLLECTIVE, DEPENDENCY, KIND, MESSAGE};
use vef_format::units::{Count, Grouped};

/// What a message that crosses a cut costs; 1 where the record that waits for it is the first behind the cut.
const MESSAGE_COST: i64 = 2;
/// What a collective costs of which a member is cut off: it is left out as a whole.
const COLLECTIVE_COST: i64 = 16;
/// A rank is cut at most so many iterations away from where its own pattern suggests.
const MOST_AWAY: i64 = 3;
/// Records of the reference at which an iteration may begin that are tried.
const MOST_BEGINNINGS: usize = 32;
/// Those of them that are tried in large traces, too.
const LIKELY_BEGINNINGS: usize = 5;
/// Once the cuts together have considered so many records, no further beginning is tried.
const MOST_CONSIDERED: usize = 16_000_000;
/// The same behind the likely beginnings.
const MOST_CONSIDERED_FOR_UNLIKELY: usize = 200_000;
/// Ranks that are tried as the reference.
const MOST_REFERENCES: usize = 64;

/// The stretches of each rank in iterations `first` to `last`, a description, and the number of these iterations.
pub(crate) fn iterations(
    trace: &Feed,
    first: NonZeroU64,
    last: Option<NonZeroU64>,
) -> Result<(Vec<Vec<Stretch>>, String, u64), PartError> {
    let found = Loop::find(trace)?;
    let Loop { reference, ref pattern, .. } = found;
    let links = links(trace, found.records.len())?;
    let mut all: Vec<Beginning> = Vec::new();
    let mut considered = 0;
    for offset in beginnings(trace, reference, pattern)? {
        let is_likely = all.len() < LIKELY_BEGINNINGS;
        let most = if is_likely { MOST_CONSIDERED } else { MOST_CONSIDERED_FOR_UNLIKELY };
        if !all.is_empty() && considered > most {
            break;
        }
        // Ranks are aligned where iterations lie on both sides, so that all are cut alike at the beginning and the end.
        let windows = found.middle(offset);
        considered += windows.iter().map(|window| window.until - window.from).sum::<u64>() as usize;
        let (middle, crossing) = cut(&windows, &links);
        let computing = found.computing(&middle);
        all.push(Beginning {
            offset,
            begins: pattern.begins(&found.shapes, offset),
            middle,
            crossing,
            computing,
        });
    }
    let asked = || match last {
        Some(last) if last == first => first.to_string(),
        Some(last) => format!("{first}-{last}"),
        None => format!("{first}-"),
    };
    let Beginning { begins, middle, .. } = best(all).ok_or(PartError::NoPattern)?;
    let iterations = begins.len() as u64 - 1;
    let to = last.map_or(iterations, NonZeroU64::get);
    if to > iterations || first.get() > to {
        return Err(PartError::Iterations { asked: asked(), found: iterations });
    }
    let cut = |iteration: u64| cut(&found.windows(&begins, iteration as usize, &middle), &links).0;
    let range = |(begin, end): (u64, u64)| Stretch::of(begin..end.max(begin));
    let stretches = cut(first.get() - 1).into_iter().zip(cut(to)).map(|cuts| vec![range(cuts)]).collect();
    let described = format!(
        "iterations {} to {} of {} of rank {reference} (mostly {} each)",
        Grouped(first),
        Grouped(to),
        Grouped(iterations),
        Count(pattern.period, "record")
    );
    Ok((stretches, described, to + 1 - first.get()))
}

/// A place at which the iterations may begin.
struct Beginning {
    /// In an iteration of the reference.
    offset: usize,
    /// Where they begin at the reference, and the end of the last one.
    begins: Vec<usize>,
    /// The cuts of all ranks in the middle of the loop.
    middle: Vec<u64>,
    /// The cost of these cuts.
    crossing: i64,
    /// Computing of all ranks directly behind them.
    computing: u64,
}

/// Where least crosses; of equal ones where ranks compute most, up to differences as between two runs, as what they did before is over; of
/// these that of most iterations.
fn best(mut all: Vec<Beginning>) -> Option<Beginning> {
    let least = all.iter().map(|one| one.crossing).min()?;
    all.retain(|one| one.crossing == least);
    let most = all.iter().map(|one| one.computing).max()?;
    all.retain(|one| one.computing >= most - most / 8);
    all.into_iter().max_by_key(|one| (one.begins.len(), Reverse(one.offset)))
}

/// The main loop of a trace.
struct Loop {
    reference: Rank,
    /// Of the reference: its loop, and the shape of each record.
    pattern: Pattern,
    shapes: Vec<u32>,
    /// Number of records, by rank.
    records: Vec<u64>,
    /// The loop of each rank, if it has one of as many iterations.
    own: Vec<Option<Pattern>>,
    /// Computing in front of each record of each rank, as far as it fits.
    times: Vec<Vec<u32>>,
}

/// Where a rank may be cut.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// The first record that may be behind the cut.
    from: u64,
    /// The last one that may be the first behind it.
    until: u64,
    /// Where the cut is as good as elsewhere.
    near: u64,
}

impl Loop {
    fn find(trace: &Feed) -> Result<Self, PartError> {
        let tasks = trace.header().tasks;
        let (mut shapes, mut times) = (Shapes::new(tasks), vec![Vec::new(); tasks as usize]);
        trace.survey(false, &mut |task, raw| {
            shapes.add(task, raw);
            if let Some(times) = times.get_mut(task.index()) {
                times.push(u32::try_from(raw.time).unwrap_or(u32::MAX));
            }
        })?;
        let mut shapes = shapes.finish();
        let mut found = (0..).map(Rank).zip(shapes.iter().take(MOST_REFERENCES));
        let (reference, pattern) = found
            .find_map(|(rank, shapes)| Some((rank, Pattern::find(shapes)?)))
            .ok_or(PartError::NoPattern)?;
        // Its first or last iteration may differ from those between.
        let as_many = |own: &Pattern| own.starts.len().abs_diff(pattern.starts.len()) <= 2;
        let own = shapes.iter().map(|shapes| Pattern::find(shapes).filter(as_many)).collect();
        let records = shapes.iter().map(|shapes| shapes.len() as u64).collect();
        let shapes = shapes.swap_remove(reference.index());
        Ok(Self { reference, pattern, shapes, records, own, times })
    }

    /// Computing of all ranks in front of the first records behind a cut.
    fn computing(&self, cuts: &[u64]) -> u64 {
        let time =
            |(times, &cut): (&Vec<u32>, &u64)| times.get(cut as usize).map_or(0, |&time| u64::from(time));
        self.times.iter().zip(cuts).map(time).sum()
    }

    /// Where each rank may be cut if the reference is cut `offset` records behind the beginning of the loop's middle occurrence.
    fn middle(&self, offset: usize) -> Vec<Window> {
        let middle = self.pattern.starts.len() / 2;
        self.by_rank((self.pattern.starts[middle] + offset) as u64, |rank, records| {
            let own = self.own[rank].as_ref()?;
            let near = own.start(middle as i64) + (offset * own.period / self.pattern.period) as i64;
            let ends = own.start(0)..own.start(own.starts.len() as i64);
            Some(Window::around(near, own.period as i64, ends, records))
        })
    }

    /// The same for an iteration of those that begin at `begins`, from 0: a rank with a loop of its own is cut as it is in the middle.
    fn windows(&self, begins: &[usize], iteration: usize, middle: &[u64]) -> Vec<Window> {
        let in_middle = begins.partition_point(|&begin| (begin as u64) < middle[self.reference.index()]);
        let later = iteration as i64 - in_middle as i64;
        self.by_rank(begins[iteration] as u64, |rank, records| {
            let own = self.own[rank].as_ref()?;
            let middle = middle[rank] as usize;
            let nth = own.starts.partition_point(|&start| start <= middle).saturating_sub(1);
            let place = own.start(nth as i64 + later) + (middle as i64 - own.starts[nth] as i64);
            Some(Window::around(place, 0, 0..records as i64, records))
        })
    }

    /// Where each rank may be cut if the reference is cut in front of its record `place`; `own`: of a rank with a loop of its own.
    fn by_rank(&self, place: u64, own: impl Fn(usize, u64) -> Option<Window>) -> Vec<Window> {
        let of_reference = self.records[self.reference.index()].max(1) as f64;
        let window = |(rank, &records): (usize, &u64)| {
            if rank == self.reference.index() {
                return Window { from: place, until: place, near: place };
            }
            own(rank, records).unwrap_or_else(|| {
                let share = |of: f64| (records as f64 * of / of_reference) as i64;
                let period = share(self.pattern.period as f64) + 1;
                Window::around(share(place as f64), period, 0..records as i64, records)
            })
        };
        self.records.iter().enumerate().map(window).collect()
    }
}

impl Window {
    /// Some iterations of `period` records around `near`, within `ends`, of a rank with so many records.
    fn around(near: i64, period: i64, ends: Range<i64>, records: u64) -> Self {
        let at = |place: i64| place.clamp(0, records as i64) as u64;
        Self {
            from: at((near - MOST_AWAY * period).max(ends.start)),
            until: at((near + MOST_AWAY * period).min(ends.end)),
            near: at(near),
        }
    }
}

/// Two records of different ranks that are to be on one side of a cut.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Rank and number of a record: of a message its own; of a collective any member's.
    from: (u32, u32),
    /// Of a message, the record that waits for it.
    to: (u32, u32),
    is_message: bool,
}

/// The messages and collectives of a trace.
fn links(trace: &Feed, ranks: usize) -> Result<Vec<Link>, PartError> {
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
    Ok(all)
}

/// The first record of each rank behind the cut that messages and collectives cross least; and what crosses it, but for messages that are
/// over when a rank's first record behind it begins. Of equal cuts it is the one
/// that is nearest to where the windows suggest it.
///
/// Each record of a window is two nodes, its wait and what follows, and that at its end one, its wait; in front of the cut is the source's
/// side. The cut may be between the two: such a record is the first behind the cut, and what it waits for costs half.
fn cut(windows: &[Window], links: &[Link]) -> (Vec<u64>, i64) {
    let (source, sink) = (0, 1);
    let mut nodes = 2u32;
    let mut bases = Vec::with_capacity(windows.len());
    for window in windows {
        bases.push(nodes);
        nodes += 2 * (window.until - window.from) as u32 + 1;
    }
    // More than all suggestions together.
    let unit = i64::from(nodes);
    let mut network = Network::new(nodes as usize);
    let node = |(rank, record): (u32, u32), is_wait: bool| {
        let Window { from, until, .. } = windows[rank as usize];
        match u64::from(record) {
            record if record < from => source,
            record if record > until || (record == until && !is_wait) => sink,
            record => bases[rank as usize] + 2 * (record - from) as u32 + u32::from(!is_wait),
        }
    };
    for (window, &base) in windows.iter().zip(&bases) {
        for (record, wait) in (window.from..window.until).zip((base..).step_by(2)) {
            // Behind what is behind a cut nothing is in front.
            network.join(wait + 1, wait, UNBOUNDED, 0);
            network.join(wait + 2, wait + 1, UNBOUNDED, 0);
            match record < window.near {
                true => network.join(source, wait + 1, 1, 0),
                false => network.join(wait + 1, sink, 1, 0),
            }
        }
    }
    for link in links {
        let ends: &[(bool, i64)] = match link.is_message {
            true => &[(true, MESSAGE_COST / 2), (false, MESSAGE_COST / 2)],
            false => &[(false, COLLECTIVE_COST)],
        };
        for &(is_wait, cost) in ends {
            network.join(node(link.from, false), node(link.to, is_wait), cost * unit, cost * unit);
        }
    }
    let in_front = network.cut(source, sink);
    let cuts: Vec<u64> = windows
        .iter()
        .zip(&bases)
        .map(|(window, &base)| {
            let behind = |record: &u64| !in_front[(base + 2 * (record - window.from) as u32 + 1) as usize];
            (window.from..window.until).find(behind).unwrap_or(window.until)
        })
        .collect();
    let crosses = |link: &Link| {
        let (from, to) = (cuts[link.from.0 as usize], cuts[link.to.0 as usize]);
        let is_behind = (u64::from(link.from.1) >= from, u64::from(link.to.1) >= to);
        match (is_behind.0 == is_behind.1, link.is_message) {
            (true, _) => 0,
            (false, false) => COLLECTIVE_COST,
            // Over before the first record behind the cut begins.
            (false, true) if !is_behind.0 && u64::from(link.to.1) == to => 0,
            (false, true) => MESSAGE_COST,
        }
    };
    let cost = links.iter().map(crosses).sum();
    (cuts, cost)
}

/// Offsets in an iteration of the reference at which it may begin, the likely ones first: where the pattern does, behind collectives, and behind
/// most computing.
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
    let mut by_time = places.clone();
    places.sort_by_key(|&(after_collective, time, offset)| (!after_collective, Reverse(time), offset));
    by_time.sort_by_key(|&(_, time, offset)| (Reverse(time), offset));
    let mut chosen = vec![0];
    for (one, other) in places.iter().zip(&by_time) {
        for &(_, _, offset) in [one, other] {
            if !chosen.contains(&offset) && chosen.len() < MOST_BEGINNINGS {
                chosen.push(offset);
            }
        }
    }
    Ok(chosen)
}
