//! The JSON Schemas in `docs/schema` are those of the types. What commands print conforms to them, and is the same after the types have
//! read it.

use placement::{Placement, PlacementFormat};
use results::check::Check;
use results::conversion::{Export, Import, Mix};
use results::profile::Profile;
use results::report::Report;
use results::schedule::Schedule;
use results::simulation::Simulation;
use results::sweep::Sweep;
use results::text::Aggregated;
use results::traffic::Traffic;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::Path;
use vef_tests::schema::{conforms, schema};
use vef_tests::{root, run, vef};

type Mixed = Mix<mixer::Summary>;
type Imported = Import<interchange::Summary, mixer::Summary>;
type Exported = Export<interchange::Exported>;

#[test]
fn schemas_are_those_of_the_types() {
    let directory = root().join("docs/schema");
    let schemas = [
        ("vef-bench-1", schema::<collbench::Report>()),
        ("vef-bench-check-1", schema::<Vec<collbench::check::ComparedCell>>()),
        ("vef-bench-launch-1", schema::<Vec<collbench::MergedRow>>()),
        ("vef-check-1", schema::<Check>()),
        ("vef-export-1", schema::<Exported>()),
        ("vef-import-1", schema::<Imported>()),
        ("vef-mix-1", schema::<Mixed>()),
        ("vef-place-1", schema::<placement::Placement>()),
        ("vef-profile-1", schema::<Profile>()),
        ("vef-report-2", schema::<Report>()),
        ("vef-schedule-1", schema::<Schedule>()),
        ("vef-sim-2", schema::<Simulation>()),
        ("vef-sweep-2", schema::<Sweep>()),
        ("vef-text-1", schema::<Aggregated>()),
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

/// Holds what a command prints against a schema and a type.
fn holds<T: Serialize + DeserializeOwned>(schema: &str, directory: &Path, command: &str, spoils: &[&str]) {
    let read = |printed: &str| {
        let read: T = serde_json::from_str(printed).unwrap_or_else(|error| panic!("{command}: {error}"));
        serde_json::to_value(read).expect("JSON")
    };
    holds_as(schema, directory, command, read, spoils);
}

/// Holds what a command prints against a schema, and against what is written of it when it has been read.
fn holds_as(schema: &str, work: &Path, command: &str, read: impl Fn(&str) -> Value, spoils: &[&str]) {
    let words: Vec<&str> = command.split(' ').collect();
    let printed = run(vef().current_dir(work).args(&words)).stdout();
    let value: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{command}: {error}"));
    assert_eq!(read(&printed), value, "{command}");
    let result = work.join("printed.json");
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
        holds::<Report>("vef-report-2", work.path(), command, &spoils);
    }
}

#[test]
fn conversions_conform_to_their_schema() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    let work = work.path();
    let spoils = [
        "r.update(schema='vef-mix/0')",
        "r.pop('records')",
        "r['times'].update(walk_ns=0.5)",
        "r.update(new=1)",
    ];
    holds::<Mixed>("vef-mix-1", work, "mix capture -o m.vefx --json", &spoils);
    let spoils = ["r.pop('schema')", "r.update(ranks='4')", "r.update(new=1)"];
    holds::<Exported>("vef-export-1", work, "export --to goal t.vefx -o t.goal --json", &spoils);
    holds::<Exported>("vef-export-1", work, "export --to ti t.vefx -o actions --json", &spoils);
    // Of calls, which become a capture, and of a graph.
    let spoils = ["r.pop('schema')", "r['import'].pop('calls')", "r.update(mix=1)", "r.update(new=1)"];
    holds::<Imported>("vef-import-1", work, "import actions -o i.vefx --json", &spoils);
    holds::<Imported>("vef-import-1", work, "import t.goal -o g.vefx --json", &spoils);
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
    holds::<Profile>("vef-profile-1", work.path(), "profile capture --json", &spoils);
}

#[test]
fn checks_conform_to_their_schema() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    // A record waits for a message that is not marked as awaited; in the other file, for one that is not there.
    let wrong = "VEF3 2 2 0 0 0 0 1000\n0 0 1 1250 0 1000 -1\n1 1 1 0 2 500 0\n";
    fs::write(work.path().join("wrong.vef"), wrong).expect("a file");
    fs::write(work.path().join("lost.vef"), wrong.replace("500 0", "500 7")).expect("a file");
    fs::write(work.path().join("cut.vef"), "VEF3 2").expect("a file");
    fs::write(work.path().join("alone.goal"), "num_ranks 2\nrank 0 {\nl1: send 8b to 1\n}\nrank 1 {\n}\n")
        .expect("a file");
    let spoils = ["r.update(complete='yes')", "r.pop('trace')", "r.update(new=1)"];
    for command in [
        "check t.vefx --json",
        "check capture --json",
        "check wrong.vef --json",
        "check wrong.vef --repair mended.vef --json",
        "check lost.vef --repair mended.vef --json",
        "check cut.vef --json",
        "check alone.goal --json",
    ] {
        holds::<Check>("vef-check-1", work.path(), command, &spoils);
    }
    let spoils = [
        "r['dependencies'].pop('send')",
        "r['operations'].update(a={'lines': 1})",
        "r['yardstick'].update(stuck=1)",
    ];
    holds::<Check>("vef-check-1", work.path(), "check t.vef --json", &spoils);
    let spoils = ["r['problems'][0].update(kind='a')", "r['kinds'].update(not_awaited='a')"];
    holds::<Check>("vef-check-1", work.path(), "check wrong.vef --json", &spoils);
}

#[test]
fn what_else_is_json_conforms_to_its_schema() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    let text = work.path().join("copy");
    fs::create_dir(&text).expect("a directory");
    for file in fs::read_dir(work.path().join("capture")).expect("a directory").flatten() {
        fs::copy(file.path(), text.join(file.file_name())).expect("a copy");
    }
    holds::<Aggregated>(
        "vef-text-1",
        work.path(),
        "text copy --json",
        &["r.update(ranks='4')", "r.pop('output')"],
    );
    let spoils = ["r['ranks'][0].pop('node')", "r['nodes'][0].update(cores='4')"];
    let read = |printed: &str| {
        let placement = Placement::parse(printed, PlacementFormat::Json, "printed").expect("a placement");
        serde_json::to_value(placement).expect("JSON")
    };
    let command = "place -n 5 --nodes 3 --slots 2 --format json";
    holds_as("vef-place-1", work.path(), command, read, &spoils);
    // Measurements of four hosts.
    let accuracy = root().join("docs/accuracy");
    let rows = fs::read_to_string(accuracy.join("collectives-openmpi-20mbit.measured.json")).expect("rows");
    let value: Value = serde_json::from_str(&rows).expect("JSON");
    let report: collbench::Report = serde_json::from_value(value.clone()).expect("a report");
    assert_eq!(serde_json::to_value(&report).expect("JSON"), value);
    let merged = serde_json::to_string(&collbench::merge(&[report.clone(), report], 0.95)).expect("JSON");
    fs::write(work.path().join("merged.json"), merged).expect("a file");
    conforms("vef-bench-launch-1", &work.path().join("merged.json"), &["r[0].pop('ranks')", "r.append(1)"]);
    let command = format!(
        "bench check {0}.measured.json --calibration {1}/calibration-openmpi-20mbit.toml --json",
        accuracy.join("collectives-openmpi-20mbit").display(),
        accuracy.display()
    );
    let spoils = ["r[0].update(simulated_ns=None)", "r[0].update(new=1)"];
    holds::<Vec<collbench::check::ComparedCell>>("vef-bench-check-1", work.path(), &command, &spoils);
}
