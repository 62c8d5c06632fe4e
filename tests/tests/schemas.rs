//! The JSON that commands print conforms to its schema in `docs/schema`, and is the same after its types in `results` have read it.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;
use vef_tests::schema::conforms;
use vef_tests::{root, run, vef};

/// Holds what a command prints against a schema and a type.
fn holds<T: Serialize + DeserializeOwned>(schema: &str, directory: &Path, command: &str, spoils: &[&str]) {
    let words: Vec<&str> = command.split(' ').collect();
    let printed = run(vef().current_dir(directory).args(&words)).output.stdout;
    let value: Value = serde_json::from_slice(&printed).unwrap_or_else(|error| panic!("{command}: {error}"));
    let read: T = serde_json::from_slice(&printed).unwrap_or_else(|error| panic!("{command}: {error}"));
    assert_eq!(serde_json::to_value(read).expect("JSON"), value, "{command}");
    let result = directory.join("printed.json");
    fs::write(&result, printed).expect("a file");
    conforms(schema, &result, spoils);
}

/// A container with all that a report shows, of the bundled capture, and a text.
fn prepare(work: &Path) {
    let capture = root().join("cli/demo/capture");
    std::os::unix::fs::symlink(&capture, work.join("capture")).expect("a link");
    for name in ["t.vefx", "t.vef"] {
        run(vef().current_dir(work).args(["mix", "-i", "capture", "-o", name])).success();
    }
}

#[test]
fn reports_conform_to_their_schema() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    let sim = |options: &[&str], to: &str| {
        let command = ["sim", "t.vefx", "--topology", "torus:2x2", "--json"];
        let result = run(vef().current_dir(work.path()).args(command).args(options)).success().stdout();
        fs::write(work.path().join(to), result).expect("a file");
    };
    sim(&["--links"], "sim.json");
    sim(&["--sweep", "latency=1us,2us"], "sweep.json");
    let spoils = [
        "r.update(schema='vef-report/1')",
        "r['head'].pop('ranks')",
        "r['totals'].update(new=1)",
        "r['totals'].update(messages=0.5)",
        "r['sizes']['classes'].append({'from': 0, 'to': 1, 'messages': 1})",
        "r.update(spent=1)",
    ];
    for command in [
        "stats t.vefx --json",
        "stats t.vef --json",
        "stats capture --json",
        "report t.vefx --format json -o -",
        "report t.vefx --sim sim.json --against t.vef --format json -o -",
        "report t.vefx --no-replay --sim sweep.json --format json -o -",
    ] {
        holds::<results::report::Report>("vef-report-2", work.path(), command, &spoils);
    }
}

#[test]
fn profiles_conform_to_their_schema() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    let spoils = [
        "r.update(schema=1)",
        "r['calls'][0].pop('ns')",
        "r['ranks'][0].update(bytes=-1)",
        "r['phases'].append({'name': 'a', 'entries': 1, 'ns': 1, 'times_ns': {'own': 1}, 'max_ns': 1, 'max_rank': 0})",
    ];
    holds::<results::profile::Profile>("vef-profile-1", work.path(), "profile capture --json", &spoils);
}
