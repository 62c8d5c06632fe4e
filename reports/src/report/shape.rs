//! The shapes of the values in the result of a simulation, as far as a report uses them: figures and tables need not doubt them.

use serde_json::Value;

/// A value is not what a report needs. Values are named by keys and numbers in lists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// It is missing.
    #[error("there is no {0:?}")]
    Absent(String),
    /// It is something else.
    #[error("{at:?} is not {wanted}")]
    Other {
        /// Which.
        at: String,
        /// What it should be.
        wanted: &'static str,
    },
}

/// What a value is.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Object,
    List,
    Text,
    Whole,
    Real,
}

use Shape::{List, Object, Real, Text, Whole};

/// Values by path: `*` is each element of a list; what ends in `?` may be absent or null, as may everything on the way to a value.
const USED: &[(Shape, &[&str])] = &[
    (Whole, &["runtime_ps", "messages"]),
    (Object, &["network", "latency_ps?", "links", "ideal?", "critical_path?"]),
    (Text, &["network/topology?", "network/routing?", "network/model?"]),
    (Whole, &["bytes?", "collectives?", "network/nodes?", "network/links?", "links/used?", "links/bin_ps?"]),
    (Real, &["ideal/slowdown?", "links/utilisation_max?", "links/utilisation_mean?"]),
    (Whole, &["latency_ps/messages?", "latency_ps/min?", "latency_ps/mean?", "latency_ps/p50?"]),
    (Whole, &["latency_ps/p90?", "latency_ps/p99?", "latency_ps/max?"]),
    (List, &["links/all?", "links/busiest?", "kinds?", "sizes?", "jobs?", "critical_path/links?"]),
    (Text, &["links/all/*/link", "links/busiest/*/link", "kinds/*/kind", "critical_path/links/*/link"]),
    (Real, &["links/all/*/utilisation", "links/busiest/*/utilisation", "links/all/*/busy/*"]),
    (Whole, &["links/all/*/messages?", "links/all/*/bytes?", "links/all/*/busy_ps?"]),
    (Whole, &["links/busiest/*/messages?", "links/busiest/*/bytes?", "links/busiest/*/busy_ps?"]),
    (Whole, &["links/busiest/*/waited_ps?", "kinds/*/messages?", "kinds/*/bytes?"]),
    (Whole, &["kinds/*/latency_ps/messages?", "kinds/*/latency_ps/min?", "kinds/*/latency_ps/mean?"]),
    (Whole, &["kinds/*/latency_ps/p50?", "kinds/*/latency_ps/p90?", "kinds/*/latency_ps/p99?"]),
    (Whole, &["kinds/*/latency_ps/max?", "sizes/*/from_bytes", "sizes/*/to_bytes", "sizes/*/messages"]),
    (Whole, &["sizes/*/min", "sizes/*/p50", "sizes/*/p99", "jobs/*/tasks", "jobs/*/finish_ps/tasks/*"]),
    (List, &["jobs/*/ranks?", "jobs/*/finish_ps/tasks"]),
    (Whole, &["jobs/*/ranks/*/computing_ps?", "jobs/*/ranks/*/collectives_ps?"]),
    (Whole, &["jobs/*/ranks/*/waiting_ps?", "jobs/*/ranks/*/sending_ps?"]),
    (Whole, &["critical_path/before_start_ps?", "critical_path/computing_ps?", "critical_path/overhead_ps?"]),
    (Whole, &["critical_path/latency_ps?", "critical_path/transmission_ps?", "critical_path/queueing_ps?"]),
    (Whole, &["critical_path/memory_ps?", "critical_path/links/*/transmission_ps?"]),
    (Whole, &["critical_path/links/*/queueing_ps?", "critical_path/links/*/runtime_if_twice_as_fast_ps?"]),
    (Text, &["schema"]),
];

/// Refuses a result in which a value has another shape.
pub(super) fn check(result: &Value) -> Result<(), ShapeError> {
    let all = USED.iter().flat_map(|(shape, paths)| paths.iter().map(|path| (*shape, *path)));
    all.into_iter().try_for_each(|(shape, path)| walk(result, path, shape, &mut String::new()))
}

/// Checks the values at the rest of a path; `at` is the way that led here.
fn walk(value: &Value, rest: &str, shape: Shape, at: &mut String) -> Result<(), ShapeError> {
    let (first, rest) = rest.split_once('/').map_or((rest, None), |(first, rest)| (first, Some(rest)));
    let length = at.len();
    let mut step = |name: &str, value: &Value| {
        at.truncate(length);
        at.push_str(if length == 0 { "" } else { "/" });
        at.push_str(name);
        match rest {
            Some(rest) => walk(value, rest, shape, at),
            None if shape.is_of(value) => Ok(()),
            None => Err(ShapeError::Other { at: at.clone(), wanted: shape.name() }),
        }
    };
    match (first, value) {
        ("*", Value::Array(values)) => {
            let mut all = values.iter().enumerate();
            all.try_for_each(|(number, value)| step(&number.to_string(), value))
        }
        ("*", _) => Err(ShapeError::Other { at: at.clone(), wanted: List.name() }),
        _ if length > 0 && !value.is_object() => {
            Err(ShapeError::Other { at: at.clone(), wanted: Object.name() })
        }
        (name, _) => {
            let (name, may_lack) = name.strip_suffix('?').map_or((name, rest.is_some()), |name| (name, true));
            match value.get(name) {
                None => match may_lack {
                    true => Ok(()),
                    false => Err(ShapeError::Absent(joined(at, name))),
                },
                Some(Value::Null) if may_lack => Ok(()),
                Some(value) => step(name, value),
            }
        }
    }
}

fn joined(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") }
}

impl Shape {
    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::Text => value.is_string(),
            Self::Whole => value.is_u64(),
            Self::Real => value.is_number(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::List => "a list",
            Self::Text => "a text",
            Self::Whole => "a whole number",
            Self::Real => "a number",
        }
    }
}
