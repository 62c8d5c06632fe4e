//! Hydra's machine files and `-hosts`: `name[:processes]`, one per line (comma-separated in `-hosts`).

use std::path::Path;

use super::hosts::words;
use super::lines::{plain_lines, read_text};
use crate::error::Error;

/// Consecutive processes on a host; a host may have several turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostTurn {
    pub host: String,
    pub processes: u32,
}

/// The turns of a machine file.
pub(crate) fn read(path: &Path) -> Result<Vec<HostTurn>, Error> {
    parse(&read_text(path)?, &path.display().to_string())
}

pub(crate) fn parse(text: &str, file: &str) -> Result<Vec<HostTurn>, Error> {
    let mut turns = Vec::new();
    for (number, line) in plain_lines(text) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        add(&mut turns, word).map_err(|error| error.at(file, number))?;
        for word in rest.split_whitespace() {
            if !matches!(word.split_once('='), Some(("binding" | "user", _))) {
                return Err(Error::new(format!("token {word} not supported")).at(file, number));
            }
        }
    }
    if turns.is_empty() {
        return Err(Error::no_nodes().at(file, text.lines().count().max(1)));
    }
    Ok(turns)
}

/// The turns of `-hosts a,b:2`.
pub(crate) fn parse_hosts(arguments: &[String]) -> Result<Vec<HostTurn>, Error> {
    let mut turns = Vec::new();
    words(arguments).try_for_each(|word| add(&mut turns, word))?;
    Ok(turns)
}

fn add(turns: &mut Vec<HostTurn>, word: &str) -> Result<(), Error> {
    let (host, count) = word.split_once(':').unwrap_or((word, "1"));
    let processes = match count.parse::<u32>() {
        Ok(count) if count > 0 && !host.is_empty() => count,
        _ => return Err(Error::new(format!("expected name or name:processes, found {word:?}"))),
    };
    match turns.last_mut() {
        Some(last) if last.host == host => last.processes = last.processes.saturating_add(processes),
        _ => turns.push(HostTurn { host: host.to_owned(), processes }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge_and_others_come_again() {
        let turns = parse("a:2\na # more\nb:3 binding=core\n\na", "m").unwrap();
        let turns: Vec<_> = turns.iter().map(|turn| (turn.host.as_str(), turn.processes)).collect();
        assert_eq!(turns, [("a", 3), ("b", 3), ("a", 1)]);
    }

    #[test]
    fn errors_have_their_line() {
        let error = |text| parse(text, "m").unwrap_err().to_string();
        assert!(error("a\nb:x").starts_with("m:2: expected name or name:processes"));
        assert!(error("a:0").starts_with("m:1: "));
        assert!(error("a slots=2").starts_with("m:1: token slots=2 not supported"));
        assert!(error("#\n").contains("no nodes"));
        assert!(parse_hosts(&["a,:3".into()]).is_err());
    }
}
