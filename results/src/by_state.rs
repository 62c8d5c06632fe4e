//! A value for each state of a task.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use vef_format::state::State;

/// A time, or times, for each [`State`]; in JSON an object with a key for each, its name and `_ps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

fn key(state: State) -> String {
    format!("{}_ps", state.name())
}

impl<T: Serialize> Serialize for ByState<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (state, value) in self.iter() {
            map.serialize_entry(&key(state), value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for ByState<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Keys<T> {
            type Value = ByState<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("times by state")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ByState<T>, A::Error> {
                let mut values: [Option<T>; State::ALL.len()] = Default::default();
                while let Some(name) = map.next_key::<String>()? {
                    match State::ALL.into_iter().find(|&state| key(state) == name) {
                        Some(state) => values[state as usize] = Some(map.next_value()?),
                        None => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                match State::ALL.into_iter().find(|&state| values[state as usize].is_none()) {
                    Some(state) => Err(Error::custom(format_args!("missing field `{}`", key(state)))),
                    None => Ok(ByState(values.map(Option::unwrap_or_default))),
                }
            }
        }
        deserializer.deserialize_map(Keys(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for ByState<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("ByState_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let keys = State::ALL.map(key);
        let of_state = |name: &String| (name.clone(), generator.subschema_for::<T>().to_value());
        let properties: serde_json::Map<_, _> = keys.iter().map(of_state).collect();
        json_schema!({ "type": "object", "properties": properties, "required": keys })
    }
}
