//! Tokens of Open MPI's hostfiles and rankfiles: lines of words and `=`, with `#`, `//` and `/* */` comments.

use crate::error::{Error, Problem};

/// A line with tokens.
pub(crate) struct Line<'a> {
    /// Line number, from 1.
    pub number: usize,
    pub tokens: Vec<Token<'a>>,
    /// The text after `#`.
    pub comment: Option<&'a str>,
}

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    Equal,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Word(word) => f.write_str(word),
            Token::Equal => f.write_str("="),
        }
    }
}

/// The lines with tokens.
pub(crate) fn lines<'a>(text: &'a str, file: &str) -> Result<Vec<Line<'a>>, Error> {
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
            } else if let Some(after) = rest.strip_prefix('=') {
                tokens.push(Token::Equal);
                rest = after;
            } else if rest.starts_with(char::is_whitespace) {
                rest = rest.trim_start();
            } else {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                if end == 0 {
                    let problem =
                        format!("parse error at {:?}", rest.split_whitespace().next().unwrap_or(rest));
                    return Err(Problem::Syntax(problem).at(file, number));
                }
                tokens.push(Token::Word(&rest[..end]));
                rest = &rest[end..];
            }
        }
        if !tokens.is_empty() {
            found.push(Line { number, tokens, comment });
        }
    }
    match in_comment {
        Some(line) => Err(Problem::Syntax("a comment /* is never closed".into()).at(file, line)),
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
