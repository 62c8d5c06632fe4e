//! The oracle for Hydra: `mpiexec.hydra -verbose -launcher manual` prints how many processes each proxy gets and the
//! process mapping it hands to MPI, before it waits for somebody to start the proxies; nobody does.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use placement::{Request, launcher};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use vef_tests::{Wheel, installed};

const CASES: u64 = 200;

/// How long Hydra may take for a line.
const PATIENCE: Duration = Duration::from_secs(20);

/// What Hydra says of a request: its hosts in turn, and the turn of each rank, which repeat.
struct Said {
    hosts: Vec<String>,
    turns: Vec<usize>,
    processes: usize,
}

impl Said {
    /// The host of each rank (PMI's rule for `PMI_process_mapping`).
    fn host_of_ranks(&self, ranks: usize) -> Vec<&str> {
        self.turns.iter().cycle().take(ranks).map(|&turn| self.hosts[turn].as_str()).collect()
    }
}

/// Reads lines until the mapping has come, then ends Hydra.
fn ask_hydra(mpiexec: &str, arguments: &[String]) -> Said {
    // Hydra 5 buffers its lines and ends without writing the last ones.
    let mut child = Command::new("stdbuf")
        .args(["-o0", mpiexec, "-verbose", "-launcher", "manual"])
        .args(arguments)
        .arg("hostname")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("mpiexec.hydra starts");
    let output = BufReader::new(child.stdout.take().unwrap());
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
    let mut said = Said { hosts: Vec::new(), turns: Vec::new(), processes: 0 };
    while said.turns.is_empty() {
        let Ok(line) = lines.recv_timeout(PATIENCE) else { break };
        if let Some((_, proxy)) = line.split_once("] proxy: ") {
            said.hosts.push(proxy.split_whitespace().next().unwrap().to_owned());
        } else if line.contains("Exec list: ") {
            // One entry for each time round: "hostname (2 processes); hostname (1 processes);".
            let counts = line.split(" processes)").filter_map(|entry| entry.rsplit_once('('));
            said.processes += counts.map(|(_, count)| count.parse::<usize>().unwrap()).sum::<usize>();
        } else if let Some((_, after)) = line.split_once("--pmi-process-mapping (vector,") {
            let (list, _) = after.split_once(") --").unwrap();
            let mut rest = list;
            said.turns = turns(&mut rest);
            assert_eq!(rest, "", "{list}");
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!said.turns.is_empty(), "no mapping from {mpiexec} {arguments:?}");
    said
}

/// The turn of each process, of items `(first turn, turns, processes on each)`; of Hydra 5 also `turn`, which has one process,
/// and `[items]xTIMES`.
fn turns(rest: &mut &str) -> Vec<usize> {
    fn number(rest: &mut &str) -> usize {
        let end = rest.find(|byte: char| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        *rest = after;
        digits.parse().unwrap()
    }
    fn took(rest: &mut &str, word: &str) -> bool {
        rest.strip_prefix(word).map(|after| *rest = after).is_some()
    }
    let mut all = Vec::new();
    loop {
        if took(rest, "(") {
            let [first, turns, processes] = [",", ",", ")"].map(|end| {
                let value = number(rest);
                assert!(took(rest, end), "{rest}");
                value
            });
            all.extend((first..first + turns).flat_map(|turn| std::iter::repeat_n(turn, processes)));
        } else if took(rest, "[") {
            let items = turns(rest);
            assert!(took(rest, "]x"), "{rest}");
            all.extend(items.repeat(number(rest)));
        } else {
            all.push(number(rest));
        }
        if !took(rest, ",") {
            return all;
        }
    }
}

#[test]
fn every_rank_is_where_hydra_puts_it() {
    let debian = installed("mpiexec.hydra").then(|| "mpiexec.hydra".to_owned());
    let pypi = Wheel::Mpich5.programs().map(|(_, launcher)| format!("{}.hydra", launcher[0]));
    for mpiexec in debian.into_iter().chain(pypi) {
        cases(&mpiexec);
    }
}

fn cases(mpiexec: &str) {
    let directory = tempfile::tempdir().unwrap();
    for case in 0..CASES {
        let mut random = SmallRng::seed_from_u64(case);
        let mut text = String::new();
        for _ in 0..random.random_range(1..7) {
            let host = format!("10.77.0.{}", random.random_range(0..5));
            text += &match random.random_range(0..4) {
                0 => format!("{host}\n"),
                // Hydra 5 refuses comments behind a host.
                1 => format!("# two of {host}\n{host}:2\n"),
                _ => format!("{host}:{}\n", random.random_range(1..5)),
            };
        }
        let path = directory.path().join(format!("hosts{case}"));
        std::fs::write(&path, &text).unwrap();
        let mut request = Request { hostfile: Some(path.clone()), ..Request::default() };
        let mut arguments = vec!["-f".to_owned(), path.display().to_string()];
        if random.random_range(0..5) > 0 {
            let processes = random.random_range(1..30);
            request.processes = Some(processes);
            arguments.extend(["-n".to_owned(), processes.to_string()]);
        }
        if random.random_range(0..3) == 0 {
            let per_node = random.random_range(1..4);
            request.per_node = Some(per_node);
            arguments.extend(["-ppn".to_owned(), per_node.to_string()]);
        }
        let ours = launcher("hydra").unwrap().place(&request).unwrap();
        let said = ask_hydra(mpiexec, &arguments);
        assert_eq!(ours.ranks.len(), said.processes, "{mpiexec}, case {case}: {arguments:?}\n{text}");
        let theirs = said.host_of_ranks(ours.ranks.len());
        let hosts: Vec<_> = ours.hosts_of_ranks().collect();
        assert_eq!(hosts, theirs, "{mpiexec}, case {case}: {arguments:?}\n{text}");
    }
}
