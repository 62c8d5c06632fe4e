//! InfraGraph's schema of infrastructure (<https://infragraph.dev>, version 2.4), in JSON:
//!
//! ```text
//! { "devices": [ { "name": "server", "components": [ { "name": "nic", "count": 2, "choice": "nic" } ] }, … ],
//!   "instances": [ { "name": "host", "device": "server", "count": 4 }, … ],
//!   "links": [ { "name": "100G", "physical": { "bandwidth": { "choice": "gigabits_per_second", "gigabits_per_second": 100 } } } ],
//!   "edges": [ { "ep1": { "instance": "host[0:2]", "component": "nic" }, "ep2": { "instance": "leaf[0]", "component": "port[0:4]" },
//!                "scheme": "one2one", "link": "100G" } ] }
//! ```
//!
//! The network is that of the edges between instances. A device with a component of the type `xpu` or `nic`, in a device that it is composed
//! of, too, is a host, of which each component with an edge is a node; an instance of any other device is a switch. Edges inside devices are no
//! part of the network. As in a graph, a pair of components has one edge, and none with itself; of two links the later one counts.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Deserialize;

use super::description::{Description, Edge, Kind, Names, Speed};
use super::error::{FileError, FileProblem};

/// The most components one in the other.
const MOST_LEVELS: usize = 16;

/// The most edges of a file.
const MOST_EDGES: u64 = 1 << 20;

#[derive(Deserialize)]
struct Infrastructure {
    devices: Vec<Device>,
    instances: Vec<Instance>,
    #[serde(default)]
    links: Vec<Link>,
    edges: Vec<Joint>,
}

#[derive(Deserialize)]
struct Device {
    name: String,
    components: Vec<Component>,
}

#[derive(Deserialize)]
struct Component {
    name: String,
    count: u32,
    choice: String,
}

#[derive(Deserialize)]
struct Instance {
    name: String,
    device: String,
    count: u32,
}

#[derive(Deserialize)]
struct Link {
    name: String,
    #[serde(default)]
    physical: Physical,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Physical {
    bandwidth: Option<Measure>,
    latency: Option<Measure>,
}

/// A unit by name, and values by unit.
#[derive(Deserialize)]
struct Measure {
    choice: Option<String>,
    #[serde(flatten)]
    values: HashMap<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Joint {
    ep1: Endpoint,
    ep2: Endpoint,
    scheme: String,
    link: String,
}

#[derive(Deserialize)]
struct Endpoint {
    instance: String,
    component: String,
}

/// A component of an instance, or the instance if it is a switch: the instance's place in the file, its number, and of a host the component's path
/// by its place in [`Graph::paths`] and its number among those of the path.
type Place = (u32, u32, Option<(u32, u64)>);

/// Indices in Python's notation of slices.
#[derive(Clone, Copy)]
struct Slice {
    first: u32,
    step: u32,
    count: u32,
}

/// Components by index: of instances and, level by level, of components in them.
struct Selected {
    instance: u32,
    numbers: Slice,
    path: u32,
    levels: Vec<(Slice, u32)>,
}

/// What is known of a file.
struct Graph<'a> {
    file: &'a Infrastructure,
    /// The components of devices, by their names.
    devices: HashMap<&'a str, HashMap<&'a str, &'a Component>>,
    hosts: HashSet<&'a str>,
    instances: HashMap<&'a str, (u32, &'a Instance)>,
    links: HashMap<&'a str, Speed>,
    /// Names and counts of components, level by level.
    paths: Vec<Vec<(&'a str, u32)>>,
    /// The place of each path among them.
    places: HashMap<Vec<(&'a str, u32)>, u32>,
}

pub(super) fn parse(text: &str) -> Result<Description, FileError> {
    let file: Infrastructure = serde_json::from_str(text).map_err(|error| {
        let line = error.line();
        syntax(error.to_string().split(" at line ").next().unwrap_or_default()).at(line)
    })?;
    let mut graph = Graph::new(&file).map_err(|problem| problem.at(0))?;
    let mut joined: Vec<(Place, Place, usize)> = Vec::new();
    let mut left = MOST_EDGES;
    for (nth, joint) in file.edges.iter().enumerate() {
        let at =
            |end: &'static str| move |problem: String| syntax(&format!("edges[{nth}]{end}: {problem}")).at(0);
        let [one, other] = [(&joint.ep1, ".ep1"), (&joint.ep2, ".ep2")]
            .map(|(endpoint, end)| graph.selected(endpoint).map_err(at(end)));
        let (one, other) = (one?, other?);
        if !graph.links.contains_key(&*joint.link) {
            return Err(at(".link")(format!("unknown link {:?}", joint.link)));
        }
        let (rows, columns) = (one.count(), other.count());
        let count = match &*joint.scheme {
            "one2one" => rows.min(columns),
            "many2many" => rows.saturating_mul(columns),
            "ring" => return Err(at("")("scheme ring: not supported; write the edges one2one".to_owned())),
            other => return Err(at("")(format!("unknown scheme {other:?}; one2one or many2many"))),
        };
        let rest = left.checked_sub(u64::try_from(count).unwrap_or(u64::MAX));
        left = rest.ok_or_else(|| at("")(format!("together more than {MOST_EDGES} edges")))?;
        for pair in 0..count {
            let (row, column) =
                if joint.scheme == "one2one" { (pair, pair) } else { (pair / columns, pair % columns) };
            let (from, to) = (graph.component(&one, row), graph.component(&other, column));
            if from != to {
                joined.push((from.min(to), from.max(to), nth));
            }
        }
    }
    // The later one of two edges of a pair is first.
    joined.sort_unstable_by_key(|&(from, to, nth)| (from, to, std::cmp::Reverse(nth)));
    joined.dedup_by_key(|(from, to, _)| (*from, *to));
    let mut names = Names::default();
    let vertices: BTreeSet<Place> =
        joined.iter().flat_map(|(from, to, _)| [graph.vertex(*from), graph.vertex(*to)]).collect();
    let mut numbers = HashMap::new();
    for vertex in vertices {
        let kind = if vertex.2.is_some() { Kind::Node } else { Kind::Switch };
        let number = names.declare(&graph.name(vertex), Some(kind)).map_err(|problem| problem.at(0))?;
        numbers.insert(vertex, number);
    }
    for (from, to, nth) in joined {
        let ends = (numbers[&graph.vertex(from)], numbers[&graph.vertex(to)]);
        let speed = graph.links[&*file.edges[nth].link];
        names.description.edges.push(Edge { ends, speed, cables: 1, one_way: false, line: 0 });
    }
    Ok(names.description)
}

impl<'a> Graph<'a> {
    fn new(file: &'a Infrastructure) -> Result<Self, FileProblem> {
        let twice = |name: &str| Err(FileProblem::Twice(name.to_owned()));
        let (mut devices, mut instances, mut links) = (HashMap::new(), HashMap::new(), HashMap::new());
        for device in &file.devices {
            let mut components = HashMap::new();
            for component in &device.components {
                if components.insert(&*component.name, component).is_some() {
                    return twice(&component.name);
                }
            }
            if devices.insert(&*device.name, components).is_some() {
                return twice(&device.name);
            }
        }
        for (place, instance) in (0..).zip(&file.instances) {
            if !devices.contains_key(&*instance.device) {
                let (name, device) = (&instance.name, &instance.device);
                return Err(syntax(&format!("instance {name:?}: unknown device {device:?}")));
            }
            if instances.insert(&*instance.name, (place, instance)).is_some() {
                return twice(&instance.name);
            }
        }
        for link in &file.links {
            if links.insert(&*link.name, link.speed()?).is_some() {
                return twice(&link.name);
            }
        }
        // A device is a host, too, if it is composed of one.
        let mut composed: HashMap<&str, Vec<&str>> = HashMap::new();
        let (mut hosts, mut found) = (HashSet::new(), Vec::new());
        for device in &file.devices {
            for component in &device.components {
                match &*component.choice {
                    "xpu" | "nic" => found.push(&*device.name),
                    "device" => composed.entry(&*component.name).or_default().push(&*device.name),
                    _ => {}
                }
            }
        }
        while let Some(host) = found.pop() {
            if hosts.insert(host) {
                found.extend(composed.get(host).into_iter().flatten());
            }
        }
        let (paths, places) = (Vec::new(), HashMap::new());
        Ok(Self { file, devices, hosts, instances, links, paths, places })
    }

    /// The components that an endpoint names.
    fn selected(&mut self, endpoint: &'a Endpoint) -> Result<Selected, String> {
        let (name, indices) = split(&endpoint.instance)?;
        let &(place, instance) =
            self.instances.get(name).ok_or_else(|| format!("unknown instance {name:?}"))?;
        let numbers =
            Slice::parse(indices, instance.count).map_err(|problem| format!("instance {problem}"))?;
        let (mut device, mut path, mut levels) = (Some(&*instance.device), Vec::new(), Vec::new());
        for (at, element) in endpoint.component.split('.').enumerate() {
            if levels.len() == MOST_LEVELS {
                return Err(format!("more than {MOST_LEVELS} components one in the other"));
            }
            let (name, indices) = split(element)?;
            let inner = device.ok_or_else(|| format!("component {name:?} is in none that is a device"))?;
            // The name of the device itself may stand in front.
            if at == 0 && indices.is_none() && name == inner && endpoint.component != element {
                continue;
            }
            let known = self.devices.get(inner).ok_or_else(|| format!("unknown device {inner:?}"))?;
            let component =
                *known.get(name).ok_or_else(|| format!("device {inner:?} has no component {name:?}"))?;
            let slice =
                Slice::parse(indices, component.count).map_err(|problem| format!("component {problem}"))?;
            path.push((&*component.name, component.count));
            levels.push((slice, component.count));
            device = (component.choice == "device").then_some(&*component.name);
        }
        if let Some(composed) = device {
            return Err(format!("{composed:?} is a device; name a component of it"));
        }
        let new = self.paths.len() as u32;
        let known = *self.places.entry(path.clone()).or_insert(new);
        if known == new {
            self.paths.push(path);
        }
        let selected = Selected { instance: place, numbers, path: known, levels };
        match selected.levels.iter().try_fold(1u64, |all, (_, count)| all.checked_mul((*count).into())) {
            Some(_) => Ok(selected),
            None => Err(format!("{:?}: more than 2^64 components", endpoint.component)),
        }
    }

    /// The component of that number among those that an endpoint names.
    fn component(&self, selected: &Selected, nth: u128) -> Place {
        let inner = selected.levels.iter().map(|(slice, _)| u128::from(slice.count)).product::<u128>();
        let number = selected.numbers.at((nth / inner) as u32);
        let (mut rest, mut index, mut unit) = (nth % inner, 0, 1);
        for &(slice, count) in selected.levels.iter().rev() {
            index += unit * u64::from(slice.at((rest % u128::from(slice.count)) as u32));
            (rest, unit) = (rest / u128::from(slice.count), unit * u64::from(count));
        }
        (selected.instance, number, Some((selected.path, index)))
    }

    /// The node or switch of a component.
    fn vertex(&self, (instance, number, component): Place) -> Place {
        let is_host = self.hosts.contains(&*self.file.instances[instance as usize].device);
        (instance, number, component.filter(|_| is_host))
    }

    /// The name of a vertex, as InfraGraph has it: `host.0.nic.1`.
    fn name(&self, (instance, number, component): Place) -> String {
        let mut name = format!("{}.{number}", self.file.instances[instance as usize].name);
        if let Some((path, index)) = component {
            let levels = &self.paths[path as usize];
            let mut unit: u64 = levels.iter().map(|(_, count)| u64::from(*count)).product();
            for (component, count) in levels {
                unit /= u64::from(*count);
                name += &format!(".{component}.{}", index / unit % u64::from(*count));
            }
        }
        name
    }
}

impl Selected {
    fn count(&self) -> u128 {
        let slices = self.levels.iter().map(|(slice, _)| slice).chain([&self.numbers]);
        slices.fold(1, |all: u128, slice| all.saturating_mul(slice.count.into()))
    }
}

impl Link {
    fn speed(&self) -> Result<Speed, FileProblem> {
        let mut speed = Speed::default();
        let measures = [("bandwidth", &self.physical.bandwidth), ("latency", &self.physical.latency)];
        for (attribute, measure) in measures {
            let Some(measure) = measure else { continue };
            let Some(unit) = &measure.choice else {
                if measure.values.is_empty() {
                    continue;
                }
                return Err(syntax(&format!("link {:?}: {attribute} has no \"choice\"", self.name)));
            };
            let known = match (attribute, &**unit) {
                ("bandwidth", "gigabits_per_second") => "Gbit/s",
                ("bandwidth", "gigabytes_per_second") => "GB/s",
                ("latency", "ms" | "us" | "ns") => unit,
                // Of PCIe inside devices; how many bytes that is depends on lanes and coding.
                ("bandwidth", "gigatransfers_per_second") => continue,
                _ => {
                    return Err(syntax(&format!(
                        "link {:?}: unknown unit {unit:?} of {attribute}",
                        self.name
                    )));
                }
            };
            let Some(value) = measure.values.get(unit) else {
                return Err(syntax(&format!("link {:?}: {attribute} has no {unit:?}", self.name)));
            };
            speed.set(attribute, &format!("{value}{known}"))?;
        }
        Ok(speed)
    }
}

impl Slice {
    /// `3`, `0:4`, `:4`, `0:8:2`, or all of `count`.
    fn parse(text: Option<&str>, count: u32) -> Result<Self, String> {
        let text = text.unwrap_or(":");
        let number = |part: &str, otherwise: u32| match part.trim() {
            "" => Some(otherwise),
            part => part.parse::<u32>().ok(),
        };
        let parts: Vec<&str> = text.split(':').collect();
        let parsed = match parts[..] {
            [index] => {
                index.trim().parse().ok().and_then(|first: u32| Some((first, first.checked_add(1)?, 1)))
            }
            [first, end] => number(first, 0).zip(number(end, count)).map(|(first, end)| (first, end, 1)),
            [first, end, step] => match (number(first, 0), number(end, count), number(step, 1)) {
                (Some(first), Some(end), Some(step)) if step > 0 => Some((first, end, step)),
                _ => None,
            },
            _ => None,
        };
        let (first, end, step) = parsed.ok_or_else(|| {
            format!("indices [{text}]: expected [N], [FIRST:END] or [FIRST:END:STEP], from 0")
        })?;
        if end > count {
            return Err(format!("indices [{text}]: there are {count}"));
        }
        match end.saturating_sub(first).div_ceil(step) {
            0 => Err(format!("indices [{text}]: none of {count}")),
            count => Ok(Self { first, step, count }),
        }
    }

    fn at(&self, nth: u32) -> u32 {
        self.first + nth * self.step
    }
}

/// A name, and the indices in brackets behind it.
fn split(text: &str) -> Result<(&str, Option<&str>), String> {
    match text.split_once('[') {
        None => Ok((text, None)),
        Some((name, indices)) => match indices.strip_suffix(']') {
            Some(indices) => Ok((name, Some(indices))),
            None => Err(format!("{text:?}: expected NAME or NAME[INDICES]")),
        },
    }
}

fn syntax(problem: &str) -> FileProblem {
    FileProblem::Syntax(format!("not of InfraGraph: {problem}"))
}

#[cfg(test)]
mod tests {
    use crate::topology::tests::{described, links_and_rates};

    /// Three servers of two adapters with a port each, two leaves and two spines of four ports; rails of 100 Gbit/s.
    const RAILS: &str = r#"{
  "name": "rails",
  "devices": [
    { "name": "server", "links": [ { "name": "pcie" } ],
      "components": [ { "name": "cpu", "count": 1, "choice": "cpu" }, { "name": "adapter", "count": 2, "choice": "device" } ],
      "edges": [ { "ep1": { "component": "cpu" }, "ep2": { "device": "adapter", "component": "port" }, "scheme": "many2many", "link": "pcie" } ] },
    { "name": "adapter", "links": [], "edges": [],
      "components": [ { "name": "asic", "count": 1, "choice": "nic" }, { "name": "port", "count": 2, "choice": "port" } ] },
    { "name": "box", "links": [], "edges": [],
      "components": [ { "name": "asic", "count": 1, "choice": "cpu" }, { "name": "port", "count": 8, "choice": "port" } ] }
  ],
  "instances": [
    { "name": "host", "device": "server", "count": 3 },
    { "name": "leaf", "device": "box", "count": 2 },
    { "name": "spine", "device": "box", "count": 2 },
    { "name": "unused", "device": "box", "count": 7 }
  ],
  "links": [
    { "name": "rail", "physical": { "bandwidth": { "choice": "gigabits_per_second", "gigabits_per_second": 100 },
                                    "latency": { "choice": "us", "us": 0.5 } } },
    { "name": "up", "physical": { "bandwidth": { "choice": "gigabytes_per_second", "gigabytes_per_second": 25.0 } } }
  ],
  "edges": [
    { "ep1": { "instance": "host", "component": "adapter[0].port[1]" }, "ep2": { "instance": "leaf[0]", "component": "box.port[:3]" },
      "scheme": "one2one", "link": "rail" },
    { "ep1": { "instance": "host[0:3:2]", "component": "adapter[1].port[0]" }, "ep2": { "instance": "leaf[1]", "component": "port" },
      "scheme": "one2one", "link": "rail" },
    { "ep1": { "instance": "leaf", "component": "port[6]" }, "ep2": { "instance": "spine", "component": "port[0]" },
      "scheme": "many2many", "link": "up" },
    { "ep1": { "instance": "leaf", "component": "port[7]" }, "ep2": { "instance": "leaf", "component": "port[7]" },
      "scheme": "many2many", "link": "up" }
  ]
}"#;

    #[test]
    fn instances_and_components_are_expanded() {
        for suffix in [".json", ".infragraph"] {
            let fabric = described(suffix, RAILS).unwrap();
            // Five cables of nodes, four between leaves and spines, one between the leaves.
            assert_eq!((fabric.nodes(), fabric.switches(), fabric.links()), (5, 4, 2 * (5 + 4 + 1)));
            let mut links = links_and_rates(&fabric);
            links.retain(|(name, _)| name.starts_with("host") || name.starts_with("leaf.0->"));
            links.sort();
            let expected = [
                ("host.0.adapter.0.port.1->leaf.0", 100),
                ("host.0.adapter.1.port.0->leaf.1", 100),
                ("host.1.adapter.0.port.1->leaf.0", 100),
                ("host.2.adapter.0.port.1->leaf.0", 100),
                ("host.2.adapter.1.port.0->leaf.1", 100),
                ("leaf.0->host.0.adapter.0.port.1", 100),
                ("leaf.0->host.1.adapter.0.port.1", 100),
                ("leaf.0->host.2.adapter.0.port.1", 100),
                ("leaf.0->leaf.1", 200),
                ("leaf.0->spine.0", 200),
                ("leaf.0->spine.1", 200),
            ];
            assert_eq!(links, expected.map(|(name, rate)| (name.to_owned(), Some(rate))));
        }
    }

    #[test]
    fn errors_have_their_place() {
        for (from, to, problem) in [
            ("\"leaf[0]\"", "\"leef[0]\"", "not of InfraGraph: edges[0].ep2: unknown instance \"leef\""),
            ("box.port[:3]", "box.prt", "edges[0].ep2: device \"box\" has no component \"prt\""),
            (
                "adapter[0].port[1]",
                "adapter[0]",
                "edges[0].ep1: \"adapter\" is a device; name a component of it",
            ),
            (
                "adapter[0].port[1]",
                "cpu.core",
                "edges[0].ep1: component \"core\" is in none that is a device",
            ),
            ("leaf[1]", "leaf[2]", "edges[1].ep2: instance indices [2]: there are 2"),
            ("port[6]", "port[-1]", "edges[2].ep1: component indices [-1]: expected [N], [FIRST:END]"),
            ("port[6]", "port[3:3]", "component indices [3:3]: none of 8"),
            ("port[6]", "port[6", "\"port[6\": expected NAME or NAME[INDICES]"),
            ("\"link\": \"rail\" }", "\"link\": \"ral\" }", "edges[0].link: unknown link \"ral\""),
            ("one2one", "ring", "edges[0]: scheme ring: not supported"),
            ("one2one", "all2all", "edges[0]: unknown scheme \"all2all\"; one2one or many2many"),
            ("\"device\": \"server\"", "\"device\": \"srv\"", "instance \"host\": unknown device \"srv\""),
            ("\"name\": \"spine\"", "\"name\": \"leaf\"", "\"leaf\" is declared twice"),
            ("\"gigabits_per_second\": 100", "\"gigabits_per_second\": -1", "bandwidth \"-1Gbit/s\": "),
            ("\"choice\": \"us\"", "\"choice\": \"h\"", "link \"rail\": unknown unit \"h\" of latency"),
            ("\"choice\": \"us\", ", "", "link \"rail\": latency has no \"choice\""),
            ("\"us\": 0.5", "\"ns\": 0.5", "link \"rail\": latency has no \"us\""),
            ("\"latency\"", "\"latenzy\"", "unknown field `latenzy`, expected `bandwidth` or `latency`"),
            ("\"count\": 3", "\"count\": -3", "line 13: not of InfraGraph: invalid value: integer `-3`"),
            (
                "\"edges\": [\n    { \"ep1\"",
                "\"joints\": [\n    { \"ep1\"",
                "not of InfraGraph: missing field `edges`",
            ),
            ("host[0:3:2]", "host[0:3:0]", "instance indices [0:3:0]: expected"),
            ("\"port[:3]", "\"port[:3", "\"port[:3\": expected NAME or NAME[INDICES]"),
            (
                "\"component\": \"port[7]\" }, \"ep2\": { \"instance\": \"leaf\"",
                "\"component\": \"port[7]\" }, \"ep2\": { \"instance\": \"host\"",
                "edges[3].ep2: device \"server\" has no component \"port\"",
            ),
        ] {
            let text = RAILS.replacen("box.port[:3", "port[:3", usize::from(from == "\"port[:3]"));
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = described(".json", &changed).unwrap_err();
            assert!(
                error.contains(problem) || problem.starts_with("line 13: ") && error.contains(&problem[9..]),
                "{to}: {error}"
            );
        }
    }

    /// Counts of a few bytes that would expand to more than any memory.
    #[test]
    fn hostile_counts_are_refused() {
        let large = RAILS
            .replace("\"count\": 8", "\"count\": 4294967295")
            .replace("\"count\": 2,", "\"count\": 4000000000,");
        let all = large.replace("port[6]", "port").replace("\"port[0]\"", "\"port\"");
        assert!(described(".json", &all).unwrap_err().contains("edges[2]: together more than 1048576 edges"));
        let nested = RAILS.replace(
            "\"name\": \"port\", \"count\": 8, \"choice\": \"port\"",
            "\"name\": \"box\", \"count\": 4294967295, \"choice\": \"device\"",
        );
        let path = nested.replace("box.port[:3]", "box.box[0].box[0].box[0]");
        assert!(described(".json", &path).unwrap_err().contains("\"box\" is a device"));
        let path = nested.replace("box.port[:3]", &format!("box{}", ".box[0]".repeat(20_000)));
        let error = described(".json", &path).unwrap_err();
        assert!(error.contains("more than 16 components one in the other"), "{error}");
        assert!(described(".json", "{").unwrap_err().contains("not of InfraGraph: EOF while parsing"));
        assert!(
            described(".json", "{\"edges\": [], \"devices\": [], \"instances\": []}")
                .unwrap_err()
                .contains("no nodes")
        );
    }
}
