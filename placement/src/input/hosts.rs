//! `--host a,b:2,a`: each mention of a node is a slot, or `N` slots with `:N`.

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::lines::host_name;
use crate::error::Error;
use crate::placement::Node;

/// The nodes of `--host` in the order of their first mention. `name:*` and `name:auto` leave the number of
/// slots to the launcher.
///
/// With a hostfile, each host must be in it. As in mpirun, its `#cores` apply, but not its slots.
pub(crate) fn parse(arguments: &[String], hostfile: Option<&[Node]>) -> Result<Vec<Node>, Error> {
    let mut nodes: IndexMap<&str, Node> = IndexMap::new();
    let listed: Option<IndexMap<&str, &Node>> =
        hostfile.map(|nodes| nodes.iter().map(|node| (node.name.as_str(), node)).collect());
    for word in words(arguments) {
        if word.starts_with('+') {
            return Err(Error::relative_host(word));
        }
        let syntax = |why: &str| Error::new(format!("--host {word}: {why}"));
        let (host, count) = match word.split_once(':') {
            None => (word, Some(1)),
            Some((host, "*" | "auto")) => (host, None),
            Some((host, count)) => {
                let count = count.parse::<u32>().ok().filter(|&n| n <= i32::MAX as u32);
                (host, Some(count.ok_or_else(|| syntax("the slots after \":\" are no number"))?))
            }
        };
        let name = host_name(host).ok_or_else(|| syntax("no host name"))?;
        match nodes.entry(name) {
            Entry::Occupied(mut entry) => {
                let slots = &mut entry.get_mut().slots;
                *slots = Some(slots.unwrap_or(0).saturating_add(count.unwrap_or(1)));
            }
            Entry::Vacant(entry) => {
                let cores = match listed.as_ref().map(|listed| listed.get(name)) {
                    None => None,
                    Some(Some(node)) => node.cores,
                    Some(None) => {
                        return Err(Error::of_nodes(format!(
                            "at least one of the requested hosts is not included in the current allocation; missing \
                             requested host: {name}"
                        )));
                    }
                };
                entry.insert(Node { slots: count, cores, ..Node::named(name) });
            }
        }
    }
    if nodes.is_empty() {
        return Err(Error::no_nodes());
    }
    Ok(nodes.into_values().collect())
}

/// The words of comma-separated lists.
pub(super) fn words(arguments: &[String]) -> impl Iterator<Item = &str> {
    arguments.iter().flat_map(|argument| argument.split(',')).filter(|word| !word.is_empty())
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
