//! Slurm's compressed forms: `node[01-04,07],login1` and `16(x3),8`.

use std::str::FromStr;

use crate::error::Error;

/// Most nodes: do not allocate memory on a mistyped range's word.
const MOST_NODES: usize = 1 << 18;
/// Most digits of a number, zeros in front included: the characters of the longest host name.
const MOST_DIGITS: usize = 255;
/// Most characters in the names of that many nodes.
const MOST_TEXT: usize = 64 * MOST_NODES;

/// The host names of a node list, in order. A name may have several brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeList(pub Vec<String>);

impl FromStr for NodeList {
    type Err = Error;

    fn from_str(list: &str) -> Result<Self, Error> {
        let malformed = |why: &str| Error::new(format!("not a list of nodes: {why}"));
        let mut names = Vec::new();
        let mut text = MOST_TEXT;
        let mut rest = list.trim();
        while !rest.is_empty() {
            let mut depth = 0u32;
            let is_end = |c: char| {
                depth = match c {
                    '[' => depth + 1,
                    ']' => depth.saturating_sub(1),
                    _ => depth,
                };
                c == ',' && depth == 0
            };
            let end = rest.find(is_end).unwrap_or(rest.len());
            let name = &rest[..end];
            // A name is no longer than its pattern.
            let most = (MOST_NODES - names.len()).min(text / name.len().max(1));
            let expanded = expand(name, most).map_err(|why| malformed(&why))?;
            text -= expanded.len() * name.len();
            names.extend(expanded);
            rest = rest.get(end + 1..).unwrap_or("");
        }
        if names.is_empty() { Err(malformed("it is empty")) } else { Ok(NodeList(names)) }
    }
}

fn too_many() -> String {
    format!("more than {MOST_NODES} nodes, or too long names")
}

/// The names of one pattern, at most so many.
fn expand(pattern: &str, most: usize) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some(open) = rest.find('[') {
        let close = rest[open..].find(']').ok_or("a \"[\" is never closed")? + open;
        let numbers = ranges(&rest[open + 1..close], most / names.len())?;
        let prefix = &rest[..open];
        names = names
            .iter()
            .flat_map(|start| numbers.iter().map(move |number| format!("{start}{prefix}{number}")))
            .collect();
        rest = &rest[close + 1..];
    }
    if rest.contains(']') {
        return Err("a \"]\" without its \"[\"".into());
    }
    if pattern.is_empty() || pattern.contains(char::is_whitespace) {
        return Err("a name is empty or has a space".into());
    }
    if names.len() > most {
        return Err(too_many());
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// `01-04,07`, at most so many; numbers have the width of the first number of their range.
fn ranges(text: &str, most: usize) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |digits: &str| {
            let is_number = digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| is_number).ok_or(format!("{range:?} is not a range"))
        };
        let (from, to) = (number(first)?, number(last)?);
        if to < from {
            return Err(format!("the range {range:?} runs backwards"));
        }
        if to - from >= (most - numbers.len()) as u64 {
            return Err(too_many());
        }
        let width = first.len();
        if width > MOST_DIGITS {
            return Err(format!("a number has more than {MOST_DIGITS} digits"));
        }
        numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

/// Slots of nodes: one number for all, or `16(x3),8` (`SLURM_JOB_CPUS_PER_NODE`, `SLURM_TASKS_PER_NODE`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotCounts {
    /// The same for all nodes.
    All(u32),
    /// Each count with the number of consecutive nodes that it is for.
    Runs(Vec<(u32, usize)>),
}

impl FromStr for SlotCounts {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Ok(count) = text.trim().parse() {
            return Ok(SlotCounts::All(count));
        }
        let run = |part: &str| {
            let (count, times) = match part.split_once("(x") {
                Some((count, times)) => (count, times.strip_suffix(')')?),
                None => (part, "1"),
            };
            Some((count.parse().ok()?, times.parse().ok()?))
        };
        let wrong = || Error::new("not a number, nor a list of counts such as 16(x3),8");
        let runs = text.trim().split(',').map(|part| run(part).ok_or_else(wrong));
        runs.collect::<Result<_, _>>().map(SlotCounts::Runs)
    }
}

impl SlotCounts {
    /// The count of each of `nodes` nodes.
    pub(crate) fn of_nodes(&self, nodes: usize) -> Result<Vec<u32>, Error> {
        match self {
            SlotCounts::All(count) => Ok(vec![*count; nodes]),
            SlotCounts::Runs(runs) => {
                let total = runs.iter().fold(0usize, |total, (_, times)| total.saturating_add(*times));
                if total != nodes {
                    return Err(Error::new(format!(
                        "the count list is for {total} nodes, but there are {nodes}"
                    )));
                }
                Ok(runs.iter().flat_map(|&(count, times)| std::iter::repeat_n(count, times)).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_expand_in_order() {
        let expand = |list: &str| list.parse::<NodeList>().unwrap().0;
        assert_eq!(expand("node[01-03,07],login1"), ["node01", "node02", "node03", "node07", "login1"]);
        assert_eq!(expand("r[0-1]n[09-10]x"), ["r0n09x", "r0n10x", "r1n09x", "r1n10x"]);
        assert_eq!(expand("a"), ["a"]);
    }

    #[test]
    fn malformed_lists_are_refused() {
        for list in ["", "a[1-2", "a1]", "a[2-1]", "a[x]", "a[]", "a,,b", "a[1-]", "a[0-99999999999]", "a b"]
        {
            let error = list.parse::<NodeList>().unwrap_err().to_string();
            assert!(error.contains("not a list of nodes"), "{list}: {error}");
        }
        let zeros = "0".repeat(4000);
        for list in [
            "a[0-9999]b[0-9999]".to_owned(),
            format!("a[{zeros}1-99999]"),
            format!("{zeros}[1-99999]"),
            format!("{zeros}[1-4000],").repeat(9) + "a",
            format!("n[{}1-2]", "0".repeat(70_000)),
        ] {
            assert!(list.parse::<NodeList>().is_err(), "{list:.20}");
        }
    }

    #[test]
    fn counts_repeat() {
        let counts = |text: &str, nodes| text.parse::<SlotCounts>().and_then(|counts| counts.of_nodes(nodes));
        assert_eq!(counts("16(x3),8", 4).unwrap(), [16, 16, 16, 8]);
        assert_eq!(counts("4", 2).unwrap(), [4, 4]);
        for list in ["16(x3)", "16(x5),8", "x", "4(3)", "4(x)", "2(x99999999999999)"] {
            assert!(counts(list, 4).is_err(), "{list}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(list in "[a-c0-9\\[\\],()x-]{0,20}") {
            let _ = list.parse::<NodeList>();
            let _ = list.parse::<SlotCounts>().and_then(|counts| counts.of_nodes(5));
        }
    }
}
