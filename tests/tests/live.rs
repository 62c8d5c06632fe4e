//! `vef run --live` while real programs run: a line a second, or in place on a terminal, between whole lines of the program.

use std::path::Path;
use std::process::Command;
use vef_tests::{Mpi, have, run, skipped, vef};

/// The words of a view of two ranks that run for more than three seconds.
fn words(mpi: Mpi, work: &Path) -> Vec<String> {
    let program = mpi.compile(work, "steady", &["tests/c/steady.c"]);
    let mut words: Vec<String> = ["run", "--live", "-n", "2", "--mpirun"].map(str::to_owned).to_vec();
    let capture = work.join(format!("{mpi:?}"));
    words.extend([mpi.launcher().join(" "), "-o".into(), capture.display().to_string(), "--".into()]);
    words.extend([program.display().to_string(), "3.5".into()]);
    words
}

/// The number in front of `unit`, digits in groups.
fn number_before(text: &str, unit: &str) -> u64 {
    let before = text.split(unit).next().unwrap_or_default();
    let digits = before.rsplit(", ").next().unwrap_or_default().replace(' ', "");
    digits.parse().unwrap_or_else(|_| panic!("no number before {unit}: {text}"))
}

#[test]
fn a_line_a_second_without_a_terminal() {
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let ended = run(vef().args(words(mpi, work.path()))).success();
        let said = ended.stderr();
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(" s: 2/2 ranks, ")).collect();
        // Under load, the program may need a second until MPI_Init has returned.
        assert!(lines.len() >= 2, "{mpi:?}: {said}");
        let busy = lines.iter().filter(|line| number_before(line, " messages/s") > 0).count();
        assert!(busy >= 1 && said.contains(", waiting "), "{mpi:?}: {said}");
        assert!(said.contains("vef: captured in "), "{said}");
        assert!(ended.stdout().lines().all(|line| line.ends_with("whole lines")), "{}", ended.stdout());
    }
}

#[test]
fn in_place_on_a_terminal() {
    if !have("script") {
        return skipped("script (util-linux) is not installed");
    }
    for mpi in Mpi::installed() {
        let work = tempfile::tempdir().expect("a directory");
        let line = words(mpi, work.path());
        let line: Vec<String> = line.iter().map(|word| format!("'{word}'")).collect();
        let mut script = Command::new("script");
        script.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let vef = vef();
        let shell =
            format!("stty rows 24 cols 80; {} {}", vef.get_program().to_string_lossy(), line.join(" "));
        let shown = run(script.args(["-qec", &shell, "/dev/null"])).success().stdout();
        // Of the view: the columns, a row of each rank with its phase, and the sequence that removes lines.
        for part in [
            "  rank messages/s    bytes/s   MPI  wait phase ",
            "\r\n     0 ",
            "\r\n     1 ",
            " pcontrol_5 ",
            "\u{1b}[",
        ] {
            assert!(shown.contains(part), "{mpi:?}: no {part:?} in {shown}");
        }
        // Each line of the program begins where a line of the terminal does.
        let steps: Vec<&str> = shown.split("step ").collect();
        assert!(steps.len() > 2, "{shown}");
        for pair in steps.windows(2) {
            assert!(pair[1].contains(" of a program that prints whole lines\r\n"), "{mpi:?}: {}", pair[1]);
            assert!(
                pair[0].is_empty() || pair[0].ends_with(['\n', 'K', '\r', 'A']),
                "{mpi:?}: {:?}",
                pair[0]
            );
        }
    }
}
