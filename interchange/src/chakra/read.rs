//! Converts the execution traces of all ranks to a trace.

use super::file;
use super::groups::{self, Groups};
use super::node::{Node, kind, name_of};
use crate::calls::summing::missing;
use crate::error::{Problem, Result};
use crate::files::Files;
use crate::findings::{Finding, Findings};
use crate::graph::{self, Act, Call, Graph, Group};
use crate::options::Options;
use crate::progress::Progress;
use crate::summary::Summary;
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use vef_format::operation::Operation;
use vef_format::units::{Bytes, Count};

/// Faults for which the file with the groups is to blame.
const UNKNOWN_GROUP: &str = "groups without members (vef import --groups)";
const NO_MEMBER: &str = "collectives of a group of which the rank is no member";

/// What is wrong: the speed that makes a time of an amount of computing is not given.
const NO_SPEED: &str =
    "operations without a duration, which take no time without vef import --flops-per-second";

/// Reads the files of all ranks.
pub(super) fn read(files: &Files, to: &Path, options: &Options, progress: &dyn Progress) -> Result<Summary> {
    let mut findings = Findings::default();
    let mut summary = Summary::default();
    let Loaded { graph, first, groups } = load(files, options, progress, &mut findings, &mut summary)?;
    if let Some(refused) = findings.refused(options.strict) {
        // Where only the file with the groups can be wrong, it is named.
        let of_groups = |finding: &Finding| [UNKNOWN_GROUP, NO_MEMBER].contains(&&*finding.what);
        let mut refused_for = findings.all.iter().filter(|finding| finding.is_error || options.strict);
        let file = groups.filter(|_| refused_for.all(of_groups)).unwrap_or(first);
        return Err(Problem::Invalid(refused).of_file(&file));
    }
    graph::convert(graph, &first, to, options, &mut summary)?;
    summary.findings.append(&mut findings.all);
    Ok(summary)
}

/// Finds what is wrong in the files of all ranks.
pub(super) fn check(files: &Files, options: &Options, progress: &dyn Progress) -> Result<Vec<Finding>> {
    let mut findings = Findings::default();
    let Loaded { graph, .. } = load(files, options, progress, &mut findings, &mut Summary::default())?;
    graph::check(graph, options.partial, &mut findings);
    Ok(findings.all)
}

/// The rank in a name such as `trace.3.et`: the last number between dots.
fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.rsplit('.').skip(1).find_map(|part| part.parse().ok())
}

/// The files in the order of their ranks, and the number of ranks.
fn ranks(files: &Files, groups: &Groups, options: &Options) -> Result<(BTreeMap<u32, PathBuf>, u32)> {
    let mut of_ranks = BTreeMap::new();
    for (number, path) in (0..).zip(&files.paths) {
        let start = Files::start(path)?;
        if !file::is_protobuf(&start) && !file::is_json(&start) {
            if options.groups.as_ref() == Some(path) || groups::is_at(path) {
                continue;
            }
            if !file::may_be_cut(path, &start) {
                let what =
                    Problem::Expected { expected: "an execution trace", found: "another format".to_owned() };
                return Err(what.of_file(path));
            }
        }
        let rank = if files.paths.len() == 1 { 0 } else { rank_of(path).unwrap_or(number) };
        if let Some(other) = of_ranks.insert(rank, path.clone()) {
            let what = format!("is of rank {rank}, as is {}", other.display());
            return Err(Problem::Invalid(what).of_file(path));
        }
    }
    let last = last(&of_ranks);
    let named = groups.values().flatten().copied().max().unwrap_or(0);
    let Some(ranks) = last.max(named).checked_add(1).filter(|&ranks| ranks <= 1 << 24) else {
        return Err(Problem::TooLarge(format!("rank {}", last.max(named))).of_file(files.first()));
    };
    Ok((of_ranks, ranks))
}

fn last(of_ranks: &BTreeMap<u32, PathBuf>) -> u32 {
    of_ranks.keys().next_back().copied().unwrap_or(0)
}

/// A trace in memory.
struct Loaded {
    graph: Graph,
    /// The file of the first rank, which errors about all files name.
    first: PathBuf,
    /// The file with the groups.
    groups: Option<PathBuf>,
}

fn load(
    files: &Files,
    options: &Options,
    progress: &dyn Progress,
    findings: &mut Findings,
    summary: &mut Summary,
) -> Result<Loaded> {
    let beside = files.paths.iter().find(|path| groups::is_at(path));
    let file = options.groups.as_ref().or(beside).cloned();
    let mut groups = file.as_deref().map(groups::read).transpose()?.unwrap_or_default();
    let (of_ranks, ranks) = ranks(files, &groups, options)?;
    let first = of_ranks.values().next().map_or(files.first(), PathBuf::as_path).to_path_buf();
    // The file with the groups may name ranks behind the last file.
    let by = file.as_deref().filter(|_| ranks > last(&of_ranks) + 1).unwrap_or(&first);
    let of = |ranks: u64| (by, &of_ranks, ranks);
    let (mut graph, named) = load_ranks(of(ranks.into()), &mut groups, options, progress, findings, summary)?;
    if named > ranks.into() {
        // So do messages.
        (*findings, *summary) = Default::default();
        let of = (&*first, &of_ranks, named);
        graph = load_ranks(of, &mut groups, options, progress, findings, summary)?.0;
    }
    Ok(Loaded { graph, first, groups: file })
}

/// Reads the files of so many ranks; also returns how many there are by the peers of messages.
fn load_ranks(
    (first, of_ranks, ranks): (&Path, &BTreeMap<u32, PathBuf>, u64),
    groups: &mut Groups,
    options: &Options,
    progress: &dyn Progress,
    findings: &mut Findings,
    summary: &mut Summary,
) -> Result<(Graph, u64)> {
    let there = |rank| of_ranks.contains_key(&rank);
    let missing =
        missing(ranks, of_ranks.len(), there, options.partial).map_err(|problem| problem.of_file(first))?;
    let ranks = ranks as u32;
    let mut loader = Loader {
        graph: Graph { ranks, place: "node", ..Graph::default() },
        groups: HashMap::new(),
        missing: &missing,
        options,
        findings,
        summary,
        calls: HashMap::new(),
        named: 0,
        root_is_guessed: false,
        uneven: 0,
        has_kernels: false,
        beside_kernels: 0,
    };
    for rank in 0..ranks {
        progress.set(rank.into(), ranks.into());
        if let Some(path) = of_ranks.get(&rank) {
            let (mut nodes, cut) = file::read(path, options)?;
            if let Some(offset) = cut {
                loader
                    .summary
                    .remarks
                    .push(format!("{}: ends within a node, at byte {offset}", path.display()));
            }
            for node in nodes.iter().filter(|node| node.kind == kind::METADATA) {
                if let Some(group) = groups::add(groups, &node.inputs) {
                    let other = || format!("group {group} at rank {rank}");
                    loader.findings.error("groups of which ranks name other members", other);
                }
            }
            nodes.sort_by_key(|node| node.id);
            loader.rank(rank, &nodes, groups);
        }
        let end = loader.graph.nodes.len() as u32;
        loader.graph.ends.push(end);
    }
    if options.partial {
        loader.drop_incomplete();
    }
    if loader.root_is_guessed {
        let root = "the format names no roots: each is rank 0 of its group";
        loader.summary.remarks.push(root.to_owned());
    }
    if loader.uneven > 0 {
        let uneven =
            format!("rounded, as the ranks do not divide the size: {}", Count(loader.uneven, "collective"));
        loader.summary.remarks.push(uneven);
    }
    if loader.beside_kernels > 0 {
        let collectives = Count(loader.beside_kernels, "collective");
        let what = format!("computing, as they are called beside kernels: {collectives} of processors");
        loader.summary.remarks.push(what);
    }
    let Loader { graph, named, .. } = loader;
    summary.missing_ranks = missing;
    Ok((graph, named))
}

/// The n-th collective of a group, as the first rank has it.
struct Called {
    operation: Operation,
    size: u64,
    rank: u32,
    node: u64,
    /// The nodes of all members so far, by index.
    nodes: Vec<u32>,
}

struct Loader<'a> {
    graph: Graph,
    /// By name: number in the graph.
    groups: HashMap<String, u32>,
    missing: &'a [u32],
    options: &'a Options,
    findings: &'a mut Findings,
    summary: &'a mut Summary,
    /// By group and number.
    calls: HashMap<(u32, u32), Called>,
    /// Number of ranks by the peers of messages.
    named: u64,
    root_is_guessed: bool,
    uneven: u64,
    /// Whether the rank that is read has kernels that communicate.
    has_kernels: bool,
    /// Collectives of processors in such ranks: those that launch the kernels.
    beside_kernels: u64,
}

impl Loader<'_> {
    /// Adds the nodes of a rank, sorted by id.
    fn rank(&mut self, rank: u32, nodes: &[Node], groups: &Groups) {
        let first = self.graph.nodes.len() as u32;
        let mut places: HashMap<u64, u32> = HashMap::with_capacity(nodes.len());
        for (number, node) in (first..).zip(nodes) {
            if places.insert(node.id, number).is_some() {
                self.findings.error("ids twice in a rank", || format!("rank {rank}, node {}", node.id));
            }
        }
        let mut edges = Vec::new();
        for (number, node) in (first..).zip(nodes) {
            for &on in &node.data_dependencies {
                let shown = || format!("rank {rank}, node {} on {on}", node.id);
                match places.get(&on) {
                    Some(&on) if on == number => {
                        self.findings.warning("data dependencies of a node on itself", shown);
                    }
                    Some(&on) => edges.push((on, number)),
                    None => self.findings.warning("data dependencies on nodes that are not there", shown),
                }
            }
        }
        if self.options.stream_order {
            stream_order(first, nodes, &mut edges);
        }
        edges.sort_unstable();
        edges.dedup();
        for node in nodes {
            self.summary.call(name_of(node.kind), 1);
        }
        let data: usize = nodes.iter().map(|node| node.data_dependencies.len()).sum();
        self.summary.call("data_deps", data as u64);
        let control: u64 = nodes.iter().map(|node| node.control_dependencies).sum();
        if control > 0 {
            self.summary.call("ctrl_deps (left out)", control);
        }
        self.has_kernels = nodes.iter().any(|node| node.kind == kind::COLL && !node.is_cpu_op);
        // Collectives are numbered in topological order.
        let mut streams: HashMap<(bool, u64), u32> = HashMap::new();
        for node in nodes {
            let number = streams.len() as u32;
            let stream = *streams.entry((node.is_cpu_op, node.tid)).or_insert(number);
            let act = self.act(rank, node, groups);
            self.graph.nodes.push(graph::Node { act, task: rank, stream, place: node.id });
        }
        self.collectives(rank, first, nodes, &edges);
        self.graph.requires.append(&mut edges);
    }

    /// What a node does.
    fn act(&mut self, rank: u32, node: &Node, groups: &Groups) -> Act {
        let computing = Act::Compute { time: node.duration.saturating_mul(1000) };
        let place = || format!("rank {rank}, node {}", node.id);
        let small = |number: Option<u64>| number.unwrap_or(0).try_into().unwrap_or(u32::MAX);
        if let (kind::SEND | kind::RECV | kind::COLL, Some(name)) = (node.kind, node.wrong) {
            self.findings.error(&format!("{name} that is no number from 0 on"), place);
        }
        match node.kind {
            kind::METADATA => Act::Compute { time: 0 },
            kind::SEND | kind::RECV => {
                let is_send = node.kind == kind::SEND;
                let (own, peer) = match is_send {
                    true => (node.comm_src, node.comm_dst),
                    false => (node.comm_dst, node.comm_src),
                };
                if node.comm_size.is_none() {
                    self.findings.warning("messages without comm_size, taken for 0 bytes", place);
                }
                if own.is_some_and(|own| own != u64::from(rank)) {
                    self.findings.warning("messages of which the own rank is another's", place);
                }
                let (bytes, tag, peer) = (node.comm_size.unwrap_or(0), small(node.comm_tag), small(peer));
                self.named = self.named.max(u64::from(peer) + 1);
                match is_send {
                    true => Act::Send { bytes, to: peer, tag },
                    false => Act::Receive { bytes, from: Some(peer), tag: Some(tag) },
                }
            }
            kind::COLL => {
                if node.is_cpu_op && self.has_kernels {
                    self.beside_kernels += 1;
                    return computing;
                }
                let Some(operation) = node.comm_type.map_or(Some(Operation::Allreduce), operation) else {
                    self.findings.error("collectives of an unknown comm_type", place);
                    return computing;
                };
                let Some(size) = node.comm_size.or((operation == Operation::Barrier).then_some(0)) else {
                    self.findings.warning("collectives without comm_size, left out", place);
                    return computing;
                };
                if node.comm_type.is_none() {
                    self.findings.warning("collectives without comm_type, taken for Allreduces", place);
                }
                let group = self.group(node.group.as_deref().unwrap_or(""), groups);
                let members = &self.graph.groups[group as usize].members;
                let Some(number) = members.iter().position(|&member| member == rank) else {
                    self.findings.error(NO_MEMBER, place);
                    return computing;
                };
                if members.iter().any(|member| self.missing.contains(member)) {
                    self.summary.skip(operation.name(), rank);
                    return Act::Compute { time: 0 };
                }
                let ranks = members.len() as u64;
                let (own, sum) = match operation {
                    Operation::Allgather | Operation::Gather => (size, size.saturating_mul(ranks)),
                    Operation::ReduceScatterBlock | Operation::Scatter => (size / ranks, size),
                    _ => (size, size),
                };
                let divides = matches!(
                    operation,
                    Operation::ReduceScatterBlock | Operation::Scatter | Operation::Alltoall
                );
                self.uneven += u64::from(divides && !size.is_multiple_of(ranks));
                self.root_is_guessed |= operation.is_rooted();
                let amounts = operation.amounts(number == 0, Bytes(own), Bytes(sum));
                self.graph.calls.push(Call { group, operation, amounts });
                Act::Collective { call: self.graph.calls.len() as u32 - 1 }
            }
            _ => {
                if !matches!(node.kind, 2..=4) {
                    self.summary.skip(name_of(node.kind), rank);
                }
                match (node.duration, self.options.flops_per_second) {
                    (1.., _) => {}
                    (0, Some(speed)) if node.operations > 0.0 => {
                        // Beyond 64 bits it is the most, which is refused.
                        return Act::Compute { time: (node.operations / speed * 1e9).round() as u64 };
                    }
                    (0, None) if node.operations > 0.0 => self.findings.warning(NO_SPEED, place),
                    (0, _) if node.tensor > 0.0 => {
                        self.findings.warning("memory accesses without a duration, which take no time", place)
                    }
                    (0, _) => {}
                }
                computing
            }
        }
    }

    /// Leaves out the collectives that members of which the file is cut do not call.
    fn drop_incomplete(&mut self) {
        let Graph { groups, nodes, .. } = &mut self.graph;
        let mut dropped: Vec<(u32, Operation)> = Vec::new();
        for (&(group, _), called) in &self.calls {
            if called.nodes.len() < groups[group as usize].members.len() {
                dropped.extend(called.nodes.iter().map(|&node| (node, called.operation)));
            }
        }
        dropped.sort_unstable_by_key(|&(node, _)| node);
        for (node, operation) in dropped {
            let node = &mut nodes[node as usize];
            node.act = Act::Compute { time: 0 };
            self.summary.skip(operation.name(), node.task);
        }
    }

    /// The number of a group.
    fn group(&mut self, name: &str, groups: &Groups) -> u32 {
        if let Some(&group) = self.groups.get(name) {
            return group;
        }
        let members = match groups.get(name) {
            Some(members) => members.clone(),
            None => {
                if !groups.is_empty() && !name.is_empty() {
                    self.findings.error(UNKNOWN_GROUP, || format!("{name:?}"));
                }
                (0..self.graph.ranks).collect()
            }
        };
        let number = self.graph.groups.len() as u32;
        self.graph.groups.push(Group { name: name.to_owned(), members });
        self.groups.insert(name.to_owned(), number);
        number
    }

    /// Puts the collectives of each group of a rank in order, and compares them with those of the other members.
    fn collectives(&mut self, rank: u32, first: u32, nodes: &[Node], edges: &[(u32, u32)]) {
        let order = match graph::order_of(first, nodes.len() as u32, edges) {
            Ok(order) => order,
            // A circle is reported later.
            Err(()) => return,
        };
        let mut last: HashMap<u32, (u32, u32)> = HashMap::new();
        for at in order {
            let Act::Collective { call } = self.graph.nodes[at as usize].act else {
                continue;
            };
            let Call { group, operation, .. } = self.graph.calls[call as usize];
            let number = match last.get_mut(&group) {
                Some((before, number)) => {
                    // Operations of one group start in the same order at all members.
                    self.graph.starts.push((*before, at));
                    (*before, *number) = (at, *number + 1);
                    *number
                }
                None => {
                    last.insert(group, (at, 0));
                    0
                }
            };
            let node = &nodes[(at - first) as usize];
            let size = node.comm_size.unwrap_or(0);
            let new = Called { operation, size, rank, node: node.id, nodes: Vec::new() };
            let known = self.calls.entry((group, number)).or_insert(new);
            if self.options.partial {
                known.nodes.push(at);
            }
            let shown = || {
                format!(
                    "rank {}, node {} ({}, {} bytes) and rank {rank}, node {} ({}, {size} bytes)",
                    known.rank,
                    known.node,
                    known.operation.name(),
                    known.size,
                    node.id,
                    operation.name()
                )
            };
            if known.operation != operation {
                self.findings.error("collectives that ranks of a group call as different operations", shown);
            } else if known.size != size {
                self.findings.error("collectives with different sizes at ranks of a group", shown);
            }
        }
    }
}

/// The operation of a `comm_type`.
fn operation(comm_type: u64) -> Option<Operation> {
    Some(match comm_type {
        0 => Operation::Allreduce,
        1 => Operation::Reduce,
        2 => Operation::Allgather,
        3 => Operation::Gather,
        4 => Operation::Scatter,
        5 => Operation::Bcast,
        6 => Operation::Alltoall,
        7 | 8 => Operation::ReduceScatterBlock,
        9 => Operation::Barrier,
        _ => return None,
    })
}

/// Chains the kernels of each stream by their starts.
fn stream_order(first: u32, nodes: &[Node], edges: &mut Vec<(u32, u32)>) {
    let kernels = (first..).zip(nodes).filter(|(_, node)| !node.is_cpu_op && node.kind != kind::METADATA);
    let mut kernels: Vec<(u64, u64, u64, u32)> =
        kernels.map(|(number, node)| (node.tid, node.start, node.id, number)).collect();
    kernels.sort_unstable();
    for pair in kernels.windows(2) {
        if pair[0].0 == pair[1].0 {
            edges.push((pair[0].3, pair[1].3));
        }
    }
}
