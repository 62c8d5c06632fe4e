//! No output of a command replaces an input, another output, or what a link of another user leads to.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use vef_tests::{root, run, vef};

/// Command lines with an output and an input that is the same file. `=` is that file; the files named in the others are made by
/// [`prepare`]. Each input of each command that has an output is here once.
const LINES: &[&str] = &[
    "convert =t.vef =t.vef",
    "convert t.vefx =codes --op-codes =codes",
    "check =t.vef --repair =t.vef",
    "check t.vef --op-codes =codes --repair =codes",
    "place --optimise =t.vef --topology torus:2x2 -o =t.vef",
    "place --optimise t.vef --topology file:=net.txt -o =net.txt",
    "place -n 2 --hostfile =hosts -o =hosts",
    "place -n 2 --machinefile =hosts -o =hosts",
    "place --rankfile =ranks --hostfile hosts -o =ranks",
    "place -n 2 --hostfile hosts --hwloc =node.xml -o =node.xml",
    "place --captured capture -o =capture/0.vefc",
    "sim =t.vef --report =t.vef",
    "sim =t.vef --draw =t.vef",
    "sim =t.vef --timeline =t.vef",
    "sim =t.vef --sweep latency=1us,2us --plot =t.vef",
    "sim t.vef --placement =p.toml --report =p.toml",
    "sim t.vef --topology file:=net.txt --draw =net.txt",
    "sim t.vef --calibration =calibration.toml --report =calibration.toml",
    "sim t.vef --compute-scale =factors --report =factors",
    "sim t.vef --compute-noise resampled:=noise.vefx --report =noise.vefx",
    "sim t.vef --algorithms =table.toml --draw =table.toml",
    "sim t.vef --op-codes =codes --report =codes",
    "report =t.vef -o =t.vef",
    "report t.vef --against =noise.vefx -o =noise.vefx",
    "report t.vef --sim =sim.json -o =sim.json",
    "report t.vef --op-codes =codes --pdf =codes",
    "report capture -o =capture/0.vefc",
    "timeline =t.vef -o =t.vef",
    "timeline =sim.json -o =sim.json",
    "timeline t.vef --op-codes =codes -o =codes",
    "timeline capture -o =capture/0.vefc",
    "mix -i capture --lower-collectives =table.toml -o =table.toml",
    "mix -i capture --op-codes =codes -o =codes",
    "mix -i capture -o =capture/0.vefc",
    "bench plot =bench.json -o =bench.json",
    "bench plot bench.json --simulated =sim.json -o =sim.json",
    "bench coll --library =codes -o =codes",
    "bench coll --library =codes --csv =codes",
];

/// Command lines with two outputs that are the same file, which need not exist.
const TWICE: &[&str] = &[
    "sim t.vef --draw =new --report =new",
    "sim t.vef --draw =new --timeline =new",
    "report t.vef -o =new --pdf =new",
    "bench coll -o =new --csv =new",
];

/// A signal ends a command whose output is a directory, or which converts its input, and leaves nothing behind.
#[test]
fn a_signal_leaves_no_directory() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let temporary = work.join("tmp");
    fs::create_dir(&temporary).expect("a directory");
    run(vef().current_dir(work).args(["gen", "ring", "-n", "3000", "--iterations", "20", "-o", "t.vefx"]))
        .success();
    run(vef().current_dir(work).args(["export", "--to", "goal", "t.vefx", "-o", "t.goal"])).success();
    let hidden = |directory: &Path, begins: &str| {
        let entries = fs::read_dir(directory).expect("a directory").flatten();
        let names = entries.map(|entry| entry.file_name().display().to_string());
        names.filter(|name| name.starts_with(begins)).count()
    };
    for (words, signal, begins, there) in [
        ("export --to chakra t.vefx -o out", "TERM", ".out.", work),
        ("export --to otf2 t.vefx -o out", "INT", ".out.", work),
        ("sim t.goal --topology torus:3000", "HUP", "vef-import-", temporary.as_path()),
    ] {
        // The tests themselves may have been started with signals ignored, as in the background of a script.
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(vef().get_program()).args(words.split(' '));
        command.current_dir(work).env("TMPDIR", &temporary);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("started");
        while hidden(there, begins) == 0 {
            assert!(child.try_wait().expect("a child").is_none(), "{words}: it has ended");
        }
        run(Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()])).success();
        let ended = child.wait_with_output().expect("a child");
        let by = ended.status.signal();
        assert_eq!(
            by,
            Some(match signal {
                "TERM" => 15,
                "INT" => 2,
                _ => 1,
            }),
            "{words}: {ended:?}"
        );
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{words}");
        assert_eq!((hidden(there, begins), work.join("out").exists()), (0, false), "{words}");
    }
}

fn prepare(work: &Path) {
    let gen_to = |name: &str| {
        run(vef().current_dir(work).args(["gen", "halo2d", "-n", "4", "--iterations", "3", "-o", name]))
            .success()
    };
    gen_to("t.vef");
    gen_to("t.vefx");
    gen_to("noise.vefx");
    let files = [
        ("codes", "1 MPI_Bcast\n"),
        ("hosts", "a slots=2\n"),
        ("ranks", "rank 0=a slot=0\n"),
        ("node.xml", "<topology/>"),
        ("net.txt", "node a\n"),
        ("p.toml", "nodes = []\n"),
        ("calibration.toml", "schema = 1\n"),
        ("factors", "0=2\n"),
        ("table.toml", "bcast = []\n"),
        ("sim.json", "{}\n"),
        ("bench.json", "{}\n"),
    ];
    for (name, text) in files {
        fs::write(work.join(name), text).expect("a file");
    }
    fs::create_dir(work.join("capture")).expect("a directory");
    for entry in fs::read_dir(root().join("cli/demo/capture")).expect("the bundled capture").flatten() {
        fs::copy(entry.path(), work.join("capture").join(entry.file_name())).expect("a copy");
    }
}

#[test]
fn no_output_is_an_input() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    for line in LINES {
        let name = line.split(' ').find_map(|word| Some(word.split_once('=')?.1)).expect("a mark").to_owned();
        let marked = format!("={name}");
        let file = work.path().join(&name);
        let before = fs::read(&file).expect("a file");
        // By its name, and by a symbolic and a hard link.
        for other in ["", "soft", "hard"] {
            let at = line.rfind(&marked).expect("a mark");
            let output = if other.is_empty() { name.as_str() } else { other };
            match other {
                "soft" => symlink(&file, work.path().join(other)).expect("a link"),
                "hard" => fs::hard_link(&file, work.path().join(other)).expect("a link"),
                _ => {}
            }
            // The output is marked last, but for the lines in which the input follows.
            let (first, last) = (line[..at].replace(&marked, &name), line[at..].replacen(&marked, output, 1));
            let ended =
                run(vef().current_dir(work.path()).args(format!("{first}{last}").split(' '))).exited(2);
            let said = ended.stderr();
            assert!(
                said.contains("the output is an input, too")
                    || said.contains("the file exists and is no trace")
                    // By its name it may be of another kind; the links have no suffix.
                    || (other.is_empty() && said.contains("invalid value")),
                "{first}{last}: {said}"
            );
            assert_eq!(said.trim_end().lines().count(), 1, "{said}");
            assert_eq!(fs::read(&file).expect("as it was"), before, "{line}");
            let _ = fs::remove_file(work.path().join("soft"));
            let _ = fs::remove_file(work.path().join("hard"));
        }
    }
}

#[test]
fn no_two_outputs_are_one_file() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    for line in TWICE {
        let ended = run(vef().current_dir(work.path()).args(line.replace('=', "").split(' '))).exited(2);
        assert!(ended.stderr().contains("new: named twice"), "{line}: {}", ended.stderr());
        assert!(!work.path().join("new").exists());
    }
}

/// A name that is no file's is not taken for one.
#[test]
fn a_result_of_before_is_replaced() {
    let work = tempfile::tempdir().expect("a directory");
    prepare(work.path());
    for line in [
        "gen halo2d -n 4 --iterations 2 -o halo2d",
        "convert t.vef other.vefx",
        "mix -i capture -o capture/trace.vef",
        "place -n 2 --hostfile hosts -o placed.toml",
    ] {
        for _ in 0..2 {
            run(vef().current_dir(work.path()).args(line.split(' '))).success();
        }
    }
}
