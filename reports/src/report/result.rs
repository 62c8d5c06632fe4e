//! Reads the result of a simulation, the JSON that `vef sim --json` wrote (docs/simulator.md lists its keys).
//!
//! With `--links` most of it is the load of links over time, of which a report shows the busiest links only: the others are dropped
//! while the file is read.

use super::shape::{self, ShapeError};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::fmt;
use std::io::{self, BufReader, Read};

/// A file is not the result of a simulation.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// It cannot be read.
    #[error(transparent)]
    Io(io::Error),
    /// It is no JSON.
    #[error("no JSON: {0}")]
    Json(serde_json::Error),
    /// It is JSON of something else.
    #[error("not the JSON of `vef sim --json`: {0}")]
    Other(serde_json::Error),
    /// It has another schema.
    #[error("not the JSON of `vef sim --json`: \"schema\" is {0:?}, not {SCHEMA:?}")]
    Schema(String),
    /// It is of several simulations.
    #[error("the JSON of a sweep (\"schema\" is {0:?}), not of one simulation")]
    Sweep(String),
    /// A value of it is missing, or is something else.
    #[error("not the JSON of `vef sim --json`: {0}")]
    Shape(#[from] ShapeError),
    /// It is of another trace.
    #[error("the result of another trace: {what} {there} there, {here} here")]
    OtherTrace {
        /// What differs.
        what: &'static str,
        /// In the result.
        there: String,
        /// In the trace of the report.
        here: String,
    },
}

impl From<serde_json::Error> for SimulationError {
    fn from(error: serde_json::Error) -> Self {
        match error.classify() {
            Category::Io => Self::Io(error.into()),
            Category::Data => Self::Other(error),
            _ => Self::Json(error),
        }
    }
}

/// The schema of the results that are read.
const SCHEMA: &str = "vef-sim/1";
/// The schemas of a sweep's table and of its points.
const SWEEPS: [&str; 2] = ["vef-sweep/1", "vef-sweep-point/1"];

/// Links that keep their load over time, at most: the busiest.
pub(super) const MOST_LINKS_OVER_TIME: usize = 256;
/// Keys that all links keep.
const KEPT: [&str; 5] = ["link", "utilisation", "messages", "bytes", "busy_ps"];
/// Where the links are.
const LINKS: [&str; 2] = ["links", "all"];

/// The result of a simulation from its JSON; the busiest links have all of their keys.
///
/// # Errors
/// It is something else, or cannot be read.
pub fn read(json: impl Read) -> Result<Value, SimulationError> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 20, json));
    let value = Part { links_at: &LINKS }.deserialize(&mut json)?;
    json.end()?;
    match value.get("schema").and_then(Value::as_str) {
        Some(schema) if SWEEPS.contains(&schema) => Err(SimulationError::Sweep(schema.to_owned())),
        Some(schema) if schema != SCHEMA => Err(SimulationError::Schema(schema.to_owned())),
        _ => Ok(shape::check(&value).map(|()| value)?),
    }
}

/// Compares the utilisation of two links.
pub(super) fn busiest_first(one: &Value, other: &Value) -> Ordering {
    let [one, other] =
        [one, other].map(|link| link.get("utilisation").and_then(Value::as_f64).unwrap_or(0.0));
    other.total_cmp(&one)
}

/// A part of the result, with the links at a path of keys.
struct Part {
    links_at: &'static [&'static str],
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the result of a simulation")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match self.links_at.split_first() {
                Some((first, rest)) if *first == key => map.next_value_seed(Self { links_at: rest })?,
                _ => map.next_value()?,
            };
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut links: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        let mut whole = Vec::new();
        while let Some(link) = links.next_element::<Value>()? {
            whole.push(all.len());
            all.push(link);
            if whole.len() >= 2 * MOST_LINKS_OVER_TIME {
                keep_busiest(&mut all, &mut whole);
            }
        }
        Ok(Value::Array(all))
    }
}

/// Drops most keys of all `whole` links but the busiest.
fn keep_busiest(all: &mut [Value], whole: &mut Vec<usize>) {
    whole.sort_by(|&one, &other| busiest_first(&all[one], &all[other]).then(one.cmp(&other)));
    for at in whole.drain(MOST_LINKS_OVER_TIME..) {
        if let Value::Object(link) = &mut all[at] {
            link.retain(|key, _| KEPT.contains(&key.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A result with links of these utilisations.
    fn result(utilisations: &[u8]) -> Value {
        let link = |(at, &share): (usize, &u8)| {
            json!({"link": at.to_string(), "utilisation": f64::from(share) / 256.0, "messages": 1, "bytes": 2, "busy_ps": 3,
                   "busy": [0.5, 0.25], "sources": []})
        };
        let all: Vec<Value> = utilisations.iter().enumerate().map(link).collect();
        json!({"schema": SCHEMA, "runtime_ps": 1, "messages": 2, "network": {"all": [[1], [2]]}, "latency_ps": null, "links": {"used": 1, "all": all}})
    }

    proptest! {
        #[test]
        fn the_busiest_links_are_whole(utilisations in proptest::collection::vec(any::<u8>(), 0..1500)) {
            let whole = result(&utilisations);
            let read = read(whole.to_string().as_bytes()).expect("a result");
            let mut order: Vec<usize> = (0..utilisations.len()).collect();
            // Of links that are equally busy, the first ones.
            order.sort_by_key(|&at| std::cmp::Reverse(utilisations[at]));
            for (place, at) in order.into_iter().enumerate() {
                let [read, whole] = [&read, &whole].map(|result| &result["links"]["all"][at]);
                for key in KEPT {
                    prop_assert_eq!(&read[key], &whole[key]);
                }
                if place < MOST_LINKS_OVER_TIME {
                    prop_assert_eq!(read, whole);
                }
            }
            let kept = read["links"]["all"].as_array().expect("links").iter().filter(|link| link.get("busy").is_some()).count();
            prop_assert!(kept < 2 * MOST_LINKS_OVER_TIME);
            let without = |mut value: Value| { value["links"]["all"].take(); value };
            prop_assert_eq!(without(read), without(whole));
        }
    }

    #[test]
    fn a_value_of_another_shape_is_refused_with_its_place() {
        let sound = result(&[1, 2]);
        for (path, value, said) in [
            ("/runtime_ps", json!("long"), "\"runtime_ps\" is not a whole number"),
            ("/runtime_ps", json!(-1), "\"runtime_ps\" is not a whole number"),
            ("/network", json!([]), "\"network\" is not an object"),
            ("/network", Value::Null, "\"network\" is not an object"),
            ("/links/all/1/link", json!(7), "\"links/all/1/link\" is not a text"),
            ("/links/all/1", json!({"utilisation": 1}), "there is no \"links/all/1/link\""),
            ("/links/all/0", Value::Null, "\"links/all/0\" is not an object"),
            ("/links/all/0/busy", json!("often"), "\"links/all/0/busy\" is not a list"),
            ("/links/all/0/busy/1", json!("often"), "\"links/all/0/busy/1\" is not a number"),
            ("/latency_ps", json!({"p50": 0.5}), "\"latency_ps/p50\" is not a whole number"),
        ] {
            let mut result = sound.clone();
            *result.pointer_mut(path).expect(path) = value;
            let error = read(result.to_string().as_bytes()).expect_err(path).to_string();
            assert!(error.ends_with(said), "{error}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for (json, part) in [
            ("", "no JSON: EOF"),
            ("{} {}", "no JSON: trailing"),
            ("{\"runtime_ps\": 1}", "there is no \"messages\""),
            ("[1, 2]", "there is no \"runtime_ps\""),
            ("{\"schema\": \"vef-sim/9\"}", "\"schema\" is \"vef-sim/9\", not \"vef-sim/1\""),
            ("{\"schema\": \"vef-sweep/1\", \"points\": []}", "the JSON of a sweep"),
            (
                "{\"schema\": 1, \"runtime_ps\": 1, \"messages\": 1, \"network\": {}, \"links\": {}}",
                "\"schema\" is not a text",
            ),
            (
                "{\"runtime_ps\": 1, \"messages\": 1, \"network\": {}, \"links\": {}}",
                "there is no \"schema\"",
            ),
            ("null", "there is no \"runtime_ps\""),
            ("7", "not the JSON of `vef sim --json`: invalid type"),
            ("{\"links\": {\"all\": 5}}", "not the JSON of `vef sim --json`: invalid type"),
        ] {
            let error = read(json.as_bytes()).expect_err(json).to_string();
            assert!(error.contains(part), "{json}: {error}");
        }
        let directory = std::fs::File::open(".").expect("a directory");
        let error = read(directory).expect_err("a directory").to_string();
        assert!(error.contains("directory"), "{error}");
    }
}
