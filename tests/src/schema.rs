//! Results held against the JSON Schemas in the manual.

use crate::{root, run, skipped};
use std::path::Path;
use std::process::Command;

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
