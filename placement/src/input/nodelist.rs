//! Slurm's compressed forms: `node[01-04,07],login1` and `16(x3),8`.

use crate::error::Problem;

/// Most nodes: do not allocate memory on a mistyped range's word.
const MOST_NODES: usize = 1 << 18;
/// Most characters in the names of that many nodes.
const MOST_TEXT: usize = 64 * MOST_NODES;

/// The host names of a node list, in order. A name may have several brackets.
pub(crate) fn expand(list: &str) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    let mut text = 0;
    let mut rest = list.trim();
    while !rest.is_empty() {
        let mut depth = 0u32;
        let end = rest
            .char_indices()
            .find(|&(_, c)| {
                depth = match c {
                    '[' => depth + 1,
                    ']' => depth.saturating_sub(1),
                    _ => depth,
                };
                c == ',' && depth == 0
            })
            .map_or(rest.len(), |(at, _)| at);
        expand_name(&rest[..end], &mut names, &mut text).map_err(|why| malformed(list, &why))?;
        rest = rest.get(end + 1..).unwrap_or("");
    }
    if names.is_empty() { Err(malformed(list, "it is empty")) } else { Ok(names) }
}

fn malformed(list: &str, why: &str) -> Problem {
    Problem::Syntax(format!("invalid node list {list:?}: {why}"))
}

/// Appends the names that `name` expands to; adds their length to `text`.
fn expand_name(name: &str, names: &mut Vec<String>, text: &mut usize) -> Result<(), String> {
    let mut partial = vec![String::new()];
    let mut rest = name;
    while let Some(open) = rest.find('[') {
        let close = rest[open..].find(']').ok_or("a \"[\" is never closed")? + open;
        let numbers = ranges(&rest[open + 1..close])?;
        let nodes = partial.len().saturating_mul(numbers.len());
        if nodes > MOST_NODES {
            return Err(format!("more than {MOST_NODES} nodes"));
        }
        // A name is no longer than its pattern, but for the digits of a number.
        if nodes.saturating_mul(name.len()) > MOST_TEXT.saturating_sub(*text) {
            return Err("its names are too long".into());
        }
        let prefix = &rest[..open];
        partial = partial
            .iter()
            .flat_map(|start| numbers.iter().map(move |number| format!("{start}{prefix}{number}")))
            .collect();
        rest = &rest[close + 1..];
    }
    if rest.contains(']') {
        return Err("a \"]\" without its \"[\"".into());
    }
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err("a name is empty or has a space".into());
    }
    if names.len() + partial.len() > MOST_NODES {
        return Err(format!("more than {MOST_NODES} nodes"));
    }
    *text += partial.len() * name.len();
    names.extend(partial.into_iter().map(|start| start + rest));
    Ok(())
}

/// `01-04,07`: numbers have the width of the first number of their range.
fn ranges(text: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |digits: &str| {
            let digits_only = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            digits_only
                .then(|| digits.parse::<u64>().ok())
                .flatten()
                .ok_or(format!("{range:?} is not a range"))
        };
        let (from, to) = (number(first)?, number(last)?);
        if to < from {
            return Err(format!("the range {range:?} runs backwards"));
        }
        if to - from >= (MOST_NODES - numbers.len()) as u64 {
            return Err(format!("more than {MOST_NODES} nodes"));
        }
        let width = first.len();
        if width.saturating_mul((to - from) as usize) > MOST_TEXT {
            return Err("its numbers are too long".into());
        }
        numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

/// The count of each of `nodes` nodes, from `16(x3),8` (`SLURM_JOB_CPUS_PER_NODE`, `SLURM_TASKS_PER_NODE`) or
/// one number for all.
pub(crate) fn counts(text: &str, nodes: usize) -> Result<Vec<u32>, Problem> {
    let wrong = |why: String| Problem::Syntax(format!("invalid count list {text:?}: {why}"));
    if let Ok(count) = text.trim().parse::<u32>() {
        return Ok(vec![count; nodes]);
    }
    let mut found = Vec::new();
    for part in text.trim().split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')').unwrap_or("")),
            None => (part, "1"),
        };
        let count = count.parse::<u32>().map_err(|_| wrong(format!("{part:?} is not a count")))?;
        let times = times.parse::<usize>().map_err(|_| wrong(format!("{part:?} is not a count")))?;
        if times > nodes - found.len() {
            return Err(wrong(format!("it is for more than the {nodes} nodes there are")));
        }
        found.extend(std::iter::repeat_n(count, times));
    }
    if found.len() == nodes {
        Ok(found)
    } else {
        Err(wrong(format!("it is for {} of {nodes} nodes", found.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_expand_in_order() {
        assert_eq!(
            expand("node[01-03,07],login1").unwrap(),
            ["node01", "node02", "node03", "node07", "login1"]
        );
        assert_eq!(expand("r[0-1]n[09-10]x").unwrap(), ["r0n09x", "r0n10x", "r1n09x", "r1n10x"]);
        assert_eq!(expand("a").unwrap(), ["a"]);
    }

    #[test]
    fn malformed_lists_are_refused() {
        for list in ["", "a[1-2", "a1]", "a[2-1]", "a[x]", "a[]", "a,,b", "a[1-]", "a[0-99999999999]", "a b"]
        {
            let error = expand(list).unwrap_err().to_string();
            assert!(error.contains("invalid node list"), "{list}: {error}");
        }
        let zeros = "0".repeat(4000);
        for list in [
            "a[0-9999]b[0-9999]".to_owned(),
            format!("a[{zeros}1-99999]"),
            format!("{zeros}[1-99999]"),
            format!("{zeros}[1-4000],").repeat(9) + "a",
        ] {
            assert!(expand(&list).is_err(), "{:.20}", list);
        }
    }

    #[test]
    fn counts_repeat() {
        assert_eq!(counts("16(x3),8", 4).unwrap(), [16, 16, 16, 8]);
        assert_eq!(counts("4", 2).unwrap(), [4, 4]);
        for list in ["16(x3)", "16(x5),8", "x", "4(3)", "4(x)", "2(x99999999999999)"] {
            assert!(counts(list, 4).is_err(), "{list}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(list in "[a-c0-9\\[\\],()x-]{0,20}") {
            let _ = expand(&list);
            let _ = counts(&list, 5);
        }
    }
}
