//! The policies of `--map-by` and `--rank-by` in Open MPI's syntax: a name, which may be abbreviated, and
//! modifiers after a colon.

use crate::error::Problem;
use crate::input::hwloc::Topology;

/// A kind of object on a node that processes can be mapped to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    Node,
    Numa,
    Socket,
    L3,
    L2,
    L1,
    Core,
    Hwthread,
}

impl Object {
    /// Number of these objects on a node.
    pub(crate) fn count(self, topology: &Topology) -> u32 {
        match self {
            Object::Node => 1,
            Object::Numa => topology.numas,
            Object::Socket => topology.sockets,
            Object::L3 => topology.l3,
            Object::L2 => topology.l2,
            Object::L1 => topology.l1,
            Object::Core => topology.cores,
            Object::Hwthread => topology.hwthreads,
        }
    }
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
}

/// `--map-by` with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub by: MapBy,
    pub oversubscribe: Option<bool>,
}

/// The order of processes in which ranks are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RankBy {
    Slot,
    Node,
    Object { object: Object, sweep: Sweep },
}

/// The order of objects in ranking by object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweep {
    /// Round-robin over the objects of a node, then the next node.
    Node,
    /// Round-robin over all objects of all nodes.
    Span,
    /// All processes of an object, then the next object.
    Fill,
}

/// Splits `ppr:N:object`. GetInfo and Open MPI know different objects.
pub(crate) fn ppr_parts(text: &str) -> Option<Result<(u32, &str), Problem>> {
    let (head, pattern) = text.split_once(':')?;
    if !is_start_of(head, "ppr") {
        return None;
    }
    let parts = pattern.split_once(':').and_then(|(count, per)| Some((count.parse::<u32>().ok()?, per)));
    Some(match parts {
        Some((0, _)) => Err(Problem::PprZero(text.to_owned())),
        Some(parts) => Ok(parts),
        None => Err(Problem::PprPattern(text.to_owned())),
    })
}

/// Parses `--map-by`.
pub(crate) fn mapping(text: &str) -> Result<Mapping, Problem> {
    let mut modifiers = Modifiers::default();
    if let Some(parts) = ppr_parts(text) {
        let (count, per) = parts?;
        let per = match per.split_once(':') {
            Some((per, rest)) => {
                modifiers.read(rest, text)?;
                per
            }
            None => per,
        };
        let per = object(per).ok_or_else(|| Problem::PprObject { object: per.into(), ppr: text.into() })?;
        return Ok(Mapping { by: MapBy::Ppr { count, per }, oversubscribe: modifiers.oversubscribe });
    }
    let name = match text.split_once(':') {
        Some((name, rest)) => {
            modifiers.read(rest, text)?;
            name
        }
        None => text,
    };
    let unknown = || Problem::UnknownPolicy { what: "mapping", policy: text.to_owned() };
    let by = match name {
        // Modifiers alone apply to mpirun's default.
        "" if text.starts_with(':') => MapBy::Object { object: Object::Socket, span: modifiers.span },
        _ if is_start_of(name, "slot") => MapBy::Slot,
        _ if is_start_of(name, "node") => MapBy::Node,
        _ => MapBy::Object { object: object(name).ok_or_else(unknown)?, span: modifiers.span },
    };
    Ok(Mapping { by, oversubscribe: modifiers.oversubscribe })
}

/// Parses `--rank-by`.
pub(crate) fn ranking(text: &str) -> Result<RankBy, Problem> {
    let unknown = || Problem::UnknownPolicy { what: "ranking", policy: text.to_owned() };
    let (name, sweep) = match text.split_once(':') {
        None => (text, Sweep::Node),
        Some((name, modifier)) if is_start_of(modifier, "span") => (name, Sweep::Span),
        Some((name, modifier)) if is_start_of(modifier, "fill") => (name, Sweep::Fill),
        Some(_) => return Err(Problem::UnknownModifier(text.to_owned())),
    };
    Ok(match name {
        _ if is_start_of(name, "slot") => RankBy::Slot,
        _ if is_start_of(name, "node") => RankBy::Node,
        _ => RankBy::Object { object: object(name).ok_or_else(unknown)?, sweep },
    })
}

#[derive(Default)]
struct Modifiers {
    span: bool,
    oversubscribe: Option<bool>,
}

impl Modifiers {
    fn read(&mut self, text: &str, whole: &str) -> Result<(), Problem> {
        for modifier in text.split(',') {
            if is_start_of(modifier, "span") {
                self.span = true;
            } else if is_start_of(modifier, "oversubscribe") {
                self.oversubscribe = Some(true);
            } else if is_start_of(modifier, "nooversubscribe") {
                self.oversubscribe = Some(false);
            } else {
                return Err(Problem::UnknownModifier(whole.to_owned()));
            }
        }
        Ok(())
    }
}

fn object(name: &str) -> Option<Object> {
    // In this order: "n" abbreviates node, "s" socket.
    let names = [
        ("node", Object::Node),
        ("hwthread", Object::Hwthread),
        ("core", Object::Core),
        ("socket", Object::Socket),
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
            RankBy::Object { object: Object::Core, sweep: Sweep::Fill }
        );
        assert_eq!(ranking("slot").unwrap(), RankBy::Slot);
    }

    #[test]
    fn what_mpirun_does_not_know_is_refused() {
        assert!(mapping("ppr:0:node").unwrap_err().to_string().contains("ppr:0"));
        assert!(mapping("ppr:x:node").is_err() && mapping("ppr:1").is_err());
        assert!(mapping("ppr:1:slot").unwrap_err().to_string().contains("--model getinfo"));
        assert!(mapping("").is_err() && mapping("rack").is_err() && mapping("slot:fast").is_err());
        assert!(ranking("rack").is_err() && ranking("core:fast").is_err() && ranking("").is_err());
    }
}
