//! Open MPI's hostfile as read by `mpirun` 4.1, and GetInfo's `#cores=N`.
//!
//! A line is `[user@]name [slots=N] [max_slots=N]`. Each further line of a host adds a slot; a host with only
//! `max_slots` has that many slots; domains are removed.

use std::path::Path;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::lines::{TokenLine, host_name, read_text, token_lines};
use crate::error::Error;
use crate::placement::Node;

/// The nodes in the order of their first lines. `slots` is absent if the file has none.
pub(crate) fn read(path: &Path) -> Result<Vec<Node>, Error> {
    parse(&read_text(path)?, &path.display().to_string())
}

pub(crate) fn parse(text: &str, file: &str) -> Result<Vec<Node>, Error> {
    let mut nodes: IndexMap<&str, Node> = IndexMap::new();
    for line in token_lines(text, file)? {
        parse_line(&line, &mut nodes).map_err(|error| error.at(file, line.number))?;
    }
    if nodes.is_empty() {
        return Err(Error::no_nodes().at(file, text.lines().count().max(1)));
    }
    Ok(nodes.into_values().collect())
}

fn parse_line<'a>(line: &TokenLine<'a>, nodes: &mut IndexMap<&'a str, Node>) -> Result<(), Error> {
    let [word, settings @ ..] = &line.tokens[..] else { return Ok(()) };
    if word.starts_with('+') {
        return Err(Error::relative_host(word));
    }
    if *word == "=" || setting(word).is_some() {
        return Err(Error::new(format!("parse error at {word:?}: a line starts with a host name")));
    }
    let name = host_name(word).ok_or_else(|| Error::new(format!("{word:?} is not a host name")))?;
    let node = match nodes.entry(name) {
        Entry::Occupied(entry) => {
            let node = entry.into_mut();
            node.slots = Some(node.slots.unwrap_or(1).saturating_add(1));
            node
        }
        Entry::Vacant(entry) => entry.insert(Node::named(name)),
    };
    apply_settings(node, settings)?;
    node.cores = cores_comment(line)?.or(node.cores);
    Ok(())
}

#[derive(Clone, Copy)]
enum Setting {
    Slots,
    MaxSlots,
    /// Known to mpirun, without effect on placement.
    Ignored,
}

fn setting(word: &str) -> Option<Setting> {
    Some(match word {
        "slots" | "count" | "cpu" => Setting::Slots,
        "max_slots" | "max-slots" | "slots_max" | "slots-max" | "max_cpu" | "max-cpu" | "cpu_max"
        | "cpu-max" | "max_count" | "max-count" | "count_max" | "count-max" => Setting::MaxSlots,
        // The spelling of GetInfo's sample file, which mpirun rejects.
        "maxSlots" => Setting::MaxSlots,
        "username" | "user-name" | "user_name" | "port" => Setting::Ignored,
        _ => return None,
    })
}

fn apply_settings(node: &mut Node, mut rest: &[&str]) -> Result<(), Error> {
    let mut got_max = false;
    while let [key, after @ ..] = rest {
        rest = after;
        let setting = match setting(key) {
            Some(setting) => setting,
            // mpirun ignores a stray word, but rejects an unknown setting.
            None if *key != "=" && rest.first() != Some(&"=") => continue,
            None => return Err(Error::new(format!("parse error at {key:?}"))),
        };
        let ["=", value, after @ ..] = rest else {
            return Err(Error::new(format!("{key} wants a value: {key}=N")));
        };
        rest = after;
        let number = || {
            value.parse::<u32>().ok().filter(|&n| n <= i32::MAX as u32).ok_or_else(|| {
                Error::new(format!("{key} wants a number that is not negative, found {value:?}"))
            })
        };
        match setting {
            Setting::Slots => {
                if node.slots.is_some() {
                    return Err(Error::new(format!(
                        "multiple definitions of the slot count for node {}: list a node once for each slot, or once \
                         with slots=N, not both",
                        node.name
                    )));
                }
                let slots = number()?;
                node.slots = Some(slots);
                node.max_slots = node.max_slots.map(|max| max.max(slots));
            }
            Setting::MaxSlots => {
                let max_slots = number()?;
                let slots = node.slots.unwrap_or(1);
                if max_slots < slots {
                    return Err(Error::new(format!(
                        "the max_slots parameter is less than the slots parameter: slots={slots} max_slots={max_slots}"
                    )));
                }
                node.max_slots = Some(max_slots);
                got_max = true;
            }
            Setting::Ignored => {}
        }
    }
    if got_max && node.slots.is_none() {
        node.slots = node.max_slots;
    }
    Ok(())
}

/// GetInfo gives the cores of a slot in a comment, which launchers ignore.
fn cores_comment(line: &TokenLine<'_>) -> Result<Option<u32>, Error> {
    let value = line.comment.and_then(|text| {
        text.strip_prefix("cores=").or_else(|| text.split_once("#cores=").map(|(_, after)| after))
    });
    let Some(word) = value.map(|value| value.split_whitespace().next().unwrap_or("")) else {
        return Ok(None);
    };
    match word.parse::<u32>() {
        Ok(cores) if cores > 0 => Ok(Some(cores)),
        _ => Err(Error::new(format!("#cores wants a number above 0, found {word:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, slots: Option<u32>, max_slots: Option<u32>, cores: Option<u32>) -> Node {
        Node { name: name.into(), slots, max_slots, cores }
    }

    fn error(text: &str) -> String {
        parse(text, "hosts").unwrap_err().to_string()
    }

    #[test]
    fn the_sample_of_getinfo() {
        let text = "#This is an example hostfile\n\n#This is a single processor machine\nnode0\n\n\
            node1 slots=2 #cores=3 # this takes a custom cores arg only for getInfo\n\
            node2 slots=2 maxSlots=2\nnode3 slots=5 maxSlots=20";
        let expected = [
            node("node0", None, None, None),
            node("node1", Some(2), None, Some(3)),
            node("node2", Some(2), Some(2), None),
            node("node3", Some(5), Some(20), None),
        ];
        assert_eq!(parse(text, "hosts").unwrap(), expected);
    }

    #[test]
    fn repeated_hosts_comments_domains_and_users() {
        let text =
            "a slots=2 // two\nme@b.cluster.org\n/* nobody\nc\n*/ b\na\n10.0.0.1 max-slots=3 port=22\n7\n";
        let expected = [
            node("a", Some(3), None, None),
            node("b", Some(2), None, None),
            node("10.0.0.1", Some(3), Some(3), None),
            node("7", None, None, None),
        ];
        assert_eq!(parse(text, "hosts").unwrap(), expected);
    }

    #[test]
    fn errors_have_mpirun_s_words_and_the_line() {
        assert!(
            error("a\na slots=2\n").starts_with("hosts:2: multiple definitions of the slot count for node a")
        );
        assert!(error("a slots=4 max_slots=2").starts_with("hosts:1: the max_slots parameter is less than"));
        assert_eq!(error("a slots=-1"), "hosts:1: slots wants a number that is not negative, found \"-1\"");
        assert_eq!(error("a\nb cores=3"), "hosts:2: parse error at \"cores\"");
        assert_eq!(error("a = 3"), "hosts:1: parse error at \"=\"");
        assert_eq!(error("slots=3"), "hosts:1: parse error at \"slots\": a line starts with a host name");
        assert_eq!(error("a slots"), "hosts:1: slots wants a value: slots=N");
        assert_eq!(error("a\n\"b\""), "hosts:2: parse error at \"\\\"b\\\"\"");
        assert_eq!(error("# nothing\n"), "hosts:1: there are no nodes to place ranks on");
        assert!(error("a\n/* b").starts_with("hosts:2: a comment"));
        assert!(error("+n0").contains("relative host"));
        assert!(error("a #cores=x").contains("#cores"));
        assert!(error("a slots=99999999999").contains("not negative"));
    }
}
