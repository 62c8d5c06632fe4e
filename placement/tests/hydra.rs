//! The oracle for Hydra: `mpiexec.hydra -verbose -launcher manual` prints how many processes each proxy gets and the
//! process mapping it hands to MPI, before it waits for somebody to start the proxies; nobody does.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use placement::{Request, launcher};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const MPIEXEC: &str = "mpiexec.hydra";
const CASES: u64 = 200;

/// How long Hydra may take for a line.
const PATIENCE: Duration = Duration::from_secs(20);

/// What Hydra says of a request: its hosts in turn, and for each block of the process mapping (first turn, turns,
/// processes on each).
struct Said {
    hosts: Vec<String>,
    blocks: Vec<(usize, usize, usize)>,
    processes: usize,
}

impl Said {
    /// The host of each rank: the blocks in turn, over and over (PMI's rule for `PMI_process_mapping`).
    fn host_of_ranks(&self, ranks: usize) -> Vec<&str> {
        let once = self.blocks.iter().flat_map(|&(first, turns, processes)| {
            (first..first + turns).flat_map(move |turn| std::iter::repeat_n(turn, processes))
        });
        once.cycle().take(ranks).map(|turn| self.hosts[turn].as_str()).collect()
    }
}

/// Reads lines until the mapping has come, then ends Hydra.
fn ask_hydra(arguments: &[String]) -> Said {
    let mut child = Command::new(MPIEXEC)
        .args(["-verbose", "-launcher", "manual"])
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
    let mut said = Said { hosts: Vec::new(), blocks: Vec::new(), processes: 0 };
    while said.blocks.is_empty() {
        let Ok(line) = lines.recv_timeout(PATIENCE) else { break };
        if let Some((_, proxy)) = line.split_once("] proxy: ") {
            said.hosts.push(proxy.split_whitespace().next().unwrap().to_owned());
        } else if line.contains("Exec list: ") {
            // One entry for each time round: "hostname (2 processes); hostname (1 processes);".
            let counts = line.split(" processes)").filter_map(|entry| entry.rsplit_once('('));
            said.processes += counts.map(|(_, count)| count.parse::<usize>().unwrap()).sum::<usize>();
        } else if let Some((_, after)) = line.split_once("--pmi-process-mapping (vector,") {
            let blocks = after.split(") --").next().unwrap().split("),(");
            said.blocks = blocks.map(block).collect();
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!said.blocks.is_empty(), "no mapping from {MPIEXEC} {arguments:?}");
    said
}

fn block(text: &str) -> (usize, usize, usize) {
    let numbers: Vec<usize> = text.trim_matches(['(', ')']).split(',').map(|n| n.parse().unwrap()).collect();
    (numbers[0], numbers[1], numbers[2])
}

#[test]
fn every_rank_is_where_hydra_puts_it() {
    if !skipping::installed(MPIEXEC) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for case in 0..CASES {
        let mut random = SmallRng::seed_from_u64(case);
        let mut text = String::new();
        for _ in 0..random.random_range(1..7) {
            let host = format!("10.77.0.{}", random.random_range(0..5));
            text += &match random.random_range(0..4) {
                0 => format!("{host}\n"),
                1 => format!("# {host}\n{host}:2 # two\n"),
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
        let said = ask_hydra(&arguments);
        assert_eq!(ours.ranks.len(), said.processes, "case {case}: {arguments:?}\n{text}");
        let theirs = said.host_of_ranks(ours.ranks.len());
        let hosts: Vec<_> = ours.hosts_of_ranks().collect();
        assert_eq!(hosts, theirs, "case {case}: {arguments:?}\n{text}");
    }
}
