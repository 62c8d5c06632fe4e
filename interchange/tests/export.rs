//! Traces in formats of other tools, and those tools on them.

use interchange::{ExportOptions, Exported, Files, Format, Imported, Options, Quiet, import};
use std::fs;
use std::path::Path;
use std::process::Command;
use vef_format::operation::OpCodes;

/// Four tasks: task 0 sends to all others, which answer; then an Allreduce of all, and one of tasks 1 and 3.
const TRACE: &str = "VEF3 4 13 2 2 6 0 1000
C0 0 1 2 3
C1 1 3
0 0 1 100 4 500 -1
1 0 2 200 5 0 0
2 0 3 3000000000 5 0 1
3 1 1 0 0 0 -1
4 1 0 8 6 1500 0
5 2 2 0 0 0 -1
6 2 0 8 6 2500 1
7 3 3 0 0 0 -1
8 3 0 8 2 3500 2
9 0 0 0 1 0 2
10 0 0 0 2 0 4
G0 C0 2 0 64 64 2 10 6
G0 C0 2 1 64 64 1 10 4
G0 C0 2 2 64 64 1 10 6
G0 C0 2 3 64 64 1 10 8
G1 C1 2 1 16 16 3 0 G0
G1 C1 2 3 16 16 3 0 G0
11 0 0 0 3 0 G0
12 2 2 0 3 0 G0
";

fn export(format: Format, to: &Path) -> Exported {
    let from = to.with_extension("vef");
    fs::write(&from, TRACE).unwrap();
    let write = format.info().writer.unwrap();
    write(&from, &OpCodes::default(), to, &ExportOptions::default(), &Quiet).unwrap()
}

#[test]
fn simgrid_replays_an_exported_trace() {
    let work = tempfile::tempdir().unwrap();
    let actions = work.path().join("actions");
    let exported = export(Format::Ti, &actions);
    // The Allreduce of two tasks became messages.
    assert_eq!(exported.expanded, 1);
    let text = fs::read_to_string(&actions).unwrap();
    let lines = |begin: &str| text.lines().filter(|line| line[2..].starts_with(begin)).count() as u64;
    assert_eq!(lines("isend"), exported.messages);
    assert_eq!((lines("allreduce 64 0"), lines("init"), lines("finalize")), (4, 4, 4));
    // 3·10⁹ bytes are counted in doubles of 16 bytes, because SimGrid counts in 32 bits.
    assert!(
        text.contains("\n0 isend 3 0 187500000 26\n") && text.contains("\n3 irecv 0 0 187500000 26\n"),
        "{text}"
    );
    assert!(text.contains("\n0 sleep 0.000000500000\n"), "{text}");
    if !skipping::installed("smpirun") {
        return;
    }
    let file = |name: &str, content: &str| fs::write(work.path().join(name), content).unwrap();
    file("list", "actions\n");
    file("hosts", "h0\nh1\nh2\nh3\n");
    file(
        "platform.xml",
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\
         <zone id=\"w\" routing=\"Full\"><cluster id=\"c\" prefix=\"h\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"1.25GBps\" lat=\"1us\"/></zone></platform>\n",
    );
    let run = Command::new("smpirun")
        .args(["-replay", "list", "-np", "4", "-platform", "platform.xml", "-hostfile", "hosts"])
        .current_dir(work.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stderr).into_owned() + &String::from_utf8_lossy(&run.stdout);
    assert!(output.contains("Simulation time"), "{output}");
    // The large message takes 2.4 s or more: its size has not overflowed, which takes 10¹² s.
    let time = output.split("Simulation time ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let time: f64 = time.unwrap().parse().unwrap();
    assert!((2.4..5.0).contains(&time), "{output}");
}

#[test]
fn messages_come_back() {
    let work = tempfile::tempdir().unwrap();
    for (format, name) in [(Format::Goal, "t.goal"), (Format::GoalBinary, "t.bin")] {
        let to = work.path().join(name);
        let exported = export(format, &to);
        assert_eq!(exported.expanded, 2);
        let files = Files::of(&[to]).unwrap();
        assert_eq!(Format::of(&files).unwrap(), format);
        let trace = work.path().join("back.vef");
        let imported = import(format, &files, &trace, || panic!(), &Options::default(), &Quiet).unwrap();
        let Imported::Trace(summary) = imported else { panic!("not a trace") };
        assert_eq!((summary.messages, summary.bytes), (exported.messages, exported.bytes));
        // Six messages of tasks, and those of the Allreduces.
        assert!(summary.messages > 6 && summary.bytes > 3_000_000_324);
        assert_eq!(summary.remarks, Vec::<String>::new());
    }
}
