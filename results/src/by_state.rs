//! A value for each state of a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Index, IndexMut};
use vef_format::state::State;

/// A time, or times, for each [`State`]; in JSON an object with a key for each, its name and `_ps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Keys<T>", into = "Keys<T>", bound(serialize = "T: Clone + Serialize"))]
pub struct ByState<T>(pub [T; State::ALL.len()]);

impl<T> ByState<T> {
    /// Values by state.
    pub fn from_fn(value: impl FnMut(State) -> T) -> Self {
        Self(State::ALL.map(value))
    }

    /// States and their values.
    pub fn iter(&self) -> impl Iterator<Item = (State, &T)> {
        State::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<State> for ByState<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, state: State) -> &T {
        &self.0[state as usize]
    }
}

impl<T> IndexMut<State> for ByState<T> {
    #[inline(always)]
    fn index_mut(&mut self, state: State) -> &mut T {
        &mut self.0[state as usize]
    }
}

/// The same in JSON.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ByState_{T}")]
struct Keys<T> {
    computing_ps: T,
    send_ps: T,
    reception_ps: T,
    collective_ps: T,
}

impl<T> From<Keys<T>> for ByState<T> {
    fn from(keys: Keys<T>) -> Self {
        Self([keys.computing_ps, keys.send_ps, keys.reception_ps, keys.collective_ps])
    }
}

impl<T> From<ByState<T>> for Keys<T> {
    fn from(ByState([computing_ps, send_ps, reception_ps, collective_ps]): ByState<T>) -> Self {
        Self { computing_ps, send_ps, reception_ps, collective_ps }
    }
}
