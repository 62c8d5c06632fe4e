//! JSON Schemas in the manual: made from types, and results held against them.

use crate::{root, run, skipped};
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::path::Path;
use std::process::Command;

/// The schema of a result, in which no key is allowed that the type does not have.
pub fn schema<T: JsonSchema>() -> String {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>();
    let mut close = RecursiveTransform(|schema: &mut Schema| {
        // The plain "format" of numbers means nothing to validators.
        schema.remove("format");
        if schema.get("properties").is_some() {
            schema.insert("additionalProperties".to_owned(), false.into());
        }
    });
    close.transform(&mut schema);
    serde_json::to_string_pretty(&schema).expect("JSON") + "\n"
}

const CHECK: &str = "
import json, sys, jsonschema
schema, result = (json.load(open(path)) for path in sys.argv[1:3])
validator = jsonschema.Draft202012Validator(schema)
validator.check_schema(schema)
errors = [f'{list(e.path)}: {e.message[:200]}' for e in validator.iter_errors(result)]
assert not errors, errors
for spoil in sys.argv[3:]:
    wrong = json.loads(json.dumps(result))
    exec(spoil, {'r': wrong})
    assert wrong != result and not validator.is_valid(wrong), spoil
";

/// Whether Python has jsonschema; says so if not.
fn can_check() -> bool {
    let can = run(Command::new("python3").args(["-c", "import jsonschema"])).output.status.success();
    if !can {
        skipped("Python has no jsonschema (python3-jsonschema)");
    }
    can
}

/// Asserts that a result conforms to `docs/schema/<schema>.json`, and does not after each of some Python statements that
/// change the result `r`.
pub fn conforms(schema: &str, result: &Path, spoils: &[&str]) {
    if can_check() {
        let schema = root().join("docs/schema").join(format!("{schema}.json"));
        run(Command::new("python3").args(["-W", "ignore", "-c", CHECK]).arg(schema).arg(result).args(spoils))
            .success();
    }
}
