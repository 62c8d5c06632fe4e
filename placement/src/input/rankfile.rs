//! Rankfiles: `rank 0=aa slot=1`, with Open MPI's lists of cores or of sockets with cores (`1:0-2`, `0:*`,
//! `0-1,3`, `0:1;1:0-2`).

use std::collections::HashMap;
use std::path::Path;

use super::lines::{host_name, read_text, token_lines};
use crate::error::Error;
use crate::placement::Location;

/// A line of a rankfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankLine {
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

impl RankLine {
    /// The location on a node: the first socket and core of the list.
    pub(crate) fn location(&self, node: u32) -> Location {
        let first = self.cpus.first();
        let core = first.and_then(|cpus| cpus.cores).map(|(first, _)| first);
        match first.and_then(|cpus| cpus.socket) {
            Some(socket) => Location { slot: Some(socket), core, ..Location::on(node) },
            None => Location { slot: core, ..Location::on(node) },
        }
    }
}

/// The lines of a rankfile in order; no rank is repeated.
pub(crate) fn read(path: &Path) -> Result<Vec<RankLine>, Error> {
    parse(&read_text(path)?, &path.display().to_string())
}

pub(crate) fn parse(text: &str, file: &str) -> Result<Vec<RankLine>, Error> {
    let mut entries: Vec<RankLine> = Vec::new();
    let mut lines_of_ranks = HashMap::new();
    for line in token_lines(text, file)? {
        let entry = parse_line(&line.tokens, line.number).and_then(|entry| {
            match lines_of_ranks.insert(entry.rank, line.number) {
                None => Ok(entry),
                Some(first) => {
                    Err(Error::new(format!("rank {} is already assigned, in line {first}", entry.rank)))
                }
            }
        });
        entries.push(entry.map_err(|error| error.at(file, line.number))?);
    }
    if entries.is_empty() {
        return Err(Error::no_ranks().at(file, text.lines().count().max(1)));
    }
    Ok(entries)
}

fn parse_line(tokens: &[&str], line: usize) -> Result<RankLine, Error> {
    let ["rank", rank, "=", host, "slot" | "slots", "=", list] = *tokens else {
        return Err(Error::new("invalid syntax in the rankfile: a line is rank N=host slot=list"));
    };
    if host.starts_with('+') {
        return Err(Error::relative_host(host));
    }
    let rank = rank.parse().map_err(|_| Error::new(format!("{rank:?} is not a rank")))?;
    let host = host_name(host).ok_or_else(|| Error::new(format!("{host:?} is not a host name")))?;
    let cpus = slot_list(list).ok_or_else(|| Error::new(format!("{list:?} is not a slot list")))?;
    Ok(RankLine { rank, host: host.to_owned(), cpus, line })
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
