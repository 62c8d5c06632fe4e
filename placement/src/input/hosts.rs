//! `--host a,b:2,a`: each mention of a node is a slot, or `N` slots with `:N`.

use std::collections::HashMap;

use super::lines::host_name;
use crate::error::{Error, Problem};
use crate::place::Node;

/// The nodes of `--host` in the order of their first mention. `name:*` and `name:auto` leave the number of
/// slots to the launcher.
///
/// With a hostfile, each host must be in it. As in mpirun, its `#cores` apply, but not its slots.
pub(crate) fn parse(arguments: &[String], hostfile: Option<&[Node]>) -> Result<Vec<Node>, Error> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let known: Option<HashMap<&str, &Node>> =
        hostfile.map(|nodes| nodes.iter().map(|node| (node.name.as_str(), node)).collect());
    let syntax = |word: &str, why: &str| Error::from(Problem::Syntax(format!("--host {word}: {why}")));
    for word in arguments.iter().flat_map(|argument| argument.split(',')).filter(|word| !word.is_empty()) {
        if word.starts_with('+') {
            return Err(Problem::RelativeHost(word.to_owned()).into());
        }
        let (host, count) = match word.split_once(':') {
            None => (word, Some(1)),
            Some((host, "*" | "auto")) => (host, None),
            Some((host, count)) => {
                let count = count.parse::<u32>().ok().filter(|&n| n <= i32::MAX as u32);
                (host, Some(count.ok_or_else(|| syntax(word, "the slots after \":\" are no number"))?))
            }
        };
        let name = host_name(host).ok_or_else(|| syntax(word, "no host name"))?;
        match index.get(name) {
            Some(&at) => {
                let node = &mut nodes[at];
                node.slots = Some(node.slots.unwrap_or(0).saturating_add(count.unwrap_or(1)));
            }
            None => {
                let cores = match &known {
                    None => None,
                    Some(known) => match known.get(name) {
                        Some(node) => node.cores,
                        None => return Err(Problem::UnknownHost(name.to_owned()).into()),
                    },
                };
                index.insert(name.to_owned(), nodes.len());
                nodes.push(Node { name: name.to_owned(), slots: count, max_slots: None, cores });
            }
        }
    }
    if nodes.is_empty() {
        return Err(Problem::NoNodes.into());
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(arguments: &[&str], hostfile: Option<&[Node]>) -> Result<Vec<(String, Option<u32>)>, Error> {
        let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        Ok(parse(&arguments, hostfile)?.into_iter().map(|n| (n.name, n.slots)).collect())
    }

    #[test]
    fn mentions_and_counts_add_up() {
        let found = slots(&["b,a:2", "b.x,c:*"], None).unwrap();
        assert_eq!(found, [("b".into(), Some(2)), ("a".into(), Some(2)), ("c".into(), None)]);
    }

    #[test]
    fn unknown_and_malformed_hosts_are_errors() {
        let known = [Node::named("a")];
        assert!(slots(&["a"], Some(&known)).is_ok());
        let error = slots(&["a,zz"], Some(&known)).unwrap_err().to_string();
        assert!(error.contains("not included in the current allocation") && error.contains("zz"), "{error}");
        assert!(slots(&["a:x"], None).is_err());
        assert!(slots(&[","], None).is_err());
        assert!(slots(&["+n1"], None).is_err());
    }
}
