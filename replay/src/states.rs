//! How far each id of a trace has come, in two bits an id and only for a window of ids.
//!
//! Ids of a trace are dense and used roughly in order, so the states lie in a row of words that is moved on when an id
//! comes that is behind its end and the first half of the words are all [`State::Over`]. Ids far beyond the window
//! (legal, only strange) are kept in a hash table, so that memory follows the number of ids seen, never their size.

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// How far an id has come: each state has the bits of those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum State {
    /// Not seen yet.
    Unseen = 0b00,
    /// A message that has started; a collective that a member has entered.
    Started = 0b01,
    /// A message delivered, a mark passed, a collective over for all members.
    Over = 0b11,
}

impl State {
    /// The state of an id in its word.
    #[inline(always)]
    fn of(bits: u64, id: u64) -> Self {
        match bits >> shift(id) & 0b11 {
            0b00 => Self::Unseen,
            0b01 => Self::Started,
            _ => Self::Over,
        }
    }

    /// Changes the state of an id in its word; returns the state before. An id never goes back.
    #[inline(always)]
    fn put(bits: &mut u64, id: u64, state: Self) -> Self {
        let before = Self::of(*bits, id);
        *bits |= (state as u64) << shift(id);
        before
    }
}

/// Ids in one word.
const PER_WORD: u64 = 32;
/// Words that the window has from the start.
const FIRST_WORDS: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct States {
    /// All ids below `base × PER_WORD` are done.
    base: u64,
    /// Words `base .. base + window.len()`.
    window: Vec<u64>,
    /// So many of the first words of the window are known to be all done.
    done: usize,
    far: HashMap<u64, u64>,
    /// Ids that have left [`State::Unseen`].
    seen: u64,
}

impl Default for States {
    fn default() -> Self {
        Self { base: 0, window: vec![0; FIRST_WORDS], done: 0, far: HashMap::new(), seen: 0 }
    }
}

impl States {
    /// The state of an id.
    #[inline(always)]
    pub(crate) fn get(&self, id: u64) -> State {
        match self.window.get(self.place(id / PER_WORD)) {
            Some(&bits) => State::of(bits, id),
            None => self.get_outside(id),
        }
    }

    /// Changes the state of an id; returns the state before. An id never goes back.
    #[inline(always)]
    pub(crate) fn set(&mut self, id: u64, state: State) -> State {
        let place = self.place(id / PER_WORD);
        match self.window.get_mut(place) {
            Some(bits) => {
                let before = State::put(bits, id, state);
                self.seen += u64::from(before == State::Unseen);
                before
            }
            None => self.set_outside(id, state),
        }
    }

    /// The place of a word in the window: beyond its end for words in front of it too.
    #[inline(always)]
    fn place(&self, word: u64) -> usize {
        usize::try_from(word.wrapping_sub(self.base)).unwrap_or(usize::MAX)
    }

    #[cold]
    fn get_outside(&self, id: u64) -> State {
        let word = id / PER_WORD;
        if word < self.base {
            return State::Over;
        }
        State::of(self.far.get(&word).copied().unwrap_or(0), id)
    }

    #[cold]
    fn set_outside(&mut self, id: u64, state: State) -> State {
        let word = id / PER_WORD;
        if word < self.base {
            return State::Over;
        }
        if self.reach(word) {
            return self.set(id, state);
        }
        let before = State::put(self.far.entry(word).or_insert(0), id, state);
        self.seen += u64::from(before == State::Unseen);
        before
    }

    /// Makes the window reach `word`, if it can be moved on so far, or the ids seen so far justify a larger one.
    fn reach(&mut self, word: u64) -> bool {
        let length = self.window.len();
        self.done += self.window[self.done..].iter().take_while(|&&bits| bits == u64::MAX).count();
        // Moved by less it would have to be moved too often.
        let moves = self.done >= length / 2;
        if moves {
            self.window.copy_within(self.done.., 0);
            self.window[length - self.done..].fill(0);
            self.base += self.done as u64;
            self.done = 0;
        }
        let needed = word - self.base + 1;
        let grows = needed > length as u64 && needed <= self.seen.max(1 << 12);
        if grows {
            self.window.resize(needed.next_power_of_two() as usize, 0);
        }
        if moves || grows {
            self.far.retain(|word, bits| {
                let entered = self.window.get_mut((word - self.base) as usize);
                entered.map(|place| *place = *bits).is_none()
            });
        }
        needed <= self.window.len() as u64
    }
}

#[inline(always)]
fn shift(id: u64) -> u32 {
    (id % PER_WORD * 2) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap as Plain;

    fn ids() -> impl Strategy<Value = u64> {
        // The last id of each length that the window can have, too.
        let last = (6..14u32).prop_map(|length| (PER_WORD << length) - 1);
        prop_oneof![8 => 0u64..400, 2 => 0u64..200_000, 1 => last, 1 => any::<u64>()]
    }

    /// A step of a trace whose ids grow.
    #[derive(Clone, Debug)]
    enum Step {
        /// So many ids are over; the first of them remains started, if `late`.
        Over { ids: u64, late: bool },
        /// The first of those that remained is over.
        Late,
        /// The id so far ahead starts.
        Ahead(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let over = (1..3000u64, prop::bool::weighted(0.3)).prop_map(|(ids, late)| Step::Over { ids, late });
        let ahead = prop_oneof![0..5000u64, 0..400_000u64].prop_map(Step::Ahead);
        prop::collection::vec(prop_oneof![4 => over, 2 => Just(Step::Late), 2 => ahead], 1..60)
    }

    proptest! {
        #[test]
        fn holds_what_a_plain_table_holds(steps in prop::collection::vec((ids(), 0u8..2), 1..4000)) {
            let (mut states, mut plain) = (States::default(), Plain::new());
            for (id, state) in steps {
                let state = [State::Started, State::Over][state as usize];
                let before = *plain.get(&id).unwrap_or(&State::Unseen);
                prop_assert_eq!(states.get(id), before);
                prop_assert_eq!(states.set(id, state), before);
                plain.insert(id, state.max(before));
            }
            for (&id, &state) in &plain {
                prop_assert_eq!(states.get(id), state);
            }
        }

        /// The window moves on, and grows; ids that were beyond it come into it.
        #[test]
        fn holds_what_a_plain_table_holds_as_ids_grow(steps in steps()) {
            let (mut states, mut plain) = (States::default(), Plain::new());
            let mut set = |id, state: State| {
                let before = plain.insert(id, state).unwrap_or(State::Unseen);
                if before <= state {
                    assert_eq!(states.set(id, state), before, "{id}");
                } else {
                    plain.insert(id, before);
                }
            };
            let (mut next, mut remain) = (0, std::collections::VecDeque::new());
            for step in steps {
                match step {
                    Step::Over { ids, late } => {
                        for id in next..next + ids {
                            set(id, if late && id == next { State::Started } else { State::Over });
                        }
                        if late {
                            remain.push_back(next);
                        }
                        next += ids;
                    }
                    Step::Late => remain.pop_front().into_iter().for_each(|id| set(id, State::Over)),
                    Step::Ahead(distance) => set(next + distance, State::Started),
                }
            }
            for (&id, &state) in &plain {
                prop_assert_eq!(states.get(id), state, "{}", id);
            }
        }
    }

    #[test]
    fn dense_ids_need_a_window() {
        let mut states = States::default();
        for id in 0..1_000_000 {
            states.set(id + 500, State::Started);
            states.set(id, State::Over);
        }
        assert!(states.window.len() <= 64 && states.far.is_empty());
        assert_eq!((states.get(0), states.get(999_999)), (State::Over, State::Over));
        assert_eq!(states.get(1_000_400), State::Started);
    }

    #[test]
    fn as_many_ids_as_a_trace_has_may_be_under_way() {
        let mut states = States::default();
        for id in 0..400_000 {
            states.set(id, State::Started);
        }
        assert!(states.far.is_empty(), "{}", states.far.len());
    }

    #[test]
    fn huge_ids_do_not_take_huge_memory() {
        let mut states = States::default();
        for id in (0..1000).map(|n| u64::MAX - n * 1_000_003) {
            assert_eq!(states.set(id, State::Over), State::Unseen);
            assert_eq!(states.get(id), State::Over);
        }
        assert!(states.window.len() <= 1 << 13);
    }
}
