//! What scripts of `tests/py` count in a trace, which share no code with vef, against what vef says of it.

use crate::{root, run};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// What a script of `tests/py` counts.
///
/// # Panics
/// If the script fails.
pub fn counted(script: &str, trace: &Path, arguments: &[&str]) -> Value {
    let script = root().join("tests/py").join(script);
    let ended = run(Command::new("python3").arg(script).arg(trace).args(arguments)).success();
    serde_json::from_str(&ended.stdout()).expect("JSON")
}

/// Everything that was counted is what the report says; the report may say more.
///
/// # Panics
/// If it is not.
pub fn holds(report: &Value, counted: &Value, place: &str) {
    match (report, counted) {
        (Value::Object(report), Value::Object(counted)) => {
            for (key, value) in counted {
                holds(report.get(key).unwrap_or(&Value::Null), value, &format!("{place}.{key}"));
            }
        }
        (Value::Array(report), Value::Array(counted)) => {
            assert_eq!(report.len(), counted.len(), "{place}");
            for (at, (report, counted)) in report.iter().zip(counted).enumerate() {
                holds(report, counted, &format!("{place}[{at}]"));
            }
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() || other.is_f64() => {
            let (one, other) = (one.as_f64().expect("a number"), other.as_f64().expect("a number"));
            assert!((one - other).abs() < 1e-9 * other.abs().max(1.0), "{place}: {one} {other}");
        }
        _ => assert_eq!(report, counted, "{place}"),
    }
}
