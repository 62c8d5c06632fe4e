//! `vef report`: what is on the page is what the data says, whoever the trace comes from; in a browser, in files, on paper.

use base64::Engine as _;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use vef_tests::counted::{counted, holds};
use vef_tests::{have, installed, root, run, skipped, vef};

/// The bundled capture as a container.
fn demo(work: &Path) -> PathBuf {
    let trace = work.join("demo.vefx");
    run(vef().args(["mix", "-i"]).arg(root().join("cli/demo/capture")).arg("-o").arg(&trace)).success();
    trace
}

fn file(work: &Path, name: &str, text: &str) -> PathBuf {
    let path = work.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

fn report(input: &Path, options: &[&str]) -> String {
    run(vef().arg("report").arg(input).args(["-o", "-"]).args(options)).success().stdout()
}

fn json(input: &Path, options: &[&str]) -> Value {
    serde_json::from_str(&report(input, &[&["--format", "json"], options].concat())).expect("JSON")
}

/// The data that a page carries.
fn carried(page: &str) -> String {
    let block = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split('<').next()).expect("the data");
    let packed = base64::engine::general_purpose::STANDARD.decode(block).expect("base64");
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).expect("gzip");
    text
}

/// The values of the first table after `heading`, row by row.
fn table_after(page: &str, heading: &str) -> Vec<Vec<String>> {
    let after = page.split(heading).nth(1).expect("the heading");
    let body = after.split("<tbody>").nth(1).and_then(|rest| rest.split("</tbody>").next()).expect("a table");
    let value = |cell: &str| {
        let shown = cell.split(['>', '<']).nth(1);
        let value = cell.split("data-value=\"").nth(1).and_then(|rest| rest.split('"').next());
        value.or(shown).expect("a cell").replace("&gt;", ">")
    };
    body.split("<tr>").skip(1).map(|row| row.split("<td").skip(1).map(value).collect()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).expect("a number")
}

fn sum(values: &Value) -> f64 {
    values.as_array().expect("a list").iter().map(number).sum()
}

#[test]
fn the_page_carries_the_data_and_a_policy() {
    if !installed("python3") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    let trace = demo(work.path());
    // An independent count of the text, which does not record the end of MPI_Init.
    let page = report(&trace, &[]);
    assert_eq!(carried(&page), report(&trace, &["--format", "json"]).trim_end());
    // It is what stands in the trace, by an independent count of its text.
    let text = work.path().join("demo.vef");
    run(vef().arg("convert").arg(&trace).arg(&text)).success();
    let mut expected = counted("count_trace.py", &text, &[]);
    let mut data: Value = serde_json::from_str(&carried(&page)).expect("JSON");
    for data in [&mut expected, &mut data] {
        // Rows with as many bytes may change places.
        let rows = data["collectives"]["operations"].as_array_mut().expect("a table");
        rows.sort_by_key(|row| (row["operation"].to_string(), row["members"].as_u64()));
    }
    holds(&data, &expected, "page");
    assert!(page.contains("default-src 'none'; script-src 'sha256-"), "no policy");
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // What vef stats says, it says in the same words.
    let stats: Value =
        serde_json::from_str(&run(vef().arg("stats").arg(&trace).arg("--json")).success().stdout())
            .expect("JSON");
    let whole = json(&trace, &[]);
    for key in
        ["totals", "sizes", "pairs", "distances", "locality", "ranks", "collectives", "calls", "phases"]
    {
        assert_eq!(whole[key], stats[key], "{key}");
    }
    // A capture is mixed first, and says so.
    let of_capture = json(&root().join("cli/demo/capture"), &[]);
    assert_eq!(of_capture["head"]["kind"], "capture");
    assert_eq!(of_capture["totals"], whole["totals"]);
    assert_eq!(of_capture["replayed"], whole["replayed"]);
}

/// The times of the replay are those of another one, which shares no code with it (`tests/py/replay_trace.py`).
#[test]
fn ranks_compute_and_wait_as_long_as_in_an_independent_replay() {
    if !installed("python3") {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    for pattern in ["ring", "halo2d", "random", "incast", "sweep"] {
        let trace = work.path().join(format!("{pattern}.vef"));
        let mut generate = vef();
        generate.args([
            "gen",
            pattern,
            "-n",
            "12",
            "--iterations",
            "3",
            "--bytes",
            "5000",
            "--compute",
            "5us",
        ]);
        run(generate.args(["--noise", "0.5", "--imbalance", "0.3", "-o"]).arg(&trace)).success();
        let data = json(&trace, &["--latency", "3us", "--bandwidth", "1Gbit/s"]);
        let replayed = &data["replayed"];
        let bin = replayed["states"]["bin_ps"].to_string();
        let expected = counted("replay_trace.py", &trace, &["3000000", "8000", &bin]);
        holds(replayed, &expected["replayed"], pattern);
        // The mean of messages on the way is over the whole of a bin, which the run may not fill.
        let on_the_way = &replayed["in_flight"];
        let (width, runtime) = (number(&on_the_way["bin_ps"]), number(&replayed["runtime_ps"]));
        let times = on_the_way["mean"].as_array().expect("a list").iter().enumerate();
        let sum: f64 = times.map(|(bin, mean)| number(mean) * width.min(runtime - bin as f64 * width)).sum();
        assert!((sum - number(&expected["under_way_ps"])).abs() < 1.0, "{pattern}: {sum}, {expected}");
    }
}

/// What comes from the replay fits what comes from the trace and from `vef check`, and the sections fit each other.
#[test]
fn sections_of_the_replay_fit_each_other() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = demo(work.path());
    let default = json(&trace, &[]);
    assert_eq!(default["replayed"]["ranks"]["computing_ps"], default["ranks"]["computing_ps"]);
    assert_eq!(sum(&default["replayed"]["ranks"]["initialising_ps"]), 0.0);
    let data = json(&trace, &["--from-launch"]);
    let replayed = &data["replayed"];
    let runtime = number(&replayed["runtime_ps"]);
    let check: Value = serde_json::from_str(
        &run(vef().args(["check", "--from-launch", "--json"]).arg(&trace)).success().stdout(),
    )
    .expect("JSON");
    assert_eq!(runtime, number(&check["runtime_ps"]), "{check}");
    let ranks = number(&data["head"]["ranks"]);
    let states = ["computing", "collective", "reception", "finished"];
    let of_states: f64 = states.iter().map(|state| sum(&replayed["states"][format!("{state}_ps")])).sum();
    assert_eq!(of_states, runtime * ranks);
    for state in states {
        assert_eq!(
            sum(&replayed["ranks"][format!("{state}_ps")]),
            sum(&replayed["states"][format!("{state}_ps")]),
            "{state}"
        );
    }
    assert_eq!(replayed["ranks"]["computing_ps"], data["ranks"]["computing_ps"]);
    // Of a rank's computing MPI_Init comes first; the rank with the longest one is in the head.
    let of_ranks = &replayed["ranks"]["initialising_ps"];
    let longest = of_ranks.as_array().expect("a list").iter().map(number).fold(0.0, f64::max);
    assert!(
        longest > 0.0 && longest == number(&data["head"]["captured"]["initialisation_ps"]),
        "{}",
        data["head"]
    );
    assert_eq!(sum(of_ranks), sum(&replayed["states"]["initialising_ps"]));
    let bins = |state: &str| {
        replayed["states"][state].as_array().expect("a list").iter().map(number).collect::<Vec<_>>()
    };
    let (computing, initialising) = (bins("computing_ps"), bins("initialising_ps"));
    assert!(computing.iter().zip(&initialising).all(|(all, of_it)| of_it <= all), "{initialising:?}");
    let last = (longest / number(&replayed["states"]["bin_ps"])) as usize;
    assert!(
        initialising[last] > 0.0 && initialising[last + 1..].iter().all(|time| *time == 0.0),
        "{initialising:?}"
    );
    // Point-to-point messages on the network are those of the trace.
    let over = &replayed["over_time"];
    let kinds: Vec<&str> =
        over["kinds"].as_array().expect("kinds").iter().filter_map(Value::as_str).collect();
    let at = kinds.iter().position(|kind| *kind == "point-to-point").expect("messages");
    assert_eq!(sum(&over["messages"][at]), number(&data["totals"]["messages"]));
    assert_eq!(sum(&over["bytes"][at]), number(&data["totals"]["bytes"]));
    let everything: f64 = over["bytes"].as_array().expect("lists").iter().map(sum).sum();
    assert_eq!(sum(&replayed["rank_time"]["bytes"]), everything);
    let collective: f64 = sum(&replayed["collectives"]["matrix"]["bytes"]);
    assert_eq!(collective + number(&data["totals"]["bytes"]), everything);
    // Every message is one of so many of its sender, and every collective operation takes its time.
    let flight = &replayed["in_flight"];
    let classes = flight["of_sender"].as_array().expect("classes");
    let started: f64 = classes.iter().map(|class| number(&class["messages"])).sum();
    assert_eq!(started, number(&data["totals"]["messages"]));
    let last = classes.last().expect("messages");
    let most = number(&flight["of_sender_max"]["value"]);
    assert!(number(&last["from"]) <= most && most <= number(&last["to"]), "{flight}");
    let list = |key: &str| flight[key].as_array().expect("a list").iter().map(number).collect::<Vec<_>>();
    let (mean, greatest) = (list("mean"), list("max"));
    assert!(mean.len() == greatest.len() && mean.iter().zip(&greatest).all(|(mean, most)| mean <= most));
    assert!(greatest.iter().any(|&of_all| of_all >= most), "{greatest:?}");
    let operations = replayed["collectives"]["operations"].as_array().expect("operations");
    let sum_of = |key: &str| operations.iter().map(|row| number(&row[key])).sum::<f64>();
    assert_eq!(sum_of("operations"), number(&data["totals"]["collectives"]));
    assert_eq!(sum_of("inside_ps"), sum(&replayed["ranks"]["collective_ps"]), "all of them block");
    assert!((sum_of("share") - sum_of("inside_ps") / (runtime * ranks)).abs() < 1e-12);
}

/// A replay that can be followed by hand: rank 0 computes 1 µs and sends 1250 bytes (2 µs at 1 µs and 10 Gbit/s), rank 1 waits for them and
/// computes 0.5 µs.
#[test]
fn a_trace_of_one_message_by_hand() {
    let work = tempfile::tempdir().expect("a directory");
    let text = "VEF3 2 2 0 0 0 0 1000\n0 0 1 1250 4 1000 -1\n1 1 1 0 2 500 0\n";
    let data = json(&file(work.path(), "one.vef", text), &[]);
    let replayed = &data["replayed"];
    assert_eq!(replayed["runtime_ps"], 3_500_000);
    assert_eq!(replayed["ranks"]["computing_ps"], serde_json::json!([1_000_000, 500_000]));
    assert_eq!(replayed["ranks"]["reception_ps"], serde_json::json!([0, 3_000_000]));
    assert_eq!(replayed["ranks"]["finished_ps"], serde_json::json!([2_500_000, 0]));
    let on_the_way: f64 = replayed["in_flight"]["mean"]
        .as_array()
        .expect("a list")
        .iter()
        .enumerate()
        .map(|(bin, mean)| {
            let width = number(&replayed["in_flight"]["bin_ps"]);
            number(mean) * width.min(3_500_000.0 - bin as f64 * width)
        })
        .sum();
    assert!((on_the_way - 2_000_000.0).abs() < 1.0, "{on_the_way}");
}

/// Two sends at once, then a Barrier that rank 0 enters after 1 µs and rank 1 after 4 µs: rank 0 leaves it when rank 1's message has
/// come, a latency later; the message for rank 1 has come before.
#[test]
fn sends_at_once_and_a_barrier_by_hand() {
    let work = tempfile::tempdir().expect("a directory");
    let text = "VEF3 2 2 1 1 2 0 1000\nC0 0 1\n0 0 1 1250 0 0 -1\n1 0 1 1250 1 0 0\n\
                G0 C0 6 0 0 0 1 1000 1\nG0 C0 6 1 0 0 0 4000 -1\n";
    let replayed = &json(&file(work.path(), "two.vef", text), &[])["replayed"];
    assert_eq!(replayed["in_flight"]["of_sender_max"], serde_json::json!({"rank": 0, "value": 2}));
    assert_eq!(
        replayed["in_flight"]["of_sender"],
        serde_json::json!([{"from": 1, "to": 1, "messages": 1}, {"from": 2, "to": 3, "messages": 1}])
    );
    assert_eq!(replayed["runtime_ps"], 5_000_000);
    // Both until 2 µs, rank 0's message of the barrier from 1 to 2 µs, rank 1's from 4 to 5 µs: in bins of 4096 ps.
    assert_eq!(replayed["in_flight"]["bin_ps"], 4096);
    let most: Vec<f64> =
        replayed["in_flight"]["max"].as_array().expect("a list").iter().map(number).collect();
    let runs: Vec<(f64, usize)> = most.chunk_by(f64::eq).map(|run| (run[0], run.len())).collect();
    assert_eq!(runs, [(2.0, 244), (3.0, 245), (0.0, 487), (1.0, 245)]);
    assert_eq!(
        replayed["collectives"]["operations"],
        serde_json::json!([{
            "operation": "Barrier", "members": 2, "operations": 1, "inside_ps": 4_000_000, "share": 0.4,
            "entry_gap_mean_ps": 3_000_000, "entry_gap_max_ps": 3_000_000,
        }])
    );
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = demo(work.path());
    let one = report(&trace, &["-j", "1"]);
    for jobs in ["2", "5"] {
        assert!(report(&trace, &["-j", jobs]) == one, "-j {jobs}");
    }
}

#[test]
fn files_of_every_format() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = demo(work.path());
    let directory = work.path().join("tables");
    run(vef().arg("report").arg(&trace).args(["--format", "csv", "-o"]).arg(&directory)).success();
    let names = ["ranks", "pairs", "sizes", "distances", "collectives", "phases", "calls", "time", "waits"];
    for name in names {
        let text = std::fs::read_to_string(directory.join(format!("{name}.csv"))).expect(name);
        let commas = |line: &str| line.matches(',').count();
        let head = text.lines().next().expect("a head");
        assert!(text.lines().all(|line| commas(line) == commas(head)), "{name}: {text}");
        // The replay completes sends at once: there are no waits for them.
        let states = "rank,computing_ps,reception_ps,collective_ps,finished_ps";
        assert!(name != "waits" || head == states, "{head}");
    }
    let text = report(&trace, &["--format", "md"]);
    assert!(
        text.starts_with("# `./halo 12 256`\n") && text.contains("\n## Collective operations\n"),
        "{text}"
    );
    assert!(text.contains("\n## Replay\n") && !text.contains("--top"), "{text}");
    let figures = work.path().join("figures");
    run(vef().arg("report").arg(&trace).args(["-o", "-", "--svg"]).arg(&figures)).success();
    for name in ["over-time", "states", "rank-time", "matrix", "sizes", "collectives", "ranks", "distances"] {
        let svg = std::fs::read_to_string(figures.join(format!("{name}.svg"))).expect(name);
        assert!(svg.starts_with("<svg") && svg.contains("xmlns=\"http://www.w3.org/2000/svg\""), "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("undefined"), "{name}");
    }
}

/// pandas, polars and DuckDB in a Python of their own, made once in `target/`; `None`, said aloud: they cannot be had here.
fn python() -> Option<PathBuf> {
    let home = root().join("target/frames");
    let python = home.join("bin/python");
    let works = || {
        python.is_file()
            && run(Command::new(&python).args(["-c", "import pandas, polars, duckdb"]))
                .output
                .status
                .success()
    };
    if works() {
        return Some(python);
    }
    if !installed("python3") {
        return None;
    }
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(&home)).output.status.success();
    let mut install = Command::new(home.join("bin/pip"));
    install.args([
        "install",
        "--quiet",
        "--no-cache-dir",
        "--only-binary",
        ":all:",
        "pandas",
        "polars",
        "duckdb",
    ]);
    if !made || !run(&mut install).output.status.success() || !works() {
        skipped("pandas, polars and duckdb cannot be had here (python3-venv, PyPI)");
        return None;
    }
    Some(python)
}

#[test]
fn tables_load_in_one_line() {
    let Some(python) = python() else { return };
    let work = tempfile::tempdir().expect("a directory");
    let trace = demo(work.path());
    run(vef().arg("report").arg(&trace).args(["--format", "csv", "-o"]).arg(work.path())).success();
    let script = "
import pandas, polars, duckdb, glob
one = pandas.read_csv('ranks.csv')
two = polars.read_csv('ranks.csv')
three = duckdb.sql(\"FROM 'ranks.csv'\").df()
assert list(one.columns) == two.columns == list(three.columns)
for name in one.columns:
    assert one[name].tolist() == two[name].to_list() == three[name].tolist(), name
files = glob.glob('*.csv')
assert len(files) > 8, files
for file in files:
    table = polars.read_csv(file)
    assert duckdb.sql(f\"FROM '{file}'\").fetchall() == table.rows(), file
    for name in table.columns:
        assert table[name].dtype in (polars.Int64, polars.String), (file, name)
print(one['sent_messages'].sum(), two['sent_bytes'].sum())
";
    let loaded = run(Command::new(python).args(["-c", script]).current_dir(work.path())).success().stdout();
    let data = json(&trace, &["--no-replay"]);
    assert_eq!(loaded.trim(), format!("{} {}", data["totals"]["messages"], data["totals"]["bytes"]));
}

#[test]
fn a_simulation_and_a_comparison() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = demo(work.path());
    let result = work.path().join("sim.json");
    let simulated =
        run(vef().arg("sim").arg(&trace).args(["--topology", "torus:2x2", "--json"])).success().stdout();
    std::fs::write(&result, &simulated).expect("a file");
    let data = json(
        &trace,
        &["--sim", result.to_str().expect("a path"), "--against", trace.to_str().expect("a path")],
    );
    // All but the lists by rank, which have columns of their own.
    let mut expected: Value = serde_json::from_str(&simulated).expect("JSON");
    let ranks = expected["jobs"][0]["ranks"].take();
    expected["jobs"][0]["ranks"] = serde_json::json!([]);
    expected["jobs"][0]["finish"]["tasks_ps"] = serde_json::json!([]);
    assert_eq!(data["simulated"]["result"], expected);
    for (rank, times) in ranks.as_array().expect("ranks").iter().enumerate() {
        for (state, time) in times.as_object().expect("times") {
            assert_eq!(data["simulated"]["ranks"][state][rank], *time, "{state} of {rank}");
        }
    }
    for difference in data["against"]["differences"].as_array().expect("a list") {
        assert_eq!(difference["this"], difference["other"], "{difference}");
        assert!(difference["change"].is_null() || difference["change"] == 0.0, "{difference}");
    }
    let page = report(&trace, &["--sim", result.to_str().expect("a path")]);
    assert!(page.contains("id=\"simulation\"") && page.contains("torus:2x2"));
    let latencies = table_after(&page, "<h3>Latency of messages</h3>");
    let all = ["messages", "min_ps", "mean_ps", "p50_ps", "p90_ps", "p99_ps", "p999_ps", "max_ps"];
    let all = all.map(|key| expected["latency"][key].to_string());
    assert_eq!(latencies[0], [&["all messages".to_owned()][..], &all].concat());
    assert_eq!(latencies.len(), 1 + expected["kinds"].as_array().expect("kinds").len());
    let busiest = table_after(&page, "<h3>Links</h3>");
    let listed = expected["links"]["busiest"].as_array().expect("links");
    assert_eq!(busiest.len(), listed.len());
    for (row, link) in busiest.iter().zip(listed) {
        assert_eq!(row.len(), 6, "as wide as a page: {row:?}");
        let keys = ["utilisation", "busy_ps", "messages", "bytes"].map(|key| number(&link[key]));
        assert_eq!(row[0], link["link"].as_str().expect("a name"));
        for (cell, value) in row[1..].iter().zip(keys) {
            assert_eq!(cell.parse::<f64>().ok(), Some(value), "{row:?}");
        }
    }
    let wrong = file(work.path(), "wrong.json", "{\"runtime_ps\": 1}");
    let ended = run(vef().arg("report").arg(&trace).arg("--sim").arg(&wrong)).exited(2);
    assert!(ended.stderr().contains("wrong.json: not the JSON of `vef sim --json`"), "{}", ended.stderr());
}

/// A page that a simulation writes is the one made from its result; a result of another schema, and a sweep, are refused.
#[test]
fn a_result_keeps_every_digit_and_has_our_schema() {
    let work = tempfile::tempdir().expect("a directory");
    let vef = |words: &[&str]| run(vef().current_dir(work.path()).args(words));
    let at = |name: &str| work.path().join(name);
    demo(work.path());
    let mut simulated = String::new();
    // Doubles of many networks: reading them inexactly changes the last digit of some.
    for bandwidth in ["3Gbit/s", "7Gbit/s", "11Gbit/s", "13Gbit/s", "17Gbit/s"] {
        let network = ["--topology", "torus:2x2", "--links", "--bandwidth", bandwidth];
        let words = [&["sim", "demo.vefx"], &network[..], &["--json", "--report", "direct.html"]].concat();
        simulated = vef(&words).success().stdout();
        file(work.path(), "sim.json", &simulated);
        vef(&["report", "demo.vefx", "--sim", "sim.json", "-o", "read.html"]).success();
        let [direct, read] =
            ["direct.html", "read.html"].map(|page| std::fs::read_to_string(at(page)).expect("a page"));
        assert!(direct == read, "{bandwidth}: {}\n{}", carried(&direct), carried(&read));
    }
    let sweep = [
        "sim",
        "demo.vefx",
        "--topology",
        "torus:2x2",
        "--sweep",
        "bandwidth=1G,2G",
        "-o",
        "points",
        "--json",
    ];
    let swept = vef(&sweep).success().stdout();
    // A sweep is in each form of a report.
    file(work.path(), "sweep.json", &swept);
    let notes = vef(&["report", "demo.vefx", "--sim", "sweep.json", "--format", "md", "-o", "-"]);
    let notes = notes.success().stdout();
    let of_sweep = notes.split("## Sweep\n").nth(1).expect("its part");
    assert!(of_sweep.contains("1G ") && of_sweep.contains("2G "), "{of_sweep}");
    vef(&["report", "demo.vefx", "--sim", "sweep.json", "--format", "csv", "-o", "tables"]).success();
    let points = std::fs::read_to_string(at("tables/points.csv")).expect("a table");
    assert!(points.starts_with("bandwidth,") && points.lines().count() == 3, "{points}");
    file(work.path(), "sweep.json", &swept.replace("vef-sweep/2", "vef-sweep/9"));
    let point = std::fs::read_dir(at("points")).expect("points").flatten().map(|file| file.path()).next();
    std::fs::copy(point.expect("a point"), at("point.json")).expect("a copy");
    file(work.path(), "other.json", &simulated.replace("vef-sim/2", "vef-sim/9"));
    for (name, schema) in
        [("sweep.json", "vef-sweep/9"), ("point.json", "vef-sweep-point/2"), ("other.json", "vef-sim/9")]
    {
        let known = if name == "sweep.json" { "vef-sweep/2" } else { "vef-sim/2" };
        let said = format!(
            "vef: error: {name}: not the JSON of `vef sim --json`: unknown variant `{schema}`, expected `{known}` at line "
        );
        let ended = vef(&["report", "demo.vefx", "--sim", name, "-o", "-"]).exited(2);
        assert!(
            ended.stderr().starts_with(&said) && ended.stderr().lines().count() == 1,
            "{}",
            ended.stderr()
        );
    }
}

/// What there is none of is said; only what is all is 100 %; a step has one name.
#[test]
fn what_is_shown_is_what_is_there() {
    let work = tempfile::tempdir().expect("a directory");
    let stats =
        |trace: &Path, words: &[&str]| run(vef().arg("stats").arg(trace).args(words)).success().stdout();
    let empty = file(work.path(), "empty.vef", "VEF3 2 0 0 0 0 0 1000\n");
    assert!(
        stats(&empty, &[]).contains("  sizes         none, as there are no messages\n"),
        "{}",
        stats(&empty, &[])
    );
    let page = report(&empty, &[]);
    for said in [
        "The trace has no messages.",
        "No message is under way in the replay.",
        "No message is on the network in the replay.",
    ] {
        assert!(page.contains(said), "{said}");
    }
    assert!(!page.contains("median size"), "a size of no message");
    // A little less back than there.
    let text = "VEF3 2 2 0 0 0 0 1000\n0 0 1 1000000000 4 1 -1\n1 1 0 999640000 4 1 -1\n";
    let even = file(work.path(), "even.vef", text);
    let notes = report(&even, &["--format", "md"]);
    assert!(notes.contains("1 receiver of a sender; 99.982 % of the bytes go both ways"), "{notes}");
    assert!(report(&even, &[]).contains("99.982 %"));
    assert!(notes.contains("parts of collectives") && !notes.contains("\n  replay\n"), "{notes}");
    let large = file(
        work.path(),
        "large.vef",
        "VEF3 2 2 0 0 0 0 1000\n0 0 1 85899345920000 4 0 -1\n1 0 1 8040 4 0 -1\n",
    );
    let said = stats(&large, &[]);
    assert!(said.contains("with 85.899 TB") && said.contains("from 8 040 B to 85.899 TB"), "{said}");
    // Tables without rows are no tables that the trace has.
    let unknown = run(vef().arg("stats").arg(&even).args(["--csv", "foo"])).exited(2).stderr();
    assert!(unknown.ends_with("no such table; this trace has ranks, pairs, sizes, distances\n"), "{unknown}");
    let calls = run(vef().arg("stats").arg(&even).args(["--csv", "calls"])).success();
    assert_eq!(calls.stdout(), "function,records\n");
    assert!(calls.stderr().contains("even.vef: has no rows in the table calls"), "{}", calls.stderr());
}

/// The result of a simulation belongs to its trace, also where that was one of several.
#[test]
fn a_simulation_of_another_trace_is_refused() {
    let work = tempfile::tempdir().expect("a directory");
    let result = work.path().join("sim.json");
    let simulate = |traces: &[&Path]| {
        let ended = run(vef().arg("sim").args(traces).args(["--topology", "torus:2x4", "--json"])).success();
        std::fs::write(&result, ended.stdout()).expect("a file");
    };
    let one = file(work.path(), "one.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 10 0 0 -1\n");
    let refused = |trace: &Path, said: &str| {
        let ended = run(vef().arg("report").arg(trace).args(["-o", "-", "--sim"]).arg(&result)).exited(2);
        let said = format!("sim.json: the result of another trace, or of another part of it: {said}\n");
        assert!(ended.stderr().ends_with(&said), "{}", ended.stderr());
    };
    simulate(&[&one]);
    report(&one, &["--sim", result.to_str().expect("a path")]);
    refused(&file(work.path(), "wide.vef", "VEF3 3 0 0 0 0 0 1000\n"), "ranks: 2 there, 3 here");
    let text = "VEF3 2 2 0 0 0 0 1000\n0 0 1 5 0 0 -1\n1 0 1 5 1 0 0\n";
    refused(&file(work.path(), "more.vef", text), "point-to-point messages: 1 there, 2 here");
    let text = "VEF3 2 1 0 0 0 0 1000\n0 0 1 1000 0 0 -1\n";
    refused(&file(work.path(), "larger.vef", text), "bytes of point-to-point messages: 10 there, 1 000 here");
    refused(
        &file(work.path(), "silent.vef", "VEF3 2 0 0 0 0 0 1000\n"),
        "point-to-point messages: 1 there, 0 here",
    );
    let text = "VEF3 2 1 1 1 2 0 1000\nC0 0 1\n0 0 1 10 0 0 -1\nG0 C0 6 0 0 0 1 0 0\nG0 C0 6 1 0 0 0 0 -1\n";
    refused(&file(work.path(), "barrier.vef", text), "collective operations: 0 there, 1 here");
    // One job of several has no messages of its own in the result: those of all are as many or more.
    simulate(&[&work.path().join("more.vef")]);
    refused(&one, "point-to-point messages: 2 there, 1 here");
    let mut several: Value =
        serde_json::from_slice(&std::fs::read(&result).expect("a result")).expect("JSON");
    let jobs = several["jobs"].as_array_mut().expect("jobs");
    let mut other = jobs[0].clone();
    other["tasks"] = 9.into();
    jobs.insert(0, other);
    std::fs::write(&result, several.to_string()).expect("a file");
    report(&one, &["--sim", result.to_str().expect("a path")]);
    refused(&work.path().join("wide.vef"), "ranks: 9 and 2 there, 3 here");
    several["jobs"][1]["tasks"] = "two".into();
    std::fs::write(&result, several.to_string()).expect("a file");
    let ended = run(vef().arg("report").arg(&one).args(["-o", "-", "--sim"]).arg(&result)).exited(2);
    let said =
        "sim.json: not the JSON of `vef sim --json`: invalid type: string \"two\", expected u32 at line 1";
    assert!(ended.stderr().contains(said), "{}", ended.stderr());
}

/// The result of a simulation of `trace`, of which a test may change what it likes.
fn simulation(trace: &Path, options: &[&str]) -> Value {
    let ended = run(vef().arg("sim").arg(trace).args(["--topology", "torus:2x2", "--json"]).args(options));
    serde_json::from_str(&ended.success().stdout()).expect("JSON")
}

/// Large numbers of a result are kept, and shown.
#[test]
fn large_numbers_of_a_simulation_keep_their_digits() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = file(work.path(), "t.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 10 0 0 -1\n");
    let most = u64::MAX;
    let mut result = simulation(&trace, &[]);
    result["runtime_ps"] = most.into();
    result["kinds"][0]["bytes"] = most.into();
    result["links"]["busiest"][0]["bytes"] = ((1u64 << 53) + 1).into();
    let result = file(work.path(), "sim.json", &result.to_string());
    let options = ["--sim", result.to_str().expect("a path")];
    let simulated = &json(&trace, &options)["simulated"]["result"];
    assert_eq!(simulated["runtime_ps"], most);
    assert_eq!(simulated["links"]["busiest"][0]["bytes"], (1u64 << 53) + 1);
    assert!(report(&trace, &options).contains("18 446 744.074 s"), "the run time");
    // Ten links are not all links.
    let tables = work.path().join("tables");
    run(vef().arg("report").arg(&trace).args(options).args(["--format", "csv", "-o"]).arg(&tables)).success();
    assert!(tables.join("time.csv").exists() && !tables.join("links.csv").exists());
    let notes = report(&trace, &[&options[..], &["--format", "md"]].concat());
    assert!(notes.contains("\n## Simulation\n") && notes.contains("18 446 744.074 s"), "{notes}");
    let compared = report(&trace, &["--format", "md", "--against", trace.to_str().expect("a path")]);
    assert!(compared.contains("\n## Comparison\n") && compared.contains("equal"), "{compared}");
}

/// What fails leaves nothing behind, and what an earlier report left is named.
#[test]
fn all_is_made_or_nothing() {
    let work = tempfile::tempdir().expect("a directory");
    let trace = file(work.path(), "t.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 10 0 0 -1\n");
    let stuck = file(work.path(), "stuck.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 8 2 0 7\n");
    let at = |name: &str| work.path().join(name);
    let ended = |words: &[&str]| run(vef().current_dir(work.path()).arg("report").args(words));
    let stuck = stuck.to_str().expect("a path");
    for words in
        [&["-o", "p.html", "--svg", "svg"][..], &["--format", "csv", "-o", "tables/new", "--svg", "svg"]]
    {
        ended(&[&[stuck], words].concat()).exited(2);
        assert!(["p.html", "svg", "tables"].iter().all(|name| !at(name).exists()), "{words:?}");
    }
    // Tables need -o DIR.
    let said = ended(&["t.vef", "--format", "csv"]).exited(2).stderr();
    assert!(said.contains("-o DIR"), "{said}");
    assert_eq!(std::fs::read_dir(work.path()).expect("a directory").count(), 2);
    ended(&["t.vef", "--format", "csv", "-o", "tables"]).success();
    let said = ended(&["t.vef", "--format", "csv", "-o", "tables", "--no-replay"]).success().stderr();
    let others: Vec<&str> = said.lines().filter(|line| line.contains("not of this report")).collect();
    assert!(
        others.len() == 4
            && ["time", "wait-causes", "wait-pairs", "waits"]
                .iter()
                .zip(&others)
                .all(|(name, line)| line.contains(&format!("tables/{name}.csv"))),
        "{said}"
    );
    let _ = trace;
}

/// A report stays small beside the result of a simulation of a large network; its tables have everything.
#[test]
fn a_simulation_of_any_size_fits_on_a_page() {
    let work = tempfile::tempdir().expect("a directory");
    let (links, ranks) = (60_000u64, 10_001u64);
    let small = file(work.path(), "small.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 10 0 0 -1\n");
    let mut simulated = simulation(&small, &["--links"]);
    let trace = file(work.path(), "wide.vef", &format!("VEF3 {ranks} 0 0 0 0 0 1000\n"));
    let template = simulated["links"]["all"][0].clone();
    let link = |at: u64| {
        // Digits that do not compress.
        let share = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) as f64 / (1u64 << 53) as f64;
        let busy: Vec<f64> = (0..30).map(|bin| share(30 * at + bin)).collect();
        let mut link = template.clone();
        link["link"] = format!("node{at}->({at},0)").into();
        link["number"] = at.into();
        link["bytes"] = (3 * at).into();
        link["utilisation"] = (at as f64 / links as f64).into();
        link["busy"] = busy.into();
        link
    };
    let template = simulated["jobs"][0]["ranks"][0].clone();
    let rank = |rank: u64| {
        let mut times = template.clone();
        times["computing_ps"] = 1.into();
        times["reception_ps"] = rank.into();
        times
    };
    simulated["kinds"] = serde_json::json!([]);
    simulated["links"]["used"] = links.into();
    simulated["links"]["all"] = (0..links).map(link).collect::<Vec<_>>().into();
    let job = &mut simulated["jobs"][0];
    job["tasks"] = ranks.into();
    job["ranks"] = (0..ranks).map(rank).collect::<Vec<_>>().into();
    job["finish"]["tasks_ps"] = (0..ranks).collect::<Vec<_>>().into();
    job["finish"]["max_ps"] = ranks.into();
    let result = file(work.path(), "sim.json", &simulated.to_string());
    let options = ["--sim", result.to_str().expect("a path")];
    let page = report(&trace, &options);
    assert!(page.len() < 5_000_000, "{} bytes", page.len());
    let data = json(&trace, &options);
    assert_eq!(serde_json::from_str::<Value>(&carried(&page)).expect("JSON"), data);
    let shown = data["simulated"]["result"]["links"]["all"].as_array().expect("links");
    assert_eq!(shown.len(), 256);
    for (at, link) in shown.iter().enumerate() {
        assert_eq!(
            (&link["number"], link["busy"].as_array().map(Vec::len)),
            (&(links - 1 - at as u64).into(), Some(30))
        );
    }
    let utilisations = data["simulated"]["utilisations"].as_array().expect("shares");
    assert_eq!((utilisations.len(), number(&utilisations[300])), (16_384, 59_699.0 / 60_000.0));
    // 10 001 ranks in rows of three.
    let rows = &data["simulated"]["ranks"];
    assert_eq!(
        (&rows["ranks_per_row"], rows["computing_ps"].as_array().map(Vec::len)),
        (&3.into(), Some(3334))
    );
    assert_eq!((&rows["computing_ps"][1], &rows["reception_ps"][1]), (&3.into(), &(3 + 4 + 5).into()));
    // Ranks 9 999 and 10 000, which finish at these times.
    assert_eq!(rows["finished_ps"][3333], 1);
    let to = work.path().join("tables");
    run(vef().arg("report").arg(&trace).args(options).args(["--format", "csv", "-o"]).arg(&to)).success();
    let rows = std::fs::read_to_string(to.join("links.csv")).expect("a table");
    assert_eq!(rows.lines().count() as u64, 1 + links);
}

#[test]
fn an_input_is_not_replaced() {
    let work = tempfile::tempdir().expect("a directory");
    let at = |name: &str| work.path().join(name);
    let text = "VEF3 2 1 0 0 0 0 1000\n0 0 1 10 0 0 -1\n";
    for name in ["trace.vef", "other.vef"] {
        std::fs::write(at(name), text).expect("written");
    }
    std::os::unix::fs::symlink(at("trace.vef"), at("link")).expect("a link");
    std::fs::create_dir_all(at("tables")).expect("a directory");
    std::fs::rename(at("other.vef"), at("tables/ranks.csv")).expect("moved");
    std::os::unix::fs::symlink(at("tables/ranks.csv"), at("other.vef")).expect("a link");
    std::fs::create_dir(at("figures")).expect("a directory");
    // The name of a table is a directory.
    std::fs::create_dir_all(at("blocked/time.csv")).expect("a directory");
    for arguments in [
        &["report", "trace.vef", "-o", "trace.vef"][..],
        &["report", "trace.vef", "-o", "link", "--format", "json"],
        &["report", "trace.vef", "--against", "other.vef", "-o", "other.vef"],
        &["report", "trace.vef", "--format", "csv", "-o", "-"],
        &["timeline", "trace.vef", "-o", "trace.vef"],
        &["report", "tables/ranks.csv", "--format", "csv", "-o", "tables"],
        &["report", "trace.vef", "--format", "csv", "-o", "blocked"],
        &["report", "trace.vef", "-o", "page", "--pdf", "./page"],
        &["report", "trace.vef", "--pdf", "-"],
        &["report", "trace.vef", "--svg", "figures", "-o", "figures/sizes.svg"],
        &["sim", "trace.vef", "--report", "link"],
        &["sim", "trace.vef", "--draw", "trace.vef"],
        &["sim", "trace.vef", "--draw", "same", "--report", "same"],
        &["sim", "trace.vef", "--report", "-"],
    ] {
        let ended = run(vef().args(arguments).current_dir(work.path()));
        assert_eq!(ended.output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(ended.stderr().lines().count(), 1, "{}", ended.stderr());
    }
    for name in ["trace.vef", "other.vef"] {
        assert_eq!(std::fs::read_to_string(at(name)).expect("there"), text);
    }
    for name in ["-", "page", "same"] {
        assert!(!at(name).exists(), "{name}");
    }
    for (directory, files) in [("tables", 1), ("blocked", 1), ("figures", 0)] {
        let there = std::fs::read_dir(at(directory)).map_or(0, Iterator::count);
        assert_eq!(there, files, "{directory}");
    }
    // The standard output needs no directory that can be written.
    run(vef().args(["report", "-o", "-"]).arg(at("trace.vef")).current_dir("/proc")).success();
}

#[test]
fn strange_traces_make_a_page_and_nonsense_an_error() {
    let work = tempfile::tempdir().expect("a directory");
    let big = u64::MAX / 2;
    for (name, text) in [
        ("silent.vef", "VEF3 3 0 0 0 0 0 1000\n".to_owned()),
        ("single.vef", "VEF3 1 0 0 0 0 0 1000\n".to_owned()),
        (
            "only.vef",
            "VEF3 2 0 1 1 2 0 1000\nC0 0 1\nG0 C0 6 0 0 0 0 5 -1\nG0 C0 6 1 0 0 0 5 -1\n".to_owned(),
        ),
        ("zero.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 0 4 0 -1\n".to_owned()),
        ("<script>alert(1)<\u{2044}script>\"'&.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 8 4 0 -1\n".to_owned()),
    ] {
        let path = file(work.path(), name, &text);
        let page = report(&path, &[]);
        assert!(page.ends_with("</html>\n") && !page.contains("<script>alert"), "{name}");
        let notes = report(&path, &["--format", "md"]);
        let headings: Vec<&str> = notes.lines().filter(|line| line.starts_with('#')).collect();
        assert!(headings.len() > 1 && !headings[1..].concat().contains("<script"), "{headings:?}");
        // The title is code, in which nothing else is.
        assert!(headings[0].starts_with("# `") && headings[0].ends_with('`'), "{headings:?}");
        assert_eq!(headings[0].matches('`').count(), 2, "{headings:?}");
        let figures = work.path().join("figures");
        run(vef().arg("report").arg(&path).args(["-o", "-", "--svg"]).arg(&figures)).success();
    }
    // A million tasks, whose page is as small as any other.
    let mut million = "VEF3 1000000 1000000 0 0 0 0 1000\n0 0 999999 8 4 0 -1\n".to_owned();
    (1..1_000_000).for_each(|rank| million += &format!("{rank} {rank} {rank} 0 0 5 -1\n"));
    let path = file(work.path(), "million.vef", &million);
    let page = report(&path, &[]);
    assert!(page.len() < 5_000_000 && page.contains("1 000 000"), "{} bytes", page.len());
    // Whole numbers that a double cannot hold.
    let path = file(work.path(), "big.vef", &format!("VEF3 2 1 0 0 0 0 1000\n0 0 1 {big} 4 0 -1\n"));
    let data = json(&path, &["--no-replay"]);
    assert_eq!(data["totals"]["bytes"], big.to_string());
    // A trace that does not replay to its end, and what leaves that out.
    let stuck = file(work.path(), "stuck.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 8 2 0 7\n");
    let ended = run(vef().arg("report").arg(&stuck)).exited(2);
    assert!(ended.stderr().contains("--no-replay"), "{}", ended.stderr());
    report(&stuck, &["--no-replay"]);
    // One line that names the file: it takes too long, it cannot be written, it is no directory.
    let late = file(work.path(), "late.vef", "VEF3 2 1 0 0 0 0 1000\n0 0 1 18446744073709551615 4 0 -1\n");
    for (input, options, part) in [
        (&late, ["-o", "-"], "late.vef: a message of "),
        (&path, ["-o", "/nowhere/report.html"], "/nowhere/report.html: "),
        (&path, ["--svg", "/dev/null"], "/dev/null: is not a directory"),
    ] {
        let ended = run(vef().current_dir(work.path()).arg("report").arg(input).args(options)).exited(2);
        assert!(ended.stderr().contains(part), "{}", ended.stderr());
        assert_eq!(ended.stderr().lines().count(), 1, "{}", ended.stderr());
    }
}

/// The bundle is what the lock file gives, and its files name no registry.
#[test]
fn the_chart_bundle_is_made_from_its_lock_file() {
    let lock =
        std::fs::read_to_string(root().join("reports/assets/package-lock.json")).expect("the lock file");
    assert!(!lock.contains("://"), "the lock file names a registry's address");
    if !have("npm") {
        skipped("no npm");
        return;
    }
    let script = root().join("scripts/vendor-charts");
    let ended = run(Command::new(script).arg("--check"));
    match ended.output.status.code() {
        // npm itself could not fetch the packages.
        Some(code) if code != 0 && ended.stderr().contains("npm error code E") => {
            skipped("npm reaches no registry")
        }
        code => assert_eq!(code, Some(0), "{}", ended.stderr()),
    }
}
