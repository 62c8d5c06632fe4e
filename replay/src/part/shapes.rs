//! The shapes of a rank's records: what two records have in common that occur at one place of a program. What they wait for is what came before
//! them, and so differs in the first iteration.
//!
//! A loop that makes a communicator, or opens a file, in each iteration has other communicators in each. So those that a rank uses for less than
//! half of its records are named as MPI libraries reuse context ids: by their members, and the lowest number that none with the same members has
//! which is in use then; the first use of each is told apart. All others have their own name.

use hashbrown::HashMap;
use vef_format::ids::Rank;
use vef_format::raw::{COLLECTIVE, KIND, MARK, Raw};

/// Kind of a record; receiver or communicator; operation.
type Shape = (u8, u32, u16);

/// Collects the records of all ranks.
pub(super) struct Shapes {
    numbers: HashMap<Shape, u32>,
    /// By rank.
    records: Vec<Vec<u32>>,
}

/// Where a rank uses a communicator for the first and the last time.
#[derive(Clone, Copy)]
struct Use {
    first: usize,
    last: usize,
}

impl Shapes {
    /// No records of so many tasks.
    pub(super) fn new(tasks: u32) -> Self {
        Self { numbers: HashMap::new(), records: vec![Vec::new(); tasks as usize] }
    }

    /// Adds the next record of a task.
    pub(super) fn add(&mut self, task: Rank, raw: &Raw) {
        let Some(records) = self.records.get_mut(task.index()) else { return };
        let shape = match raw.tag & KIND {
            MARK => (MARK, 0, 0),
            kind => (kind, raw.to, raw.op),
        };
        let next = self.numbers.len() as u32;
        records.push(*self.numbers.entry(shape).or_insert(next));
    }

    /// The shape of each record, by rank.
    pub(super) fn finish(self) -> Vec<Vec<u32>> {
        let Self { numbers, mut records } = self;
        // The communicator and the operation of each shape.
        let mut collectives = vec![None; numbers.len()];
        for ((kind, comm, op), number) in numbers {
            collectives[number as usize] = (kind == COLLECTIVE).then_some((comm, op));
        }
        let uses: Vec<HashMap<u32, Use>> = records.iter().map(|own| uses(own, &collectives)).collect();
        // Communicators with the same members have the same sum.
        let mut members: HashMap<u32, u64> = HashMap::new();
        for (rank, uses) in (1..).zip(&uses) {
            for &comm in uses.keys() {
                let sum = members.entry(comm).or_default();
                *sum = sum.wrapping_add(scattered(rank));
            }
        }
        let mut renamed: HashMap<(u64, usize, bool, u16), u32> = HashMap::new();
        for (own, uses) in records.iter_mut().zip(&uses) {
            let half = own.len() / 2;
            // The communicators in use, and by members which numbers are.
            let mut named: HashMap<u32, usize> = HashMap::new();
            let mut in_use: HashMap<u64, Vec<bool>> = HashMap::new();
            for (at, shape) in own.iter_mut().enumerate() {
                let Some((comm, op)) = collectives[*shape as usize] else { continue };
                let Use { first, last } = uses[&comm];
                if last - first >= half {
                    continue;
                }
                let in_use = in_use.entry(members[&comm]).or_default();
                let number = *named.entry(comm).or_insert_with(|| {
                    let free = in_use.iter().position(|in_use| !in_use).unwrap_or(in_use.len());
                    in_use.resize(in_use.len().max(free + 1), false);
                    in_use[free] = true;
                    free
                });
                if at == last {
                    named.remove(&comm);
                    in_use[number] = false;
                }
                let next = (collectives.len() + renamed.len()) as u32;
                *shape = *renamed.entry((members[&comm], number, at == first, op)).or_insert(next);
            }
        }
        records
    }
}

/// The communicators that a rank uses.
fn uses(own: &[u32], collectives: &[Option<(u32, u16)>]) -> HashMap<u32, Use> {
    let mut uses = HashMap::new();
    for (at, &shape) in own.iter().enumerate() {
        if let Some((comm, _)) = collectives[shape as usize] {
            uses.entry(comm).or_insert(Use { first: at, last: at }).last = at;
        }
    }
    uses
}

/// A number that says which ranks are in a sum of them (splitmix64).
fn scattered(rank: u64) -> u64 {
    let mut word = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shapes of one rank that makes operation `op` on communicators.
    fn of(collectives: &[(u32, u16)]) -> Vec<u32> {
        let mut shapes = Shapes::new(1);
        for &(to, op) in collectives {
            shapes.add(Rank(0), &Raw { tag: COLLECTIVE, to, op, ..Raw::NOTHING });
        }
        shapes.finish().remove(0)
    }

    #[test]
    fn communicators_of_one_iteration_have_the_same_shapes_in_each() {
        // On the world, two that are made from it, and one that lasts.
        let iteration =
            |step: u32| [(0, 1), (10 + 2 * step, 1), (11 + 2 * step, 1), (10 + 2 * step, 2), (1, 1), (1, 1)];
        let all: Vec<(u32, u16)> = (0..5).flat_map(iteration).collect();
        let shapes = of(&all);
        assert!(shapes.chunks(6).all(|one| one == &shapes[..6]), "{shapes:?}");
        // The two differ from each other, and from those that last.
        let mut different = shapes[..6].to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 5, "{shapes:?}");
    }

    #[test]
    fn communicators_that_last_keep_their_shapes() {
        let all: Vec<(u32, u16)> = (0..20).map(|at| (at % 3, 7)).collect();
        assert_eq!(of(&all), (0..20).map(|at| at % 3).collect::<Vec<_>>());
    }
}
