//! Networks in GraphML: the data `type` or `kind` (node, host, switch, router) of nodes, and `bandwidth`,
//! `latency` and `cables` of edges, by the names in the keys. All else is ignored.

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::collections::HashMap;

use super::description::{Description, Edge, Kind, Names, Speed};
use super::error::{FileError, FileProblem};

pub(super) fn parse(text: &str) -> Result<Description, FileError> {
    // Counted from the last place on: events come in the order of the file.
    let (mut line_at, mut counted) = (1, 0);
    let mut line = |offset: u64| {
        let offset = usize::try_from(offset).map_or(text.len(), |offset| offset.min(text.len()));
        line_at +=
            text.as_bytes().get(counted..offset).unwrap_or_default().iter().filter(|&&b| b == b'\n').count();
        counted = counted.max(offset);
        line_at
    };
    let mut reader = Reader::from_str(text);
    let mut graph = Graphml::default();
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return Err(syntax(error).at(line(reader.error_position()))),
        };
        let here = line(reader.buffer_position());
        let done = match event {
            Event::Start(tag) => graph.open(&tag, here),
            Event::Empty(tag) => graph.open(&tag, here).and_then(|()| graph.close(tag.name().as_ref())),
            Event::Text(text) => match text.decode() {
                Ok(text) => {
                    graph.text.push_str(&text);
                    Ok(())
                }
                Err(error) => Err(syntax(error)),
            },
            Event::CData(text) => match text.decode() {
                Ok(text) => {
                    graph.text.push_str(&text);
                    Ok(())
                }
                Err(error) => Err(syntax(error)),
            },
            Event::GeneralRef(reference) => graph.reference(&reference),
            Event::End(tag) => graph.close(tag.name().as_ref()),
            Event::Eof => break,
            _ => Ok(()),
        };
        done.map_err(|problem| problem.at(here))?;
    }
    if !graph.is_graphml {
        return Err(FileProblem::Syntax("no <graphml> element".into()).at(0));
    }
    // Edges may precede their nodes.
    for Pending { from, to, speed, cables, one_way, line } in graph.edges {
        let find = |name: &str| graph.names.places.get(name).copied();
        let find = |name: &str| find(name).ok_or_else(|| FileProblem::Unknown(name.to_owned()).at(line));
        let ends = (find(&from)?, find(&to)?);
        graph.names.description.edges.push(Edge { ends, speed, cables, one_way, line });
    }
    Ok(graph.names.description)
}

#[derive(Default)]
struct Graphml {
    is_graphml: bool,
    /// Names of data, by key.
    keys: HashMap<String, String>,
    names: Names,
    edges: Vec<Pending>,
    directed: bool,
    inside: Option<Inside>,
    /// The key of the open data element, and its text so far.
    data: Option<String>,
    text: String,
}

/// The element that contains the data.
enum Inside {
    Node(usize),
    Edge,
}

struct Pending {
    from: String,
    to: String,
    speed: Speed,
    cables: u32,
    one_way: bool,
    line: usize,
}

impl Graphml {
    fn open(&mut self, tag: &BytesStart<'_>, line: usize) -> Result<(), FileProblem> {
        let attribute = |name: &str| -> Result<Option<String>, FileProblem> {
            let Some(found) = tag.try_get_attribute(name).map_err(syntax)? else { return Ok(None) };
            Ok(Some(found.normalized_value(XmlVersion::Implicit1_0).map_err(syntax)?.into_owned()))
        };
        let required = |name: &str| {
            let missing = || FileProblem::Syntax(format!("an element without {name:?}"));
            attribute(name)?.ok_or_else(missing)
        };
        match tag.name().as_ref() {
            b"graphml" => self.is_graphml = true,
            b"key" => {
                let id = required("id")?;
                let name = attribute("attr.name")?.unwrap_or_else(|| id.clone());
                self.keys.insert(id, name);
            }
            b"graph" => self.directed = attribute("edgedefault")?.as_deref() == Some("directed"),
            b"node" => {
                let place = self.names.declare(&required("id")?, None)?;
                self.inside = Some(Inside::Node(place));
            }
            b"edge" => {
                let one_way = match attribute("directed")?.as_deref() {
                    Some(directed) => directed == "true",
                    None => self.directed,
                };
                let (from, to) = (required("source")?, required("target")?);
                self.edges.push(Pending { from, to, speed: Speed::default(), cables: 1, one_way, line });
                self.inside = Some(Inside::Edge);
            }
            b"data" => {
                let key = required("key")?;
                self.data = Some(self.keys.get(&key).cloned().unwrap_or(key));
                self.text.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the character of `&#48;` or `&lt;` to the text.
    fn reference(&mut self, reference: &BytesRef<'_>) -> Result<(), FileProblem> {
        let name = reference.decode().map_err(syntax)?;
        match reference.resolve_char_ref().map_err(syntax)? {
            Some(character) => self.text.push(character),
            None => {
                let unknown = || FileProblem::Syntax(format!("unknown entity &{name};"));
                self.text.push_str(resolve_predefined_entity(&name).ok_or_else(unknown)?);
            }
        }
        Ok(())
    }

    fn close(&mut self, name: &[u8]) -> Result<(), FileProblem> {
        match name {
            b"node" | b"edge" => self.inside = None,
            b"data" => {
                let (Some(key), value) = (self.data.take(), self.text.trim()) else { return Ok(()) };
                match (&self.inside, self.edges.last_mut()) {
                    (Some(Inside::Node(place)), _) if ["type", "kind"].contains(&key.as_str()) => {
                        self.names.description.vertices[*place].kind = Kind::named(value);
                    }
                    (Some(Inside::Edge), Some(edge)) if key == "cables" => {
                        let cables = value.parse().ok().filter(|&cables| cables > 0);
                        edge.cables = cables.ok_or_else(|| FileProblem::cables(value))?;
                    }
                    (Some(Inside::Edge), Some(edge)) => drop(edge.speed.set(&key, value)?),
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn syntax(error: impl std::fmt::Display) -> FileProblem {
    FileProblem::Syntax(error.to_string())
}
