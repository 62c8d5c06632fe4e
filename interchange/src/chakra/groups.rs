//! The members of the groups: from a file beside the trace, or from its metadata.

use crate::error::{Problem, Result};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use vef_format::error::Located;

/// The members of each group, by its name.
pub(super) type Groups = BTreeMap<String, Vec<u32>>;

/// The name of the file with the groups, as an export writes it.
pub(super) const FILE: &str = "groups.json";

/// Whether a file has the groups, by its name.
pub(super) fn is_at(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == FILE)
}

/// Reads `{"1": [0, 2], …}`.
pub(super) fn read(path: &Path) -> Result<Groups> {
    let bytes = std::fs::read(path).map_err(|error| Problem::from(error).of_file(path))?;
    let groups: Groups = serde_json::from_slice(&bytes).map_err(|error| {
        let problem =
            Problem::Expected { expected: "groups such as {\"1\": [0, 2]}", found: error.to_string() };
        Located::line(path, error.line().max(1) as u64, problem)
    })?;
    for (name, members) in &groups {
        let mut sorted = members.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != members.len() || members.is_empty() {
            let what = format!("group {name:?} has no members, or one twice");
            return Err(Problem::Invalid(what).of_file(path));
        }
    }
    Ok(groups)
}

#[derive(Deserialize)]
struct Listed {
    pg_name: String,
    #[serde(default)]
    ranks: Vec<u32>,
}

/// Adds the groups that the inputs of a metadata node list; those without ranks are of all ranks. Returns the first group of which
/// other members were known.
pub(super) fn add(groups: &mut Groups, inputs: &str) -> Option<String> {
    let begin = inputs.find("[{")?;
    let end = inputs.rfind("}]")? + 2;
    let text = inputs.get(begin..end)?.replace("\\\"", "\"");
    let listed: Vec<Listed> = serde_json::from_str(&text).ok()?;
    let mut differs = None;
    for group in listed.into_iter().filter(|group| !group.ranks.is_empty()) {
        match groups.get(&group.pg_name) {
            Some(known) if *known != group.ranks => differs = differs.or(Some(group.pg_name)),
            Some(_) => {}
            None => drop(groups.insert(group.pg_name, group.ranks)),
        }
    }
    differs
}
