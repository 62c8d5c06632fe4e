//! The policies of `--map-by` and `--rank-by` in Open MPI's syntax (a name, which may be abbreviated, and
//! modifiers after a colon), and of Slurm's `--distribution`.

use std::str::FromStr;

use super::hwloc::Object;
use crate::error::Error;

/// `--map-by` with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    pub(crate) by: MapBy,
    /// Whether a modifier permits or forbids oversubscription.
    pub(crate) oversubscribe: Option<bool>,
}

/// The order of places in which processes are mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapBy {
    Slot,
    Node,
    Object {
        object: Object,
        span: bool,
    },
    /// `ppr:count:per`: `count` processes on each such object.
    Ppr {
        count: u32,
        per: Object,
    },
    /// `ppr:count:slot`, which GetInfo alone has.
    PprSlot {
        count: u32,
    },
}

/// `--rank-by`: the order of processes in which ranks are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// All processes of a node, then the next node.
    Slot,
    /// One process of each node in turn.
    Node,
    /// Open MPI 5: all processes of an object to which they are mapped, then the next object.
    Fill,
    /// Open MPI 5: one process of each object in turn, over all nodes.
    Span,
    /// By the objects of the nodes.
    Object {
        /// The kind of object.
        object: Object,
        /// The order of the objects.
        sweep: Sweep,
    },
}

/// The order of objects in ranking by object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Round-robin over the objects of a node, then the next node.
    Node,
    /// Round-robin over all objects of all nodes.
    Span,
    /// All processes of an object, then the next object.
    Fill,
}

impl FromStr for Mapping {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, rest) = split(text);
        if let (true, Some(pattern)) = (is_start_of(name, "ppr"), rest) {
            return ppr(pattern);
        }
        let (span, oversubscribe) = modifiers(rest)?;
        let by = match name {
            // Modifiers alone apply to mpirun's default.
            "" if rest.is_some() => MapBy::Object { object: Object::Socket, span },
            _ if is_start_of(name, "slot") => MapBy::Slot,
            _ if is_start_of(name, "node") => MapBy::Node,
            _ => MapBy::Object { object: object(name).ok_or_else(|| unlisted("mapping"))?, span },
        };
        Ok(Mapping { by, oversubscribe })
    }
}

/// Parses what follows `ppr:`.
fn ppr(pattern: &str) -> Result<Mapping, Error> {
    let parts = pattern.split_once(':').and_then(|(count, rest)| Some((count.parse().ok()?, rest)));
    let Some((count, rest)) = parts else {
        return Err(Error::new(
            "the mapping request contains a pattern that doesn't match the required syntax ppr:N:object",
        ));
    };
    if count == 0 {
        return Err(Error::new("ppr:0 would place no process at all"));
    }
    let (per, rest) = split(rest);
    let (_, oversubscribe) = modifiers(rest)?;
    let by = match object(per) {
        Some(per) => MapBy::Ppr { count, per },
        None if per == "slot" => MapBy::PprSlot { count },
        None => {
            return Err(Error::new(format!(
                "an unrecognized object {per:?}: only hwthread, core, socket, l1cache, l2cache, l3cache, \
                 numa, node and, for GetInfo, slot are allowed"
            )));
        }
    };
    Ok(Mapping { by, oversubscribe })
}

/// Parses the modifiers of a mapping: whether it spans nodes, and whether it permits oversubscription.
fn modifiers(list: Option<&str>) -> Result<(bool, Option<bool>), Error> {
    let (mut span, mut oversubscribe) = (false, None);
    for modifier in list.into_iter().flat_map(|list| list.split([',', ':'])) {
        if is_start_of(modifier, "span") {
            span = true;
        } else if is_start_of(modifier, "oversubscribe") {
            oversubscribe = Some(true);
        } else if is_start_of(modifier, "nooversubscribe") {
            oversubscribe = Some(false);
        } else {
            return Err(unknown_modifier());
        }
    }
    Ok((span, oversubscribe))
}

impl FromStr for Ranking {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, modifier) = split(text);
        let sweep = match modifier {
            None => Sweep::Node,
            Some(modifier) if is_start_of(modifier, "span") => Sweep::Span,
            Some(modifier) if is_start_of(modifier, "fill") => Sweep::Fill,
            Some(_) => return Err(unknown_modifier()),
        };
        Ok(match name {
            _ if is_start_of(name, "slot") => Ranking::Slot,
            _ if is_start_of(name, "node") => Ranking::Node,
            "fill" if modifier.is_none() => Ranking::Fill,
            "span" if modifier.is_none() => Ranking::Span,
            _ => Ranking::Object { object: object(name).ok_or_else(|| unlisted("ranking"))?, sweep },
        })
    }
}

/// `--distribution`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Consecutive tasks share a node.
    #[default]
    Block,
    /// Consecutive tasks are on consecutive nodes.
    Cyclic,
    /// Blocks of this many tasks are on consecutive nodes.
    Plane(u32),
}

impl FromStr for Distribution {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        // The part after a colon concerns sockets and cores.
        match split(text).0 {
            "block" | "*" => Ok(Distribution::Block),
            "cyclic" => Ok(Distribution::Cyclic),
            first => match first.strip_prefix("plane=").map(str::parse) {
                Some(Ok(size)) if size > 0 => Ok(Distribution::Plane(size)),
                _ => Err(Error::new("write block, cyclic or plane=N")),
            },
        }
    }
}

/// A policy that a launcher does not have.
pub(crate) fn unknown(what: &str) -> Error {
    Error::new(format!("this launcher does not have this {what} policy"))
}

/// A policy that no launcher has.
fn unlisted(what: &str) -> Error {
    let others =
        if what == "mapping" { "ppr:N:OBJECT" } else { "for Open MPI 5 slot, node, fill and span alone" };
    Error::new(format!(
        "the specified {what} policy is not recognized: there are slot, node, hwthread, core, socket or package, l1cache, l2cache, l3cache, \
         numa; {others}"
    ))
}

fn unknown_modifier() -> Error {
    Error::new("the request contains an unrecognized modifier")
}

/// Splits at the first colon.
fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)))
}

fn object(name: &str) -> Option<Object> {
    // In this order: "n" abbreviates node, "s" socket.
    let names = [
        ("node", Object::Node),
        ("hwthread", Object::Hwthread),
        ("core", Object::Core),
        ("socket", Object::Socket),
        ("package", Object::Socket),
        ("l1cache", Object::L1),
        ("l2cache", Object::L2),
        ("l3cache", Object::L3),
        ("numa", Object::Numa),
    ];
    names.into_iter().find(|(full, _)| is_start_of(name, full)).map(|(_, object)| object)
}

fn is_start_of(name: &str, full: &str) -> bool {
    !name.is_empty() && full.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(text: &str) -> Result<Mapping, Error> {
        text.parse()
    }

    fn ranking(text: &str) -> Result<Ranking, Error> {
        text.parse()
    }

    #[test]
    fn names_may_be_cut_short_and_carry_modifiers() {
        assert_eq!(mapping("n").unwrap().by, MapBy::Node);
        assert_eq!(mapping("NUMA").unwrap().by, MapBy::Object { object: Object::Numa, span: false });
        let spanned = mapping("core:span,over").unwrap();
        assert_eq!(spanned.by, MapBy::Object { object: Object::Core, span: true });
        assert_eq!(spanned.oversubscribe, Some(true));
        assert_eq!(
            mapping("ppr:2:so:nooversubscribe").unwrap().by,
            MapBy::Ppr { count: 2, per: Object::Socket }
        );
        assert_eq!(
            ranking("core:fill").unwrap(),
            Ranking::Object { object: Object::Core, sweep: Sweep::Fill }
        );
        assert_eq!(ranking("slot").unwrap(), Ranking::Slot);
        // Open MPI 5's.
        assert_eq!(mapping("package:SPAN:over").unwrap(), mapping("socket:span,over").unwrap());
        assert_eq!((ranking("fill").unwrap(), ranking("span").unwrap()), (Ranking::Fill, Ranking::Span));
        assert!(ranking("span:fill").is_err());
    }

    #[test]
    fn what_mpirun_does_not_know_is_refused() {
        assert!(mapping("ppr:0:node").unwrap_err().to_string().contains("ppr:0"));
        assert!(mapping("ppr:x:node").is_err() && mapping("ppr:1").is_err());
        assert!(mapping("ppr:1:rack").unwrap_err().to_string().contains("rack"));
        assert!(mapping("").is_err() && mapping("rack").is_err() && mapping("slot:fast").is_err());
        assert!(ranking("rack").is_err() && ranking("core:fast").is_err() && ranking("").is_err());
    }
}
