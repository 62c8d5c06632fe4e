//! The members of a communicator, beyond the event that describes it.

use crate::capture::event::Members;
use crate::ids::{CommRank, Rank};

/// Members of a communicator in rank order, in canonical form: equal groups have equal forms, whatever the form in the
/// capture. By default without members.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Group(Form);

#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
enum Form {
    /// `count` tasks from `first`, `stride` apart; 1 for a single member.
    Strided { first: u32, stride: i64, count: u32 },
    /// Any other list.
    List(Box<[Rank]>),
}

impl Default for Group {
    fn default() -> Self {
        Self(Form::List(Box::default()))
    }
}

impl Group {
    /// The members in a run of `tasks` tasks; `None` if there are none, or one is outside of the run.
    pub fn new(members: Members<'_>, tasks: u32) -> Option<Self> {
        let strided = |first: u32, stride: i64, count: u32| {
            let last = i64::from(first).checked_add(stride.checked_mul(i64::from(count.checked_sub(1)?))?)?;
            let inside =
                first < tasks && (0..i64::from(tasks)).contains(&last) && (stride != 0 || count == 1);
            let stride = if count == 1 { 1 } else { stride };
            inside.then_some(Self(Form::Strided { first, stride, count }))
        };
        match members {
            Members::All => strided(0, 1, tasks),
            Members::Strided { first, stride, count } => strided(first.0, stride, count),
            Members::List(list) => {
                let &first = list.first()?;
                let step = |pair: &[Rank]| i64::from(pair[1].0) - i64::from(pair[0].0);
                let stride = list.windows(2).next().map_or(1, step);
                if stride != 0 && list.windows(2).all(|pair| step(pair) == stride) {
                    return strided(first.0, stride, u32::try_from(list.len()).ok()?);
                }
                list.iter().all(|rank| rank.0 < tasks).then(|| Self(Form::List(list.into())))
            }
        }
    }

    /// The canonical form; never [`Members::All`].
    pub fn members(&self) -> Members<'_> {
        match &self.0 {
            Form::Strided { first, stride, count } => {
                Members::Strided { first: Rank(*first), stride: *stride, count: *count }
            }
            Form::List(list) => Members::List(list),
        }
    }

    /// Number of members.
    pub fn count(&self) -> u32 {
        match &self.0 {
            Form::Strided { count, .. } => *count,
            Form::List(list) => list.len() as u32,
        }
    }

    /// The task with communicator rank `rank`.
    #[inline]
    pub fn get(&self, rank: CommRank) -> Option<Rank> {
        match &self.0 {
            Form::Strided { first, stride, count } => {
                (rank.0 < *count).then(|| Rank((i64::from(*first) + stride * i64::from(rank.0)) as u32))
            }
            Form::List(list) => list.get(rank.index()).copied(),
        }
    }

    /// The communicator rank of `task`, if it is a member.
    pub fn rank_of(&self, task: Rank) -> Option<CommRank> {
        match &self.0 {
            Form::Strided { first, stride, count } => {
                let distance = i64::from(task.0) - i64::from(*first);
                let rank = u32::try_from(distance.checked_div(*stride)?).ok()?;
                (rank < *count && distance % stride == 0).then_some(CommRank(rank))
            }
            Form::List(list) => list.iter().position(|&member| member == task).map(|at| CommRank(at as u32)),
        }
    }

    /// The members in rank order.
    pub fn iter(&self) -> impl Iterator<Item = Rank> {
        (0..self.count()).filter_map(|rank| self.get(CommRank(rank)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks<const N: usize>(list: [u32; N]) -> [Rank; N] {
        list.map(Rank)
    }

    #[test]
    fn equal_lists_have_equal_forms() {
        let strided = Group::new(Members::Strided { first: Rank(1), stride: 2, count: 3 }, 8);
        assert_eq!(Group::new(Members::List(&ranks([1, 3, 5])), 8), strided);
        assert_eq!(Group::new(Members::List(&ranks([0, 1, 2, 3])), 4), Group::new(Members::All, 4),);
        assert_eq!(
            Group::new(Members::List(&ranks([5])), 8),
            Group::new(Members::Strided { first: Rank(5), stride: -7, count: 1 }, 8),
        );
        let downwards = Group::new(Members::List(&ranks([3, 2, 1])), 4).unwrap();
        assert_eq!(downwards.iter().collect::<Vec<_>>(), ranks([3, 2, 1]));
        assert_eq!(downwards.get(CommRank(3)), None);
        assert_eq!(downwards.rank_of(Rank(1)), Some(CommRank(2)));
        assert_eq!(downwards.rank_of(Rank(0)), None);
        let strided = strided.unwrap();
        let ranks_of = [0, 1, 2, 3, 5, 7].map(|task| strided.rank_of(Rank(task)).map(|rank| rank.0));
        assert_eq!(ranks_of, [None, Some(0), None, Some(1), Some(2), None]);
    }

    #[test]
    fn members_outside_the_run_are_refused() {
        assert_eq!(Group::new(Members::List(&ranks([0, 7, 4])), 4), None);
        assert_eq!(Group::new(Members::List(&[]), 4), None);
        assert_eq!(Group::new(Members::Strided { first: Rank(3), stride: -2, count: 3 }, 4), None);
        assert_eq!(
            Group::new(Members::Strided { first: Rank(0), stride: i64::MAX, count: u32::MAX }, 4),
            None
        );
        assert_eq!(Group::new(Members::Strided { first: Rank(0), stride: 1, count: 0 }, 4), None);
    }
}
