//! Files in a trace: storage servers answer each access, and each has the bytes of its stripes.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use vef_tests::{Mpi, installed, root, run, vef};

const RANKS: u32 = 4;
const SERVERS: u32 = 3;
const STRIPE: u64 = 64 << 10;
const WIDTH: u64 = 2;

/// Bytes that each server keeps of a file, counted from the file's first server: written, and read.
type Kept = BTreeMap<(u64, char), u64>;

/// What the program printed, by file, byte after byte.
fn accesses(printed: &str) -> BTreeMap<&str, Kept> {
    let mut files: BTreeMap<&str, Kept> = BTreeMap::new();
    for line in printed.lines() {
        let [file, what, at, bytes, rank] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("five words");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        // What all read together, an aggregator reads once.
        if what == "R" && rank != "0" {
            continue;
        }
        let what = what.to_lowercase();
        for byte in number(at)..number(at) + number(bytes) {
            let server = byte / STRIPE % WIDTH;
            *files
                .entry(file)
                .or_default()
                .entry((server, what.chars().next().expect("a letter")))
                .or_default() += 1;
        }
    }
    files
}

/// Bytes of messages to and from each server in a trace's text.
fn moved(trace: &Path) -> BTreeMap<(u32, char), u64> {
    let text = std::fs::read_to_string(trace).expect("a trace");
    let mut moved = BTreeMap::new();
    for fields in
        text.lines().map(|line| line.split(' ').collect::<Vec<_>>()).filter(|fields| fields.len() == 7)
    {
        let number = |at: usize| fields[at].parse::<u64>().unwrap_or(0);
        // Source and destination.
        for (server, what) in [(number(2), 'w'), (number(1), 'r')] {
            if server >= u64::from(RANKS)
                && number(1) != number(2)
                && number(3) > 0
                && !fields[0].starts_with('G')
            {
                *moved.entry((server as u32 - RANKS, what)).or_default() += number(3);
            }
        }
    }
    moved
}

#[test]
fn each_server_has_the_bytes_of_its_stripes() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "storage", &["tests/c/storage.c"]);
        let place = |name: &str| work.path().join(name);
        let mut command = vef();
        command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(place("capture"));
        let printed = run(command.arg("--").arg(&program).arg(work.path())).success().stdout();
        let mix = |to: &str, more: &[&str]| {
            let mut command = vef();
            command.args(["mix", "--io-servers", "3", "--io-stripe", "64KiB:2", "-i"]).arg(place("capture"));
            let told = run(command.args(more).arg("-o").arg(place(to))).success().stdout();
            assert!(!told.contains("not in the trace"), "{mpi:?}: {told}");
            place(to)
        };
        let (text, container) = (mix("t.vef", &[]), mix("t.vefx", &[]));
        // The files begin at servers that only the mixer knows: as many bytes for one way to choose them.
        let files: Vec<Kept> = accesses(&printed).into_values().collect();
        let sums = |begins: u32| {
            let mut sums: BTreeMap<(u32, char), u64> = BTreeMap::new();
            for (nth, kept) in files.iter().enumerate() {
                let begin = begins / SERVERS.pow(nth as u32) % SERVERS;
                for (&(server, what), bytes) in kept {
                    *sums.entry(((begin + server as u32) % SERVERS, what)).or_default() += bytes;
                }
            }
            sums
        };
        let found = moved(&text);
        assert_eq!(files.len() as u32, 1 + RANKS, "{mpi:?}: {printed}");
        let is_possible = (0..SERVERS.pow(files.len() as u32)).any(|begins| sums(begins) == found);
        assert!(is_possible, "{mpi:?}: {found:?} of {files:?}");
        // In parts, as in one piece; each way to read it has all of it.
        let in_parts = mix("parts.vefx", &["--memory", "1B"]);
        assert_eq!(std::fs::read(&in_parts).expect("a trace"), std::fs::read(&container).expect("a trace"));
        for trace in [&text, &container] {
            let checked = run(vef().arg("check").arg(trace)).success().stdout();
            assert!(
                checked.contains("complete: every record replays") && !checked.contains("warning"),
                "{checked}"
            );
        }
        let model = ["--topology", "switch:7", "--model", "packet"];
        // Compared with the capture is what the program's ranks did.
        let told = run(vef().arg("sim").arg(&container).args(model).arg("--json")).success().stdout();
        let job = &serde_json::from_str::<Value>(&told).expect("JSON")["jobs"][0];
        assert_eq!(
            (&job["captured_tasks"], &job["tasks"]),
            (&RANKS.into(), &(RANKS + SERVERS).into()),
            "{mpi:?}"
        );
        assert!(job["captured_times"].is_object() && job["span"]["captured_ps"].is_number(), "{mpi:?}");
        let told = run(vef().args(["stats", "--json"]).arg(&container)).success().stdout();
        let spent = &serde_json::from_str::<Value>(&told).expect("JSON")["spent"];
        for part in spent["parts"].as_array().expect("a list") {
            let number = |key: &str| part[key].as_f64().expect("a number");
            assert!((number("mean_ps") * f64::from(RANKS) - number("time_ps")).abs() < 1e6, "{part}");
        }
        // Without servers accesses are counted.
        let counted = run(vef().args(["mix", "-i"]).arg(place("capture")).arg("-o").arg(place("none.vefx")));
        assert!(counted.success().stdout().contains("MPI_File_write_at_all"));
    }
}

/// Reads, bytes read, writes, bytes written.
type Moved = [u64; 4];

/// What the program printed: by file, and by file and rank. Accesses without bytes are none.
fn used(printed: &str) -> BTreeMap<(String, Option<u64>), Moved> {
    let mut used: BTreeMap<(String, Option<u64>), Moved> = BTreeMap::new();
    for line in printed.lines() {
        let [file, what, _, bytes, rank] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("five words");
        let [bytes, rank] = [bytes, rank].map(|text| text.parse::<u64>().expect("a number"));
        if bytes > 0 {
            let at = if what == "w" { 2 } else { 0 };
            for rank in [None, Some(rank)] {
                let sums = used.entry((file.to_owned(), rank)).or_default();
                sums[at] += 1;
                sums[at + 1] += bytes;
            }
        }
    }
    used
}

/// The same from the key `files` of what a command printed, whose names begin with `directory`.
fn reported(json: &str, directory: &str) -> BTreeMap<(String, Option<u64>), Moved> {
    let json: Value = serde_json::from_str(json).expect("JSON");
    let files = &json["files"];
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let mut found = BTreeMap::new();
    for list in ["files", "ranks"] {
        for row in files[list].as_array().expect("a list") {
            let name = row["file"].as_str().expect("a name").strip_prefix(directory).expect("its directory");
            let moved = ["reads", "read_bytes", "writes", "written_bytes"].map(|key| number(row, key));
            found.insert((name[1..].to_owned(), row["rank"].as_u64()), moved);
            assert!(number(row, "time_ps") > 0 && number(row, "opens") > 0, "{row}");
        }
    }
    for file in files["files"].as_array().expect("a list") {
        let own = files["ranks"].as_array().expect("a list").iter().filter(|row| row["file"] == file["file"]);
        let times: Vec<u64> = own.map(|row| number(row, "time_ps")).collect();
        assert_eq!(number(file, "ranks"), times.len() as u64, "{file}");
        assert_eq!(number(file, "time_ps"), times.iter().sum::<u64>(), "{file}");
        assert_eq!(Some(&number(&file["max"], "value")), times.iter().max(), "{file}");
    }
    found
}

#[test]
fn reports_show_files_as_the_program_used_them() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "storage", &["tests/c/storage.c"]);
        let place = |name: &str| work.path().join(name);
        let (capture, trace) = (place("capture"), place("t.vefx"));
        let mut command = vef();
        command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        let printed = run(command.arg("--").arg(&program).arg(work.path())).success().stdout();
        run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
        let (expected, directory) = (used(&printed), work.path().to_str().expect("UTF-8"));
        let shown =
            |command: &str, input: &Path| run(vef().arg(command).arg(input).arg("--json")).success().stdout();
        assert_eq!(reported(&shown("stats", &trace), directory), expected, "{mpi:?}");
        assert_eq!(reported(&shown("profile", &capture), directory), expected, "{mpi:?}");
        // The page and the tables have the same rows, and names as text.
        let page = run(vef().arg("report").arg(&trace).args(["--no-replay", "-o", "-"])).success().stdout();
        assert!(page.contains("/own&lt;b&gt;3<") && !page.contains("own<b>"), "{mpi:?}");
        let tables = place("tables");
        let mut command = vef();
        command.arg("report").arg(&trace).args(["--no-replay", "--format", "csv", "-o"]).arg(&tables);
        run(&mut command).success();
        for (table, is_of_ranks) in [("files", false), ("file-ranks", true)] {
            let csv = std::fs::read_to_string(tables.join(format!("{table}.csv"))).expect("a table");
            let rows = expected.keys().filter(|(_, rank)| rank.is_some() == is_of_ranks).count();
            assert_eq!(csv.lines().count(), 1 + rows, "{mpi:?}: {csv}");
        }
        for by in ["file", "file-rank"] {
            let text = run(vef().arg("stats").arg(&trace).args(["--by", by])).success().stdout();
            let own = text.lines().find(|line| line.contains("own<b>2")).expect("a row");
            assert!(
                own.contains("310 000") && text.lines().all(|line| line.chars().count() <= 100),
                "{text}"
            );
        }
        let text = run(vef().arg("profile").arg(&capture)).success().stdout();
        assert!(text.contains("Files by rank"), "{mpi:?}: {text}");
    }
}

/// Accesses that interleave go through the first rank of the host, in every way to mix; each byte passes once between it and the servers.
#[test]
fn accesses_that_interleave_are_gathered_by_an_aggregator() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "phases_of_files", &["tests/c/phases_of_files.c"]);
        let place = |name: &str| work.path().join(name);
        let mut command = vef();
        command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(place("capture"));
        let printed = run(command.arg("--").arg(&program).arg(work.path())).success().stdout();
        let told = |what: &str| -> u64 {
            let line = printed.lines().find_map(|line| line.strip_prefix(what)).expect("a line");
            line.trim().parse().expect("a number")
        };
        let mix = |to: &str, more: &[&str]| {
            let mut command = vef();
            command.args(["mix", "--io-servers", "3", "--io-stripe", "64KiB:2", "-i"]).arg(place("capture"));
            run(command.args(more).arg("-o").arg(place(to))).success();
            place(to)
        };
        let text = mix("t.vef", &[]);
        let sums = moved(&text);
        let sum = |what: char| {
            sums.iter().filter(|((_, way), _)| *way == what).map(|(_, bytes)| bytes).sum::<u64>()
        };
        assert_eq!((sum('w'), sum('r')), (told("written"), told("read")), "{mpi:?}");
        // Bytes between each rank and the servers, and between ranks.
        let (mut to_servers, mut to_ranks) =
            (BTreeMap::<u32, u64>::new(), BTreeMap::<(u32, u32), u64>::new());
        for line in std::fs::read_to_string(&text).expect("a trace").lines() {
            let fields: Vec<u64> = line.split(' ').filter_map(|field| field.parse().ok()).collect();
            let [_, src, dst, bytes, ..] = fields[..] else { continue };
            if line.split(' ').count() == 7 && !line.starts_with('G') && src != dst && bytes > 16 {
                let (src, dst) = (src as u32, dst as u32);
                match src.max(dst) >= RANKS {
                    true => *to_servers.entry(src.min(dst)).or_default() += bytes,
                    false => *to_ranks.entry((src, dst)).or_default() += bytes,
                }
            }
        }
        // Of four accesses three go through rank 0: two writes and a read of what each rank has.
        let own = told("read") / u64::from(RANKS);
        let expected: BTreeMap<u32, u64> =
            (0..RANKS).map(|rank| (rank, if rank == 0 { 13 * own } else { own })).collect();
        assert_eq!(to_servers, expected, "{mpi:?}");
        let others = (1..RANKS).flat_map(|rank| [((rank, 0), 2 * own), ((0, rank), own)]);
        assert_eq!(to_ranks, others.collect(), "{mpi:?}");
        let container = mix("t.vefx", &[]);
        let in_parts = mix("parts.vefx", &["--memory", "1B"]);
        assert_eq!(std::fs::read(&in_parts).expect("a trace"), std::fs::read(&container).expect("a trace"));
        for trace in [&text, &container] {
            let checked = run(vef().arg("check").arg(trace)).success().stdout();
            assert!(
                checked.contains("complete: every record replays") && !checked.contains("warning"),
                "{checked}"
            );
        }
        run(vef().arg("sim").arg(&container).args(["--topology", "switch:7", "--model", "packet"])).success();
    }
}

/// Parallel HDF5, where it is installed, and a program that makes the same calls, against a counter in front of the recorder in the same run.
#[test]
fn parallel_hdf5_moves_what_was_counted() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let place = |name: &str| work.path().join(name);
        let counter =
            mpi.compile(work.path(), "counter", &["-shared", "-fPIC", "tests/c/count_files.c", "-ldl"]);
        mpi.compile(work.path(), "hdf5_calls", &["tests/c/hdf5_calls.c"]);
        let compiler = mpi.mpicc().replace("mpicc", "h5pcc");
        let mut programs = vec!["hdf5_calls"];
        if installed(&compiler) {
            // It compiles in the working directory.
            let mut compile = Command::new(compiler);
            compile.current_dir(work.path()).arg("-o").arg(place(&format!("hdf5.{mpi:?}")));
            run(compile.arg(root().join("tests/c/hdf5.c"))).success();
            programs.push("hdf5");
        }
        for program in programs {
            let capture = place(&format!("{program}.capture"));
            let mut command = vef();
            command.args(["run", "-n", "4", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
            command.arg("--").arg(place(&format!("{program}.{mpi:?}"))).arg(place(&format!("{program}.h5")));
            let printed = run(command.env("LD_PRELOAD", &counter)).success().stderr();
            let counted: BTreeMap<u64, [u64; 2]> = printed
                .lines()
                .filter_map(|line| line.strip_prefix("files "))
                .map(|line| {
                    let numbers: Vec<u64> =
                        line.split(' ').map(|text| text.parse().expect("a number")).collect();
                    (numbers[0], [numbers[1], numbers[2]])
                })
                .collect();
            let sum = |what: usize| counted.values().map(|moved| moved[what]).sum::<u64>();
            assert!(counted.len() == 4 && sum(0) > 100_000 && sum(1) > 100_000, "{mpi:?}: {printed}");
            let profile = run(vef().args(["profile", "--json"]).arg(&capture)).success().stdout();
            let profile: Value = serde_json::from_str(&profile).expect("JSON");
            let of_ranks = profile["files"]["ranks"].as_array().expect("a list").iter().map(|row| {
                let number = |key: &str| row[key].as_u64().expect("a number");
                (number("rank"), [number("written_bytes"), number("read_bytes")])
            });
            assert_eq!(of_ranks.collect::<BTreeMap<_, _>>(), counted, "{mpi:?} {program}");
            // Each byte passes once to the servers, and once back.
            for (with_servers, to) in [(true, "t.vef"), (true, "t.vefx"), (false, "none.vefx")] {
                let trace = place(to);
                let mut command = vef();
                command.args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace);
                if with_servers {
                    command.args(["--io-servers", "3", "--io-stripe", "64KiB:2"]);
                }
                let told = run(&mut command).success().stdout();
                assert_eq!(told.contains("not in the trace"), !with_servers, "{mpi:?} {program}: {told}");
                let checked = run(vef().arg("check").arg(&trace)).success().stdout();
                assert!(checked.contains("complete: every record replays"), "{mpi:?} {program}: {checked}");
                run(vef().arg("sim").arg(&trace).args(["--topology", "switch:7", "--model", "packet"]))
                    .success();
            }
            let moved = moved(&place("t.vef"));
            let at_servers =
                |what| moved.iter().filter(|((_, way), _)| *way == what).map(|(_, bytes)| bytes).sum::<u64>();
            assert_eq!([at_servers('w'), at_servers('r')], [sum(0), sum(1)], "{mpi:?} {program}");
        }
    }
}

#[test]
fn servers_that_make_no_sense_are_refused() {
    for (wrong, why) in [
        (&["--io-servers", "0"][..], "must be from 1 to 65536"),
        (&["--io-servers", "2", "--io-stripe", "1MiB:3"], "3 servers keep a file, but there are 2"),
        (&["--io-servers", "2", "--io-stripe", "0:1"], "at least one byte"),
        (&["--io-servers", "2", "--io-stripe", "1MiB"], "SIZE:COUNT"),
        (&["--io-stripe", "1MiB:1"], "--io-servers"),
    ] {
        let refused = run(vef().args(["mix", "-i", "none", "-o", "/dev/null"]).args(wrong));
        assert!(refused.stderr().contains(why), "{wrong:?}: {}", refused.stderr());
    }
}

/// Bytes that are appended are behind those that the file had, by a rank's own pointer and by the shared one.
#[test]
fn appended_bytes_are_at_the_end() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "appended", &["tests/c/appended.c"]);
        let place = |name: &str| work.path().join(name);
        let mut command = vef();
        command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(place("capture"));
        run(command.arg("--").arg(&program).arg(place("data"))).success();
        let mut command = vef();
        command.args(["mix", "--io-servers", "2", "--io-stripe", "1000B:2", "-i"]).arg(place("capture"));
        run(command.arg("-o").arg(place("t.vef"))).success();
        // The file has 1500 bytes: 1000 and 500. Each rank appends 300, then 400 by the shared pointer; rank 0 reads 100 at the own one, from 1800 on.
        let text = std::fs::read_to_string(place("t.vef")).expect("a trace");
        let mut moved: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with(['C', 'G', 'V'])) {
            let fields: Vec<u64> = line.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
            if fields[3] > 0 && fields[1] != fields[2] {
                *moved.entry((fields[1] as u32, fields[2] as u32)).or_default() += fields[3];
            }
        }
        let of = |from: u32, to: u32| moved.get(&(from, to)).copied().unwrap_or(0);
        let first = if of(0, 2) == 1000 { 2 } else { 3 };
        let second = 5 - first;
        assert_eq!([of(0, first), of(0, second)], [1000, 500 + 300 + 400], "{mpi:?}: {moved:?}");
        assert_eq!([of(1, first), of(1, second)], [0, 300 + 400], "{mpi:?}: {moved:?}");
        assert_eq!([of(first, 0), of(second, 0)], [0, 100], "{mpi:?}: {moved:?}");
    }
}
