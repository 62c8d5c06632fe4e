//! Whole requests: GetInfo's examples under its own model and under the real launcher's rules, and requests that cannot
//! be met.

use std::path::PathBuf;

use placement::{Distribution, Error, Launcher, Placement, Request, launcher};

/// The placement by the rules of a launcher.
fn by(name: &str, request: &Request) -> Result<Placement, Error> {
    let launcher: &dyn Launcher = launcher(name).expect(name);
    launcher.place(request)
}

fn place(request: &Request) -> Placement {
    by("openmpi", request).unwrap()
}

/// GetInfo's `hostFile-example`.
const HOSTFILE: &str = "#This is an example hostfile\n\n#comments start with #\n\n#This is a single processor machine\n\
    node0\n\n#This is a two-processor machine\nnode1 slots=2 #cores=3 # this takes a custom cores arg only for getInfo\n\
    \n#This machine can run up to 2 processes\n\nnode2 slots=2 maxSlots=2\nnode3 slots=5 maxSlots=20";

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Files(tempfile::tempdir().unwrap())
    }

    fn with(&self, name: &str, text: &str) -> Option<PathBuf> {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    }
}

fn error_by(name: &str, request: &Request) -> String {
    by(name, request).unwrap_err().to_string()
}

fn error(request: &Request) -> String {
    error_by("openmpi", request)
}

fn hosts_by(name: &str, request: &Request) -> Vec<String> {
    by(name, request).unwrap().hosts_of_ranks().map(str::to_owned).collect()
}

fn hosts(request: &Request) -> Vec<String> {
    hosts_by("openmpi", request)
}

#[test]
fn errors_about_the_nodes_name_their_file() {
    let files = Files::new();
    for launcher in ["openmpi", "hydra", "slurm"] {
        let empty = Request { hostfile: files.with("empty", "# none\n"), ..Request::default() };
        let error = error_by(launcher, &empty);
        assert!(error.contains("/empty"), "{error}");
    }
    let hostfile = files.with("two", "a slots=2\n");
    let full = Request { processes: Some(3), hostfile, ..Request::default() };
    assert!(error(&full).contains("/two: there are not enough slots"), "{}", error(&full));
    let elsewhere = Request { hosts: vec!["b".into()], ..full };
    assert!(error(&elsewhere).contains("/two: at least one of the requested hosts"), "{}", error(&elsewhere));
    let without_file = Request {
        processes: Some(3),
        nodes: Some(1),
        slots: Some("2".parse().unwrap()),
        ..Request::default()
    };
    assert!(error(&without_file).starts_with("there are not enough slots"), "{}", error(&without_file));
}

/// Figures 5.5 to 5.8 of GetInfo's description.
#[test]
fn getinfo_s_figures() {
    let files = Files::new();
    let hostfile = files.with("hostFile-example", HOSTFILE);
    let getinfo = Request::default();
    let text = |request: &Request| by("getinfo", request).unwrap().to_getinfo();

    let by_node =
        Request { hostfile: hostfile.clone(), processes: Some(8), by_node: true, ..getinfo.clone() };
    let expected = "0 0:0:node0\n1 0:0:node1\n2 0:0:node2\n3 0:0:node3\n4 1:0:node1\n5 2:0:node1\n6 0:1:node2\n7 0:1:node3\n";
    assert_eq!(text(&by_node), expected);

    let mixed = Request {
        hostfile,
        processes: Some(8),
        map_by: Some("core".parse().unwrap()),
        rank_by: Some("slot".parse().unwrap()),
        ..getinfo.clone()
    };
    let expected = "0 0:0:node0\n1 0:0:node1\n2 0:1:node1\n3 0:0:node2\n4 1:0:node1\n5 1:1:node1\n6 2:0:node1\n7 2:1:node1\n";
    assert_eq!(text(&mixed), expected);

    // There it asks for 2 hosts and 8 slots; its ranks then follow the nodes slot by slot.
    let asked =
        Request { processes: Some(4), nodes: Some(2), slots: Some("8".parse().unwrap()), ..getinfo.clone() };
    assert_eq!(text(&asked), "0 0:0:node0\n1 0:1:node0\n2 0:0:node1\n3 0:1:node1\n");

    let rankfile =
        files.with("rankfile-physical-example.txt", "rank 0=aa slot=1\nrank 1=bb slot=8\nrank 2=cc slot=6\n");
    let ranked = Request { processes: Some(6), by_node: true, rankfile, ..getinfo };
    assert_eq!(text(&ranked), "0 0:1:aa\n1 0:8:bb\n2 0:6:cc\n");
    let real = Request { by_node: false, ..ranked };
    assert!(error(&real).contains(":3: rank 3 is missing"), "{}", error(&real));
}

/// The same hostfile by the real rules: by node means one each, then whoever has room.
#[test]
fn the_same_by_mpirun() {
    let files = Files::new();
    let hostfile = files.with("hosts", HOSTFILE);
    let request = Request { hostfile, processes: Some(8), by_node: true, ..Request::default() };
    assert_eq!(hosts(&request), ["node0", "node1", "node2", "node3", "node1", "node2", "node3", "node3"]);
    let request = Request { processes: Some(11), by_node: false, ..request };
    assert!(error(&request).contains("not enough slots available in the system to satisfy the 11 slots"));
    let request = Request { oversubscribe: true, ..request };
    assert_eq!(place(&request).ranks.iter().filter(|place| place.oversubscribed).count(), 1);
}

/// Two corners that random comparison with mpirun found.
#[test]
fn corners_of_mpirun() {
    let files = Files::new();
    let hostfile = files.with("repeated", "a max-slots=2\nb slots=5\na\n");
    let full = Request {
        hostfile,
        processes: Some(3),
        map_by: Some("ppr:3:node".parse().unwrap()),
        ..Request::default()
    };
    assert!(error(&full).contains("not enough slots available on node a"), "3 slots, but a limit of 2");
    let hostfile = files.with("no-slots", "a slots=0\nb slots=0\n");
    let none = Request { hostfile, ..Request::default() };
    assert!(error(&none).contains("already filled"));
    assert_eq!(hosts(&Request { oversubscribe: true, ..none }), ["a"]);
}

#[test]
fn rankfiles_of_both_forms() {
    let files = Files::new();
    let rankfile = files.with("ranks", "rank 1=bb slot=0:0,1\nrank 0=aa slot=1:0-2\nrank 2=cc slot=1-2\n");
    let request = Request { rankfile, ..Request::default() };
    assert_eq!(hosts(&request), ["aa", "bb", "cc"]);
    let placement = place(&request);
    assert_eq!((placement.ranks[0].slot, placement.ranks[0].core), (Some(1), Some(0)));
    let known = Request { hostfile: files.with("hosts", "aa slots=8\nbb slots=8\n"), ..request.clone() };
    assert!(error(&known).ends_with("ranks:3: the rankfile claimed a host that is not allocated: cc"));
    let small = Request { hostfile: files.with("hosts", "aa slots=8\nbb slots=2\ncc slots=2\n"), ..request };
    assert!(error(&small).ends_with("ranks:3: rank 2: node cc has 2 cores, and the slot list wants core 2"));
}

#[test]
fn other_launchers() {
    let files = Files::new();
    let slurm = Request {
        node_list: Some("n[1-3]".parse().unwrap()),
        slots: Some("2(x3)".parse().unwrap()),
        processes: Some(4),
        ..Request::default()
    };
    assert_eq!(hosts_by("slurm", &slurm), ["n1", "n1", "n2", "n3"]);
    let cyclic = Request { distribution: Some(Distribution::Cyclic), ..slurm.clone() };
    assert_eq!(hosts_by("slurm", &cyclic), ["n1", "n2", "n3", "n1"]);
    let capped = Request { per_node: Some(1), processes: Some(3), ..slurm.clone() };
    assert_eq!(hosts_by("slurm", &capped), ["n1", "n2", "n3"]);
    assert!(error_by("slurm", &Request { processes: Some(7), ..slurm }).contains("not enough slots"));

    let hydra =
        Request { hostfile: files.with("machines", "a:2\nb\n"), processes: Some(4), ..Request::default() };
    assert_eq!(hosts_by("hydra", &hydra), ["a", "a", "b", "a"]);
}

#[test]
fn what_cannot_be_met_is_said_once_and_clearly() {
    let files = Files::new();
    let base = Request { hostfile: files.with("hosts", "a slots=2\nb slots=2\n"), ..Request::default() };
    let mapped =
        |policy: &str| Request { map_by: Some(policy.parse().unwrap()), processes: Some(3), ..base.clone() };
    assert!(error(&Request::default()).contains("--nodes N --slots M"));
    assert!(error(&Request { processes: Some(0), ..base.clone() }).contains("at least one rank"));
    assert!(
        error(&Request { hosts: vec!["zz".into()], ..base.clone() }).contains("missing requested host: zz")
    );
    let zero = "ppr:0:node".parse::<placement::Mapping>().unwrap_err().to_string();
    assert!(zero.contains("ppr:0"), "{zero}");
    assert!(error(&mapped("ppr:1:node")).contains("room for 2"));
    assert!(error(&mapped("ppr:3:node")).contains("not enough slots available on node a"));
    let unknown = "rack".parse::<placement::Mapping>().unwrap_err().to_string();
    assert!(unknown.contains("mapping policy is not recognized"), "{unknown}");
    assert!(error(&mapped("ppr:1:slot")).contains("--model getinfo"));
    assert!(error(&Request { by_node: true, ..mapped("slot") }).contains("conflicting directives"));
    assert!(
        error(&Request { rank_by: Some("l3cache".parse().unwrap()), ..mapped("slot") })
            .contains("no objects")
    );
    assert!(
        error(&Request { per_node: Some(2), ..base.clone() }).contains("has no meaning in the openmpi model")
    );
    assert!(
        error(&Request { oversubscribe: true, no_oversubscribe: true, ..base.clone() })
            .contains("conflicting")
    );
    let gone = files.0.path().join("gone");
    assert!(error(&Request { hostfile: Some(gone), ..Request::default() }).contains("gone: No such file"));
    let unsure = Request { hostfile: files.with("unsure", "a\nb slots=2\n"), ..Request::default() };
    assert!(error(&unsure).contains("number of processes to start was omitted"));
    let bad = Request { hostfile: files.with("bad", "a\nb slots=two\n"), ..Request::default() };
    assert!(error(&bad).ends_with("bad:2: slots wants a number that is not negative, found \"two\""));
    let list = "n[1-".parse::<placement::NodeList>().unwrap_err().to_string();
    assert!(list.contains("a \"[\" is never closed"), "{list}");
}

#[test]
fn nodes_that_are_given_twice_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = directory.path().join("hosts");
    std::fs::write(&hosts, "a slots=4\nb slots=4\n").unwrap();
    let ranks = directory.path().join("ranks");
    std::fs::write(&ranks, "rank 0=a slot=0\n").unwrap();
    let request = || Request { processes: Some(1), hostfile: Some(hosts.clone()), ..Request::default() };
    let none = || Request { processes: Some(1), ..Request::default() };
    let nodes = Some(2);
    let slots = Some("2".parse().unwrap());
    let list = Some("n[1-2]".parse().unwrap());
    let host = vec!["a".to_owned()];
    for (request, first, second) in [
        (Request { nodes, ..request() }, "--hostfile", "--nodes"),
        (Request { node_list: list.clone(), ..request() }, "--hostfile", "--nodelist"),
        (Request { slots: slots.clone(), ..request() }, "--hostfile", "--slots"),
        (Request { hosts: host.clone(), nodes, ..none() }, "--host", "--nodes"),
        (Request { hosts: host.clone(), slots: slots.clone(), ..none() }, "--host", "--slots"),
        (Request { node_list: list.clone(), nodes, ..none() }, "--nodelist", "--nodes"),
        (Request { rankfile: Some(ranks.clone()), slots: slots.clone(), ..none() }, "--rankfile", "--slots"),
        (Request { nodes, slots: slots.clone(), ..request() }, "--hostfile", "--nodes"),
    ] {
        let said = error(&request);
        assert!(
            said.ends_with(&format!("conflicting directives for nodes: {first} and {second}")),
            "{request:?}: {said}"
        );
    }
    let two = error_by("hydra", &Request { hosts: host.clone(), ..request() });
    assert!(two.ends_with("conflicting directives for nodes: --hostfile and --host"), "{two}");
    for request in [
        Request { hosts: host, ..request() },
        Request { nodes, slots: slots.clone(), ..none() },
        Request { node_list: list, slots, ..none() },
    ] {
        assert!(by("openmpi", &request).is_ok(), "{request:?}");
    }
}

#[test]
fn many_ranks_and_many_cores_cost_what_they_are() {
    // Neither memory for billions of cores nor a look at every node for every rank: either would not come to an end here.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ranks");
    let lines = (0..200_000).map(|rank| format!("rank {rank}=n{rank} slot=0\n"));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    let placement = place(&Request { rankfile: Some(path), ..Request::default() });
    assert_eq!((placement.ranks.len(), placement.ranks[199_999].node), (200_000, 199_999));
    for launcher in ["openmpi", "getinfo"] {
        for (map_by, rank_by) in
            [("node", "core"), ("core", "core"), ("slot", "slot"), ("core:span", "core:span")]
        {
            let getinfo = launcher == "getinfo";
            let word = |word: &'static str| if getinfo { word.split(':').next().unwrap() } else { word };
            let request = Request {
                processes: Some(5),
                nodes: Some(2),
                slots: Some("4".parse().unwrap()),
                cores: Some(u32::MAX),
                map_by: Some(word(map_by).parse().unwrap()),
                rank_by: Some(word(rank_by).parse().unwrap()),
                oversubscribe: !getinfo,
                ..Request::default()
            };
            assert_eq!(by(launcher, &request).unwrap().ranks.len(), 5, "{map_by} {rank_by}");
        }
    }
}
