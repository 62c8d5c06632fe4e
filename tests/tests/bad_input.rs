//! Wrong input gets one clear line that names the place, exit code 2, and leaves no half-written file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vef_format::capture::event::{
    Action, CallSlot, Communicator, Datatype, DatatypeId, Event, Members, Origin, Remote,
};
use vef_format::capture::layout::field;
use vef_format::capture::{RankInfo, RankWriter};
use vef_format::ids::{CommId, Rank};
use vef_format::operation::OpCodes;
use vef_format::units::{Bytes, Nanos};
use vef_tests::{Ended, Mpi, root, run, run_for, shared, vef};

/// A copy of the capture that `vef demo` carries, to be damaged.
fn capture(work: &Path) -> PathBuf {
    let copy = work.join("capture");
    fs::create_dir(&copy).expect("a directory");
    for entry in fs::read_dir(root().join("cli/demo/capture")).expect("the bundled capture") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), copy.join(entry.file_name())).expect("a copy");
    }
    copy
}

/// `vef mix` refuses `input` in one line that holds all of `parts`, and writes nothing.
fn refused(work: &Path, input: &Path, parts: &[&str]) {
    let trace = work.join("out.vef");
    let ended = run(vef().args(["mix", "-i"]).arg(input).arg("-o").arg(&trace)).exited(2);
    let said = ended.stderr();
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    for part in parts {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    let left: Vec<_> =
        fs::read_dir(work).expect("the directory").map(|e| e.expect("an entry").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("out.vef")), "{left:?}");
}

/// No option reads a part of a file: the error says so.
#[test]
fn a_file_copied_in_part_is_to_be_copied_again() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    let file = fs::File::options().write(true).open(capture.join("1.vefc")).expect("a rank's file");
    file.set_len(300).expect("a shorter file");
    let parts = [
        "1.vefc: truncated: ",
        ", 300 are here: copy it again",
        "(--lenient reads files that processes left incomplete",
    ];
    refused(work.path(), &capture, &parts);
}

/// Numbers that a recorder does not give, but a capture may have, take no memory.
#[test]
fn large_numbers_of_communicators_and_datatypes() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = work.path().join("capture");
    fs::create_dir(&capture).expect("a directory");
    let info = RankInfo { rank: Rank(0), tasks: 1, host: "one".into(), ..RankInfo::default() };
    let mut writer = RankWriter::create(&capture, &info).expect("a rank's file");
    let world = Communicator {
        id: CommId(u32::MAX - 1),
        origin: Origin::World,
        split: None,
        members: Members::All,
        remote: Remote::None,
        foreign: false,
    };
    let datatype = Datatype { id: DatatypeId(u32::MAX - 1), size: Bytes(4), contiguous: true, name: "" };
    for (at, action) in
        (0..).zip([Action::Init, Action::Communicator(world), Action::Datatype(datatype), Action::Finalize])
    {
        let (start, end) = (Nanos(10 * at), Nanos(10 * at + 5));
        writer.event(&Event { start, end, thread: 0, call: CallSlot::NONE, action }).expect("written");
    }
    writer.finish().expect("written");
    for command in ["profile", "text"] {
        let line =
            format!("ulimit -v 4000000; exec {} {command} capture", vef().get_program().to_string_lossy());
        run(Command::new("sh").current_dir(work.path()).args(["-c", &line])).success();
    }
}

/// Overwrites bytes of a file.
fn patch(path: &Path, at: usize, bytes: &[u8]) {
    let mut content = fs::read(path).expect("a file");
    content[at..at + bytes.len()].copy_from_slice(bytes);
    fs::write(path, content).expect("a write");
}

#[test]
fn the_undamaged_capture_mixes() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    run(vef().args(["mix", "-i"]).arg(capture).arg("-o").arg(work.path().join("out.vef"))).success();
}

#[test]
fn a_rank_that_wrote_nothing() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    // What a full disk leaves.
    fs::write(capture.join("1.vefc"), "").expect("emptied");
    refused(work.path(), &capture, &["1.vefc: nothing was recorded in it: the disk was full"]);
}

#[test]
fn a_trace_does_not_take_the_place_of_what_it_is_made_of() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    let rank = capture.join("0.vefc");
    let before = fs::read(&rank).expect("a rank file");
    let link = work.path().join("link.vef");
    std::os::unix::fs::symlink(&rank, &link).expect("a link");
    for output in [&rank, &link] {
        let ended = run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(output)).exited(2);
        assert!(ended.stderr().contains("the file exists and is no trace"), "{}", ended.stderr());
        assert_eq!(fs::read(&rank).expect("as it was"), before);
    }
    // Beside it is no harm, also a second time.
    let beside = capture.join("trace.vef");
    for _ in 0..2 {
        run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&beside)).success();
    }
    let container = work.path().join("link.vefx");
    std::os::unix::fs::symlink(&beside, &container).expect("a link");
    let ended = run(vef().arg("convert").arg(&beside).arg(&container)).exited(2);
    assert!(ended.stderr().contains("the output is an input, too"), "{}", ended.stderr());
}

#[test]
fn a_rank_file_that_is_a_pipe() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    fs::remove_file(capture.join("1.vefc")).expect("removed");
    run(Command::new("mkfifo").arg(capture.join("1.vefc"))).success();
    refused(work.path(), &capture, &["1.vefc: not a regular file"]);
}

#[test]
fn a_run_that_is_not_over() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    let rank = capture.join("1.vefc");
    patch(&rank, field::STATE, &[1]);
    // As its process would hold it.
    let mut holder =
        Command::new("flock").arg("-F").arg(&rank).args(["sleep", "60"]).spawn().expect("util-linux");
    let locked = || !Command::new("flock").arg("-n").arg(&rank).arg("true").status().expect("run").success();
    while !locked() {
        std::thread::sleep(Duration::from_millis(5));
    }
    refused(work.path(), &capture, &["1.vefc: its process still runs"]);
    let trace = work.path().join("now.vef");
    run(vef().args(["mix", "--lenient", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
    holder.kill().expect("killed");
    holder.wait().expect("gone");
}

#[test]
fn codes_of_a_text_become_those_of_its_container() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    let defaults = OpCodes::default();
    let lines =
        defaults.rows().iter().map(|(code, operation)| format!("{} {}\n", code.0 + 100, operation.name()));
    fs::write(path("codes"), lines.collect::<String>()).expect("a table");
    fs::write(path("few"), "7 Scan\n").expect("a table");
    let mut few = vef();
    few.args(["mix", "--op-codes"]).arg(path("few")).arg("-i").arg(root().join("cli/demo/capture"));
    let refused = run(few.arg("-o").arg(path("few.vef"))).exited(2);
    assert!(refused.stderr().contains("few: the table of codes has none for"), "{}", refused.stderr());
    let mix = |output: &str| {
        let mut mix = vef();
        mix.args(["mix", "--op-codes"]).arg(path("codes")).arg("-i").arg(root().join("cli/demo/capture"));
        run(mix.arg("-o").arg(path(output))).success();
    };
    mix("own.vef");
    let refused = run(vef().arg("convert").arg(path("own.vef")).arg(path("own.vefx"))).exited(2);
    assert!(refused.stderr().contains("is not in the table of codes"), "{}", refused.stderr());
    assert!(!path("own.vefx").exists());
    let mut convert = vef();
    convert.arg("convert").arg(path("own.vef")).arg(path("own.vefx")).arg("--op-codes").arg(path("codes"));
    run(&mut convert).success();
    run(vef().arg("check").arg(path("own.vefx"))).success();
    run(vef().arg("convert").arg(path("own.vefx")).arg(path("back.vef"))).success();
    assert_eq!(fs::read(path("back.vef")).expect("text"), fs::read(path("own.vef")).expect("text"));
}

/// `vef check` reads every block; the others may pass over a damaged one, with the result of the sound file.
#[test]
fn a_damaged_block_is_refused_by_all_who_read_it() {
    let work = tempfile::tempdir().expect("a directory");
    let (sound, damaged) = (work.path().join("sound.vefx"), work.path().join("damaged.vefx"));
    run(vef().args(["mix", "-i"]).arg(root().join("cli/demo/capture")).arg("-o").arg(&sound)).success();
    let bytes = fs::read(&sound).expect("a container");
    let says = |command: &str, trace: &Path| {
        let ended = run(vef().args([command, "--json"]).arg(trace));
        (ended.output.status.code(), ended.stdout(), ended.stderr())
    };
    let of = |result: &str| -> Vec<serde_json::Value> {
        let result: serde_json::Value = serde_json::from_str(result).expect("JSON");
        ["runtime_ps", "kinds", "totals"].map(|name| result[name].clone()).to_vec()
    };
    let results = ["sim", "stats"].map(|command| of(&says(command, &sound).1));
    let (mut at, mut passed, mut refused) = (8, 0, 0);
    while at + 28 < bytes.len() {
        let length = u32::from_le_bytes(bytes[at + 16..at + 20].try_into().expect("four bytes")) as usize;
        let mut other = bytes.clone();
        other[at + 24 + length / 2] ^= 0x10;
        fs::write(&damaged, other).expect("a container");
        let (code, _, error) = says("check", &damaged);
        assert!(code == Some(2) && error.contains("checksum"), "block at {at}: {code:?} {error}");
        // Also a block that the text does not have, such as that of the notes.
        let converted = work.path().join("converted.vef");
        let said = run(vef().arg("convert").arg(&damaged).arg(&converted)).exited(2).stderr();
        assert!(said.contains("checksum") && !converted.exists(), "convert, block at {at}: {said}");
        for (command, sound) in ["sim", "stats"].iter().zip(&results) {
            let (code, result, error) = says(command, &damaged);
            if code == Some(0) {
                assert_eq!(&of(&result), sound, "{command}, block at {at}");
                passed += 1;
            } else {
                assert!(code == Some(2) && error.contains("checksum"), "block at {at}: {code:?} {error}");
                refused += 1;
            }
        }
        at += 24 + length;
    }
    assert!(passed > 0 && refused > 0, "{passed} passed, {refused} refused");
}

#[test]
fn a_repair_goes_to_a_file_and_only_if_it_can_be_replayed() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    let mut mix = vef();
    mix.args(["mix", "-i"]).arg(root().join("cli/demo/capture")).arg("-o").arg(path("t.vef"));
    run(&mut mix).success();
    for (to, says) in [
        ("-", "not a file"),
        ("fixed.vefx", "did you mean vef? --repair writes text, FILE.vef;"),
        ("fixed.vexf", "did you mean vef? --repair writes text, FILE.vef;"),
    ] {
        let refused = run(vef().current_dir(&work).args(["check", "t.vef", "--repair", to])).exited(2);
        assert!(refused.stderr().contains(says), "{}", refused.stderr());
        assert!(!path(to).exists());
    }
    run(vef().current_dir(&work).args(["convert", "t.vef", "t.vefx"])).success();
    let refused = run(vef().current_dir(&work).args(["check", "t.vefx", "--repair", "out.vef"])).exited(2);
    assert!(refused.stderr().contains("vef convert t.vefx FILE.vef"), "{}", refused.stderr());
    let text = fs::read_to_string(path("t.vef")).expect("text");
    let (first, rest) = text.split_once('\n').expect("lines");
    let mut fields: Vec<&str> = first.split(' ').collect();
    fields[1] = "2147483647";
    fs::write(path("many.vef"), format!("{}\n{rest}", fields.join(" "))).expect("written");
    let refused = run(vef().current_dir(&work).args(["check", "many.vef", "--repair", "out.vef"])).exited(2);
    assert!(
        refused.stderr().contains("many.vef: ") && refused.stderr().contains("2 147 483 647 tasks"),
        "{}",
        refused.stderr()
    );
    assert!(!path("out.vef").exists());
}

#[test]
fn names_that_promise_what_is_not_written() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    let path = |name: &str| work.path().join(name);
    let refused = run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(path("t.vef.gz"))).exited(2);
    assert!(refused.stderr().contains(".gz names a compressed file"), "{}", refused.stderr());
    assert!(!path("t.vef.gz").exists());
    for (words, says) in [
        ("report demo -o r.pfd", "r.pfd: did you mean pdf? a report is an HTML page; --pdf FILE prints it"),
        (
            "run -o x.vexf -- true",
            "did you mean vefx? -o names the directory of the capture; --mix FILE.vefx",
        ),
        (
            "sim demo --sweep latency=1us,2us -o s.cvs",
            "did you mean csv? -o names a directory for the results",
        ),
        (
            "sim demo --sweep latency=1us,2us -o s.csv",
            "'--output <DIR>': -o names a directory for the results",
        ),
        ("convert demo t.gaol", "did you mean goal? a trace is .vefx"),
    ] {
        let words =
            words.split(' ').map(|word| if word == "demo" { capture.as_os_str() } else { word.as_ref() });
        let refused = run(vef().current_dir(work.path()).args(words)).exited(2).stderr();
        assert!(refused.contains(says), "{refused}");
        assert!(["r.pfd", "x.vexf", "s.cvs", "s.csv", "t.gaol"].iter().all(|name| !path(name).exists()));
    }
    // A pipe through which it goes to a program that does compress.
    run(Command::new("mkfifo").arg(path("pipe.gz"))).success();
    let reader = std::thread::spawn({
        let pipe = path("pipe.gz");
        move || fs::read_to_string(pipe)
    });
    run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(path("pipe.gz"))).success();
    assert!(reader.join().expect("a reader").expect("text").starts_with("VEF3"));
    // Any other name is that of a text.
    run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(path("trace"))).success();
    assert!(fs::read_to_string(path("trace")).expect("text").starts_with("VEF3"));
}

#[test]
fn what_is_no_file_is_written_through() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    let path = |name: &str| work.path().join(name);
    let mix = |to: &Path| run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(to)).success();
    let summary = mix(&path("t.vef")).stdout();
    let text = fs::read_to_string(path("t.vef")).expect("a trace");
    // The standard output: the summary is beside it, but for its times.
    let piped = mix(Path::new("-"));
    assert_eq!(piped.stdout(), text);
    assert_eq!(piped.stderr().lines().next(), summary.lines().next());
    mix(&path("t.vefx"));
    let pipe = path("pipe");
    run(Command::new("mkfifo").arg(&pipe)).success();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe)
    });
    run(vef().arg("convert").arg(path("t.vefx")).arg(&pipe)).success();
    assert_eq!(reader.join().expect("a reader").expect("text"), text);
    // What a repair wrote is read again.
    let refused = run(vef().args(["check", "--repair"]).arg(&pipe).arg(path("t.vef"))).exited(2);
    assert!(refused.stderr().contains("pipe: not a file"), "{}", refused.stderr());
    assert!(!fs::metadata(&pipe).expect("the pipe").is_file());
}

#[test]
fn a_rank_is_missing() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    fs::remove_file(capture.join("2.vefc")).expect("a file to remove");
    refused(work.path(), &capture, &["2.vefc"]);
}

#[test]
fn a_file_is_cut_or_empty() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    let file = capture.join("1.vefc");
    let whole = fs::read(&file).expect("a file");
    for length in [0, 1, 7, 100, whole.len() / 2, whole.len() - 1] {
        fs::write(&file, &whole[..length]).expect("a write");
        refused(work.path(), &capture, &["1.vefc"]);
    }
}

#[test]
fn a_file_is_of_another_kind() {
    let work = tempfile::tempdir().expect("a directory");
    let capture = capture(work.path());
    patch(&capture.join("0.vefc"), 0, b"ELF!");
    refused(work.path(), &capture, &["0.vefc"]);
}

#[test]
fn there_is_no_capture() {
    let work = tempfile::tempdir().expect("a directory");
    let empty = work.path().join("empty");
    refused(work.path(), &empty, &["empty"]);
    fs::create_dir(&empty).expect("a directory");
    refused(work.path(), &empty, &["empty"]);
    fs::write(empty.join("VEFT.main"), "").expect("a write");
    refused(work.path(), &empty, &["VEFT.main"]);
}

#[test]
fn an_older_capture_is_damaged() {
    let Some(original) = shared("data/vef-prospector/p2p-a") else { return };
    let copy = |work: &Path| {
        let copy = work.join("capture");
        fs::create_dir(&copy).expect("a directory");
        for entry in fs::read_dir(&original).expect("the capture") {
            let entry = entry.expect("an entry");
            fs::write(copy.join(entry.file_name()), fs::read(entry.path()).expect("a file")).expect("a copy");
        }
        copy
    };
    // An event type that nobody knows, in record 2 of task 1.
    let work = tempfile::tempdir().expect("a directory");
    let damaged = copy(work.path());
    patch(&damaged.join("1.veft"), 2 * 40 + 32, &[0xff, 0x7f]);
    refused(work.path(), &damaged, &["1.veft", "record 2", "32767"]);
    // Half a record at the end, and so no MPI_Finalize: this layout cannot tell that from a killed program.
    let work = tempfile::tempdir().expect("a directory");
    let damaged = copy(work.path());
    let whole = fs::read(damaged.join("3.veft")).expect("a file");
    fs::write(damaged.join("3.veft"), &whole[..whole.len() - 13]).expect("a write");
    let mixed =
        run(vef().args(["mix", "-i"]).arg(&damaged).arg("-o").arg(work.path().join("out.vef"))).success();
    assert!(mixed.stdout().contains("without MPI_Finalize (3)"), "{}", mixed.stdout());
    // A send turned into another tag: neither it nor its receive has a partner.
    let work = tempfile::tempdir().expect("a directory");
    let damaged = copy(work.path());
    let file = damaged.join("0.veft");
    let records = fs::read(&file).expect("a file");
    let send = records.chunks(40).position(|r| r[32..34] == [100, 0]).expect("a send");
    patch(&file, send * 40 + 24, &[0x39, 0x30, 0, 0]);
    refused(work.path(), &damaged, &["send", "12345"]);
    // A rank outside the run.
    let work = tempfile::tempdir().expect("a directory");
    let damaged = copy(work.path());
    patch(&damaged.join("0.veft"), send * 40 + 16, &[99, 0, 0, 0]);
    refused(work.path(), &damaged, &["0.veft", "99"]);
    // A task is missing.
    let work = tempfile::tempdir().expect("a directory");
    let damaged = copy(work.path());
    fs::remove_file(damaged.join("2.veft")).expect("a file to remove");
    refused(work.path(), &damaged, &["2.veft"]);
}

/// `vef check` refuses `trace` naming `parts`; `vef sim` does not succeed with it either.
fn check_refuses(trace: &str, parts: &[&str]) {
    let work = tempfile::tempdir().expect("a directory");
    let path = work.path().join("bad.vef");
    fs::write(&path, trace).expect("a write");
    let ended = run(vef().arg("check").arg(&path)).exited(2);
    let said = ended.stdout() + &ended.stderr();
    for part in parts {
        assert!(said.contains(part), "no {part} in: {said}\nfor {trace}");
    }
}

#[test]
fn a_trace_is_wrong() {
    // The smallest good trace: a message and its receiver.
    let good = "VEF3 2 2 0 0 0 0 1000\n0 0 1 8 4 10 -1\n1 1 1 0 0 5 -1\n";
    let work = tempfile::tempdir().expect("a directory");
    let path = work.path().join("good.vef");
    // A receive dependency keeps the trigger bit honest.
    fs::write(&path, "VEF3 2 3 0 0 0 0 1000\n0 0 1 8 4 10 -1\n1 1 1 0 0 5 -1\n2 1 1 0 2 1 0\n")
        .expect("a write");
    run(vef().arg("check").arg(&path)).success();

    check_refuses("", &["bad.vef"]);
    check_refuses("VEF9 2 2 0 0 0 0 1000\n", &["bad.vef:1"]);
    check_refuses("VEF3 2 2 0\n", &["bad.vef:1"]);
    check_refuses(&good.replace("0 0 1 8", "0 0 7 8"), &["bad.vef:2", "7"]);
    check_refuses(&good.replace(" 8 4 10", " eight 4 10"), &["bad.vef:2", "eight"]);
    check_refuses(&good.replace("VEF3 2 2", "VEF3 2 9"), &["9"]);
    check_refuses(
        "VEF3 2 3 0 0 0 0 1000\n0 0 1 8 4 10 -1\n1 1 1 0 0 5 -1\n2 1 1 0 2 1 77\n",
        &["bad.vef:4", "77"],
    );
    check_refuses("VEF3 2 3 0 0 0 0 1000\n0 0 1 8 4 10 -1\n1 1 1 0 0 5 -1\n2 1 1 0 1 1 2\n", &["bad.vef:4"]);
    check_refuses(&good.replace(" 10 -1", " 99999999999999999999 -1"), &["bad.vef:2"]);
    // Two tasks that wait for each other's message before they send.
    check_refuses(
        "VEF3 2 4 0 0 0 0 1000\n0 0 0 0 0 1 -1\n1 1 1 0 0 1 -1\n2 0 1 8 6 1 3\n3 1 0 8 6 1 2\n",
        &["bad.vef:4", "wait for each other", "line 5"],
    );
}

#[test]
fn a_trace_is_repaired_read_from_a_pipe_and_refused_in_json() {
    let sound = "VEF3 2 3 0 0 0 0 1000\n0 0 1 8 4 10 -1\n1 1 1 0 0 5 -1\n2 1 1 0 2 1 0\n";
    let damaged = sound.replace("VEF3 2 3", "VEF3 2 8").replace("8 4 10", "8 0 10");
    let work = tempfile::tempdir().expect("a directory");
    let (path, mended) = (work.path().join("bad.vef"), work.path().join("mended.vef"));
    fs::write(&path, &damaged).expect("a write");
    let said = run(vef().arg("check").arg(&path).arg("--repair").arg(&mended)).success().stdout();
    for part in
        ["line 1: 8 point-to-point lines → 3", "line 2: message 0 is waited for", "complete: every record"]
    {
        assert!(said.contains(part), "no {part} in: {said}");
    }
    assert_eq!(fs::read_to_string(&mended).expect("the result"), sound);
    assert_eq!(fs::read_to_string(&path).expect("the trace"), damaged);
    run(vef().arg("check").arg(&path).arg("--repair").arg(&path)).exited(2);

    // A pipe gives what the file gives.
    let piped = |path: &Path| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "cat \"$1\" | \"$0\" check --json /dev/stdin"]).arg(vef().get_program()).arg(path);
        run(&mut shell)
    };
    let json = |text: String| serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
    let from_pipe = json(piped(&mended).success().stdout());
    let from_file = json(run(vef().args(["check", "--json"]).arg(&mended)).success().stdout());
    assert_eq!(from_pipe["runtime_ps"], from_file["runtime_ps"]);
    assert_eq!((&from_pipe["complete"], &from_pipe["error"]), (&true.into(), &serde_json::Value::Null));

    // Nothing that can be read: JSON all the same.
    fs::write(&path, "VEF3 2 3 0 0 0 0 1000\n0 0 x 8 4 10 -1\n").expect("a write");
    for ended in [piped(&path), run(vef().args(["check", "--json"]).arg(&path))] {
        let refused = json(ended.exited(2).stdout());
        assert_eq!(refused["complete"], false);
        assert!(
            refused["error"].as_str().is_some_and(|error| error.contains(":2: field dst is `x`")),
            "{refused}"
        );
    }
}

/// One line on stderr that has all of `parts`, and exit code 2.
fn says(ended: Ended, parts: &[&str]) {
    let said = ended.exited(2).stderr();
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    for part in parts {
        assert!(said.contains(part), "no {part} in: {said}");
    }
}

#[test]
fn a_placement_is_written_whole_or_not_at_all_and_named_in_errors() {
    let work = tempfile::tempdir().expect("a directory");
    let path = |name: &str| work.path().join(name);
    // As on a full disk.
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" place --nodes 4 --slots 2 -n 8 -o \"$1\""]);
    says(run(shell.arg(vef().get_program()).arg(path("nodes.toml"))), &["nodes.toml", "too large"]);
    assert_eq!(fs::read_dir(work.path()).expect("the directory").count(), 0);

    fs::write(path("t.vef"), "VEF3 2 2 0 0 0 0 1000\n0 0 1 8 0 10 -1\n1 1 1 0 0 5 -1\n").expect("a write");
    for (nodes, parts) in [("0\n", ["few.txt", "2 tasks"]), ("0\n99\n", ["few.txt", "node 99"])] {
        fs::write(path("few.txt"), nodes).expect("a write");
        let mut sim = vef();
        sim.args(["sim", "--topology", "torus:2x2"])
            .arg(path("t.vef"))
            .arg("--placement")
            .arg(path("few.txt"));
        says(run(&mut sim), &parts);
    }
}

#[test]
fn a_file_of_another_kind_is_named() {
    let work = tempfile::tempdir().expect("a directory");
    capture(work.path());
    let vef = || {
        let mut command = vef();
        command.current_dir(work.path());
        command
    };
    for trace in ["t.vef", "t.vefx"] {
        run(vef().args(["mix", "-i", "capture", "-o", trace])).success();
        for words in [&["mix", "-o", "out.vef", "-i", trace][..], &["text", trace]] {
            says(run(vef().args(words)), &[trace, ": a trace, not a capture\n"]);
        }
        let instead = format!(": a trace, not a capture; vef stats {trace} --by time shows its times\n");
        says(run(vef().args(["profile", trace])), &[trace, &instead]);
        let stats = run(vef().args(["stats", trace, "--by", "time"])).success();
        let is_told = stats.stderr().contains("vef mix -o FILE.vefx writes a container, which has it");
        assert_eq!(is_told, trace == "t.vef", "{}", stats.stderr());
    }
    says(
        run(vef().args(["profile", "capture/0.vefc"])),
        &["0.vefc: the file of one rank; name the directory"],
    );
    says(
        run(vef().args(["stats", "capture/0.vefc"])),
        &["0.vefc: not a VEF trace, but the file of one rank"],
    );
    let mut piped = Command::new("sh");
    piped.arg("-c").arg("gzip -c t.vef | \"$0\" check -").arg(vef().get_program()).current_dir(work.path());
    says(run(&mut piped), &["/dev/stdin: not a VEF trace, but compressed by gzip: zcat FILE | vef … -"]);
    says(run(vef().args(["check", ""])), &["<TRACE>", "a file's name is not empty"]);
    for (placement, part) in [
        ("nofile", "or name a placement file: there is none of this name"),
        ("missing.toml", "missing.toml: No such file"),
    ] {
        says(run(vef().args(["sim", "t.vef", "--placement", placement])), &[part]);
    }
    run(vef().args(["gen", "ring", "-n", "4", "-o", "g.vefx"])).success();
    let parts = ["only a container that vef mix wrote does"];
    says(run(vef().args(["sim", "g.vefx", "--placement", "captured"])), &parts);
    // A source file is not replaced, by no command that writes traces; a trace is.
    fs::write(work.path().join("x.c"), "int main(void) { return 0; }").expect("written");
    for words in [
        &["mix", "-i", "capture", "-o", "x.c"][..],
        &["convert", "t.vef", "x.c"],
        &["gen", "ring", "-n", "4", "-o", "x.c"],
        &["run", "--mix", "x.c", "--", "true"],
    ] {
        says(run(vef().args(words)), &["x.c", "the file exists and is no trace"]);
    }
    assert!(fs::read_to_string(work.path().join("x.c")).expect("there").starts_with("int main"));
    run(vef().args(["convert", "t.vef", "g.vefx"])).success();
    // Results of earlier launches are not mixed with new ones.
    fs::create_dir(work.path().join("results")).expect("a directory");
    fs::write(work.path().join("results/launch-2.json"), "{}").expect("written");
    let launch =
        ["bench", "launch", "-n", "2", "--mpirun", "false", "-o", "results", "--", "--op", "barrier"];
    says(
        run(vef().args(launch)),
        &["results/launch-2.json: has results already; name another directory (-o)"],
    );
}

/// A name with line breaks and escape sequences does not look like another line, or move the cursor.
#[test]
fn names_of_files_are_escaped_in_errors() {
    let work = tempfile::tempdir().expect("a directory");
    let name = "a\nvef: b\u{1b}[2J\rc";
    fs::write(work.path().join(name), "no\n").expect("a file");
    run(vef().current_dir(work.path()).args(["gen", "halo2d", "-n", "4", "-o", "t.vef"])).success();
    let option = |option: &str| format!("{option}{name}");
    let captures = work.path().join("capture\nvef: d");
    fs::create_dir(&captures).expect("a directory");
    fs::write(captures.join("0.vefc"), "no").expect("a file");
    let captures = captures.display().to_string();
    for line in [
        &["check", name][..],
        &["sim", name],
        &["stats", name],
        &["report", name],
        &["timeline", name, "-o", "x"],
        &["convert", name, "x.vefx"],
        &["mix", "-i", name, "-o", "x.vef"],
        &["mix", "-i", &captures, "-o", "x.vef"],
        &["text", &captures],
        &["profile", &captures],
        &["place", "-n", "2", "--hostfile", name],
        &["traffic", "--topology", &option("file:")],
        &["sim", "t.vef", "--placement", &option("./")],
        &["sim", "t.vef", &option("--calibration=./")],
        &["run", "-o", &option("t.vef/"), "--", "true"],
        &["bench", "plot", name, "-o", "x.svg"],
        &[name],
    ] {
        let said = run(vef().current_dir(work.path()).args(line)).exited(2).stderr();
        assert!(said.contains("vef: b") || said.contains("vef: d"), "{line:?}: {said}");
        assert_eq!(said.lines().count(), 1, "{line:?}: {said}");
        assert!(!said.trim_end().contains(char::is_control), "{line:?}: {said:?}");
    }
}

#[test]
fn a_wrong_command_line_gets_one_line() {
    says(run(vef().args(["mix", "--otput", "x"])), &["'--otput'", "'--output'", "see 'vef mix --help'"]);
    says(run(vef().args(["check"])), &["<TRACE>", "see 'vef check --help'"]);
}

#[test]
fn a_killed_program_leaves_a_capture_that_mixes() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let program = mpi.compile(work.path(), "spine", &["tests/c/spine.c"]);
        let capture = work.path().join("capture");
        // Each rank kills itself without warning when the others are busy: the shell gives it its deadline.
        let script = format!("timeout -s KILL 4 {} 100000000", program.display());
        let mut command = vef();
        command.args(["run", "-n", "2", "--mpirun", &mpi.launcher().join(" "), "-o"]).arg(&capture);
        let ended = run_for(command.args(["--", "sh", "-c", &script]), Duration::from_secs(60));
        assert_ne!(ended.output.status.code(), Some(0));
        let trace = work.path().join("out.vef");
        let mixed = run(vef().args(["mix", "-i"]).arg(&capture).arg("-o").arg(&trace)).success();
        let said = mixed.stdout() + &mixed.stderr();
        assert!(said.contains("without MPI_Finalize"), "{said}");
        let check = run(vef().args(["check", "--json"]).arg(&trace)).success().stdout();
        let check: serde_json::Value = serde_json::from_str(&check).expect("JSON");
        assert_eq!(check["complete"], true);
        assert!(check["messages"].as_u64() > Some(0), "{check:#}");
    }
}
