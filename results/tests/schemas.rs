//! The JSON Schemas in `docs/schema` are those of the types. Of those that are not, the test says where the right one is.

use results::profile::Profile;
use results::report::Report;
use results::schedule::Schedule;
use results::simulation::Simulation;
use results::sweep::Sweep;
use results::traffic::Traffic;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::fs;
use std::path::Path;

/// The schema of a result, in which no key is allowed that the type does not have.
fn schema<T: JsonSchema>() -> String {
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

#[test]
fn schemas_are_those_of_the_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/schema");
    let schemas = [
        ("vef-profile-1", schema::<Profile>()),
        ("vef-report-2", schema::<Report>()),
        ("vef-schedule-1", schema::<Schedule>()),
        ("vef-sim-2", schema::<Simulation>()),
        ("vef-sweep-2", schema::<Sweep>()),
        ("vef-traffic-3", schema::<Traffic>()),
    ];
    for (name, schema) in schemas {
        let path = directory.join(name).with_extension("json");
        if fs::read_to_string(&path).unwrap_or_default() != schema {
            let right = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).with_extension("json");
            fs::write(&right, &schema).expect("a schema");
            panic!("not that of the type: cp {} {}", right.display(), path.display());
        }
    }
}
