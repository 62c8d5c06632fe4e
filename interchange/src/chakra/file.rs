//! The nodes of a rank, from protocol buffers or from the feeder's JSON.
//!
//! Protocol buffers: messages behind their lengths, the first of which is the trace's metadata, all others a node each.

use super::node::{Node, Unread};
use super::protobuf::{Fields, Value};
use crate::error::{Problem, Result};
use crate::files;
use crate::options::Options;
use serde::Deserialize;
use std::path::Path;
use vef_format::error::{Located, Place};

/// Whether a file begins with the metadata of a trace: a message of which all fields are texts and attributes.
pub(super) fn is_protobuf(start: &[u8]) -> bool {
    let mut fields = Fields::new(start);
    let Ok(length) = fields.number() else { return false };
    let begin = fields.at;
    let Some(length) = usize::try_from(length).ok().filter(|&length| length > 0) else { return false };
    // The metadata may be longer than what is known of the file.
    let metadata = &start[begin..start.len().min(begin.saturating_add(length))];
    let mut fields = Fields::new(metadata);
    let mut found = 0;
    loop {
        match fields.next() {
            Ok(Some((1 | 2, Value::Bytes(_)))) => found += 1,
            Ok(None) => return found > 0,
            Ok(Some(_)) => return false,
            Err(_) => return found > 0 && metadata.len() < length && start.len() as u64 >= files::START,
        }
    }
}

/// Whether a file that is not recognised may be one that is cut within its metadata.
pub(super) fn may_be_cut(path: &Path, start: &[u8]) -> bool {
    let mut fields = Fields::new(start);
    let is_beginning = match fields.number() {
        Err(_) => start.len() < 10,
        // Field 1 or 2, of bytes.
        Ok(length) => {
            let metadata = &start[fields.at..];
            (metadata.len() as u64) < length && matches!(metadata, [] | [0x0a | 0x12, ..])
        }
    };
    is_beginning && path.extension().is_some_and(|suffix| suffix == "et")
}

/// Whether a file is the JSON of Chakra's feeder.
pub(super) fn is_json(start: &[u8]) -> bool {
    start.trim_ascii_start().starts_with(b"{") && memchr::memmem::find(start, b"\"workload_graph\"").is_some()
}

/// Reads the nodes of a file. With `--partial`, a truncated one has those before its end; the place of the end is returned.
pub(super) fn read(path: &Path, options: &Options) -> Result<(Vec<Node>, Option<u64>)> {
    let mut bytes = Vec::new();
    let read = files::open(path)?.read_to_end(&mut bytes);
    // What there is of a truncated compressed file is known.
    let cut = match read {
        Err(error) if !options.partial || bytes.is_empty() => return Err(Problem::from(error).of_file(path)),
        Err(_) => true,
        Ok(_) => false,
    };
    if is_json(&bytes[..bytes.len().min(4096)]) {
        return json(&bytes, path).map(|nodes| (nodes, None));
    }
    if bytes.is_empty() {
        return match options.partial {
            true => Ok((Vec::new(), Some(0))),
            false => Err(Problem::Truncated("the metadata").of_file(path)),
        };
    }
    let (nodes, end) = protobuf(&bytes, path, options)?;
    Ok((nodes, end.or(cut.then_some(bytes.len() as u64))))
}

fn protobuf(bytes: &[u8], path: &Path, options: &Options) -> Result<(Vec<Node>, Option<u64>)> {
    let at = |offset: usize, problem: Problem| Located { place: Place::offset(path, offset as u64), problem };
    let mut messages = Fields::new(bytes);
    let mut nodes = Vec::new();
    let mut is_first = true;
    while !messages.is_empty() {
        let begin = messages.at;
        let Ok(message) = messages.bytes() else {
            if options.partial {
                return Ok((nodes, Some(begin as u64)));
            }
            return Err(at(
                bytes.len(),
                Problem::Truncated(if is_first { "the metadata" } else { "a node" }),
            ));
        };
        if std::mem::take(&mut is_first) {
            continue;
        }
        let offset = messages.at - message.len();
        match Node::parse(message) {
            Ok(node) => nodes.push(node),
            Err(Unread::Garbled(garbled)) => {
                let problem = Problem::Expected {
                    expected: "a node",
                    found: format!("{} in message {}", garbled.what, nodes.len() + 1),
                };
                return Err(at(offset + garbled.at, problem));
            }
            Err(Unread::OldSchema) => {
                let problem = Problem::Unsupported {
                    what: "an execution trace of a schema before 0.0.4".to_owned(),
                    advice: "make it again with a Chakra of 2024 or later",
                };
                return Err(at(offset, problem));
            }
        }
    }
    Ok((nodes, None))
}

#[derive(Deserialize)]
struct Workload {
    workload_graph: Vec<JsonNode>,
}

/// A node in the feeder's JSON, which writes some names in two ways.
#[derive(Deserialize)]
struct JsonNode {
    #[serde(rename = "Id", alias = "id")]
    id: u64,
    #[serde(rename = "Name", alias = "name", default)]
    name: String,
    #[serde(rename = "NodeType", alias = "type", default)]
    kind: u64,
    #[serde(rename = "ctrlDeps", alias = "ctrl_deps", default)]
    control: Vec<u64>,
    #[serde(default, alias = "dataDeps")]
    data_deps: Vec<u64>,
    #[serde(default, alias = "duration_micros")]
    runtime: u64,
    #[serde(default, alias = "start_time_micros")]
    start: u64,
    num_ops: Option<f64>,
    tensor_size: Option<f64>,
    #[serde(default)]
    is_cpu_op: bool,
    comm_size: Option<u64>,
    comm_type: Option<u64>,
    comm_src: Option<u64>,
    comm_dst: Option<u64>,
    comm_tag: Option<u64>,
    #[serde(alias = "comm_group")]
    pg_name: Option<String>,
    #[serde(default)]
    tid: u64,
}

fn json(bytes: &[u8], path: &Path) -> Result<Vec<Node>> {
    let workload: Workload = serde_json::from_slice(bytes).map_err(|error| {
        let problem = Problem::Expected { expected: "the feeder's JSON", found: error.to_string() };
        Located::line(path, error.line().max(1) as u64, problem)
    })?;
    let node = |node: JsonNode| Node {
        id: node.id,
        name: node.name,
        kind: node.kind,
        data_dependencies: node.data_deps,
        control_dependencies: node.control.len() as u64,
        start: node.start,
        duration: node.runtime,
        operations: node.num_ops.unwrap_or(0.0),
        tensor: node.tensor_size.unwrap_or(0.0),
        is_cpu_op: node.is_cpu_op,
        comm_size: node.comm_size,
        comm_type: node.comm_type,
        comm_src: node.comm_src,
        comm_dst: node.comm_dst,
        comm_tag: node.comm_tag,
        group: node.pg_name,
        wrong: None,
        tid: node.tid,
        inputs: String::new(),
    };
    Ok(workload.workload_graph.into_iter().map(node).collect())
}
