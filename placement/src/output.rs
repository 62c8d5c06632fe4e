//! Output for people and for readers of GetInfo's format; [`crate::PlacementFormat`] has the files that can be read
//! back.

use std::fmt::Write;

use crate::placement::Placement;

/// Longest host name in POSIX.
const LONGEST_HOST_NAME: usize = 255;

impl Placement {
    /// GetInfo's text: one `RANK core:slot:node` per line, with a leading `o` for an oversubscribed place.
    /// Unknown numbers are 0.
    pub fn to_getinfo(&self) -> String {
        let mut text = String::new();
        for (rank, (location, host)) in self.ranks.iter().zip(self.hosts_of_ranks()).enumerate() {
            let mark = if location.oversubscribed { "o" } else { "" };
            let (core, slot) = (location.core.unwrap_or(0), location.slot.unwrap_or(0));
            let _ = writeln!(text, "{rank} {mark}{core}:{slot}:{host}");
        }
        text
    }

    /// A table with one line per node and its ranks as ranges; `count` formats numbers.
    pub fn to_table(&self, count: impl Fn(usize) -> String) -> String {
        let mut ranks_of = vec![Vec::new(); self.nodes.len()];
        for (rank, location) in self.ranks.iter().enumerate() {
            ranks_of[location.node as usize].push(rank);
        }
        let number = |n: Option<u32>| n.map_or("-".to_owned(), |n| count(n as usize));
        // Names longer than any host name do not widen the column.
        let lengths =
            self.nodes.iter().map(|node| node.name.len()).filter(|&length| length <= LONGEST_HOST_NAME);
        let width = lengths.max().unwrap_or(0).max("node".len());
        let mut text = format!("{:width$}  slots  cores/slot  processes  ranks (FIRST-LAST:STEP)\n", "node");
        let mut oversubscribed = 0;
        for (node, ranks) in self.nodes.iter().zip(&ranks_of) {
            let over = node.slots.is_some_and(|slots| ranks.len() > slots as usize);
            oversubscribed += usize::from(over);
            let _ = writeln!(
                text,
                "{:width$}  {:>5}  {:>10}  {:>9}  {}{}",
                node.name,
                number(node.slots),
                number(node.cores),
                count(ranks.len()),
                rank_ranges(ranks),
                if over { "  (oversubscribed)" } else { "" },
            );
        }
        let plural = |number: usize| if number == 1 { "" } else { "s" };
        let used = ranks_of.iter().filter(|ranks| !ranks.is_empty()).count();
        let _ = writeln!(
            text,
            "{} rank{} on {} of {} node{}, {} of them oversubscribed",
            count(self.ranks.len()),
            plural(self.ranks.len()),
            count(used),
            count(self.nodes.len()),
            plural(self.nodes.len()),
            count(oversubscribed)
        );
        text
    }
}

/// Ranges of ranks with their strides: `0-3 8 10-14:2`.
fn rank_ranges(ranks: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = ranks;
    while let [first, after @ ..] = rest {
        let stride = after.first().map_or(0, |next| next - first);
        let length = 1 + after.iter().zip(1..).take_while(|&(&rank, n)| rank == first + n * stride).count();
        // Two ranks with a gap are no range.
        let length = if length == 2 && stride > 1 { 1 } else { length };
        if !text.is_empty() {
            text.push(' ');
        }
        let _ = match (length, stride) {
            (1, _) => write!(text, "{first}"),
            (_, 1) => write!(text, "{first}-{}", first + length - 1),
            _ => write!(text, "{first}-{}:{stride}", first + (length - 1) * stride),
        };
        rest = &rest[length..];
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_short() {
        assert_eq!(rank_ranges(&[0, 1, 2, 3, 8, 10, 12, 14]), "0-3 8-14:2");
        assert_eq!(rank_ranges(&[5]), "5");
        assert_eq!(rank_ranges(&[1, 4]), "1 4");
        assert_eq!(rank_ranges(&[]), "");
    }

    #[test]
    fn a_name_of_any_length() {
        let mut placement = Placement::round_robin(2, 2).unwrap();
        placement.nodes[0].name = "x".repeat(1 << 17);
        assert!(
            placement.to_table(|count| count.to_string()).contains("\nnode1      -"),
            "the others stay aligned"
        );
    }

    #[test]
    fn table_and_getinfo() {
        let placement = Placement::round_robin(5, 2).unwrap();
        assert!(placement.to_getinfo().starts_with("0 0:0:node0\n1 0:0:node1\n2 0:1:node0\n"));
        let table = placement.to_table(|count| count.to_string());
        assert!(
            table.contains("0-4:2") && table.ends_with("5 ranks on 2 of 2 nodes, 0 of them oversubscribed\n"),
            "{table}"
        );
    }
}
