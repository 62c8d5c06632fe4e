//! Lines of text files: without comments, or as tokens of Open MPI's hostfiles and rankfiles.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::Error;

/// Longest text file: so a device without end is an error, too.
const LONGEST: u64 = 256 << 20;

/// Reads a text file.
pub(crate) fn read_text(path: &Path) -> Result<String, Error> {
    let refused = |message: String| Error::new(message).in_file(path.display().to_string());
    let file = File::open(path).map_err(|error| refused(error.to_string()))?;
    let text = String::from_utf8(read_bytes(file, &path.display().to_string())?);
    text.map_err(|_| refused("stream did not contain valid UTF-8".to_owned()))
}

/// Reads a text in any encoding, of a file of that name.
pub(crate) fn read_bytes(input: impl Read, file: &str) -> Result<Vec<u8>, Error> {
    let refused = |message: String| Error::new(message).in_file(file);
    let mut bytes = Vec::new();
    let read = input.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| refused(error.to_string()))?;
    match read as u64 > LONGEST {
        true => Err(refused(format!("longer than {LONGEST} bytes"))),
        false => Ok(bytes),
    }
}

/// The lines that are not empty, with their numbers from 1; `#` starts a comment.
pub(crate) fn plain_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    (1..).zip(lines).filter(|(_, line)| !line.is_empty())
}

/// A line of Open MPI's files.
pub(crate) struct TokenLine<'a> {
    /// Line number, from 1.
    pub number: usize,
    /// Words, and `=`, which is in no word.
    pub tokens: Vec<&'a str>,
    /// The text after `#`.
    pub comment: Option<&'a str>,
}

/// The lines with tokens. Comments are `#`, `//` and `/* */`.
pub(crate) fn token_lines<'a>(text: &'a str, file: &str) -> Result<Vec<TokenLine<'a>>, Error> {
    let mut found = Vec::new();
    let mut in_comment = None;
    for (at, line) in text.lines().enumerate() {
        let number = at + 1;
        let mut tokens = Vec::new();
        let mut comment = None;
        let mut rest = line;
        while !rest.is_empty() {
            if in_comment.is_some() {
                match rest.find("*/") {
                    Some(end) => {
                        rest = &rest[end + 2..];
                        in_comment = None;
                    }
                    None => break,
                }
            } else if let Some(text) = rest.strip_prefix('#').or_else(|| rest.strip_prefix("//")) {
                comment = Some(text);
                break;
            } else if let Some(after) = rest.strip_prefix("/*") {
                in_comment = Some(number);
                rest = after;
            } else if rest.starts_with(char::is_whitespace) {
                rest = rest.trim_start();
            } else {
                let end = match rest.starts_with('=') {
                    true => 1,
                    false => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                };
                if end == 0 {
                    let word = rest.split_whitespace().next().unwrap_or(rest);
                    return Err(Error::new(format!("parse error at {word:?}")).at(file, number));
                }
                tokens.push(&rest[..end]);
                rest = &rest[end..];
            }
        }
        if !tokens.is_empty() {
            found.push(TokenLine { number, tokens, comment });
        }
    }
    match in_comment {
        Some(line) => Err(Error::new("a comment /* is never closed").at(file, line)),
        None => Ok(found),
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-,:;*@.+".contains(c)
}

/// The host name in a word: without `user@`, and without its domain unless it is an IPv4 address.
pub(crate) fn host_name(word: &str) -> Option<&str> {
    let host = match word.split_once('@') {
        Some((user, host)) if !user.is_empty() && !host.contains('@') => host,
        Some(_) => return None,
        None => word,
    };
    let short = if host.parse::<std::net::Ipv4Addr>().is_ok() { host } else { host.split('.').next()? };
    (!short.is_empty()).then_some(short)
}
