//! Rankfiles: `rank 0=aa slot=1`, with Open MPI's lists of cores or of sockets with cores (`1:0-2`, `0:*`,
//! `0-1,3`, `0:1;1:0-2`).

use std::collections::HashMap;

use super::lines::{Token, host_name, lines};
use crate::error::{Error, Problem};

/// A line of a rankfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub rank: u32,
    pub host: String,
    pub cpus: Vec<Cpus>,
    /// Line number, from 1.
    pub line: usize,
}

/// A part of a slot list: cores of the node, or of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cpus {
    pub socket: Option<u32>,
    /// First and last core; `None` for all (`*`).
    pub cores: Option<(u32, u32)>,
}

/// The lines of a rankfile in order; no rank is repeated.
pub(crate) fn parse(text: &str, file: &str) -> Result<Vec<Entry>, Error> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut seen: HashMap<u32, usize> = HashMap::new();
    for line in lines(text, file)? {
        let syntax = |problem: String| Problem::Syntax(problem).at(file, line.number);
        let wrong = || syntax("invalid syntax in the rankfile: a line is rank N=host slot=list".into());
        let [
            Token::Word("rank"),
            Token::Word(rank),
            Token::Equal,
            Token::Word(host),
            Token::Word("slot" | "slots"),
            Token::Equal,
            Token::Word(list),
        ] = line.tokens[..]
        else {
            return Err(wrong());
        };
        if host.starts_with('+') {
            return Err(Problem::RelativeHost(host.to_owned()).at(file, line.number));
        }
        let rank = rank.parse::<u32>().map_err(|_| syntax(format!("{rank:?} is not a rank")))?;
        let host = host_name(host).ok_or_else(|| syntax(format!("{host:?} is not a host name")))?;
        if let Some(first) = seen.insert(rank, line.number) {
            return Err(Problem::RankTwice { rank, first }.at(file, line.number));
        }
        let cpus = slot_list(list).ok_or_else(|| syntax(format!("{list:?} is not a slot list")))?;
        entries.push(Entry { rank, host: host.to_owned(), cpus, line: line.number });
    }
    if entries.is_empty() {
        return Err(Problem::NoRanks.at(file, text.lines().count().max(1)));
    }
    Ok(entries)
}

/// `;` separates sockets, `,` separates ranges; `S:` before a range applies to the following ranges too.
fn slot_list(list: &str) -> Option<Vec<Cpus>> {
    let mut cpus = Vec::new();
    for part in list.split(';') {
        let (socket, ranges) = match part.split_once(':') {
            Some((socket, ranges)) => (Some(socket.trim_start_matches(['S', 's']).parse().ok()?), ranges),
            None => (None, part),
        };
        for range in ranges.split(',') {
            let cores = match range.split_once('-') {
                _ if range == "*" => None,
                Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
                None => range.parse().ok().map(|core| Some((core, core)))?,
            };
            if cores.is_some_and(|(first, last): (u32, u32)| first > last) {
                return None;
            }
            cpus.push(Cpus { socket, cores });
        }
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text, "ranks").unwrap_err().to_string()
    }

    #[test]
    fn both_forms() {
        let text = "rank 0=aa slot=1:0-2\nrank 1=bb slot=0:0,1 # two\n\nrank 2=cc slot=1-2\nrank 3=dd slot=8\n\
            rank 4=ee slots=0:1;1:*\n";
        let entries = parse(text, "ranks").unwrap();
        assert_eq!(entries[0].cpus, [Cpus { socket: Some(1), cores: Some((0, 2)) }]);
        assert_eq!(entries[1].cpus.len(), 2);
        assert_eq!(entries[1].cpus[1], Cpus { socket: Some(0), cores: Some((1, 1)) });
        assert_eq!(entries[2].cpus, [Cpus { socket: None, cores: Some((1, 2)) }]);
        assert_eq!(entries[3].line, 5);
        assert_eq!(entries[4].cpus[1], Cpus { socket: Some(1), cores: None });
    }

    #[test]
    fn errors_have_their_line() {
        assert!(error("rank 0=a slot=0\nrank 0=b slot=1").starts_with("ranks:2: rank 0 is already assigned"));
        assert!(error("rank 0=a").starts_with("ranks:1: invalid syntax"));
        assert!(error("rank x=a slot=0").contains("not a rank"));
        assert!(error("rank 0=a slot=2-1").contains("slot list"));
        assert!(error("rank 0=a slot=:").contains("slot list"));
        assert!(error("rank 0=+n1 slot=1").contains("relative"));
        assert!(error("").contains("at least one rank"));
    }
}
