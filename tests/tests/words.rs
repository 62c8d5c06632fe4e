//! Texts of the commands: nouns agree with their numbers, errors say where they are and propose the nearest name, warnings are told in full once.

use std::fs;
use std::path::Path;
use std::process::Command;
use vef_tests::{Mpi, run, vef};

/// Two tasks and one message, which is waited for.
const ONE: &str = "VEF3 2 3 0 0 0 1 1000\n0 0 1 1000 4 10000 -1\n1 1 1 0 2 5 0\n2 0 0 0 1 5 0\n";

/// Pairs such as `1 ranks` in a text.
fn wrong_plurals(text: &str) -> Vec<String> {
    text.lines().flat_map(wrong_plurals_of_line).collect()
}

fn wrong_plurals_of_line(line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_one = |at: usize| {
        let number = words[at].trim_start_matches(['(', '[', '×', '=']);
        // No part of a number in groups, and no name as in `rank 1`.
        let before = at.checked_sub(1).map_or("", |before| words[before]);
        let names = ["rank", "task", "record", "line", "message", "node", "job", "for", "to", "from", "→"];
        let begins =
            words.get(at + 1).is_some_and(|next| next.starts_with(|first: char| first.is_ascii_digit()));
        number == "1"
            && !begins
            && !before.ends_with(|last: char| last.is_ascii_digit())
            && !names.contains(&before)
    };
    let is_plural = |word: &str| {
        let word = word.trim_end_matches([',', ';', ':', '.', ')']);
        let singular = ["ms", "ns", "ps", "has", "is", "was", "as", "waits", "sends", "comes"];
        word.len() > 2
            && word.ends_with('s')
            && !word.ends_with("ss")
            && word.chars().all(|letter| letter.is_ascii_lowercase())
            && !singular.contains(&word)
    };
    let behind = |at: usize| words[at + 1..].iter().take(2).take_while(|word| !word.starts_with('('));
    (0..words.len())
        .filter(|&at| is_one(at) && behind(at).any(|word| is_plural(word)))
        .map(|at| words[at..].iter().take(4).copied().collect::<Vec<_>>().join(" "))
        .collect()
}

fn told(work: &Path, words: &str) -> String {
    let ended = run(vef().current_dir(work).args(words.split(' ')));
    ended.stdout() + &ended.stderr()
}

#[test]
fn one_thing_is_no_plural() {
    assert_eq!(
        wrong_plurals("1 ranks, 21 ranks, 1 more hosts, rank 1 waits, 1 001 ranks (1 bytes)").len(),
        3
    );
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    fs::write(work.join("one.vef"), ONE).expect("a trace");
    fs::write(work.join("wrong.vef"), ONE.replace("1 1 1 0 2 5 0", "1 1 1 0 2 5 7")).expect("a trace");
    fs::write(
        work.join("stuck.goal"),
        "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\n",
    )
    .expect("a schedule");
    for words in [
        "convert one.vef one.vefx",
        "check one.vef",
        "check one.vefx",
        "check wrong.vef",
        "check stuck.goal",
        "check wrong.vef --repair mended.vef",
        "stats one.vefx",
        "report one.vefx --format md",
        "sim one.vef",
        "sim one.vef --waits --critical-path",
        "sim one.vef --json",
        "timeline one.vef -o one.pftrace",
        "cut one.vefx --ranks 0 -o part.vefx",
        "check part.vefx",
        "stats part.vefx",
        "sim part.vefx",
        "timeline part.vefx -o part.json",
        "cat part.vefx -o same.vefx",
        "export --to goal one.vef -o one.goal",
        "import one.goal -o again.vefx",
        "sim one.goal --model loggp",
        "sim stuck.goal --model loggp",
        "place -n 1 --nodes 1 --slots 1",
        "traffic --topology torus:2x2 --pattern uniform --batch 1",
        "gen ring -n 2 --iterations 1 -o ring.vefx",
    ] {
        let told = told(work, words);
        assert!(
            !told.is_empty() && wrong_plurals(&told).is_empty(),
            "{words}: {:?} in\n{told}",
            wrong_plurals(&told)
        );
    }
}

/// Of a capture, too.
#[test]
fn one_captured_thing_is_no_plural() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let source = "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); int r; MPI_Comm_rank(MPI_COMM_WORLD, &r);\n\
                      MPI_Sendrecv(&r, 1, MPI_INT, 0, 1, &c, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE); MPI_Finalize(); }\n";
        fs::write(work.path().join("one.c"), source).expect("a source");
        let program = work.path().join("one");
        run(mpi.compiler().arg(work.path().join("one.c")).arg("-o").arg(&program)).success();
        let mut capture = vef();
        capture.current_dir(work.path()).args(["run", "-n1", "--mpirun", &mpi.launcher().join(" ")]);
        let run_told =
            run(capture.args(["-o", "capture", "--mix", "one.vefx", "--"]).arg(&program)).success();
        let commands =
            ["profile capture", "text capture", "check capture", "timeline capture -o one.pftrace"];
        let all = commands.map(|words| told(work.path(), words));
        for told in all.iter().chain([&run_told.stderr(), &run_told.stdout()]) {
            assert!(wrong_plurals(told).is_empty(), "{mpi:?}: {:?} in\n{told}", wrong_plurals(told));
        }
    }
}

/// One-sided transfers are no messages of the program; accesses to files are in a trace with storage servers, and told once.
#[test]
fn transfers_and_accesses_to_files_are_named() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let source = "#include <mpi.h>\nint main(int c, char **v) { MPI_Init(&c, &v); int r, m; MPI_Win w; MPI_File f;\n\
                      MPI_Comm_rank(MPI_COMM_WORLD, &r);\n\
                      MPI_Win_create(&m, sizeof m, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w); MPI_Win_fence(0, w);\n\
                      MPI_Put(&r, 1, MPI_INT, 1 - r, 0, 1, MPI_INT, w); MPI_Win_fence(0, w); MPI_Win_free(&w);\n\
                      MPI_File_open(MPI_COMM_WORLD, \"out\", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &f);\n\
                      MPI_File_write_at(f, 4 * r, &r, 1, MPI_INT, MPI_STATUS_IGNORE); MPI_File_close(&f); MPI_Finalize(); }\n";
        fs::write(work.path().join("put.c"), source).expect("a source");
        let program = work.path().join("put");
        run(mpi.compiler().arg(work.path().join("put.c")).arg("-o").arg(&program)).success();
        let capture = |options: &[&str]| {
            let mut vef = vef();
            vef.current_dir(work.path()).args(["run", "-n2", "--mpirun", &mpi.launcher().join(" ")]);
            run(vef.args(options).arg("--").arg(&program)).success()
        };
        let told = capture(&["-o", "capture"]).stderr();
        for says in [
            "0 messages with 0 B, 0 collective calls, 2 one-sided transfers with 8 B",
            "not in a trace without vef mix --io-servers: 2 × MPI_File_write_at (8 B)",
        ] {
            assert!(told.contains(says), "{mpi:?}: {told}");
        }
        let accesses = "accesses to files, which are in it only with vef mix --io-servers K";
        let told = capture(&["-o", "other", "--mix", "other.vefx"]);
        assert!(!told.stderr().contains("MPI_File_write_at"), "{mpi:?}: {}", told.stderr());
        assert!(told.stdout().contains(accesses), "{mpi:?}: {}", told.stdout());
        for (words, says) in [
            ("profile capture", "Not among the messages: 2 one-sided transfers"),
            ("profile capture", "Not in a trace without vef mix --io-servers: 2 × MPI_File_write_at"),
            ("mix -i capture -o t.vefx", accesses),
            ("mix -i capture -o t.vefx --io-servers 2", "storage servers: tasks 2 to 3"),
            ("stats t.vefx", "  captured      "),
        ] {
            let told = self::told(work.path(), words);
            assert!(told.contains(says), "{mpi:?}: {words}: {told}");
            assert!(!told.contains("a trace cannot represent"), "{mpi:?}: {words}: {told}");
        }
    }
}

/// Wherever a value comes from a list, the nearest one is offered.
#[test]
fn the_nearest_name_is_offered() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    fs::write(work.join("one.vef"), ONE).expect("a trace");
    for (words, name) in [
        ("sim one.vef --model pakcet", "packet"),
        ("sim one.vef --topology dragnofly:2x4x2", "dragonfly"),
        ("sim one.vef --routing minmal", "minimal"),
        ("sim one.vef --preset nrd", "ndr"),
        ("sim one.vef --placement blokc", "block"),
        ("sim one.vef --algorithms opnempi", "openmpi"),
        ("sim one.vef --tune alreduce", "allreduce"),
        ("sim one.vef --collectives offload:1us,ops=bcats", "bcast"),
        ("sim one.vef --background unifrom@0.3", "uniform"),
        ("sim one.vef --sweep modle=packet", "--model"),
        ("sim one.vef --sweep model=pakcet", "packet"),
        ("sim one.vef --place noe=block", "one"),
        ("sim one.vef --csv rnaks", "ranks"),
        ("traffic --topology torus:2x2 --pattern unifrom", "uniform"),
        ("traffic --topology torus:2x2 --message web-serach", "web-search"),
        ("gen halo2 -n 4 -o t.vef", "halo2d"),
        ("stats one.vef --csv rnaks", "ranks"),
        ("stats one.vef --by functoin", "function"),
        ("profile capture --by functoin", "function"),
        ("export --to gaol one.vef -o one.goal", "goal"),
        ("report one.vef --format jsn", "json"),
        ("run --tool captrue -- true", "capture"),
        ("run --oversubcribe -n 2 true", "--oversubscribe"),
        ("sim one.vef --send-completion snt", "sent"),
        ("sim one.vef --send-completion rendevous:8K", "rendezvous"),
    ] {
        let refused = run(vef().current_dir(work).args(words.split(' '))).exited(2).stderr();
        let offers = [format!("did you mean {name}?"), format!("a similar value exists: '{name}'")];
        assert!(offers.iter().any(|offer| refused.contains(offer)), "{words}: {refused}");
    }
}

/// What is told of a command line says what to write instead, once.
#[test]
fn errors_of_command_lines_say_what_to_write() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    fs::write(work.join("one.vef"), ONE).expect("a trace");
    for (words, says, not) in [
        (
            "mix -i capture other -o a.vef",
            "'--input <CAPTURE>' cannot be used with '[CAPTURE]'",
            "unexpected",
        ),
        ("stats one.vef --top 0", "'--top <N>': must be at least 1;", "4294967295"),
        ("stats one.vef -j 2000", "must be from 1 to 1024", " is not in "),
        ("check /bin/sh", "not a VEF trace, but a program: capture it with vef run", "program, not a trace"),
        ("run --oversubcribe -n 2 true", "--oversubcribe: no option of vef run;", "no program"),
        ("sim one.vef --placement block:0", "with numbers of at least 1", "did you mean block"),
    ] {
        let refused = run(vef().current_dir(work).args(words.split(' '))).exited(2).stderr();
        assert!(refused.contains(says) && !refused.contains(not), "{words}: {refused}");
    }
    // The tables of --by and --csv have one name, in the singular or plural.
    for words in ["--by pair", "--by pairs", "--csv pair", "--csv pairs"] {
        let mut stats = vef();
        stats.current_dir(work).args(["stats", "one.vef"]).args(words.split(' '));
        assert!(run(&mut stats).success().stdout().contains("bytes"), "{words}");
    }
}

/// A container has records of tasks, and no lines.
#[test]
fn problems_of_a_container_name_task_and_record() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    // The second record of task 1 waits for a message that there is not.
    let text = "VEF3 2 4 0 0 0 1 1000\n0 0 1 1000 4 10000 -1\n1 1 1 0 2 5 0\n2 1 1 0 1 5 77\n3 0 0 0 1 5 0\n";
    fs::write(work.join("t.vef"), text).expect("a trace");
    run(vef().current_dir(work).args(["convert", "t.vef", "t.vefx"])).success();
    let of_text = run(vef().current_dir(work).args(["check", "t.vef"])).exited(2).stderr();
    assert!(of_text.contains("t.vef:4: "), "{of_text}");
    let ended = run(vef().current_dir(work).args(["check", "t.vefx"])).exited(2);
    assert!(ended.stderr().contains("t.vefx: record 1 of task 1: "), "{}", ended.stderr());
    assert!(!(ended.stdout() + &ended.stderr()).contains("line "), "{}", ended.stdout());
}

/// A schedule that is almost one is not taken for a trace of ours.
#[test]
fn errors_of_goal_name_goal() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    let whole = "num_ranks 1\nrank 0 {\na: calc 1\n}\n";
    for (name, text, says) in [
        (
            "hash.goal",
            format!("# by hand\n{whole}"),
            "hash.goal:1: a GOAL schedule begins with num_ranks and their number: its comments are // and /* */, not #",
        ),
        (
            "none.goal",
            "rank 0 {\na: calc 1\n}\n".to_owned(),
            "none.goal:1: a GOAL schedule begins with num_ranks and their number: found `rank`",
        ),
        (
            "singular.goal",
            "num_rank 2\n".to_owned(),
            "singular.goal:1: a GOAL schedule begins with num_ranks and their number: found `num_rank`: did you mean num_ranks?",
        ),
        (
            "tga.goal",
            "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tga 5\n}\n".to_owned(),
            "tga.goal:3: found `tga`: did you mean tag?",
        ),
        (
            "sned.goal",
            "num_ranks 2\nrank 0 {\nl1: sned 8b to 1\n}\n".to_owned(),
            "sned.goal:3: found `sned`: did you mean send?",
        ),
        (
            "cal.goal",
            "num_ranks 1\nrank 0 {\nl1: cal 5\n}\n".to_owned(),
            "cal.goal:3: found `cal`: did you mean calc?",
        ),
        (
            "edge.goal",
            "num_ranks 1\nrank 0 {\nl1: calc 1\nl2: calc 1\nl2 requries l1\n}\n".to_owned(),
            "edge.goal:5: found `requries`: did you mean requires?",
        ),
        (
            "quoted.goal",
            "num_ranks 1\nrnak 0 {\n}\n".to_owned(),
            "quoted.goal:2: expected rank, found `rnak`",
        ),
        (
            "slashes.goal",
            "num_ranks 2\nrank 0 {\na: calc 1\nb//c: calc 2 }\nrank 1 {\nx: calc 5\n}\n".to_owned(),
            "slashes.goal:5: found `rank` behind the end of rank 0: one of its words has // or /* in it",
        ),
        (
            "end.goal",
            "num_ranks 1\nrank 0 {\nl1: calc 1\n\n".to_owned(),
            "end.goal:3: expected } or an operation, found the end of the file",
        ),
    ] {
        fs::write(work.join(name), text).expect("a schedule");
        for command in ["sim", "stats", "import"] {
            let mut vef = vef();
            vef.current_dir(work).args([command, name]);
            if command == "import" {
                vef.args(["-o", "t.vef"]);
            }
            let refused = run(&mut vef).exited(2).stderr();
            assert!(refused.contains(says), "{command}: {refused}");
        }
    }
    // Whatever is left of a compressed one.
    fs::write(work.join("t.goal"), whole).expect("a schedule");
    run(Command::new("gzip").current_dir(work).arg("t.goal")).success();
    let packed = fs::read(work.join("t.goal.gz")).expect("a file");
    for length in [12, 20, packed.len() / 2, packed.len() - 9] {
        fs::write(work.join("cut.goal.gz"), &packed[..length]).expect("a file");
        for command in ["sim", "check", "stats"] {
            let refused = run(vef().current_dir(work).args([command, "cut.goal.gz"])).exited(2);
            let told = refused.stdout() + &refused.stderr();
            assert!(
                told.contains("compressed by gzip, and cut off or damaged"),
                "{command} {length}: {told}"
            );
        }
    }
}

/// An option is named with the command that has it.
#[test]
fn hints_name_options_that_there_are() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    fs::write(work.join("t.goal"), "num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n")
        .expect("a schedule");
    let refused = run(vef().current_dir(work).args(["stats", "t.goal"])).exited(2).stderr();
    assert!(refused.contains("vef import --partial"), "{refused}");
}

#[test]
fn a_report_names_its_file() {
    let work = tempfile::tempdir().expect("a directory");
    let work = work.path();
    fs::write(work.join("one.vef"), ONE).expect("a trace");
    for (words, name) in [("report one.vef", "report.html"), ("report one.vef -o one.md", "one.md")] {
        let ended = run(vef().current_dir(work).args(words.split(' '))).success();
        assert_eq!(ended.stderr(), format!("vef: {name} written\n"));
    }
}
