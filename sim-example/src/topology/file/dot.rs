//! Networks in Graphviz's DOT language: `graph { n0 [type=node]; n0 -- s0 [bandwidth="10Gbit/s",
//! latency=500ns]; }`.
//!
//! The attributes of a vertex are `type` or `kind` (node, host, switch, router), those of an edge
//! `bandwidth`, `latency` and `cables`; `node [...]` and `edge [...]` set defaults for what follows. Edges of
//! a `digraph` are one-way. The content of a `subgraph` belongs to the graph; ports (`a:1`) are ignored.

use super::description::{Description, Edge, Kind, Names, Speed};
use super::error::{FileError, FileProblem};

pub(super) fn parse(text: &str) -> Result<Description, FileError> {
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        names: Names::default(),
        one_way: false,
        defaults: Default::default(),
    };
    parser.graph().map_err(|problem| problem.at(parser.line()))?;
    Ok(parser.names.description)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A name or value, without quotes.
    Word(String),
    /// One of `{ } [ ] ; , = :`.
    Sign(char),
    /// `--` or `->`.
    Arrow,
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FileError> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut rest = text;
    // A line that begins with # is preprocessor output.
    let mut fresh = true;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\n' => {
                line += 1;
                fresh = true;
                rest = &rest[1..];
                continue;
            }
            _ if first.is_whitespace() => {
                rest = &rest[first.len_utf8()..];
                continue;
            }
            '#' if fresh => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => {
                let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
                line += rest[..length].matches('\n').count();
                length
            }
            _ if rest.starts_with("--") || rest.starts_with("->") => {
                found.push((line, Token::Arrow));
                2
            }
            '{' | '}' | '[' | ']' | ';' | ',' | '=' | ':' => {
                found.push((line, Token::Sign(first)));
                1
            }
            '"' => {
                let mut word = String::new();
                let mut chars = rest.char_indices().skip(1);
                let end = loop {
                    match chars.next() {
                        Some((at, '"')) => break at + 1,
                        Some((_, '\\')) => word.extend(chars.next().map(|(_, escaped)| escaped)),
                        Some((_, other)) => word.push(other),
                        None => {
                            return Err(FileProblem::Syntax("unterminated quotation".into()).at(line));
                        }
                    }
                };
                found.push((line, Token::Word(word)));
                line += rest[..end].matches('\n').count();
                end
            }
            _ => {
                let ends = |c: char| c.is_whitespace() || "{}[];,=:\"".contains(c);
                let mut end = rest.find(ends).unwrap_or(rest.len());
                // `a--b` is three tokens.
                if let Some(arrow) = rest[..end].find("--").into_iter().chain(rest[..end].find("->")).min() {
                    end = arrow;
                }
                found.push((line, Token::Word(rest[..end].to_owned())));
                end
            }
        };
        fresh = false;
        rest = &rest[length..];
    }
    Ok(found)
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    at: usize,
    names: Names,
    one_way: bool,
    /// Defaults from `node [...]` and `edge [...]`.
    defaults: (Option<Kind>, Attributes),
}

/// Attributes of a vertex or edge.
#[derive(Clone, Copy, Debug, Default)]
struct Attributes {
    kind: Option<Kind>,
    speed: Speed,
    cables: Option<u32>,
}

impl Parser<'_> {
    /// The line of the last token read.
    fn line(&self) -> usize {
        let at = self.at.saturating_sub(1).min(self.tokens.len().saturating_sub(1));
        self.tokens.get(at).map_or(0, |&(line, _)| line)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn sign(&mut self, sign: char) -> bool {
        let is = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(is);
        is
    }

    fn word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        let word = word.clone();
        self.at += 1;
        Some(word)
    }

    fn graph(&mut self) -> Result<(), FileProblem> {
        let mut word = self.word();
        if word.as_deref().is_some_and(|word| word.eq_ignore_ascii_case("strict")) {
            word = self.word();
        }
        self.one_way = match word.map(|word| word.to_ascii_lowercase()).as_deref() {
            Some("graph") => false,
            Some("digraph") => true,
            _ => return Err(FileProblem::Syntax("expected graph or digraph".into())),
        };
        self.word();
        if !self.sign('{') {
            return Err(FileProblem::Syntax("expected {".into()));
        }
        let mut depth = 1;
        while depth > 0 {
            if self.sign('}') {
                depth -= 1;
            } else if self.sign('{') {
                depth += 1;
            } else if !self.sign(';') && !self.sign(',') {
                self.statement()?;
            }
        }
        Ok(())
    }

    fn statement(&mut self) -> Result<(), FileProblem> {
        let Some(name) = self.word() else {
            self.at += 1;
            return Err(match self.at > self.tokens.len() {
                true => FileProblem::Syntax("the last } is missing".into()),
                false => FileProblem::Syntax("expected a name".into()),
            });
        };
        match name.to_ascii_lowercase().as_str() {
            "node" if self.peek() == Some(&Token::Sign('[')) => {
                self.defaults.0 = self.attributes(Attributes::default())?.kind.or(self.defaults.0);
                return Ok(());
            }
            "edge" if self.peek() == Some(&Token::Sign('[')) => {
                self.defaults.1 = self.attributes(self.defaults.1)?;
                return Ok(());
            }
            "graph" if self.peek() == Some(&Token::Sign('[')) => {
                return self.attributes(Attributes::default()).map(drop);
            }
            "subgraph" => {
                self.word();
                return Ok(());
            }
            _ if self.sign('=') => {
                self.word();
                return Ok(());
            }
            _ => {}
        }
        let (line, mut chain) = (self.line(), vec![self.vertex(&name)?]);
        while self.peek() == Some(&Token::Arrow) {
            self.at += 1;
            let Some(next) = self.word() else {
                return Err(FileProblem::Syntax("expected a name after -- or ->".into()));
            };
            chain.push(self.vertex(&next)?);
        }
        if let [vertex] = chain[..] {
            let kind = self.attributes(Attributes::default())?.kind;
            let vertex = &mut self.names.description.vertices[vertex];
            vertex.kind = kind.or(vertex.kind);
            return Ok(());
        }
        let Attributes { speed, cables, .. } = self.attributes(self.defaults.1)?;
        for ends in chain.windows(2) {
            let (ends, cables, one_way) = ((ends[0], ends[1]), cables.unwrap_or(1), self.one_way);
            self.names.description.edges.push(Edge { ends, speed, cables, one_way, line });
        }
        Ok(())
    }

    /// The vertex of that name, added if new. Skips its port.
    fn vertex(&mut self, name: &str) -> Result<usize, FileProblem> {
        while self.sign(':') {
            self.word();
        }
        match self.names.find(name) {
            Ok(found) => Ok(found),
            Err(_) => self.names.declare(name, self.defaults.0),
        }
    }

    fn attributes(&mut self, mut known: Attributes) -> Result<Attributes, FileProblem> {
        while self.sign('[') {
            while !self.sign(']') {
                if self.sign(',') || self.sign(';') {
                    continue;
                }
                let Some(key) = self.word() else {
                    self.at += 1;
                    return Err(FileProblem::Syntax("expected an attribute, or ]".into()));
                };
                let value = if self.sign('=') { self.word() } else { None }.unwrap_or_default();
                match key.to_ascii_lowercase().as_str() {
                    "type" | "kind" => known.kind = Kind::named(&value),
                    "cables" => {
                        let cables = value.parse().ok().filter(|&cables| cables > 0);
                        known.cables = Some(cables.ok_or_else(|| FileProblem::cables(&value))?);
                    }
                    key => drop(known.speed.set(key, &value)?),
                }
            }
        }
        Ok(known)
    }
}
